"""Draws from whole numbers: weights that keep their claim, and laws that are the exact ones.

Every chi-square test alarms with probability 1e-6 where the law is right.
"""

from fractions import Fraction
from itertools import accumulate
from math import comb, exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from client_sdk.shared import ONE, exp_below
from ldpspatial.privacy.whole_draws import (
    COINS,
    _FairCoins,
    below,
    binomial,
    coins,
    fair_heads,
    two_weights,
    uniform_below,
)
from ldpspatial.validate import WEIGHT_LIMIT

FALSE_ALARM = 1e-6


@given(
    st.one_of(st.floats(1e-12, 20), st.fractions(Fraction(1, 10**12), 20)),
    st.integers(0, 5000),
    st.integers(0, 10**6),
)
def test_the_ratio_of_two_weights_keeps_the_claim(
    epsilon: float | Fraction, likelier: int, others: int
) -> None:
    weights = two_weights(epsilon, likelier, others)
    assert weights.ratio * ONE <= exp_below(Fraction(epsilon))
    assert (weights.top + 1) * ONE > weights.base * exp_below(
        Fraction(epsilon) * (1 - Fraction(1, 2**50))
    )
    total = weights.top * likelier + weights.base * others
    assert total < WEIGHT_LIMIT
    # The base is a power of two, and the next one would be too much.
    assert weights.base.bit_count() == 1
    assert 2 * total + likelier >= WEIGHT_LIMIT or weights.base == 1 << 52


def test_a_float_counts_as_the_smaller_of_what_it_holds_and_what_it_shows() -> None:
    for epsilon in (0.1, 0.7, 3.3):  # 0.1 holds more than 1/10, 0.7 less than 7/10
        both = [two_weights(Fraction(epsilon)), two_weights(Fraction(str(epsilon)))]
        assert two_weights(epsilon).ratio == min(each.ratio for each in both)


def test_a_chance_is_that_of_the_weights() -> None:
    weights = two_weights(1.0)
    assert weights.chance(1, 1) == Fraction(weights.top, weights.top + weights.base)
    assert weights.chance(2, 0) == 1
    assert weights.chance(0, 3) == 0
    assert float(weights.chance(2, 5)) == pytest.approx(2 * exp(1) / (2 * exp(1) + 5))
    assert weights.gain == pytest.approx(exp(1) - 1)
    assert weights.loss == pytest.approx(1.0)


@pytest.mark.parametrize("total", [2, 5, 8, 257])
def test_whole_numbers_below_a_total_are_uniform(total: int) -> None:
    found = np.bincount(uniform_below(total, 40_000, np.random.default_rng(3)), minlength=total)
    assert found.shape == (total,)
    assert stats.chisquare(found).pvalue > FALSE_ALARM


def test_whole_numbers_of_any_length_and_none() -> None:
    rng = np.random.default_rng(3)
    found = uniform_below(1 << 300, 50, rng)
    assert 290 < max(found).bit_length() <= 300
    assert uniform_below(5, 0, rng) == []


class Bits:
    """A generator whose floats have these first 32 bits, and others behind."""

    def __init__(self, *words: int):
        self.words = list(words)

    def random(self) -> float:
        return (self.words.pop(0) * (1 << 21) + (1 << 21) - 1) / (1 << 53)


