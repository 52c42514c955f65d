"""Optimised local hashing: a value is hashed to a few, and k-RR reports the hash.

Hash family: quadratic polynomials over the field of P = 2^61 - 1 elements, cut into g buckets of
equal width (the last takes what is left, less than g elements, so no bucket's probability is off
by more than g / P). Their values at any three points are independent. So a report supports a value
that the user does not hold with probability 1/g, whatever the user holds: frequencies are
unbiased; and two such values with probability 1/g^2: variances and covariances are those of a
random function. A polynomial is drawn by its value and its first two differences at 0.

The claim does not depend on the family. The function is drawn without looking at the value, and
given any function the reported hash has one of two whole weights under every value, over one total:
e^eps times the other, rounded down.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ldpspatial.compiled import compiled
from ldpspatial.privacy.whole_draws import TwoWeights, two_weights
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
from ldpspatial.release.local.sets.unary import size_law
from ldpspatial.release.release import Fact

FIELD = (1 << 61) - 1  # P, a prime; the sum of two elements fits 64 bits


@dataclass(frozen=True)
class Olh(SetRelease):
    """Optimised local hashing with projection on the densities, or with EM.

    Attributes
    ----------
    estimator : {"projection", "em"}
        Unbiased shares projected on the densities, or EM on the reports one by one.
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`; only with "em".
    """

    name: ClassVar[str] = "olh"

    def design(self, size: int, epsilon: float) -> dict[str, Fact]:
        """Return the number g of hash values."""
        return {"hash_values": hash_values(epsilon)}

    def weights(self, size: int, epsilon: float) -> TwoWeights:
        """Return those of the own hash and of every other one."""
        return hash_weights(epsilon)

    def set_sizes(self, size: int, epsilon: float) -> Array:
        """Return the law of the number of cells that a report supports.

        That of a random function; the family has its mean and variance.
        """
        return size_law(size, float(keep_probability(epsilon)), 1 / hash_values(epsilon))

    def reports(self, values: Ints, size: int, epsilon: float, rng: Rng) -> SetReports:
        """Draw a function and a hash for each user, and list the cells with that hash."""
        given = checked_values(values, size)
        functions, shifts = draw_hashing(len(given), epsilon, rng)
        drawn = given, functions, shifts, hash_values(epsilon)
        starts = np.zeros(len(given) + 1, np.int64)
        np.cumsum(_set_sizes(*drawn, size), out=starts[1:])
        cells = np.empty(starts[-1], np.min_scalar_type(size - 1))
        _fill_sets(*drawn, size, starts, cells)
        return SetReports(starts, cells, size, hash_weights(epsilon), _lift(epsilon))

    def frequencies(self, values: Ints, size: int, epsilon: float, rng: Rng) -> Array:
        """Draw how many reports support each value and return unbiased shares of the values."""
        counts = olh_counts(values, size, epsilon, rng)
        return olh_frequencies(counts, len(values), epsilon)


def hash_values(epsilon: float) -> int:
    """Return g = round(e^eps) + 1, which minimises the variance (Wang et al. 2017, section 4.4)."""
    return round(exp(epsilon)) + 1


def hash_weights(epsilon: float) -> TwoWeights:
    """Return whole weights of the own hash, the larger, and of each of the g - 1 others."""
    return two_weights(float(epsilon), 1, hash_values(epsilon) - 1)


def keep_probability(epsilon: float) -> Fraction:
    """Return p = e^eps / (e^eps + g - 1), with which the report is the hash of the user's value.

    Of the whole weights.
    """
    return hash_weights(epsilon).chance(1, hash_values(epsilon) - 1)


def olh_counts(values: Ints, size: int, epsilon: float, rng: Rng) -> Ints:
    """Return how many of n users' reports support each value.

    A report is a hash function and one of its g hash values; it supports all values that the
    function sends there. All functions and reports are drawn, in time n size and memory n.
    Arguments, shape and errors are those of
    :func:`ldpspatial.release.local.sets.unary.oue_counts`.
    """
    check_loss(epsilon)
    given = checked_values(values, size)
    functions, shifts = draw_hashing(len(given), epsilon, rng)
    return np.asarray(_support(given, functions, shifts, hash_values(epsilon), size))


def olh_frequencies(counts: ArrayLike, n: int, epsilon: float) -> Array:
    """Return the :func:`unbiased_shares` of n users' :func:`olh_counts`; they need not sum to 1.

    A report supports a value that the user does not hold with probability 1/g.
    """
    check_loss(epsilon)
    return unbiased_shares(counts, n, 1 / hash_values(epsilon), _lift(epsilon))


def olh_variance(n: int, epsilon: float) -> float:
    """Return the variance of one frequency of :func:`olh_frequencies` whose truth is near 0.

    (1/g) (1 - 1/g) / (n (p - 1/g)^2), for n >= 1 users (Wang et al. 2017, equation 9).
    """
    check_loss(epsilon)
    return share_variance(n, 1 / hash_values(epsilon), _lift(epsilon))


def draw_hashing(n: int, epsilon: float, rng: Rng) -> tuple[Ints, Ints]:
    """Draw for n users a hash function each, and how far the report is from the user's own hash.

    Returns
    -------
    functions : (n, 3) array in [0, P)
        Value at 0 and first two differences.
    shifts : (n,) array in [0, g)
        The report is (own hash + shift) modulo g: 0 with probability p, others alike.
    """
    functions = rng.integers(FIELD, size=(n, 3))
    weights = hash_weights(epsilon)
    drawn = rng.integers(weights.top + (hash_values(epsilon) - 1) * weights.base, size=n)
    others = 1 + (drawn - weights.top) // weights.base
    return functions, np.where(drawn < weights.top, 0, others)


def _lift(epsilon: float) -> float:
    """Return p - 1/g."""
    return float(keep_probability(epsilon) - Fraction(1, hash_values(epsilon)))


@compiled
def _hash_all(function, hashes):  # type: ignore[no-untyped-def]
    """Set hashes[v] to the field element of value v, for v = 0, 1, ..."""
    element, first, second = function
    # A quadratic by differences: two additions a value, and no product modulo P.
    for v in range(hashes.size):
        hashes[v] = element
        element += first
        if element >= FIELD:
            element -= FIELD
        first += second
        if first >= FIELD:
            first -= FIELD


@compiled
def _bucket_bounds(element, shift, g):  # type: ignore[no-untyped-def]
    """Return first and end of the bucket that is ``shift`` after the one of a field element."""
    width = FIELD // g
    bucket = (min(element // width, g - 1) + shift) % g
    return bucket * width, FIELD if bucket == g - 1 else (bucket + 1) * width


@compiled
def _support(values, functions, shifts, g, size):  # type: ignore[no-untyped-def]
    """Return how many users' reports support each value."""
    counts = np.zeros(size, np.int64)
    hashes = np.empty(size, np.int64)
    for user in range(values.size):
        _hash_all(functions[user], hashes)
        low, end = _bucket_bounds(hashes[values[user]], shifts[user], g)
        for v in range(size):
            counts[v] += low <= hashes[v] < end
    return counts


@compiled
def _set_sizes(values, functions, shifts, g, size):  # type: ignore[no-untyped-def]
    """Return how many values each user's report supports."""
    sizes = np.zeros(values.size, np.int64)
    hashes = np.empty(size, np.int64)
    for user in range(values.size):
        _hash_all(functions[user], hashes)
        low, end = _bucket_bounds(hashes[values[user]], shifts[user], g)
        for v in range(size):
            sizes[user] += low <= hashes[v] < end
    return sizes


@compiled
def _fill_sets(values, functions, shifts, g, size, starts, cells):  # type: ignore[no-untyped-def]
    """List the values that each user's report supports, in order."""
    hashes = np.empty(size, np.int64)
    for user in range(values.size):
        _hash_all(functions[user], hashes)
        low, end = _bucket_bounds(hashes[values[user]], shifts[user], g)
        at = starts[user]
        for v in range(size):
            if low <= hashes[v] < end:
                cells[at] = v
                at += 1
