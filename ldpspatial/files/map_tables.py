"""Maps in tables: a line for every cell of a grid, or rows of plain numbers."""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.files.columns import as_numbers, read_columns
from ldpspatial.files.map_place import Place
from ldpspatial.files.table_layout import Layout, find_column, fold, is_number, table_layout

Array = NDArray[np.float64]

CENTERS = {"geographic": ("latitude", "longitude"), "plane": ("y", "x")}


def read_map_table(path: str | os.PathLike[str], column: str) -> tuple[Array, Place | None]:
    """Return the map (R, C) in a CSV, TSV or Parquet file, and its place if the file tells it.

    A file whose first line holds nothing but numbers is taken for the rows of the map, south first.
    Any other has the columns row, col and `column`, and perhaps latitude and longitude, or y and x,
    of the cells' centres.

    Raises
    ------
    InputError
        The file is not such a table, or its lines are not those of a whole grid.
    """
    layout = table_layout(path, plain_row=True)
    if layout.delimiter is not None and all(map(is_number, layout.names)):
        every = Layout(layout.path, layout.names, layout.delimiter)  # without header
        return np.column_stack(column_numbers(every, range(len(layout.names)))), None
    positions = [find_column(layout, name, name) for name in ("row", "col")]
    positions.append(find_column(layout, "column", column))
    names = [fold(name) for name in layout.names]
    kind = next((k for k, pair in CENTERS.items() if all(map(names.count, pair))), None)
    if kind is not None:
        positions += [names.index(name) for name in CENTERS[kind]]
    rows, columns, *values = column_numbers(layout, positions)
    name = layout.path.name
    values = whole_grid(name, rows, columns, values)
    return values[0], None if kind is None else Place.of_centers(name, kind, *values[1:])


def whole_grid(name: str, rows: Array, columns: Array, values: Sequence[Array]) -> list[Array]:
    """Return values (n,) of cells as arrays (R, C), from the row and the column of each.

    Raises
    ------
    InputError
        A cell of the grid, which begins at row 0 and column 0, is missing or comes twice.
    """
    for field, numbers in (("row", rows), ("col", columns)):
        wrong = ~((numbers >= 0) & (numbers < 2**31) & (numbers % 1 == 0))
        if wrong.any():
            raise InputError(
                f"{field} must be a whole number from 0 on, got {numbers[wrong][0]:g} in {name!r}"
            )
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    # Exact in floats for every grid that is whole: one has fewer than 2^53 cells.
    cells = rows * shape[1] + columns
    order = np.argsort(cells)
    twice = np.flatnonzero(np.diff(cells[order]) == 0)
    grid = f"a grid of {shape[0]} x {shape[1]} cells"
    if len(twice):
        first = order[twice[0]]
        raise InputError(
            f"path must hold each cell of {grid} once, but {name!r} holds row {rows[first]:.0f}, "
            f"col {columns[first]:.0f} more often"
        )
    if len(cells) < shape[0] * shape[1]:
        raise InputError(
            f"path must hold each cell of {grid} once, empty ones too, but {name!r} holds "
            f"{len(cells)} of {shape[0] * shape[1]}"
        )
    return [each[order].reshape(shape) for each in values]


def column_numbers(layout: Layout, positions: Sequence[int]) -> list[Array]:
    """Return columns, each cell of which must be a number.

    Raises
    ------
    InputError
        One is not.
    """
    columns = read_columns(layout, positions)
    columns.check_whole(layout)
    found = []
    for array, at in zip(columns.arrays, positions, strict=True):
        field = repr(layout.names[at]) if layout.header_lines else f"column {at + 1}"
        numbers, _ = as_numbers(array, field)
        without = np.isnan(numbers)
        if without.any():
            raise InputError(
                f"{field} must hold a number in every row, but {int(without.sum())} of "
                f"{len(numbers)} rows of {layout.path.name!r} hold none "
                f"(first: row {int(without.argmax()) + 1})"
            )
        found.append(numbers)
    return found
