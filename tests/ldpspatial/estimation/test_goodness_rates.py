"""Goodness of fit where it could go wrong: few reports, very many, nothing fitted, small forgeries.

Simulated rates are seeded; a right check fails one of them with probability below 1e-6.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import binom, gamma

from client_sdk import Grid, ResponseTable, kernels, response_table
from ldpspatial import StampChannel, estimate
from ldpspatial.datasets import synthetic_maps
from ldpspatial.estimation import LikelihoodGain, goodness_of_fit
from ldpspatial.estimation.goodness import LEAST_REPORTS, _deviance_moments

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def people(cells: int, n: int = 100_000) -> Ints:
    """Return n people of the synthetic normal map by cell."""
    normal = synthetic_maps()["normal"]
    grid = Grid.plane(normal.y0, normal.x0, normal.side, cells)
    points = normal.draw(n, np.random.default_rng(1))
    rows, cols, _ = kernels.cells_of(grid, points[:, 0], points[:, 1])
    return np.bincount(rows * cells + cols, minlength=cells**2).reshape(cells, cells)


def reports(table: ResponseTable, truth: Ints, rng: np.random.Generator) -> Ints:
    """Return counts of reports of these people, (d + 2b, d + 2b)."""
    channel = StampChannel(table)
    law = channel.forward(truth / truth.sum())
    counts = np.zeros(law.shape, np.int64)
    counts[channel.support] = rng.multinomial(truth.sum(), law[channel.support] / law.sum())
    return counts


def seen_by(channel: StampChannel, counts: Ints) -> Ints:
    """Keep the reports that the channel can have sent, as counting does."""
    spare = (channel.output_shape[0] - counts.shape[0]) // 2
    fitting = np.pad(counts, spare) if spare >= 0 else counts[-spare:spare, -spare:spare]
    return np.where(channel.support, fitting, 0)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "cells", "radius", "n", "runs"),
    [
        ("huem", 3.5, 15, None, 100, 60),
        ("dam", 0.7, 6, None, 2_000, 60),
        # Cells that no density makes likely, where Pearson's statistic of few reports is huge.
        ("dam-ns", 5, 5, 3, 1, 300),
        ("dam-ns", 10, 5, 1, 1_000, 300),
        ("dam", 10, 5, 1, 10, 300),
        ("dam-ns", 8, 1, 2, 5, 300),
    ],
)
def test_reports_of_the_channel_raise_no_more_alarms_than_stated(
    mechanism: str, epsilon: float, cells: int, radius: int | None, n: int, runs: int
) -> None:
    table = response_table(mechanism, epsilon, cells, radius)
    channel = StampChannel(table)
    rng = np.random.default_rng(2)
    spot = np.zeros((cells, cells), np.int64)
    spot[cells // 2, cells // 3] = n
    for truth in (people(cells, n), spot):
        found = [
            goodness_of_fit(estimate(channel, reports(table, truth, rng))) for _ in range(runs)
        ]
        for rate in (0.1, 0.01, 1e-4):
            alarms = sum(not fit.is_plausible(rate) for fit in found)
            assert alarms <= binom.isf(1e-7, runs, rate)


@pytest.mark.parametrize("peak", [0, 1])
@pytest.mark.parametrize(("epsilon", "cells"), [(0.7, 8), (3.5, 5), (3.5, 15)])
def test_em_that_has_not_converged_raises_no_alarm(peak: float, epsilon: float, cells: int) -> None:
    # With very many reports EM is far from the maximum when its steps are used up.
    channel = StampChannel(response_table("dam", epsilon, cells))
    density = people(cells) + 1.0
    density[1, 2] += peak * density.sum()
    law = channel.forward(density / density.sum())[channel.support]
    rng = np.random.default_rng(3)
    for n in (10**8, 10**10, 10**12):
        found = estimate(channel, rng.multinomial(n, law / law.sum()), max_iterations=3_000)
        assert goodness_of_fit(found).is_plausible()


def other_parameters(cells: int) -> dict[str, ResponseTable]:
    right = response_table("dam", 3.5, cells)
    return {
        "higher epsilon": response_table("dam", 5.0, cells, right.radius),
        "lower epsilon": response_table("dam", 2.0, cells, right.radius),
        "higher epsilon with its own radius": response_table("dam", 5.0, cells),
        "larger radius": response_table("dam", 3.5, cells, right.radius + 1),
        "smaller radius": response_table("dam", 3.5, cells, right.radius - 1),
    }


@pytest.mark.parametrize("cells", [5, 15])
@pytest.mark.parametrize("wrong", list(other_parameters(15)))
def test_other_parameters_on_the_devices_are_caught(wrong: str, cells: int) -> None:
    channel = StampChannel(response_table("dam", 3.5, cells))
    table = other_parameters(cells)[wrong]
    counts = seen_by(channel, reports(table, people(cells), np.random.default_rng(4)))
    assert goodness_of_fit(estimate(channel, counts)).p_value < 1e-12


@pytest.mark.parametrize("cells", [5, 15])
def test_one_unrandomised_report_in_eleven_is_caught(cells: int) -> None:
    channel = StampChannel(response_table("dam", 3.5, cells))
    truth = people(cells)
    randomised = reports(channel.table, truth, np.random.default_rng(5))
    counts = randomised + np.pad(truth, channel.table.radius) // 10
    assert goodness_of_fit(estimate(channel, randomised)).is_plausible()
    assert not goodness_of_fit(estimate(channel, counts)).is_plausible()


@pytest.mark.parametrize("rule", ["scaled", "published"])
def test_statistic_is_the_deviance_of_the_best_fit(rule: str) -> None:
    channel = StampChannel(response_table("dam", 3.5, 5))
    counts = reports(channel.table, people(5), np.random.default_rng(7))
    fit = goodness_of_fit(estimate(channel, counts, rule))
    best = estimate(channel, counts, LikelihoodGain(1e-9), max_iterations=100_000)
    expected = best.n * channel.forward(best.density)
    deviance = 2 * xlogy(counts, counts / np.where(channel.support, expected, 1)).sum()
    assert deviance <= fit.statistic + 1e-6
    assert fit.statistic == pytest.approx(deviance, abs=5)
    assert fit.expected == pytest.approx(channel.table.output_size, abs=1)
    # A smoothed estimate is refined as well: the check is of the reports, not of the estimate.
    smoothed = goodness_of_fit(estimate(channel, counts, rule, "binomial"))
    assert smoothed.statistic == pytest.approx(deviance, abs=5)


def deviance(channel: StampChannel, counts: Ints, density: Array) -> float:
    expected = counts.sum() * channel.forward(density)
    return float(2 * xlogy(counts, counts / np.where(channel.support, expected, 1)).sum())


def test_cells_that_an_estimate_leaves_empty_are_filled_again() -> None:
    channel = StampChannel(response_table("dam", 3.5, 8))
    counts = reports(channel.table, people(8), np.random.default_rng(9))
    found = estimate(channel, counts)
    emptied = np.where(np.arange(8) % 2, found.density, 0)
    fit = goodness_of_fit(replace(found, density=emptied / emptied.sum()))
    assert deviance(channel, counts, emptied / emptied.sum()) > 10 * fit.expected
    assert fit.statistic == pytest.approx(goodness_of_fit(found).statistic, abs=1)
    assert fit.is_plausible()


def test_a_sparse_estimate_fits_no_worse_than_the_truth() -> None:
    # A few people beside three crowds, whom the sieve takes for noise on some of these counts.
    channel = StampChannel(response_table("huem", 3.5, 8))
    rng = np.random.default_rng(5)
    empty = 0
    for _ in range(10):
        truth = np.full((8, 8), 0.02 / 64)
        truth.ravel()[rng.choice(64, 3, replace=False)] += 0.98 / 3
        law = channel.forward(truth)[channel.support]
        counts = np.zeros(channel.output_shape, np.int64)
        counts[channel.support] = rng.multinomial(10_000, law / law.sum())
        found = estimate(channel, counts, "cross-validated")
        empty += (found.density == 0).sum()
        assert goodness_of_fit(found).statistic <= deviance(channel, counts, truth)
    assert empty > 0


@pytest.mark.parametrize("n", [LEAST_REPORTS, 100, 1_000, 50_000])
@pytest.mark.parametrize(("mechanism", "epsilon"), [("huem", 5.0), ("dam", 0.7)])
def test_the_gamma_law_has_the_tail_of_the_deviance(mechanism: str, epsilon: float, n: int) -> None:
    # One cell of the square: the law of the reports is known, and nothing is fitted that could
    # hide an error of the tail.
    channel = StampChannel(response_table(mechanism, epsilon, 1, 2))
    law, runs = channel.forward(np.ones((1, 1)))[channel.support], 50_000
    counts = np.random.default_rng(8).multinomial(n, law / law.sum(), runs)
    deviances = 2 * xlogy(counts, counts / (n * law)).sum(axis=1)
    mean, variance = _deviance_moments(n * law)
    p_values = gamma.sf(deviances, mean**2 / variance, scale=variance / mean)
    for rate in (0.1, 0.01, 1e-3, 1e-4):
        assert (p_values < rate).sum() <= binom.isf(1e-7, runs, rate)
    assert (p_values < 0.1).mean() > 0.01  # not by never alarming


@pytest.mark.parametrize("n", [1, LEAST_REPORTS - 1])
def test_few_reports_tell_nothing(n: int) -> None:
    channel = StampChannel(response_table("dam-ns", 10.0, 1, 2))
    counts = np.zeros(channel.output_shape)
    counts[0, 2] = n
    fit = goodness_of_fit(estimate(channel, counts))
    assert fit.p_value == 1
    assert np.isfinite(fit.statistic)
    counts[0, 2] = LEAST_REPORTS
    assert not goodness_of_fit(estimate(channel, counts)).is_plausible()
