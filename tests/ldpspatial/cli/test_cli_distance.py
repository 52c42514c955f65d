"""``ldpspatial distance``: the number and its bounds, the plan, the figure, and what is refused."""

import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pytest

from ldpspatial import transport, wasserstein
from ldpspatial.cli.distance import FIGURES, _outward, _short
from ldpspatial.collecting.results import write_csv, write_geojson
from ldpspatial.plotting.heat_map import METADATA
from tests.support.command_line import refusal, succeed
from tests.support.files import write_file
from tests.support.results import GRIDS, result_on

CITY = GRIDS["city"]
FIRST, SECOND = result_on(CITY).density, result_on(CITY).density[::-1]
P, Q = [[3, 1, 0], [0, 0, 0]], [[0, 1, 1], [1, 0, 1]]


def matrix(folder: Path, name: str, values: Any) -> Path:
    rows = (",".join(map(repr, row)) for row in np.asarray(values).tolist())
    return write_file(folder, name, "\n".join(rows) + "\n")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return matrix(tmp_path, "p.csv", P), matrix(tmp_path, "q.csv", Q)


def rows(*arguments: object) -> dict[str, str]:
    """Return what the command prints, by the names at the left."""
    title, *lines = succeed("distance", *arguments).stdout.splitlines()
    assert title.startswith("From ")
    pairs = (re.split(r"  +", line.strip(), maxsplit=1) for line in lines if line.startswith("  "))
    return dict(pairs)


def value_of(shown: dict[str, str]) -> tuple[float, str]:
    """Return distance and unit, once sure that the bounds hold it."""
    (text,) = (text for name, text in shown.items() if name.startswith("exact W"))
    found = re.match(r"([\d.]+) (m|cells|plane units)\b", text)
    assert found
    bounds = re.fullmatch(r"([\d.]+) <= W[12] <= ([\d.]+) (.+)", shown["proven bounds"])
    assert bounds
    assert bounds[3] == found[2]
    lower, value, upper = (Decimal(text) for text in (bounds[1], found[1], bounds[2]))
    assert lower <= value <= upper
    return float(value), found[2]


