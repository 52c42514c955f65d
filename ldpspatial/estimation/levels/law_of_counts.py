"""The law of how many people nodes hold, learned from their noisy sums, and what it says of each.

The law is a mixture of two kinds of parts, whose weights make all sums likeliest (Kiefer and
Wolfowitz 1956), by expectation maximisation:

- single counts on a grid, the same for all nodes that are learned from together;
- counts about what neighbours foretell (:mod:`ldpspatial.estimation.levels.neighbours`), as far off
  as chance makes them, by a fifth more, and so on (``OFF``). A crowd that chance alone varies has
  Poisson's law, one that varies besides a negative binomial one; here they are gamma laws of the
  same mean and variance, told to the counts of the grid.

Where a map is smooth and nodes hold many people the second kind takes most, elsewhere next to
nothing: the sums say that. Each node then has a posterior of its own. Neighbours share the noise of
what foretells them, so their posteriors err together; nothing here reckons with that.

Noise is Laplace's, or normal where that of three secure sums or more is added up. Where it is in
whole people and mostly 0, counts are whole, and a sum has a law in steps: of noise and of who was
counted. So are they where sums with Laplace's noise said so (:mod:`.whole_people`). Elsewhere
single counts need not be whole: where noise is less than half a person, the law finds by itself
that they are. In all these a sum tells more than neighbours do, and they are not asked, however
many people fail.
Counts far above the noise are taken as they are, or as whole people. The numbers were set on six
cities and six towns (docs/experiments/levels.md).
"""

from math import ceil, log
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.estimation.levels.whole_people import nearest_whole

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

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
OFF = (0.0, 0.2, 0.6, 1.5)  # relative deviations of counts from what neighbours foretell
# Weights of all that neighbours foretell, before anything is learned. Where sums say little, rounds
# are too few to forget where they began.
AT_FIRST, NEIGHBOURS_FIRST = 0.02, 0.9
APART = 1.1  # what is foretold is rounded to powers of this
LEAST_FORETOLD = 1 / 8  # steps of the grid of counts
TOGETHER = 1 << 14  # nodes whose posteriors are found at a time, to save memory


class Posterior(NamedTuple):
    """Mean, median and variance of each count, given the sums of all."""

    mean: Array
    median: Array
    doubt: Array


