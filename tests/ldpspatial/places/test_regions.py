"""Weights of regions: closed forms, a slow twin, conventions, and geometries that are none."""

import builtins
import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.places.regions import (
    Region,
    cells,
    clipped,
    cut_cells,
    holds,
    polygon,
    polygon_window,
    rectangle,
    united,
)
from tests.support import naive_regions

Array = NDArray[np.float64]
PLANE = Grid.plane(0, 0, 8, 8)  # cells are unit squares
CITY = Grid.from_center(48.0, 11.0, 12_000.0, 8)
ACROSS = Grid.from_bounds(-18.0, 179.0, 2.0, 4)  # cells of half a degree, from 179 to -179
SQUARE = [(1, 1), (1, 3), (3, 3), (3, 1)]


def turned(corners: list[tuple[float, float]]) -> list[list[float]]:
    """Corners as GeoJSON has them: the other coordinate first, closed."""
    return [[x, y] for y, x in [*corners, corners[0]]]


def bounds(grid: Grid) -> tuple[float, float, float, float]:
    """South, west, north, east in degrees."""
    south, west, height, width = (v / 1e7 for v in (grid.south, grid.west, grid.height, grid.width))
    return south, west, south + height, west + width


def test_rectangles_cover_parts_of_cells_exactly() -> None:
    weights = rectangle(PLANE, south=0.5, west=1.25, north=2.75, east=3)
    expected = np.zeros((8, 8))
    expected[0:3, 1:3] = np.outer([0.5, 1, 0.75], [0.75, 1])
    np.testing.assert_array_equal(weights, expected)
    inner = rectangle(PLANE, 4.25, 5.5, 4.5, 5.75)
    assert (inner[4, 5], inner.sum()) == (0.0625, 0.0625)


@given(st.lists(st.floats(-2, 10), min_size=4, max_size=4, unique=True))
@settings(max_examples=60)
def test_a_rectangle_and_the_polygon_of_its_corners_are_one(sides: list[float]) -> None:
    south, north = sorted(sides[:2])
    west, east = sorted(sides[2:])
    grid = PLANE
    overlap = [max(min(high, 8) - max(low, 0), 0) for low, high in ((south, north), (west, east))]
    if min(overlap) < 1e-6 or min(north - south, east - west) < 1e-6:
        return
    weights = rectangle(grid, south, west, north, east)
    assert weights.sum() == pytest.approx(math.prod(overlap), rel=1e-12, abs=1e-12)
    corners = [(south, west), (south, east), (north, east), (north, west)]
    np.testing.assert_allclose(polygon(grid, corners), weights, atol=1e-12)


