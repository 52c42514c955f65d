"""From noisy masses to a density: negatives count as zero."""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def density_of_masses(masses: Array | Ints) -> Array:
    """Return masses without their negatives, divided by their sum; uniform where none is positive.

    The sum is that of noisy numbers: the number of users is not public.

    Examples
    --------
    >>> density_of_masses(np.array([[3.0, -1.0], [0.0, 1.0]])).tolist()
    [[0.75, 0.0], [0.0, 0.25]]
    """
    positive = np.maximum(masses, 0).astype(np.float64)
    total = positive.sum()
    density: Array = positive / total if total > 0 else np.full(masses.shape, 1 / masses.size)
    return density


def spread_evenly(tree: Quadtree, level: int, nodes: Ints, masses: Array) -> Array:
    """Return a map on which the mass of each node is spread evenly over its cells.

    Examples
    --------
    >>> spread_evenly(Quadtree((2, 3)), 1, np.array([0, 1]), np.array([8.0, 6.0])).tolist()
    [[2.0, 2.0, 3.0], [2.0, 2.0, 3.0]]
    """
    areas = tree.areas(level).ravel()[tree.positions(level, nodes)]
    return tree.spread(level, nodes, masses / areas)
