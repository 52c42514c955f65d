"""Regions in GeoJSON documents and tables of rectangles, which take no package for GIS formats."""

import json
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Grid
from ldpspatial.errors import InputError, InputWarning
from ldpspatial.files.regions import read_regions

GRID = Grid.from_bounds(52.0, 13.0, 0.4, 8)
SQUARE = {
    "type": "Polygon",
    "coordinates": [[[13.0, 52.0], [13.1, 52.0], [13.1, 52.1], [13.0, 52.0]]],
}


def write_document(file: Path, feature: dict[str, Any]) -> Path:
    document = {"type": "FeatureCollection", "features": [{"type": "Feature"} | feature]}
    file.write_text(json.dumps(document))
    return file


def test_of_two_names_that_differ_by_their_letters_the_exact_one_counts(tmp_path: Path) -> None:
    feature = {"geometry": SQUARE, "properties": {"NAME": "other", "name": "x"}}
    file = write_document(tmp_path / "a.geojson", feature)
    assert read_regions(file, GRID)[0].name == "x"
    assert read_regions(file, GRID, name_column="NAME")[0].name == "other"


def test_a_list_of_corners_is_no_geometry_of_a_document(tmp_path: Path) -> None:
    """In Python it would be latitude first, in GeoJSON it would not."""
    corners = [[52.0, 13.0], [52.1, 13.0], [52.1, 13.1]]
    file = write_document(tmp_path / "a.geojson", {"geometry": corners, "properties": {}})
    with pytest.raises(InputError, match=r"feature 1 of 'a.geojson': geometry .* got none"):
        read_regions(file, GRID)


def test_names_are_in_any_letters_and_an_id_stands_in_for_one(tmp_path: Path) -> None:
    held = [
        ({"NAME": "upper"}, 0),
        ({"name": ""}, "ID2"),
        ({"name": "  "}, "ID3"),
        ({"Name": "mixed"}, None),
        ({"name": None}, 7),
        ({"other": "x"}, None),
    ]
    features = [
        {"type": "Feature", "geometry": SQUARE, "properties": properties}
        | ({} if key is None else {"id": key})
        for properties, key in held
    ]
    document = tmp_path / "a.geojson"
    document.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    named = [region.name for region in read_regions(document, GRID)]
    assert named == ["upper", "ID2", "ID3", "mixed", "7", "region 6"]
    features[0]["properties"] = {"NAME": "upper", "Name": "both"}
    document.write_text(json.dumps({"type": "FeatureCollection", "features": features[:1]}))
    with pytest.raises(InputError, match="2 are called 'name'"):
        read_regions(document, GRID)
    table = tmp_path / "a.csv"
    table.write_text("NAME,South,West,North,East\nx,52,13,52.1,13.1\n")
    assert read_regions(table, GRID)[0].name == "x"
    table.write_text("NAME,South,West,North,east,EAST\nx,52,13,52.1,13.1,13.1\n")
    with pytest.raises(InputError, match="lacks or repeats east"):
        read_regions(table, GRID)


@pytest.mark.parametrize("name", ["Köln, süd", "東京"])
def test_names_in_tables_are_utf8(name: str, tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    lines = f'name,south,west,north,east\n"{name}",52,13,52.1,13.1\n'
    table.write_text(lines, encoding="utf-8")
    assert read_regions(table, GRID)[0].name == name


def test_degrees_beside_a_plane_that_begins_at_0_are_warned_of(tmp_path: Path) -> None:
    """Of New York, say, which lie west of it."""
    corners = [[-74.1, 40.7], [-74.0, 40.7], [-74.0, 40.8], [-74.1, 40.7]]
    box = {"type": "Polygon", "coordinates": [corners]}
    file = write_document(tmp_path / "a.geojson", {"geometry": box, "properties": {}})
    with pytest.warns(InputWarning, match=r"are they in degrees\? The map is of a plane"):
        read_regions(file, Grid.plane(0, 0, 40_000, 8))
