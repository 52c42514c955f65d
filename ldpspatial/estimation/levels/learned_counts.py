"""How many people nodes hold, given noisy sums of all nodes of a level: empirical Bayes of counts.

Most nodes of a map hold nobody or a few, and some hold many. What the counts of a level are like
is learned from all of its sums, and what those around a node tell of it as well
(:mod:`ldpspatial.estimation.levels.law_of_counts`). Crowds lie beside crowds, so nodes are put into
a few groups by how many people are around them, and each group learns a law of its own.

What is taken of the posterior depends on how many people a node holds in the mean, over the scale
of the noise:

- many (``MANY``): the median, which leaves nodes empty where nobody is likely to be;
- many whole people (:mod:`.whole_people`): three quarters of the median, a quarter of the mean, as
  medians alone have the larger squares of errors; nobody where the median is 0;
- some: half of the median, half of the mean;
- next to none (less than ``NONE``): the people that shares told (``shares.py``). A law has next to
  nothing to be learned from.

Where no level was measured in full but leaves of a tree were, their counts are learned in groups of
leaves of about the same size, and half of the median and half of what shares told are taken.

The numbers were set on six cities (docs/experiments/levels.md).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.levels.balanced import balanced
from ldpspatial.estimation.levels.law_of_counts import NORMAL, posterior
from ldpspatial.estimation.levels.neighbours import around, foretold
from ldpspatial.estimation.levels.noisy_level import NoisyLevel
from ldpspatial.estimation.levels.shares import nearest_shares
from ldpspatial.estimation.levels.whole_people import are_whole
from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MANY, NONE = 0.5, 0.1
HALF, OF_WHOLE = 0.5, 0.25  # parts of the mean, beside the median
FEWEST = 64  # nodes that a law is learned from
GROUPS, IN_GROUP = 4, 100  # at most so many groups, each of at least so many nodes
LEAVES, FEWEST_LEAVES = 50, 20  # about so many leaves a group, and so many at least


def learned_counts(
    tree: Quadtree,
    level: NoisyLevel,
    sums: Sequence[Array],
    variances: Sequence[Array],
    people: Array,
) -> Array:
    """Return the people of each node, as many in all as before.

    Parameters
    ----------
    tree : Quadtree
    level : NoisyLevel
        All of its nodes.
    sums, variances : sequences of arrays
        Least squares of all nodes from level 0 to this one, of which the last one's noise is at
        most that of the level.
    people : (m,) array
        What shares told, not negative.
    """
    total = float(people.sum())
    scale = np.sqrt((level.variance + level.per_person) / 2)
    few = len(people) < FEWEST or not np.isfinite(scale) or scale <= 0 or total <= 0
    signal = 0.0 if few else total / len(people) / scale
    if signal < NONE:
        return people
    found, doubt = np.empty(len(people)), np.empty(len(people))
    by_others = foretold(tree, level, sums[-1])
    laplace = not (level.per_person or level.step) and level.excess > NORMAL
    whole = laplace and are_whole(sums[-1], level.variance)
    many = signal >= MANY
    of_mean = HALF if not many else OF_WHOLE if whole else 0.0
    ordered = np.argsort(around(tree, level, people), kind="stable")
    for group in np.array_split(ordered, min(GROUPS, max(len(ordered) // IN_GROUP, 1))):
        mean, median, doubt[group] = posterior(
            sums[-1][group],
            level.variance,
            level.per_person,
            level.step,
            level.excess,
            by_others[group],
            whole,
        )
        found[group] = median + of_mean * (mean - median)
        if many and whole:  # a little in many empty nodes is far from where people are
            found[group] *= median > 0
    found = _adding_up(found, total)
    if not many:
        return found
    noise = len(found) * level.variance + level.per_person * total
    return balanced(found, noise, float(doubt.sum()), level.nodes, sums, variances)


def learned_leaves(sums: Array, variances: Array, people: Array) -> Array:
    """Return the people of each leaf of a tree, as many in all as before.

    Parameters
    ----------
    sums : (m,) array
        Of the leaves, from the largest to the smallest ones.
    variances : (m,) array
        Of their noise; infinite where no sum was taken.
    people : (m,) array
        What shares told, not negative.
    """
    total = float(people.sum())
    measured = np.flatnonzero(np.isfinite(variances))
    if not len(measured) or total / len(people) < NONE * np.sqrt(variances[measured].mean() / 2):
        return people
    found = people.copy()
    for group in np.array_split(measured, max(len(measured) // LEAVES, 1)):
        if len(group) >= FEWEST_LEAVES and variances[group].any():  # what is exact is known
            _, median, _ = posterior(sums[group], float(variances[group].mean()))
            found[group] = (median + people[group]) / 2
    return _adding_up(found, total)


def _adding_up(found: Array, total: float) -> Array:
    """Return the nearest numbers that add up to the total, without any where there were none.

    Not in proportion: what many small counts lack is no part of the largest.
    """
    held = found > 0
    if not held.any():
        held = np.ones(len(found), bool)
    added: Array = nearest_shares(found[np.newaxis], np.array([total]), held[np.newaxis])[0]
    return added
