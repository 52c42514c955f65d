"""Where a shape decides which nodes are counted: PrivTree's, and noisy counts of its leaves.

Whether a node is divided costs each level its part of epsilon where noisy sums decide it, as in
:mod:`ldpspatial.release.level_sums`. The shape of a PrivTree costs the same however deep it is
(docs/central.md, section 8). It begins above the level at which noise takes over, so that places
where nobody is stay whole, and it is cheap: a quarter of epsilon. What is left counts the leaves.

Where it is asked for says :mod:`ldpspatial.release.central.level_plan`. The numbers were set on six
cities and on generated towns (docs/experiments/levels.md).
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
from ldpspatial.release.level_sums import LEAST
from ldpspatial.validate import MICRO

FOR_SHAPE = 4  # one part of epsilon in so many
ABOVE = 2  # levels between the first one looked at and that of a grid
POWER = 2  # beta = 16: more is taken from the counts of each level, for less noise
THRESHOLD = Fraction(1, 2)


def counted_leaves(
    pyramid: Pyramid, whole: NoisyLevel, of_grid: int, micro: int, source: Entropy
) -> list[NoisyLevel]:
    """Return levels from 0 on, with sums of the leaves of a noisy shape.

    Parameters
    ----------
    pyramid : Pyramid
        Of users' units.
    whole : NoisyLevel
        Level 0.
    of_grid : int
        The level that a grid would begin with.
    micro : int >= 1
        Millionths of epsilon, of which none is left over.
    source : callable
    """
    tree = pyramid.tree
    first = max(of_grid - ABOVE, LEAST)
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
