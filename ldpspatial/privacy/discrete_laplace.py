"""Discrete Laplace noise: P(k) = (1 - a) / (1 + a) a^|k|, a = exp(-1 / scale).

Noise of scale sensitivity / epsilon on a sum of that sensitivity gives epsilon-DP. Here are its
law, and exact draws from it.

The sampler of Canonne, Kamath and Steinke ("The Discrete Gaussian for Differential Privacy", 2020,
Algorithms 1 and 2): scale is a fraction, every decision compares whole numbers, and no float is
compared with a random float. Entropy is an argument: the operating system's for what is published,
a seeded generator's where a simulation is to be repeated.

Numbers fit 64 bits: numerator and denominator stay below 2^53, and the count of coins that came
up heads in a row (each with probability 1/e) is cut at 1023, so all sums stay below 2^63. The cut
is reached with probability e^-1023 < 10^-444; it is the only departure from exactness.
"""

from math import exp, expm1, gcd, hypot, inf, isfinite, log, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client_sdk.shared import Entropy
from ldpspatial.compiled import compiled
from ldpspatial.errors import InputError
from ldpspatial.validate import (
    WEIGHT_LIMIT,
    function,
    number_array,
    positive,
    random_bytes,
    shown,
    whole_number,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_HEADS = 1023
LEAST_SPREAD = 1e-100  # below it 1 is nothing beside 1 / v
DRAW_BYTES = 24  # about what a draw takes, by which entropy is asked for
CHUNK_BYTES = 1 << 20  # at a time, and no more: it stays in the cache


def sample(size: int, numerator: int, denominator: int, entropy: Entropy) -> Ints:
    """Draw independent discrete Laplace numbers of scale numerator / denominator.

    Parameters
    ----------
    size : int >= 0
    numerator, denominator : int in [1, 2^53)
        Of the scale; for a sum of sensitivity D at epsilon e it is D / e.
    entropy : callable
        Number of bytes -> so many uniform and independent bytes: client_sdk.entropy.system, or
        ``rng.bytes`` of a numpy Generator in a simulation.

    Returns
    -------
    (size,) int64 array

    Raises
    ------
    InputError
        An argument breaks its rule, or ``entropy`` returns another number of bytes.

    Examples
    --------
    >>> noise = sample(10_000, 7, 2, np.random.default_rng(1).bytes)
    >>> bool(abs(noise.std() / noise_deviation(2, 7) - 1) < 0.05)
    True
    """
    top, bottom = _scale(numerator, denominator)
    function("entropy", entropy)
    out = np.empty(whole_number("size", size, 0, WEIGHT_LIMIT - 1), np.int64)
    data = np.empty(0, np.uint8)
    done = 0
    while done < len(out):
        more = min(DRAW_BYTES * (len(out) - done), CHUNK_BYTES)
        # Bytes of a draw that was not finished are read again, so draws depend on the stream of
        # bytes alone and not on how it was cut.
        data = np.concatenate([data, np.frombuffer(random_bytes(entropy, more), np.uint8)])
        done, used = _fill(data, top, bottom, out, done)
        data = data[used:]
    return out


def probability(k: ArrayLike, numerator: int, denominator: int) -> Array:
    """Return P(k), shaped like ``k``.

    Raises
    ------
    InputError
        A scale that :func:`sample` refuses.

    Examples
    --------
    >>> float(probability([-1, 0, 1], 1, 1).sum().round(3))
    0.802
    """
    top, bottom = _scale(numerator, denominator)
    rate = bottom / top
    # (1 - a) / (1 + a) = tanh(rate / 2) for a = e^-rate, without a difference of like numbers.
    law: Array = np.tanh(rate / 2) * np.exp(-rate * np.abs(number_array("k", k)))
    return law


def noise_deviation(epsilon: float, sensitivity: float) -> float:
    """Return the standard deviation of the discrete Laplace noise of an epsilon.

    sqrt(2 a) / (1 - a) with a = exp(-epsilon / sensitivity).

    Raises
    ------
    InputError
        An argument is not a positive finite number, or the deviation is beyond all floats.

    Examples
    --------
    >>> round(noise_deviation(1.0, 1), 3)
    1.357
    """
    decay = positive("epsilon", epsilon) / positive("sensitivity", sensitivity)
    # 1 - a by expm1: at the least decay of a round, 2^-40, 1 - exp(-decay) keeps four digits.
    deviation = sqrt(2.0) * exp(-decay / 2) / -expm1(-decay) if decay else inf
    return _finite("epsilon", epsilon, "deviation", deviation)


def epsilon_for(deviation: float, sensitivity: float) -> float:
    """Return the epsilon whose noise has this standard deviation; inverts `noise_deviation`.

    a = ((v + 1) - sqrt(2 v + 1)) / v for variance v (Bagdasaryan et al. 2022, section 5.3), of
    which 1 / a = 1 + (1 + sqrt(2 v + 1)) / v loses no digits to cancellation.

    Raises
    ------
    InputError
        An argument is not a positive finite number, or the epsilon is beyond all floats.

    Examples
    --------
    >>> round(epsilon_for(1.357, 1), 3)
    1.0
    """
    spread = positive("deviation", deviation)
    most = positive("sensitivity", sensitivity)
    # The hypot is sqrt(2 v + 1). v itself, which may over- or underflow, is never formed.
    root = 1.0 + hypot(sqrt(2.0) * spread, 1.0)
    # The logarithm apart where root / v may be beyond all floats.
    tiny = spread < LEAST_SPREAD
    loss = log(root) - 2 * log(spread) if tiny else log1p(root / spread / spread)
    return _finite("deviation", deviation, "epsilon", most * loss)


def _finite(field: str, value: object, name: str, result: float) -> float:
    """Return a result, or refuse the value that makes it larger than floats are."""
    if not isfinite(result):
        raise InputError(
            f"{field} must be large enough for a finite {name} at this sensitivity, "
            f"got {shown(value)}"
        )
    return result


def _scale(numerator: object, denominator: object) -> tuple[int, int]:
    """Return the scale in lowest terms."""
    top = whole_number("numerator", numerator, 1, WEIGHT_LIMIT - 1)
    bottom = whole_number("denominator", denominator, 1, WEIGHT_LIMIT - 1)
    shared = gcd(top, bottom)
    return top // shared, bottom // shared


# A kernel reads bytes from a position on and returns the next position, or -1 where the bytes do
# not reach; then the draw is begun again with more of them.


@compiled
def _below(data, at, bound):  # type: ignore[no-untyped-def]
    """Return a uniform number in [0, bound): the low bits of big-endian bytes, by rejection."""
    # All bits up to the highest of bound - 1 are set, so more than half of all draws are accepted.
    mask = bound - 1
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> shift
    while True:
        u = np.int64(0)
        left = mask
        while left > 0:
            if at == data.size:
                return np.int64(0), -1
            u = (u << 8) | np.int64(data[at])
            at += 1
            left >>= 8
        u &= mask
        if u < bound:
            return u, at


@compiled
def _exponential_coin(data, at, u, t):  # type: ignore[no-untyped-def]
    """Return whether a coin of probability exp(-u / t) shows heads, 0 <= u <= t.

    Coins of u/t, u/(2t), u/(3t), ... are thrown until one shows tails; heads if it was the first,
    the third, and so on, with probability 1 - u/t + (u/t)^2/2! - ... (Algorithm 1). A coin of
    u/(k t) is one of 1/k and one of u/t: no product that could grow.
    """
    k = np.int64(1)
    while True:
        pick, at = _below(data, at, k)
        if at >= 0 and pick == 0:
            pick, at = _below(data, at, t)
            if at >= 0 and pick < u:
                k += 1
                continue
        # Where the bytes ran out (at < 0) this is no verdict: callers look at the position first.
        return k % 2 == 1, at


@compiled
def _draw(data, at, top, bottom):  # type: ignore[no-untyped-def]
    """Return one number of scale top / bottom (Algorithm 2)."""
    while True:
        u, at = _below(data, at, top)
        if at < 0:
            return np.int64(0), at
        heads, at = _exponential_coin(data, at, u, top)
        if at < 0:
            return np.int64(0), at
        if not heads:
            continue
        # Now u + top * v is geometric: P(x) falls as exp(-x / top).
        v = np.int64(0)
        # u + top v < top (MOST_HEADS + 1) < 2^53 2^10 = 2^63, so the sum below fits int64.
        while v < MOST_HEADS:
            heads, at = _exponential_coin(data, at, np.int64(1), np.int64(1))
            if at < 0:
                return np.int64(0), at
            if not heads:
                break
            v += 1
        # `bottom` numbers in a row give one size: P(size) falls as exp(-size bottom / top).
        size = (u + top * v) // bottom
        negative, at = _below(data, at, np.int64(2))
        if at < 0:
            return np.int64(0), at
        if negative == 1 and size == 0:
            continue  # or zero would be drawn twice as often
        return (-size if negative == 1 else size), at


@compiled
def _fill(data, top, bottom, out, done):  # type: ignore[no-untyped-def]
    """Fill ``out`` from ``done`` on; return how many are done, and how many bytes they took."""
    used = 0
    while done < out.size:
        value, at = _draw(data, used, top, bottom)
        if at < 0:
            break
        out[done] = value
        # Only bytes of finished draws are used up; the others are read again with more behind them.
        used = at
        done += 1
    return done, used