@pytest.mark.parametrize("grid", [PLANE, CITY, ACROSS], ids=["plane", "city", "across"])
def test_the_whole_square_is_every_cell_and_rows_run_north(grid: Grid) -> None:
    south, west, north, east = bounds(grid)
    size = (grid.cells, grid.cells)
    whole = rectangle(grid, south, west, north, east)
    np.testing.assert_allclose(whole, np.ones(size), atol=1e-9)
    lower = rectangle(grid, south, west, (south + north) / 2, east)
    half = cells(grid, range(grid.cells // 2), range(grid.cells))
    np.testing.assert_allclose(lower, half, atol=1e-9)
    left = polygon(grid, [(south, west), (north, west), (north, (west + east) / 2),
                          (south, (west + east) / 2)])  # fmt: skip
    np.testing.assert_allclose(left, half.T, atol=1e-9)


def test_weights_are_chances_of_points_spread_evenly_in_cells() -> None:
    # What a weight means, on degrees: the share of a cell's points that lie in the region.
    rng = np.random.default_rng(1)
    south, west, north, east = bounds(CITY)
    points = rng.uniform((south, west), (north, east), (400_000, 2))
    corners = [(47.96, 10.95), (47.97, 11.05), (48.03, 11.06), (48.0, 10.93)]
    inside = shapely.contains_xy(shapely.Polygon([(x, y) for y, x in corners]), points[:, ::-1])
    index = [CITY.cell(*point) for point in points[:20_000]]
    rows, cols = np.array(index).T
    counted, hits = np.zeros((8, 8)), np.zeros((8, 8))
    np.add.at(counted, (rows, cols), 1)
    np.add.at(hits, (rows, cols), inside[:20_000])
    weights = polygon(CITY, corners)
    error = np.sqrt(np.maximum(weights * (1 - weights), 1e-4) / counted)
    assert (abs(hits / counted - weights) < 5.5 * error + 1e-9).all()  # 2 in 10^6 for 64 cells
    assert inside.mean() == pytest.approx(weights.sum() / 64, abs=0.004)
    assert (abs(hits / counted - weights.T) > 5.5 * error).any()  # swapped axes are noticed


@pytest.mark.parametrize("seed", range(6))
def test_polygons_are_those_of_the_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0, 2 * np.pi, 12))
    radii = rng.uniform(1.5, 4.8, 12)  # a star shape, in part outside of the map
    ring = [(4 + r * math.sin(a), 4 + r * math.cos(a)) for a, r in zip(angles, radii, strict=True)]
    hole = [(4 + 0.9 * math.sin(a), 4 + 0.9 * math.cos(a)) for a in (0.3, 1.9, 4.4)]
    if not shapely.Polygon(ring, [hole]).is_valid:
        hole = []
    rings = [ring, hole] if hole else [ring]
    expected = naive_regions.cell_shares(rings, 8)
    document = {"type": "Polygon", "coordinates": [turned(each) for each in rings]}
    np.testing.assert_allclose(polygon(PLANE, document), expected, atol=1e-12)


def test_geojson_is_longitude_first_and_holes_and_parts_count() -> None:
    hole = [(1.5, 1.5), (2.5, 1.5), (2.5, 2)]
    parts = {
        "type": "MultiPolygon",
        "coordinates": [[turned(SQUARE), turned(hole)], [[[5, 7], [6, 7], [6, 8], [5, 7]]]],
    }
    weights = polygon(PLANE, parts)
    assert weights[1:3, 1:3].sum() == pytest.approx(4 - 0.25)
    assert weights[7, 5] == pytest.approx(0.5)
    assert weights.sum() == pytest.approx(4.25)


def test_every_way_to_give_a_polygon_gives_the_same_weights() -> None:
    corners = [(0.5, 1.0), (0.5, 6.5), (5.0, 3.0)]
    expected = polygon(PLANE, corners)
    assert expected.sum() == pytest.approx(5.5 * 4.5 / 2)
    ways: list[Any] = [
        np.array(corners),
        (*corners, corners[0]),
        corners[::-1],
        {"type": "Polygon", "coordinates": [turned(corners)]},
        {"type": "Polygon", "coordinates": [[[x, y, 100.0] for x, y in turned(corners)]]},
        shapely.Polygon([(x, y) for y, x in corners]),
        shapely.MultiPolygon([shapely.Polygon([(x, y) for y, x in corners])]),
    ]
    for way in ways:
        np.testing.assert_allclose(polygon(PLANE, way), expected, atol=1e-14)


def test_regions_across_the_antimeridian() -> None:
    expected = np.zeros((4, 4))
    expected[:2, 1:3] = 1
    np.testing.assert_allclose(rectangle(ACROSS, -18, 179.5, -17, -179.5), expected, atol=1e-9)
    np.testing.assert_allclose(
        rectangle(ACROSS, -18, -180.5, -17, 180.5 - 360), expected, atol=1e-9
    )
    for west in (179.5, -180.5):
        corners = [(-18, west), (-18, west + 1), (-17, west + 1), (-17, west)]
        np.testing.assert_allclose(polygon(ACROSS, corners), expected, atol=1e-9)
    east, west = (
        [turned([(-18, a), (-18, b), (-17, b), (-17, a)])]
        for a, b in ((179.5, 180), (-180, -179.5))
    )
    parts = {"type": "MultiPolygon", "coordinates": [east, west]}
    np.testing.assert_allclose(polygon(ACROSS, parts), expected, atol=1e-9)
    world = rectangle(ACROSS, -90, -180, 90, 180)
    np.testing.assert_allclose(world, np.ones((4, 4)), atol=1e-9)


