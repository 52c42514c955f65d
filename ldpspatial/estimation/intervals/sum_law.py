"""The law of a sum of some amounts, of each of which a random part is there, and its quantiles.

The law of some such amounts is far from normal, and where they are much alike it may lie on few
numbers. So it is reckoned on a fine grid, one amount after the other. Noise on top of that is
normal, or what a reach makes of it.

What is known of a part is its mean u. All of the amount being there, or none, has the largest
variance. It has not always the farthest quantile: where u is less than the chance that an end may
miss, all of it is there more seldom than that, and 0 or u / chance goes farther (Markov's
inequality, attained). A part that is crowded in some degree has the variance c u (1 - u), and is
taken to have Beta's law, which for c = 1 is all or none.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Error = Callable[[float], tuple[Array, float]]

MOST = 64  # amounts whose law is reckoned with: that of more is near enough to normal
STEPS = 8192  # that the sum of all amounts is divided into
ROUNDED = 1e-9  # of the sum of all: what floats and the search for a quantile may be off by
BINS = 32  # that Beta's law is divided into, between so many deviations on each side
DEVIATIONS = 5.0
LEAST = 1e-300  # of a part, so that a mean of 0 can be divided by it
ONE_PLACE = 1 - 1e-6  # crowded as much as this is all or none, next to


class PartLaw(NamedTuple):
    """Which parts of amounts can be there.

    Attributes
    ----------
    values, probabilities : (m, k) arrays
        In [0, 1]; of each amount.
    within : (m,) array
        Variance that the law has beyond these values, which stand for bins.
    """

    values: Array
    probabilities: Array
    within: Array


class Sums(NamedTuple):
    """The law of a sum, over the sum of all amounts.

    Attributes
    ----------
    values, probabilities : (k,) arrays
    off : float
        How far a value may be off at most.
    """

    values: Array
    probabilities: Array
    off: float


def all_or_none(chances: Array) -> PartLaw:
    """Return the law of parts that are there in full with these chances, or not at all."""
    return _of_two(np.zeros(len(chances)), np.ones(len(chances)), chances)


def farthest(chances: Array, seldom: float, side: int) -> PartLaw:
    """Return the law with these means whose quantile is farthest from nothing, or from all.

    Parameters
    ----------
    chances : (m,) array
        The means.
    seldom : float
        The chance beyond the quantile.
    side : {-1, 1}

    Examples
    --------
    >>> law = farthest(np.array([0.01]), 0.02, 1)
    >>> law.values.round(3).tolist(), law.probabilities.round(3).tolist()
    ([[0.0, 0.5]], [[0.98, 0.02]])
    """
    means = chances if side > 0 else 1 - chances
    # A little more often than that, so that it is not seldom enough to be left out.
    most = np.clip(means / (seldom * (1 + ROUNDED)), LEAST, 1.0)
    if side > 0:
        return _of_two(np.zeros(len(means)), most, means / most)
    return _of_two(np.ones(len(means)), 1 - most, means / most)


def _of_two(one: Array, other: Array, often: Array) -> PartLaw:
    """Return a law of two values, the other one with this chance."""
    values, likely = np.stack([one, other], axis=1), np.stack([1 - often, often], axis=1)
    return PartLaw(values, likely, np.zeros(len(often)))


def crowded_law(chances: Array, crowding: Array) -> PartLaw:
    """Return Beta's law with these means and the variances c u (1 - u), in bins.

    Parameters
    ----------
    chances, crowding : (m,) arrays
        u in (0, 1), c in (0, 1].

    Examples
    --------
    >>> law = crowded_law(np.array([0.5, 0.5]), np.array([1.0, 0.01]))
    >>> (law.values * law.probabilities).sum(1).round(6).tolist()
    [0.5, 0.5]
    >>> law.probabilities[0][[0, -1]].round(4).tolist(), float(law.probabilities[1].max().round(2))
    ([0.5, 0.5], 0.12)
    """
    c = np.minimum(crowding, ONE_PLACE)
    first, second = chances * (1 / c - 1), (1 - chances) * (1 / c - 1)
    reach = DEVIATIONS * np.sqrt(c * chances * (1 - chances))
    low, high = np.maximum(chances - reach, 0.0), np.minimum(chances + reach, 1.0)
    edges = np.linspace(low, high, BINS + 1, axis=1)
    edges[:, 0], edges[:, -1] = 0.0, 1.0  # the outer bins have the tails
    often, held = (
        np.diff(scipy.special.betainc((first + more)[:, None], second[:, None], edges), axis=1)
        for more in (0, 1)
    )
    middle = (edges[:, 1:] + edges[:, :-1]) / 2
    means = np.divide(chances[:, None] * held, often, out=middle.copy(), where=often > 0)
    values = np.clip(means, edges[:, :-1], edges[:, 1:])
    told = (often * (values - chances[:, None]) ** 2).sum(axis=1)
    return PartLaw(values, often, np.maximum(crowding * chances * (1 - chances) - told, 0.0))


def sums_of(amounts: Array, parts: PartLaw) -> Sums:
    """Return the law of the sum of amounts of which these parts are there, each by itself.

    Parameters
    ----------
    amounts : (m,) array
        Positive.
    parts : PartLaw

    Examples
    --------
    >>> law = sums_of(np.array([3.0, 1.0]), all_or_none(np.array([0.5, 0.1])))
    >>> law.values.tolist(), law.probabilities.round(2).tolist()
    ([0.0, 0.25, 0.75, 1.0], [0.45, 0.05, 0.45, 0.05])
    """
    exact = (amounts / amounts.sum())[:, None] * STEPS * parts.values
    steps = np.rint(exact).astype(np.int64)
    law = np.ones(1)
    for at, often in zip(steps, parts.probabilities, strict=True):
        before, law = law, np.zeros(law.size + int(at.max()))
        for step, chance in zip(at.tolist(), often.tolist(), strict=True):
            if chance > 0:
                law[step : step + before.size] += chance * before
    values = np.flatnonzero(law)
    off = float(np.abs(steps - exact).max(axis=1).sum()) / STEPS + ROUNDED
    return Sums(values / STEPS, law[values], off)


def share_beyond(error: Error, probabilities: Array, chance: float, side: int) -> float:
    """Return the share in [0, 1] beyond which the truth lies with this chance.

    Parameters
    ----------
    error : callable
        ``error(share)`` returns by sum how far the estimate lies above a share, and the standard
        deviation of what it may be off by.
    probabilities : (k,) array
        Of the sums.
    chance : float
    side : {-1, 1}
        Whether the truth is below the share or above it.
    """

    def more_than_asked(share: float) -> float:
        return chance_beyond(error, probabilities, share, side) - chance

    here, there = (0.0, 1.0) if side > 0 else (1.0, 0.0)
    if more_than_asked(here) <= 0:
        return here
    if more_than_asked(there) >= 0:
        return there
    return float(scipy.optimize.brentq(more_than_asked, 0.0, 1.0, xtol=1e-12))


def chance_beyond(error: Error, probabilities: Array, share: float, side: int) -> float:
    """Return the chance that the truth lies beyond a share; see :func:`share_beyond`."""
    above, deviation = error(share)
    if deviation > 0:
        beyond = scipy.special.ndtr(side * above / deviation)
    else:
        beyond = (side * above > 0).astype(np.float64)
    return float(probabilities @ beyond)
