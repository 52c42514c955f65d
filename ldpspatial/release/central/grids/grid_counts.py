"""What the grids share: the number of people that their rules ask for, and counts in rectangles."""

from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy
from ldpspatial.release.central.central_release import with_noise
from ldpspatial.release.central.quantise import MASS
from ldpspatial.release.rectangles import MOST_BLOCKS

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FOR_ALL = 32  # one part of epsilon in so many is for the number of people


def people_and_rest(
    people: int | None, units: Ints, micro: int, source: Entropy
) -> tuple[float, int]:
    """Return the number of people that a rule may know, and the millionths that are left.

    Parameters
    ----------
    people : int or None
        The public number, which costs nothing; None takes a noisy sum of all.
    units : (n,) int64 array
        Of all users, by cell.
    micro : int
    source : callable
    """
    part = micro // FOR_ALL
    if people is not None or not part:
        return float(people or 0), micro
    noisy = with_noise(units.sum(keepdims=True), part, source)
    return float(noisy[0]) / MASS, micro - part


def sides_for(people: Array, epsilon: float, c: float) -> list[int]:
    """Return along how many parts a side is cut: sqrt(people epsilon / c), rounded up, at least 1.

    Examples
    --------
    >>> sides_for(np.array([-3.0, 10.0, 10.1, 1e99]), 1.0, 10.0)
    [1, 1, 2, 4096]
    """
    # Of noisy numbers and public ones: floats cost no privacy here. No map has more cells.
    wanted = np.minimum(np.maximum(people, 0) * (epsilon / c), float(MOST_BLOCKS) ** 2)
    return [max(1, ceil(sqrt(each))) for each in wanted.tolist()]


def rectangle_sums(labels: Ints, cells: Ints, units: Ints) -> Ints:
    """Return the units in each rectangle of a map; rectangles are disjoint.

    Parameters
    ----------
    labels : (rows, columns) int64 array
        Number of each cell's rectangle, from 0.
    cells, units : (n,) int64 arrays
    """
    sums = np.zeros(int(labels.max()) + 1, np.int64)
    np.add.at(sums, labels.ravel()[cells], units)
    return sums


def in_people(noisy: Ints) -> Array:
    """Return noisy sums of units in people."""
    people: Array = noisy / MASS
    return people


def spread_in(labels: Ints, counts: Array | Ints) -> Array:
    """Return a map on which the count of each rectangle is spread evenly over its cells.

    Examples
    --------
    >>> spread_in(np.array([[0, 0, 1]]), np.array([6, 5])).tolist()
    [[3.0, 3.0, 5.0]]
    """
    masses: Array = (counts / np.bincount(labels.ravel()))[labels]
    return masses
