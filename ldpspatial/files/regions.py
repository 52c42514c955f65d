"""Regions in files: rectangles in tables, polygons in GIS files, read, and written with numbers."""

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import ArrayLike, NDArray

from client_sdk import Grid
from client_sdk.shared import TURN, UNIT
from ldpspatial.errors import InputError, InputWarning
from ldpspatial.files.atomic import replacing
from ldpspatial.files.columns import as_numbers, read_columns
from ldpspatial.files.features import Column, Feature, no_layers
from ldpspatial.files.gis import FEATURE_SUFFIXES, geopackage, has_features, read_features
from ldpspatial.files.table_layout import (
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    existing_file,
    find_column,
    fold,
    table_layout,
)
from ldpspatial.places.regions import Region, check_regions, united
from ldpspatial.validate import file_path, instance, number_array, shown, true_or_false

Path_ = str | os.PathLike[str]
Values = ArrayLike | list[float | None] | list[str]  # of a column: numbers, or texts

DEGREES = (180.0, 90.0)  # the most of longitude and latitude
HALF_TURN = 180.0  # in degrees
SIDES = ("south", "west", "north", "east")


def read_regions(
    path: Path_,
    grid: Grid,
    layer: str | None = None,
    name_column: str | None = None,
    named: bool = True,
) -> list[Region]:
    r"""Read the regions of a table of rectangles or of a file of polygons.

    Parameters
    ----------
    path : path
        A table (.csv, .tsv, each also gzipped, .parquet, .pq) with the columns name, south, west,
        north and east, a rectangle a row; or Polygons and MultiPolygons: a GeoJSON
        FeatureCollection (.geojson, .json), longitude first (extra ``regions``), or a Shapefile
        (.shp beside its parts, or .zip), GeoPackage (.gpkg), FlatGeobuf (.fgb), KML (.kml, .kmz),
        MapInfo (.tab, .mif) or GeoParquet (.parquet, .pq, .geoparquet) file (extra ``gis``).
    grid : client_sdk.Grid
        Of the map whose cells the regions cover. To a geographic one coordinates of GIS files are
        taken from the system that the file names; on a plane they are taken as they are.
    layer : str, optional
        Which layer of a GIS file; needed where there are several.
    name_column : str, optional
        Which column, or property, names the regions: else the one called name. A GIS file with
        columns must have it, in any case of its letters.
    named : bool
        Whether names are wanted. Without them, a GIS file needs no column of names.

    Returns
    -------
    list of Region
        In the order of the file. The third is called "region 3" where it has no name. One that
        lies outside of the map, or in part, says so (``on_map``). Geometries are GeoJSON in the
        coordinates of the grid. Where all lie outside and would not with their axes exchanged, or
        are degrees where the map is of a plane, an :class:`ldpspatial.errors.InputWarning` says so,
        as one does of a polygon that goes round more than half of the globe.

    Raises
    ------
    InputError
        The file is missing, damaged, empty or none of these, or its extra is not installed; there
        is no such layer or column; its coordinate system is unknown, or one of degrees for a plane;
        a number is missing or not finite; a region is no polygon or an invalid one. The message
        names the row or feature.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "regions.csv"
    >>> _ = file.write_text("name,south,west,north,east\nnorth,1,0,2,2\n")
    >>> [(each.name, each.weights.tolist()) for each in read_regions(file, Grid.plane(0, 0, 2, 2))]
    [('north', [[0.0, 0.0], [1.0, 1.0]])]
    """
    file = existing_file(path)
    instance("grid", grid, Grid)
    for field, text in (("layer", layer), ("name_column", name_column)):
        if text is not None:
            instance(field, text, str)
    true_or_false("named", named)
    if has_features(file):
        column = Column("name_column", name_column, ("name",)) if named else None
        found = _polygons(file, grid, read_features(file, grid, layer, column))
        _warn_of_wide(file, found, grid)
    elif file.name.lower().endswith((*TEXT_SUFFIXES, *PARQUET_SUFFIXES)):
        no_layers(file, layer)
        found = _rectangles(file, grid, name_column)
    else:
        known = (*TEXT_SUFFIXES, *PARQUET_SUFFIXES, *FEATURE_SUFFIXES)
        raise InputError(f"path must end in one of {', '.join(known)}, got {file.name!r}")
    if not found:
        raise InputError(f"path must hold at least one region, but {file.name!r} holds none")
    if named and (fault := _misplacement(found, grid)):
        warnings.warn(
            f"all regions of {file.name!r} lie outside of the map's square: {fault}",
            InputWarning,
            stacklevel=2,
        )
    return found


def read_area(path: Path_, grid: Grid, layer: str | None = None) -> Region:
    """Read the area that regions make together, which need no names: the union of them.

    Parameters
    ----------
    path, grid, layer
        As of :func:`read_regions`.

    Raises
    ------
    InputError
        As of :func:`read_regions`; or all of the area is outside of the map; or shapely is missing
        where there are several regions.
    """
    found = read_regions(path, grid, layer, named=False)
    if not any(region.on_map for region in found):
        fault = _misplacement(found, grid)
        raise InputError(
            f"path must hold a region that overlaps the map, but all of {Path(path).name!r} lie "
            f"outside of its square{fault and ': '}{fault}"
        )
    return united(grid, found)


