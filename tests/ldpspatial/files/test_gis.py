"""Regions in GIS files: every format gives what GeoJSON gives, and what is wrong is told."""

import json
import struct
import sys
import threading
import warnings
import zipfile
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client_sdk import Grid
from ldpspatial import InputError
from ldpspatial.files.regions import read_area, read_regions, write_regions_geopackage
from ldpspatial.files.side_information import read_prior, read_support
from ldpspatial.places.regions import Region, polygon

pyogrio = pytest.importorskip("pyogrio")
pyproj = pytest.importorskip("pyproj")
shapely = pytest.importorskip("shapely")

GRID = Grid.from_bounds(52.0, 13.0, 0.4, 8)
PLANE = Grid.plane(0, 0, 40, 8)
WEST = shapely.Polygon([(13.0, 52.0), (13.1, 52.03), (13.12, 52.1), (13.01, 52.12)])
EAST = shapely.MultiPolygon(
    [shapely.box(13.2, 52.2, 13.25, 52.3), shapely.box(13.3, 52, 13.4, 52.1)]
)
ROUND = shapely.Point(13.3, 52.3).buffer(0.04).difference(shapely.Point(13.3, 52.3).buffer(0.02))
SHAPES = (WEST, EAST, ROUND)
NAMES = ("Mitte", "Köln, süd", "Ring")
DRIVERS = {
    **{".shp": "ESRI Shapefile", ".gpkg": "GPKG", ".fgb": "FlatGeobuf", ".kml": "KML"},
    **{".kmz": "LIBKML", ".tab": "MapInfo File", ".mif": "MapInfo File"},
}


def write(
    file: Path,
    shapes: Sequence[Any] = SHAPES,
    system: str | None = "EPSG:4326",
    columns: dict[str, Sequence[Any]] | None = None,
    **options: Any,
) -> Path:
    held = {"NAME": NAMES[: len(shapes)]} if columns is None else columns
    is_text = [all(isinstance(each, str | None) for each in values) for values in held.values()]
    fields = [
        np.array(values, object if text else None)
        for values, text in zip(held.values(), is_text, strict=True)
    ]
    geometries = shapely.to_wkb(np.array([*shapes, None], object)[:-1])
    kind = "Polygon" if file.suffix == ".shp" else "Unknown"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no coordinate system
        pyogrio.raw.write(
            file, geometries, fields, list(held), driver=DRIVERS[file.suffix], crs=system,
            **{"geometry_type": kind, **options},
        )  # fmt: skip
    return file


def moved(shape: Any, system: str, step: float = 1e-3) -> Any:
    """Return a shape of degrees in another system, its sides followed in steps."""
    there = pyproj.Transformer.from_crs("OGC:CRS84", system, always_xy=True)
    fine = shapely.segmentize(shape, step) if shape.is_valid else shape  # else it would be mended
    return shapely.transform(fine, there.transform, interleaved=False)


def check(regions: list[Region], shapes: Sequence[Any] = SHAPES, accuracy: float = 1e-5) -> None:
    """Compare with the weights that the same polygons have without a file."""
    assert len(regions) == len(shapes)
    for region, shape in zip(regions, shapes, strict=True):
        np.testing.assert_allclose(region.weights, polygon(GRID, shape), atol=accuracy)


@pytest.mark.parametrize("suffix", DRIVERS)
def test_every_format_gives_the_polygons_and_their_names(suffix: str, tmp_path: Path) -> None:
    order = {name: k for k, name in enumerate(NAMES)}  # FlatGeobuf has one of its own
    found = read_regions(write(tmp_path / f"a{suffix}"), GRID)
    found.sort(key=lambda region: order[region.name])
    check(found)
    assert [region.name for region in found] == list(NAMES)
    assert [region.on_map for region in found] == pytest.approx([1.0] * 3)


@pytest.mark.parametrize(
    "system", ["EPSG:25833", "EPSG:3035", "EPSG:3857", "EPSG:4258", "EPSG:2263", "EPSG:5514"]
)
def test_coordinates_are_taken_from_the_system_that_the_file_names(
    system: str, tmp_path: Path
) -> None:
    """UTM, the grid of Europe, the web's maps, other degrees, feet, axes to the south and west."""
    shapes = [moved(shape, system) for shape in SHAPES]
    check(read_regions(write(tmp_path / "a.gpkg", shapes, system), GRID))


