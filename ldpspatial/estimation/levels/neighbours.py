"""What the nodes around a node say of how many people it holds.

Crowds lie beside crowds. How much a neighbour tells differs from map to map, so nothing is
presumed of it: these numbers put nodes into groups, and offer the law of counts what it may learn
from or not (:mod:`ldpspatial.estimation.levels.law_of_counts`).
"""

from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.estimation.levels.law_of_counts import posterior
from ldpspatial.estimation.levels.noisy_level import NoisyLevel
from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]

AROUND = (3, 9)  # sides of the squares of nodes that say how many are around, in nodes
NEAR = (3, 5, 9)  # sides of the squares of nodes that foretell how many a node holds
HALF = 5  # the same of the squares of which one half foretells, as along a shore
SPREAD = 1 / 3  # deviation of the bell by which the nodes of such a square count, over its side


def around(tree: Quadtree, level: NoisyLevel, people: Array) -> Array:
    """Return two means, added, of the people in the nodes around each, itself left out."""
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
    (m, 7) array
        By squares of ``NEAR`` nodes a side, of which nearer ones count more, and by the nodes to
        the south, north, west and east alone: along a shore one half of a square tells more than
        the whole. Not negative.

    Examples
    --------
    >>> tree = Quadtree((8, 8))
    >>> level = NoisyLevel(3, tree.numbers(3), np.full(64, 5.0), 1.0)
    >>> found = foretold(tree, level, level.sums)
    >>> found.shape, float(found[:, :3].min().round(6)), float(found.max().round(6))
    ((64, 7), 5.0, 5.0)
    """
    found = [np.maximum(told, 0.0) for told, _ in _ways(tree, level, sums)]
    return np.column_stack(found)


def foretold_by_law(tree: Quadtree, level: NoisyLevel, sums: Array) -> Array:
    """Return what :func:`foretold` does, with less of the noise that the neighbours' sums have.

    Each way of foretelling is a sum with noise as well, nearly normal, and the law of what it would
    be without is learned from all nodes: of each the mean of its posterior is taken. Along edges,
    where fewer nodes are around, noise is larger than is reckoned here. The level has noise.

    Examples
    --------
    >>> tree = Quadtree((32, 32))
    >>> noise = np.random.default_rng(1).laplace(0, 10, 1024)
    >>> level = NoisyLevel(5, tree.numbers(5), 5 + noise, 200.0)
    >>> for way in (foretold, foretold_by_law):
    ...     off = way(tree, level, level.sums) - 5
    ...     print(np.sqrt(np.square(off).mean(axis=0)).round(1)[:3].tolist())
    [4.9, 3.5, 2.2]
    [1.0, 1.2, 1.0]
    """
    found = [_by_law(told, noise) for told, noise in _ways(tree, level, sums)]
    return np.column_stack(found)


def _by_law(told: Array, noise: Array) -> Array:
    """Return the means of the posteriors; nobody of nodes without neighbours, which have no noise.

    On a map one cell wide no node has neighbours on two of its sides.
    """
    means = np.zeros(len(told))
    known = noise > 0
    if known.any():
        means[known] = posterior(told[known], float(np.median(noise[known])), excess=0.0).mean
    return means


def _ways(tree: Quadtree, level: NoisyLevel, sums: Array) -> Iterator[tuple[Array, Array]]:
    """Yield what is foretold of each node in each way, and the variance of its noise."""
    places = tree.positions(level.level, level.nodes)
    areas = tree.areas(level.level).astype(np.float64)
    grid, variances = np.zeros(areas.shape), np.zeros(areas.shape)
    grid.ravel()[places] = sums
    variances.ravel()[places] = level.variance + level.per_person * np.maximum(sums, 0.0)
    for rows, columns in _weights():
        people, cells = (_others(each, rows, columns) for each in (grid, areas))
        noise = _others(variances, rows**2, columns**2)
        # A node without neighbours is foretold nobody, which says nothing of it.
        part = areas / np.where(cells > 0, cells, np.inf)
        yield (people * part).ravel()[places], (noise * part**2).ravel()[places]


def _weights() -> Iterator[tuple[Array, Array]]:
    """Yield how nodes count by how many rows, and how many columns, they are away."""
    for side in NEAR:
        yield _bell(side), _bell(side)
    bell = _bell(HALF)
    below = np.where(np.arange(HALF) < HALF // 2, bell, 0.0)
    for half in (below, below[::-1]):
        yield half, bell
    for half in (below, below[::-1]):
        yield bell, half


def _bell(side: int) -> Array:
    off = np.arange(side) - side // 2
    weights: Array = np.exp(-((off / (SPREAD * side)) ** 2) / 2)
    return weights


def _others(grid: Array, rows: Array, columns: Array) -> Array:
    """Return weighted sums over the nodes around all nodes, without the nodes themselves."""
    across = scipy.ndimage.correlate1d(grid, columns, 1, mode="constant")
    whole = scipy.ndimage.correlate1d(across, rows, 0, mode="constant")
    own = rows[len(rows) // 2] * columns[len(columns) // 2]
    others: Array = whole - own * grid
    return others
