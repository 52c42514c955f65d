"""Intervals of regions: against a general solver, closed forms, coverage, edges, bad input."""

import dataclasses
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, chi2

from client_sdk import response_table
from ldpspatial import Estimate, StampChannel, estimate
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation import cell_intervals, region_share
from ldpspatial.estimation.intervals import cells
from ldpspatial.estimation.intervals import regions as regional
from ldpspatial.estimation.intervals.regions import (
    AUTO_LIKELIHOOD_CELLS,
    COUNT_METHODS,
    LIKELIHOOD_CELLS,
    LikelihoodRegions,
    share_intervals,
)
from tests.support import naive_regions

Array = NDArray[np.float64]
FALSE_ALARM = 1e-6


def counted(channel: StampChannel, n: int, rng: np.random.Generator, lumps: float) -> Array:
    """Reports of n people on a random map."""
    density = rng.dirichlet(np.full(channel.table.cells**2, lumps)).reshape(channel.input_shape)
    counts = np.zeros(channel.support.shape)
    law = channel.forward(density)[channel.support]
    counts[channel.support] = rng.multinomial(n, law / law.sum())
    return counts


def example(cells: int = 5, n: int = 3_000, epsilon: float = 3.5, rule: str = "scaled") -> Estimate:
    channel = StampChannel(response_table("dam", epsilon, cells))
    return estimate(channel, counted(channel, n, np.random.default_rng(1), 0.3), rule)


@pytest.mark.parametrize("epsilon", [0.7, 1.4, 3.5, 6.0])
@pytest.mark.parametrize(("cells", "lumps", "n"), [(2, 1.0, 30), (3, 0.1, 10_000), (4, 0.5, 500)])
def test_likelihood_intervals_are_those_of_a_general_solver(
    epsilon: float, cells: int, lumps: float, n: int
) -> None:
    channel = StampChannel(response_table("dam", epsilon, cells))
    rng = np.random.default_rng(cells)
    counts = counted(channel, n, rng, lumps)
    for weights in (rng.random((cells, cells)), (rng.random((cells, cells)) < 0.4).astype(float)):
        if weights.min() == weights.max():
            continue
        found = LikelihoodRegions(channel, counts, 0.9).bounds(weights)
        lower, upper = naive_regions.profile_interval(
            channel.matrix(), counts[channel.support], weights.ravel(), 0.9
        )
        width = upper - lower
        # Never narrower, up to the general solver's own tolerance.
        assert lower - 5e-4 * width - 1e-7 < found[0] < lower + 1e-4 * width + 1e-7
        assert upper - 1e-4 * width - 1e-7 < found[1] < upper + 5e-4 * width + 1e-7


@pytest.mark.parametrize(
    ("own", "n", "level"), [(0, 40, 0.95), (3, 40, 0.95), (700, 4_000, 0.5), (4_000, 4_000, 0.99)]
)
def test_a_cell_under_randomised_response_has_the_likelihood_interval_of_a_binomial(
    own: int, n: int, level: float
) -> None:
    # Whatever the cell's share s, the others can follow the other reports (here they are even):
    # only how many named the cell matters, at a probability of q + (p - q) s.
    channel = StampChannel(response_table("dam", 5.0, 2, 0))
    counts = np.full((2, 2), (n - own) / 3)
    counts[0, 1] = own
    p = exp(5) / (exp(5) + 3)
    q = (1 - p) / 3

    def drop(share: float) -> float:
        g, best = q + (p - q) * share, min(max(own / n, q), p)
        likelihood = own * log(g / best) + (n - own) * log((1 - g) / (1 - best))
        return likelihood + float(chi2.ppf(level, 1)) / 2

    best = min(max((own / n - q) / (p - q), 0.0), 1.0)
    lower = brentq(drop, 0, best, xtol=1e-14) if drop(0) < 0 else 0.0
    upper = brentq(drop, best, 1, xtol=1e-14) if drop(1) < 0 else 1.0
    weights = np.zeros((2, 2))
    weights[0, 1] = 1
    found = LikelihoodRegions(channel, counts, level).bounds(weights)
    np.testing.assert_allclose(found, (lower, upper), atol=2e-4 * (upper - lower))


@st.composite
def problems(draw: st.DrawFn) -> tuple[StampChannel, Array, Array]:
    cells = draw(st.integers(1, 5))
    epsilon = draw(st.sampled_from([1e-6, 0.1, 1.4, 3.5, 8.0, 20.0]))
    channel = StampChannel(response_table(draw(st.sampled_from(["dam", "huem"])), epsilon, cells))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.sampled_from([1, 2, 10, 1_000, 10**6, 10**12]))
    # Counts of any shape, not only those that the channel is likely to send.
    counts = np.zeros(channel.support.shape)
    share = rng.dirichlet(np.full(channel.table.output_size, 0.2))
    counts[channel.support] = rng.multinomial(n, share)
    return channel, counts, np.round(rng.random((cells, cells)), draw(st.integers(0, 3)))


