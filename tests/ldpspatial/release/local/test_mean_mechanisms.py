"""Mechanisms for a mean, and what their reports tell of a density (docs/local.md).

Stochastic rounding (Duchi, Jordan and Wainwright 2018) and the piecewise mechanism (Wang et al.,
ICDE 2019) report a number in [-1, 1] so that the mean of the reports is unbiased. They are no
releases here; these tests hold what the docs say of them.
"""

from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.estimation import estimate
from ldpspatial.release.local.coordinates.square_wave import optimal_half_width

Array = NDArray[np.float64]
CELLS, BINS, FINE = 32, 128, 40
EPSILONS = (0.5, 1.4, 3.5, 7.0)

every_epsilon = pytest.mark.parametrize("epsilon", EPSILONS)


def values() -> Array:
    """Midpoints of fine parts of [0, 1], CELLS x FINE of them."""
    return np.asarray((np.arange(CELLS * FINE) + 0.5) / (CELLS * FINE))


def binned(edges: Array, low: Array, high: Array, inside: float, outside: float) -> Array:
    """Probabilities of the bins by cell, for a density of two heights; the band by value."""
    overlap = np.minimum(edges[1:, None], high) - np.maximum(edges[:-1, None], low)
    heights = outside * np.diff(edges)[:, None] + (inside - outside) * np.clip(overlap, 0, None)
    return np.asarray(heights.reshape(BINS, CELLS, FINE).mean(axis=2))


def square_wave(epsilon: float, half_width: float) -> Array:
    """Square wave on the unit interval (Li et al. 2020, section 5.1)."""
    b, x = half_width, values()
    low = 1 / (2 * b * exp(epsilon) + 1)
    return binned(np.linspace(-b, 1 + b, BINS + 1), x - b, x + b, low * exp(epsilon), low)


def piecewise(epsilon: float) -> Array:
    """The piecewise mechanism on [-1, 1] (Wang et al. 2019, algorithm 2)."""
    root, value = exp(epsilon / 2), 2 * values() - 1
    end = (root + 1) / (root - 1)
    high = (exp(epsilon) - root) / (2 * root + 2)
    left = (end + 1) / 2 * value - (end - 1) / 2
    edges = np.linspace(-end, end, BINS + 1)
    return binned(edges, left, left + end - 1, high, high / exp(epsilon))


def rounding(epsilon: float) -> Array:
    """Stochastic rounding: one of two numbers."""
    up = 0.5 + (2 * values() - 1) * np.tanh(epsilon / 2) / 2
    up = up.reshape(CELLS, FINE).mean(axis=1)
    return np.array([1 - up, up])


def information(channel: Array) -> float:
    """Mutual information of value and report in nats, the value uniform."""
    mean = channel.mean(axis=1, keepdims=True)
    return float((channel * np.log(channel / mean)).sum() / channel.shape[1])


@every_epsilon
def test_the_piecewise_mechanism_is_a_square_wave_of_another_width(epsilon: float) -> None:
    width = exp(-epsilon / 2) / 2
    assert np.abs(piecewise(epsilon) - square_wave(epsilon, width)).max() < 1e-12
    assert width > optimal_half_width(epsilon)


@pytest.mark.parametrize("epsilon", [0.5, 1.4, 3.5])
def test_its_reports_hold_a_little_less_than_those_of_the_best_width(epsilon: float) -> None:
    ratio = information(piecewise(epsilon)) / information(
        square_wave(epsilon, optimal_half_width(epsilon))
    )
    assert 0.9 < ratio < 0.98


@every_epsilon
def test_rounded_reports_tell_the_mean_and_nothing_else(epsilon: float) -> None:
    channel = rounding(epsilon)
    rng = np.random.default_rng(1)
    one = rng.dirichlet(np.ones(CELLS))
    mirrored = (one + one[::-1]) / 2
    middle = np.zeros(CELLS)
    middle[CELLS // 2 - 1 : CELLS // 2 + 1] = 0.5  # mean 1/2 as well, and all in one place
    assert np.abs(channel @ mirrored - channel @ middle).max() < 1e-12
    assert np.linalg.matrix_rank(channel) == 2
    assert np.linalg.matrix_rank(channel - channel.mean(axis=1, keepdims=True), tol=1e-9) == 1


def test_an_estimate_from_rounded_reports_is_wrong_however_many_there_are() -> None:
    epsilon = 3.5
    truth = np.zeros(CELLS)
    truth[[2, CELLS - 3]] = 0.5
    errors = []
    for channel in (rounding(epsilon), piecewise(epsilon)):
        counts = np.round(1e9 * channel @ truth)
        found = estimate(MatrixChannel(channel, (1, CELLS), epsilon), counts, "likelihood").density
        errors.append(np.abs(np.cumsum(found[0] - truth)).sum() / CELLS)  # W1 on [0, 1]
    assert errors[0] > 0.15  # the uniform map: the first of all with that mean
    assert errors[1] < 0.01
