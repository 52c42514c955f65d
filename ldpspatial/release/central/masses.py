"""From noisy masses, some of them negative, to a density."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Negatives = Literal["zero", "nearest"]


def density_of_masses(masses: Array | Ints, negatives: Negatives = "zero") -> Array:
    """Return a density of masses; uniform where no mass, or no sum of them, is positive.

    The sum is that of noisy numbers: the number of users is not public.

    Parameters
    ----------
    masses : (rows, columns) array
    negatives : {"zero", "nearest"}
        Masses below zero are zero, and all are divided by their sum; or the map is the nearest
        one without negatives that has the sum of all masses, in squares: one number is taken off
        all masses, and what falls below zero is zero.

    Examples
    --------
    >>> density_of_masses(np.array([[3.0, -1.0], [0.0, 1.0]])).tolist()
    [[0.75, 0.0], [0.0, 0.25]]
    >>> density_of_masses(np.array([[3.0, -1.0], [-0.5, 1.0]]), "nearest").tolist()
    [[0.9, 0.0], [0.0, 0.1]]
    """
    used = masses.astype(np.float64)
    if negatives == "nearest":
        used -= _excess(used.ravel())
    used = np.maximum(used, 0)
    # A sum of masses that is not positive makes all of them zero.
    total = used.sum()
    density: Array = used / total if total > 0 else np.full(masses.shape, 1 / masses.size)
    return density


def _excess(masses: Array) -> float:
    """Return t with sum max(masses - t, 0) = sum masses; the largest mass where that is 0."""
    ordered = -np.sort(-masses)
    # What the largest k of them have too much, each: the largest k whose smallest stays above zero.
    excess = (np.cumsum(ordered) - masses.sum()) / np.arange(1, len(ordered) + 1)
    stays = np.flatnonzero(ordered > excess)
    # None stays where the sum is not above zero, or so little that rounding hides it.
    return float(excess[stays[-1]] if len(stays) else ordered[0])


def spread_evenly(tree: Quadtree, level: int, nodes: Ints, masses: Array) -> Array:
    """Return a map on which the mass of each node is spread evenly over its cells.

    Examples
    --------
    >>> spread_evenly(Quadtree((2, 3)), 1, np.array([0, 1]), np.array([8.0, 6.0])).tolist()
    [[2.0, 2.0, 3.0], [2.0, 2.0, 3.0]]
    """
    areas = tree.areas(level).ravel()[tree.positions(level, nodes)]
    return tree.spread(level, nodes, masses / areas)
