"""``compare`` as a user calls it."""

import csv
import json
from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ldpspatial.comparison.runs import SCHEMA
from ldpspatial.release.registry import releases
from tests.support.command_line import refusal, succeed, write_people

cli_compare = import_module("ldpspatial.cli.compare")  # the package has a command of that name
SQUARE = ("--center", "48.0,11.0", "--side-km", 6)


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return write_people(tmp_path / "people.csv")


def asked(points: Path, out: Path, *more: object) -> list[object]:
    return [
        *("compare", points, "--out", out, *SQUARE, "--cells", 6, "--jobs", 1),
        *("--release", "dam", "--release", "laplace", "--repeats", 2),
        *("--metric", "l1", "--metric", "w2", *more),
    ]


def test_it_writes_tables_and_figures(points: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = succeed(*asked(points, out, "--epsilon", 1, "--epsilon", 4)).stdout
    assert "local" in shown
    assert "central" in shown
    assert "Outside the square: 2 of all positions, all that 2 users have." in shown
    assert "Held apart" not in shown  # of two relations, which replacement makes one
    assert {entry.name for entry in out.iterdir()} == {
        *("comparison.json", "runs.jsonl", "errors.csv", "errors.parquet", "curves.csv"),
        *(
            f"{metric}-{x}.png"
            for metric in ("l1", "w2")
            for x in ("epsilon-replace", "epsilon-add-or-remove", "replacement")
        ),
    }
    table = pq.read_table(out / "errors.parquet")
    assert table.schema.names == SCHEMA.names
    assert table.num_rows == 8
    with (out / "errors.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 8
    assert {row["claim_neighbours"] for row in rows} == {"replace", "add or remove"}
    with (out / "curves.csv").open() as stream:
        curves = list(csv.DictReader(stream))
    assert len(curves) == 8
    assert all(float(row["lower"]) < float(row["mean"]) < float(row["upper"]) for row in curves)


def test_the_curves_with_local_reports_shuffled(points: Path, tmp_path: Path) -> None:
    succeed(*asked(points, tmp_path / "out", "--epsilon", 1, "--shuffle-delta", 1e-4))
    assert (tmp_path / "out" / "l1-shuffled.png").exists()


def test_it_goes_on_where_it_was_stopped(points: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = asked(points, out, "--epsilon", 1, "--seed", 5)
    succeed(*command)
    before = (out / "runs.jsonl").read_bytes()
    succeed(*command, "--epsilon", 2)
    after = (out / "runs.jsonl").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 8
    assert "--seed must be that of the comparison" in refusal(*command[:-1], 6)


def test_releases_have_parameters_on_the_command_line_and_in_a_file(
    points: Path, tmp_path: Path
) -> None:
    file = tmp_path / "releases.json"
    file.write_text('[{"release": "sparse-emd", "keep": 3, "label": "three"}, "laplace"]')
    command = ("compare", points, "--out", tmp_path / "out", *SQUARE, "--cells", 6, "--jobs", 1)
    command += ("--epsilon", 1, "--repeats", 1, "--metric", "l1", "--releases", file)
    shown = succeed(*command, "--release", "sparse-emd:nodes=2", "--mixed").stdout
    assert "sparse-emd:nodes=2" in shown
    with (tmp_path / "out" / "curves.csv").open() as stream:
        names = [row["release"] for row in csv.DictReader(stream)]
    assert names == ["sparse-emd:nodes=2", "three", "laplace"]
    twice = refusal(*command, "--release", "laplace")
    assert twice == "releases must have different labels, got 'laplace' twice"
    assert "keep must be a whole number from 1" in refusal(*command, "--release", "sparse-emd:w=0")


def test_a_finished_folder_takes_more_and_is_told_as_a_whole(points: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    succeed(*asked(points, out, "--epsilon", 1, "--seed", 5))
    start = ("compare", points, "--out", out, *SQUARE, "--cells", 6, "--jobs", 1, "--repeats", 2)
    more = ("--release", "planar-laplace", "--metric", "mse", "--epsilon", 2)
    apart = succeed(*start, *more).stdout
    assert (
        "Held apart, as no conversion leads from one to the other: geo-indistinguishability per "
        "cell, per user: planar-laplace; differential privacy, per user: dam, laplace. --mixed "
        "draws them into one figure as well, and marks each curve. --release "
        "matched:inner=NAME,to=NAME,cells=N runs a local release at the local privacy of another."
    ) in apart
    shown = succeed(*start, *more, "--mixed").stdout
    assert "laplace. --release matched:inner=NAME" in shown
    assert "mean squared error, over epsilon: geo-indistinguishability per cell" in shown
    with (out / "curves.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    of = {(row["release"], row["metric"], row["epsilon"]) for row in rows}
    assert of == {
        ("planar-laplace", "mse", "2"),
        *((name, metric, "1") for name in ("dam", "laplace") for metric in ("l1", "w2")),
    }
    assert {row["claim_notion"] for row in rows} == {
        "differential privacy",
        "geo-indistinguishability",
    }
    assert pq.read_table(out / "errors.parquet").num_rows == 6
    assert (out / "l1-epsilon-mixed.png").exists()


def test_what_promises_nothing_is_left_out_and_named(points: Path, tmp_path: Path) -> None:
    shown = succeed(
        *("compare", points, "--out", tmp_path / "out", *SQUARE, "--cells", 4, "--jobs", 1),
        *("--release", "tests.support.blurs:Loose:delta=0.1", "--repeats", 1, "--metric", "l1"),
        *("--epsilon", 1, "--epsilon", 3),
    ).stdout
    assert "Loose:delta=0.1 (delta 0.1)  central" in shown
    assert "left out of figures: tests.support.blurs:Loose:delta=0.1 at epsilon 3" in shown


def test_equal_seeds_give_equal_errors(points: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        succeed(*asked(points, tmp_path / name, "--epsilon", 1, "--seed", 5))
    first, again = (
        pq.read_table(tmp_path / name / "errors.parquet").drop(["seconds"]) for name in "ab"
    )
    assert first == again


def test_curves_over_users_and_over_cells(points: Path, tmp_path: Path) -> None:
    succeed(*asked(points, tmp_path / "u", "--epsilon", 2, "--users", 50, "--users", 200))
    assert (tmp_path / "u" / "l1-users-replace.png").exists()
    succeed(*asked(points, tmp_path / "c", "--epsilon", 2, "--cells", 12))
    assert (tmp_path / "c" / "w2-cells-add-or-remove.png").exists()


def test_a_figure_over_epsilon_for_each_of_what_else_varies(points: Path, tmp_path: Path) -> None:
    more = ("--epsilon", 1, "--epsilon", 2, "--users", 50, "--users", 90)
    succeed(*asked(points, tmp_path / "out", *more))
    for users in (50, 90):
        assert (tmp_path / "out" / f"l1-epsilon-users{users}-replace.png").exists()


def test_a_map_of_one_cell_has_no_correlation_and_that_is_no_error(
    points: Path, tmp_path: Path
) -> None:
    command = ("compare", points, "--out", tmp_path / "out", *SQUARE, "--cells", 1, "--jobs", 1)
    succeed(*command, "--repeats", 2, "--epsilon", 1, "--metric", "pearson", "--metric", "l1")
    assert (tmp_path / "out" / "pearson-replacement.png").exists()


def test_rows_without_a_position_can_be_left_out(points: Path, tmp_path: Path) -> None:
    with points.open("a") as stream:
        stream.write("lost,,\n")
    assert "--on-missing drop" in refusal(*asked(points, tmp_path / "out", "--epsilon", 1))
    succeed(*asked(points, tmp_path / "out", "--epsilon", 1, "--on-missing", "drop"))


def test_a_missing_accountant_is_noticed_before_anything_is_played(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> float:
        raise ImportError("install ldpspatial[shuffle]")

    monkeypatch.setattr(cli_compare, "amplified_epsilon", missing)
    message = refusal(*asked(points, tmp_path / "out", "--shuffle-delta", 1e-6))
    assert message == "--shuffle-delta: install ldpspatial[shuffle]"
    assert not (tmp_path / "out").exists()


def test_users_hold_many_positions(points: Path, tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    table.write_text(
        "user,lat,lon\n" + "".join(f"{k % 9},48.0,{11 + k / 4e3}\n" for k in range(90))
    )
    succeed(*asked(table, tmp_path / "out", "--epsilon", 2, "--user", "user"))
    row = pq.read_table(tmp_path / "out" / "errors.parquet").to_pylist()[0]
    assert row["users"] == 9
    assert row["claim_unit"] == "user"


def test_all_releases_are_listed_with_their_claims() -> None:
    shown = succeed("compare", "--list-releases").stdout
    for name, release in releases().items():
        assert name in shown
        assert str(release.claim(1.0)) in shown
    assert "keep=20 (or w=), decay=" in shown
    for name in ("matched", "disk-and-sets"):  # which are made of what is given
        assert f"\n  {name}" in shown


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--epsilon", 0), "--epsilon must be a positive finite number, got 0"),
        (("--release", "dim"), "releases must be of"),
        (
            ("--users", 1000),
            "users must be at most 298, the number of those inside the map, got 1000",
        ),
        (("--jobs", 0), "--jobs must be 1 or more, or -1 for every core, got 0"),
        (("--jobs", -2), "--jobs must be 1 or more, or -1 for every core, got -2"),
        (("--user", "who"), "who"),
        (("--plane", "0,0,1"), "Give one of --center and --plane"),
    ],
)
def test_bad_input(points: Path, tmp_path: Path, more: tuple[object, ...], message: str) -> None:
    assert message in refusal(*asked(points, tmp_path / "out", *more))


@pytest.mark.parametrize("name", ["errors.csv", "curves.csv"])
def test_positions_that_results_would_replace_are_refused(
    points: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    succeed(*asked(points, out, "--epsilon", 1))
    mine = (out / name).write_bytes(points.read_bytes())
    shown = refusal(*asked(out / name, out, "--epsilon", 2))
    assert shown.startswith("POINTS must not be a file that the results in --out replace, got ")
    assert (out / name).stat().st_size == mine


def test_a_folder_of_something_else_is_left_alone(points: Path, tmp_path: Path) -> None:
    assert "--out must be new, empty" in refusal(*asked(points, tmp_path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["people.csv"]


def test_an_epsilon_that_a_release_does_not_take_is_refused_before_any_run(
    points: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    told = refusal(*asked(points, out, "--epsilon", 1, "--epsilon", 25))
    assert told == "dam at epsilon 25: epsilon must be a number from 0.000001 to 20, got 25.0"
    assert not (out / "runs.jsonl").exists()


def test_a_release_matched_on_other_maps_is_refused_before_any_run(
    points: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    told = refusal(*asked(points, out, "--release", "matched:inner=k-rr,to=dam,cells=15"))
    assert "k-rr matched to dam is matched" in told
    assert "cells" in told
    assert not (out / "runs.jsonl").exists()


def test_runs_that_cannot_be_read_are_told_by_the_name_of_the_option(
    points: Path, tmp_path: Path
) -> None:
    succeed(*asked(points, tmp_path / "out"))
    (tmp_path / "out" / "runs.jsonl").unlink()
    (tmp_path / "out" / "runs.jsonl").mkdir()
    told = refusal(*asked(points, tmp_path / "out"))
    assert told.startswith("--out must be one whose runs.jsonl can be read, got ")


def test_settings_tell_what_the_runs_are_of(points: Path, tmp_path: Path) -> None:
    succeed(*asked(points, tmp_path / "out", "--epsilon", 2))
    settings = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert settings["data"] == "people.csv"
    assert settings["metrics"] == ["l1", "w2"]
