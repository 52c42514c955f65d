"""Cell maps: arrays with one number for each cell of a grid, checked."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client_sdk import Grid
from ldpspatial.validate import number_array

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
    return number_array(field, values, (grid.cells, grid.cells), "[0, inf)", bools=True)


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
