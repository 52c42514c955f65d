"""``ldpspatial audit``: the claim of a table, and an exit status for scripts."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Collection, Grid, ResponseTable
from client_sdk.mechanisms import MECHANISMS
from ldpspatial.privacy.audit import Audit, audit
from tests.support.command_line import refusal, run, succeed

DRAWS = ("--draws", 10_000)
DAM = ("audit", "dam", "--epsilon", 3.5, "--cells", 15)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_sound_mechanism_passes(mechanism: str) -> None:
    result = succeed("audit", mechanism, "--epsilon", 3.5, "--cells", 5, "--radius", 2, *DRAWS)
    lines = result.stdout.splitlines()
    assert lines[0] == f"{mechanism} on 5 x 5 cells"
    assert lines[-1] == "passed"
    assert "claim" in result.stdout
    assert "local, 3.5-LDP per report" in result.stdout


@pytest.mark.parametrize(
    ("options", "cells", "radius"),
    [
        ((), 429, "squared radius 10 (3.16 cells)"),
        (("--squared-radius", 13), 437, "squared radius 13 (3.61 cells)"),
        (("--radius", 3), 421, "squared radius 9 (3.00 cells)"),
    ],
)
def test_a_disk_of_any_radius_is_what_its_name_promises(
    options: tuple[object, ...], cells: int, radius: str
) -> None:
    shown = succeed("audit", "disk", "--epsilon", 3.5, "--cells", 15, *options, *DRAWS).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["output", "cells", str(cells)] in lines
    assert ["disk", "radius", "3,", *radius.split()] in lines
    assert ["the", "table", "its", "name", "promises", "yes"] in lines
    assert lines[-1] == ["passed"]


def test_every_sampler_test_has_a_line_of_its_own() -> None:
    expected = len(audit(Collection.create("c", Grid.plane(0, 0, 1, 15), 3.5).table, 10_000).tests)
    assert succeed(*DAM, *DRAWS).stdout.count("chi-square") == expected


def test_a_collection_document_passes(tmp_path: Path) -> None:
    path = tmp_path / "collection.json"
    path.write_bytes(Collection.create("c", Grid.plane(0, 0, 1, 15), 3.5).to_json().encode())
    assert succeed("audit", path, *DRAWS).stdout.endswith("passed\n")


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        ({"holds": False}, "at most e^epsilon"),
        ({"same_total": False}, "same total for every position"),
        ({"as_promised": False}, "the table its name promises"),
        ({"samplers_agree": False}, "compiled = plain sampler"),
    ],
)
def test_a_failed_audit_says_so_and_fails(
    finding: dict[str, Any], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def examine(source: ResponseTable, draws: int) -> Audit:
        return dataclasses.replace(audit(source, draws), **finding)

    monkeypatch.setattr("ldpspatial.cli.audit.examine", examine)
    result = run(*DAM, *DRAWS)
    assert result.exit_code == 1
    assert result.stdout.endswith("FAILED\n")
    (shown,) = [text for text in result.stdout.splitlines() if text.strip().startswith(line)]
    assert shown.endswith(" NO")


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("dam",), "A mechanism or a release needs --epsilon and --cells."),
        (("dam", "--epsilon", 3.5), "A mechanism or a release needs --epsilon and --cells."),
        (("dam", "--epsilon", 0, "--cells", 5), "--epsilon must be a number from 0.000001 to 20"),
        (("dam", "--epsilon", 1, "--cells", 0), "cells must be a whole number from 1 to 4096"),
        (("dam", "--epsilon", 1, "--cells", 5, "--radius", 11), "from 0 to 10, got 11"),
        ((*DAM[1:], "--draws", 1), "draws must be a whole number from 1000 to 100000000, got 1"),
        ((__file__, "--cells", 5), "A collection brings its own epsilon, cells and radius."),
        ((__file__, "--squared-radius", 5), "A collection brings its own epsilon, cells and"),
        ((*DAM[1:], "--squared-radius", 5), "--squared-radius is for mechanism disk alone"),
        ((*DAM[1:], "--runs", 10), "--runs and --seed are for releases that draw from no table"),
        ((*DAM[1:], "--seed", 9), "--runs and --seed are for releases that draw from no table"),
        (("k-rr", *DAM[2:], "--seed", 1), "--runs and --seed are for releases that draw from no"),
        (("none.json",), "COLLECTION 'none.json' cannot be read: No such file or directory"),
    ],
)
def test_bad_questions_are_refused_in_one_line(arguments: tuple[object, ...], rule: str) -> None:
    assert rule in refusal("audit", *arguments)


RELEASE = ("--epsilon", 1, "--cells", 2)


def test_a_release_is_attacked_by_its_maps() -> None:
    lines = succeed("audit", "sparse-emd:w=4", *RELEASE, "--runs", 2000).stdout.splitlines()
    assert lines[0] == "sparse-emd:w=4 on 2 x 2 cells"
    assert "2,000 runs on each input" in lines[3]
    (seen,) = re.findall(r"\S+(?= at least)", lines[3])
    assert lines[4].endswith(f"  as little noise at any --epsilon below {seen}, and no more")
    assert lines[-1] == "passed"


def test_an_attack_that_saw_nothing_says_that_it_says_nothing() -> None:
    lines = succeed("audit", "pivottrace", "--epsilon", 1, "--cells", 4, "--runs", 100).stdout
    assert "what that rules out         nothing: these inputs and --runs tell nothing" in lines


def test_what_an_attack_rules_out_is_in_the_epsilon_of_the_claim() -> None:
    """Of a release whose neighbour is nobody, twice its epsilon is allowed between two people."""
    lines = succeed("audit", "flat", *RELEASE, "--runs", 2000).stdout.splitlines()
    (seen,) = re.findall(r"\S+(?= at least)", lines[3])
    (below,) = re.findall(r"epsilon below (\S+),", lines[4])
    assert lines[2].split()[-1] == "2"
    assert float(below) == pytest.approx(float(seen) / 2, abs=0.001)
    assert "rules out" not in succeed("audit", "non-private", *RELEASE, "--runs", 100).stdout


def test_a_release_that_draws_from_a_table_is_examined_exactly() -> None:
    assert "at most e^epsilon" in succeed("audit", "k-rr", *RELEASE, *DRAWS).stdout


def test_a_release_of_another_package_is_audited_and_found_if_it_lies() -> None:
    for name, code in (("Nothing", 0), ("Truth", 1)):
        subject = f"tests.support.extensions:{name}"
        result = run("audit", subject, *RELEASE, "--runs", 200)
        assert result.exit_code == code, result.output
        assert result.stdout.splitlines()[-1] == ("FAILED" if code else "passed")


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("laplace",), "A mechanism or a release needs --epsilon and --cells"),
        (("laplace", *RELEASE, "--radius", 1), "--radius and --squared-radius are for mechanisms"),
        (("laplace", *RELEASE, "--draws", 10_000), "--draws is for mechanisms and collections"),
        (("laplace", *RELEASE, "--seed", -1), "'--seed': -1 is not in the range x>=0"),
        (("tests.support.extensions:Nothing", *RELEASE, "--draws", 9), "--draws is for mechanisms"),
        (("no.such.module:Name", *RELEASE), "releases must be of|release must be found at"),
        (("nothing.json", "--cells", 3), "No mechanism, release or file is called 'nothing.json'"),
    ],
)
def test_what_cannot_be_audited_is_explained(arguments: tuple[object, ...], rule: str) -> None:
    assert re.search(rule, refusal("audit", *arguments))
