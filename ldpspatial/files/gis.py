"""Polygons of GIS files: their layers, the column of their names, their coordinate systems.

GDAL reads the files (through pyogrio), but for GeoParquet, which its wheels leave out and pyarrow
reads; PROJ (pyproj) takes their coordinates to degrees. Both come with ``ldpspatial[gis]``.
"""

import io
import json
import math
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.files.features import (
    GEOJSON,
    Column,
    Feature,
    geojson_features,
    listed,
    no_layers,
)
from ldpspatial.files.table_layout import PARQUET_SUFFIXES
from ldpspatial.validate import shown

Array = NDArray[np.float64]

# Of GDAL's formats, some that load nothing from the network and write nothing beside the file. For
# GML it would do both.
HELD = (".shp", ".gpkg", ".fgb", ".kml", ".tab", ".mif")  # in an archive, too
GDAL_SUFFIXES = (*HELD, ".zip", ".kmz")
GEOPARQUET = ".geoparquet"
FEATURE_SUFFIXES = (*GEOJSON, *GDAL_SUFFIXES, GEOPARQUET)
DEGREES = "OGC:CRS84"  # WGS 84, longitude first
LONGEST = 10_000.0  # metres: a straight side of a projection is at most some 3 m off a shorter one
MOST_CORNERS = 1_000_000  # to add to one polygon: sides beyond the Earth are in a wrong unit


@dataclass(frozen=True)
class _Source:
    """One layer of a file: its rows, and in which coordinate system it is."""

    values: Sequence[object]
    geometries: Any  # WKB, None where there is none
    system: Any  # what pyproj makes a coordinate system of, or None


def has_features(file: Path) -> bool:
    """Tell whether a file is of a format with geometries: by its name, or what a Parquet holds."""
    suffix = file.suffix.lower()
    if suffix in FEATURE_SUFFIXES:
        return True
    return suffix in PARQUET_SUFFIXES and _geo_metadata(file) != {}


def read_features(
    file: Path, grid: Grid, layer: str | None, column: Column | None
) -> list[Feature]:
    """Return the features of one layer of a file, in degrees for a geographic grid.

    Parameters
    ----------
    file : Path
        One that :func:`has_features`.
    grid : client_sdk.Grid
        On a plane, coordinates are taken as they are; those of GeoJSON always are.
    layer : str, optional
        Needed where there are several.
    column : Column, optional
        Which column to read; without, features have no value. A GIS file with columns must have
        it.

    Raises
    ------
    InputError
        The extra ``gis`` is missing, the file damaged, the layer or the column not there, or the
        coordinate system unknown, or one of degrees where the grid is a plane.
    """
    suffix = file.suffix.lower()
    if suffix not in GDAL_SUFFIXES:
        no_layers(file, layer)
    if suffix in GEOJSON:
        return geojson_features(file, column)
    libraries = _Libraries()
    shapely = libraries.shapely
    try:
        with warnings.catch_warnings():
            # GDAL also warns of what is repaired here (order of rings) or left out (heights).
            warnings.simplefilter("ignore")
            if suffix in GDAL_SUFFIXES:
                source = _gdal_source(libraries, file, layer, column)
            else:
                source = _parquet_source(file, column)
            shapes = shapely.force_2d(shapely.from_wkb(source.geometries))
            move = _mover(libraries, file, source.system, grid)
    except InputError:
        raise
    except (
        RuntimeError,
        ValueError,
        KeyError,
        zipfile.BadZipFile,
        TypeError,
        OSError,
        shapely.GEOSException,
    ):
        parts = " (a .shp needs its .shx and .dbf beside it)" if suffix == ".shp" else ""
        raise InputError(
            f"path must be a GIS file that can be read, but {file.name!r} cannot{parts}"
        ) from None
    features = []
    for number, (value, shape) in enumerate(zip(source.values, shapes, strict=True), 1):
        try:
            features.append(Feature(value, None if shape is None else move(shape)))
        except InputError as error:
            raise InputError(f"feature {number} of {file.name!r}: {error}") from None
    return features


def check_installed() -> None:
    """Refuse where a package of the extra ``gis`` is missing."""
    _Libraries()


