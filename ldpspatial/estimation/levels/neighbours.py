"""What the nodes around a node say of how many people it holds.

Crowds lie beside crowds. How much a neighbour tells differs from map to map, so nothing is
presumed of it: these numbers put nodes into groups, and offer the law of counts what it may learn
from or not (:mod:`ldpspatial.estimation.levels.law_of_counts`).
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.estimation.levels.noisy_level import NoisyLevel
from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]

AROUND = (3, 9)  # sides of the squares of nodes that say how many are around, in nodes
NEAR = (3, 5, 9)  # sides of the squares of nodes that foretell how many a node holds
SPREAD = 1 / 3  # deviation of the bell by which the nodes of such a square count, over its side


def around(tree: Quadtree, level: NoisyLevel, people: Array) -> Array:
    """Return the mean of the people in the nodes around each, itself left out."""
    places = tree.positions(level.level, level.nodes)
    grid = np.zeros(tree.sides(level.level))
    grid.ravel()[places] = people
    means = np.zeros(grid.shape)
    for side in AROUND:
        whole = scipy.ndimage.uniform_filter(grid, side, mode="nearest") * side**2
        means += (whole - grid) / (side**2 - 1)
    found: Array = means.ravel()[places]
    return found


def foretold(tree: Quadtree, level: NoisyLevel, sums: Array) -> Array:
    """Return how many each node would hold if it were as full as those around it, by their sums.

    The node's own sum is left out, so that its noise is not in what is foretold.

    Parameters
    ----------
    tree : Quadtree
    level : NoisyLevel
        All of its nodes.
    sums : (m,) array
        Least squares of these nodes.

    Returns
    -------
    (m, 3) array
        By squares of ``NEAR`` nodes a side, of which nearer ones count more; not negative.

    Examples
    --------
    >>> tree = Quadtree((8, 8))
    >>> level = NoisyLevel(3, tree.numbers(3), np.full(64, 5.0), 1.0)
    >>> foretold(tree, level, level.sums).round(6).min(), foretold(tree, level, level.sums).shape
    (np.float64(5.0), (64, 3))
    """
    places = tree.positions(level.level, level.nodes)
    areas = tree.areas(level.level).astype(np.float64)
    grid = np.zeros(areas.shape)
    grid.ravel()[places] = sums
    found = np.empty((len(sums), len(NEAR)))
    for k, side in enumerate(NEAR):
        people, cells = _others(grid, side), _others(areas, side)
        # A node without neighbours is foretold nobody, which says nothing of it.
        heights = people / np.where(cells > 0, cells, np.inf)
        found[:, k] = np.maximum(heights * areas, 0.0).ravel()[places]
    return found


def _others(grid: Array, side: int) -> Array:
    """Return weighted sums over the squares around all nodes, without the nodes themselves."""
    off = np.arange(side) - side // 2
    weights = np.exp(-((off / (SPREAD * side)) ** 2) / 2)
    whole = grid
    for axis in (0, 1):
        whole = scipy.ndimage.correlate1d(whole, weights, axis, mode="constant")
    # Of a full square but for rounding: where all others hold nothing, nothing is left.
    others: Array = whole - grid
    return others
