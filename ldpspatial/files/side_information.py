"""What is known of a map from elsewhere, in files: where people can be, and public maps.

The first two are for the arguments of :class:`ldpspatial.Field`; public weights inside cells are
for shares of regions.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid, PositionError
from client_sdk.kernels import cells_of
from ldpspatial.errors import InputError
from ldpspatial.files.features import GEOJSON, Column, no_layers
from ldpspatial.files.gis import has_features, read_features
from ldpspatial.files.map_place import Place
from ldpspatial.files.map_tables import column_numbers
from ldpspatial.files.maps import read_map
from ldpspatial.files.points import LATITUDE_NAMES, LONGITUDE_NAMES, read_points
from ldpspatial.files.regions import SIDES, read_area
from ldpspatial.files.table_layout import (
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    existing_file,
    find_column,
    fold,
    is_number,
    listed,
    table_layout,
)
from ldpspatial.places.regions import polygon_window
from ldpspatial.places.within import Within, finer_grid
from ldpspatial.validate import instance, number_array, number_in

Array = NDArray[np.float64]
Path_ = str | os.PathLike[str]

TURN = 360.0  # degrees
SUPPORT_COLUMN, PRIOR_COLUMN = "share", "density"
PEOPLE_NAMES = ("people", "population", "pop", "inhabitants", "weight")


def read_support(path: Path_, grid: Grid, layer: str | None = None) -> Array:
    r"""Return the share of each cell where people can be.

    Parameters
    ----------
    path : path
        Regions as :func:`ldpspatial.files.regions.read_regions` reads them, whose union counts; or
        a map of cells as :func:`ldpspatial.files.maps.read_map` reads it, with the numbers 0 to 1
        in the column share.
    grid : client_sdk.Grid
    layer : str, optional
        Which layer of a GIS file of regions; needed where there are several.

    Returns
    -------
    (d, d) array in [0, 1]

    Raises
    ------
    InputError
        The file is neither of the two, or of another grid; a share is above 1; nobody could be
        anywhere.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "land.csv"
    >>> _ = file.write_text("name,south,west,north,east\nisland,0,0,1,2\n")
    >>> read_support(file, Grid.plane(0, 0, 2, 2)).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    file = existing_file(path)
    instance("grid", grid, Grid)
    if _is_of_regions(file):
        return read_area(file, grid, layer).weights
    no_layers(file, layer)
    held = f"regions ({', '.join(SIDES)}) or the share of each cell (row, col, {SUPPORT_COLUMN})"
    _check_columns("support", file, {"row", "col", SUPPORT_COLUMN}, held)
    found = read_map(file, SUPPORT_COLUMN)
    _check_grid("support", file, found.values, found.place, grid)
    if found.values.max() > 1:
        raise InputError(f"support must hold shares from 0 to 1, got {found.values.max():g}")
    return found.values


def read_prior(
    path: Path_, grid: Grid, column: str | None = None, layer: str | None = None
) -> Array:
    r"""Return a public map of about how many people are in each cell, up to a factor.

    Parameters
    ----------
    path : path
        A map of cells as :func:`ldpspatial.files.maps.read_map` reads it, such as the estimate of
        another month; one that says where it lies may have other cells, and people are taken as
        spread evenly in each. Or a table of places with latitude and longitude (y and x), such as
        towns or venues. Or a file of polygons, such as districts, in which people are taken as
        spread evenly, as :func:`ldpspatial.files.regions.read_regions` reads it; it may also hold
        points.
    grid : client_sdk.Grid
    column : str, optional
        Which numbers to read: density in maps; in tables of places and in files of polygons
        people, population, pop, inhabitants or weight, or one a place where a table has no such
        column.
    layer : str, optional
        Which layer of a file of polygons; needed where there are several.

    Returns
    -------
    (d, d) array of numbers >= 0

    Raises
    ------
    InputError
        The file is none of these, lacks the column, holds a number below 0, or nothing of it lies
        in the grid.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "towns.csv"
    >>> _ = file.write_text("name,y,x,population\nAst,0.5,0.5,900\nBek,1.5,0.2,300\n")
    >>> read_prior(file, Grid.plane(0, 0, 2, 2)).tolist()
    [[900.0, 0.0], [300.0, 0.0]]
    """
    file = existing_file(path)
    instance("grid", grid, Grid)
    return _public_map("prior", file, grid, grid, column, layer)


