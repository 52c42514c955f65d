"""Public weights inside cells: known answers, a slow twin, and what falls back on area."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.places.regions import Region, cut_cells
from ldpspatial.places.within import Within, finer_grid
from tests.support.naive_regions import parts_within

Array = NDArray[np.float64]

pytest.importorskip("shapely")
PLANE = Grid.plane(0, 0, 4, 4)  # cells are unit squares
ACROSS = Grid.from_bounds(-18.0, 179.0, 2.0, 4)  # from 179 to -179 degrees


def venues(*places: tuple[float, float, float], finer: int = 10, cells: int = 4) -> Array:
    """Weights at places y, x on a plane whose cells are unit squares."""
    people = np.zeros((cells * finer, cells * finer))
    for y, x, weight in places:
        people[int(y * finer), int(x * finer)] += weight
    return people


def box(grid: Grid, south: float, west: float, north: float, east: float) -> Region:
    return Region.rectangle("box", grid, south, west, north, east)


def test_a_lone_venue_counts_as_much_as_the_area_and_many_count_for_nearly_all() -> None:
    west = box(PLANE, 0, 0, 4, 0.25)  # a quarter of the cells of the first column
    one = Within(PLANE, venues((0.5, 0.1, 7.0), (1.5, 0.9, 7.0)))
    parts = one.parts(west)
    assert parts[:, 0] == pytest.approx([(1 + 0.25) / 2, (0 + 0.25) / 2, 0.25, 0.25])
    assert parts[:, 1:].max() == 0
    crowd = [(0.05 + k / 10, 0.05 + j / 10, 1.0) for k in range(10) for j in range(2)]
    twenty = Within(PLANE, venues(*crowd)).parts(west)
    assert twenty[0, 0] == pytest.approx((20 + 0.25) / 21)
    unequal = Within(PLANE, venues((0.5, 0.1, 3.0), (0.5, 0.9, 1.0))).parts(west)
    places = (3 + 1) ** 2 / (3**2 + 1)
    assert unequal[0, 0] == pytest.approx((places * 0.75 + 0.25) / (places + 1))


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_weights_that_are_even_in_a_cell_give_its_covered_area_to_the_last_digit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    region = Region.polygon("triangle", PLANE, rng.uniform(-1, 5, (3, 2)) + np.eye(3, 2))
    even = rng.uniform(0.1, 9, (4, 4)).repeat(10, 0).repeat(10, 1)
    even[:10, :10] = rng.random((10, 10))  # one cell says more
    parts = Within(PLANE, even).parts(region)
    known = np.ones((4, 4), bool)
    known[0, 0] = False
    np.testing.assert_allclose(parts[known], region.weights[known], atol=1e-12)
    assert 0 <= parts.min() <= parts.max() <= 1


@pytest.mark.parametrize("seed", range(5))
def test_parts_are_those_of_the_slow_twin(seed: int) -> None:
    """Rectangles along finer cells: each of these is wholly in or out."""
    rng = np.random.default_rng(seed)
    south, north = np.sort(rng.choice(41, 2, replace=False)) / 10
    west, east = np.sort(rng.choice(41, 2, replace=False)) / 10
    people = rng.random((40, 40)) * (rng.random((40, 40)) < 0.05)
    region = box(PLANE, south, west, north, east)
    expected = parts_within(people, region.weights, (south, west, north, east), 4)
    np.testing.assert_allclose(Within(PLANE, people).parts(region), expected, atol=1e-9)


def test_cells_that_are_not_cut_or_have_no_weights_keep_their_area() -> None:
    people = np.random.default_rng(3).random((40, 40))
    people[:10] = 0
    region = box(PLANE, 0.5, 0.3, 3.2, 3.7)
    within = Within(PLANE, people)
    parts = within.parts(region)
    same = ~cut_cells(region.weights)
    assert same.sum() == 4
    same[0] = True
    np.testing.assert_array_equal(parts[same], region.weights[same])
    assert (parts != region.weights).sum() == (~same).sum() == 8
    assert not within.known[0].any()
    assert within.known[1:].all()
    drawn_elsewhere = Region("no geometry", region.weights)
    np.testing.assert_array_equal(within.parts(drawn_elsewhere), region.weights)


def test_regions_across_the_antimeridian_have_their_parts_on_either_side() -> None:
    region = box(ACROSS, -17.75, 179.75, -16.25, -179.75)
    people = np.zeros((40, 40))
    people[20, 17] = people[20, 22] = people[20, 12] = 1  # 179.875, -179.875 and 179.625 degrees
    parts = Within(ACROSS, people).parts(region)
    assert region.weights[2] == pytest.approx([0, 0.5, 0.5, 0])
    assert parts[2] == pytest.approx([0, (2 * 0.5 + 0.5) / 3, (1 + 0.5) / 2, 0])


def test_blocks_are_divided_as_their_people_and_evenly_without() -> None:
    people = venues((0.5, 0.5, 2.0), (0.5, 1.5, 1.0), (1.5, 1.6, 1.0), (4.5, 4.5, 9.0), cells=5)
    parts = Within(Grid.plane(0, 0, 5, 5), people).block_parts()
    places = 16 / 6
    expected = (places * np.array([[0.5, 0.25], [0, 0.25]]) + 0.25) / (places + 1)
    assert parts.shape == (4, 4)
    np.testing.assert_allclose(parts[:2, :2], expected)
    np.testing.assert_allclose(parts[2:], 0.25)
    assert Within(Grid.plane(0, 0, 5, 1), people).block_parts().shape == (0, 0)


def test_only_ratios_of_weights_count_however_large() -> None:
    people = np.random.default_rng(4).random((40, 40))
    region = box(PLANE, 0.5, 0.3, 3.2, 3.7)
    first, second = (Within(PLANE, scale * people).parts(region) for scale in (1.0, 1e300))
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.parametrize(
    ("cells", "finer"), [(1, 1024), (15, 1020), (64, 1024), (400, 800), (600, 1200), (2048, 4096)]
)
def test_finer_grids_have_some_thousand_cells_and_divide_each_cell(cells: int, finer: int) -> None:
    grid = Grid.from_bounds(48.0, 11.0, 0.4, cells)
    found = finer_grid(grid)
    assert (found.cells, found.cells % cells) == (finer, 0)
    assert (found.south, found.west, found.width) == (grid.south, grid.west, grid.width)


def test_grids_that_cannot_be_divided_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"grid must have cells that can be divided .* 2049 a side"
    ):
        finer_grid(Grid.from_bounds(48.0, 11.0, 0.4, 2049))
    tiny = Grid("plane", 0, 0, 30, 30, 10)
    with pytest.raises(InputError, match="grid must have cells that can be divided"):
        finer_grid(tiny)


@pytest.mark.parametrize(
    ("people", "rule"),
    [
        (np.ones((40, 40)), "people must tell where in a cell people are"),
        (np.zeros((40, 40)), "people must tell where in a cell people are"),
        (np.arange(16.0).reshape(4, 4).repeat(3, 0).repeat(3, 1), "all cells are even inside"),
        (np.ones((4, 4)), "people must have a multiple of 4 finer cells a side, got 4"),
        (np.ones((6, 6)), "people must have a multiple of 4 finer cells a side, got 6"),
        (np.ones((8, 12)), "people must be an array of numbers of shape"),
        (-np.eye(8), "people must hold numbers in"),
    ],
)
def test_weights_that_say_nothing_are_refused(people: Array, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        Within(PLANE, people)


def test_what_is_no_region_of_the_grid_is_refused() -> None:
    within = Within(PLANE, np.eye(40))
    with pytest.raises(InputError, match="region must be a Region"):
        within.parts("box")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="region must be an array of numbers of shape"):
        within.parts(Region("small", np.ones((3, 3))))
    crossing = {"type": "Polygon", "coordinates": [[[0, 0], [3, 3], [3, 0], [0, 3], [0, 0]]]}
    with pytest.raises(InputError, match="geometry must not cross or touch itself"):
        within.parts(Region("bow", np.full((4, 4), 0.5), crossing))


@pytest.mark.parametrize("cells", [4, 5])
def test_every_whole_block_has_parts(cells: int) -> None:
    people = np.random.default_rng(1).random((2 * cells, 2 * cells))
    parts = Within(Grid.plane(0, 0, 8, cells), people).block_parts()
    assert parts.reshape(2, 2, 2, 2).sum(axis=(1, 3)) == pytest.approx(np.ones((2, 2)))


def test_cells_are_divided_no_finer_than_their_shorter_sides_can_be() -> None:
    narrow = Grid("geographic", 0, 0, 60, 120, 10)  # units; a cell needs 2
    assert finer_grid(narrow).cells == 30
