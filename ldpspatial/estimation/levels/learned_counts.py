"""How many people nodes hold, given noisy sums of all nodes of a level: empirical Bayes of counts.

Most nodes of a map hold nobody or a few, and some hold many. What the counts of a level are like
is learned from all of its sums: the law of counts whose mixture with the noise makes the sums
likeliest (Kiefer and Wolfowitz 1956), on a grid of counts, by expectation maximisation. Each node
then has a posterior of its own. Crowds lie beside crowds, so nodes are put into a few groups by how
many people are around them, and each group learns a law of its own. Noise is Laplace's, or normal
where that of three secure sums or more is added up. Where it is in whole people and mostly 0,
counts are whole, and a sum has a law in steps: of noise and of who was counted. Elsewhere whole
people are not presumed: where noise is less than half a person, the law finds by itself that counts
are whole.

What is taken of the posterior depends on how many people a node holds in the mean, over the scale
of the noise:

- many (``MANY``): the median, which leaves nodes empty where nobody is likely to be;
- some: half of the mean, half of the people that shares told (``shares.py``);
- next to none (less than ``NONE``): those alone. A law has next to nothing to be learned from.

Where no level was measured in full but leaves of a tree were, their counts are learned in groups of
leaves of about the same size, and half of the median and half of what shares told are taken.

Counts far above the noise are taken as they are. The numbers were set on six cities
(docs/experiments/levels.md).
"""

