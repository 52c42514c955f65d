"""EM: against its dense twin, and what every run of it must keep."""

from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import Estimate, StampChannel, estimate
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation import LikelihoodGain, Published
from tests.support import naive_channel

Array = NDArray[np.float64]
BINOMIAL = np.outer([1, 2, 1], [1, 2, 1]) / 16
FIVE_POINT = np.array([[0, 1, 0], [1, 2, 1], [0, 1, 0]]) / 6  # k = 1/2
CHANNEL = StampChannel(response_table("dam", 3.5, 5))


def counts_of(channel: StampChannel, n: int, seed: int = 1, lumpiness: float = 0.5) -> Array:
    """Draw n reports of a random density, in index order."""
    rng = np.random.default_rng(seed)
    density = rng.dirichlet(np.full(channel.table.cells**2, lumpiness))
    law = channel.forward(density.reshape(channel.input_shape))[channel.support]
    return rng.multinomial(n, law / law.sum()).astype(float)


@pytest.mark.parametrize("method", ["direct", "fft"])
@pytest.mark.parametrize(
    ("mechanism", "epsilon", "cells"), [("dam", 3.5, 5), ("dam-ns", 2, 6), ("huem", 5, 9)]
)
@pytest.mark.parametrize(
    ("rule", "smoothing"),
    [
        ("scaled", None),
        ("likelihood", None),
        ("published", None),
        ("likelihood", "binomial"),
        ("likelihood", "five-point"),
        ("published", "binomial"),
    ],
)
def test_em_equals_the_dense_one(
    mechanism: str, epsilon: float, cells: int, method: str, rule: str, smoothing: str | None
) -> None:
    table = response_table(mechanism, epsilon, cells)
    channel = StampChannel(table, method)
    counts = counts_of(channel, 3_000)
    stops = {
        "scaled": naive_channel.likelihood_gain(2e-4 * cells * exp(epsilon)),
        "likelihood": naive_channel.likelihood_gain(1e-3 * exp(epsilon)),
        "published": naive_channel.published(),
    }
    kernel = {None: None, "binomial": BINOMIAL, "five-point": FIVE_POINT}[smoothing]
    # The published rule may take long, and smoothing with either rule stops soon.
    limit = 400
    density, trace, converged = naive_channel.em(
        naive_channel.matrix(table), counts, stops[rule], limit, kernel
    )
    found = estimate(channel, counts, rule, smoothing, limit)
    assert found.iterations == len(trace) - 1
    assert found.converged == converged
    np.testing.assert_allclose(found.density, density, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.trace, trace, rtol=1e-11)


@st.composite
def problems(draw: st.DrawFn) -> tuple[StampChannel, Array]:
    cells = draw(st.integers(1, 7))
    table = response_table(
        draw(st.sampled_from(["dam", "dam-ns", "huem"])),
        draw(st.floats(0.1, 10)),
        cells,
        draw(st.one_of(st.none(), st.integers(0, 2 * cells))),
    )
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.sampled_from([1, 2, 10, 1_000, 10**6, 10**12]))
    # Counts of any shape, not only those that the channel is likely to send.
    counts = rng.multinomial(n, rng.dirichlet(np.full(table.output_size, 0.2)))
    return StampChannel(table), counts.astype(float)


def check_density(found: Estimate) -> None:
    assert (found.density >= 0).all()
    assert found.density.sum() == pytest.approx(1, abs=1e-12)
    assert len(found.trace) == found.iterations + 1
    assert found.trace[-1] == found.log_likelihood


@given(problems())
@settings(max_examples=80)
def test_without_smoothing_the_likelihood_never_falls(
    problem: tuple[StampChannel, Array],
) -> None:
    channel, counts = problem
    found = estimate(channel, counts, LikelihoodGain(0), max_iterations=100)
    check_density(found)
    rounding = 1e-12 * np.abs(found.trace).max()
    assert (np.diff(found.trace) >= -rounding).all()


@given(problems(), st.sampled_from(["binomial", "five-point"]))
@settings(max_examples=40)
def test_with_smoothing_the_estimate_is_a_density(
    problem: tuple[StampChannel, Array], smoothing: str
) -> None:
    check_density(estimate(*problem, smoothing=smoothing, max_iterations=50))


@pytest.mark.parametrize("seed", range(3))
def test_randomised_response_has_a_closed_form(seed: int) -> None:
    # b = 0: the maximum of the likelihood inverts f -> q + (p - q) f where that is positive.
    channel = StampChannel(response_table("dam", 3.0, 4, 0))
    counts = counts_of(channel, 50_000, seed, lumpiness=3.0)
    p = exp(3) / (exp(3) + 15)
    q = (1 - p) / 15
    closed = (counts / counts.sum() - q) / (p - q)
    assert (closed > 0).all()
    found = estimate(channel, counts, LikelihoodGain(1e-9))
    assert found.converged
    np.testing.assert_allclose(found.density.ravel(), closed, atol=1e-6)


@pytest.mark.parametrize(("mechanism", "epsilon"), [("dam", 3.5), ("dam-ns", 5.0), ("huem", 5.0)])
def test_counts_without_noise_give_the_density_back(mechanism: str, epsilon: float) -> None:
    channel = StampChannel(response_table(mechanism, epsilon, 6))
    truth = np.random.default_rng(1).dirichlet(np.full(36, 2.0)).reshape(6, 6)
    counts = np.round(1e14 * channel.forward(truth))
    found = estimate(channel, counts, LikelihoodGain(0), max_iterations=20_000)
    np.testing.assert_allclose(found.density, truth, atol=1e-5)