def read_within(
    path: Path_, grid: Grid, column: str | None = None, layer: str | None = None
) -> Within:
    r"""Return public weights of where people are inside cells, for shares of regions.

    Parameters
    ----------
    path : path
        A file that :func:`read_prior` reads, with more detail than the cells have: venues, towns,
        buildings as polygons, or a map of smaller cells. It must not come from the reports.
    grid : client_sdk.Grid
        Of the map whose cells are divided.
    column, layer : str, optional
        As in :func:`read_prior`.

    Returns
    -------
    Within
        On some 1024 finer cells a side.

    Raises
    ------
    InputError
        As in :func:`read_prior`; or the file is even inside every cell, as one of the grid's own
        cells is, or the grid's cells cannot be divided.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "venues.csv"
    >>> _ = file.write_text("name,y,x\nAst,0.5,0.5\nBek,1.5,0.2\n")
    >>> read_within(file, Grid.plane(0, 0, 2, 2)).known.tolist()
    [[True, False], [True, False]]
    """
    file = existing_file(path)
    fine = finer_grid(grid)
    people = _public_map("within", file, fine, grid, column, layer)
    try:
        return Within(grid, people)
    except InputError:
        raise InputError(
            "within must tell where in a cell people are, but the cells of "
            f"{file.name!r} are even inside"
        ) from None


def _public_map(
    field: str, file: Path, grid: Grid, collected: Grid, column: str | None, layer: str | None
) -> Array:
    """Return people in the cells of a grid; a map without a place has those of the collection."""
    if _is_of_features(file):
        found = _of_features(file, grid, column, layer)
    elif _is_of_points(file):
        no_layers(file, layer)
        found = _of_points(file, grid, column)
    else:
        no_layers(file, layer)
        held = f"places (latitude, longitude) or a number for each cell (row, col, {PRIOR_COLUMN})"
        needed = {"row", "col"} if column is not None else {"row", "col", PRIOR_COLUMN}
        _check_columns(field, file, needed, held)
        given = read_map(file, column or PRIOR_COLUMN)
        if given.place is None:
            _check_grid(field, file, given.values, None, collected)
        if given.place is None and grid == collected:
            found = given.values
        else:
            place = given.place or Place.of_grid(collected)
            found = _on_grid(field, given.values, place, Place.of_grid(grid), grid.cells)
    if not found.any():
        raise InputError(f"{field} must hold people inside the square, but {file.name!r} has none")
    return found


def _names(file: Path) -> list[str]:
    if not file.name.lower().endswith(TEXT_SUFFIXES + PARQUET_SUFFIXES):
        return []
    return [fold(name) for name in table_layout(file, plain_row=True).names]


def _check_columns(field: str, file: Path, needed: set[str], held: str) -> None:
    """Refuse a table with names of columns that is none of what it may be."""
    names = _names(file)
    if names and not all(map(is_number, names)) and not needed <= set(names):
        raise InputError(f"{field} must hold {held}, but {listed(table_layout(file))}")


def _is_of_regions(file: Path) -> bool:
    return _is_of_features(file) or set(SIDES) <= set(_names(file))


def _is_of_features(file: Path) -> bool:
    if file.suffix.lower() not in GEOJSON:
        return has_features(file)
    # Cells are features, too; their properties tell where in the grid they are.
    start = file.read_text(encoding="utf-8", errors="replace")[:10_000]
    return not ('"row"' in start and '"col"' in start)


def _is_of_points(file: Path) -> bool:
    names = _names(file)
    is_placed = any(map(names.count, LATITUDE_NAMES)) and any(map(names.count, LONGITUDE_NAMES))
    return is_placed and not ("row" in names and "col" in names)


def _of_points(file: Path, grid: Grid, column: str | None) -> Array:
    points = read_points(file, plane=grid.kind == "plane")
    layout = table_layout(file)
    if column is not None:
        at = find_column(layout, "column", column)
    else:
        usual = [k for k, name in enumerate(layout.names) if fold(name) in PEOPLE_NAMES]
        if len(usual) > 1:
            raise InputError(
                f"column must name one here: several have one of the usual names "
                f"({', '.join(PEOPLE_NAMES)}); {listed(layout)}"
            )
        at = usual[0] if usual else -1
    weights = np.ones(len(points)) if at < 0 else column_numbers(layout, [at])[0]
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError(f"{layout.names[at]!r} must be 0 or more in every row of {file.name!r}")
    rows, columns, is_inside = cells_of(grid, *points.coordinates.T)
    flat = rows[is_inside] * grid.cells + columns[is_inside]
    found = np.bincount(flat, weights[is_inside], minlength=grid.cells**2)
    return np.asarray(found.reshape(grid.cells, grid.cells))


