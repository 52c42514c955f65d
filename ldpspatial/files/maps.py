"""Maps from files: one number for every cell of a grid, in any format that results are written to.

Rows run south to north, columns west to east.
"""

import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client_sdk import ClientError, Collection
from ldpspatial.errors import InputError
from ldpspatial.files.map_place import Place
from ldpspatial.files.map_tables import read_map_table, whole_grid
from ldpspatial.files.table_layout import PARQUET_SUFFIXES, TEXT_SUFFIXES, existing_file
from ldpspatial.validate import file_path, instance

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellMap:
    """A map from a file.

    Attributes
    ----------
    values : (R, C) float64
        Finite numbers >= 0, not all 0; row 0 is the south, column 0 the west.
    place : Place or None
        Where it lies, if the file says so.
    """

    values: Array
    place: Place | None = None


def read_map(path: str | os.PathLike[str], column: str = "density") -> CellMap:
    r"""Read a map from a file.

    Parameters
    ----------
    path : path
        A table of cells (.csv, .tsv, each also gzipped, .parquet, .pq) with the columns row, col
        and `column`, or in text rows of plain numbers; cells as .geojson or .json; an estimate as
        .npz; an array of numbers as .npy.
    column : str
        Which numbers of the cells to read: a column, a property in GeoJSON, an array in npz.

    Returns
    -------
    CellMap

    Raises
    ------
    InputError
        The file is missing or damaged, has no such column, lacks a cell of the grid or has one
        twice, a number is negative, missing or not finite, or the map has its centre beyond a pole.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "map.csv"
    >>> _ = file.write_text("row,col,people\n0,0,3\n0,1,1\n")
    >>> read_map(file, "people").values.tolist()
    [[3.0, 1.0]]
    """
    file = file_path("path", path)
    instance("column", column, str)
    existing_file(file)
    suffix = file.suffix.lower()
    tables = TEXT_SUFFIXES + PARQUET_SUFFIXES
    if suffix in READERS:
        values, place = READERS[suffix](file, column)
    elif file.name.lower().endswith(tables):
        values, place = read_map_table(file, column)
    else:
        known = ", ".join((*tables, *READERS))
        raise InputError(f"path must end in one of {known}, got {file.name!r}")
    if values.ndim != 2 or values.size == 0:
        raise InputError(f"{column} must have rows and columns, got the shape {values.shape}")
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row, col = np.argwhere(bad)[0].tolist()
        raise InputError(
            f"{column} must be finite and 0 or more, got {values[row, col]} at row {row}, "
            f"col {col} of {file.name!r}"
        )
    if not values.any():
        raise InputError(f"{column} must be above 0 somewhere, but {file.name!r} holds zeros only")
    if place is not None and not place.is_between_poles:
        raise InputError(
            "latitude must lie between -90 and 90 at the centre of the map, but in "
            f"{file.name!r} it is {place.middle:g}"
        )
    return CellMap(values, place)


def common_place(first: CellMap, second: CellMap) -> Place | None:
    """Return where two maps lie, if the file of either says so.

    Raises
    ------
    InputError
        They are maps of different grids.
    """
    shape = first.values.shape
    if second.values.shape != shape:
        sizes = (" x ".join(map(str, each.values.shape)) for each in (first, second))
        raise InputError("both maps must have one grid, got {} and {} cells".format(*sizes))
    if first.place and second.place and not first.place.is_close(second.place, shape):
        raise InputError(
            "both maps must have one grid, but their cells lie in different places: "
            f"{first.place} and {second.place}"
        )
    return first.place or second.place


def _from_numpy(file: Path, column: str) -> tuple[Array, Place | None]:
    collection = None
    try:
        with file.open("rb") as stream:  # np.load leaves a damaged file open
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return _array(loaded, repr(file.name)), None
            if column not in loaded.files:
                raise InputError(
                    f"column must name an array of {file.name!r}, got {column!r}: "
                    f"it has {', '.join(loaded.files)}"
                )
            values = _array(loaded[column], column)
            if "collection" in loaded.files:
                collection = str(loaded["collection"])
    except InputError:
        raise
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise InputError(
            f"path must hold arrays of numbers as numpy writes them, but {file.name!r} does not"
        ) from None
    if collection is None:
        return values, None
    try:
        grid = Collection.from_json(collection).grid
    except ClientError as error:
        raise InputError(f"collection in {file.name!r}: {error}") from None
    # Counts of reports have a margin around the grid.
    place = Place.of_grid(grid) if values.shape == (grid.cells, grid.cells) else None
    return values, place


def _array(values: NDArray[Any], field: str) -> Array:
    if values.dtype.kind not in "biuf":
        raise InputError(f"{field} must be an array of numbers, got one of type {values.dtype}")
    return values.astype(np.float64)


def _from_geojson(file: Path, column: str) -> tuple[Array, Place | None]:
    try:
        document = json.loads(file.read_text(encoding="utf-8-sig"))
        cells = [feature["properties"] for feature in document["features"]]
        rows, columns = np.array([(cell["row"], cell["col"]) for cell in cells], np.float64).T
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise InputError(
            "path must be GeoJSON whose features have the properties row and col, whole numbers, "
            f"but {file.name!r} is not"
        ) from None
    numbers = [cell.get(column) for cell in cells]
    for number, cell in zip(numbers, cells, strict=True):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise InputError(
                f"column must name a property that is a number at every cell, got {column!r}: "
                f"row {cell['row']}, col {cell['col']} of {file.name!r} has the properties "
                f"{', '.join(cell)}"
            )
    (values,) = whole_grid(file.name, rows, columns, [np.array(list(map(_as_float, numbers)))])
    return values, _box(document)


def _as_float(number: float) -> float:
    """Return a number of a JSON document, infinite where it is whole and beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _box(document: dict[str, Any]) -> Place | None:
    """Return the place from the bounding box, if there is a good one."""
    kind = "plane" if document.get("plane") is True else "geographic"
    try:
        west, south, east, north = map(float, document["bbox"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    if not (0 < north - south < math.inf and 0 < east - west < math.inf):
        return None
    return Place(kind, south, west, north - south, east - west)


# By suffix, what returns values and place of a file that exists; all others are tables.
READERS: dict[str, Callable[[Path, str], tuple[Array, Place | None]]] = {
    ".npy": _from_numpy,
    ".npz": _from_numpy,
    ".geojson": _from_geojson,
    ".json": _from_geojson,
}
