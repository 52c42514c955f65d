"""How far apart two outputs provably are: a lower bound on epsilon from samples.

A mechanism that claims epsilon must not give samples on neighbouring inputs whose bound exceeds it;
a mechanism with too little noise should, given enough samples.
"""

from collections.abc import Sequence
from math import log
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, gammaln

from ldpspatial.errors import InputError
from ldpspatial.validate import number_array, number_in, whole_array, whole_number

Array: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[Array, Array]

CONFIDENCE = 1 - 1e-6
MOST_THRESHOLDS = 256
MOST_RUNS = 1 << 53  # all whole numbers up to this one are floats


def lower_bound_epsilon(
    samples_p: ArrayLike,
    samples_q: ArrayLike,
    confidence: float = CONFIDENCE,
    delta: float = 0.0,
) -> float:
    """Bound from below the epsilon at which P and Q can be (epsilon, delta)-close, both ways.

    The events tried are "the statistic is at least t" and "at most t". Every other sample serves
    to pick the event and the direction; the rest measure that one event with Clopper-Pearson
    bounds (two halves as in Bichsel et al., DP-Sniper, 2021), so there is nothing to correct for
    the number of events tried.

    Parameters
    ----------
    samples_p, samples_q : (n,), (m,) arrays of numbers, n, m >= 2
        A statistic of the output on either input, in the order drawn (not sorted).
    confidence : float
        The bound exceeds the true epsilon with probability at most 1 - confidence.
    delta : float
        The delta that is claimed, 0 for pure differential privacy.

    Returns
    -------
    float
        0 or more: a lower bound on max over events E of ln((P(E) - delta) / Q(E)), and the same
        with P and Q exchanged; 0 where the samples show nothing.
    """
    p = number_array("samples_p", samples_p, ("n",), "[-inf, inf]", bools=True)
    q = number_array("samples_q", samples_q, ("m",), "[-inf, inf]", bools=True)
    if min(len(p), len(q)) < 2:
        raise InputError(f"samples_p and samples_q must be 2 or more, got {len(p)} and {len(q)}")
    confidence = number_in("confidence", confidence, "(0, 1)")
    delta = number_in("delta", delta, "[0, 1]")
    return best_bound([(p[::2], q[::2])], [(p[1::2], q[1::2])], confidence, delta)[0]


def best_bound(
    choosing: Sequence[Pair], measuring: Sequence[Pair], confidence: float, delta: float
) -> tuple[float, int]:
    """Bound epsilon by the statistic and the event that do best on samples of their own.

    Parameters
    ----------
    choosing, measuring : sequences of pairs of arrays
        Each statistic on either input, on samples of which the event is chosen, and on others.
    confidence : float
    delta : float

    Returns
    -------
    (float, int)
        The bound, 0 or more, and the number of the statistic.
    """
    error = (1 - confidence) / 2  # one half for the numerator, one for the denominator
    best = -np.inf
    event = None
    chosen = 0
    for which, ((p, q), (fresh_p, fresh_q)) in enumerate(zip(choosing, measuring, strict=True)):
        thresholds = _thresholds(p, q)
        ways = ((p, q, fresh_p, fresh_q), (q, p, fresh_q, fresh_p))
        for above, below, fresh_above, fresh_below in ways:
            for sign in (1, -1):  # at least t, at most t
                cuts = sign * thresholds
                bounds = _log_ratio(sign * above, sign * below, cuts, error, delta)
                if bounds.max() > best:
                    best = bounds.max()
                    chosen = which
                    event = (sign * fresh_above, sign * fresh_below, cuts[[bounds.argmax()]])
    if event is None:
        return 0.0, chosen
    return max(0.0, float(_log_ratio(*event, error, delta)[0])), chosen