def posterior(
    sums: Array,
    variance: float,
    per_person: float = 0.0,
    step: float = 0.0,
    excess: float = 3.0,
    foretold: Array | None = None,
    whole: bool = False,
    at_first: float = AT_FIRST,
) -> Posterior:
    """Return what the sums of all say of each count: none is negative.

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
    foretold : (m, k) array
        What neighbours foretell of each, in k ways; None where nothing is known of them. Not
        looked at where noise is less than about half a person, or half a step.
    whole : bool
        Nodes hold whole people, which sums said (:mod:`.whole_people`): Laplace's noise without
        steps, and nobody fails.
    at_first : float in (0, 1)
        Weight of all that neighbours foretell before anything is learned.

    Examples
    --------
    >>> mean, median, _ = posterior(np.array([0.1, -0.2, 0.0, -0.1, 0.0, 1000.4]), 0.02)
    >>> mean.round(1).tolist(), median.tolist()
    ([0.0, 0.0, 0.0, 0.0, 0.0, 1000.4], [0.0, 0.0, 0.0, 0.0, 0.0, 1000.4])

    Where neighbours tell all, means are nearer than by the sums alone:

    >>> around = np.linspace(20.0, 90.0, 400)
    >>> sums = around + np.random.default_rng(1).normal(0, 30, 400)
    >>> off = [
    ...     np.square(posterior(sums, 900.0, excess=0.0, foretold=each).mean - around).mean()
    ...     for each in (None, around[:, np.newaxis])
    ... ]
    >>> [round(float(each), -1) for each in off]
    [290.0, 10.0]
    """
    deviation = float(np.sqrt(variance + per_person))
    stepwise = 0 < variance < MOSTLY_NONE * step**2
    most = float(sums.max())
    longest = GRID
    if stepwise:
        longest = FEW_OF_SOME + ceil(FAR * deviation) + 1 if per_person else WHOLE
    counts = _whole(most, longest) if stepwise or whole else _counts(deviation, most)
    cut = len(counts) == longest
    # Sums that differ by little are one sum: as many of them are to be learned from as before.
    rounded = step if stepwise else deviation / FINEST
    if cut and stepwise and per_person:
        far = sums > (FEW_OF_SOME + 0.5) * step
    else:
        far = sums > counts[-1] - (FAR * deviation if cut else 0.0)
    places, of_place = np.unique(
        np.round(np.minimum(sums, counts[-1]) / rounded).astype(np.int64), return_inverse=True
    )
    if stepwise:
        likely = _likely_steps(places, counts, variance / step**2, 1 / (1 + per_person))
    else:
        # Without noise nobody is told exactly, which has no density: to what sums are rounded to.
        squares = np.maximum(variance + per_person * counts, rounded**2)
        likely = _likely(places * rounded, counts, squares, excess)
    ways = np.empty((len(sums), 0))
    if foretold is not None and variance >= MOSTLY_NONE * max(step, 1.0) ** 2:
        ways = foretold
    rounds, of_rounds = _rounded(ways, counts)
    sizes = [len(places), *map(len, rounds)]
    every = np.column_stack([of_place, of_rounds])
    # Nodes that are alike in all of this are learned from, and told, together. Of about 80 numbers
    # in each of seven ways and some thousands of sums one integer can tell all.
    _, first, inverse, number = np.unique(
        np.ravel_multi_index(tuple(every.T), sizes),
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    nodes = every[first]
    laws = [_laws(each, counts) for each in rounds]
    weights = _learned(likely, laws, nodes, number, at_first)
    mean, median, doubt = (each[inverse] for each in _told(likely, laws, nodes, weights, counts))
    beyond = nearest_whole(sums, variance) if whole else (sums, sums, np.full(len(sums), variance))
    return Posterior(
        np.where(far, beyond[0], mean),
        np.where(far, beyond[1], median),
        np.where(far, beyond[2], np.minimum(doubt, variance)),
    )


def _rounded(foretold: Array, counts: Array) -> tuple[list[Array], Ints]:
    """Return the different numbers that are foretold in each way, and which of them each is.

    They are rounded to powers of ``APART``, from a part of the grid's step to its largest count.
    """
    least = LEAST_FORETOLD * counts[1]
    numbers, places = [], np.empty(foretold.shape, dtype=np.int64)
    for k, each in enumerate(foretold.T):
        powers = np.round(np.log(np.clip(each, least, counts[-1])) / log(APART))
        different, places[:, k] = np.unique(powers, return_inverse=True)
        numbers.append(APART**different)
    return numbers, places


def _laws(foretold: Array, counts: Array) -> Array:
    """Return the laws of counts about what is foretold, shape (foretold, ``OFF``, counts).

    Gamma laws on the grid, or on whole people where the grid is finer than these. What lies between
    two counts is shared by both so that the mean stays; what lies beyond the last is there.
    """
    whole = max(round(1 / counts[1]), 1)  # steps of the grid a person
    ends = counts[::whole]
    mean = foretold[:, np.newaxis, np.newaxis]
    variance = mean + (np.array(OFF)[:, np.newaxis] * mean) ** 2
    shape, rate = mean**2 / variance, mean / variance
    # The mean of the law capped at each count: what is between two counts bends it.
    capped = mean * scipy.special.gammainc(shape + 1, ends * rate)
    capped += ends * scipy.special.gammaincc(shape, ends * rate)
    slopes = np.diff(capped, axis=2) / np.diff(ends)
    found = np.zeros((len(foretold), len(OFF), len(counts)))
    found[:, :, ::whole] = -np.diff(slopes, axis=2, prepend=1.0, append=0.0)
    return np.maximum(found, 0.0)


def _learned(
    likely: Array, laws: list[Array], nodes: Ints, number: Ints, at_first: float
) -> tuple[Array, Array]:
    """Return the weights of single counts, and of each way of foretelling and each of ``OFF``.

    Parameters
    ----------
    likely : (s, c) array
        Of each sum given each count.
    laws : list of arrays
        For each way one of shape (things foretold, ``OFF``, c).
    nodes : (m, 1 + ways) int64 array
        Which of the sums a node has, and which of the laws about each thing foretold.
    number : (m,) int64 array
        How many nodes are alike.
    at_first : float
        Weight of all laws about things foretold before the first round.
    """
    near = [
        np.tensordot(likely, law, axes=(1, 2))[nodes[:, 0], nodes[:, 1 + k]]
        for k, law in enumerate(laws)
    ]
    of_laws = np.concatenate([np.empty((len(nodes), 0)), *near], axis=1)
    start = at_first if laws else 0.0
    single = np.full(likely.shape[1], (1 - start) / likely.shape[1])
    about = np.full(of_laws.shape[1], start / max(of_laws.shape[1], 1))
    for _ in range(EM_ROUNDS):
        # Each node is told to the parts by how well they explain it: that, summed over nodes.
        told = number / ((likely @ single)[nodes[:, 0]] + of_laws @ about) / number.sum()
        by_sum = np.bincount(nodes[:, 0], told, minlength=len(likely))
        single, about = single * (likely.T @ by_sum) + LEAST, about * (of_laws.T @ told)
    return single, about.reshape(len(laws), len(OFF))


def _told(
    likely: Array,
    laws: list[Array],
    nodes: Ints,
    weights: tuple[Array, Array],
    counts: Array,
) -> Posterior:
    """Return the posteriors of nodes, by the weights of :func:`_learned`, which has the others."""
    single, about = weights
    mixed = [np.tensordot(each, law, axes=(0, 1)) for each, law in zip(about, laws, strict=True)]
    found = np.empty((3, len(nodes)))
    for start in range(0, len(nodes), TOGETHER):
        part = nodes[start : start + TOGETHER]
        law = np.repeat(single[np.newaxis], len(part), axis=0)
        for k, each in enumerate(mixed):
            law += each[part[:, 1 + k]]
        whose = law * likely[part[:, 0]]
        whose /= whose.sum(1, keepdims=True)
        mean = whose @ counts
        median = counts[np.minimum((np.cumsum(whose, 1) < 0.5).sum(1), len(counts) - 1)]
        doubt = np.maximum(whose @ counts**2 - mean**2, 0.0)
        found[:, start : start + TOGETHER] = mean, median, doubt
    return Posterior(*found)


def _likely(sums: Array, counts: Array, squares: Array, excess: float) -> Array:
    """Return the likelihood of each sum given each count, the largest of each sum 1.

    ``squares`` are the variances of sums of each count.
    """
    off = sums[:, np.newaxis] - counts
    if excess > NORMAL:
        fit = -np.abs(off) / np.sqrt(squares / 2) - np.log(squares) / 2
    else:
        fit = -(off**2) / (2 * squares) - np.log(squares) / 2
    found: Array = np.exp(fit - fit.max(1, keepdims=True))
    return found


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
