"""Counts of disjoint nodes of several levels, which together cover the map."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy
from ldpspatial.release.central.central_release import with_noise
from ldpspatial.release.central.masses import spread_evenly
from ldpspatial.release.central.pyramid import Pyramid

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Nodes = tuple[int, Ints]  # some nodes of a level


def counted(
    pyramid: Pyramid, disjoint: Sequence[Nodes], micro_epsilon: int, source: Entropy
) -> Array:
    """Return a map of noisy counts: each at least 0, and spread evenly over the cells of its node.

    Parameters
    ----------
    pyramid : Pyramid
        Of users' units.
    disjoint : sequence of (level, (m,) int64 array)
        Nodes known from noisy numbers alone. They are disjoint, so all are one query of sensitivity
        MASS.
    micro_epsilon : int
    source : callable
    """
    sums = [pyramid.sums(level, nodes) for level, nodes in disjoint]
    noisy = np.maximum(with_noise(np.concatenate(sums), micro_epsilon, source), 0)
    ends = np.cumsum([len(each) for each in sums])
    masses = np.zeros(pyramid.tree.shape)
    for (level, nodes), counts in zip(disjoint, np.split(noisy, ends[:-1]), strict=True):
        masses += spread_evenly(pyramid.tree, level, nodes, counts.astype(np.float64))
    return masses
