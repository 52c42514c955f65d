"""OLH: the hash family, reports against their law, and the claim."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from client_sdk.shared import ONE, exact_epsilon, exp_below
from ldpspatial.errors import InputError
from ldpspatial.privacy.local_privacy import cell_distances
from ldpspatial.release.local.sets import local_hashing
from ldpspatial.release.local.sets.local_hashing import (
    FIELD,
    Olh,
    draw_hashing,
    hash_values,
    keep_probability,
    olh_counts,
    olh_frequencies,
    olh_variance,
)
from tests.support import naive_local_sets as naive

FALSE_ALARM = 1e-6
Ints = NDArray[np.int64]


def test_the_number_of_elements_is_prime() -> None:
    # Lucas and Lehmer: 2^61 - 1 is prime if and only if s(60) = 0, s(k + 1) = s(k)^2 - 2.
    assert FIELD == 2**61 - 1
    s = 4
    for _ in range(59):
        s = (s * s - 2) % FIELD
    assert s == 0


@pytest.mark.parametrize("size", [4, 9])
@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 1.4, 3.5, 7.0])
def test_given_any_function_no_report_is_likelier_by_more_than_e_to_the_epsilon(
    size: int, epsilon: float
) -> None:
    # Exact ratios of the chance that is drawn with, beside e^eps rounded down.
    g, keep = hash_values(epsilon), keep_probability(epsilon)
    functions, _ = draw_hashing(5, epsilon, np.random.default_rng(1))
    constant = np.array([[FIELD - 1, 0, 0]])
    for coefficients in (*functions, *constant):
        hashed = naive.hash_function(coefficients, g)
        largest = Fraction(0)
        for said in range(g):
            row = [keep if hashed(x) == said else (1 - keep) / (g - 1) for x in range(size)]
            largest = max(largest, max(row) / min(row))
        assert largest * ONE <= exp_below(exact_epsilon(epsilon))
        assert largest == 1 or log(largest) == pytest.approx(epsilon, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 1.4, 3.5, 20.0])
@pytest.mark.parametrize("size", [1, 2, 40])
def test_counts_and_reports_are_those_of_the_obvious_twin(epsilon: float, size: int) -> None:
    n, g = 200, hash_values(epsilon)
    values = np.random.default_rng(2).integers(size, size=n)
    coefficients, shifts = draw_hashing(n, epsilon, np.random.default_rng(3))
    expected = [
        naive.supported(*one, g, size) for one in zip(values, coefficients, shifts, strict=True)
    ]
    counts = olh_counts(values, size, epsilon, np.random.default_rng(3))
    reports = Olh().reports(values, size, epsilon, np.random.default_rng(3))
    assert [part.tolist() for part in np.split(reports.cells, reports.starts[1:-1])] == expected
    assert counts.tolist() == np.bincount(reports.cells, minlength=size).tolist()


def test_buckets_are_of_equal_width_and_the_last_takes_the_rest() -> None:
    for g in (2, 3, hash_values(20.0)):
        width = FIELD // g
        bounds = [local_hashing._bucket_bounds(e, 0, g) for e in (0, width - 1, width, FIELD - 1)]
        last = ((g - 1) * width, FIELD)
        assert bounds == [(0, width), (0, width), last if g == 2 else (width, 2 * width), last]
        assert FIELD - g * width < g  # the most by which the last one is wider
        assert local_hashing._bucket_bounds(FIELD - 1, 1, g) == (0, width)  # and round


def pattern(values: Sequence[int], coefficients: Ints, shifts: Ints, g: int) -> Ints:
    """How often reports of users of values[0] support which of three values; shape (8,)."""
    sets = [
        naive.supported(values[0], c, s, g, max(values) + 1)
        for c, s in zip(coefficients, shifts, strict=True)
    ]
    seen = [sum((v in chosen) << k for k, v in enumerate(values)) for chosen in sets]
    return np.bincount(seen, minlength=8)


@pytest.mark.parametrize("values", [(0, 1, 2), (3, 1, 5)])
def test_two_other_values_are_supported_independently_of_all(values: tuple[int, int, int]) -> None:
    # Three points are independent under quadratic polynomials: own value with probability p,
    # the others with 1/g each. Under lines, equally spaced values would tell of one another.
    epsilon, n = 0.9, 20_000
    g, p = hash_values(epsilon), float(keep_probability(epsilon))
    law = np.array(
        [
            (p if own else 1 - p) * (1 / g if a else 1 - 1 / g) * (1 / g if b else 1 - 1 / g)
            for b, a, own in product((0, 1), repeat=3)
        ]
    )
    coefficients, shifts = draw_hashing(n, epsilon, np.random.default_rng(4))
    seen = pattern(values, coefficients, shifts, g)
    assert stats.chisquare(seen, n * law).pvalue > FALSE_ALARM
    coefficients[:, 2] = 0
    assert stats.chisquare(pattern(values, coefficients, shifts, g), n * law).pvalue < FALSE_ALARM


def test_shifts_keep_with_p_and_else_are_uniform() -> None:
    epsilon, n = 1.4, 100_000
    _, shifts = draw_hashing(n, epsilon, np.random.default_rng(5))
    p, g = float(keep_probability(epsilon)), hash_values(epsilon)
    assert g == 5

    def p_value(kept: float) -> float:
        law = n * np.array([kept, *[(1 - kept) / 4] * 4])
        return float(stats.chisquare(np.bincount(shifts, minlength=g), law).pvalue)

    assert p_value(p) > FALSE_ALARM
    assert p_value(p + (1 - p) / g) < FALSE_ALARM  # others drawn from all, the own one included


def test_known_answers() -> None:
    assert [hash_values(eps) for eps in (1e-6, log(3), 1.4, 3.5, 20.0)] == [2, 4, 5, 34, 485165196]
    assert float(keep_probability(log(3))) == pytest.approx(1 / 2)
    assert olh_frequencies([50, 25, 0], 100, log(3)).tolist() == pytest.approx([1, 0, -1])
    assert olh_variance(100, log(3)) == pytest.approx(4 * 3 / (3 - 1) ** 2 / 100)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 20.0])
def test_frequencies_invert_the_expected_counts(epsilon: float) -> None:
    shares, g = np.array([0.0, 0.25, 1.0]), hash_values(epsilon)
    p = float(keep_probability(epsilon))
    mean = 1000 * (shares * p + (1 - shares) / g)
    np.testing.assert_allclose(olh_frequencies(mean, 1000, epsilon), shares, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.4, 3.5])
def test_frequencies_are_unbiased_under_the_family_with_the_stated_variance(epsilon: float) -> None:
    # 200,000 users, 30 values: means within 5.5 deviations (30 values, 1e-6 in all); the variance
    # over 300 runs of 400 users within 45 % for every value, 10 % in the mean
    # (5.5 deviations and more).
    share = np.array([0.5, 0.3, 0.2, *[0.0] * 27])
    rng = np.random.default_rng(6)
    n = 200_000
    values = rng.choice(30, n, p=share)
    found = olh_frequencies(olh_counts(values, 30, epsilon, rng), n, epsilon)
    true = np.bincount(values, minlength=30) / n
    deviation = np.sqrt(olh_variance(n, epsilon) + share / n)
    assert (np.abs(found - true) < 5.5 * deviation).all()
    runs = np.array(
        [
            olh_frequencies(olh_counts(values[:400], 30, epsilon, rng), 400, epsilon)[3:]
            for _ in range(300)
        ]
    )
    ratio = runs.var(axis=0) / olh_variance(400, epsilon)
    assert np.abs(ratio - 1).max() < 0.45
    assert abs(ratio.mean() - 1) < 0.1
    # Estimates of neighbouring values are uncorrelated, as under a random function.
    neighbours = np.mean([np.corrcoef(runs[:, k], runs[:, k + 1])[0, 1] for k in range(26)])
    assert abs(neighbours) < 5 / np.sqrt(26 * 300)


@pytest.mark.parametrize("epsilon", [0.7, 1.4, 3.5])
def test_local_privacy_under_the_family_is_that_of_a_random_function(epsilon: float) -> None:
    # Report by report over 20,000 users drawn uniformly; five standard errors.
    side, n = 5, 20_000
    rng = np.random.default_rng(7)
    reports = Olh().reports(rng.integers(side**2, size=n), side**2, epsilon, rng)
    weights = np.ones((n, side**2))
    weights[np.repeat(np.arange(n), np.diff(reports.starts)), reports.cells] = exp(epsilon)
    posterior = weights / weights.sum(axis=1, keepdims=True)
    off = np.einsum("nx,nx->n", posterior @ cell_distances((side, side)), posterior)
    expected = Olh().local_privacy(side, epsilon)
    assert abs(off.mean() - expected) < 5 * off.std() / np.sqrt(n)


def test_nobody_and_bad_input() -> None:
    rng = np.random.default_rng(8)
    assert olh_counts(np.array([], np.int64), 3, 1.0, rng).tolist() == [0, 0, 0]
    for values in ([0, 4], [-1], [0.5], [[0]]):
        with pytest.raises(InputError, match="values must"):
            olh_counts(np.array(values), 4, 1.0, rng)
    for call in (lambda: olh_frequencies([0], 0, 1.0), lambda: olh_variance(0, 1.0)):
        with pytest.raises(InputError, match="n must be a whole number from 1 on, got 0"):
            call()
    for epsilon in (0.0, 21.0, np.nan):
        with pytest.raises(InputError, match="epsilon must"):
            olh_counts(np.array([0]), 4, epsilon, rng)
        with pytest.raises(InputError, match="epsilon must"):
            olh_frequencies([0], 1, epsilon)
