"""Where people can be, and public maps, from files."""

import json
from pathlib import Path

import numpy as np
import pytest

from client_sdk import Collection, Grid
from ldpspatial import EM, InputError, StampChannel
from ldpspatial.collecting.results import write_csv, write_geojson, write_npz
from ldpspatial.files.side_information import read_prior, read_support, read_within
from ldpspatial.places.regions import Region

GRID = Grid.from_bounds(52.0, 13.0, 0.4, 4)
PLANE = Grid.plane(0, 0, 4, 4)


def rectangles(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["name,south,west,north,east", *rows]) + "\n")
    return path


def test_regions_that_overlap_hold_no_cell_more_than_once(tmp_path: Path) -> None:
    file = rectangles(tmp_path / "land.csv", "a,0,0,2,4", "b,0,0,1.5,2")
    found = read_support(file, PLANE)
    np.testing.assert_array_equal(found, np.array([[1] * 4] * 2 + [[0] * 4] * 2))


def test_what_overlapping_regions_cut_counts_once(tmp_path: Path) -> None:
    """A city and its districts: before, each cut cell had the sum of its parts."""
    pytest.importorskip("shapely")
    twice = rectangles(tmp_path / "land.csv", "a,0,0,1.5,4", "b,0,0,1.5,2", "c,1,1,1.5,2.5")
    once = rectangles(tmp_path / "once.csv", "a,0,0,1.5,4")
    np.testing.assert_allclose(read_support(twice, PLANE), read_support(once, PLANE))


def feature_file(path: Path, *features: object, start: str = "") -> Path:
    document = json.dumps({"type": "FeatureCollection", "features": features})
    path.write_text(start + document, encoding="utf-8")
    return path


def feature(kind: str, coordinates: object, **properties: object) -> dict[str, object]:
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def test_points_of_geojson_are_places(tmp_path: Path) -> None:
    pytest.importorskip("shapely")
    places = [
        feature("Point", [0.5, 3.5], pop=5),
        feature("Point", [2.5, 0.5, 90.0], pop=2),  # with a height
        feature("Point", [9.0, 9.0], pop=7),
    ]
    found = read_prior(feature_file(tmp_path / "towns.geojson", *places), PLANE)
    expected = np.zeros((4, 4))
    expected[3, 0], expected[0, 2] = 5, 2
    np.testing.assert_array_equal(found, expected)
    for broken in ([1.0], "ab", None, [1.0, "x"], [float("1e999"), 1.0]):
        file = feature_file(tmp_path / "broken.geojson", feature("Point", broken, pop=1))
        with pytest.raises(InputError, match=r"prior|feature 1|geojson"):
            read_prior(file, PLANE)


def test_files_of_other_programs_are_read(tmp_path: Path) -> None:
    """With a mark of byte order, and with a property called row."""
    pytest.importorskip("shapely")
    ring = [[0, 0], [4, 0], [4, 1], [0, 1], [0, 0]]
    land = feature("Polygon", [ring], row="first", name="land")
    for start in ("", "\ufeff"):
        file = feature_file(tmp_path / "land.geojson", land, start=start)
        np.testing.assert_array_equal(read_support(file, PLANE)[0], 1)


def test_a_column_of_people_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    for two in ("people,people", "people,Weight", "POPULATION,pop"):
        file.write_text(f"lat,lon,{two}\n52.05,13.05,900,1\n")
        with pytest.raises(InputError, match="column must name one here: several have one of the"):
            read_prior(file, GRID)
    file.write_text("lat,lon,people,weight\n52.05,13.05,900,1\n")
    assert read_prior(file, GRID, column="weight").sum() == 1
    square = [[13.0, 52.0], [13.1, 52.0], [13.1, 52.1], [13.0, 52.0]]
    two = feature("Polygon", [square], people=3, population=4)
    with pytest.raises(InputError, match="2 are called 'people' or 'population'"):
        read_prior(feature_file(tmp_path / "land.geojson", two), GRID)


def test_shares_of_cells_are_no_prior_unless_their_column_is_named(tmp_path: Path) -> None:
    file = tmp_path / "cells.csv"
    file.write_text("row,col,share\n" + "".join(f"{k // 4},{k % 4},1\n" for k in range(16)))
    with pytest.raises(InputError, match=r"prior must hold places .* \(row, col, density\), but"):
        read_prior(file, PLANE)
    assert read_prior(file, PLANE, column="share").shape == (PLANE.cells, PLANE.cells)