def geopackage(
    geometries: Sequence[Any], columns: dict[str, NDArray[Any]], in_degrees: bool
) -> bytes:
    """Return the content of a GeoPackage of one layer, ``regions``.

    Parameters
    ----------
    geometries : sequence of GeoJSON mapping or None
    columns : dict of str to (n,) array
    in_degrees : bool
        Whether the coordinates are WGS 84; else they are of a plane without a name.

    Raises
    ------
    InputError
        A geometry is not GeoJSON, or the extra ``gis`` is missing.
    """
    libraries = _Libraries()
    shapely = libraries.shapely
    try:
        shapes = [None if each is None else shapely.geometry.shape(each) for each in geometries]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, shapely.GEOSException):
        raise InputError("regions: geometry must be GeoJSON") from None
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a plane has no coordinate system
        libraries.pyogrio.raw.write(
            stream,
            shapely.to_wkb(np.array([*shapes, None], dtype=object)[:-1]),
            list(columns.values()),
            list(columns),
            layer="regions",
            driver="GPKG",
            geometry_type="Unknown",
            crs=DEGREES if in_degrees else None,
        )
    return stream.getvalue()


class _Libraries:
    """The packages of the extra, loaded when a GIS file is read and no sooner."""

    def __init__(self) -> None:
        try:
            import pyogrio  # noqa: PLC0415 (it is optional)
            import pyproj  # noqa: PLC0415
            import shapely  # noqa: PLC0415
        except ImportError as error:
            raise InputError(
                "GIS files need pyogrio, pyproj and shapely: install ldpspatial[gis]"
            ) from error
        self.pyogrio = pyogrio
        self.pyproj = pyproj
        self.shapely = shapely


def _gdal_source(
    libraries: _Libraries, file: Path, layer: str | None, column: Column | None
) -> _Source:
    place = _in_archive(file) if file.suffix.lower() == ".zip" else str(file.absolute())
    chosen = _layer(libraries, file, place, layer)
    columns = list(map(str, libraries.pyogrio.read_info(place, layer=chosen)["fields"]))
    wanted = [column.find(file, columns)] if column is not None and columns else []
    told, _, geometries, fields = libraries.pyogrio.raw.read(
        place, layer=chosen, columns=wanted, force_2d=True
    )
    values = map(_given, fields[0].tolist()) if wanted else [None] * len(geometries)
    return _Source(list(values), geometries, told["crs"])


