"""Goodness of fit where it could go wrong: few reports, very many, other parameters."""

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import Grid, ResponseTable, kernels, response_table
from ldpspatial import StampChannel, estimate
from ldpspatial.datasets import synthetic_maps
from ldpspatial.estimation import goodness_of_fit
from ldpspatial.estimation.fit_check.goodness import LEAST_REPORTS

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
    assert goodness_of_fit(estimate(channel, counts, "em")).p_value < 1e-12


@pytest.mark.parametrize("cells", [5, 15])
def test_one_unrandomised_report_in_eleven_is_caught(cells: int) -> None:
    channel = StampChannel(response_table("dam", 3.5, cells))
    truth = people(cells)
    randomised = reports(channel.table, truth, np.random.default_rng(5))
    counts = randomised + np.pad(truth, channel.table.radius) // 10
    assert goodness_of_fit(estimate(channel, randomised, "em")).is_plausible()
    assert not goodness_of_fit(estimate(channel, counts, "em")).is_plausible()


@pytest.mark.parametrize("n", [1, LEAST_REPORTS - 1])
def test_few_reports_tell_nothing(n: int) -> None:
    channel = StampChannel(response_table("dam-ns", 10.0, 1, 2))
    counts = np.zeros(channel.output_shape)
    counts[0, 2] = n
    fit = goodness_of_fit(estimate(channel, counts, "em"))
    assert fit.p_value == 1
    assert np.isfinite(fit.statistic)
    counts[0, 2] = LEAST_REPORTS
    assert not goodness_of_fit(estimate(channel, counts, "em")).is_plausible()
