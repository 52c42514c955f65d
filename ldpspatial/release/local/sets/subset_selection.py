"""Subset selection: a report is a subset of k cells that holds the user's own more often.

Ye and Barg, "Optimal Schemes for Discrete Distribution Estimation under Locally Differential
Privacy" (2018), with the k that makes the variance least, up to rounding.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.compiled import compiled
from ldpspatial.privacy.whole_draws import TwoWeights, below, coins, two_weights
from ldpspatial.release.local.sets.frequencies import share_variance, unbiased_shares
from ldpspatial.release.local.sets.set_reports import (
    Array,
    Cells,
    Ints,
    Rng,
    SetEstimator,
    SetRelease,
    SetReports,
    check_users,
    checked_values,
)
from ldpspatial.release.release import Fact

CHUNK_ENTRIES = 1 << 22  # cells in the reports that are held at a time where they are counted


@dataclass(frozen=True)
class SubsetSelection(SetRelease):
    """Subset selection with EM, or with projection on the densities.

    Attributes
    ----------
    estimator : {"projection", "em"}
        Unbiased shares projected on the densities, or EM on the reports one by one.
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`; only with "em".
    """

    name: ClassVar[str] = "subset-selection"
    estimator: SetEstimator = "em"

    def design(self, size: int, epsilon: float) -> dict[str, Fact]:
        """Return the size k of the subsets."""
        return {"subset_size": subset_size(size, epsilon)}

    def weights(self, size: int, epsilon: float) -> TwoWeights:
        """Return those of a subset that holds the own cell, and of one that does not."""
        return two_weights(float(epsilon))

    def set_sizes(self, size: int, epsilon: float) -> Array:
        """Return the law of the size of a set: always k."""
        law = np.zeros(size + 1)
        law[subset_size(size, epsilon)] = 1
        return law

    def reports(self, values: Ints, size: int, epsilon: float, rng: Rng) -> SetReports:
        """Draw the subsets of users who hold these values in [0, size)."""
        given = checked_values(values, size)
        own = coins(inclusion_probability(size, epsilon), len(given), rng)
        others = subset_size(size, epsilon) - own.astype(np.int64)
        sets = draw_subsets(given, own, others, size, rng)
        return SetReports(*sets, size, self.weights(size, epsilon), _lift(size, epsilon))

    def frequencies(self, values: Ints, size: int, epsilon: float, rng: Rng) -> Array:
        """Draw reports and return unbiased shares of the values."""
        hits = np.zeros(size, np.int64)
        step = max(CHUNK_ENTRIES // subset_size(size, epsilon), 1)
        for start in range(0, len(values), step):
            reports = self.reports(values[start : start + step], size, epsilon, rng)
            hits += np.bincount(reports.cells, minlength=size)
        return subset_frequencies(hits, len(values), epsilon)

    def variances(self, size: int, n: int, epsilon: float) -> tuple[float, float]:
        """Return the :func:`subset_variances` of a share near 0, and of one near 1."""
        return subset_variances(size, n, epsilon)


def subset_size(size: int, epsilon: float) -> int:
    """Return k = max(1, round(m / (e^eps + 1))).

    A half, which no epsilon gives but by the rounding of floats, is rounded to even.
    """
    return max(1, round(size / (exp(epsilon) + 1)))


def inclusion_probability(size: int, epsilon: float) -> Fraction:
    """Return p = k e^eps / (k e^eps + m - k), with which a subset holds the user's own cell.

    Of the whole weights. There are k subsets with the own cell to m - k without, times one number.
    """
    k = subset_size(size, epsilon)
    return two_weights(float(epsilon)).chance(k, size - k)


def subset_frequencies(hits: ArrayLike, n: int, epsilon: float) -> Array:
    """Return the :func:`unbiased_shares` of n users' (m,) hits of values; they sum to 1.

    A subset holds a given other cell with probability q = (p (k - 1) + (1 - p) k) / (m - 1).
    """
    check_users(n)
    size = np.size(hits)
    if size == 1:
        return np.ones(1)
    k = subset_size(size, epsilon)
    p = inclusion_probability(size, epsilon)
    # p (k - 1) + (1 - p) k = k - p.
    return unbiased_shares(hits, n, float((k - p) / (size - 1)), _lift(size, epsilon))


def subset_variances(size: int, n: int, epsilon: float) -> tuple[float, float]:
    """Return the variances of a frequency that is near 0, and of one near 1, of n >= 1 users.

    In between they are so in proportion. Both are 0 where there is one value.
    """
    check_users(n)
    if size == 1:
        return 0.0, 0.0
    k = subset_size(size, epsilon)
    own = inclusion_probability(size, epsilon)
    lift = _lift(size, epsilon)
    near_1 = float(own * (1 - own)) / (n * lift**2)
    return share_variance(n, float((k - own) / (size - 1)), lift), near_1


def _lift(size: int, epsilon: float) -> float:
    """Return p - q = (p m - k) / (m - 1)."""
    if size == 1:
        return 1.0  # there is no other value
    k = subset_size(size, epsilon)
    return float((inclusion_probability(size, epsilon) * size - k) / (size - 1))


def draw_subsets(
    values: Ints, own: NDArray[np.bool_], others: Ints, size: int, rng: Rng
) -> tuple[Ints, Cells]:
    """Draw for each user a set: the own value or not, and a uniform subset of the other values.

    Parameters
    ----------
    values : (n,) int64 array in [0, size)
    own : (n,) bool array
        Whether the set holds the user's own value.
    others : (n,) int64 array in [0, size - 1]
        How many others it holds.
    size : int >= 1
    rng : numpy.random.Generator

    Returns
    -------
    starts, cells : arrays
        As in :class:`~ldpspatial.release.local.sets.set_reports.SetReports`.
    """
    starts = np.zeros(len(values) + 1, np.int64)
    np.cumsum(others + own, out=starts[1:])
    cells = np.empty(starts[-1], np.min_scalar_type(size - 1))
    _fill_subsets(values, own, starts, np.arange(size - 1), cells, rng)
    return starts, cells


@compiled
def _fill_subsets(values, own, starts, deck, cells, rng):  # type: ignore[no-untyped-def]
    """Deal each user's others from the deck (Fisher and Yates), which stays shuffled.

    The own value takes a uniform place, so the order says nothing.
    """
    for user in range(values.size):
        value = values[user]
        first = starts[user]
        end = starts[user + 1]
        for k in range(end - first - own[user]):
            pick = k + below(deck.size - k, rng)
            deck[k], deck[pick] = deck[pick], deck[k]
            cells[first + k] = deck[k] + (deck[k] >= value)  # the deck leaves the own value out
        if own[user]:
            place = first + below(end - first, rng)
            cells[end - 1] = cells[place]
            cells[place] = value