def _of_features(file: Path, grid: Grid, column: str | None, layer: str | None) -> Array:
    """Return people spread over the polygons, or at the points, of a file."""
    found = np.zeros((grid.cells, grid.cells))
    chosen = Column("column", column, PEOPLE_NAMES)
    for number, feature in enumerate(read_features(file, grid, layer, chosen), 1):
        try:
            names = " or ".join(PEOPLE_NAMES if column is None else (column,))
            if feature.value is None:
                raise InputError(f"{names} must be a number, got none")
            people = number_in(names, feature.value, "[0, inf)")
            _spread(people, feature.geometry, grid, found)
        except (InputError, PositionError) as error:
            raise InputError(f"feature {number} of {file.name!r}: {error}") from None
    return found


def _spread(people: float, geometry: Any, grid: Grid, onto: Array) -> None:
    """Add the people of a geometry to the cells that it covers, evenly by area."""
    if geometry is None:
        raise InputError("geometry must be a Polygon, MultiPolygon or Point, got none")
    if (point := _point(geometry)) is not None:
        rows, columns, is_inside = cells_of(grid, point[1:2], point[:1])
        onto[rows[0], columns[0]] += people * is_inside[0]
        return
    south_north, west_east, weights, area = polygon_window(grid, geometry)
    covered = max(area, float(weights.sum()))
    onto[south_north, west_east] += weights * (people / covered if covered else 0.0)


def _point(geometry: Any) -> Array | None:
    """Return longitude (x) and latitude (y) of a point, of shapely or GeoJSON; None of others."""
    if isinstance(geometry, Mapping) and geometry.get("type") == "Point":
        at = geometry.get("coordinates")
        if not isinstance(at, list | tuple) or len(at) not in (2, 3):  # a height may follow
            raise InputError("geometry: coordinates of a Point must be two numbers")
        return number_array("geometry: coordinates of a Point", at[:2], (2,))
    if getattr(geometry, "geom_type", None) == "Point" and not geometry.is_empty:
        return np.array([geometry.x, geometry.y])
    return None


def _check_grid(field: str, file: Path, values: Array, place: Place | None, grid: Grid) -> None:
    cells = grid.cells
    if values.shape != (cells, cells):
        raise InputError(
            f"{field} must have {cells} x {cells} cells as the collection, but {file.name!r} has "
            f"{values.shape[0]} x {values.shape[1]}"
        )
    if place is not None and not place.is_close(Place.of_grid(grid), values.shape):
        raise InputError(
            f"{field} must be of the collection's grid, but the cells of {file.name!r} lie "
            "elsewhere"
        )


def _on_grid(field: str, values: Array, given: Place, wanted: Place, cells: int) -> Array:
    """Return how much of the cells of a map lies in each cell of a grid, spread evenly."""
    if given.kind != wanted.kind:
        raise InputError(f"{field} must lie on a {wanted.kind} grid, got one that is {given.kind}")
    west = given.west
    if given.kind == "geographic":  # the turn in which both lie
        west += TURN * np.round((wanted.west + wanted.width / 2 - west - given.width / 2) / TURN)
    rows = _overlaps(given.south, given.height, values.shape[0], wanted.south, wanted.height, cells)
    columns = _overlaps(west, given.width, values.shape[1], wanted.west, wanted.width, cells)
    return np.asarray(rows @ values @ columns.T)


def _overlaps(
    low: float, extent: float, parts: int, wanted: float, length: float, cells: int
) -> Array:
    """Return (cells, parts): which share of each part of one axis is in each cell of another."""
    ends = low + extent * np.arange(parts + 1) / parts
    edges = wanted + length * np.arange(cells + 1) / cells
    upper = np.minimum(ends[1:], edges[1:, None])
    lower = np.maximum(ends[:-1], edges[:-1, None])
    return np.asarray(np.maximum(upper - lower, 0.0) / (extent / parts))