@given(problems(), st.sampled_from([1e-9, 0.5, 0.95, 1 - 1e-16]))
@settings(max_examples=80, deadline=None)
def test_every_density_that_is_likely_enough_is_inside(
    problem: tuple[StampChannel, Array, Array], level: float
) -> None:
    channel, counts, weights = problem
    lower, upper = LikelihoodRegions(channel, counts, level).bounds(weights)
    assert weights.min() - 1e-12 <= lower <= upper <= weights.max() + 1e-12
    opposite = LikelihoodRegions(channel, counts, level).bounds(1 - weights)
    near = 1e-3 * (upper - lower) + 1e-7
    np.testing.assert_allclose(opposite, (1 - upper, 1 - lower), atol=near)
    fit = estimate(channel, counts, max_iterations=50)
    rng = np.random.default_rng(1)
    for part in (0.0, 1e-4, 1e-2, 0.3):
        other = rng.dirichlet(np.full(weights.size, 0.3)).reshape(weights.shape)
        density = (1 - part) * fit.density + part * other
        ratio = channel.forward(density)[counts > 0] / channel.forward(fit.density)[counts > 0]
        gain = float(counts[counts > 0] @ np.log(ratio))
        best = fit.log_likelihood + _to_come(fit)
        if fit.log_likelihood + gain >= best - chi2.ppf(level, 1) / 2:
            assert lower - 1e-9 <= (weights * density).sum() <= upper + 1e-9


def _to_come(fit: Estimate) -> float:
    """Most that the likelihood can still gain, by concavity."""
    seen = fit.counts > 0
    ratio = np.zeros(fit.counts.shape)
    ratio[seen] = fit.counts[seen] / fit.channel.forward(fit.density)[seen]
    return float(fit.channel.adjoint(ratio).max() - fit.counts.sum())


def test_wider_levels_contain_narrower_ones_and_larger_regions_hold_more() -> None:
    found = example()
    region, larger = np.zeros((5, 5)), np.zeros((5, 5))
    region[1:3, 1:3] = 1
    larger[1:4, 1:3] = 1
    before = (0.5, 0.5)
    for k, level in enumerate((0.1, 0.5, 0.9, 0.99)):
        now = region_share(found, region, level, "likelihood")
        assert k == 0 or (now.lower < before[0] and before[1] < now.upper)
        before = now.lower, now.upper
        more = region_share(found, larger, level, "likelihood")
        assert more.lower >= now.lower - 1e-4
        assert more.upper >= now.upper - 1e-4


@pytest.mark.parametrize("lumps", ["smooth", "spots"])
def test_likelihood_covers_at_its_level_and_beats_fisher(lumps: str) -> None:
    # Coverage 0.95, less 0.02 for the limit law. Half of the quantile, as where nats are taken for
    # deviance, covers 0.83 and would not pass.
    cells, n, runs = 6, 4_000, 250
    channel = StampChannel(response_table("dam", 2.5, cells))
    truth = np.zeros((cells, cells))
    if lumps == "smooth":
        x = (np.arange(cells) + 0.5) / cells
        truth = np.exp(-4 * ((x[:, None] - 0.4) ** 2 + (x - 0.5) ** 2))
    else:
        truth[1, 1], truth[4, 2], truth[2, 4] = 0.5, 0.3, 0.2
    truth /= truth.sum()
    law = channel.forward(truth)[channel.support]
    rng = np.random.default_rng(5)
    block = np.zeros((cells, cells))
    block[1:4, 1:4] = 1
    inside, widths = 0, np.zeros(2)
    for run in range(runs):
        counts = np.zeros(channel.support.shape)
        counts[channel.support] = rng.multinomial(n, law / law.sum())
        share = float((block * truth).sum())
        lower, upper = LikelihoodRegions(channel, counts, 0.95).bounds(block)
        inside += lower <= share <= upper
        if run < 20:
            wide = region_share(estimate(channel, counts), block, method="fisher")
            widths += upper - lower, wide.upper - wide.lower
    assert binom.cdf(inside, runs, 0.93) > FALSE_ALARM
    assert widths[0] < 0.9 * widths[1]
    assert binom.cdf(round(0.83 * runs), runs, 0.93) < FALSE_ALARM


def test_fisher_and_bootstrap_are_those_of_whole_cells_and_linear_in_parts() -> None:
    found = example()
    mask = np.zeros((5, 5), bool)
    mask[1:4, 2:] = True
    for method in ("fisher", "bootstrap"):
        expected = cell_intervals(found, 0.9, method, np.random.default_rng(3)).region(mask)
        assert region_share(found, mask, 0.9, method, np.random.default_rng(3)) == expected
        half = region_share(found, mask / 2, 0.9, method, np.random.default_rng(3))
        assert half.estimate == pytest.approx(expected.estimate / 2)
        assert (half.lower, half.upper) == (expected.lower / 2, expected.upper / 2)


