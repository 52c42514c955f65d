"""Optimised unary encoding: one random bit a cell (Wang et al., USENIX Security 2017)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ldpspatial.privacy.whole_draws import TwoWeights, binomial, coins, two_weights
from ldpspatial.release.local.sets.frequencies import share_variance, unbiased_shares
from ldpspatial.release.local.sets.set_reports import (
    Array,
    Ints,
    Rng,
    SetRelease,
    SetReports,
    check_loss,
    checked_values,
)
from ldpspatial.release.local.sets.subset_selection import draw_subsets
from ldpspatial.release.release import Fact

OWN_BIT = Fraction(1, 2)  # probability that the bit of the user's own value is 1


@dataclass(frozen=True)
class Oue(SetRelease):
    """Optimised unary encoding with projection on the densities, or with EM.

    Attributes
    ----------
    estimator : {"projection", "em"}
        Unbiased shares projected on the densities, or EM on the reports one by one.
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`; only with "em".
    """

    name: ClassVar[str] = "oue"

    def design(self, size: int, epsilon: float) -> dict[str, Fact]:
        """Return the probability that a bit of another cell is 1."""
        return {"false_bit": float(other_bit(epsilon))}

    def weights(self, size: int, epsilon: float) -> TwoWeights:
        """Return those of another cell's bit: the large one of a 0, the small one of a 1."""
        return bit_weights(epsilon)

    def set_sizes(self, size: int, epsilon: float) -> Array:
        """Return the law of the number of bits that are 1."""
        return size_law(size, float(OWN_BIT), float(other_bit(epsilon)))

    def reports(self, values: Ints, size: int, epsilon: float, rng: Rng) -> SetReports:
        """Draw which bits are 1: the others are a binomial number of cells, drawn uniformly."""
        given = checked_values(values, size)
        own = coins(OWN_BIT, len(given), rng)
        others = binomial(np.full(len(given), size - 1), other_bit(epsilon), rng)
        sets = draw_subsets(given, own, others, size, rng)
        return SetReports(*sets, size, bit_weights(epsilon), _lift(epsilon))

    def frequencies(self, values: Ints, size: int, epsilon: float, rng: Rng) -> Array:
        """Draw how often each bit is 1 and return unbiased shares of the values."""
        counts = oue_counts(values, size, epsilon, rng)
        return oue_frequencies(counts, len(values), epsilon)


def bit_weights(epsilon: float) -> TwoWeights:
    """Return whole weights of a 0, the larger, and of a 1 in the bit of another value.

    Under two values the laws of two bits differ. The own bit is 1 or 0 alike, so that a report with
    one of the two bits 1 has the ratio of these weights, and any other has the ratio 1.
    """
    return two_weights(float(epsilon))  # in float64, whatever kind of number it is


def other_bit(epsilon: float) -> Fraction:
    """Return q of the whole weights, 1 / (e^eps + 1): the chance of a 1 in another value's bit."""
    return 1 - bit_weights(epsilon).chance(1, 1)


def size_law(size: int, own: float, other: float) -> Array:
    """Return the law of the size of a set that holds others independently; shape (size + 1,).

    ``own`` and ``other`` are the probabilities of the user's own value and of any other one.
    """
    others = scipy.stats.binom.pmf(np.arange(size), size - 1, other)
    law = np.zeros(size + 1)
    law[1:] += own * others
    law[:-1] += (1 - own) * others
    return law


def oue_counts(values: Ints, size: int, epsilon: float, rng: Rng) -> Ints:
    """Return how often each value's bit is 1 in the reports of n users.

    Parameters
    ----------
    values : (n,) integer array in [0, size), n >= 0
        One value a user.
    size : int >= 1
        Number of values, which is the length of a report in bits.
    epsilon : float > 0
        Privacy loss of one report under replacement of the user's value.
    rng : numpy.random.Generator

    Returns
    -------
    (size,) int64 array
        The bits of a report are independent, so count v is drawn from its exact law
        Binomial(n_v, 1/2) + Binomial(n - n_v, q), n_v users holding v and q of
        :func:`other_bit` (Wang et al., USENIX Security 2017, section 4.3): no n x size bits are
        held.

    Raises
    ------
    InputError
        A value outside [0, size).
    """
    check_loss(epsilon)
    holders = np.bincount(checked_values(values, size), minlength=size)
    return counts_of_holders(holders, int(holders.sum()), epsilon, rng)


def counts_of_holders(holders: Ints, reports: int, epsilon: float, rng: Rng) -> Ints:
    """Return :func:`oue_counts` from how many of that many reports are of each value."""
    own = binomial(holders, OWN_BIT, rng)
    return own + binomial(reports - holders, other_bit(epsilon), rng)


def oue_frequencies(counts: ArrayLike, n: int, epsilon: float) -> Array:
    """Return the :func:`unbiased_shares` of n users' :func:`oue_counts`; they need not sum to 1.

    The bits of values that a user does not hold are 1 with probability q = 1 / (e^eps + 1).
    """
    check_loss(epsilon)
    return unbiased_shares(counts, n, float(other_bit(epsilon)), _lift(epsilon))


def oue_variance(n: int, epsilon: float) -> float:
    """Return the variance of one frequency of :func:`oue_frequencies` whose truth is near 0.

    4 e^eps / (n (e^eps - 1)^2) = 1 / (n sinh(eps / 2)^2), for n >= 1 users (Wang et al. 2017,
    equation 7). A value that a share f of them hold adds f / n to it.
    """
    check_loss(epsilon)
    return share_variance(n, float(other_bit(epsilon)), _lift(epsilon))


def _lift(epsilon: float) -> float:
    """Return 1/2 - q."""
    return float(OWN_BIT - other_bit(epsilon))
