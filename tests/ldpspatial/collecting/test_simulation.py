"""A whole collection on known positions."""

import numpy as np
import pytest

from client_sdk import Collection, Grid
from ldpspatial import InputError, count_cells, simulate, wasserstein
from ldpspatial.datasets import CITY_CENTER, CITY_SIDE_M, city

CITY = Collection.create("city", Grid.from_center(*CITY_CENTER, CITY_SIDE_M, 10), 3.5)
PEOPLE = city(5_000, np.random.default_rng(0))


def test_truth_reports_and_estimate_belong_together() -> None:
    stages: list[str] = []
    run = simulate(CITY, PEOPLE, on_stage=stages.append, rule="em")
    assert run.n == len(PEOPLE)
    assert run.outside == 0
    assert run.truth.sum() == pytest.approx(1)
    cells = [CITY.grid.cell(lat, lon) for lat, lon in PEOPLE]
    assert run.truth[cells[0]] == cells.count(cells[0]) / len(cells)
    assert np.array_equal(run.estimate.counts, count_cells(CITY, *run.reports))
    assert run.w2_cells == wasserstein(run.truth, run.estimate.density)
    assert run.w2_metres == pytest.approx(run.w2_cells * CITY_SIDE_M / 10, rel=1e-6)
    assert stages == list(run.seconds) == ["randomise", "estimate", "exact error"]


def test_cells_that_are_not_square_on_the_ground_are_measured_on_the_ground() -> None:
    grid = Grid.from_bounds(59.0, 18.0, 0.2, 6)  # twice as high as wide
    collection = Collection.create("degrees", grid, 3.5)
    rng = np.random.default_rng(1)
    run = simulate(collection, rng.uniform((59.0, 18.0), (59.2, 18.1), (2_000, 2)), rule="em")
    height, width = grid.cell_size
    assert run.w2_cells is not None
    assert run.w2_metres is not None
    assert width * run.w2_cells < run.w2_metres < height * run.w2_cells


def test_a_plane_has_no_metres() -> None:
    collection = Collection.create("plane", Grid.plane(0, 0, 1, 5), 3.5)
    run = simulate(collection, np.random.default_rng(2).random((100, 2)), rule="em")
    assert run.w2_cells is not None
    assert run.w2_metres is None


def test_the_exact_error_can_be_left_out() -> None:
    assert simulate(CITY, PEOPLE[:100], exact_error=False, rule="em").w2_cells is None


@pytest.mark.parametrize(("outsiders", "n"), [("drop", 10), ("nearest", 13)])
def test_outsiders(outsiders: str, n: int) -> None:
    far = np.array([[49.0, 11.0], [48.0, 12.0], [-10.0, -100.0]])
    run = simulate(CITY, np.concatenate([PEOPLE[:10], far]), outsiders, rule="em")
    assert (run.n, run.outside) == (n, 3)


def test_everybody_outside() -> None:
    with pytest.raises(InputError, match="all 1000 lie outside"):
        simulate(CITY, np.full((1000, 2), 10.0), rule="em")


def test_a_position_that_is_none_is_not_repeated() -> None:
    points = PEOPLE[:5].copy()
    points[3, 0] = np.nan
    with pytest.raises(InputError, match=r"coordinates must hold finite numbers, got nan at \[3, "):
        simulate(CITY, points, rule="em")
    points[3, 0] = 91.0
    with pytest.raises(
        InputError, match="1 of 5 positions are not finite or out of range"
    ) as caught:
        simulate(CITY, points, rule="em")
    assert "91" not in str(caught.value)


def test_counts_of_cells_against_a_loop() -> None:
    b = CITY.table.radius
    rows, cols = np.array(CITY.table.output_cells()).T
    counts = np.zeros((10 + 2 * b, 10 + 2 * b))
    for row, col in zip(rows, cols, strict=True):
        counts[row + b, col + b] += 1
    assert np.array_equal(count_cells(CITY, rows, cols), counts)
