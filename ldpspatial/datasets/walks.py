"""Density-weighted walks: trajectories made from a map, as the DAM paper makes them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.compiled import compiled
from ldpspatial.errors import InputError
from ldpspatial.places.points import Points
from ldpspatial.validate import check_generator, number_array, positive, whole_number

Array = NDArray[np.float64]
MOST_WALKS = 1 << 24
MOST_STEPS = 1 << 20


def density_walks(
    density: ArrayLike,
    walks: int,
    rng: np.random.Generator,
    shortest: int = 2,
    longest: int = 200,
    corner: tuple[float, float] = (0.0, 0.0),
    side: float = 1.0,
) -> Points:
    """Draw walks over the cells of a map that prefer crowded cells.

    Du et al. (arXiv 2412.06541, appendix D), on a 300 x 300 map of taxi pick-ups: the first cell is
    uniform among those that hold points; the number of points is uniform between the bounds; the
    next cell is one of the (up to eight) neighbours, drawn in proportion to its points. Where all
    neighbours are empty the walk stays where it is. In each cell a point is drawn uniformly from
    its area: a density holds no points to choose from.

    Parameters
    ----------
    density : (g, g) array
        Points, or their share, in each cell; row 0 is the south.
    walks : int >= 1
    rng : numpy.random.Generator
    shortest, longest : int
        Least and largest number of points of a walk, at least 1.
    corner : (y, x)
        Corner of the map with the smallest coordinates.
    side : float > 0
        Side of the map, in the unit of the corner.

    Returns
    -------
    Points
        Walk after walk, in order; a walk is a user.

    Raises
    ------
    InputError
        The map is not a square of finite numbers from 0 on, or is empty; a number is out of bounds.

    Examples
    --------
    >>> import numpy as np
    >>> found = density_walks(np.ones((30, 30)), 5, np.random.default_rng(1), longest=4)
    >>> 10 <= len(found) <= 20
    True
    """
    mass = _checked_map(density)
    n = whole_number("walks", walks, 1, MOST_WALKS)
    least = whole_number("shortest", shortest, 1, MOST_STEPS)
    most = whole_number("longest", longest, least, MOST_STEPS)
    check_generator(rng)
    at_least = number_array("corner", corner, (2,))
    side = positive("side", side)
    cells = len(mass)
    first = rng.choice(np.flatnonzero(mass), size=n)
    lengths = rng.integers(least, most + 1, size=n)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows, columns = np.divmod(_walk(mass, first, starts, rng.random(starts[-1])), cells)
    within = rng.random((starts[-1], 2))
    at = at_least + (np.column_stack([rows, columns]) + within) * (side / cells)
    # Rounding may put a point on the far edge, which is outside of the map.
    beyond = np.nextafter(at_least + side, -np.inf)
    return Points(np.minimum(at, beyond), np.repeat(np.arange(n), lengths))


def _checked_map(density: ArrayLike) -> Array:
    numbers = number_array("density", density, ("g", "g"), "[0, inf)", bools=True)
    mass = np.ascontiguousarray(numbers)
    if not mass.any():
        raise InputError("density must hold a number above 0, got zeros only")
    return np.asarray(mass / mass.max())  # whose sums over neighbours do not overflow


@compiled
def _walk(mass, first, starts, drawn):  # type: ignore[no-untyped-def]
    """Return the cells of the walks; walk w fills entries starts[w] to starts[w + 1]."""
    walked = np.empty(starts[-1], np.int64)
    for walk in range(first.size):
        row = first[walk] // mass.shape[0]
        column = first[walk] % mass.shape[0]
        walked[starts[walk]] = first[walk]
        for k in range(starts[walk] + 1, starts[walk + 1]):
            row, column = _neighbour(mass, row, column, drawn[k])
            walked[k] = row * mass.shape[0] + column
    return walked


@compiled
def _neighbour(mass, row, column, uniform):  # type: ignore[no-untyped-def]
    """Return a neighbour drawn in proportion to its mass; the cell itself where none has any."""
    side = mass.shape[0]
    weights = np.zeros(9)
    for way in range(9):
        r = row + way // 3 - 1
        c = column + way % 3 - 1
        if way != 4 and 0 <= r < side and 0 <= c < side:
            weights[way] = mass[r, c]
    left = uniform * weights.sum()
    chosen = 4
    for way in range(9):
        if weights[way] > 0:  # the last of these takes what rounding leaves over
            chosen = way
            left -= weights[way]
            if left < 0:
                break
    return row + chosen // 3 - 1, column + chosen % 3 - 1
