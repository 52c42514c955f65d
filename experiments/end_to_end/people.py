"""Where everybody is: a synthetic city, and its true map in the cells of a collection."""

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from client_sdk.kernels import cells_of
from client_sdk.shared import metres_per_degree
from ldpspatial.datasets import CITY_CENTER, CITY_SIDE_M, SyntheticMap, city
from ldpspatial.places.cell_maps import people_map

Array = NDArray[np.float64]


def _in_metres(n: int, rng: np.random.Generator) -> Array:
    return (city(n, rng) - CITY_CENTER) * metres_per_degree(CITY_CENTER[0])


# The city as a law that plans are made on: metres from its market square.
CITY = SyntheticMap("city", -CITY_SIDE_M / 2, -CITY_SIDE_M / 2, CITY_SIDE_M, _in_metres)


def truth_of(grid: Grid, positions: Array) -> Array:
    """Return the (d, d) shares of people at (n, 2) latitudes and longitudes."""
    rows, cols, _ = cells_of(grid, positions[:, 0], positions[:, 1])
    return people_map(rows, cols, grid.cells) / len(positions)
