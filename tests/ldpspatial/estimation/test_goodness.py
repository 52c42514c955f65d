"""The goodness-of-fit check: silent on genuine counts, loud on others."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import binom

from client_sdk import ResponseTable, response_table
from ldpspatial import StampChannel, estimate
from ldpspatial.datasets import synthetic_maps
from ldpspatial.estimation import goodness_of_fit
from ldpspatial.estimation.goodness import GoodnessOfFit, _deviance_moments

Array = NDArray[np.float64]
REPORTS = 100_000


def normal_map(d: int) -> Array:
    chosen = synthetic_maps()["normal"]
    places = (chosen.draw(1_000_000, np.random.default_rng(0)) - (chosen.y0, chosen.x0)) * d
    edges = np.arange(d + 1)
    counts, _, _ = np.histogram2d(*(places / chosen.side).T, bins=[edges, edges])
    return counts / counts.sum()


def spots(d: int, number: int) -> Array:
    density = np.zeros(d * d)
    density[np.random.default_rng(1).choice(d * d, number, replace=False)] = 1 / number
    return density.reshape(d, d)


def reports(table: ResponseTable, density: Array) -> Array:
    """Distribution of reports on the table's own output domain."""
    channel = StampChannel(table)
    return channel.forward(density)


def check(claimed: ResponseTable, law: Array, n: int, rng: np.random.Generator) -> GoodnessOfFit:
    channel = StampChannel(claimed)
    p = law[channel.support]
    return goodness_of_fit(estimate(channel, rng.multinomial(n, p / p.sum())))


@pytest.mark.parametrize(
    ("d", "epsilon", "n", "density"),
    [
        (2, 3.5, 1000, spots(2, 1)),
        (2, 0.5, 1000, spots(2, 4)),
        (10, 3.5, 30, spots(10, 3)),
        (15, 3.5, REPORTS, normal_map(15)),
        (15, 8.0, 1000, spots(15, 1)),  # few stray reports a cell: Pearson's statistic alarms
        (64, 9.0, 3000, spots(64, 1)),
        (64, 9.0, 3000, spots(64, 10)),
    ],
)
def test_genuine_counts_raise_no_alarm(d: int, epsilon: float, n: int, density: Array) -> None:
    """At most 1 % of p-values lie below 1 %: 20 runs show more than 5 with probability < 1e-6."""
    table, rng = response_table("dam", epsilon, d), np.random.default_rng(2)
    law = reports(table, density)
    found = [check(table, law, n, rng) for _ in range(20)]
    alarms = sum(not fit.is_plausible(0.01) for fit in found)
    assert binom.sf(5, 20, 0.01) < 1e-6
    assert alarms <= 5
    assert all(fit.is_plausible() for fit in found)


def test_one_report_is_plausible() -> None:
    table = response_table("dam", 3.5, 5)
    fit = check(table, reports(table, spots(5, 1)), 1, np.random.default_rng(3))
    assert fit.is_plausible()


def test_one_output_cell_is_plausible() -> None:
    channel = StampChannel(response_table("dam", 3.5, 1))
    fit = goodness_of_fit(estimate(channel, [[17]]))
    assert fit.statistic == pytest.approx(0, abs=1e-9)
    assert fit.is_plausible()


def test_another_epsilon_is_noticed() -> None:
    claimed = response_table("dam", 3.5, 15)
    law = reports(response_table("dam", 3.0, 15, radius=claimed.radius), normal_map(15))
    assert not check(claimed, law, REPORTS, np.random.default_rng(4)).is_plausible()


def test_another_radius_is_noticed() -> None:
    claimed = response_table("dam", 3.5, 15)
    law = reports(response_table("dam", 3.5, 15, claimed.radius + 1), normal_map(15))[1:-1, 1:-1]
    assert not check(claimed, law, REPORTS, np.random.default_rng(5)).is_plausible()


@pytest.mark.parametrize("n", [1000, REPORTS])
def test_unrandomised_positions_are_noticed(n: int) -> None:
    claimed, density = response_table("dam", 3.5, 15), normal_map(15)
    law = np.zeros(StampChannel(claimed).output_shape)
    law[claimed.radius : -claimed.radius, claimed.radius : -claimed.radius] = density
    assert not check(claimed, law, n, np.random.default_rng(6)).is_plausible()


@pytest.mark.parametrize("expected", [0.001, 0.03, 0.5, 2.0, 20.0, 5000.0])
def test_moments_of_the_deviance_by_simulation(expected: float) -> None:
    """Equal cells; the sample means of 20,000 draws lie within 5 standard errors (1e-6)."""
    cells, draws = 200, 20_000
    n = max(round(cells * expected), 1)
    means = np.full(cells, n / cells)
    counts = np.random.default_rng(7).multinomial(n, means / n, draws)
    deviance = 2 * xlogy(counts, counts / means).sum(axis=1)
    mean, variance = _deviance_moments(means)
    error = deviance.std() / np.sqrt(draws)
    # Given the sum, one degree of freedom is lost; the computed mean leaves it in.
    assert deviance.mean() - 5 * error <= mean <= deviance.mean() + 1.5 + 5 * error
    if n > 100:
        spread = np.sqrt(((deviance - deviance.mean()) ** 2).std() ** 2 / draws)
        assert abs(variance - deviance.var()) <= 5 * spread + 0.05 * variance


def test_residuals_show_where_the_misfit_lies() -> None:
    table = response_table("dam", 3.5, 10)
    channel = StampChannel(table)
    law = channel.forward(normal_map(10))[channel.support]
    counts = np.zeros(channel.support.shape)
    counts[channel.support] = np.random.default_rng(8).multinomial(REPORTS, law / law.sum())
    forged = (0, table.radius)  # in the margin, where no density explains many reports
    counts[forged] += 3000
    fit = goodness_of_fit(estimate(channel, counts))
    assert not fit.is_plausible()
    assert np.unravel_index(fit.residuals.argmax(), counts.shape) == forged
