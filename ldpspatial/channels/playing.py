"""A simulated collection: what devices in given cells would report, and the counts.

Reports are drawn by the client's own integer arithmetic, so their law is the channel's column of
each cell and no other. To draw all counts at once, from the mean of those columns, would be
another law: it would redraw the people as well.
"""

import numpy as np
from numpy.typing import NDArray

from client_sdk import ResponseTable, kernels
from ldpspatial.errors import InputError
from ldpspatial.validate import whole_array

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
    """
    if rng is None:
        return kernels.randomize_many(table, rows, cols)
    return kernels.draw_many(table, rows, cols, rng.bytes)


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
    radius = table.radius
    side = table.cells + 2 * table.radius
    row, col = (
        whole_array(name, at, ("n",), -radius, side - radius) + radius
        for name, at in (("rows", rows), ("cols", cols))
    )
    if len(row) != len(col):
        raise InputError(f"rows and cols must have one length, got {len(row)} and {len(col)}")
    return np.bincount(row * side + col, minlength=side * side).reshape(side, side)


def play(
    table: ResponseTable, rows: Ints, cols: Ints, rng: np.random.Generator | None = None
) -> Ints:
    """Return the counts of one report of each device: :func:`draw_reports`, counted."""
    return count_outputs(table, *draw_reports(table, rows, cols, rng))
