"""How crowded the people of a part of a map are, learned from the sums above it.

Of a part's people a share u lies in a region in the mean, and the variance of what truly does is
c u (1 - u): c = 1 where they are all at one place, 0 where they are spread evenly. The sums of a
map say what c is for its nodes: of the halves a and b of a node with p people, (a - b)^2 is c p^2
in the mean, and what noise adds to it. A node counts by its people, not by their square, so that
those of a few full ones do not stand for all; and beside them goes one more, as full as the
fullest, all of whose people are at one place: as much as few nodes leave open.

What is smaller than every sum, a cell, is as crowded as the nodes above are, and as much more as
these are than the ones above them.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def crowding(sums: Array, variances: Array, people: Array) -> float:
    """Return how crowded people are in nodes of one level, with a standard error more.

    Parameters
    ----------
    sums, variances : (4, m) arrays
        Of a node's quadrants, south-west, south-east, north-west, north-east.
    people : (m,) array
        Of the nodes, not negative.

    Returns
    -------
    float in [0, 1]
        1 where there are no nodes.

    Examples
    --------
    >>> quadrants, exact = np.full((4, 400), 25.0), np.zeros((4, 400))
    >>> round(crowding(quadrants, exact, quadrants.sum(0)), 3)
    0.005
    >>> crowding(quadrants[:, :0], exact[:, :0], np.zeros(0))
    1.0
    """
    noise = variances.sum(0)
    south_west, south_east, north_west, north_east = sums
    rows = south_west + south_east - north_west - north_east
    columns = south_west + north_west - south_east - north_east
    weights = np.divide(1.0, people + np.sqrt(noise), out=np.zeros_like(noise), where=people > 0)
    halves = np.append(weights * ((rows**2 + columns**2) / 2 - noise), 0.0)
    squares = np.append(weights * people**2, 0.0)
    if not squares.any():
        return 1.0
    halves[-1] = squares[-1] = squares.max()
    found = halves.sum() / squares.sum()
    error = np.linalg.norm(halves - found * squares) / squares.sum()
    return float(np.clip(found + error, 0.0, 1.0))


def of_levels(seen: Iterable[float]) -> list[float]:
    """Return how crowded people are in nodes of each level, and in the smallest ones of all.

    Parameters
    ----------
    seen : iterable of float
        Of the nodes of each level that were divided, from the root down.

    Examples
    --------
    >>> of_levels([0.4, 0.2, 0.25])
    [0.4, 0.2, 0.25, 0.3125]
    """
    levels = list(seen)
    if not levels:
        return [1.0]
    below = levels[-1]
    if len(levels) > 1 and 0 < levels[-2] < below:
        below = min(below * (below / levels[-2]), 1.0)
    return [*levels, below]
