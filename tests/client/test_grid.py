"""Grids: distances on the ground, every position in one cell, and no coordinate in any error."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import Grid
from client_sdk.grid import MAX_LATITUDE, PLANE_FAR, PLANE_LIMIT, TURN, UNIT, metres_per_degree

EXAMPLES = settings(max_examples=150)
BERLIN = Grid.from_center(52.52, 13.405, 20_000, 15)
FIJI = Grid.from_center(-17.8, 179.99, 50_000, 9)  # across the antimeridian


@st.composite
def geographic(draw: st.DrawFn) -> Grid:
    cells = draw(st.integers(1, 4096))
    height = draw(st.integers(2 * cells, 10 * UNIT) | st.integers(2 * cells, 170 * UNIT))
    width = draw(st.integers(2 * cells, 10 * UNIT) | st.integers(2 * cells, 180 * UNIT))
    south = draw(st.integers(-MAX_LATITUDE * UNIT, MAX_LATITUDE * UNIT - height))
    west = draw(st.integers(-180 * UNIT, 180 * UNIT - 1))
    return Grid("geographic", south, west, height, width, cells)


@st.composite
def planes(draw: st.DrawFn) -> Grid:
    cells, limit = draw(st.integers(1, 4096)), PLANE_LIMIT * UNIT
    south, west = draw(st.integers(-limit, limit)), draw(st.integers(-limit, limit))
    side = draw(st.integers(2 * cells, 1000 * UNIT) | st.integers(2 * cells, 2 * limit))
    return Grid("plane", south, west, side, side, cells)


LATITUDES = st.floats(-90, 90)
LONGITUDES = st.floats(-360, 360)


# The ground


@pytest.mark.parametrize(
    ("lat", "per_lat", "per_lon"),
    # Lengths of a degree on WGS 84 in metres, from published tables.
    [(0, 110574.3, 111319.5), (15, 110648.7, 107550.5), (45, 111131.7, 78846.8),
     (60, 111412.3, 55800.0), (75, 111617.9, 28901.6)],
)  # fmt: skip
def test_a_degree_has_its_length_on_wgs84(lat: float, per_lat: float, per_lon: float) -> None:
    assert metres_per_degree(lat) == pytest.approx((per_lat, per_lon), abs=1)
    assert metres_per_degree(-lat) == metres_per_degree(lat)


@pytest.mark.parametrize("lat", [-60.0, -17.8, 0.0, 41.9, 60.0])
def test_square_around_a_center_has_its_size_and_center(lat: float) -> None:
    grid = Grid.from_center(lat, 10.0, 15_000, 15)
    assert grid.cell_size == pytest.approx((1000, 1000), rel=1e-6)
    assert grid.center(7, 7) == pytest.approx((lat, 10.0), abs=1e-7)
    per_lat, per_lon = metres_per_degree(lat)
    assert grid.cell(lat, 10 + 999 / per_lon) == (7, 8)
    assert grid.cell(lat - 1501 / per_lat, 10) == (5, 7)


def test_north_edge_of_a_50_km_square_at_60_degrees_is_off_by_less_than_one_percent() -> None:
    grid = Grid.from_center(60, 20, 50_000, 10)
    _, at_edge = metres_per_degree((grid.south + grid.height) / UNIT)
    assert grid.width / UNIT * at_edge == pytest.approx(50_000, rel=0.01)


def test_bounds_are_kept_to_the_unit() -> None:
    grid = Grid.from_bounds(41.64, -87.90, 0.36, 15)
    edges = (grid.south, grid.west, grid.height, grid.width)
    assert edges == (416_400_000, -879_000_000, 3_600_000, 3_600_000)
    assert grid.cell(41.64, -87.90) == (0, 0)
    assert grid.cell(41.6639999, -87.8760001) == (0, 0)
    assert grid.cell(41.664, -87.876) == (1, 1)
    assert grid.cell(42.0, -87.54) == (14, 14)
    assert grid.contains(42.0, -87.54)
    assert not grid.contains(42.0000001, -87.54)
    assert grid.cell_size == pytest.approx((2665.7, 1994.0), abs=0.1)


# Round trips and edges


@EXAMPLES
@given(geographic() | planes(), st.data())
def test_center_of_a_cell_lies_in_the_cell(grid: Grid, data: st.DataObject) -> None:
    row, col = (data.draw(st.integers(0, grid.cells - 1)) for _ in "rc")
    center = grid.center(row, col)
    assert grid.cell(*center) == (row, col)
    assert grid.contains(*center)


@EXAMPLES
@given(geographic(), LATITUDES, LONGITUDES)
def test_every_position_has_a_cell_and_turns_do_not_matter(
    grid: Grid, lat: float, lon: float
) -> None:
    row, col = grid.cell(lat, lon)
    assert 0 <= row < grid.cells
    assert 0 <= col < grid.cells
    whole = math.floor(lon)  # a whole number of degrees turns without rounding
    turned = whole - 360 if whole > 0 else whole + 360
    assert grid.cell(lat, turned) == grid.cell(lat, whole)


@EXAMPLES
@given(geographic(), LATITUDES, LONGITUDES)
def test_cell_is_the_nearest_one(grid: Grid, lat: float, lon: float) -> None:
    """In whole units: no cell of the square is nearer in latitude, or in longitude on the turn."""
    y = math.floor(lat * UNIT + 0.5) - grid.south
    x = (math.floor(lon * UNIT + 0.5) - grid.west) % TURN

    def row_distance(row: int) -> Fraction:
        low, high = (Fraction(grid.height * k, grid.cells) for k in (row, row + 1))
        return max(low - y, y - high, Fraction(0))

    def col_distance(col: int) -> Fraction:
        low, high = (Fraction(grid.width * k, grid.cells) for k in (col, col + 1))
        return min(max(low - at, at - high, Fraction(0)) for at in (x - TURN, x))

    row, col = grid.cell(lat, lon)
    last = grid.cells - 1
    for other in {0, last, max(row - 1, 0), min(row + 1, last)}:
        assert row_distance(row) <= row_distance(other)
    for other in {0, last, max(col - 1, 0), min(col + 1, last)}:
        assert col_distance(col) <= col_distance(other)
    assert grid.contains(lat, lon) == (row_distance(row) == 0 == col_distance(col))


def test_cells_are_half_open_and_the_outer_edge_belongs_to_the_square() -> None:
    grid = Grid.plane(0, 0, 4, 4)
    below = 1 - 1e-7
    assert grid.cell(below, below) == (0, 0)
    assert grid.cell(1, 1) == (1, 1)
    assert grid.cell(4, 4) == (3, 3)
    assert grid.contains(4, 4)
    assert grid.contains(0, 0)
    assert not grid.contains(4.0000001, 4)
    assert not grid.contains(0, -1e-7)


def test_a_position_is_rounded_half_up_to_the_unit() -> None:
    grid = Grid("plane", 0, 0, 8, 8, 4)  # cells of two units
    assert grid.cell(1.25e-7, 0) == (0, 0)
    assert grid.cell(1.75e-7, 0) == (1, 0)
    half = 1.5 / UNIT
    assert half * UNIT == 1.5
    assert grid.cell(half, 0) == (1, 0)
    assert grid.contains(-0.5 / UNIT, 0)  # -0.5 rounds to 0, not to -1
    assert not grid.contains(-0.51 / UNIT, 0)


def test_square_across_the_antimeridian() -> None:
    assert FIJI.cell(-17.8, 179.99) == FIJI.cell(-17.8, -180.01) == (4, 4)
    assert FIJI.cell(-17.8, -179.9) == FIJI.cell(-17.8, 180.1)
    assert FIJI.cell(-17.8, -179.9)[1] > FIJI.cell(-17.8, 179.9)[1]
    assert FIJI.contains(-17.8, 180)
    assert FIJI.contains(-17.8, -180)
    assert FIJI.center(4, 8)[1] < -179
    assert FIJI.center(4, 0)[1] > 179
    assert Grid.from_bounds(0, 180, 1, 4) == Grid.from_bounds(0, -180, 1, 4)
    assert Grid.from_bounds(0, 359, 1, 4) == Grid.from_bounds(0, -1, 1, 4)


def test_people_outside_count_at_the_nearest_edge() -> None:
    last = BERLIN.cells - 1
    assert BERLIN.cell(48.1, 13.405)[0] == 0  # south
    assert BERLIN.cell(59.3, 13.405)[0] == last  # north
    assert BERLIN.cell(52.52, 2.35)[1] == 0  # west
    assert BERLIN.cell(52.52, 116.4)[1] == last  # east
    # Half a turn away from its middle the near edge changes.
    assert BERLIN.cell(52.52, 13.405 + 179.9)[1] == last
    assert BERLIN.cell(52.52, 13.405 - 179.9)[1] == 0
    assert BERLIN.cell(90, 0) == (last, 0)
    assert BERLIN.cell(-90, 100) == (0, last)


@EXAMPLES
@given(planes(), st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_of_a_plane_has_its_nearest_cell(grid: Grid, far: float) -> None:
    """In exact arithmetic, whatever the size of the number."""
    units = math.floor(Fraction(far * UNIT if abs(far) <= PLANE_FAR else far) + Fraction(1, 2))
    y, x = units - grid.south, units - grid.west
    last = grid.cells - 1
    nearest = [min(max(at * grid.cells // grid.height, 0), last) for at in (y, x)]
    if abs(far) > PLANE_FAR:
        nearest = [last if far > 0 else 0] * 2
    assert list(grid.cell(far, far)) == nearest
    inside = all(0 <= at <= grid.height for at in (y, x)) and abs(far) <= PLANE_FAR
    assert grid.contains(far, far) == inside


@pytest.mark.parametrize("far", [1.0000001e8, 3.1e8, 4e8, 4.1e8, 1e20, 1e300, 10**300])
def test_nobody_on_a_plane_is_too_far_away_to_report(far: float) -> None:
    for grid in (Grid.plane(0, 0, 1, 5), Grid.plane(-1e8, -1e8, 2e8, 4096)):
        last = grid.cells - 1
        assert grid.cell(far, -far) == (last, 0)
        assert grid.cell(-far, 0.5)[0] == 0
        assert not grid.contains(far, 0.5)
        assert not grid.contains(0.5, -far)


def test_a_plane_square_may_reach_beyond_the_limit_of_its_corner() -> None:
    grid = Grid.plane(1e8, 1e8, 2e8, 4)
    assert grid.cell(1.6e8, 2.9e8) == (1, 3)
    assert grid.contains(3e8, 3e8)
    assert not grid.contains(3.0000001e8, 3e8)


def test_poles_and_the_date_line_are_positions() -> None:
    for lat in (-90, 90, -90.0, 90.0):
        for lon in (-360, -180, 0, 180, 360):
            BERLIN.cell(lat, lon)


def test_center_reaches_into_the_margin() -> None:
    grid = Grid.plane(10, 20, 5, 5)
    assert grid.center(0, 0) == (10.5, 20.5)
    assert grid.center(-3, 7) == (7.5, 27.5)
    assert grid.cell_size == (1, 1)
    assert grid.cell(7.5, 27.5) == (0, 4)


# Number types


@pytest.mark.parametrize(
    "number", [52, np.float64(52), np.float32(52), np.int16(52), Decimal(52), Fraction(52)]
)
def test_every_number_type_is_a_coordinate(number: Any) -> None:
    cell = BERLIN.cell(number, number)
    assert cell == BERLIN.cell(52.0, 52.0)
    assert [type(n) for n in cell] == [int, int]


def test_numpy_integers_become_ints() -> None:
    grid = Grid.from_bounds(0, 0, 1, np.int32(5))
    assert type(grid.cells) is int
    assert grid == Grid.from_bounds(0, 0, 1, 5)
