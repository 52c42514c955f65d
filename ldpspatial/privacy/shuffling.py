"""What local reports would promise centrally if a trusted party shuffled them.

Nothing in this project shuffles: these bounds put a local curve beside central ones at equal
central epsilon. They hold for n people who each send one report of one epsilon0-locally private
mechanism, and for one person's data replaced by any other. docs/shuffling.md has proof and limits.

For epsilon0 alone, the pair of distributions that is hardest to tell apart is handed to the
accountant of Google's differential privacy team, the package dp-accounting, which is imported when
it is first needed. A mechanism whose reports often say nothing is bounded more tightly by a sum.
"""

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from ldpspatial.validate import MAX_EPSILON, number_in, whole_number

Array: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

MAX_REPORTS = 10**9
LOCAL = f"(0, {MAX_EPSILON}]"  # epsilons of a report

# What lies more than this many standard deviations off, about 1e-15, is counted in delta.
_REACH = 8.0
# Numbers of clones are rounded down to this many binary digits, for at most 1e-3 of epsilon.
_DIGITS = 10
# Losses are rounded up to multiples of this part of their standard deviation.
_INTERVAL = 5e-4
# Sums of binomial tails are good to some 1e-10 of their value; this is what is added to them.
_ROUNDING = 1e-8
_PRECISION = 1e-4


def amplified_delta(epsilon0: float, n: int, epsilon: float, blanket: float | None = None) -> float:
    """Return a delta for which n shuffled reports are (epsilon, delta)-differentially private.

    Never less than the bound is, and more by 2 % at most plus some 1e-15 of binomial tails.

    Parameters
    ----------
    epsilon0 : float in (0, 20]
        Privacy loss of one report: the local claim.
    n : int from 1 to 1e9
        Number of reports that are shuffled, one a person.
    epsilon : float >= 0
        The central epsilon.
    blanket : float in (0, 1), optional
        Share of a report that says nothing: the sum over reports of their least probability over
        all inputs. It is k / (e^epsilon0 + k - 1) for k-ary randomised response, and
        ``table.output_size * table.base_weight / table.total_weight`` for a response table. The
        bound is then the tighter one of mechanisms with such a blanket; without it, that of all
        epsilon0-private mechanisms, for which dp-accounting must be installed.

    Raises
    ------
    InputError
        An argument breaks its rule.
    ImportError
        dp-accounting is needed and missing: install ``ldpspatial[shuffle]``.

    References
    ----------
    Balle et al., The Privacy Blanket of the Shuffle Model, CRYPTO 2019, lemmas 5.1 to 5.3; Feldman,
    McMillan and Talwar, Stronger Privacy Amplification by Shuffling for Renyi and Approximate
    Differential Privacy, SODA 2023, theorem 3.1 (in its erratum's light, docs/shuffling.md).

    Examples
    --------
    >>> alone = (math.e - 1) / (math.e + 1)  # total variation of binary randomised response
    >>> alone <= amplified_delta(1.0, 1, 0.0) <= alone + 1e-4
    True
    """
    loss, people, share = _checked(epsilon0, n, blanket)
    target = number_in("epsilon", epsilon, "[0, inf)")
    if target >= loss:
        return 0.0  # shuffling is post-processing: the local claim holds on
    if share is None:
        delta = _privacy_loss(loss, people).get_delta_for_epsilon(target)
    else:
        delta = _blanket_delta(loss, people, target, share)
    return float(min(delta, 1.0))


def amplified_epsilon(epsilon0: float, n: int, delta: float, blanket: float | None = None) -> float:
    """Return an epsilon for which n shuffled reports are (epsilon, delta)-differentially private.

    Never less than the bound is, and more by 2e-3 of itself at most where delta is 1e-12 or more;
    for the least deltas it is epsilon0, which always holds.

    Parameters
    ----------
    epsilon0, n, blanket
        As in `amplified_delta`, and so are errors and references.
    delta : float in [0, 1]

    Examples
    --------
    >>> 0.0430 < amplified_epsilon(1.0, 10_000, 1e-6) < 0.0434
    True
    """
    loss, people, share = _checked(epsilon0, n, blanket)
    target = number_in("delta", delta, "[0, 1]")
    if share is None:
        return float(min(_privacy_loss(loss, people).get_epsilon_for_delta(target), loss))
    low, high = 0.0, loss
    if _blanket_delta(loss, people, low, share) <= target:
        return low
    # The bound holds at high, at first as the local claim itself, and not at low: high is returned.
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if _blanket_delta(loss, people, middle, share) <= target:
            high = middle
        else:
            low = middle
    return high


