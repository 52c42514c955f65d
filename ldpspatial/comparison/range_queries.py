"""How well a map answers range queries: how many people are in a rectangle of cells."""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.errors import InputError
from ldpspatial.metrics._maps import normalised_pair
from ldpspatial.validate import (
    check_generator,
    map_shape,
    number_array,
    whole_array,
    whole_number,
)

Array = NDArray[np.float64]
Rectangles = NDArray[np.int64]

QUERIES = 200
SHARES = (1 / 8, 1 / 2)  # smallest and largest height and width, of those of the map


def random_rectangles(
    shape: tuple[int, int],
    count: int,
    rng: np.random.Generator,
    shares: tuple[float, float] = SHARES,
) -> Rectangles:
    """Draw rectangles of whole cells.

    Parameters
    ----------
    shape : (rows, columns)
    count : int >= 1
    rng : numpy.random.Generator
    shares : (float, float), 0 < smallest <= largest <= 1
        Height and width are drawn uniformly and each for itself between these parts of the map's,
        rounded to whole cells, at least one. The place is uniform among those inside.

    Returns
    -------
    (count, 4) int64 array
        First row, first column, and the row and column after the last ones.

    Raises
    ------
    InputError
        An argument breaks its rule.
    """
    shape = map_shape("shape", shape)
    count = whole_number("count", count, 1)
    check_generator(rng)
    smallest, largest = number_array("shares", shares, (2,), "(0, 1]").tolist()
    if smallest > largest:
        raise InputError(f"shares must rise, got {smallest} and {largest}")
    axes = []
    for cells in shape:
        least, most = (max(1, round(share * cells)) for share in (smallest, largest))
        length = rng.integers(least, most, count, endpoint=True)
        first = rng.integers(0, cells - length, endpoint=True)
        axes.append((first, first + length))
    (south, north), (west, east) = axes
    return np.column_stack([south, west, north, east])


def range_error(truth: ArrayLike, density: ArrayLike, rectangles: Rectangles) -> float:
    """Return the mean over rectangles of the absolute error of the share of people inside.

    Parameters
    ----------
    truth, density : (rows, columns) arrays
        Masses >= 0; each map is divided by its own total.
    rectangles : (count, 4) int array
        As :func:`random_rectangles` draws them.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    InputError
        A map breaks these rules, or a rectangle is empty or leaves the map.

    Examples
    --------
    >>> range_error([[1, 0]], [[0, 1]], np.array([[0, 0, 1, 1], [0, 0, 1, 2]]))
    0.5
    """
    first, second = normalised_pair(truth, density)
    rows, columns = first.shape
    given = whole_array("rectangles", rectangles, ("count", 4), 0, max(rows, columns) + 1)
    south, west, north, east = given.T
    inside = (south < north) & (north <= rows) & (west < east) & (east <= columns)
    if not (inside.any() and inside.all()):
        raise InputError(f"rectangles must hold cells of the {rows} x {columns} map and no others")
    sums = np.zeros((rows + 1, columns + 1))
    sums[1:, 1:] = (second - first).cumsum(axis=0).cumsum(axis=1)
    # sums[i, j] is the mass south of row i and west of column j: four look-ups a rectangle.
    errors = sums[north, east] - sums[south, east] - sums[north, west] + sums[south, west]
    return float(np.abs(errors).mean())


def standard_range_error(truth: Array, density: Array) -> float:
    """Return the error over 200 rectangles that are the same for all maps of one shape."""
    rows, columns = np.shape(truth)
    return range_error(truth, density, _standard_rectangles(rows, columns))


@cache
def _standard_rectangles(rows: int, columns: int) -> Rectangles:
    return random_rectangles((rows, columns), QUERIES, np.random.default_rng([rows, columns]))