def test_estimates_are_compared_in_metres_and_in_cells(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", CITY, result_on(CITY))
    write_geojson(tmp_path / "a.geojson", CITY, result_on(CITY))
    other = matrix(tmp_path, "b.csv", SECOND)
    expected = wasserstein(FIRST, SECOND, cell=CITY.cell_size)
    for name in ("a.csv", "a.geojson"):
        shown = rows(tmp_path / name, other)
        assert shown["grid"] == "7 x 7 cells of 1714.3 x 1714.3 m"
        value, unit = value_of(shown)
        assert (value, unit) == (pytest.approx(expected, rel=1e-6), "m")
        cells = shown["exact W2, euclidean"].partition(" = ")[2]
        assert float(cells.removesuffix(" cells")) == pytest.approx(
            wasserstein(FIRST, SECOND), rel=1e-5
        )
        assert "totals" not in shown


def test_cells_that_are_not_square_have_metres_only(tmp_path: Path) -> None:
    grid = GRIDS["tall in metres"]
    write_csv(tmp_path / "a.csv", grid, result_on(grid))
    shown = rows(tmp_path / "a.csv", matrix(tmp_path, "b.csv", SECOND))
    value, unit = value_of(shown)
    expected = wasserstein(result_on(grid).density, SECOND, cell=grid.cell_size)
    assert (value, unit) == (pytest.approx(expected, rel=1e-6), "m")
    assert "=" not in shown["exact W2, euclidean"]


def test_plane_grids_are_compared_in_their_units(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", GRIDS["plane"], result_on(GRIDS["plane"]))
    value, unit = value_of(rows(tmp_path / "a.csv", matrix(tmp_path, "b.csv", SECOND)))
    expected = wasserstein(result_on(GRIDS["plane"]).density, SECOND, cell=1.35)
    assert (value, unit) == (pytest.approx(expected, rel=1e-6), "plane units")


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("ground", ["euclidean", "cityblock"])
@pytest.mark.parametrize("cell", [None, 250])
def test_order_ground_and_cell(
    order: int, ground: str, cell: int | None, pair: tuple[Path, Path]
) -> None:
    given = ("--order", order, "--ground", ground, *(() if cell is None else ("--cell", cell)))
    shown = rows(*pair, *given)
    value, unit = value_of(shown)
    assert unit == ("cells" if cell is None else "m")
    assert value == pytest.approx(wasserstein(P, Q, order, ground, cell or 1), rel=1e-9)
    assert f"exact W{order}, {ground}" in shown


def test_what_moves_is_told(pair: tuple[Path, Path]) -> None:
    shown = rows(*pair, "--order", 1)
    # One of 4 goes one row up, two go two columns to the right, one of them and one row up.
    mean = (1 + 2 + 5**0.5) / 3
    assert shown["moved"] == f"75 % of the mass, by {mean:.4g} cells on average, 2.236 at most"


def test_equal_maps_are_at_distance_0(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    shown = rows(pair[0], pair[0], "--figure", tmp_path / "f.png", "--plan", tmp_path / "n.csv")
    assert shown["exact W2, euclidean"] == "0 cells"
    assert shown["proven bounds"] == "0 <= W2 <= 0 cells"
    assert shown["moved"] == "nothing"
    assert (tmp_path / "n.csv").read_text().count("\n") == 1


def test_counts_are_compared_with_shares_and_whole_numbers_stay_exact(tmp_path: Path) -> None:
    counts = matrix(tmp_path, "n.csv", np.array(P) * 7)
    shares = matrix(tmp_path, "s.csv", np.array(Q) / 4)
    shown = rows(counts, shares)
    assert shown["totals"] == "28 and 1, each taken as 100 %"
    value, _ = value_of(shown)
    assert value == pytest.approx(wasserstein(P, Q), rel=1e-9)


@pytest.mark.parametrize("digits", [3, 5, 17])
def test_shares_written_with_rounding_are_taken(digits: int, tmp_path: Path) -> None:
    files = [
        matrix(tmp_path, f"{name}.csv", np.round(values, digits))
        for name, values in (("a", FIRST), ("b", SECOND**1.1 / (SECOND**1.1).sum()))
    ]
    shown = rows(*files)
    assert ("totals" in shown) == (digits < 17)
    value, _ = value_of(shown)
    expected = wasserstein(FIRST, SECOND**1.1 / (SECOND**1.1).sum())
    assert value == pytest.approx(expected, rel=10.0 ** (2 - digits) + 1e-9)


def test_columns_may_differ_between_the_files(tmp_path: Path) -> None:
    lines = ["row,col,people"] + [f"{r},{c},{P[r][c]}" for r in range(2) for c in range(3)]
    first = write_file(tmp_path, "a.csv", "\n".join(lines) + "\n")
    second = write_file(tmp_path, "b.csv", "\n".join(lines).replace("people", "Share") + "\n")
    named = ("--column", "people", "--column", "share")
    assert rows(first, second, *named)["moved"] == "nothing"
    assert rows(first, first, "--column", "people")["moved"] == "nothing"
    error = refusal("distance", first, second, "--column", "people")
    assert error.startswith("SECOND: column must name one column, got 'people'")
    error = refusal("distance", first, second, *named, "--column", "more")
    assert error == "Give --column once, or twice: for FIRST and for SECOND."


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_only_a_plan_is_replaced_by_a_plan(
    pair: tuple[Path, Path], tmp_path: Path, suffix: str
) -> None:
    plan = tmp_path / f"plan.{suffix}"
    succeed("distance", *pair, "--plan", plan)
    assert "--plan must be a new file" in refusal("distance", *pair, "--plan", plan)
    succeed("distance", *pair, "--plan", plan, "--overwrite")
    other = tmp_path / f"reports.{suffix}"
    other.write_bytes(b"row,col\n1,2\n" if suffix == "csv" else b"PAR1")
    before = other.read_bytes()
    told = refusal("distance", *pair, "--plan", other, "--overwrite")
    assert told == f"--plan must be new, or an earlier plan to be replaced, got {str(other)!r}"
    assert other.read_bytes() == before


def test_no_result_beside_a_map_is_replaced(pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    figure = ("--figure", tmp_path / "heatmap.png", "--overwrite")
    assert "--figure must not replace an input or a result" in refusal("distance", *pair, *figure)


def test_plan_and_figure_are_written(pair: tuple[Path, Path], tmp_path: Path) -> None:
    plan, figure = tmp_path / "plan.csv", tmp_path / "moved.png"
    asked = ("distance", *pair, "--plan", plan, "--figure", figure, "--cell", 50)
    result = succeed(*asked)
    assert result.stdout.endswith(f"Written to {plan}\nWritten to {figure}\n")
    plan.unlink()
    figure.write_text("mine")
    told = refusal(*asked)
    assert told == f"--figure must be a new file, got {str(figure)!r} (--overwrite replaces it)"
    assert (figure.read_text(), plan.exists()) == ("mine", False)
    succeed(*asked, "--overwrite")
    assert figure.read_bytes().startswith(b"\x89PNG")
    table = pa_csv.read_csv(plan).to_pydict()
    expected = transport(P, Q, cell=50)
    assert sum(table["mass"]) == pytest.approx(expected.mass.sum())
    cost = np.dot(table["mass"], np.square(table["distance"]))
    assert cost == pytest.approx(expected.value**2)
    assert sorted(os.listdir(tmp_path)) == ["moved.png", "p.csv", "plan.csv", "q.csv"]


def test_names_that_the_font_lacks_are_no_trouble(tmp_path: Path) -> None:
    first, second = matrix(tmp_path, "\u5730$x_1$.csv", P), matrix(tmp_path, "q.csv", Q)
    succeed("distance", first, second, "--figure", tmp_path / "f.svg")
    assert (tmp_path / "f.svg").exists()


@pytest.mark.parametrize(
    ("option", "name", "rule"),
    [
        ("--plan", "plan.txt", "--plan must end in .csv or .parquet, got 'plan.txt'"),
        ("--figure", "f.jpg", "--figure must end in .png or .pdf or .svg, got 'f.jpg'"),
        ("--plan", "none/plan.csv", "--plan must lie in a folder that exists, got '.*plan.csv'"),
        ("--plan", "p.csv", "--plan must not replace an input or a result, got '.*p.csv'"),
        ("--plan", "x/../q.csv", "--plan must not replace an input"),
    ],
)
def test_outputs_are_checked_before_the_work(
    option: str, name: str, rule: str, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "x").mkdir()
    before = {path: path.read_bytes() for path in pair}
    error = refusal("distance", *pair, option, tmp_path / name)
    assert re.match(rule, error), error
    assert before == {path: path.read_bytes() for path in pair}
    assert sorted(os.listdir(tmp_path)) == ["p.csv", "q.csv", "x"]


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([[1, 2], [3, 4]], "both maps must have one grid, got 2 x 3 and 2 x 2 cells"),
        (
            [[0.0] * 3] * 2,
            "SECOND: density must be above 0 somewhere, but 'bad.csv' holds zeros only",
        ),
        (
            [[1, -1.5, 1]] * 2,
            "SECOND: density must be finite and 0 or more, got -1.5 at row 0, col 1 of 'bad.csv'",
        ),
        (
            [[1, 1, 1], [1, np.nan, 1]],
            "SECOND: column 2 must hold a number in every row, but 1 of 2 rows of 'bad.csv' hold "
            "none (first: row 2)",
        ),
        (
            [[1, 1, 1], [1, 1, np.inf]],
            "SECOND: density must be finite and 0 or more, got inf at row 1, col 2 of 'bad.csv'",
        ),
    ],
)
def test_bad_maps(values: Any, rule: str, pair: tuple[Path, Path], tmp_path: Path) -> None:
    bad = matrix(tmp_path, "bad.csv", values)
    plan = tmp_path / "plan.csv"
    assert refusal("distance", pair[0], bad, "--plan", plan) == rule
    assert not plan.exists()


def test_maps_of_different_places(tmp_path: Path) -> None:
    for name in ("city", "southern hemisphere"):
        write_csv(tmp_path / f"{name}.csv", GRIDS[name], result_on(CITY))
    error = refusal("distance", tmp_path / "city.csv", tmp_path / "southern hemisphere.csv")
    assert error.startswith("both maps must have one grid, but their cells lie in different places")


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1 / 3, 592.87492507123, 9.9999999999e-5, 1.7e9])
def test_printed_bounds_are_bounds(value: float) -> None:
    lower, upper = (Decimal(text) for text in _outward(value, value))
    exact = Decimal(value)
    assert lower <= exact <= upper
    assert upper - lower <= exact * Decimal("1e-9")
    assert lower <= Decimal(f"{value:.10g}") <= upper


def test_titles_name_the_folder_and_stay_short() -> None:
    assert _short(Path("/somewhere/monday/estimate.csv")) == "monday/estimate.csv"
    assert _short(Path("estimate.csv")) == "estimate.csv"
    long = _short(Path("a" * 50 + "/estimate.csv"))
    assert len(long) == 32
    assert long.startswith("…a")
    assert long.endswith("a/estimate.csv")


def test_figures_are_of_the_kinds_that_can_be_saved() -> None:
    assert tuple(f".{kind}" for kind in METADATA) == FIGURES