def local_epsilon_for(epsilon: float, delta: float, n: int) -> float:
    """Return the local epsilon whose n shuffled reports are (epsilon, delta)-private centrally.

    The largest that the accountant proves, up to 1e-4 of itself, between `epsilon` and 20: at it,
    a local mechanism can be compared with a central one at equal (epsilon, delta).

    Parameters
    ----------
    epsilon : float in (0, 20]
        The central epsilon, under replacement of one person's data.
    delta : float in [0, 1]
    n : int from 1 to 1e9

    Raises
    ------
    InputError, ImportError
        As `amplified_delta`.

    Examples
    --------
    >>> 0.99 < local_epsilon_for(0.0433, 1e-6, 10_000) < 1.01
    True
    """
    low = number_in("epsilon", epsilon, LOCAL)
    high = float(MAX_EPSILON)
    target = number_in("delta", delta, "[0, 1]")
    if amplified_delta(high, n, low) <= target:
        return high
    centre = low
    # Holds at low, where the local claim alone is enough, and not at high: low is returned.
    while high - low > _PRECISION * low:
        middle = math.sqrt(low * high)  # in ratio: precision is relative, and so is the range
        if amplified_delta(middle, n, centre) <= target:
            low = middle
        else:
            high = middle
    return low


def _checked(epsilon0: object, n: object, blanket: object) -> tuple[float, int, float | None]:
    loss = number_in("epsilon0", epsilon0, LOCAL)
    people = whole_number("n", n, 1, MAX_REPORTS)
    return loss, people, None if blanket is None else number_in("blanket", blanket, "(0, 1)")


def _privacy_loss(epsilon0: float, n: int) -> Any:
    """Return the privacy loss distribution of n shuffled reports, for every mechanism at once."""
    try:
        from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415 (it is optional)
    except ImportError as error:
        raise ImportError(
            "amplification by shuffling needs dp-accounting: install ldpspatial[shuffle]"
        ) from error
    share = _least_blanket(epsilon0)
    # Of the loss, to first order: (r - 1) (a - b) / (a + r b) where a + b is m = (n - 1) share + 1
    # bits, a and b about m / 2 each and a - b of deviation sqrt(m); (r - 1) / (r + 1) is the tanh.
    deviation = 2 * math.tanh(epsilon0 / 2) / math.sqrt((n - 1) * share + 1)
    interval = _INTERVAL * min(epsilon0, deviation)
    masses, losses, missing = _dominating_pair(epsilon0, n, share)
    # Rounded up: with larger losses the pair is easier to tell apart, which errs on the safe side.
    steps, at = np.unique(np.ceil(losses / interval), return_inverse=True)
    mass_of_step = dict(zip(steps.astype(int).tolist(), np.bincount(at, masses), strict=True))
    return privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
        mass_of_step, missing, interval, pessimistic_estimate=True
    )


