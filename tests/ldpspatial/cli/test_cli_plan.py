"""``ldpspatial plan``: what to expect, and which grid to take."""

import re

import pytest

from tests.support.command_line import refusal, run

SMALL = ("plan", "--side-km", 12, "--epsilon", 3.5, "--devices", 300, "--repeats", 2)


def test_every_grid_has_a_line_and_one_is_recommended() -> None:
    result = run(*SMALL, "--cells", 8, "--cells", 5, "--mechanism", "huem", "--seed", 1)
    assert result.exit_code == 0
    title, header, *rows, advice, design = result.stdout.splitlines()
    assert title == "300 devices, 3.5-LDP per report, 12 km square, huem"
    assert header.split()[:4] == ["cells", "cell", "m", "radius"]
    assert [row.split()[:2] for row in rows] == [["5", "2400"], ["8", "1500"]]
    taken = [row.split()[:2] for row in rows if row.endswith("take")]
    assert len(taken) == 1
    cells, cell_m = taken[0]
    assert re.match(rf"Take {cells} x {cells} cells of {cell_m} m: people are then off ", advice)
    assert re.match(r"Collect with --mechanism (huem|disk)( --squared-radius \d+)? and ", design)


def test_grids_without_a_disk_are_marked_and_warned_of_once() -> None:
    result = run(*SMALL, "--cells", 3)
    assert "k-RR, take" in result.stdout
    assert result.stderr.count("the disk radius is 0") == 1
    assert "Warning" not in result.stdout


def test_lengths_of_a_small_square_keep_their_digits() -> None:
    result = run("plan", "--side-km", 0.02, *SMALL[3:], "--cells", 5)
    assert "Take 5 x 5 cells of 4 m" in result.stdout


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--side-km", 0, "'--side-km': 0.0 is not in the range 0<x<=20000"),
        ("--side-km", "nan", "side_m must be finite, got nan"),
        ("--epsilon", 0, "epsilon must be a number from 0.000001 to 20, got 0.0"),
        ("--devices", 0, "devices must be a whole number from 1 to 10000000, got 0"),
        ("--devices", "many", "'--devices': 'many' is not a valid integer"),
        ("--cells", 129, "cells must be a whole number from 1 to 128, got 129"),
        ("--repeats", 1, "repeats must be a whole number from 2 to 1000, got 1"),
        ("--seed", -1, "'--seed': -1 is not in the range x>=0"),
    ],
)
def test_bad_plans_are_refused_in_one_line(option: str, value: object, rule: str) -> None:
    assert rule in refusal(*SMALL, option, value)