def _given(value: object) -> object:
    """Return a value of GDAL, which gives NaN where a number is missing."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _in_archive(file: Path) -> str:
    """Return under which name GDAL finds what an archive holds: a file, or a folder of them."""
    with zipfile.ZipFile(file) as archive:
        names = [PurePosixPath(name) for name in archive.namelist()]
    # Archives of macOS hold a hidden twin of each file.
    found = [each for each in names if each.suffix.lower() in HELD and each.name[:2] != "._"]
    if len(found) == 1:
        return f"/vsizip/{file.absolute()}/{found[0]}"
    folders = {each.parent for each in found if each.suffix.lower() == ".shp"}
    if len(folders) == 1 and all(each.suffix.lower() == ".shp" for each in found):
        return f"/vsizip/{file.absolute()}/{folders.pop()}"
    raise InputError(
        f"path must be an archive of one GIS file or of one folder of Shapefiles, but "
        f"{file.name!r} holds {listed([str(each) for each in found]) if found else 'none'}"
    )


def _layer(libraries: _Libraries, file: Path, place: str, wanted: str | None) -> str:
    """Return the name of the layer to read: the one that is there, or the wanted one of several."""
    found = [str(name) for name, kind in libraries.pyogrio.list_layers(place) if kind is not None]
    if wanted is None and len(found) == 1:
        return found[0]
    if wanted in found:
        return str(wanted)
    got = "none was named" if wanted is None else f"got {shown(wanted)}"
    raise InputError(f"layer must name a layer of {file.name!r} ({listed(found)}), {got}")


def _geo_metadata(file: Path) -> dict[str, Any]:
    """Return what a Parquet file says of its geometries; nothing where it is a plain table."""
    try:
        held = pq.read_schema(file).metadata or {}
        found = json.loads(held.get(b"geo", b"{}"))
    except (pa.ArrowException, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _parquet_source(file: Path, column: Column | None) -> _Source:
    told = _geo_metadata(file)
    geometry = told["primary_column"]
    kept = told["columns"][geometry]
    if kept["encoding"] != "WKB":
        raise InputError(
            f"path must hold its geometries as WKB, but {file.name!r} has {shown(kept['encoding'])}"
        )
    columns = [name for name in pq.read_schema(file).names if name not in told["columns"]]
    wanted = [column.find(file, columns)] if column is not None and columns else []
    table = pq.read_table(file, columns=[geometry, *wanted])
    values = table[wanted[0]].to_pylist() if wanted else [None] * len(table)
    # A document without this member is in degrees; one with null does not know.
    return _Source(
        values, np.array(table[geometry].to_pylist(), dtype=object), kept.get("crs", DEGREES)
    )


def _mover(libraries: _Libraries, file: Path, given: Any, grid: Grid) -> Any:
    """Return what takes a geometry from the coordinate system of a file to that of a grid."""
    system = None if given is None else libraries.pyproj.CRS.from_user_input(given).to_2d()
    if grid.kind == "plane":
        if system is not None and system.is_geographic:
            raise InputError(
                f"path must be on the plane of the map, but {file.name!r} is in degrees "
                f"({system.name})"
            )
        return lambda shape: shape
    if system is None:
        raise InputError(
            f"path must say in which coordinate system it is, but {file.name!r} does not "
            "(a Shapefile says so in a .prj beside it)"
        )
    degrees = libraries.pyproj.CRS(DEGREES)
    if system.equals(degrees, ignore_axis_order=True):
        return lambda shape: shape
    if not (system.is_geographic or system.is_projected):
        raise InputError(
            f"path must be in degrees or in a projection of the Earth, but {file.name!r} is in "
            f"{system.name} ({system.type_name})"
        )
    transformer = libraries.pyproj.Transformer.from_crs(system, degrees, always_xy=True)
    unit = system.axis_info[0].unit_conversion_factor if system.is_projected else 0.0
    step = LONGEST / unit if unit else None
    return lambda shape: _in_degrees(libraries.shapely, transformer, step, shape)


def _in_degrees(shapely: Any, transformer: Any, step: float | None, shape: Any) -> Any:
    """Return a geometry in degrees, without a jump of longitudes where it crosses 180."""
    if shape.is_empty:
        return shape
    if shape.geom_type not in ("Polygon", "MultiPolygon"):
        return shapely.transform(shape, transformer.transform, interleaved=False)
    parts = []
    for part in (each for each in shapely.get_parts(shape) if not each.is_empty):
        middle, _ = transformer.transform(*shapely.get_coordinates(part.representative_point())[0])

        def moved(x: Array, y: Array, middle: float = middle) -> tuple[Array, Array]:
            east, north = transformer.transform(x, y)
            return east - 360.0 * np.round((east - middle) / 360.0), north

        fine = part if step is None else _fine(shapely, part, step)
        with np.errstate(invalid="ignore"):  # what is beyond the Earth is refused for what it is
            there = shapely.transform(fine, moved, interleaved=False)
            jumps = step is not None and _jumps(shapely, there)
        if jumps:
            raise InputError("geometry must not go around a pole, where longitudes meet")
        parts.append(there)
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)


def _fine(shapely: Any, part: Any, step: float) -> Any:
    """Return a polygon with corners along its sides, one a step, and no more than memory holds."""
    if not (part.is_valid and math.isfinite(part.length)):
        return part  # GEOS would mend what crosses itself, which is to be refused
    return shapely.segmentize(part, max(step, part.length / MOST_CORNERS))


def _jumps(shapely: Any, part: Any) -> bool:
    """Tell whether a polygon of short sides has one of half a turn."""
    rings = (part.exterior, *part.interiors)
    return any((np.abs(np.diff(shapely.get_coordinates(ring)[:, 0])) > 180).any() for ring in rings)
