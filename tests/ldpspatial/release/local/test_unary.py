"""OUE: bits against their law, counts without bits, and the claim."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from scipy import stats

from client_sdk.shared import ONE, exact_epsilon, exp_below
from ldpspatial.errors import InputError
from ldpspatial.release.local.sets.unary import (
    OWN_BIT,
    Oue,
    bit_weights,
    other_bit,
    oue_counts,
    oue_frequencies,
    oue_variance,
)
from tests.support import naive_local_sets as naive

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("size", [4, 9])
@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 3.5, 20.0])
def test_no_report_is_likelier_by_more_than_e_to_the_epsilon(size: int, epsilon: float) -> None:
    # Exact ratios of the chances that bits are drawn with, beside e^eps rounded down.
    largest = Fraction(0)
    for report in naive.all_sets(size):
        row = naive.oue_row(report, size, OWN_BIT, other_bit(epsilon))
        largest = max(largest, max(row) / min(row))
    assert largest == bit_weights(epsilon).ratio
    assert largest * ONE <= exp_below(exact_epsilon(epsilon))
    assert log(largest) == pytest.approx(epsilon, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_short_floats_lose_no_more_than_they_say(kind: type) -> None:
    for epsilon in map(kind, (0.1, 1.0, 3.3)):
        assert other_bit(epsilon) == other_bit(float(epsilon))
        assert bit_weights(epsilon).ratio * ONE <= exp_below(Fraction(float(epsilon)))


def test_known_answers() -> None:
    assert float(other_bit(log(3))) == pytest.approx(1 / 4)
    assert oue_variance(100, log(3)) == pytest.approx(4 * 3 / (3 - 1) ** 2 / 100)
    assert oue_frequencies([50, 25, 0], 100, log(3)).tolist() == pytest.approx([1, 0, -1])


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 20.0])
def test_frequencies_are_unbiased(epsilon: float) -> None:
    shares = np.array([0.0, 0.25, 1.0])
    mean = 1000 * (shares / 2 + (1 - shares) * float(other_bit(epsilon)))
    np.testing.assert_allclose(oue_frequencies(mean, 1000, epsilon), shares, atol=1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_reports_are_drawn_from_their_law(epsilon: float) -> None:
    n, own = 100_000, 2
    drawn = Oue().reports(np.full(n, own), 4, epsilon, np.random.default_rng(1))
    seen = np.bincount(naive.codes(drawn.starts, drawn.cells), minlength=16)

    def p_value(own_bit: float, other: float) -> float:
        rows = (naive.oue_row(s, 4, Fraction(own_bit), Fraction(other)) for s in naive.all_sets(4))
        return float(stats.chisquare(seen, [n * float(row[own]) for row in rows]).pvalue)

    assert p_value(0.5, float(other_bit(epsilon))) > FALSE_ALARM
    # The same test tells another epsilon, and bits that are symmetric as in basic encoding.
    assert p_value(0.5, float(other_bit(1.1 * epsilon))) < FALSE_ALARM
    assert p_value(1 / (1 + exp(-epsilon / 2)), 1 / (1 + exp(epsilon / 2))) < FALSE_ALARM


def test_counts_follow_the_law_of_summed_bits() -> None:
    values, epsilon, runs = np.array([0, 0, 0, 1, 1, 3]), 0.8, 20_000
    rng = np.random.default_rng(2)
    counts = np.array([oue_counts(values, 4, epsilon, rng) for _ in range(runs)])
    number = np.arange(len(values) + 1)
    q = float(other_bit(epsilon))
    for v, holders in enumerate([3, 2, 0, 1]):
        own = stats.binom.pmf(number, holders, 0.5)
        others = stats.binom.pmf(number, len(values) - holders, q)
        law = np.convolve(own, others)[: len(number)]
        seen = np.bincount(counts[:, v], minlength=len(number))
        assert stats.chisquare(seen, runs * law).pvalue > FALSE_ALARM
        swapped = (
            runs
            * np.convolve(
                stats.binom.pmf(number, len(values) - holders, 0.5),
                stats.binom.pmf(number, holders, q),
            )[: len(number)]
        )
        assert holders == 3 or stats.chisquare(seen, swapped).pvalue < FALSE_ALARM
    # Bits are independent: no correlation beyond 5 standard errors (6e-7 each).
    correlation = np.corrcoef(counts.T)[np.triu_indices(4, 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(runs)


def test_the_variance_is_what_counts_show() -> None:
    # 20,000 values that nobody holds: the sample variance is within 5 %, 5 standard errors.
    frequencies = oue_frequencies(
        oue_counts(np.zeros(1000, int), 20_001, 1.4, np.random.default_rng(3)), 1000, 1.4
    )
    assert frequencies[1:].var() == pytest.approx(oue_variance(1000, 1.4), rel=0.05)


def test_the_law_of_the_number_of_bits() -> None:
    sizes = Oue().set_sizes(9, 1.2)
    assert sizes.sum() == pytest.approx(1)
    assert sizes @ np.arange(10) == pytest.approx(0.5 + 8 * float(other_bit(1.2)))
    drawn = Oue().reports(np.full(50_000, 4), 9, 1.2, np.random.default_rng(4))
    seen = np.bincount(np.diff(drawn.starts), minlength=10)
    assert stats.chisquare(seen, 50_000 * sizes).pvalue > FALSE_ALARM


def test_nobody_and_one_value() -> None:
    rng = np.random.default_rng(5)
    assert oue_counts(np.array([], np.int64), 3, 1.0, rng).tolist() == [0, 0, 0]
    assert 0 <= oue_counts(np.zeros(5, int), 1, 1.0, rng)[0] <= 5
    assert Oue().reports(np.zeros(5, int), 1, 1.0, rng).cells.max(initial=0) == 0


def test_bad_input() -> None:
    rng = np.random.default_rng(6)
    for values in ([0, 4], [-1], [0.5], [[0]]):
        with pytest.raises(InputError, match="values must"):
            oue_counts(np.array(values), 4, 1.0, rng)
    for call in (lambda: oue_frequencies([0], 0, 1.0), lambda: oue_variance(0, 1.0)):
        with pytest.raises(InputError, match="n must be a whole number from 1 on, got 0"):
            call()
    for epsilon in (0.0, 21.0, np.nan, 1e-20):
        with pytest.raises(InputError, match="epsilon must"):
            oue_counts(np.array([0]), 4, epsilon, rng)
        with pytest.raises(InputError, match="epsilon must"):
            oue_variance(1, epsilon)
