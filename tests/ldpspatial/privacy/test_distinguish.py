"""The yardstick of the privacy tests: never above the true epsilon, and not far below it."""

from itertools import product
from math import exp, log

import numpy as np
import pytest
from scipy.stats import binom

from ldpspatial.errors import InputError
from ldpspatial.privacy.distinguish import lower_bound_epsilon, lower_bound_product

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("swap", [False, True])
def test_randomised_response_is_bounded_and_almost_reached(epsilon: float, swap: bool) -> None:
    rng = np.random.default_rng(1)
    p = rng.random(20_000) < exp(epsilon) / (1 + exp(epsilon))
    q = rng.random(20_000) < 1 / (1 + exp(epsilon))
    bound = lower_bound_epsilon(*((q, p) if swap else (p, q)), confidence=1 - FALSE_ALARM)
    assert 0.8 * epsilon < bound <= epsilon


def test_events_of_either_tail_are_tried() -> None:
    rng = np.random.default_rng(2)
    noise = rng.laplace(size=(2, 20_000))
    for shift in (1.0, -1.0):
        for sign in (1, -1):
            bound = lower_bound_epsilon(sign * (noise[0] + shift), sign * noise[1])
            assert 0.75 < bound <= 1.0


def test_one_direction_may_show_all() -> None:
    rng = np.random.default_rng(3)
    rare = (rng.random(40_000) < 0.5), (rng.random(40_000) < 0.01)
    assert 3.0 < lower_bound_epsilon(*rare) <= log(50)
    assert lower_bound_epsilon(*rare) == lower_bound_epsilon(*rare[::-1])
    # The complements, 0.5 and 0.99, show ln 2 at most: it is the event that matters.
    assert lower_bound_epsilon(~rare[0], ~rare[1]) > 3.0


def test_equal_laws_show_nothing() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        p, q = rng.geometric(0.1, size=(2, 1000))
        assert lower_bound_epsilon(p, q) < 0.05
    assert lower_bound_epsilon(np.zeros(10), np.zeros(10)) == 0


def test_disjoint_supports_show_as_much_as_their_number_allows() -> None:
    bounds = [lower_bound_epsilon(np.zeros(n), np.ones(n)) for n in (2, 100, 10_000)]
    assert bounds[0] == 0
    assert 0 < bounds[1] < 3 < bounds[2] < log(10_000)


def test_the_bound_holds_as_often_as_it_says() -> None:
    """At confidence 0.9 it may fail in 10 % of runs; more than 72 of 400 has probability 1e-6."""
    rng = np.random.default_rng(5)
    failures = 0
    for _ in range(400):
        p, q = rng.random(400) < 0.75, rng.random(400) < 0.25
        failures += lower_bound_epsilon(p, q, confidence=0.9) > log(3)
    assert failures <= 72


def test_delta_is_taken_off() -> None:
    rng = np.random.default_rng(6)
    p, q = rng.random(20_000) < 0.1, np.zeros(20_000)  # an event that Q never has
    assert lower_bound_epsilon(p, q) > 4
    assert lower_bound_epsilon(p, q, delta=0.1) == 0


def test_the_bound_of_a_product_holds_and_comes_near() -> None:
    rng = np.random.default_rng(7)
    p = np.array([0.4, 0.3, 0.9, 0.05, *[0.5] * 8])
    q = p / np.exp([0.3, 1.0, 0.2, 1.5, *[0.1] * 8])
    true = float(np.log(p / q).sum())
    n = 100_000
    found = [lower_bound_product(rng.binomial(n, p), rng.binomial(n, q), n) for _ in range(50)]
    assert 0.85 * true < min(found)
    assert max(found) <= true
    # One bound for each event, at as much confidence in all, adds up to less.
    alone = sum(
        lower_bound_product([int(n * each)], [int(n * other)], n, 1 - FALSE_ALARM / 12)
        for each, other in zip(p, q, strict=True)
    )
    assert alone < min(found)