def test_long_sides_are_straight_in_the_system_of_the_file(tmp_path: Path) -> None:
    """A rectangle of 1,500 km in the grid of Europe: its corners alone would miss by kilometres."""
    grid = Grid.from_bounds(47.0, 8.0, 8.0, 40)
    box = shapely.box(3.8e6, 2.7e6, 5.3e6, 3.3e6)
    (found,) = read_regions(write(tmp_path / "a.gpkg", [box], "EPSG:3035"), grid)
    back = pyproj.Transformer.from_crs("EPSG:3035", "OGC:CRS84", always_xy=True)
    fine = shapely.transform(shapely.segmentize(box, 200), back.transform, interleaved=False)
    coarse = shapely.transform(box, back.transform, interleaved=False)
    right = polygon(grid, fine)
    np.testing.assert_allclose(found.weights, right, atol=1e-3)
    assert np.abs(polygon(grid, coarse) - right).max() > 0.5


@pytest.mark.parametrize("longitude", [180.0, -180.0])
def test_a_polygon_across_the_antimeridian_stays_in_one_piece(
    longitude: float, tmp_path: Path
) -> None:
    grid = Grid.from_center(-17.8, longitude, 50_000, 16)
    box = shapely.box(179.8, -18, 180.2, -17.6)
    file = write(tmp_path / "a.gpkg", [moved(box, "EPSG:3832")], "EPSG:3832")
    (found,) = read_regions(file, grid)
    np.testing.assert_allclose(found.weights, polygon(grid, box), atol=1e-6)
    assert found.weights.sum() > 100


def test_a_polygon_around_a_pole_is_refused(tmp_path: Path) -> None:
    """Straight between its longitudes it would be a sliver, with nobody in it."""
    cap = shapely.Point(0, 0).buffer(2_500_000)
    with pytest.raises(InputError, match=r"^feature 2 of 'a.gpkg': .* around a pole"):
        read_regions(write(tmp_path / "a.gpkg", [moved(WEST, "EPSG:3413"), cap], "EPSG:3413"), GRID)


@pytest.mark.parametrize("far", [1e14, 1e300, np.inf, np.nan])
def test_coordinates_beyond_the_earth_are_refused(far: float, tmp_path: Path) -> None:
    with np.errstate(invalid="ignore"):
        wrong = shapely.Polygon([(4e5, 5.7e6), (far, 5.7e6), (4e5, 5.8e6)])
        file = write(tmp_path / "a.gpkg", [moved(WEST, "EPSG:25833"), wrong], "EPSG:25833")
    with pytest.raises(InputError, match=r"^feature 2 of 'a.gpkg': geometry"):
        read_regions(file, GRID)


def test_empty_parts_are_left_out(tmp_path: Path) -> None:
    parts = shapely.MultiPolygon([moved(WEST, "EPSG:25833"), shapely.Polygon()])
    check(read_regions(write(tmp_path / "a.gpkg", [parts], "EPSG:25833"), GRID), [WEST])


def test_planes_take_coordinates_as_they_are(tmp_path: Path) -> None:
    box = shapely.box(5, 10, 20, 30)
    for system in (None, "EPSG:25833"):
        (found,) = read_regions(write(tmp_path / "a.gpkg", [box], system), PLANE)
        np.testing.assert_array_equal(found.weights, polygon(PLANE, box))


@pytest.mark.parametrize("folder", ["", "cities/of 2020/"])
def test_a_shapefile_may_lie_in_an_archive(folder: str, tmp_path: Path) -> None:
    write(tmp_path / "a.shp")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for part in sorted(tmp_path.glob("a.*")):
            if part.suffix != ".zip":
                archive.write(part, f"{folder}b{part.suffix}")
        archive.writestr("__MACOSX/._b.shp", b"")
    check(read_regions(tmp_path / "a.zip", GRID))


def test_shapefiles_of_one_folder_of_an_archive_are_its_layers(tmp_path: Path) -> None:
    write(tmp_path / "land.shp")
    write(tmp_path / "sea.shp", SHAPES[:1])
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for part in (each for each in sorted(tmp_path.iterdir()) if each.suffix != ".zip"):
            archive.write(part, f"x/{part.name}")
    check(read_regions(tmp_path / "a.zip", GRID, layer="sea"), SHAPES[:1])
    with pytest.raises(InputError, match=r"layer of 'a.zip' \('(land|sea)', '(land|sea)'\), none"):
        read_regions(tmp_path / "a.zip", GRID)


