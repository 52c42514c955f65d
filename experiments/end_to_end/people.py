"""Where everybody is: a synthetic city, and its true map in the cells of a collection."""

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from client_sdk.kernels import cells_of
from ldpspatial.datasets import city_map
from ldpspatial.places.cell_maps import people_map

Array = NDArray[np.float64]

CITY = city_map()


def truth_of(grid: Grid, positions: Array) -> Array:
    """Return the (d, d) shares of people at (n, 2) latitudes and longitudes."""
    rows, cols, _ = cells_of(grid, positions[:, 0], positions[:, 1])
    return people_map(rows, cols, grid.cells) / len(positions)