def _dominating_pair(epsilon0: float, n: int, share: float) -> tuple[Array, Array, float]:
    """Return masses and privacy losses of outcomes, and the mass left out.

    C of the other n - 1 people, binomial, send a fair bit in place of their report; the one in
    question sends 1 or 0 with odds of e^epsilon0. The outcome is C and the number of ones. The
    other distribution has the ones and zeros exchanged. Only outcomes of positive loss matter.
    """
    ratio = math.exp(epsilon0)
    gain = math.expm1(epsilon0)
    clones, weights, missing = _rungs(n - 1, share)
    bits = clones + 1
    # The ones among fair bits have the deviation sqrt(bits) / 2; what lies beyond goes into delta.
    most = np.minimum(bits, np.ceil(bits / 2 + _REACH * np.sqrt(bits) / 2).astype(np.int64) + 1)
    rung, ones = _ranges(bits // 2 + 1, most)  # more ones than zeros: a loss above 0
    zeros = bits[rung] - ones
    # How likely the outcome is beside fair bits: 2 (r a + b) / ((r + 1) (a + b)), at most 2.
    beside = 2 * (ratio * ones + zeros) / ((ratio + 1) * bits[rung])
    masses = weights[rung] * scipy.stats.binom.pmf(ones, bits[rung], 0.5) * beside
    # ln((r a + b) / (a + r b)), exact also where r is near 1.
    losses = np.log1p(gain * (ones - zeros) / (ones + ratio * zeros))
    # The tail is that of fair bits; the outcome is at most twice as likely (beside).
    return (
        masses,
        losses,
        missing + 2 * float((weights * scipy.stats.binom.sf(most, bits, 0.5)).sum()),
    )


def _least_blanket(epsilon0: float) -> float:
    """Return the blanket of binary randomised response: no mechanism is bounded by less."""
    return 2 / (math.exp(epsilon0) + 1)


def _rungs(people: int, share: float) -> tuple[Ints, Array, float]:
    """Return values and probabilities of a binomial number, rounded down, and the mass left out.

    With fewer clones the outcome is easier to tell apart, as adding one is post-processing: so
    rounding down errs on the safe side. The rungs depend on nothing: more people, lower bound.
    """
    mean = people * share
    # mean is above the variance, so sqrt(mean) is a deviation or more. Where the mean is small, the
    # upper tail is longer than a normal one: 50 more keep what is beyond below 1e-18.
    low = max(math.floor(mean - (_REACH + 1) * math.sqrt(mean)), 0)
    high = min(math.ceil(mean + (_REACH + 1) * math.sqrt(mean)) + 50, people)
    counts = np.arange(low, high + 1)
    weights = scipy.stats.binom.pmf(counts, people, share)
    # More clones than high count as high, rounded down. Fewer than low would have to be rounded up,
    # which is not safe: their mass is left out, and callers add it to delta.
    weights[-1] += scipy.stats.binom.sf(high, people, share)
    digits_off = np.maximum(np.frexp(counts)[1] - _DIGITS, 0)
    rungs, at = np.unique(counts >> digits_off << digits_off, return_inverse=True)
    masses: Array = np.bincount(at, weights).astype(np.float64)
    return rungs.astype(np.int64), masses, float(scipy.stats.binom.cdf(low - 1, people, share))


def _ranges(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return every whole number from first[i] to last[i] for all i, after the i of each."""
    lengths = np.maximum(last - first + 1, 0)
    which = np.repeat(np.arange(len(first)), lengths)
    # Place in the whole less the place where block i begins, plus first[i].
    return which, np.arange(lengths.sum()) - (np.cumsum(lengths) - lengths - first)[which]


def _blanket_delta(epsilon0: float, n: int, epsilon: float, blanket: float) -> float:
    """Return the hockey-stick divergence where each report is drawn from a blanket at times.

    Of the m reports that are left when those beside the blanket are revealed, a show the one
    datum, b the other, and the rest neither. The divergence is the sum over (a, b) of their
    multinomial probability times (blanket / m) max(r a + b + rest - e^epsilon (a + r b + rest), 0),
    where r = e^epsilon0. For every b, the sum over a is one over binomial tails.
    """
    gain = math.expm1(epsilon0)
    share, letter = _least_blanket(epsilon0), 0.5  # probability of a, and of b, in the blanket
    if blanket > share:
        share = blanket
        # 1 / k of k-ary randomised response with this blanket, k / (r + k - 1), k not always whole
        # (docs/shuffling.md, theorem 2). Below the least possible blanket that one counts: k = 2.
        letter = min((1 - blanket) / (gain * blanket), 0.5)
    given = min(letter / (1 - letter), 1.0)  # probability of a, where it is not b
    others, weights, missing = _rungs(n - 1, share)
    half = np.ceil((_REACH + 1) * np.sqrt(others * letter)).astype(np.int64) + 25
    first = np.maximum(np.floor(others * letter).astype(np.int64) - half, 0)
    last = np.minimum(np.ceil(others * letter).astype(np.int64) + half, others)
    # Of the reports, the one in question may be one of b: more than `last` are `last` others.
    # Beyond all others there is nothing to leave out: where all are b, a is 0.
    above = np.where(last < others, scipy.stats.binom.sf(last - 1, others, letter), 0.0)
    missing += float((weights * (scipy.stats.binom.cdf(first - 1, others, letter) + above)).sum())

    rung, b = _ranges(first, last)
    m = others[rung] + 1
    left = m - b
    # As a + b + rest = m, the difference in the docstring is gain a - loss.
    loss = m * math.expm1(epsilon) + math.exp(epsilon) * gain * b
    least = np.floor(loss / gain) + 1  # of a, for the difference to be positive
    tail = scipy.stats.binom.sf(least - 1, left, given)
    # E[a; a >= k] of a binomial (n, p) is n p P(a' >= k - 1), a' of n - 1 and p.
    mean = (
        left * given * scipy.stats.binom.sf(least - 2, left - 1, given)
    )  # of a, where it is no less
    # A mean of what is no less than 0: below it is rounding, where the two terms nearly cancel.
    excess = np.maximum(gain * mean - loss * tail, 0.0)
    sums = weights[rung] * scipy.stats.binom.pmf(b, m, letter) * excess * share / m
    return float(sums.sum()) * (1 + _ROUNDING) + missing
