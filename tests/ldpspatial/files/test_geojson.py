"""GeoJSON of cells, read back with exact decimals."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk import Grid
from client_sdk.grid import UNIT
from ldpspatial.collecting.results import write_geojson
from ldpspatial.files.geojson import feature_collection
from tests.support.results import CITY, GRIDS, INTERVALS, RESULT, result_on


@pytest.fixture(params=GRIDS)
def grid(request: pytest.FixtureRequest) -> Grid:
    return GRIDS[request.param]


def geojson(tmp_path: Path, grid: Grid) -> dict[str, Any]:
    """Write an estimate and read it back with exact decimals."""
    write_geojson(tmp_path / "cells.geojson", grid, result_on(grid))
    text = (tmp_path / "cells.geojson").read_text("utf-8")
    document: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return document


def rings(document: dict[str, Any]) -> Iterator[list[tuple[Decimal, Decimal]]]:
    for feature in document["features"]:
        (ring,) = feature["geometry"]["coordinates"]
        yield [(x, y) for x, y in ring]


def area(ring: list[tuple[Decimal, Decimal]]) -> Decimal:
    """Return the signed area, positive counter-clockwise."""
    twice = sum((x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairwise(ring)), Decimal(0))
    return twice / 2


def test_geojson_has_one_feature_per_cell(tmp_path: Path, grid: Grid) -> None:
    document = geojson(tmp_path, grid)
    density = result_on(grid).density
    assert document["type"] == "FeatureCollection"
    assert document["reports"] == RESULT.n
    assert document.get("plane", False) == (grid.kind == "plane")
    assert len(document["features"]) == grid.cells**2
    for feature, (row, col) in zip(document["features"], np.ndindex(density.shape), strict=True):
        assert feature["type"] == "Feature"
        assert feature["geometry"]["type"] == "Polygon"
        assert feature["id"] == f"{row}-{col}"
        properties = feature["properties"]
        assert properties.keys() == {"row", "col", "density", "people"}
        assert (properties["row"], properties["col"]) == (row, col)
        assert float(properties["density"]) == density[row, col]
        assert float(properties["people"]) == density[row, col] * RESULT.n


def test_geojson_shares_sum_to_one_and_people_to_the_reports(tmp_path: Path, grid: Grid) -> None:
    features = [f["properties"] for f in geojson(tmp_path, grid)["features"]]
    assert float(sum(f["density"] for f in features)) == pytest.approx(1, abs=1e-12)
    assert float(sum(f["people"] for f in features)) == pytest.approx(RESULT.n, rel=1e-12)


def test_geojson_polygons_tile_the_square_exactly(tmp_path: Path, grid: Grid) -> None:
    document = geojson(tmp_path, grid)
    edges = Counter(edge for ring in rings(document) for edge in pairwise(ring))
    outline = {edge for edge in edges if edge[::-1] not in edges}
    # Inside, every edge is run through once in each direction; 4 d edges make up the outline.
    assert set(edges.values()) == {1}
    assert len(outline) == 4 * grid.cells
    west, south = Decimal(grid.west) / UNIT, Decimal(grid.south) / UNIT
    east, north = west + Decimal(grid.width) / UNIT, south + Decimal(grid.height) / UNIT
    assert all({x0, x1} <= {west, east} or {y0, y1} <= {south, north}
               for (x0, y0), (x1, y1) in outline)  # fmt: skip
    assert document["bbox"] == [west, south, east, north]
    assert sum(map(area, rings(document))) == (east - west) * (north - south)


def test_geojson_rings_are_closed_and_counter_clockwise(tmp_path: Path, grid: Grid) -> None:
    for ring in rings(geojson(tmp_path, grid)):
        assert len(ring) == 5
        assert ring[0] == ring[-1]
        assert area(ring) > 0


def test_geojson_polygons_hold_the_centres_of_their_cells(tmp_path: Path, grid: Grid) -> None:
    for number, ring in enumerate(rings(geojson(tmp_path, grid))):
        (west, south), (east, north) = ring[0], ring[2]
        lat, lon = grid.center(*divmod(number, grid.cells))
        assert south < lat < north
        assert any(west < lon + turn < east for turn in (0, 360))


def test_geojson_of_a_square_across_the_antimeridian_is_continuous(tmp_path: Path) -> None:
    document = geojson(tmp_path, GRIDS["antimeridian"])
    assert document["bbox"][2] == Decimal("180.5")
    assert all(x >= Decimal("179.5") for ring in rings(document) for x, _ in ring)


def test_geojson_coordinates_have_seven_decimals(tmp_path: Path, grid: Grid) -> None:
    write_geojson(tmp_path / "cells.geojson", grid, result_on(grid))
    text = (tmp_path / "cells.geojson").read_text("ascii")
    numbers = re.findall(r"\[([^\[\],]+),([^\[\],]+)\]", text)
    assert len(numbers) == 5 * grid.cells**2
    assert all(re.fullmatch(r"-?\d+\.\d{7}", number) for pair in numbers for number in pair)


def test_geojson_states_intervals_with_their_level(tmp_path: Path) -> None:
    write_geojson(tmp_path / "cells.geojson", CITY.grid, RESULT, INTERVALS)
    document = json.loads((tmp_path / "cells.geojson").read_text())
    assert (document["level"], document["method"]) == (0.9, "fisher")
    for name, values in (("lower", INTERVALS.lower), ("upper", INTERVALS.upper)):
        assert [f["properties"][name] for f in document["features"]] == values.ravel().tolist()


def test_geojson_is_made_row_by_row() -> None:
    pieces = list(feature_collection(CITY.grid, {}, {"density": RESULT.density}))
    assert len(pieces) == 1 + CITY.grid.cells + 1
    assert {piece.count('"Feature"') for piece in pieces[1:-1]} == {CITY.grid.cells}


def test_edges_are_at_the_nearest_units() -> None:
    """Of 20 units in three cells, at 6 2/3 and 13 1/3."""
    pieces = feature_collection(Grid("plane", 0, 0, 20, 20, 3), {}, {})
    document = json.loads("".join(pieces), parse_float=Decimal)
    found = {x * UNIT for ring in rings(document) for x, _ in ring}
    assert found == {0, 7, 13, 20}
