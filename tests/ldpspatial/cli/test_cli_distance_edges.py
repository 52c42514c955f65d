"""``ldpspatial distance`` at the edge of numbers and files: true bounds or one line of error."""

import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command_line import refusal, succeed
from tests.support.exact_lines import exact_on_a_line
from tests.support.files import write_file


def saved(folder: Path, name: str, values: Any) -> Path:
    np.save(folder / name, np.asarray(values, np.float64))
    return folder / name


def shown(*arguments: object) -> dict[str, str]:
    """Return what the command prints, by the names at the left."""
    lines = succeed("distance", *arguments).stdout.splitlines()
    pairs = (re.split(r"  +", line.strip(), maxsplit=1) for line in lines if line.startswith("  "))
    return dict(pairs)


def bounds(rows: dict[str, str]) -> tuple[Fraction, Fraction]:
    found = re.fullmatch(r"(\S+) <= W[12] <= (\S+) (m|cells)", rows["proven bounds"])
    assert found
    return Fraction(Decimal(found[1])), Fraction(Decimal(found[2]))


@pytest.mark.parametrize("order", [1, 2])
def test_printed_bounds_hold_for_maps_of_any_totals(order: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([1, order])
    for case in range(30):
        p = rng.random((1, 6)) if case else np.array([[0.3, 0.7]])
        noise = 10.0 ** rng.uniform(-13, -5) * rng.uniform(-1, 1, 6) if case else [1e-9, 0]
        q = p * (10.0 ** rng.uniform(-3, 3) if case else 3.7) * (1 + np.array([noise]))
        exact = exact_on_a_line(p[0].tolist(), q[0].tolist(), order)
        rows = shown(saved(tmp_path, "p.npy", p), saved(tmp_path, "q.npy", q), "--order", order)
        lower, upper = bounds(rows)
        assert lower**order <= exact <= upper**order


@pytest.mark.parametrize(
    ("scales", "totals"),
    [
        ((1.0, 1e307), r"69 and 6.90000000e\+308"),
        ((1e-310, 1e-200), "6.9e-309 and 6.9e-199"),
        ((1e307, 1e-310), ".* and 6.9e-309"),
    ],
)
def test_totals_beyond_all_floats(scales: tuple[float, float], totals: str, tmp_path: Path) -> None:
    p = np.array([[9.0, 5, 1], [8, 9, 5], [17, 10, 5]])
    files = [saved(tmp_path, f"{k}.npy", each * scales[k]) for k, each in enumerate((p, p[::-1]))]
    plain = [saved(tmp_path, f"{k}.npy", each) for k, each in enumerate((p, p[::-1]), 2)]
    rows, expected = shown(*files, "--figure", tmp_path / "f.png"), shown(*plain)
    for name in ("exact W2, euclidean", "moved"):
        assert rows[name] == expected[name]
    assert re.match(rf"{totals}, each taken as 100 %$", rows["totals"]), rows["totals"]


def test_a_total_beyond_all_floats_is_printed(tmp_path: Path) -> None:
    large = saved(tmp_path, "large.npy", np.full((6, 6), 1e308))
    rows = shown(large, saved(tmp_path, "one.npy", np.eye(6)))
    assert rows["totals"] == "3.60000000e+309 and 6, each taken as 100 %"
    assert "totals" not in shown(large, large)


def test_a_single_row_of_plain_numbers(tmp_path: Path) -> None:
    row = write_file(tmp_path, "row.csv", "1,2,3\n")
    assert shown(row, row)["grid"] == "1 x 3 cells"


def test_damaged_files_are_named(tmp_path: Path) -> None:
    good = saved(tmp_path, "good.npy", [[1.0]])
    np.savez(tmp_path / "c.npz", density=[[1.0]], collection='{"bad":1}')
    number = f"1{'0' * 400}"
    cell = f'{{"properties": {{"row": 0, "col": 0, "density": {number}}}}}'
    write_file(tmp_path, "huge.geojson", f'{{"features": [{cell}]}}')
    for name, rule in (
        ("c.npz", "collection in 'c.npz': schema must be 'ldpspatial/collection/1', got None"),
        ("huge.geojson", "density must be finite and 0 or more, got inf at row 0, col 0 of "),
    ):
        assert refusal("distance", good, tmp_path / name).startswith(f"SECOND: {rule}")


def test_huge_cells_are_refused_and_tiny_ones_have_short_bounds(tmp_path: Path) -> None:
    files = saved(tmp_path, "p.npy", [[1, 2, 0]]), saved(tmp_path, "q.npy", [[0, 1, 2]])
    plan = tmp_path / "plan.csv"
    for order, cell in ((1, 1e308), (2, 1e154)):
        error = refusal("distance", *files, "--order", order, "--cell", cell, "--plan", plan)
        assert error.startswith("--cell must leave 1 rows and 3 columns an extent below 1.")
        assert not plan.exists()
    for order, cell in ((1, 1e-320), (2, 1e-320), (1, 1e305), (2, 1e150)):
        asked = ("--order", order, "--cell", cell, "--plan", plan, "--overwrite")
        rows = shown(*files, *asked)
        lower, upper = bounds(rows)
        assert len(rows["proven bounds"]) < 60
        exact = exact_on_a_line([1, 2, 0], [0, 1, 2], order) * Fraction(cell) ** order
        assert lower**order <= exact <= upper**order


def test_the_command_line_is_a_module_too() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "ldpspatial", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("ldpspatial, version ")


@pytest.mark.parametrize("cell", ["nan", "inf"])
def test_a_cell_that_is_no_number_is_refused_by_its_option(cell: str) -> None:
    error = refusal("distance", "a.csv", "b.csv", "--cell", cell)
    assert error == f"Invalid value for '--cell': {cell} is not a finite number."
