"""``ldpspatial ranges`` with GIS files in and out."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpspatial.collecting.results import read_estimate
from ldpspatial.estimation import region_share
from ldpspatial.places.regions import polygon
from tests.support.command_line import refusal, run, succeed

pyogrio = pytest.importorskip("pyogrio")
pyproj = pytest.importorskip("pyproj")
shapely = pytest.importorskip("shapely")

SHAPES = [shapely.box(13.0, 52.0, 13.23, 52.17), shapely.Point(13.2, 52.2).buffer(0.1)]


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("city")
    rng = np.random.default_rng(4)
    people = rng.normal((52.15, 13.2), 0.05, (1500, 2))
    lines = [f"{lat:.6f},{lon:.6f}" for lat, lon in people]
    (folder / "people.csv").write_text("\n".join(["lat,lon", *lines]) + "\n")
    setting = ("--cells", 6, "--epsilon", 3, "--intervals", "none")
    assert run("simulate", folder / "people.csv", *setting, "--out", folder / "r").exit_code == 0
    return folder


def write(file: Path, shapes: list[Any], system: str, layer: str, **columns: list[str]) -> Path:
    there = pyproj.Transformer.from_crs("OGC:CRS84", system, always_xy=True)
    moved = [
        shapely.transform(shapely.segmentize(each, 1e-3), there.transform, interleaved=False)
        for each in shapes
    ]
    fields = [np.array(values, object) for values in columns.values()]
    pyogrio.raw.write(
        file, shapely.to_wkb(np.array(moved, object)), fields, list(columns), crs=system,
        layer=layer, geometry_type="Polygon",
    )  # fmt: skip
    return file


def test_districts_in_utm_come_back_with_their_shares(city: Path, tmp_path: Path) -> None:
    regions = write(tmp_path / "a.gpkg", SHAPES, "EPSG:25833", "districts", NAMN=["box", "disk"])
    write(regions, SHAPES[:1], "EPSG:25833", "water", NAMN=["lake"])
    out = tmp_path / "shares.gpkg"
    chosen = ("--layer", "districts", "--name-column", "namn")
    result = succeed("ranges", city / "r", regions, *chosen, "--gpkg", out)
    assert f"Written to {out}" in result.stdout
    collection, found = read_estimate(city / "r")
    told, _, geometries, fields = pyogrio.raw.read(out, layer="regions")
    held = dict(zip(told["fields"], fields, strict=True))
    assert held["name"].tolist() == ["box", "disk"]
    for k, shape in enumerate(SHAPES):
        share = region_share(found, polygon(collection.grid, shape))
        numbers = [held[name][k] for name in ("share", "lower", "upper", "people")]
        expected = [share.estimate, share.lower, share.upper, share.estimate * found.n]
        np.testing.assert_allclose(numbers, expected, rtol=1e-4)
        difference = shapely.from_wkb(geometries[k]).symmetric_difference(shape)
        assert difference.area < 1e-6 * shape.area
    again = tmp_path / "again.gpkg"  # what is written can be read
    succeed("ranges", city / "r", out, "--gpkg", again)


def test_no_number_stands_for_what_is_not_known(city: Path, tmp_path: Path) -> None:
    """Of a district off the map: a GIS takes 0 for nobody there."""
    far = shapely.transform(SHAPES[0], lambda corners: corners - 2)
    regions = write(tmp_path / "a.gpkg", [SHAPES[0], far], "EPSG:25833", "districts")
    packed, drawn = tmp_path / "shares.gpkg", tmp_path / "shares.geojson"
    succeed("ranges", city / "r", regions, "--gpkg", packed, "--geojson", drawn)
    told, _, _, fields = pyogrio.raw.read(packed, layer="regions")
    held = dict(zip(told["fields"], fields, strict=True))
    features = [each["properties"] for each in json.loads(drawn.read_text())["features"]]
    for name in ("share", "lower", "upper", "people", "wholly_inside", "touched"):
        assert (held[name] >= 0).tolist() == [True, False]
        assert np.isnan(held[name][1])
        assert features[0][name] == held[name][0]
        assert features[1][name] is None
    assert held["on_map"].tolist() == [1, 0] == [each["on_map"] for each in features]


def test_what_is_missing_is_told_before_any_work(city: Path, tmp_path: Path) -> None:
    regions = write(tmp_path / "a.gpkg", SHAPES, "EPSG:4326", "districts", NAMN=["box", "disk"])
    assert "--name-column must name one column of 'a.gpkg' ('NAMN')" in refusal(
        "ranges", city / "r", regions
    )
    named = ("--name-column", "NAMN")
    assert "layer must name a layer of 'a.gpkg' ('districts'), got 'x'" in refusal(
        "ranges", city / "r", regions, *named, "--layer", "x"
    )
    assert "--gpkg must end in .gpkg" in refusal(
        "ranges", city / "r", regions, *named, "--gpkg", tmp_path / "a.shp"
    )
    assert "--gpkg must not replace an input" in refusal(
        "ranges", city / "r", regions, *named, "--gpkg", regions
    )


def test_a_missing_package_is_told_before_any_file_is_written(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regions = tmp_path / "a.csv"
    regions.write_text("name,south,west,north,east\nbox,52.1,13.1,52.2,13.2\n")
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    outputs = ("--csv", tmp_path / "b.csv", "--gpkg", tmp_path / "b.gpkg")
    error = refusal("ranges", city / "r", regions, *outputs)
    assert error == "GIS files need pyogrio, pyproj and shapely: install ldpspatial[gis]"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv"]