def test_the_bound_of_a_product_fails_no_more_often_than_it_says() -> None:
    # At confidence 0.9 in at most 10 % of runs: more than 72 of 400 has probability 1e-6.
    rng = np.random.default_rng(8)
    p, q = np.array([0.6, 0.5, 0.1]), np.array([0.3, 0.4, 0.02])
    true = np.log(p / q).sum()
    failures = sum(
        lower_bound_product(rng.binomial(300, p), rng.binomial(300, q), 300, 0.9) > true
        for _ in range(400)
    )
    assert failures <= 72


def test_the_bound_of_a_product_is_too_large_with_at_most_the_probability_stated_exactly() -> None:
    # Every pair of counts of two events in six runs, with its probability.
    n = 6
    for p, q in (((0.5, 0.9), (0.25, 0.6)), ((0.7, 0.2), (0.7, 0.2)), ((0.99, 0.6), (0.98, 0.1))):
        true = float(np.log(p).sum() - np.log(q).sum())
        for confidence in (0.5, 0.9):
            wrong = 0.0
            for hits in product(range(n + 1), repeat=4):
                if lower_bound_product(hits[:2], hits[2:], n, confidence) > true:
                    wrong += np.prod(binom.pmf(hits, n, (*p, *q)))
            assert wrong <= 1 - confidence


def test_the_bound_of_a_product_is_as_far_off_as_its_deviation_allows() -> None:
    # 20 events of which each tells little, as in reports of PivotTrace.
    rng = np.random.default_rng(9)
    p, n = np.full(20, 0.15), 60_000
    q = p * np.exp(-0.14)
    deviation = np.sqrt(((1 - p) / (n * p) + (1 - q) / (n * q)).sum())
    found = [lower_bound_product(rng.binomial(n, p), rng.binomial(n, q), n) for _ in range(50)]
    # sqrt(2 ln(16 / 1e-6)) = 5.76 deviations with the best power, 6.1 with powers of two.
    assert 2.8 - 6.3 * deviation < np.mean(found) < 2.8 - 5.5 * deviation


def test_events_that_never_or_always_happen_have_bounds() -> None:
    assert lower_bound_product([0], [5], 100) == -np.inf
    assert lower_bound_product([100], [100], 100) < 0
    assert 3 < lower_bound_product([1000], [0], 1000) < log(1000)


def test_events_without_runs_and_more_of_them_than_runs_are_refused() -> None:
    with pytest.raises(InputError, match="runs must be a whole number from 1 to"):
        lower_bound_product([0], [0], 0)
    with pytest.raises(InputError, match=r"hits_p must be an array of numbers of shape \(m,\)"):
        lower_bound_product([], [], 10)
    with pytest.raises(InputError, match=r"hits_q must lie in \[0, 11\)"):
        lower_bound_product([10], [11], 10)
    with pytest.raises(InputError, match="hits_p and hits_q must be as many, got 1 and 2"):
        lower_bound_product([10], [1, 1], 10)
    assert type(lower_bound_product([10], [1], 10)) is float


def test_the_event_that_is_chosen_is_measured_afresh() -> None:
    """Equal laws and hundreds of thresholds, of which the clearest is chosen on other samples.

    Of 400 bounds at confidence .9 more than 72 above 0 have a probability of 1e-6.
    """
    rng = np.random.default_rng(5)
    shown = [lower_bound_epsilon(*rng.random((2, 400)), confidence=0.9) > 0 for _ in range(400)]
    assert sum(shown) <= 72


def test_where_all_hit_and_none_the_bound_is_that_of_clopper_and_pearson() -> None:
    n, error = 500, 1e-6 / 2  # half of the samples measure; a default confidence, of two sides
    least = error ** (1 / n)
    found = lower_bound_epsilon(np.ones(2 * n), np.zeros(2 * n))
    assert found == pytest.approx(log(least) - log(1 - least), rel=1e-9)
