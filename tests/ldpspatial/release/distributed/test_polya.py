"""The law of the noise: closed forms against 50 digits, and the simulated sum of shares."""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.distributed.noise.polya import privacy_loss, sum_of_shares
from tests.support.naive_polya import (
    PRECISE,
    convolve,
    decimal,
    discrete_laplace,
    noise_pmf,
    p_value,
    polya_pmf,
)

Ints = NDArray[np.int64]
FALSE_ALARM = 1e-6
ONE = Fraction(1)


@pytest.mark.parametrize("decay", [Fraction(3), ONE, Fraction(1, 7)])
@pytest.mark.parametrize("clients", [1, 2, 5])
def test_shares_of_t_clients_add_up_to_discrete_laplace(decay: Fraction, clients: int) -> None:
    # Sums of t first parts are geometric: exact as far as the law is written out.
    one = list(polya_pmf(Fraction(1, clients), decay, 40).values())
    total = one
    for _ in range(clients - 1):
        total = convolve(total, one)
    with localcontext(PRECISE):
        a = (-decimal(decay)).exp()
        assert all(abs(p - (1 - a) * a**k) < Decimal("1e-45") for k, p in enumerate(total))
    # And the difference of two geometric numbers is discrete Laplace.
    ours, wanted = noise_pmf(ONE, decay, 20, 500), discrete_laplace(decay, 20)
    assert all(abs(ours[k] - p) < Decimal("1e-40") for k, p in wanted.items())


@pytest.mark.parametrize("share", [Fraction(19, 20), Fraction(1, 2), Fraction(1, 10)])
@pytest.mark.parametrize("decay", [Fraction(4), ONE, Fraction(1, 20)])
def test_the_loss_with_too_few_survivors_is_the_largest_ratio(
    share: Fraction, decay: Fraction
) -> None:
    law = noise_pmf(share, decay, 30, 1500 if decay < 1 else 60)
    ratios = [abs((law[k] / law[k + 1]).ln()) for k in range(-30, 30)]
    loss = privacy_loss(share.numerator, share.denominator, float(decay))
    assert loss == pytest.approx(float(max(ratios)), rel=1e-10)
    assert loss > decay
    # At sensitivity 3 the same noise serves three times the epsilon, spread over three elements.
    assert privacy_loss(share.numerator, share.denominator, 3 * float(decay), 3) == pytest.approx(
        3 * loss, rel=1e-12
    )


def test_at_95_percent_of_the_survivors_the_loss_is_1_05() -> None:
    assert round(privacy_loss(9_025, 9_500, 1.0), 2) == 1.05
    assert privacy_loss(0, 10, 1.0) == inf


@pytest.mark.parametrize("share", [ONE, Fraction(10, 9), Fraction(5, 2)])
@pytest.mark.parametrize("epsilon", [ONE, Fraction(1, 4)])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_more_survivors_lose_no_more_than_epsilon_for_any_shift(
    share: Fraction, epsilon: Fraction, sensitivity: int
) -> None:
    law = noise_pmf(share, epsilon / sensitivity, 40, 600)
    worst = max(
        law[k] / law[k + shift]
        for shift in range(-sensitivity, sensitivity + 1)
        for k in range(-40, 41)
        if abs(k + shift) <= 40
    )
    assert worst <= decimal(epsilon).exp() * (1 + Decimal("1e-30"))
    assert privacy_loss(share.numerator, share.denominator, float(epsilon), sensitivity) == epsilon
    # The bound is nearly reached in the tail, so that none smaller would do.
    if share == 1:
        assert float(worst) == pytest.approx(exp(epsilon), rel=1e-12)


def test_ratios_fall_towards_epsilon_below_the_threshold_and_rise_above_it() -> None:
    for share, falls in ((Fraction(4, 5), True), (Fraction(5, 4), False)):
        law = noise_pmf(share, ONE, 25, 80)
        ratios = [float((law[k] / law[k + 1]).ln()) for k in range(25)]
        assert all((x > y) == falls for x, y in pairwise(ratios))


def simulated(survivors: int, honest: int, length: int, rng: np.random.Generator) -> Ints:
    return sum_of_shares(survivors, honest, 0.5, length, rng)


def one_gamma(survivors: int, honest: int, length: int, rng: np.random.Generator) -> Ints:
    mean = rng.gamma(survivors / honest, 1 / np.expm1(0.5), length)
    return np.asarray(rng.poisson(mean) - rng.poisson(mean))


def rate_for_scale(survivors: int, honest: int, length: int, rng: np.random.Generator) -> Ints:
    mean = rng.gamma(survivors / honest, np.expm1(0.5), (2, length))
    return np.asarray(rng.poisson(mean[0]) - rng.poisson(mean[1]))


def shares_of_the_whole_shard(
    survivors: int, honest: int, length: int, rng: np.random.Generator
) -> Ints:
    shard = honest + 2  # the threshold is two below the size of the shard
    return sum_of_shares(survivors, shard, 0.5, length, rng)


@pytest.mark.parametrize(("survivors", "honest"), [(12, 12), (13, 12), (30, 12)])
def test_simulated_sums_have_the_exact_law(survivors: int, honest: int) -> None:
    noise = simulated(survivors, honest, 100_000, np.random.default_rng(survivors))
    assert p_value(noise, Fraction(survivors, honest), Fraction(1, 2)) > FALSE_ALARM


@pytest.mark.parametrize("broken", [one_gamma, rate_for_scale, shares_of_the_whole_shard])
def test_the_same_test_catches_published_bugs(broken: Callable[..., Ints]) -> None:
    noise = broken(13, 12, 100_000, np.random.default_rng(2))
    assert p_value(noise, Fraction(13, 12), Fraction(1, 2)) < FALSE_ALARM / 1000


def test_extreme_decays_neither_overflow_nor_warn() -> None:
    rng = np.random.default_rng(3)
    for survivors in (3, 4):
        assert not sum_of_shares(survivors, 3, 5_000.0, 100, rng).any()
        wide = sum_of_shares(survivors, 3, 2.0**-50, 2_000, rng)
        spread = noise_deviation(2.0**-50, 1) * sqrt(survivors / 3)
        assert abs(log(wide.astype(float).std() / spread)) < 0.3
