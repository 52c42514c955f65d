"""``ldpspatial plan``: what to expect, and which grid to take."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from client_sdk import Collection, Grid, response_table
from ldpspatial.files.regions import read_regions
from ldpspatial.planning.designs import Design, Lead
from ldpspatial.planning.plan import Plan, PlanRow
from ldpspatial.release.local.disks.disk_radius import disk_squared_radius
from tests.support.command_line import refusal, run

SMALL = ("plan", "--side-km", 12, "--epsilon", 3.5, "--devices", 300, "--repeats", 2, "--seed", 1)


def test_every_grid_has_a_line_and_one_is_recommended() -> None:
    result = run(*SMALL, "--cells", 8, "--cells", 5, "--mechanism", "huem")
    assert result.exit_code == 0
    title, header, *rows, advice, design, forged = result.stdout.splitlines()
    assert title == "300 devices, 3.5-LDP per report, 12 km square, huem"
    assert header.split()[:4] == ["cells", "cell", "m", "radius"]
    assert [row.split()[:2] for row in rows] == [["5", "2400"], ["8", "1500"]]
    taken = [row.split()[:2] for row in rows if row.endswith("take")]
    assert len(taken) == 1
    cells, cell_m = taken[0]
    why = ", the finest whose total is within 5 % of the smallest: people are then off by "
    assert advice.startswith(f"Take {cells} x {cells} cells of {cell_m} m{why}")
    assert re.match(r"Collect with --mechanism (huem|disk)( --squared-radius \d+)? and ", design)
    assert re.fullmatch(
        r"Forged reports can move such a map, with huem: 1% by up to \d+ m, "
        r"5% by up to \d+ m\.",
        forged,
    )


def test_grids_without_a_disk_are_marked_and_warned_of_once() -> None:
    result = run(*SMALL, "--epsilon", 8, "--cells", 4)
    assert "k-RR, take" in result.stdout
    assert result.stderr.count("the disk radius is 0") == 1
    assert "Warning" not in result.stdout


SINGLE_CELL = "(a single cell: k-ary randomised response)"


def show(
    monkeypatch: pytest.MonkeyPatch, lead: Lead, over_nothing: float, squared_radius: int = 5
) -> list[str]:
    """Show a made-up plan, the disk ahead of dam by ``lead``, and return the lines of advice."""
    far, level = Lead(over_nothing, 1.0), Lead(0.0, 0.0)
    dam = Design("dam", None, "em", 520.0, 9.0, 666.0, level, far, ())
    total, square = 666.0 - lead.mean_m, squared_radius
    disk = Design("disk", square, "field", 303.0, 12.0, total, lead, far, ())
    row = PlanRow(15, 800.0, 3, 500.0, 11.0, 326.0, 650.0, 0.2, ())
    made = Plan(12e3, 3.5, 7000, "dam", ("m",), (row,), 2470.0, (), (dam, disk))
    monkeypatch.setattr("ldpspatial.cli.plan.make_plan", lambda *_, **__: made)
    _, _, row_shown, *advice = run(*SMALL).stdout.splitlines()
    assert row_shown.endswith("take") == made.tells_something
    return advice


def test_the_total_is_that_of_the_recommended_design(monkeypatch: pytest.MonkeyPatch) -> None:
    grid, design = show(monkeypatch, Lead(180.0, 10.0), 1000.0)
    assert grid == (
        "Take 15 x 15 cells of 800 m: people are then off by about 486 m in such a city "
        "with people drawn anew (root mean square); a map that knows nothing is off by 2470 m."
    )
    assert design == (
        "Collect with --mechanism disk --squared-radius 5 and estimate with --estimator field "
        "(what --for-users 7000 takes): total 486 m, W2 303 ± 12 m, "
        "against total 666 m, W2 520 ± 9 m with dam and --estimator em."
    )


def test_a_disk_of_a_single_cell_is_called_randomised_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, taken = show(monkeypatch, Lead(180.0, 10.0), 1000.0, 0)
    assert f"with --mechanism disk --squared-radius 0 {SINGLE_CELL} and estimate with" in taken
    assert taken.endswith("with dam and --estimator em.")
    _, kept = show(monkeypatch, Lead(18.0, 10.0), 1000.0, 0)
    assert f"with disk {SINGLE_CELL} and --estimator field; over 2 collections" in kept
    (nothing,) = show(monkeypatch, Lead(180.0, 10.0), 2.0, 0)
    assert f"486 m with disk {SINGLE_CELL} and --estimator field in such" in nothing
    (other,) = show(monkeypatch, Lead(18.0, 10.0), 2.0, 0)
    assert f"with disk {SINGLE_CELL} and --estimator field they are off" in other
    assert all(SINGLE_CELL not in line for line in show(monkeypatch, Lead(180.0, 10.0), 1000.0))


def test_a_lead_within_chance_is_called_none(monkeypatch: pytest.MonkeyPatch) -> None:
    grid, design = show(monkeypatch, Lead(18.0, 10.0), 1000.0)
    assert "people are then off by about 666 m in" in grid
    assert design.startswith(
        "Collect with --mechanism dam and estimate with --estimator em: total "
    )
    assert design.endswith(
        "with disk and --estimator field; over 2 collections that may be chance."
    )
    behind = show(monkeypatch, Lead(-80.0, 10.0), 1000.0)[1]
    assert behind.startswith("Collect with --mechanism dam and ")
    assert behind.endswith("against total 746 m, W2 303 ± 12 m with disk and --estimator field.")


def test_nothing_is_recommended_that_is_no_better_than_a_uniform_map(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (line,) = show(monkeypatch, Lead(18.0, 10.0), 2.0)
    assert line.startswith(
        "Nothing to recommend: on 15 x 15 cells people are off by about 666 m with dam and "
        "--estimator em in such a city with people drawn anew (root mean square), which is "
        "hardly better, or no better, than what needs no report, off by 668 m; with disk and "
        "--estimator field they are off by 648 m."
    )


def test_lengths_of_a_small_square_keep_their_digits() -> None:
    result = run("plan", "--side-km", 0.02, *SMALL[3:], "--cells", 5)
    assert "Take 5 x 5 cells of 4 m" in result.stdout


def test_the_collection_that_is_recommended_is_written(tmp_path: Path) -> None:
    out = tmp_path / "collection.json"
    asked = (*SMALL, "--cells", 5, "--devices", 3000)
    where = ("--center", "48.0,11.0", "--name", "noon in town", "--out", out)
    result = run(*asked, *where)
    assert result.exit_code == 0
    made = Collection.from_json(out.read_text(encoding="utf-8"))
    assert result.stdout.splitlines()[-1] == f"Written to {out}: {made.digest}"
    assert (made.name, made.grid, made.table.mechanism, made.table.epsilon) == (
        "noon in town",
        Grid.from_center(48.0, 11.0, 12_000, 5),
        "disk",
        3.5,
    )
    assert made.table.radius**2 <= disk_squared_radius(5, 3.5, 3000)
    assert "--out must be a new file" in refusal(*asked, *where)


def test_with_a_ring_the_square_is_larger_than_the_area_by_the_radius(tmp_path: Path) -> None:
    out = tmp_path / "collection.json"
    asked = (*SMALL, "--cells", 5, "--devices", 3000, "--center", "48.0,11.0", "--name", "noon")
    lines = run(*asked, "--out", out, "--ring").stdout.splitlines()
    made = Collection.from_json(out.read_text(encoding="utf-8"))
    table = tmp_path / "collection-area.csv"
    assert lines[-1] == f"Written to {table}: the area, for ranges --of"
    ring = response_table("disk", 3.5, 5, squared_radius=disk_squared_radius(5, 3.5, 3000)).radius
    ring = max(ring, 1)
    assert made.grid.cells == 5 + 2 * ring
    assert made.grid.cell_size == pytest.approx((2400, 2400), rel=1e-6)
    (area,) = read_regions(table, made.grid)
    inner = np.zeros((made.grid.cells,) * 2)
    inner[ring:-ring, ring:-ring] = 1
    assert area.weights == pytest.approx(inner, abs=1e-5)
    assert "--out must be a new file" in refusal(
        *asked, "--out", tmp_path / "collection.json", "--ring"
    )


def test_half_a_place_is_refused_and_nothing_is_written_that_is_not_recommended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "collection.json"
    asked = (*SMALL, "--cells", 5)
    rule = "--out needs --center and --name, and no --windows."
    assert rule in refusal(*asked, "--out", out)
    assert rule in refusal(*asked, "--out", out, "--center", "48,11")
    assert "go with --out" in refusal(*asked, "--name", "noon")
    place = ("--center", "48,11", "--name", "noon", "--out", out)
    assert rule in refusal(*asked, *place, "--windows", 2, "--answers", 1)
    polar = ("--center", "89.99,11", "--name", "noon", "--out", out)
    assert "--center and --side-km: lat must lie within 85 degrees" in refusal(*asked, *polar)
    nowhere = (*place[:-1], tmp_path / "no" / "c.json")
    assert "--out must lie in a folder that exists" in refusal(*asked, *nowhere)
    assert "--name must be" in refusal(
        *asked, "--center", "48,11", "--name", "n" * 201, "--out", out
    )
    far, level = Lead(2.0, 1.0), Lead(0.0, 0.0)
    designs = tuple(Design(m, 5, "em", 520.0, 9.0, 666.0, level, far, ()) for m in ("disk",) * 2)
    row = PlanRow(15, 800.0, 3, 500.0, 11.0, 326.0, 650.0, 0.2, ())
    made = Plan(12e3, 3.5, 300, "disk", ("m",), (row,), 2470.0, (), designs)
    monkeypatch.setattr("ldpspatial.cli.plan.make_plan", lambda *_, **__: made)
    result = run(*asked, *place)
    assert result.exit_code == 1
    assert result.stdout.startswith("3")
    assert f"nothing is recommended, so {out} is not written" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--side-km", 0, "'--side-km': 0.0 is not in the range 0<x<=20000"),
        ("--side-km", "nan", "Invalid value for '--side-km': nan is not a finite number."),
        ("--epsilon", 0, "--epsilon must be a number from 0.000001 to 20, got 0.0"),
        ("--devices", 0, "devices must be a whole number from 1 to 10000000, got 0"),
        ("--devices", "many", "'--devices': 'many' is not a valid integer"),
        ("--cells", 129, "cells must be a whole number from 1 to 128, got 129"),
        ("--repeats", 1, "repeats must be a whole number from 2 to 1000, got 1"),
        ("--seed", -1, "'--seed': -1 is not in the range x>=0"),
    ],
)
def test_bad_plans_are_refused_in_one_line(option: str, value: object, rule: str) -> None:
    assert rule in refusal(*SMALL, option, value)


@cache
def series(answers: int, windows: int) -> list[str]:
    """Return the lines of a planned series below the advice."""
    result = run(*SMALL, "--cells", 5, "--windows", windows, "--answers", answers)
    assert result.exit_code == 0
    lines: list[str] = result.stdout.splitlines()
    reports = 300 * answers // windows
    assert lines[0] == (
        f"300 devices, each answering {answers} of {windows} windows: {reports} reports a window, "
        "3.5-LDP per report, 12 km square, disk"
    )
    start = next(k for k, line in enumerate(lines) if line.startswith("Maps of the series"))
    return lines[start:]


def test_a_series_shows_its_maps_beside_the_risk_of_staying() -> None:
    title, header, window, together, word, risk, columns, *rows = series(2, 7)
    assert re.fullmatch(
        r"Maps of the series on that grid, (dam|disk) and --estimator [a-z-]+", title
    )
    assert header.split() == ["map", "reports", "W2", "m", "total", "m"]
    assert re.match(r" +one window +85 +\d+ ± [\d.]+ +\d+$", window)
    assert re.match(r" +all 7 together +600 +\d+ ± [\d.]+ +\d+$", together)
    assert word.startswith("All together they are a map of people who are in every window where")
    assert risk.endswith("how often the best attacker names that cell, of 2400 m")
    assert columns.split() == ["reports", "what", "it", "answers", "loss", "named"]
    shapes = [re.sub(r"\d+\.\d%", "P", " ".join(row.split())) for row in rows]
    assert shapes == [
        "1 one report 3.5 P",
        "2 this series 7 P ± P",
        "7 all windows answered 24.5 P ± P",
    ]
    found = [[float(each) for each in re.findall(r"(\d+\.\d)%", row)] for row in rows]
    (one,), (several, error), (every, _) = found
    # The first is exact and the others are played; two answers of single cells name no better one.
    assert one - 3 * error <= several <= every
    assert one < every


def test_a_series_of_one_window_shows_one_map() -> None:
    lines = series(1, 1)
    assert [line for line in lines if line.startswith("  one window")]
    assert not [line for line in lines if "together" in line]


def test_the_smallest_epsilon_can_be_planned() -> None:
    for more in ((), ("--windows", 2, "--answers", 1)):
        arguments = [*SMALL, "--cells", 3, "--epsilon", 0.000001, *more]
        assert run(*arguments).exit_code == 0


def test_a_series_of_one_answer_and_one_of_all_windows_have_no_row_twice() -> None:
    assert [row.split()[:3] for row in series(1, 7)[-2:]] == [
        ["1", "this", "series"],
        ["7", "all", "windows"],
    ]
    assert [row.split()[:3] for row in series(3, 3)[-2:]] == [
        ["1", "one", "report"],
        ["3", "this", "series"],
    ]
    assert len(series(1, 1)) == 6


def test_half_a_series_is_refused() -> None:
    assert refusal(*SMALL, "--windows", 7) == (
        "--windows and --answers must be given together, got no --answers"
    )
    assert refusal(*SMALL, "--windows", 7, "--answers", 8) == (
        "--answers must be at most windows, 7, got 8"
    )


def test_an_estimator_that_no_document_carries_is_told_to_be_passed(tmp_path: Path) -> None:
    where = ("--center", "48.0,11.0", "--name", "noon", "--cells", 8, "--mechanism", "dam")
    asked = (*SMALL[:6], 3000, *SMALL[7:])
    told = run(*asked, *where, "--out", tmp_path / "dam.json").stdout
    assert "estimate with --estimator em: " in told
    assert "Pass --estimator em to what reads it: by default that is field.\n" in told