def test_auto_goes_by_the_size_of_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    found, rng = example(), np.random.default_rng(1)
    weights = np.linspace(0, 1, 25).reshape(5, 5)
    assert region_share(found, weights) == region_share(found, weights, 0.95, "fisher")
    flat = MatrixChannel(np.full((3, 4), 1 / 3), (2, 2), epsilon=1.0)
    blind = dataclasses.replace(
        found, channel=flat, counts=np.array([5.0, 2.0, 0.0]), density=np.full((2, 2), 0.25)
    )
    assert share_intervals(blind, 0.95, "auto").method == "likelihood"  # fisher cannot
    assert (cells.INFORMATIVE_CELLS, AUTO_LIKELIHOOD_CELLS) == (20, 32)
    for fisher, likelihood, name in ((5, 5, "fisher"), (4, 5, "likelihood"), (3, 4, "bootstrap")):
        monkeypatch.setattr(cells, "INFORMATIVE_CELLS", fisher)
        monkeypatch.setattr(regional, "AUTO_LIKELIHOOD_CELLS", likelihood)
        assert share_intervals(found, 0.95, "auto", rng).method == name


def test_an_estimate_that_the_counts_reject_is_left_outside_of_its_interval() -> None:
    found = example(n=100_000)
    flat = dataclasses.replace(found, density=np.full((5, 5), 1 / 25))
    weights = np.zeros((5, 5))
    weights.flat[found.density.argmax()] = 1
    share = region_share(flat, weights, method="likelihood")
    assert share.estimate == 1 / 25
    assert share.lower > share.estimate


def test_nowhere_everywhere_and_a_single_cell_are_certain() -> None:
    for method in COUNT_METHODS:
        rule = "field" if method == "posterior" else "scaled"
        for level in (0.1, 1 - 1e-16):
            rng = np.random.default_rng(1)
            found = example(rule=rule)
            nowhere = region_share(found, np.zeros((5, 5)), level, method, rng)
            assert (nowhere.estimate, nowhere.lower, nowhere.upper) == (0, 0, 0)
            everywhere = region_share(found, np.ones((5, 5), bool), level, method, rng)
            assert (everywhere.lower, everywhere.upper) == pytest.approx((1, 1), abs=1e-6)
            one = region_share(example(cells=1, rule=rule), [[0.25]], level, method, rng)
            assert (one.estimate, one.lower, one.upper) == pytest.approx((0.25,) * 3)


def test_a_channel_that_tells_nothing_leaves_everything_possible() -> None:
    channel = MatrixChannel(np.full((3, 4), 1 / 3), (2, 2), epsilon=1.0)
    bounds = LikelihoodRegions(channel, np.array([5.0, 2.0, 0.0]), 0.5).bounds
    assert bounds(np.eye(2)) == pytest.approx((0, 1), abs=1e-6)
    assert bounds(np.array([[0.2, 0.7], [0.4, 0.4]])) == pytest.approx((0.2, 0.7), abs=1e-6)


def test_scores_of_reports_that_are_no_sets_are_refused() -> None:
    with pytest.raises(InputError, match="scores needs reports that are sets, got StampChannel"):
        region_share(example(), np.ones((5, 5)), method="scores")


def test_maps_beyond_the_limits_are_refused() -> None:
    large = StampChannel(response_table("dam", 3.5, LIKELIHOOD_CELLS + 1))
    with pytest.raises(InputError, match="at most 64 cells a side, got 65: use method='boot"):
        LikelihoodRegions(large, np.ones(large.support.shape), 0.9)
    channel = StampChannel(response_table("dam", 3.5, LIKELIHOOD_CELLS))

    class Many:
        """Reports of more kinds than a matrix in memory can have rows."""

        input_shape = channel.input_shape
        support = np.ones(40_000, bool)
        epsilon = 1.0
        forward, adjoint = channel.forward, channel.adjoint

    with pytest.raises(InputError, match="kind of report"):
        LikelihoodRegions(Many(), np.ones(40_000), 0.9)


def test_the_docstrings_tell_up_to_which_side_auto_takes_which_method() -> None:
    side, wider = cells.INFORMATIVE_CELLS, AUTO_LIKELIHOOD_CELLS
    told = [" ".join(str(each.__doc__).split()) for each in (cell_intervals, region_share)]
    assert f"else fisher to {side} cells a side" in told[0]
    assert f"fisher to {side} cells a side, likelihood to {wider}" in told[1]
