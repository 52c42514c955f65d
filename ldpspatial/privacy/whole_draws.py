"""Draws that whole numbers decide: two weights with a proved ratio, coins, counts of coins.

A mechanism of two weights gives some reports the larger one and all others the smaller, over one
total that is the same for every input. Its claim is then the ratio of two whole numbers, and no
float is compared with a random float (Mironov 2012). What is here draws from such laws as they are:

- a coin of a rational chance compares the binary digits of a uniform number with those of the
  chance, 64 at a time, until they differ;
- a binomial count asks of all its coins at once how many have the next digit 0. Those are decided,
  or the others are, and half of the coins are left for the digit after (:func:`binomial`). So it
  needs fair coins only;
- heads among n fair coins are counted as bits, and from 4,096 coins on by inversion of the exact
  distribution of 2^k coins, of which the first 64 digits decide all but one draw in 10^15.

The generator's ``integers`` are uniform by rejection (Lemire, "Fast Random Integer Generation in an
Interval", 2019), in NumPy and in compiled code, and so is :func:`below`.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import comb, log1p

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import BITS, exp_below
from ldpspatial.compiled import compiled
from ldpspatial.validate import WEIGHT_LIMIT

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Rng = np.random.Generator

WORD = 64
COINS = (16, 12)  # powers of two of fair coins that have a table of their own
ENDS = np.array([0, (1 << WORD) - 1], np.uint64)


@dataclass(frozen=True)
class TwoWeights:
    """A small and a large whole weight, whose ratio is at most e^epsilon: largest over base.

    Attributes
    ----------
    base : int
        A power of two.
    top : int
        base times e^epsilon, rounded down.
    """

    base: int
    top: int

    @property
    def ratio(self) -> Fraction:
        """The ratio of the weights: no report is likelier by more under any input."""
        return Fraction(self.top, self.base)

    @property
    def gain(self) -> float:
        """By how much the large weight exceeds the small one, over the small one."""
        return (self.top - self.base) / self.base

    @property
    def loss(self) -> float:
        """Logarithm of the ratio, to the digits of a float."""
        return log1p(self.gain)

    def chance(self, likelier: int, others: int) -> Fraction:
        """Return the probability of that many large weights among so many small ones."""
        large = self.top * likelier
        return Fraction(large, large + self.base * others)


@lru_cache(maxsize=256)
def two_weights(epsilon: float | Fraction, likelier: int = 1, others: int = 1) -> TwoWeights:
    """Return weights for reports of which ``likelier`` have the large weight, ``others`` the small.

    The base is the largest power of two that keeps the total of all reports below 2^53.

    Parameters
    ----------
    epsilon : float or Fraction in (0, 20]
        A float such as 0.7 stands for 7/10 and holds slightly less or more: the smaller counts.
    likelier, others : int >= 0
        With e^20 * likelier + others below 2^53.

    Examples
    --------
    >>> weights = two_weights(1.0)
    >>> weights.base == 2**51, weights.top / weights.base
    (True, 2.718281828459045)
    """
    exponent = Fraction(epsilon)
    if not isinstance(epsilon, Fraction):
        exponent = min(exponent, Fraction(repr(float(epsilon))))
    lift = exp_below(exponent)
    base = 1 << WEIGHT_LIMIT.bit_length() - 2
    while True:
        weights = TwoWeights(base, base * lift >> BITS)
        if weights.top * likelier + base * others < WEIGHT_LIMIT:
            return weights
        base >>= 1


def uniform_below(total: int, size: int, rng: Rng) -> list[int]:
    """Return uniform whole numbers in [0, total), by rejection, of any number of digits."""
    bits = (total - 1).bit_length()
    length = (bits + 7) // 8
    mask = (1 << bits) - 1
    found: list[int] = []
    while len(found) < size:
        data = rng.bytes(length * (size - len(found)))
        numbers = (
            int.from_bytes(data[at : at + length], "big") & mask
            for at in range(0, len(data), length)
        )
        found.extend(number for number in numbers if number < total)
    return found


@compiled
def below(limit, rng):  # type: ignore[no-untyped-def]
    """Return one uniform whole number in [0, limit), limit from 1 to 2^31, in compiled loops."""
    # A float of the generator is 53 uniform bits over 2^53, of which these are the first 32. It is
    # taken for whole numbers because compiled code has it in an eighth of the time of `integers`.
    while True:
        product = int(rng.random() * 4294967296.0) * limit
        rest = product & 4294967295
        # As many words lead to each number, if the first few of each are drawn again (Lemire).
        if rest >= limit or rest >= (4294967296 - limit) % limit:
            return product >> 32


def coins(chance: Fraction, size: int, rng: Rng) -> NDArray[np.bool_]:
    """Return independent coins that show heads with exactly this probability; shape (size,)."""
    heads = np.full(size, chance == 1)
    undecided = np.arange(0 if chance == 1 else size)
    rest = chance
    while len(undecided) and rest:
        cut, left = divmod(rest.numerator << WORD, rest.denominator)
        words = _words(len(undecided), rng)
        heads[undecided] = words < np.uint64(cut)
        undecided = undecided[words == np.uint64(cut)]
        rest = Fraction(left, rest.denominator)
    return heads


def binomial(trials: Ints, chance: Fraction, rng: Rng) -> Ints:
    """Return how many of so many coins show heads, each count from its exact law.

    Every coin is a uniform number in [0, 1) that is compared with the chance, digit by digit in
    base 2. A coin whose digit is 0 where that of the chance is 1 shows heads; one whose digit is 1
    where that of the chance is 0 does not; the others are left.

    Parameters
    ----------
    trials : (n,) array of int >= 0
    chance : Fraction in [0, 1]
    rng : numpy.random.Generator

    Returns
    -------
    (n,) int64 array

    Examples
    --------
    >>> binomial(np.array([0, 5, 5]), Fraction(1), np.random.default_rng(1)).tolist()
    [0, 5, 5]
    """
    if chance == 1:
        return np.array(trials, np.int64)
    left: Ints = np.asarray(trials, np.int64)
    heads = np.zeros_like(left)
    where = np.arange(len(left))
    rest = chance
    while rest:  # where no digit of the chance is left, no coin can fall below it any more
        some = left > 0
        where = where[some]
        if len(where) == 0:
            break
        left = left[some]
        low = fair_heads(left, rng)
        rest *= 2
        if rest >= 1:
            rest -= 1
            heads[where] += low
            left = left - low
        else:
            left = low
    return heads


def fair_heads(trials: Ints, rng: Rng) -> Ints:
    """Return how many of so many fair coins show heads, each (n,) count from its exact law."""
    heads: Ints = np.zeros_like(trials)
    left = trials
    for power in COINS:
        if (left >> power).any():
            table = _FairCoins.of(power)
            heads += _sums(left >> power, table.draw(int((left >> power).sum()), rng))
            left = left & ((1 << power) - 1)
    whole = left >> 6
    heads += _sums(whole, np.bitwise_count(_words(int(whole.sum()), rng)))
    mask = (np.uint64(1) << (left & 63).astype(np.uint64)) - np.uint64(1)
    rest: Ints = heads + np.bitwise_count(_words(len(trials), rng) & mask)
    return rest


@dataclass(frozen=True)
class _FairCoins:
    """The distribution of the heads among 2^power fair coins, of at least 64.

    F(k), the probability of at most k heads, is a whole number over 2^(2^power). The heads are the
    number of k with F(k) at most a uniform number; its first 64 digits say which, unless they are
    those of some F(k). Then all the others are drawn as well.
    """

    power: int

    @staticmethod
    @lru_cache(maxsize=len(COINS))
    def of(power: int) -> "_FairCoins":
        return _FairCoins(power)

    @cached_property
    def _steps(self) -> tuple[int, Words]:
        """The first k whose F(k) has a digit among the first 64, and those digits from there on."""
        trials = 1 << self.power
        middle = trials // 2
        ways = comb(trials, middle)
        below = ((1 << trials) - ways) // 2  # 2^trials F(middle - 1)
        rows = []
        k = middle - 1
        while below >> (trials - WORD):
            rows.append(below >> (trials - WORD))
            # From C(trials, k + 1) to C(trials, k), and from F(k) to F(k - 1).
            ways = ways * (k + 1) // (trials - k)
            below -= ways
            k -= 1
        rows.reverse()
        # F(k) + F(trials - 1 - k) = 1, and 64 digits of 1 - x are those of x, taken from all ones
        # unless x has no more than those; which holds for 64 coins alone.
        mirrored = [(1 << WORD) - row - (trials > WORD) for row in reversed(rows)]
        return k + 1, np.array([*rows, *mirrored], np.uint64)

    def draw(self, size: int, rng: Rng) -> Ints:
        """Draw that many numbers of heads."""
        first, steps = self._steps
        words = _words(size, rng)
        place = np.searchsorted(steps, words, side="right")
        heads = first + place.astype(np.int64)
        same = (steps[np.maximum(place, 1) - 1] == words) | np.isin(words, ENDS)
        for i in np.flatnonzero(same):
            heads[i] = self._exactly(int(words[i]), rng)
        return heads

    def _exactly(self, word: int, rng: Rng) -> int:
        """Return the heads of a uniform number whose first digits are given."""
        trials = 1 << self.power
        more = trials - WORD
        uniform = word << more | int.from_bytes(rng.bytes(more // 8), "big")
        k = 0
        ways = 1
        while ways <= uniform:
            uniform -= ways
            ways = ways * (trials - k) // (k + 1)
            k += 1
        return k


def _words(size: int, rng: Rng) -> Words:
    """Return uniform words of 64 bits."""
    return rng.integers(1 << WORD, size=size, dtype=np.uint64)


def _sums(lengths: Ints, values: NDArray[np.integer]) -> Ints:
    """Return the sums of runs of values, runs of these lengths one after another."""
    totals = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    ends = np.cumsum(lengths)
    return np.asarray(totals[ends] - totals[ends - lengths], np.int64)