def lower_bound_product(
    hits_p: ArrayLike, hits_q: ArrayLike, runs: int, confidence: float = CONFIDENCE
) -> float:
    """Bound from below the sum of ln(P_i(E_i) / Q_i(E_i)) over independent events.

    Of events that were chosen before, from how often each was seen in so many runs of its own. Of n
    runs let X see an event of probability p, and Y one of probability q. For every whole s

        E[X (X - 1) .. (X - s + 1)] = n (n - 1) .. (n - s + 1) p^s   and
        E[1 / ((Y + 1) .. (Y + s))] <= 1 / ((n + 1) .. (n + s) q^s).

    So the product over all events of what stands for (p / q)^s by these, over (p / q)^s itself, has
    a mean of at most 1, and by Markov's inequality exceeds 1 / a with probability at most a. That
    bounds the whole sum at once, far better than a bound of one event each: with the best s, by
    sqrt(2 ln(1 / a)) standard deviations of the estimate. Of s the powers of two are tried, each
    with its part of the error.

    Parameters
    ----------
    hits_p, hits_q : (m,) arrays of int in [0, runs], m >= 1
    runs : int in [1, 2^53]
    confidence : float in (0, 1)
        The bound exceeds the true sum with probability at most 1 - confidence.

    Returns
    -------
    float
        May be negative, or -inf where an event was never seen on P.

    Raises
    ------
    InputError
        No event, a number for another number of events, or one beyond its rule.
    """
    runs = whole_number("runs", runs, 1, MOST_RUNS)
    x, y = _hits("hits_p", hits_p, runs), _hits("hits_q", hits_q, runs)
    if len(x) != len(y):
        raise InputError(f"hits_p and hits_q must be as many, got {len(x)} and {len(y)}")
    confidence = number_in("confidence", confidence, "(0, 1)")
    powers = 2.0 ** np.arange(runs.bit_length())
    error = (1 - confidence) / len(powers)
    best = -np.inf
    for s in powers[powers <= x.min()]:
        over = _log_falling(x, s) - _log_falling(runs, s)
        under = _log_falling(y + s, s) - _log_falling(runs + s, s)
        best = max(best, float((over - under).sum() + log(error)) / s)
    return float(best)


def _hits(field: str, hits: ArrayLike, runs: int) -> Array:
    return number_array(field, whole_array(field, hits, ("m",), 0, runs + 1), ("m",))


def _log_falling(number: Array | float, s: float) -> Array:
    """Return ln of number (number - 1) .. (number - s + 1)."""
    return np.asarray(gammaln(number + 1) - gammaln(number - s + 1))


def _thresholds(p: Array, q: Array) -> Array:
    """Return up to MOST_THRESHOLDS values that were seen, at even ranks."""
    seen: Array = np.unique(np.concatenate([p, q]))
    ranks = np.linspace(0, len(seen) - 1, min(len(seen), MOST_THRESHOLDS))
    chosen: Array = seen[ranks.round().astype(int)]
    return chosen


def _log_ratio(above: Array, below: Array, cuts: Array, error: float, delta: float) -> Array:
    """Return ln((least P(X >= cut) - delta) / most Q(X >= cut)) for each cut."""
    hits_above = len(above) - np.searchsorted(np.sort(above), cuts)
    hits_below = len(below) - np.searchsorted(np.sort(below), cuts)
    least = np.zeros(len(cuts))
    some = hits_above > 0
    k = hits_above[some]
    # Clopper and Pearson: quantiles of Beta(k, n - k + 1) and Beta(k + 1, n - k). Where k is 0, or
    # n in the upper bound, there is no such law, and the bounds stay 0 and 1.
    least[some] = betaincinv(k, len(above) - k + 1, error)
    most = np.ones(len(cuts))
    some = hits_below < len(below)
    k = hits_below[some]
    most[some] = betaincinv(k + 1, len(below) - k, 1 - error)
    with np.errstate(divide="ignore"):
        bound: Array = np.log(np.maximum(least - delta, 0.0)) - np.log(most)
    return bound
