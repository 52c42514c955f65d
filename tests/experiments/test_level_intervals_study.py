"""Intervals from levels, on a small folder of invented data."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.studies import level_intervals as study
from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.places.quadtree import Quadtree
from tests.support.invented_cities import write_cities


def test_the_command_resumes_and_writes_a_table_for_each_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_cities(tmp_path)
    parts = ((8, ("austin", "town 2721"), (1_000,)),)
    changed = {"PARTS": parts, "EPSILONS": (1.0,), "DOCS": tmp_path}
    for name, value in changed.items():
        monkeypatch.setattr(study, name, value)
    page = tmp_path / "experiments" / "levels.md"
    page.parent.mkdir()
    page.write_text("<!-- level-intervals -->\n<!-- /level-intervals -->\n")
    options = ("--data", data, "--out", tmp_path / "out", "--repeats", 2, "--jobs", 1)
    command = [*map(str, options), "--write"]
    ran = CliRunner().invoke(study.level_intervals_study, command)
    assert ran.exit_code == 0, ran.output
    text, settings = page.read_text(), (tmp_path / "generated" / "level-intervals.md").read_text()
    monkeypatch.setattr(study, "measured", int)  # nothing is played again: it would fail
    again = CliRunner().invoke(study.level_intervals_study, command)
    assert again.exit_code == 0, again.output
    assert page.read_text() == text
    for name in study.RELEASES:
        assert text.count(f"| {name} | ") == 1
        assert settings.count(f"**{name}**") == 2  # by group, and by setting
    for row in ("all", "cities", "towns", "8 cells a side", "1,000 users", "eps 1"):
        assert settings.count(f"| {row} | ") == len(study.RELEASES)
    # Two maps, twice each.
    assert settings.count("| 8 | 1,000 | 1 | 4 | ") == len(study.RELEASES)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--side", 32, "--write"), "--write must go without .*, got --side 32"),
        (("--users", 1000, "--users", 10_000, "--write"), "got --users 1000 --users 10000"),
        (("--epsilon", 1, "--write"), "got --epsilon 1.0"),
        (("--release", "central-levels, cells", "--write"), "got --release central-levels, cells"),
        (("--side", 33), "--side 33 must leave a setting"),
        (("--users", 0), "--users 0 must leave a setting"),
        (("--side", 64, "--users", 1000), "--side 64 --users 1000 must leave a setting"),
        (("--epsilon", "nan"), "--epsilon must be a positive finite number, got nan"),
    ],
)
def test_options_that_would_empty_the_tables_are_refused_before_a_run(
    given: tuple[object, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "measured", int)  # would fail
    monkeypatch.setattr(study, "DOCS", tmp_path / "docs")  # where nothing can be written
    options = ("--data", tmp_path, "--out", tmp_path / "out", "--jobs", 1, *given)
    ran = CliRunner().invoke(study.level_intervals_study, [*map(str, options)])
    assert ran.exit_code in (1, 2)
    assert re.search(told, ran.output.splitlines()[-1])


def test_a_setting_has_the_standard_error_of_its_runs() -> None:
    nan = float("nan")
    runs = [
        study.Held("r", "m", 8, 10, 1.0, (1.0, nan, nan, nan, rectangles, *[1.0] * 5, *[0.1] * 7))
        for rectangles in (0.9, 1.0, 0.8)
    ]
    text = study._by_setting(runs, "r")
    assert text.endswith(
        "| 8 | 10 | 1 | 3 | 1.000 (0.000) |  |  |  | 0.900 (0.058)" + 5 * " | 1.000 (0.000)" + " |"
    )
    assert study._extremes(runs, "rectangles") == (
        "rectangles below 0.94 in 1 of 1 and above 0.97 in 0, lowest 0.900 with a standard error "
        "of 0.058 (8 cells a side, 10 users, eps 1)"
    )
    assert study._extremes(runs, "cells with a sum") == "no cells with a sum"
    # Of one map alone no error is known.
    assert "| 8 | 10 | 1 | 1 | 1.000 |  |  |  | 0.900" + 5 * " | 1.000" + " |" in study._by_setting(
        runs[:1], "r"
    )


def test_cells_with_a_sum_are_those_that_were_asked() -> None:
    tree = Quadtree((4, 4))
    levels = [NoisyLevel(0, np.array([0]), np.array([9.0]), 0.0)]
    levels.append(NoisyLevel(1, np.arange(4), np.array([8.0, 1.0, 0.0, 0.0]), 1.0))
    assert not study.with_sums(combined(tree, levels)).any()
    levels.append(NoisyLevel(2, np.arange(4), np.array([7.0, 1.0, 0.0, 0.0]), 1.0))
    asked = study.with_sums(combined(tree, levels))
    assert np.argwhere(asked).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