@pytest.mark.parametrize("limit", [1, 3, 10, 1 << 20, (1 << 31) - 1, 1 << 31])
def test_as_many_words_lead_to_every_number_below_a_limit(limit: int) -> None:
    # Of a word x, floor(x limit / 2^32) is drawn, unless x is one of the first few of that number.
    per_number, left = divmod(1 << 32, limit)
    for number in {0, 1 % limit, limit // 2, limit - 1}:
        first = -(-(number << 32) // limit)
        end = -(-(number + 1 << 32) // limit)
        spare = end - first - per_number
        assert spare in ((0, 1) if left else (0,))
        # What is drawn again is told by the draw after it, here of the last number.
        kept = []
        for word in (first, first + 1, end - 1):
            if word < end:
                bits = Bits(word, (1 << 32) - 1)
                assert below.py_func(limit, bits) == (number if bits.words else limit - 1)
                kept.append(bool(bits.words))
        assert kept[-1]
        assert all(kept[1:])
        assert kept[0] == (spare == 0)


def test_numbers_below_a_limit_are_uniform() -> None:
    rng = np.random.default_rng(7)
    found = np.bincount([below(7, rng) for _ in range(20_000)], minlength=7)
    assert stats.chisquare(found).pvalue > FALSE_ALARM


class Told:
    """A generator whose words are told beforehand."""

    def __init__(self, *words: int, data: bytes = b""):
        self.words = list(words)
        self.data = data

    def integers(self, high: int, size: int, dtype: type) -> np.ndarray:
        assert (high, dtype) == (1 << 64, np.uint64)
        told, self.words = self.words[:size], self.words[size:]
        return np.array(told, np.uint64)

    def bytes(self, length: int) -> bytes:
        assert len(self.data) == length
        return self.data


def test_a_coin_is_decided_by_the_first_digits_that_differ() -> None:
    cut, rest = divmod(1 << 64, 3)  # of a third, whose digits repeat: 0101...
    assert rest == 1
    told = Told(cut - 1, cut, cut + 1, cut, cut - 1)
    assert coins(Fraction(1, 3), 3, told).tolist() == [True, True, False]  # type: ignore[arg-type]
    assert told.words == []
    # A chance whose digits end is reached from below alone.
    assert coins(Fraction(1, 2), 2, Told(1 << 63, (1 << 63) - 1)).tolist() == [False, True]  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    assert coins(Fraction(1), 3, rng).all()
    assert not coins(Fraction(0), 3, rng).any()
    assert 0.29 < coins(Fraction(3, 10), 200_000, rng).mean() < 0.31


@pytest.mark.parametrize("power", [6, 7, 10])
def test_steps_are_the_first_digits_of_the_exact_distribution(power: int) -> None:
    trials = 1 << power
    ways = accumulate(comb(trials, k) for k in range(trials + 1))
    digits = [below >> trials - 64 for below in ways]
    first, steps = _FairCoins(power)._steps
    assert all(digit == 0 for digit in digits[:first])
    assert steps.tolist() == digits[first : first + len(steps)]
    assert all(digit >= (1 << 64) - 1 for digit in digits[first + len(steps) :])


def test_first_digits_that_leave_it_open_are_followed_by_all_the_others() -> None:
    power = 7
    trials = 1 << power
    below = list(accumulate(comb(trials, k) for k in range(trials + 1)))
    first, steps = _FairCoins(power)._steps
    words = [0, int(steps[20]), (1 << 64) - 1]
    for word in words:
        for rest in (0, 1 << 63, (1 << 64) - 1):
            uniform = word << 64 | rest
            expected = sum(ways <= uniform for ways in below)
            told = Told(word, data=rest.to_bytes(8, "big"))
            assert _FairCoins(power).draw(1, told).tolist() == [expected]  # type: ignore[arg-type]
    # Both answers occur for the one word.
    assert below[first + 20] % (1 << 64) not in (0, (1 << 64) - 1)


@pytest.mark.parametrize(
    ("trials", "chance"),
    [
        *((n, Fraction(1, 2)) for n in (1, 63, 64, 65, 300, 1 << COINS[-1], 70_001)),
        *((n, Fraction(2, 7)) for n in (1, 5, 64, 1000, 9000)),
        *((50, p) for p in (Fraction(1, 2**30), Fraction(3, 4), 1 - Fraction(1, 999))),
    ],
)
def test_counts_have_the_exact_law(trials: int, chance: Fraction) -> None:
    n = 100_000
    rng = np.random.default_rng(trials)
    found = binomial(np.full(n, trials), chance, rng)

    def p_value(p: float) -> float:
        # Bins of 5 and more on average.
        law = n * stats.binom.pmf(np.arange(trials + 1), trials, p)
        groups = np.minimum(np.cumsum(law) // 20, (n - 20) // 20).astype(int)
        groups = np.unique(groups, return_inverse=True)[1]
        due, seen = np.bincount(groups, law), np.bincount(groups[found], minlength=groups[-1] + 1)
        if len(due) == 1:
            return 1.0
        return float(stats.chisquare(seen, due * n / due.sum()).pvalue)

    assert p_value(float(chance)) > FALSE_ALARM
    if chance > Fraction(1, 2**20):  # and the test tells a chance that is 0.06 deviations off
        deviation = (float(chance * (1 - chance)) / trials) ** 0.5
        wrong = float(chance) + (0.06 if chance < 0.9 else -0.06) * deviation
        assert p_value(wrong) < FALSE_ALARM


def test_counts_of_different_numbers_of_coins_are_independent_and_in_place() -> None:
    trials = np.array([0, 3, 5000, 0, 64, 70_000, 1])
    rng = np.random.default_rng(4)
    runs = np.array([binomial(trials, Fraction(1, 3), rng) for _ in range(2000)])
    assert (runs <= trials).all()
    some = trials > 0
    # Means within 5 standard errors, and no correlation beyond 5.
    errors = (runs.mean(axis=0) - trials / 3)[some] / np.sqrt(trials[some] * 2 / 9 / 2000)
    assert np.abs(errors).max() < 5
    correlation = np.corrcoef(runs[:, some].T)[np.triu_indices(some.sum(), 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)


def test_nothing_and_everything() -> None:
    rng = np.random.default_rng(5)
    empty = np.zeros(0, np.int64)
    for chance in (Fraction(0), Fraction(1, 2), Fraction(1)):
        assert binomial(empty, chance, rng).shape == (0,)
        assert binomial(np.array([0, 0]), chance, rng).tolist() == [0, 0]
    assert binomial(np.array([4, 9]), Fraction(0), rng).tolist() == [0, 0]
    assert binomial(np.array([4, 9]), Fraction(1), rng).tolist() == [4, 9]
    assert fair_heads(np.array([0]), rng).tolist() == [0]