def test_one_report_puts_everyone_where_it_is_likeliest() -> None:
    channel = StampChannel(response_table("dam", 3.5, 5, 0))
    counts = np.zeros(channel.output_shape)
    counts[1, 3] = 1
    found = estimate(channel, counts, LikelihoodGain(1e-12))
    assert found.n == 1
    assert found.density[1, 3] == pytest.approx(1, abs=1e-6)
    assert estimate(channel, counts, "em").converged


def test_one_cell_holds_everyone() -> None:
    for radius in (0, 2):
        channel = StampChannel(response_table("dam", 1.0, 1, radius))
        found = estimate(channel, counts_of(channel, 100), "em")
        assert found.density.tolist() == [[1.0]]
        assert found.converged


@pytest.mark.parametrize("epsilon", [0.1, 10.0])
@pytest.mark.parametrize("cells", [1, 5, 64])
def test_extreme_epsilons_and_many_reports_stay_finite(epsilon: float, cells: int) -> None:
    channel = StampChannel(response_table("dam", epsilon, cells))
    for n in (1, 10**12):
        found = estimate(channel, counts_of(channel, n), max_iterations=20)
        check_density(found)
        assert np.isfinite(found.trace).all()


@pytest.mark.parametrize("rule", ["scaled", "likelihood"])
@pytest.mark.parametrize("epsilon", [500.0, 600.0, 1e3, 1e300])
def test_beyond_all_floats_the_first_step_is_the_last(rule: str, epsilon: float) -> None:
    # Reports that all are true: the first step from the uniform density gives their shares.
    truthful = MatrixChannel(np.eye(4), (2, 2), epsilon)
    found = estimate(truthful, [2**52, 2**51, 7, 0], rule)
    assert (found.iterations, found.converged, found.rule) == (1, True, rule)
    np.testing.assert_allclose(found.density.ravel(), np.array([2**52, 2**51, 7, 0]) / found.n)


@pytest.mark.parametrize("rule", ["scaled", "likelihood"])
def test_an_infinite_epsilon_sets_no_tolerance(rule: str) -> None:
    blurred = MatrixChannel(np.array([[0.5, 0], [0.5, 0.5], [0, 0.5]]), (1, 2))
    assert blurred.epsilon == np.inf
    with pytest.raises(InputError, match="a LikelihoodGain or 'published' where epsilon is inf"):
        estimate(blurred, [1, 2, 1], rule)
    assert estimate(blurred, [1, 2, 1], LikelihoodGain(1e-9)).converged


def test_the_likelihood_rule_stops_at_the_first_gain_below_its_tolerance() -> None:
    counts = counts_of(CHANNEL, 20_000)
    for rule, tolerance in (("likelihood", 1e-3 * exp(3.5)), ("scaled", 5 * 2e-4 * exp(3.5))):
        found = estimate(CHANNEL, counts, rule)
        gains = np.diff(found.trace)
        assert (gains[:-1] >= tolerance).all()
        assert gains[-1] < tolerance
        assert found.rule == rule
        assert found.converged
        same = estimate(CHANNEL, counts, LikelihoodGain(tolerance))
        assert same.iterations == found.iterations


def test_the_published_rule_looks_at_the_size_of_a_change_that_falls_at_first() -> None:
    # The unweighted sum of ln g ignores the counts. While the map takes shape it falls, so a test
    # of the signed change against 1e-6 stops at the second step, before anything was learnt.
    sums = []

    class Signed:
        name = "signed"

        def done(self, gain: float, before: Array, after: Array) -> bool:
            domain = after > 0
            sums.append(float(np.log(after[domain]).sum() - np.log(before[domain]).sum()))
            return sums[-1] < 1e-6

    counts = counts_of(CHANNEL, 20_000)
    signed = estimate(CHANNEL, counts, Signed())
    assert signed.iterations == 2
    assert sums[-1] < -0.1
    found = estimate(CHANNEL, counts, "published")
    assert found.rule == "published"
    assert found.converged
    assert found.iterations > 100
    assert found.log_likelihood > signed.log_likelihood + 100
    changes = []

    class Watched(Published):
        def done(self, gain: float, before: Array, after: Array) -> bool:
            domain = after > 0
            changes.append(abs(np.log(after[domain]).sum() - np.log(before[domain]).sum()))
            return super().done(gain, before, after)

    assert estimate(CHANNEL, counts, Watched()).iterations == found.iterations
    assert min(changes[:-1]) >= 1e-6 > changes[-1]


@pytest.mark.parametrize("limit", [1, 7, np.int64(7), np.uint8(7)])
def test_a_run_that_meets_its_limit_says_so(limit: int) -> None:
    steps: list[tuple[int, float]] = []
    found = estimate(
        CHANNEL,
        counts_of(CHANNEL, 1_000),
        LikelihoodGain(0),
        max_iterations=limit,
        progress=lambda step, likelihood: steps.append((step, likelihood)),
    )
    assert not found.converged
    assert found.iterations == limit
    assert steps == [(k + 1, value) for k, value in enumerate(found.trace[1:])]


def test_the_trace_begins_at_the_uniform_density() -> None:
    counts = counts_of(CHANNEL, 1_000)
    uniform = CHANNEL.forward(np.full((5, 5), 1 / 25))[CHANNEL.support]
    assert estimate(CHANNEL, counts, "em").trace[0] == pytest.approx(counts @ np.log(uniform))