def test_polygons_and_shares_of_cells_are_supports(tmp_path: Path) -> None:
    pytest.importorskip("shapely")
    ring = [[0, 0], [4, 0], [4, 1.5], [0, 1.5], [0, 0]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    feature = {"type": "Feature", "properties": {}, "geometry": geometry}
    document = {"type": "FeatureCollection", "features": [feature]}
    (tmp_path / "land.geojson").write_text(json.dumps(document))
    found = read_support(tmp_path / "land.geojson", PLANE)
    np.testing.assert_allclose(found, np.array([[1] * 4, [0.5] * 4, [0] * 4, [0] * 4]))
    lines = [f"{r},{c},{found[r, c]}" for r in range(4) for c in range(4)]
    (tmp_path / "cells.csv").write_text("row,col,share\n" + "\n".join(lines) + "\n")
    np.testing.assert_allclose(read_support(tmp_path / "cells.csv", PLANE), found)


def an_estimate(folder: Path, grid: Grid) -> tuple[np.ndarray, list[Path]]:
    collection = Collection.create("noon", grid, 3.5, "disk", squared_radius=1)
    channel = StampChannel(collection.table)
    truth = np.zeros((grid.cells, grid.cells))
    truth[1, 2], truth[3, 0] = 0.75, 0.25
    found = EM().fit(channel, np.round(10_000 * channel.forward(truth)))
    write_npz(folder / "map.npz", collection, found)
    write_csv(folder / "map.csv", grid, found)
    write_geojson(folder / "map.geojson", grid, found)
    return found.density, [folder / f"map.{suffix}" for suffix in ("npz", "csv", "geojson")]


def test_an_earlier_estimate_is_a_prior_in_each_of_its_files(tmp_path: Path) -> None:
    density, files = an_estimate(tmp_path, GRID)
    for file in files:
        np.testing.assert_allclose(read_prior(file, GRID), density, atol=1e-6)


def test_a_map_of_other_cells_is_spread_over_these(tmp_path: Path) -> None:
    """Half of a finer grid's cells: each takes the four that lie in it, and what is beyond goes."""
    density, (file, *_) = an_estimate(tmp_path, GRID)
    wide = Grid.from_bounds(52.0, 13.0, 0.8, 4)  # twice the cell, so two by two cells are one
    coarse = density.reshape(2, 2, 2, 2).sum((1, 3))
    expected = np.zeros((4, 4))
    expected[:2, :2] = coarse
    np.testing.assert_allclose(read_prior(file, wide), expected, atol=1e-6)
    fine = Grid.from_bounds(52.0, 13.0, 0.2, 4)
    expected = density[:2, :2].repeat(2, 0).repeat(2, 1) / 4
    np.testing.assert_allclose(read_prior(file, fine), expected, atol=1e-6)


def test_towns_count_with_their_people_or_once_each(tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    file.write_text("name,lat,lon,pop,rooms\nA,52.05,13.05,900,1\nB,52.35,13.25,300,2\nC,1,1,5,9\n")
    expected = np.zeros((4, 4))
    expected[0, 0], expected[3, 2] = 900, 300
    np.testing.assert_array_equal(read_prior(file, GRID), expected)
    np.testing.assert_array_equal(
        read_prior(file, GRID, "rooms"), np.where(expected == 900, 1, np.where(expected, 2, 0))
    )
    file.write_text("lat,lon\n52.05,13.05\n52.05,13.06\n")
    assert read_prior(file, GRID)[0, 0] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lat,lon,pop\n52.05,13.05,-1\n", "'pop' must be 0 or more in every row of 'x.csv'"),
        ("lat,lon,pop\n52.05,13.05,many\n", "'pop' must hold a number in every row"),
        ("lat,lon\n1,1\n", "prior must hold people inside the square, but 'x.csv' has none"),
        ("1,2\n3,4\n", "prior must have 4 x 4 cells as the collection, but 'x.csv' has 2 x 2"),
        (
            "a,b\n1,2\n",
            r"prior must hold places .* or a number for each cell .*, but 'x.csv' has the",
        ),
    ],
)
def test_priors_that_say_nothing_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "x.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_prior(file, GRID)


