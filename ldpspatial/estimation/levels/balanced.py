"""People of wide areas, drawn to their sums again where these say more than noise can.

A median is below its count more often than above it where most nodes hold a few people and some
hold many. In a node that is next to nothing; added up over wide areas it moves people far. How
many an area lacks is seen in its sum, but with the noise of all of its nodes. So on each coarse
level, from four nodes on, the squares of what all of its nodes lack are held against what noise
alone would make of them, and of what is missing as much is given back as exceeds that (James and
Stein 1961, by levels).

If the law of counts is true, a node's sum differs from what it was told by the noise that the
posterior took for noise: its variance is that of the noise less that of the posterior. Where
nearly all nodes are empty and known to be so, that is nearly all of the noise, and nothing is
given back.
"""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.levels.shares import nearest_shares

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

SURE = 1.5  # times what noise alone is expected to make: four nodes tell little of a variance
BELOW = 3  # levels from areas to nodes: what an area lacks hardly fills its empty nodes


def balanced(told: Array, sums: Array, noise: Array, nodes: Ints, level: int) -> Array:
    """Return people of each node, none negative, as many in all as told.

    Parameters
    ----------
    told : (m,) array
        People of each node, not negative.
    sums : (m,) array
        Of the same nodes, without bias.
    noise : (m,) array
        What the noise is expected to add to the squared difference of the two.
    nodes : (m,) int64 array
        Numbers of the nodes of a level, as :class:`ldpspatial.places.quadtree.Quadtree` counts.
    level : int
        Their level. Where it is not above ``BELOW``, people stay as told.

    Examples
    --------
    >>> nodes = np.arange(256)
    >>> sums = np.where(nodes < 64, 3.0, 5.0)
    >>> found = balanced(np.full(256, 4.5), sums, np.full(256, 0.5), nodes, 4)
    >>> found.reshape(4, 64).sum(axis=1).round(1).tolist()
    [193.5, 319.5, 319.5, 319.5]
    """
    finest = level - BELOW
    within = nodes >> 2 * BELOW
    above = np.zeros(1, dtype=np.int64)
    totals = np.array([told.sum()])
    moved = False
    for coarse in range(1, finest + 1):
        areas, at = np.unique(within >> 2 * (finest - coarse), return_inverse=True)
        people = np.bincount(at, told)
        missing = np.bincount(at, sums) - people
        squares = float((missing**2).sum())
        # Each node's noise is in one area: squares of independent noise add up over all of them.
        gain = max(1 - SURE * float(noise.sum()) / squares, 0.0) if squares > 0 else 0.0
        moved |= gain > 0
        totals = _nearest(people + gain * missing, np.searchsorted(above, areas >> 2), totals)
        above = areas
    return _nearest(told, np.searchsorted(above, within), totals) if moved else told


def _nearest(wanted: Array, at: Ints, totals: Array) -> Array:
    """Return the nearest numbers, none negative, that sum to the total of the area each is in."""
    order = np.argsort(at, kind="stable")
    row = at[order]
    sizes = np.bincount(at, minlength=len(totals))
    column = np.arange(len(at)) - (np.cumsum(sizes) - sizes)[row]
    rows = np.zeros((len(totals), int(sizes.max())))
    exists = np.zeros(rows.shape, dtype=bool)
    rows[row, column] = wanted[order]
    exists[row, column] = True
    found = np.empty(len(wanted))
    found[order] = nearest_shares(rows, totals, exists)[row, column]
    return found
