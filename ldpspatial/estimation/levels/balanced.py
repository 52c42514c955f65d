"""People of wide areas, drawn to their sums again where these say more than noise can.

A median is below its count more often than above it where most nodes hold a few people and some
hold many. In a node that is next to nothing; added up over wide areas it moves people far. How
many an area lacks is seen in its sum, but with the noise of all of its nodes. So on each coarse
level, from four nodes on, the squares of what all of its nodes lack are held against what noise
alone would make of them in all but one of twenty maps, and of what is missing as much is given back
as exceeds that (James and Stein 1961, by levels).

If the law of counts is true, a node's sum differs from what it was told by the noise that the
posterior took for noise: its variance is that of the noise less that of the posterior. Where
nearly all nodes are empty and known to be so, that is nearly all of the noise, and nothing is
given back.

Where neighbours told a part of what a node holds, what the nodes of an area lack cancels in part.
Noise alone then makes less of the squares than is reckoned here, and less is given back than could
be.

Where the area was asked as well, its least squares lie between its own sum and those of its nodes.
Its own sum knows nothing of the posterior, so what it says is missing is in part what the posterior
left open, and that part is given back besides.
"""

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.estimation.levels.shares import nearest_shares

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

BY_CHANCE = 0.05  # of maps in which noise alone moves anybody on a level: four tell little
ABOVE = 2  # levels from areas to nodes where it is asked whether noise was told
BELOW = 3  # levels from areas to nodes: what an area lacks hardly fills its empty nodes


def balanced(
    told: Array,
    noise: float,
    doubt: float,
    nodes: Ints,
    sums: Sequence[Array],
    variances: Sequence[Array],
) -> Array:
    """Return people of each node, none negative, as many in all as told.

    Parameters
    ----------
    told : (m,) array
        People of each node, not negative.
    noise, doubt : float
        Variances of the nodes' sums, and of the posterior of their people, added up over all of
        them.
    nodes : (m,) int64 array
        Numbers of all nodes of a level, as :class:`ldpspatial.places.quadtree.Quadtree` counts.
    sums, variances : sequences of arrays
        Least squares of all nodes of each level, from level 0 to that of ``nodes``: without bias.
        Where that is not above ``BELOW``, people stay as told.

    Examples
    --------
    >>> nodes = np.arange(256)
    >>> sums = [np.where(nodes < 64, 3.0, 5.0)]
    >>> while len(sums) < 5:
    ...     sums.insert(0, sums[0].reshape(-1, 4).sum(axis=1))
    >>> variances = [np.full(4**level, 4.0 ** (4 - level)) for level in range(5)]
    >>> found = balanced(np.full(256, 4.5), 256.0, 128.0, nodes, sums, variances)
    >>> found.reshape(4, 64).sum(axis=1).round(1).tolist()
    [194.4, 319.2, 319.2, 319.2]
    """
    finest = len(sums) - 1 - BELOW
    within = nodes >> 2 * BELOW
    above = np.zeros(1, dtype=np.int64)
    totals = np.array([told.sum()])
    moved = False
    for coarse in range(1, finest + 1):
        areas, at = np.unique(within >> 2 * (finest - coarse), return_inverse=True)
        people = np.bincount(at, told)
        missing = sums[coarse] - people
        below = float(variances[coarse].sum() / variances[-1].sum())
        gain = _gain(missing, min(below, 1.0), noise, doubt)
        moved |= gain > 0
        totals = _nearest(people + gain * missing, np.searchsorted(above, areas >> 2), totals)
        above = areas
    return _nearest(told, np.searchsorted(above, within), totals) if moved else told


def chance_of_less(told: Array, noise: Array, doubt: Array, nodes: Ints, sums: Array) -> float:
    """Return the chance that areas would lack still less than they do if the law were true.

    What areas of 16 nodes lack is held against noise alone, each by its own, as chi squared. Next
    to 0 says that nodes were told the noise of their sums, or by their neighbours.

    Parameters
    ----------
    told : (m,) array
        People of each node, not negative.
    noise, doubt : (m,) arrays
        Variances of the nodes' sums, and of the posteriors of their people.
    nodes : (m,) int64 array
        As in :func:`balanced`.
    sums : (m,) array
        Of the nodes, without bias.

    Examples
    --------
    >>> nodes, noise = np.arange(1024), np.random.default_rng(1).normal(0, 20, 1024)
    >>> known = np.full(1024, 400.0), np.zeros(1024), nodes, 10 + noise
    >>> round(chance_of_less(np.full(1024, 10.0), *known), 2)
    0.67
    >>> round(chance_of_less(10 + noise / 2, *known), 8)
    0.0
    """
    _, at = np.unique(nodes >> 2 * ABOVE, return_inverse=True)
    missing, alone = np.bincount(at, sums - told), np.bincount(at, np.maximum(noise - doubt, 0.0))
    known = alone > 0  # in the others all nodes were told their sums
    squares = float((missing[known] ** 2 / alone[known]).sum())
    return float(scipy.special.chdtr(known.sum(), squares)) if known.any() else 1.0


def _gain(missing: Array, below: float, noise: float, doubt: float) -> float:
    """Return which part of what all areas of a level lack is given back.

    ``below`` is the part that sums of nodes have in the least squares of areas, 1 where these were
    not asked; the variance of least squares is that part of the noise as well. Each node's noise is
    in one area: squares of independent noise add up over all of them, as chi squared.
    """
    squares = float((missing**2).sum())
    independent = (1 - below) * doubt
    alone = below * noise - below**2 * doubt + (1 - below) * independent
    most = alone * float(scipy.special.chdtri(len(missing), BY_CHANCE)) / len(missing)
    either = max(squares, alone)  # where chance made them small, the gain is that of the law
    return min((independent + max(squares - most, 0.0)) / either, 1.0) if either > 0 else 0.0


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