def test_supports_of_another_grid_or_beyond_shares_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("1,1\n1,1\n")
    with pytest.raises(InputError, match="support must have 4 x 4 cells as the collection"):
        read_support(file, GRID)
    file.write_text("1,1,1,1\n" * 3 + "1,1,1,2\n")
    with pytest.raises(InputError, match="support must hold shares from 0 to 1, got 2"):
        read_support(file, GRID)
    density, (npz, *_) = an_estimate(tmp_path, Grid.plane(0, 0, 4, 4))
    with pytest.raises(InputError, match="prior must lie on a geographic grid, got one that is p"):
        read_prior(npz, GRID)
    assert read_prior(npz, PLANE) == pytest.approx(density)


def test_venues_polygons_and_maps_of_smaller_cells_divide_cells(tmp_path: Path) -> None:
    """A quarter of the first cell is asked for: how many of its people are there?"""
    pytest.importorskip("shapely")
    corner = Region.rectangle("corner", PLANE, 0, 0, 0.5, 0.5)
    file = tmp_path / "venues.csv"
    file.write_text("y,x,seats\n" + "".join(f"0.3,0.{k},{k}\n" for k in range(1, 10)))
    within = read_within(file, PLANE)
    assert (within.known.sum(), within.known[0, 0]) == (1, True)
    assert within.parts(corner)[0, 0] == pytest.approx((4 + 0.25) / 10)  # and one on the edge
    seats = read_within(file, PLANE, "seats").parts(corner)[0, 0]
    places = 45**2 / sum(k * k for k in range(10))
    assert seats == pytest.approx((places * 10 / 45 + 0.25) / (places + 1))
    ring = [[0.0, 0.0], [0.5, 0.0], [0.5, 1.0], [0.0, 1.0], [0.0, 0.0]]
    house = {"type": "Polygon", "coordinates": [ring]}
    features = [{"type": "Feature", "properties": {"people": 9}, "geometry": house}]
    document = {"type": "FeatureCollection", "features": features}
    (tmp_path / "houses.geojson").write_text(json.dumps(document))
    houses = read_within(tmp_path / "houses.geojson", PLANE)
    assert houses.parts(corner)[0, 0] == pytest.approx(0.5, abs=1e-4)
    lines = [f"{r},{c},{(r + 0.5) / 4},{(c + 0.5) / 4},{(c < 2) + (r < 2)}" for r in range(16)
             for c in range(16)]  # fmt: skip
    (tmp_path / "raster.csv").write_text("row,col,y,x,density\n" + "\n".join(lines) + "\n")
    raster = read_within(tmp_path / "raster.csv", PLANE).parts(corner)[0, 0]
    assert raster == pytest.approx(2 / (2 + 1 + 1), abs=1e-4)


def test_files_that_say_nothing_of_the_inside_of_cells_are_refused(tmp_path: Path) -> None:
    _, files = an_estimate(tmp_path, GRID)
    (tmp_path / "plain.csv").write_text("1,2,3,4\n" * 4)
    for file in (*files, tmp_path / "plain.csv"):
        with pytest.raises(InputError, match="within must tell where in a cell people are, but"):
            read_within(file, GRID)
    (tmp_path / "plain.csv").write_text("1,2\n3,4\n")
    with pytest.raises(InputError, match="within must have 4 x 4 cells as the collection"):
        read_within(tmp_path / "plain.csv", GRID)
    (tmp_path / "far.csv").write_text("lat,lon\n1,1\n")
    with pytest.raises(InputError, match="within must hold people inside the square, but 'far"):
        read_within(tmp_path / "far.csv", GRID)
    (tmp_path / "far.csv").write_text("lat,lon\n52.05,13.05\n")
    with pytest.raises(InputError, match="layer must be left out"):
        read_within(tmp_path / "far.csv", GRID, layer="venues")
    with pytest.raises(InputError, match="grid must have cells that can be divided"):
        read_within(tmp_path / "far.csv", Grid.from_bounds(52.0, 13.0, 0.4, 3000))
