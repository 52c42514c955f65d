"""Cell maps: arrays with one number for each cell of a grid, checked."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client_sdk import Grid
from ldpspatial.errors import InputError

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def cell_map(field: str, values: ArrayLike, grid: Grid) -> Array:
    """Return ``values`` as a float64 array that fits the grid.

    Parameters
    ----------
    field : str
        What error messages call the values.
    values : (d, d) array of finite numbers >= 0
        d is ``grid.cells``; row 0 is the south, column 0 the west.

    Raises
    ------
    InputError
        The values are not numbers, of another shape, negative or not finite.
    """
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{field} must be an array of numbers") from None
    shape = (grid.cells, grid.cells)
    if numbers.shape != shape:
        raise InputError(f"{field} must have the shape {shape} of the grid, got {numbers.shape}")
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        raise InputError(f"{field} must be finite and 0 or more, got {numbers[bad][0]}")
    return numbers


def people_map(rows: Ints, cols: Ints, cells: int) -> Ints:
    """Return how many people are in each cell of a square map, shape (cells, cells).

    Parameters
    ----------
    rows, cols : (n,) integer arrays in [0, cells)
        The cell of each.
    cells : int
        Along a side.
    """
    return np.bincount(rows * cells + cols, minlength=cells**2).reshape(cells, cells)
