"""What no density explains, against plain least squares, and the two ways to find it."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from client_sdk import response_table
from ldpspatial import StampChannel
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.estimation.fit_check import unexplained
from ldpspatial.estimation.fit_check.tails import gamma_tail, least_of_many, upper_tail
from ldpspatial.estimation.fit_check.unexplained import Unexplained

Array = NDArray[np.float64]


def counts_of(channel: StampChannel, n: int) -> tuple[Array, Array]:
    d = channel.input_shape[0]
    density = np.full((d, d), 0.3 / d**2)
    density[1, 2] += 0.7
    law = channel.forward(density)[channel.support]
    return density, np.random.default_rng(1).multinomial(n, law / law.sum()).astype(float)


def test_it_is_what_least_squares_leaves() -> None:
    channel = StampChannel(response_table("dam", 3.5, 6))
    density, counts = counts_of(channel, 100_000)
    fit = Unexplained(channel, density, 100_000)
    left = fit.left(fit.whitened(counts[:, None]), np.array([0.0]))
    matrix = channel.matrix() / np.sqrt(fit.variance)[:, None]
    target = counts / np.sqrt(fit.variance)
    best, *_ = np.linalg.lstsq(matrix, target, rcond=None)
    assert left.rest[:, 0] == pytest.approx(target - matrix @ best, abs=0.02)
    assert density.ravel() + left.density[:, 0] == pytest.approx(best / 100_000, abs=1e-5)


def test_what_densities_make_is_taken_off_whichever_they_are() -> None:
    channel = StampChannel(response_table("huem", 2.0, 6))
    density, _ = counts_of(channel, 1)
    fit = Unexplained(channel, density, 10**6)
    other = np.zeros((6, 6))
    other[5, 0] = 1
    reports = 10**6 * channel.forward(other)[channel.support]
    whitened = fit.whitened(reports[:, None])
    assert np.linalg.norm(whitened) > 1_000
    assert np.linalg.norm(fit.left(whitened, np.array([0.0])).rest) < 0.2


@pytest.mark.parametrize("epsilon", [0.5, 3.5, 7.0])
def test_steps_find_what_the_factors_find(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    table = response_table("dam", epsilon, 12)
    channel = StampChannel(table)
    density, counts = counts_of(channel, 100_000)
    exact = Unexplained(channel, density, 100_000)
    columns = exact.whitened(counts[:, None])
    monkeypatch.setattr(unexplained, "DENSE_ENTRIES", 0)
    monkeypatch.setattr(unexplained, "MATRIX_LIMIT", 0)
    wanted = exact.left(columns, np.array([1e-4])).rest
    for same in (channel, MatrixChannel(channel.matrix(), (12, 12), epsilon)):
        stepped = Unexplained(same, density, 100_000)
        assert exact.is_dense
        assert not stepped.is_dense
        found = stepped.left(columns, np.array([1e-4])).rest
        assert np.linalg.norm(found - wanted) < 0.05


def test_tails_of_known_laws() -> None:
    assert gamma_tail(18.307, 10, 20) == pytest.approx(0.05, abs=1e-4)  # chi-square, 10 degrees
    assert gamma_tail(1.0, 1.0, 0.0) == 1
    deviations = np.array([0.0, 2.0, 5.0])
    assert upper_tail(deviations, np.zeros(3)) == pytest.approx(norm.sf(deviations))
    # An exponential number has skewness 2; less than its mean there is 1 of, its mirror above it.
    assert upper_tail(np.array([2.0]), np.array([2.0])) == pytest.approx(np.exp(-3))
    assert upper_tail(np.array([0.5]), np.array([-2.0])) == pytest.approx(1 - np.exp(-0.5))
    # However far the counts are off, more of it is never likelier.
    assert (np.diff(upper_tail(np.linspace(-9, 300, 500), np.full(500, 0.1))) <= 0).all()


def test_the_least_of_many_p_values() -> None:
    alone = least_of_many(np.array([0.01]), np.eye(1))
    assert alone == pytest.approx(0.01, rel=0.05)
    ten = least_of_many(np.full(10, 0.01), 3.0 * np.eye(10))
    assert ten == pytest.approx(1 - 0.99**10, rel=0.05)
    copies = least_of_many(np.full(10, 0.01), np.ones((10, 10)))
    assert copies == pytest.approx(0.01, rel=0.05)