def _misplacement(regions: Sequence[Region], grid: Grid) -> str:
    """Say what is likely wrong with coordinates of regions that all lie outside, or nothing."""
    if any(region.on_map for region in regions):
        return ""
    corners = [np.array(list(_positions(each.geometry))) for each in regions if each.geometry]
    # Longitude (x) first: of its rectangle each has a least and a largest.
    ends = [(each.min(axis=0), each.max(axis=0)) for each in corners]
    if any(_meets(grid, *low, *high) for low, high in ends):
        return "are latitude and longitude (y and x) exchanged?"
    square = np.array([grid.west, grid.south, grid.west + grid.width, grid.south + grid.height])
    square = square / UNIT
    are_degrees = [(np.abs(each) <= DEGREES).all() for each in corners]
    if grid.kind == "plane" and all(are_degrees) and (np.abs(square) > DEGREES * 2).any():
        return "are they in degrees? The map is of a plane"
    return ""


def _warn_of_wide(file: Path, regions: Sequence[Region], grid: Grid) -> None:
    """Warn of a polygon that was likely meant to cross the antimeridian and goes the other way."""
    if grid.kind == "plane":
        return
    for region in regions:
        rings = _rings(region.geometry) if region.geometry else ()
        widest = max((float(np.ptp([x for x, *_ in ring])) for ring in rings), default=0.0)
        if widest > HALF_TURN:
            warnings.warn(
                f"region {region.name!r} of {file.name!r} is {widest:g} degrees wide: a polygon "
                "across the antimeridian runs on past 180, or comes in two parts",
                InputWarning,
                stacklevel=3,
            )


