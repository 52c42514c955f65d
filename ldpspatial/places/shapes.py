"""Geometries as shapes in units of cells: read, checked, turned as the grid is, and their areas.

What needs shapely, which is optional, is given it (:func:`loaded`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from client_sdk.shared import TURN, UNIT
from ldpspatial.errors import InputError
from ldpspatial.validate import number_array, number_in

Array = NDArray[np.float64]

MOST_LATITUDE, MOST_LONGITUDE = 90.0, 360.0
MOST_PLANE = 1e12  # plane squares end at 3e8
KINDS = ("Polygon", "MultiPolygon")
LEAST_CORNERS = 3
NO_AREA = 1e-9  # of the rectangle around it: corners on one line have more than 0 by rounding


def coordinate(name: str, value: object, limit: float) -> float:
    """Return a coordinate that lies within a limit of 0."""
    return number_in(name, value, f"[{-limit:g}, {limit:g}]")


def limits(grid: Grid) -> tuple[float, float]:
    """Return how far from 0 a latitude (y) and a longitude (x) may be."""
    return (MOST_LATITUDE, MOST_LONGITUDE) if grid.kind == "geographic" else (MOST_PLANE,) * 2


def cell_units(grid: Grid, x: Array, y: Array) -> tuple[Array, Array]:
    """Return columns and rows, not rounded, of longitudes (x) and latitudes (y)."""
    columns = (x * UNIT - grid.west) / grid.width * grid.cells
    rows = (y * UNIT - grid.south) / grid.height * grid.cells
    return columns, rows


def turns(grid: Grid) -> tuple[float, ...]:
    """Return by how many columns a region may be off: 179 and -181 are one longitude."""
    if grid.kind == "plane":
        return (0.0,)
    turn = TURN / grid.width * grid.cells
    return tuple(k * turn for k in (-2, -1, 0, 1, 2))  # longitudes reach from -360 to 720


def loaded(what: str = "polygons") -> Any:
    """Return shapely, or say what needs it and how it is installed."""
    try:
        import shapely  # noqa: PLC0415 (it is optional)
        import shapely.affinity  # noqa: PLC0415
    except ImportError as error:
        raise InputError(f"{what} need shapely: install ldpspatial[regions]") from error
    return shapely


def shape_of(shapely: Any, geometry: Any) -> Any:
    """Return a shapely geometry with longitude (x) first."""
    if isinstance(geometry, shapely.Geometry):
        return geometry
    rule = "geometry must be corners (latitude, longitude), a GeoJSON or a shapely geometry"
    try:
        if isinstance(geometry, Mapping):
            if geometry.get("type") not in KINDS:
                raise InputError(
                    f"geometry must be a GeoJSON {' or '.join(KINDS)}, "
                    f"got the type {str(geometry.get('type'))[:40]!r}"
                )
            return shapely.geometry.shape(geometry)
        if not isinstance(geometry, Sequence | np.ndarray) or isinstance(geometry, str):
            raise InputError(f"{rule}, got {type(geometry).__name__}")
        corners = number_array("geometry", geometry, ("corners", 2))
        if len(corners) < LEAST_CORNERS:
            raise InputError(f"geometry must have at least {LEAST_CORNERS} corners")
        return shapely.Polygon(corners[:, ::-1])
    except InputError:
        raise
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, shapely.GEOSException):
        raise InputError(f"{rule}, got one that cannot be read") from None


def check_shape(shapely: Any, shape: Any, most: tuple[float, float]) -> None:
    """Refuse what is no polygon, crosses itself, has no area, or lies farther out than ``most``."""
    if shape.geom_type not in KINDS:
        raise InputError(f"geometry must be a {' or '.join(KINDS)}, got a {shape.geom_type}")
    if shape.is_empty:
        raise InputError(f"geometry must have corners, got an empty {shape.geom_type}")
    x, y = shapely.get_coordinates(shape).T
    names = ("latitude (y)", "longitude (x)")
    for name, values, limit in zip(names, (y, x), most, strict=True):
        bad = ~(np.isfinite(values) & (np.abs(values) <= limit))
        if bad.any():
            coordinate(f"geometry: every {name}", float(values[bad][0]), limit)
    if not shape.is_valid:
        reason = shapely.is_valid_reason(shape).split("[")[0].strip().lower()
        raise InputError(f"geometry must not cross or touch itself, got one with: {reason}")
    box = shapely.box(*shape.bounds).area
    if shape.area <= NO_AREA * box:
        raise InputError(f"geometry must have an area, got a {shape.geom_type} without")


def in_cells(shapely: Any, grid: Grid, shape: Any) -> Any:
    """Return a shape in units of cells, two-dimensional, whatever heights were given."""

    def placed(points: Array) -> Array:
        return np.column_stack(cell_units(grid, points[:, 0], points[:, 1]))

    return shapely.transform(shape, placed)


def weights_of(shapely: Any, grid: Grid, shape: Any) -> Array:
    """Return the weights of a shape in units of cells."""
    rows, columns = window_of([] if shape.is_empty else [shape], grid.cells)
    weights = np.zeros((grid.cells, grid.cells))
    of_window = np.minimum(areas_of(shapely, shape, rows, columns), 1.0)
    weights[rows.start : rows.stop, columns.start : columns.stop] = of_window
    return weights


def as_geojson(shapely: Any, grid: Grid, shape: Any) -> Mapping[str, Any]:
    """Return a shape in units of cells as GeoJSON."""

    def placed(points: Array) -> Array:
        x = (points[:, 0] / grid.cells * grid.width + grid.west) / UNIT
        y = (points[:, 1] / grid.cells * grid.height + grid.south) / UNIT
        return np.column_stack([x, y])

    mapping: Mapping[str, Any] = shapely.geometry.mapping(shapely.transform(shape, placed))
    return mapping


def copies_of(shapely: Any, grid: Grid, shape: Any) -> list[Any]:
    """Return a shape in units of cells in all turns in which it may meet the square."""
    moved = [shapely.affinity.translate(shape, turn) for turn in turns(grid)]
    square = shapely.box(0, 0, grid.cells, grid.cells)
    return [each for each in moved if shapely.intersects(square, shapely.envelope(each))]


def window_of(shapes: Sequence[Any], cells: int) -> tuple[range, range]:
    """Return the rows and columns that shapes in units of cells may cover."""
    if not shapes:
        return range(0), range(0)
    bounds = np.array([shape.bounds for shape in shapes])
    west, south = np.clip(np.floor(bounds[:, :2].min(0)), 0, cells).astype(int).tolist()
    east, north = np.clip(np.ceil(bounds[:, 2:].max(0)), 0, cells).astype(int).tolist()
    return range(south, north), range(west, east)


def areas_of(shapely: Any, shape: Any, rows: range, columns: range) -> Array:
    """Return the area that a shape in units of cells has in each cell, a row at a time."""
    weights = np.zeros((len(rows), len(columns)))
    lefts = np.arange(columns.start, columns.stop)
    shapely.prepare(shape)
    for at, row in enumerate(rows if len(columns) else ()):
        boxes = shapely.box(lefts, row, lefts + 1, row + 1)
        inside = shapely.contains_properly(shape, boxes)  # much faster, and most of a large shape
        weights[at, inside] = 1.0
        strip = shapely.intersection(shape, shapely.box(columns.start, row, columns.stop, row + 1))
        weights[at, ~inside] = shapely.area(shapely.intersection(strip, boxes[~inside]))
    return weights