from collections.abc import Sequence
from math import ceil

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.estimation.levels.balanced import balanced
from ldpspatial.estimation.levels.noisy_level import NoisyLevel
from ldpspatial.estimation.levels.shares import nearest_shares
from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MANY, NONE = 0.5, 0.1
FEWEST = 64  # nodes that a law is learned from
GROUPS, IN_GROUP = 4, 100  # at most so many groups, each of at least so many nodes
LEAVES, FEWEST_LEAVES = 50, 20  # about so many leaves a group, and so many at least
AROUND = (3, 9)  # sides of the squares of nodes that say how many are around, in nodes
GRID = 161  # counts that a law is made of
FINEST = 16  # sums are rounded to the deviation of their noise over this
EM_ROUNDS = 60
WHOLE = 12  # counts of a law of whole people; of more, too few nodes have just as many
# Where some fail, sums of more people who were counted are people as they are: many medians would
# err to one side.
FEW_OF_SOME = 2
FAR = 4  # deviations of the noise from the largest count of a law
NORMAL = 1.0  # excess kurtosis of noise, up to which it is taken for normal
MOSTLY_NONE = 0.5  # of noise: its variance in steps, at which seven tenths of it are 0
LEAST = 1e-12  # of the law at each count, so that no sum is impossible


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
    ordered = np.argsort(around(tree, level, people), kind="stable")
    for group in np.array_split(ordered, min(GROUPS, max(len(ordered) // IN_GROUP, 1))):
        mean, median, doubt[group] = posterior(
            sums[-1][group], level.variance, level.per_person, level.step, level.excess
        )
        found[group] = median if signal >= MANY else (mean + people[group]) / 2
    found = _adding_up(found, total)
    if signal < MANY:
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


def posterior(
    sums: Array, variance: float, per_person: float = 0.0, step: float = 0.0, excess: float = 3.0
) -> tuple[Array, Array, Array]:
    """Return mean, median and variance of each count, given the sums of all: none is negative.

    Parameters
    ----------
    sums : (m,) array
        Each with noise of this variance and as much again for each person.
    variance, per_person : float
        Not both 0.
    step : float
        Noise is in whole multiples of this, 0 for steps too small to matter. Where most noise is 0
        its law in whole steps is taken.
    excess : float
        Excess kurtosis of the noise. It is taken for Laplace's above 1, and else for normal: that
        of three secure sums together, or more.

    Examples
    --------
    >>> mean, median, _ = posterior(np.array([0.1, -0.2, 0.0, -0.1, 0.0, 1000.4]), 0.02)
    >>> mean.round(1).tolist(), median.tolist()
    ([0.0, 0.0, 0.0, 0.0, 0.0, 1000.4], [0.0, 0.0, 0.0, 0.0, 0.0, 1000.4])
    """
    deviation = float(np.sqrt(variance + per_person))
    stepwise = 0 < variance < MOSTLY_NONE * step**2
    most = float(sums.max())
    longest = GRID
    if stepwise:
        longest = FEW_OF_SOME + ceil(FAR * deviation) + 1 if per_person else WHOLE
    counts = _whole(most, longest) if stepwise else _counts(deviation, most)
    cut = len(counts) == longest
    # Sums that differ by little are one sum: as many of them are to be learned from as before.
    rounded = step if stepwise else deviation / FINEST
    if cut and stepwise and per_person:
        far = sums > (FEW_OF_SOME + 0.5) * step
    else:
        far = sums > counts[-1] - (FAR * deviation if cut else 0.0)
    near = np.minimum(sums, counts[-1])
    places, inverse, number = np.unique(
        np.round(near / rounded).astype(np.int64), return_inverse=True, return_counts=True
    )
    if stepwise:
        likely = _likely_steps(places, counts, variance / step**2, 1 / (1 + per_person))
    else:
        off = places[:, np.newaxis] * rounded - counts
        # Without noise nobody is told exactly, which has no density: to what sums are rounded to.
        squares = np.maximum(variance + per_person * counts, rounded**2)
        if excess > NORMAL:
            fit = -np.abs(off) / np.sqrt(squares / 2) - np.log(squares) / 2
        else:
            fit = -(off**2) / (2 * squares) - np.log(squares) / 2
        likely = np.exp(fit - fit.max(1, keepdims=True))
    weights = np.full(len(counts), 1 / len(counts))
    for _ in range(EM_ROUNDS):
        whose = weights * likely
        whose /= whose.sum(1, keepdims=True)
        weights = number @ whose / len(sums) + LEAST
    whose = weights * likely
    whose /= whose.sum(1, keepdims=True)
    mean = whose @ counts
    median = counts[np.minimum((np.cumsum(whose, 1) < 0.5).sum(1), len(counts) - 1)]
    doubt = np.clip(whose @ counts**2 - mean**2, 0.0, variance)
    return (
        np.where(far, sums, mean[inverse]),
        np.where(far, sums, median[inverse]),
        np.where(far, variance, doubt[inverse]),
    )


def _likely_steps(steps: Ints, counts: Array, variance: float, counted: float) -> Array:
    """Return the likelihood of each sum in steps given each count, the largest of each sum 1.

    A step is a person who was counted, as a share ``counted`` of them is; the noise is taken for
    discrete Laplace's of this variance, 2 p / (1 - p)^2. That is exact for one shard without spare
    noise.
    """
    p = 1 / (1 + 1 / variance + np.sqrt((2 + 1 / variance) / variance))
    each = np.arange(len(counts))
    absent = counts[:, np.newaxis] - each
    chance = counted**each * (1 - counted) ** np.maximum(absent, 0)
    present = scipy.special.binom(counts[:, np.newaxis], each) * chance
    # Sums below 0 tell as much as 0 does, and would be too unlikely for floats.
    noise = p ** np.abs(np.maximum(steps, 0)[:, np.newaxis] - each).astype(np.float64)
    likely = noise @ present.T
    found: Array = likely / likely.max(1, keepdims=True)
    return found


def _counts(deviation: float, most: float) -> Array:
    """Return the counts of a law: from 0 in half scales of the noise, or in parts of a person."""
    scale = deviation / np.sqrt(2)
    step = 1 / np.ceil(2 / scale) if scale < 2 else scale / 2
    number = int(min(max(most, 0.0) / step + 2, GRID))
    counts: Array = step * np.arange(number)
    return counts


def _whole(most: float, longest: int) -> Array:
    """Return the counts of a law of whole people."""
    return np.arange(min(int(max(most, 0.0)) + 2, longest), dtype=np.float64)