def _positions(geometry: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    """Yield the positions of a GeoJSON Polygon or MultiPolygon."""
    for ring in _rings(geometry):
        yield from ((position[0], position[1]) for position in ring)


def _rings(geometry: Mapping[str, Any]) -> Iterator[Sequence[Sequence[float]]]:
    """Yield the rings of a GeoJSON Polygon or MultiPolygon."""
    polygons = geometry["coordinates"]
    for rings in polygons if geometry["type"] == "MultiPolygon" else [polygons]:
        yield from rings


def _meets(grid: Grid, south: float, west: float, north: float, east: float) -> bool:
    """Tell whether a rectangle meets the square, in whichever turn of longitudes it is."""
    turn = TURN / UNIT if grid.kind == "geographic" else 0.0
    square = grid.south / UNIT, (grid.south + grid.height) / UNIT
    left, right = grid.west / UNIT, (grid.west + grid.width) / UNIT
    across = any(west + k * turn < right and east + k * turn > left for k in (-1, 0, 1))
    return south < square[1] and north > square[0] and across


def write_regions_csv(
    path: Path_, regions: Sequence[Region], columns: Mapping[str, Values]
) -> None:
    """Write a table with a line for each region: its name, then what is in every column.

    Parameters
    ----------
    path : path
    regions : sequence of Region
    columns : mapping of str to (n,) array of finite numbers, or list of n str
        By the name of the column, a number or a text for each region. A list of numbers may hold
        None where nothing is known: that field stays empty.

    Raises
    ------
    InputError
        There is no region, a column has another length, or the file cannot be written.
    """
    file = file_path("path", path)
    held = _columns("columns", columns, check_regions(regions))
    names = _texts(region.name for region in regions)
    known = {name: pa.array(each, from_pandas=True) for name, each in held.items()}
    table = pa.table({"name": names, **known})  # NaN, as pandas has it, is nothing
    with replacing(file) as stream:
        pa_csv.write_csv(table, stream)


def write_regions_geojson(
    path: Path_,
    regions: Sequence[Region],
    properties: Mapping[str, Values],
    members: Mapping[str, Any],
) -> None:
    """Write a GeoJSON FeatureCollection (RFC 7946), one region to a line.

    Parameters
    ----------
    path : path
    regions : sequence of Region
        One without a geometry becomes a feature without a place.
    properties : mapping of str to (n,) array of finite numbers, or list of n str
        Properties of the features beside ``name``. A list of numbers may hold None where nothing is
        known: null in the file.
    members : mapping of str to JSON value
        Further members of the collection.

    Raises
    ------
    InputError
        There is no region, a property has another length, a geometry or member is not JSON, or the
        file cannot be written.
    """
    file = file_path("path", path)
    held = _columns("properties", properties, check_regions(regions))
    instance("members", members, dict)
    plain = {name: list(map(_or_null, values.tolist())) for name, values in held.items()}
    head = _json("members", {"type": "FeatureCollection", **members})[:-1]
    features = [
        _json(
            f"regions: geometry of {shown(region.name)}",
            {
                "type": "Feature",
                "geometry": region.geometry,
                "properties": {
                    "name": region.name,
                    **{name: values[k] for name, values in plain.items()},
                },
            },
        )
        for k, region in enumerate(regions)
    ]
    lines = ",\n".join(features)
    with replacing(file) as stream:
        stream.write(f'{head}, "features": [\n{lines}\n]}}\n'.encode())


def write_regions_geopackage(
    path: Path_,
    regions: Sequence[Region],
    properties: Mapping[str, Values],
    in_degrees: bool,
) -> None:
    """Write a GeoPackage of one layer, ``regions``, which every GIS opens.

    Parameters
    ----------
    path : path
    regions : sequence of Region
        One without a geometry becomes a row without a place.
    properties : mapping of str to (n,) array of finite numbers, or list of n str
        Columns beside ``name``. A list of numbers may hold None where nothing is known: NULL.
    in_degrees : bool
        Whether coordinates are WGS 84; else they are of a plane that has no name.

    Raises
    ------
    InputError
        There is no region, a property has another length, a geometry is not GeoJSON, the file
        cannot be written, or the extra ``gis`` is missing.
    """
    file = file_path("path", path)
    held = _columns("properties", properties, check_regions(regions))
    columns = {"name": _texts(region.name for region in regions), **held}
    geometries = [region.geometry for region in regions]
    content = geopackage(geometries, columns, true_or_false("in_degrees", in_degrees))
    with replacing(file) as stream:
        stream.write(content)


def _rectangles(file: Path, grid: Grid, name_column: str | None) -> list[Region]:
    layout = table_layout(file)
    called = "name"
    if name_column is not None:
        called = layout.names[find_column(layout, "name_column", name_column)]
    wanted = (called, *SIDES)
    names_here = [name if name == called else fold(name) for name in layout.names]
    missing = [name for name in wanted if names_here.count(name) != 1]
    if missing:
        raise InputError(
            f"path must have the columns {', '.join(wanted)} once each, "
            f"but {file.name!r} lacks or repeats {', '.join(missing)}"
        )
    # As labels, so that a message can tell what stands in the place of a number.
    columns = read_columns(layout, [], [names_here.index(name) for name in (*SIDES, called)])
    columns.check_whole(layout)
    *fields, names = columns.arrays
    numbers = [as_numbers(each, side)[0] for each, side in zip(fields, SIDES, strict=True)]
    regions = []
    for row, given in enumerate(names.to_pylist()):
        place = f"row {row + 1} of {file.name!r}"
        for side, values, cells in zip(SIDES, numbers, fields, strict=True):
            if np.isnan(values[row]):
                raise InputError(f"{place}: {side} must be a number, got {_field(cells[row])}")
        box = [float(values[row]) for values in numbers]
        text = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
        try:
            regions.append(Region.rectangle(_name(text, row + 1), grid, *box))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    return regions


def _polygons(file: Path, grid: Grid, features: Sequence[Feature]) -> list[Region]:
    regions = []
    for number, feature in enumerate(features, 1):
        try:
            if feature.geometry is None:
                raise InputError("geometry must be a Polygon or MultiPolygon, got none")
            name = _name(feature.key if _is_blank(feature.value) else feature.value, number)
            regions.append(Region.polygon(name, grid, feature.geometry))
        except InputError as error:
            raise InputError(f"feature {number} of {file.name!r}: {error}") from None
    return regions


def _name(given: object, number: int) -> str:
    return f"region {number}" if _is_blank(given) else str(given)


def _is_blank(name: object) -> bool:
    return name is None or (isinstance(name, str) and not name.strip())


def _field(cell: Any) -> str:
    """Return what stands in a field of a table, for an error message.

    It may be told, unlike the fields of files of positions: regions are drawn, and are nobody's.
    """
    value = cell.as_py()
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    empty = text is None or (isinstance(text, str) and not text.strip())
    return "an empty field" if empty else shown(text)


def _columns(
    field: str, given: Mapping[str, Values], regions: Sequence[Region]
) -> dict[str, NDArray[Any]]:
    instance(field, given, dict)
    return {name: _column(f"{field}: {name}", each, len(regions)) for name, each in given.items()}


def _column(field: str, given: Values, n: int) -> NDArray[Any]:
    """Return a column of n numbers, NaN for None, or of n texts where it is a list of texts."""
    if isinstance(given, list) and len(given) == n:
        texts = [each for each in given if isinstance(each, str)]
        if len(texts) == n:
            return _texts(texts)
        known = [each is not None for each in given]
        numbers = [each if is_known else 0.0 for each, is_known in zip(given, known, strict=True)]
        return np.where(known, number_array(field, numbers, (n,)), np.nan)
    return number_array(field, given, (n,))


def _or_null(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


def _texts(given: Iterable[str]) -> NDArray[Any]:
    """Return texts as UTF-8 has them: in JSON one may hold half of a surrogate pair."""
    return np.array([each.encode("utf-8", "replace").decode() for each in given], object)


def _json(field: str, value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{field} must be JSON with finite numbers") from None
