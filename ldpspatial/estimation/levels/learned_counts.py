"""How many people nodes hold, given noisy sums of all nodes of a level: empirical Bayes of counts.

Most nodes of a map hold nobody or a few, and some hold many. What the counts of a level are like
is learned from all of its sums, and what those around a node tell of it as well
(:mod:`ldpspatial.estimation.levels.law_of_counts`). Crowds lie beside crowds, so nodes are put into
a few groups by how many people are around them, and each group learns a law of its own.

What is taken of the posterior depends on how many people a node holds in the mean, over the scale
of the noise:

- many (``MANY``): the median, which leaves nodes empty where nobody is likely to be;
- many, but the law took noise for people, as sums of areas say (:func:`.balanced.chance_of_less`):
  it is learned again, from where neighbours tell nearly all, and with less of their noise; half of
  the median and half of the mean. In groups whose nodes hold less than ``MANY`` it is the mean if
  their sum says that they hold anybody, and else the median. Not asked where noise is less than a
  person, and not taken where noise is told still more;
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

from ldpspatial.estimation.levels.balanced import balanced, chance_of_less
from ldpspatial.estimation.levels.law_of_counts import (
    AT_FIRST,
    NEIGHBOURS_FIRST,
    NORMAL,
    Posterior,
    posterior,
)
from ldpspatial.estimation.levels.neighbours import NEAR, around, foretold, foretold_by_law
from ldpspatial.estimation.levels.noisy_level import NoisyLevel
from ldpspatial.estimation.levels.shares import nearest_shares
from ldpspatial.estimation.levels.whole_people import are_whole
from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MANY, NONE = 0.5, 0.1
HALF, OF_WHOLE = 0.5, 0.25  # parts of the mean, beside the median
NOISE_TOLD = 0.05  # chance of less, below which nodes were told the noise of their sums
SOMEBODY = 2.0  # deviations of noise, beyond which the sum of a group says that it holds somebody
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
    laplace = not (level.per_person or level.step) and level.excess > NORMAL
    whole = laplace and are_whole(sums[-1], level.variance)
    groups = _groups(around(tree, level, people))
    by_others = foretold(tree, level, sums[-1])
    law = _in_groups(groups, level, sums[-1], by_others, whole)
    if signal < MANY:
        return _adding_up(_between(law, HALF), total)
    found = _between(law, OF_WHOLE if whole else 0.0)
    if whole:  # a little in many empty nodes is far from where people are
        found[law.median == 0] = 0.0
    found = _adding_up(found, total)
    if level.variance >= max(level.step, 1.0) ** 2:
        found, law = _without_noise(tree, level, sums[-1], variances[-1], found, law)
    noise = len(found) * level.variance + level.per_person * total
    return balanced(found, noise, float(law.doubt.sum()), level.nodes, sums, variances)


def _groups(people: Array) -> list[Ints]:
    """Return groups of about as many nodes, by how many people are around each."""
    ordered = np.argsort(people, kind="stable")
    return np.array_split(ordered, min(GROUPS, max(len(ordered) // IN_GROUP, 1)))


def _in_groups(
    groups: Sequence[Ints],
    level: NoisyLevel,
    sums: Array,
    by_others: Array,
    whole: bool = False,
    at_first: float = AT_FIRST,
) -> Posterior:
    """Return what the sums say of each node, by laws learned in each group apart."""
    law = Posterior(*np.empty((3, len(sums))))
    for group in groups:
        told = posterior(
            sums[group],
            level.variance,
            level.per_person,
            level.step,
            level.excess,
            by_others[group],
            whole,
            at_first,
        )
        for each, of_group in zip(law, told, strict=True):
            each[group] = of_group
    return law


def _without_noise(
    tree: Quadtree, level: NoisyLevel, sums: Array, variances: Array, found: Array, law: Posterior
) -> tuple[Array, Posterior]:
    """Return people of nodes and the law of these, told anew if they were told noise.

    Only where areas then lack more like what noise makes them lack. Nodes are put into groups by
    what is foretold of them, in which their own noise has no part: by how many were told around
    them, those of low noise would be together.
    """

    def chance(people: Array, law: Posterior) -> float:
        # Who is told by the sum alone may be off as far as that is, by who failed as well.
        doubt = np.where(law.doubt < level.variance, law.doubt, variances)
        return chance_of_less(people, variances, doubt, level.nodes, sums)

    before = chance(found, law)
    if before >= NOISE_TOLD:
        return found, law
    by_others = foretold_by_law(tree, level, sums)
    groups = _groups(by_others[:, : len(NEAR)].sum(axis=1))
    again = _in_groups(groups, level, sums, by_others, at_first=NEIGHBOURS_FIRST)
    of_mean = _of_mean(groups, level, sums, variances, again)
    told = _adding_up(_between(again, of_mean), found.sum())
    return (told, again) if chance(told, again) > before else (found, law)


def _of_mean(
    groups: Sequence[Ints], level: NoisyLevel, sums: Array, variances: Array, law: Posterior
) -> Array:
    """Return the part of the mean, beside the median, that each node takes of a law learned again.

    Means are above 0 also where nobody is, as on a lake. So a group of thinly held nodes takes them
    only where its sum tells that it holds anybody.
    """
    of_mean = np.full(len(sums), HALF)
    enough = MANY * np.sqrt((level.variance + level.per_person) / 2)
    for group in groups:
        if law.mean[group].mean() < enough:
            held, unsure = float(sums[group].sum()), float(variances[group].sum())
            of_mean[group] = 1.0 if held > SOMEBODY * np.sqrt(unsure) else 0.0
    return of_mean


def _between(law: Posterior, of_mean: float | Array) -> Array:
    """Return the median, but of the way to the mean this part."""
    return law.median + of_mean * (law.mean - law.median)


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
