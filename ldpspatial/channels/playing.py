"""A simulated collection: what devices in given cells would report, and the counts.

Reports are drawn by the client's own integer arithmetic, so their law is the channel's column of
each cell and no other. To draw all counts at once, from the mean of those columns, would be
another law: it would redraw the people as well.
"""

import numpy as np
from numpy.typing import NDArray

from client_sdk import ResponseTable, kernels
from ldpspatial.errors import InputError
from ldpspatial.validate import check_generator, instance, whole_array

Ints = NDArray[np.int64]


def draw_reports(
    table: ResponseTable, rows: Ints, cols: Ints, rng: np.random.Generator | None = None
) -> tuple[Ints, Ints]:
    """Draw one report for each cell.

    Parameters
    ----------
    table : client_sdk.ResponseTable
    rows, cols : (n,) integer arrays in [0, d)
        The cell of each device.
    rng : numpy.random.Generator, optional
        In place of the operating system's entropy, from which real devices draw.

    Returns
    -------
    rows, cols : (n,) int64 arrays in [-b, d + b)
        Output cells.

    Raises
    ------
    InputError
        Arrays that are not of integers or of one length, cells beyond the grid, another ``rng``.
    """
    cells = instance("table", table, ResponseTable).cells
    row, col = _pairs(rows, cols, 0, cells)
    if rng is None:
        return kernels.randomize_many(table, row, col)
    return kernels.draw_many(table, row, col, check_generator(rng).bytes)


def count_outputs(table: ResponseTable, rows: Ints, cols: Ints) -> Ints:
    """Return how often each output cell was reported.

    Parameters
    ----------
    table : client_sdk.ResponseTable
    rows, cols : (n,) integer arrays in [-b, d + b)
        Output cells.

    Returns
    -------
    (d + 2b, d + 2b) int64 array
        Output cell (row, col) is entry [row + b, col + b], as in the counts that
        :class:`~ldpspatial.channels.disk.StampChannel` takes.

    Raises
    ------
    InputError
        Arrays that are not of integers or of one length, or cells beyond those counts.
    """
    radius = instance("table", table, ResponseTable).radius
    return _counted(table, *_pairs(rows, cols, -radius, table.cells + radius))


def play(
    table: ResponseTable, rows: Ints, cols: Ints, rng: np.random.Generator | None = None
) -> Ints:
    """Return the counts of one report of each device: :func:`draw_reports`, counted."""
    return _counted(table, *draw_reports(table, rows, cols, rng))


def _counted(table: ResponseTable, rows: Ints, cols: Ints) -> Ints:
    """Return how often each output cell was reported, of cells that lie in the domain."""
    side = table.cells + 2 * table.radius
    index = (rows + table.radius) * side + cols + table.radius
    return np.bincount(index, minlength=side * side).reshape(side, side)


def _pairs(rows: Ints, cols: Ints, low: int, high: int) -> tuple[Ints, Ints]:
    """Return rows and columns of as many cells, both from ``low`` to below ``high``."""
    row = whole_array("rows", rows, ("n",), low, high)
    col = whole_array("cols", cols, ("n",), low, high)
    if len(row) != len(col):
        raise InputError(f"rows and cols must have one length, got {len(row)} and {len(col)}")
    return row, col