@pytest.mark.parametrize("keeps", [True, False])
def test_names_in_another_encoding_are_read_with_and_without_its_note(
    keeps: bool, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.shp", encoding="ISO-8859-1")
    if not keeps:
        (tmp_path / "a.cpg").unlink()
    assert [region.name for region in read_regions(file, GRID)] == list(NAMES)


def test_heights_and_measures_are_left_out(tmp_path: Path) -> None:
    shapes = [shapely.force_3d(WEST, 7.0), *SHAPES[1:]]
    file = write(tmp_path / "a.gpkg", shapes)
    check(read_regions(file, GRID))
    assert read_regions(file, GRID)[0].geometry == shapely.geometry.mapping(WEST)


def test_arcs_become_short_sides(tmp_path: Path) -> None:
    """A disk of radius 1000 from four arcs, as ISO 13249-3 writes one in binary."""
    corners = [(0, 1000), (1000, 2000), (2000, 1000), (1000, 0), (0, 1000)]
    arcs = struct.pack("<BII", 1, 8, len(corners)) + np.array(corners, "<f8").tobytes()
    disk = struct.pack("<BII", 1, 10, 1) + arcs
    file = tmp_path / "a.gpkg"
    pyogrio.raw.write(
        file, np.array([disk], object), [np.array(["disk"], object)], ["name"],
        geometry_type="Unknown", crs="EPSG:25833",
    )  # fmt: skip
    (found,) = read_regions(file, Grid.plane(0, 0, 2000, 2))
    assert found.weights.sum() == pytest.approx(np.pi, rel=2e-3)


def test_reading_asks_nobody_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A document of links and remote styles is read, and the server that they name hears nothing.

    GML, of which GDAL would load a schema and write its own beside the file, is not among the
    formats.
    """
    asked = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        there = f"http://127.0.0.1:{server.server_port}"
        at = " ".join(f"{x},{y}" for x, y in WEST.exterior.coords)
        (tmp_path / "a.kml").write_text(
            "<kml xmlns='http://www.opengis.net/kml/2.2'><Document>"
            f"<NetworkLink><Link><href>{there}/link.kml</href></Link></NetworkLink>"
            f"<Placemark><name>x</name><styleUrl>{there}/style.kml#s</styleUrl><Polygon>"
            f"<outerBoundaryIs><LinearRing><coordinates>{at}</coordinates></LinearRing>"
            "</outerBoundaryIs></Polygon></Placemark></Document></kml>"
        )
        check(read_regions(tmp_path / "a.kml", GRID), [WEST])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert asked == []
    files = [tmp_path / "a.kml", *(write(tmp_path / f"b{suffix}") for suffix in DRIVERS)]
    before = sorted(tmp_path.iterdir())
    for file in files:
        read_regions(file, GRID)
    assert sorted(tmp_path.iterdir()) == before
    (tmp_path / "c.gml").write_text("<gml/>")
    with pytest.raises(InputError, match=r"path must end in one of .*\.gpkg.*got 'c.gml'"):
        read_regions(tmp_path / "c.gml", GRID)


# Layers and columns


def test_one_of_several_layers_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.gpkg", layer="one")
    write(file, SHAPES[:2], layer="two")
    check(read_regions(file, GRID, layer="two"), SHAPES[:2])
    rule = r"layer must name a layer of 'a.gpkg' \('one', 'two'\)"
    with pytest.raises(InputError, match=f"{rule}, none was named"):
        read_regions(file, GRID)
    with pytest.raises(InputError, match=f"{rule}, got 'three'"):
        read_regions(file, GRID, layer="three")


def test_the_column_of_names(tmp_path: Path) -> None:
    columns = {"NAMN": ["a", "b", "c"], "Code": [7, 8, 9]}
    file = write(tmp_path / "a.gpkg", columns=columns)
    rule = r"name_column must name one column of 'a.gpkg' \('NAMN', 'Code'\): none is called"
    with pytest.raises(InputError, match=f"{rule} 'name'"):
        read_regions(file, GRID)
    with pytest.raises(InputError, match=f"{rule} 'x'"):
        read_regions(file, GRID, name_column="x")
    for column, names in (("namn", "abc"), ("Code", "789")):
        found = read_regions(file, GRID, name_column=column)
        assert [region.name for region in found] == list(names)
    assert read_regions(file, GRID, named=False)[2].name == "region 3"


def test_regions_without_a_name_are_numbered(tmp_path: Path) -> None:
    file = write(tmp_path / "a.gpkg", columns={"name": ["x", None, ""]})
    names = [region.name for region in read_regions(file, GRID)]
    assert names == ["x", "region 2", "region 3"]
    file = write(tmp_path / "b.gpkg", columns={"name": [1.5, float("nan"), 2.0]})
    assert read_regions(file, GRID)[1].name == "region 2"
    (tmp_path / "c.shp").write_bytes(write(tmp_path / "d.shp").read_bytes())
    for part in (".shx", ".prj"):
        (tmp_path / f"c{part}").write_bytes((tmp_path / f"d{part}").read_bytes())
    assert read_regions(tmp_path / "c.shp", GRID)[0].name == "region 1"  # there are no columns


def test_a_property_or_a_column_of_a_table_may_have_the_names(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("Namn,south,west,north,east\nx,52,13,52.1,13.1\n")
    assert read_regions(table, GRID, name_column="namn")[0].name == "x"
    geometry = shapely.geometry.mapping(WEST)
    feature = {"type": "Feature", "geometry": geometry, "properties": {"Namn": "x"}, "id": 4}
    document = tmp_path / "a.geojson"
    document.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    assert read_regions(document, GRID, name_column="namn")[0].name == "x"
    assert read_regions(document, GRID)[0].name == "4"
    with pytest.raises(
        InputError, match=r"one column of 'a.geojson' \('Namn'\): none is called 'n"
    ):
        read_regions(document, GRID, name_column="nom")
    for file in (table, document):
        with pytest.raises(InputError, match="layer must be left out where a file has none"):
            read_regions(file, GRID, layer="x")


# GeoParquet


def write_parquet(file: Path, encoding: str = "WKB", **column: Any) -> Path:
    told = {"encoding": encoding, "geometry_types": [], **column}
    geo = {"version": "1.1.0", "primary_column": "shape", "columns": {"shape": told}}
    held = {"name": NAMES, "shape": list(shapely.to_wkb(np.array(SHAPES, object)))}
    pq.write_table(pa.table(held).replace_schema_metadata({"geo": json.dumps(geo)}), file)
    return file


@pytest.mark.parametrize("name", ["a.parquet", "a.pq", "a.geoparquet"])
def test_geoparquet_is_told_from_a_table_of_rectangles(name: str, tmp_path: Path) -> None:
    found = read_regions(write_parquet(tmp_path / name), GRID)
    check(found, accuracy=1e-12)
    assert [region.name for region in found] == list(NAMES)
    sides = {"south": [52.0], "west": [13.0], "north": [52.1], "east": [13.1]}
    pq.write_table(pa.table({"name": ["x"], **sides}), tmp_path / "b.parquet")
    assert read_regions(tmp_path / "b.parquet", GRID)[0].name == "x"


def test_geoparquet_has_a_system_of_its_own(tmp_path: Path) -> None:
    system = json.loads(pyproj.CRS("EPSG:4258").to_json())
    check(read_regions(write_parquet(tmp_path / "a.parquet", crs=system), GRID))
    with pytest.raises(InputError, match="must say in which coordinate system"):
        read_regions(write_parquet(tmp_path / "b.parquet", crs=None), GRID)
    with pytest.raises(InputError, match=r"geometries as WKB, but 'c.parquet' has 'polygon'"):
        read_regions(write_parquet(tmp_path / "c.parquet", "polygon"), GRID)


# What is refused


BOW = shapely.Polygon([(13, 52), (13.1, 52.1), (13.1, 52), (13, 52.1)])


@pytest.mark.parametrize(
    ("shape", "rule"),
    [
        (None, "a Polygon or MultiPolygon, got none"),
        (shapely.Polygon(), "geometry must have corners, got an empty Polygon"),
        (shapely.Point(13, 52), "a Polygon or MultiPolygon, got a Point"),
        (shapely.LineString([(13, 52), (14, 53)]), "a Polygon or MultiPolygon, got a LineString"),
        (shapely.GeometryCollection([WEST]), "Polygon or MultiPolygon, got a GeometryCollection"),
        (BOW, "geometry must not cross or touch itself, got one with: self-intersection"),
    ],
)
@pytest.mark.parametrize("system", ["EPSG:4326", "EPSG:25833"])
def test_what_is_no_polygon_is_told_by_its_row_and_kind(
    shape: Any, rule: str, system: str, tmp_path: Path
) -> None:
    shapes = [each and moved(each, system) for each in (WEST, shape)]
    with pytest.raises(InputError, match=f"^feature 2 of 'a.gpkg': .*{rule}"):
        read_regions(write(tmp_path / "a.gpkg", shapes, system), GRID)


@pytest.mark.parametrize(
    ("system", "grid", "rule"),
    [
        (None, GRID, "must say in which coordinate system it is, but 'a.gpkg' does not"),
        ("EPSG:4326", PLANE, r"on the plane of the map, but 'a.gpkg' is in degrees \(WGS 84\)"),
        ("EPSG:4978", GRID, r"in degrees or in a projection of the Earth, .*\(Geocentric CRS\)"),
    ],
)
def test_a_system_that_does_not_fit_is_refused(
    system: str | None, grid: Grid, rule: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"^path must be {rule}|^path {rule}"):
        read_regions(write(tmp_path / "a.gpkg", system=system), grid)


@pytest.mark.parametrize("suffix", [*DRIVERS, ".zip", ".geoparquet"])
@pytest.mark.parametrize("content", [b"", b"PK", b"not a map at all" * 50])
def test_a_damaged_file_is_one_error(content: bytes, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"a{suffix}"
    file.write_bytes(content)
    with pytest.raises(InputError, match=f"^path must be a GIS file .* but 'a{suffix}' cannot"):
        read_regions(file, GRID)


def test_half_of_a_file_is_one_error(tmp_path: Path) -> None:
    for suffix in (".fgb", ".gpkg"):
        file = write(tmp_path / f"a{suffix}")
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        with pytest.raises(InputError, match=f"'a{suffix}'"):
            read_regions(file, GRID)
    write(tmp_path / "a.shp")
    (tmp_path / "a.shx").unlink()
    with pytest.raises(InputError, match=r"'a.shp' cannot \(a .shp needs its .shx"):
        read_regions(tmp_path / "a.shp", GRID)


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("read.me", "hello")
    with pytest.raises(InputError, match=r"'a.zip' holds none"):
        read_regions(tmp_path / "a.zip", GRID)


def test_an_empty_file_and_one_elsewhere_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at least one region, but 'a.gpkg' holds none"):
        read_regions(write(tmp_path / "a.gpkg", []), GRID)
    far = Grid.from_bounds(-10.0, 100.0, 1.0, 4)
    file = write(tmp_path / "b.gpkg")
    assert {region.on_map for region in read_regions(file, far)} == {0.0}
    with pytest.raises(InputError, match=r"all of 'b.gpkg' lie outside"):
        read_area(file, far)


@pytest.mark.parametrize("package", ["pyogrio", "pyproj"])
def test_a_missing_package_is_told(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.gpkg")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=r"install ldpspatial\[gis\]$"):
        read_regions(file, GRID)


# What is written


@pytest.mark.parametrize("in_degrees", [True, False])
def test_a_geopackage_has_shapes_names_numbers_and_its_system(
    in_degrees: bool, tmp_path: Path
) -> None:
    shapes = {
        name: shapely.geometry.mapping(shape) for name, shape in zip(NAMES, SHAPES, strict=True)
    }
    regions = [Region(name, np.ones((8, 8)), shape) for name, shape in shapes.items()]
    regions.append(Region("half \ud800", np.ones((8, 8))))  # without a place
    file = tmp_path / "out.gpkg"
    texts = ["posterior", "fisher", "", "half \ud800"]
    columns = {"share": [0.1, 0.2, 0.3, 0.4], "method": texts}
    write_regions_geopackage(file, regions, columns, in_degrees)
    told, _, geometries, (names, share, method) = pyogrio.raw.read(file, layer="regions")
    assert names.tolist() == [*NAMES, "half ?"]
    assert share.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert method.tolist() == [*texts[:3], "half ?"]
    assert geometries[3] is None
    for written, shape in zip(geometries[:3], SHAPES, strict=True):
        assert shapely.from_wkb(written).equals_exact(shape)
    if in_degrees:
        assert pyproj.CRS(told["crs"]).equals("OGC:CRS84", ignore_axis_order=True)
    else:
        assert told["crs"] is None or not pyproj.CRS(told["crs"]).is_geographic


# Side information


def test_land_of_any_format_is_a_support(tmp_path: Path) -> None:
    file = write(tmp_path / "a.gpkg", [moved(WEST, "EPSG:25833")], "EPSG:25833", {"id": [3]})
    np.testing.assert_allclose(read_support(file, GRID), polygon(GRID, WEST), atol=1e-6)
    write(file, [moved(EAST, "EPSG:25833")], "EPSG:25833", {"id": [3]}, layer="east")
    np.testing.assert_allclose(read_support(file, GRID, "east"), polygon(GRID, EAST), atol=1e-6)
    with pytest.raises(InputError, match="layer must name a layer"):
        read_support(file, GRID)


def test_districts_and_towns_of_any_format_are_a_prior(tmp_path: Path) -> None:
    """A district that leaves the map leaves its people outside, by its area."""
    leaving = shapely.box(13.3, 52.3, 13.5, 52.4)  # half of it is on the map
    shapes = [leaving, shapely.box(13.0, 52.0, 13.05, 52.1), shapely.Point(13.12, 52.07)]
    columns = {"Population": [800, 100, 7], "votes": [2, 0, 1]}
    file = write(tmp_path / "a.gpkg", shapes, columns=columns)
    expected = np.zeros((8, 8))
    expected[6:, 6:] = 100
    expected[:2, 0] = 50
    expected[1, 2] = 7
    np.testing.assert_allclose(read_prior(file, GRID), expected, atol=1e-6)
    assert read_prior(file, GRID, "VOTES").sum() == pytest.approx(2, abs=1e-6)
    with pytest.raises(InputError, match=r"column must name one column of 'a.gpkg' .*'x'"):
        read_prior(file, GRID, "x")
    bad = write(tmp_path / "b.gpkg", shapes, columns={"pop": [800, -3, 7]})
    with pytest.raises(
        InputError, match=r"feature 2 of 'b.gpkg': people or pop.* must be a number in"
    ):
        read_prior(bad, GRID)
    far = write(tmp_path / "c.gpkg", [shapely.Point(0, 0)], columns={"pop": [5]})
    with pytest.raises(InputError, match="prior must hold people inside the square"):
        read_prior(far, GRID)


def test_a_document_of_districts_is_a_prior(tmp_path: Path) -> None:
    geometry = shapely.geometry.mapping(shapely.box(13.0, 52.0, 13.1, 52.1))
    feature = {"type": "Feature", "geometry": geometry, "properties": {"pop": 40}}
    file = tmp_path / "a.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    expected = np.zeros((8, 8))
    expected[:2, :2] = 10
    np.testing.assert_allclose(read_prior(file, GRID), expected, atol=1e-6)


def test_a_table_without_geometries_is_no_layer(tmp_path: Path) -> None:
    file = write(tmp_path / "a.gpkg", layer="one")
    pyogrio.raw.write(
        file, None, [np.array([1, 2])], ["code"], layer="codes", driver="GPKG", geometry_type=None
    )
    assert len(pyogrio.list_layers(file)) == 2
    check(read_regions(file, GRID))


def test_an_area_may_have_parts_beyond_the_map(tmp_path: Path) -> None:
    shapes = [WEST, shapely.box(20, 52, 21, 53)]
    area = read_area(write(tmp_path / "a.gpkg", shapes), GRID)
    np.testing.assert_allclose(area.weights, polygon(GRID, WEST), atol=1e-9)


def test_a_plane_of_a_building_site_is_a_plane(tmp_path: Path) -> None:
    """Its system is neither of degrees nor a projection."""
    site = (
        'ENGCRS["site",EDATUM["a corner stone"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],'
        'LENGTHUNIT["metre",1]]'
    )
    box = shapely.box(5, 10, 20, 30)
    file = write(tmp_path / "a.gpkg", [box], site)
    assert pyproj.CRS(pyogrio.read_info(file)["crs"]).is_engineering
    (found,) = read_regions(file, PLANE)
    np.testing.assert_array_equal(found.weights, polygon(PLANE, box))
