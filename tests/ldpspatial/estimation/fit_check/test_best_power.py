"""The most power that any check can have."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from client_sdk import response_table
from ldpspatial import StampChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation.fit_check.best_power import _power_of_ratio, best_power

Array = NDArray[np.float64]


def noise(channel: StampChannel) -> Array:
    return np.asarray(channel.support / channel.support.sum())


@pytest.mark.parametrize("false_alarm", [0.05, 1e-4])
def test_of_one_cell_it_is_that_of_the_likelihood_ratio(false_alarm: float) -> None:
    """With a single cell there is one density, and a small share moves a normal variable."""
    channel = StampChannel(response_table("dam", 2.0, 1, 2))
    law = channel.forward(np.ones((1, 1)))[channel.support]
    shape = noise(channel)
    share, n = 0.005, 100_000
    moved = share * np.sqrt(n * ((shape[channel.support] - law) ** 2 / law).sum())
    wanted = norm.sf(norm.isf(false_alarm) - moved)
    found = best_power(channel, np.ones((1, 1)), shape, share, n, false_alarm)
    assert found == pytest.approx(wanted, rel=0.05)


def test_reports_that_another_density_gives_are_never_noticed() -> None:
    channel = StampChannel(response_table("dam", 3.5, 6))
    density = np.full((6, 6), 1 / 36)
    crowd = np.zeros((6, 6))
    crowd[2, 3] = 1
    played = channel.forward(crowd)
    assert best_power(channel, density, played, 0.3, 10**6) == pytest.approx(0.05, abs=0.02)
    assert best_power(channel, density, played, 0.0, 10**6) == pytest.approx(0.05, abs=0.01)


def test_more_reports_and_larger_shares_are_noticed_more_often() -> None:
    channel = StampChannel(response_table("dam", 3.5, 8))
    density = np.eye(8) / 8
    unrandomised = np.pad(density, channel.table.radius)
    by_share = [best_power(channel, density, unrandomised, a, 10**5) for a in (0.01, 0.03, 0.1)]
    by_number = [best_power(channel, density, unrandomised, 0.02, n) for n in (10**4, 10**5, 10**6)]
    assert by_share == sorted(by_share)
    assert by_number == sorted(by_number)
    assert by_number[-1] > 0.9


def test_forged_reports_outside_the_output_domain_are_refused() -> None:
    channel = StampChannel(response_table("dam", 1.0, 5))
    corner = np.zeros(channel.support.shape)
    corner[0, 0] = 1
    assert not channel.support[0, 0]
    with pytest.raises(InputError, match="forged must be 0 outside"):
        best_power(channel, np.eye(5) / 5, corner, 0.1, 100)


def test_the_power_of_a_ratio_is_that_of_two_normal_laws() -> None:
    law, null, n = np.array([0.9, 0.1]), np.array([0.5, 0.5]), 60
    cut = n * 0.5 + norm.isf(1e-6) * np.sqrt(n * 0.25)
    wanted = norm.sf((cut - n * 0.9) / np.sqrt(n * 0.09))
    assert _power_of_ratio(law, null, n, 1e-6) == pytest.approx(wanted, rel=1e-6)
