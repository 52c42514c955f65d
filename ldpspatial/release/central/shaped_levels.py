"""Where a shape decides which nodes are counted: PrivTree's, and noisy counts of its leaves.

Whether a node is divided costs each level its part of epsilon where noisy sums decide it, as in
:mod:`ldpspatial.release.level_sums`. The shape of a PrivTree costs the same however deep it is
(docs/central.md, section 8). It begins above the level at which noise takes over, so that places
where nobody is stay whole, and it is cheap: a quarter of epsilon. What is left counts the leaves.

With fewer than some people there is too little to divide. With more than a few in a cell, or where
noise is a small part of a person, what is learned from all cells of a level says more. The numbers
were set on six cities and on generated towns (docs/experiments/levels.md).
"""

from fractions import Fraction

import numpy as np

from client_sdk.shared import Entropy
from ldpspatial.estimation.levels import NoisyLevel
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.central.central_release import with_noise
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS
from ldpspatial.release.central.trees.privtree import Growth, grown
from ldpspatial.release.level_sums import LEAST, PER_NODE, first_level
from ldpspatial.validate import MICRO

FOR_SHAPE = 4  # one part of epsilon in so many
ABOVE = 2  # levels between the first one looked at and that of a grid
POWER = 2  # beta = 16: more is taken from the counts of each level, for less noise
THRESHOLD = Fraction(1, 2)
FEW_IN_A_CELL = 10  # people over the scale of the noise, in the mean of all cells
WHOLE_PEOPLE = 4 * MICRO  # epsilon at which people are found one by one


def is_better(people_per_noise: float, micro: int, shape: tuple[int, int]) -> bool:
    """Tell whether a shape is asked for: by public numbers and the noisy number of people.

    Parameters
    ----------
    people_per_noise : float
        Number of people over the scale 1 / epsilon of noise.
    micro : int
        Millionths of epsilon.
    shape : (rows, columns)
        Of the map, in cells.

    Examples
    --------
    >>> [is_better(people, 1_000_000, (64, 64)) for people in (100.0, 200.0, 40_000.0, 41_000.0)]
    [False, True, True, False]
    """
    some = PER_NODE * 4**LEAST <= people_per_noise < FEW_IN_A_CELL * shape[0] * shape[1]
    return some and micro < WHOLE_PEOPLE


def counted_leaves(
    pyramid: Pyramid, whole: NoisyLevel, people_per_noise: float, micro: int, source: Entropy
) -> list[NoisyLevel]:
    """Return levels from 0 on, with sums of the leaves of a noisy shape.

    Parameters
    ----------
    pyramid : Pyramid
        Of users' units.
    whole : NoisyLevel
        Level 0.
    people_per_noise : float
    micro : int >= 1
        Millionths of epsilon, of which none is left over.
    source : callable
    """
    tree = pyramid.tree
    first = max(first_level(people_per_noise, tree.depth) - ABOVE, LEAST)
    for_shape = micro // FOR_SHAPE
    leaves = grown(pyramid, for_shape, source, Growth(first, POWER, THRESHOLD))
    # Disjoint nodes, known from the noisy shape alone: one query of sensitivity MASS.
    for_counts = micro - for_shape
    units = np.concatenate([pyramid.sums(level, nodes) for level, nodes in leaves])
    noisy = with_noise(units, for_counts, source) / MASS
    ends = np.cumsum([len(nodes) for _, nodes in leaves])[:-1]
    counted = {
        level: (nodes, part)
        for (level, nodes), part in zip(leaves, np.split(noisy, ends), strict=True)
    }
    variance = (noise_deviation(for_counts / MICRO, MASS) / MASS) ** 2
    found = [whole]
    found += [NoisyLevel.unmeasured(level, tree.numbers(level)) for level in range(1, first)]
    nodes = tree.numbers(first)
    for level in range(first, max(counted) + 1):
        found.append(NoisyLevel.unmeasured(level, nodes))
        divided = nodes
        if level in counted:
            is_leaf = np.isin(nodes, counted[level][0])
            sums = np.zeros(len(nodes))
            sums[is_leaf] = counted[level][1]
            found[-1] = NoisyLevel(level, nodes, sums, variance, measured=is_leaf)
            divided = nodes[~is_leaf]
        nodes = tree.numbers_below(level + 1, divided)
    return found