def test_cells_are_ranges_of_rows_and_columns() -> None:
    weights = cells(PLANE, range(2, 4), range(0, 8, 3))
    assert weights.sum() == 6
    assert (weights[2:4, [0, 3, 6]] == 1).all()


def test_cut_cells_are_neither_in_nor_out() -> None:
    weights = np.array([[1.0, 0.5], [0.0, 0.9995]])
    assert cut_cells(weights).tolist() == [[False, True], [False, False]]  # files round edges
    assert not cut_cells([[0.0005, 1.0]] * 2).any()
    assert cut_cells([[1e-6, 0.0]] * 2).tolist() == [[True, False]] * 2  # a speck of a cell
    assert not cut_cells(np.zeros((2, 2), bool)).any()


@pytest.mark.parametrize("side", [1, 2, 3])
def test_small_maps(side: int) -> None:
    grid = Grid.plane(-1, -1, 2, side)
    triangle = polygon(grid, [(-1, -1), (-1, 1), (1, -1)])
    assert triangle.sum() / side**2 == pytest.approx(0.5)
    assert rectangle(grid, -1, -1, 0, 1).sum() / side**2 == pytest.approx(0.5)
    assert cells(grid, range(side), range(side)).all()


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ((3, 1, 2, 4), "south must lie below north"),
        ((1, 1, 1, 4), "south must lie below north"),
        ((1, 4, 2, 4), "west must lie before east"),
        ((1, 4, 2, 3), "west must lie before east"),
        ((9, 9, 10, 10), "overlap the map"),
        ((8, 0, 9, 1), "overlap the map"),
    ],
)
def test_rectangles_that_are_none_are_refused(sides: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        rectangle(PLANE, *sides)


def test_degrees_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match=r"north must be a number in \[-90, 90\], got 91"):
        rectangle(CITY, 47, 10, 91, 12)
    with pytest.raises(InputError, match=r"west must be a number in \[-360, 360\]"):
        rectangle(CITY, 47, -361, 48, 12)
    with pytest.raises(InputError, match=r"every latitude \(y\) must be a number in \[-90"):
        polygon(CITY, [(11, 48), (11, 48.1), (110, 48)])


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        ([(1, 1), (3, 3), (1, 3), (3, 1)], "cross or touch itself, got one with: self-inter"),
        ([(1, 1), (2, 2), (3, 3)], "cross or touch itself"),
        ([(35.69, 9.7), (35.7, 9.71), (35.71, 9.72)], "must have an area"),
        ([(1, 1), (2, 2)], "at least 3 corners"),
        ([(1, 1, 1), (2, 2, 2), (1, 2, 3)], r"shape \(corners, 2\), got int64 of shape \(3, 3\)"),
        ([(1, 1), (2, float("nan")), (3, 1)], r"finite numbers, got nan at \[1, 1\]"),
        ([(1, 1), (1e300, 2), (3, 1)], r"every latitude \(y\) must be a number"),
        ([(9, 9), (9, 10), (10, 9)], "overlap the map"),
        ([(8, 0), (9, 0), (9, 1)], "overlap the map"),
        ("POLYGON ((0 0, 1 1, 1 0, 0 0))", "got str"),
        (None, "got NoneType"),
        ({"type": "Point", "coordinates": [1, 1]}, "got the type 'Point'"),
        ({}, "got the type 'None'"),
        ({"type": "Polygon"}, "cannot be read"),
        ({"type": "Polygon", "coordinates": 3}, "cannot be read"),
        ({"type": "Polygon", "coordinates": [[[0, 0]]]}, "cannot be read"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1], [1, 0], [0, 0]]]}, "cannot be read"),
        ({"type": "Polygon", "coordinates": []}, "empty Polygon"),
        ({"type": "MultiPolygon", "coordinates": []}, "empty MultiPolygon"),
        (shapely.Polygon(), "empty Polygon"),
        (shapely.LineString([(0, 0), (1, 1)]), "got a LineString"),
    ],
)
def test_geometries_that_are_none_are_refused(geometry: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        polygon(PLANE, geometry)


@pytest.mark.parametrize("rows", [range(0), range(3, 9), range(-1, 2), (0, 1), 3, slice(0, 2)])
def test_ranges_that_are_none_are_refused(rows: Any) -> None:
    with pytest.raises(InputError, match="rows must be a range within 0 to 7"):
        cells(PLANE, rows, range(2))


def test_without_shapely_polygons_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("shapely"):
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InputError, match=r"install ldpspatial\[regions\]"):
        polygon(PLANE, SQUARE)
    assert rectangle(PLANE, 1, 1, 3, 3).sum() == 4
    box = Region.rectangle("box", PLANE, 1, 1, 3, 3)
    assert united(PLANE, [box]) is box
    with pytest.raises(InputError, match="areas of several regions need shapely: install"):
        united(PLANE, [box, box])
    half = Region.rectangle("half", PLANE, 1, 1, 3, 2.5)
    assert clipped(PLANE, half, box).weights.sum() == 3
    with pytest.raises(
        InputError, match="regions and an area that cut the same cells need shapely"
    ):
        clipped(PLANE, half, half)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_a_part_in_an_area_is_what_both_cover(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = [shapely.Polygon(rng.uniform(-1, 9, (3, 2))) for _ in range(2)]
    region, area = (Region.polygon("part", PLANE, each) for each in shapes)
    part = clipped(PLANE, region, area)
    common = shapely.intersection(*shapes)
    twin = [
        [shapely.intersection(common, shapely.box(x, y, x + 1, y + 1)).area for x in range(8)]
        for y in range(8)
    ]
    np.testing.assert_allclose(part.weights, twin, atol=2e-3)  # less than a thousandth is none
    assert (part.weights <= np.minimum(region.weights, area.weights)).all()
    if (cut_cells(region.weights) & cut_cells(area.weights)).any() and part.geometry:
        assert shapely.geometry.shape(part.geometry).area == pytest.approx(common.area)
    assert (part.name, part.on_map) == ("part", region.on_map)


def test_an_area_is_wholly_in_itself() -> None:
    rng = np.random.default_rng(8)
    for corners in rng.uniform(-1, 9, (20, 3, 2)):
        area = Region.polygon("area", PLANE, corners)
        assert (clipped(PLANE, area, area).weights == area.weights).all()


def test_what_only_touches_an_area_has_no_part_in_it() -> None:
    west = Region.rectangle("west", PLANE, 0, 0, 8, 3.5)
    for east, part in ((3.5, 0.0), (3.5 - 1e-9, 0.0), (3.25, 2.0), (2, 12.0)):
        beside = Region.rectangle("beside", PLANE, 0, east, 8, 8)
        assert clipped(PLANE, beside, west).weights.sum() == part
    speck = Region.rectangle("speck", PLANE, 1, 3.4, 1.001, 3.6)
    assert clipped(PLANE, speck, west).weights.sum() == pytest.approx(1e-4)


def test_a_part_with_an_edge_along_that_of_the_area() -> None:
    west = Region.rectangle("west", PLANE, 0, 0, 4, 2.5)
    corners = [(0, 2.5), (0, 4), (4, 4), (4, 1.5), (3, 1.5), (3, 2.5)]  # (y, x)
    part = clipped(PLANE, Region.polygon("hook", PLANE, corners), west)
    expected = np.zeros((8, 8))
    expected[3, 1:3] = 0.5
    np.testing.assert_allclose(part.weights, expected)
    assert part.geometry is not None
    assert part.geometry["type"] == "Polygon"


def test_a_part_across_the_antimeridian() -> None:
    beyond = Region.rectangle("beyond", ACROSS, -17.6, 179.6, -16.4, -179.6)
    area = Region.polygon("area", ACROSS, [(-18, -180.2), (-18, -179.8), (-16, -179.8)])
    part = clipped(ACROSS, beyond, area)
    alone = united(ACROSS, [area, area]).weights
    assert 0 < part.weights.sum() < alone.sum()
    assert (part.weights <= alone + 1e-12).all()


def test_parts_of_cells_that_both_cut_need_geometries() -> None:
    weights = np.full((8, 8), 0.5)
    whole = Region("whole", np.ones((8, 8)))
    box = Region.rectangle("box", PLANE, 1, 1, 3.5, 3)
    assert (clipped(PLANE, Region("half", weights), whole).weights == weights).all()
    assert (clipped(PLANE, box, whole).weights == box.weights).all()
    assert clipped(PLANE, box, whole).geometry == box.geometry
    for pair in ((box, Region("half", weights)), (Region("half", weights), box)):
        with pytest.raises(InputError, match="region and area must have geometries where both"):
            clipped(PLANE, *pair)
    with pytest.raises(InputError, match="area: weights must be an array"):
        clipped(PLANE, box, Region("small", np.ones((2, 2))))
    with pytest.raises(InputError, match="region must be a Region"):
        clipped(PLANE, weights, box)  # type: ignore[arg-type]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_a_window_holds_the_same_weights_and_points_have_their_share(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-3, 11, (3, 2))
    shape = shapely.Polygon(corners[:, ::-1])
    rows, columns, weights, area = polygon_window(PLANE, corners)
    assert area == pytest.approx(shape.area)
    full = np.zeros((8, 8))
    full[rows, columns] = weights
    twin = [
        [shapely.intersection(shape, shapely.box(x, y, x + 1, y + 1)).area for x in range(8)]
        for y in range(8)
    ]
    np.testing.assert_allclose(full, twin, atol=1e-12)
    assert weights.shape == (rows.stop - rows.start, columns.stop - columns.start)
    points = rng.uniform(0, 8, (50, 2))
    inside = [shape.contains(shapely.Point(x, y)) for y, x in points]
    assert holds(PLANE, corners, *points.T).tolist() == inside


def test_points_and_windows_across_the_antimeridian() -> None:
    beyond = [(-17.6, 179.6), (-17.6, 180.4), (-16.4, 180.4), (-16.4, 179.6)]
    rows, columns, weights, area = polygon_window(ACROSS, beyond)
    assert (rows, columns) == (slice(0, 4), slice(1, 3))
    assert weights.sum() == pytest.approx(area) == pytest.approx(2.4 * 1.6)
    turned_back = [(y, x - 360) for y, x in beyond]
    for corners in (beyond, turned_back):
        assert holds(ACROSS, corners, [1, 1, 1], [1.3, 2.7, 0.7]).tolist() == [True, True, False]
    missed = polygon_window(ACROSS, [(0, 0), (0, 1), (1, 1)])
    assert missed[2].size == 0
    assert missed[3] == pytest.approx(0.5 * 2 * 2)


@pytest.mark.parametrize("grid", [PLANE, CITY, ACROSS], ids=["plane", "city", "across"])
def test_a_union_counts_once_what_several_regions_cover(grid: Grid) -> None:
    south, west, north, east = bounds(grid)
    height, width = north - south, east - west

    def box(name: str, *parts: float) -> Region:
        low, left, high, right = parts
        return Region.rectangle(
            name, grid, south + low * height, west + left * width,
            south + high * height, west + right * width,
        )  # fmt: skip

    whole = box("whole", 0.1, 0.1, 0.6, 0.7)
    parts = [
        box("a", 0.1, 0.1, 0.6, 0.45),
        box("b", 0.1, 0.3, 0.6, 0.7),
        box("c", 0.2, 0.2, 0.3, 0.3),
    ]
    found = united(grid, parts)
    np.testing.assert_allclose(found.weights, whole.weights, atol=1e-9)
    assert (found.name, found.on_map) == ("a", pytest.approx(1))
    again = Region.polygon("again", grid, found.geometry)
    np.testing.assert_allclose(again.weights, whole.weights, atol=1e-6)
    assert united(grid, parts[:1]) is parts[0]
    apart = [box("a", 0.1, 0.1, 0.2, 0.2), box("b", 0.5, 0.5, 0.9, 0.9)]
    np.testing.assert_allclose(
        united(grid, apart).weights, apart[0].weights + apart[1].weights, atol=1e-9
    )
    half = united(grid, [whole, box("out", 0.1, 0.5, 0.6, 1.1)])
    assert half.on_map == pytest.approx(0.9, abs=1e-6)


def test_a_union_of_both_sides_of_the_antimeridian_is_one() -> None:
    """The same place in two turns: 179.5 to 180.2 and -180.5 to -179.8."""
    one = Region.rectangle("one", ACROSS, -17.5, 179.5, -16.5, -179.8)
    other = Region.polygon(
        "other", ACROSS, [(-17.5, -180.5), (-17.5, -179.8), (-16.5, -179.8), (-16.5, -180.5)]
    )
    np.testing.assert_allclose(united(ACROSS, [one, other]).weights, one.weights, atol=1e-9)


def test_regions_without_a_shape_have_no_union() -> None:
    shapeless = Region("shapeless", np.ones((8, 8)))
    with pytest.raises(InputError, match="regions must have geometries, got one without"):
        united(PLANE, [shapeless, Region.rectangle("box", PLANE, 0, 0, 1, 1)])
    with pytest.raises(InputError, match="regions must be a sequence"):
        united(PLANE, [])
    for share in (-0.1, 1.1, float("nan"), "x"):
        with pytest.raises(InputError, match="regions: on_map must be a number in"):
            united(PLANE, [Region("a", np.ones((8, 8)), None, share)])  # type: ignore[arg-type]


def test_more_than_a_turn_is_every_cell_once() -> None:
    corners = [(-60, -200), (-60, 200), (60, 200), (60, -200)]
    for weights in (rectangle(ACROSS, -60, -200, 60, 200), polygon(ACROSS, corners)):
        np.testing.assert_allclose(weights, np.ones((4, 4)), atol=1e-9)


def test_nearly_a_turn_that_begins_late_covers_what_it_should() -> None:
    """From 200 on to 190 degrees, 550 that is: all but 190 to 200, which are -170 to -160."""
    grid = Grid.from_bounds(-10.0, -180.0, 20.0, 4)
    weights = rectangle(grid, -10, 200, 10, 190)
    np.testing.assert_allclose(weights, np.tile([1.0, 1.0, 0.0, 0.0], (4, 1)), atol=1e-9)


def test_parts_on_both_sides_of_the_antimeridian_hold_their_points() -> None:
    parts = shapely.MultiPolygon(
        [shapely.box(179.25, -17.5, 180, -16.5), shapely.box(-180, -17.5, -179.25, -16.5)]
    )
    held = holds(ACROSS, parts, [2, 2, 2, 2], [0.4, 1.0, 3.0, 3.6])
    assert held.tolist() == [False, True, True, False]


def test_points_lie_in_rectangles_that_run_on_past_a_turn() -> None:
    zero = Grid.from_bounds(-1.0, -10.0, 20.0, 4)  # from -10 to 10 degrees
    region = Region.rectangle("zero", zero, -1, 355, 19, 5)
    assert holds(zero, region.geometry, [1, 1, 1], [0.5, 2.0, 3.5]).tolist() == [False, True, False]


def test_a_union_has_what_lies_in_another_turn() -> None:
    boxes = [(179.25, 179.5), (-180.5, -180.25)]
    regions = [
        Region.polygon("box", ACROSS, [(-18, west), (-18, east), (-16, east), (-16, west)])
        for west, east in boxes
    ]
    found = united(ACROSS, regions).weights
    np.testing.assert_allclose(found, sum(each.weights for each in regions), atol=1e-9)
    np.testing.assert_allclose(found[0], [0.5, 0.5, 0, 0], atol=1e-9)


def test_a_rectangle_of_no_width_is_not_all_of_a_parallel() -> None:
    with pytest.raises(InputError, match=r"west must lie before east, got 11\.0 and 11\.0"):
        rectangle(CITY, 47, 11, 48.5, 11)


def test_a_path_across_the_map_has_an_area() -> None:
    """One of a ten-thousandth of the rectangle around it."""
    path = [(0, 0), (0, 5e-4), (8, 8), (8, 8 - 5e-4)]
    assert polygon(PLANE, path).sum() == pytest.approx(shapely.Polygon(path).area, rel=1e-6)
