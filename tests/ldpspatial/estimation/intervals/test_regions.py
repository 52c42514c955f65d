"""Intervals of regions: which method answers, what they cover, edges, bad input."""

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom

from client_sdk import response_table
from ldpspatial import Estimate, Field, StampChannel, estimate
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.channels.reach import disk_radius
from ldpspatial.errors import InputError
from ldpspatial.estimation import cell_intervals, region_share
from ldpspatial.estimation.intervals import share_intervals
from ldpspatial.estimation.intervals.patches import RADIUS, Patches
from ldpspatial.estimation.intervals.posterior import CELL_UP, MANY_UP, STRETCH, read_at
from ldpspatial.estimation.intervals.regions import COUNT_METHODS

Array = NDArray[np.float64]
FALSE_ALARM = 1e-6


def counted(channel: StampChannel, density: Array, n: int, rng: np.random.Generator) -> Array:
    """Reports of n people of a density."""
    counts = np.zeros(channel.support.shape)
    law = channel.forward(density)[channel.support]
    counts[channel.support] = rng.multinomial(n, law / law.sum())
    return counts


def example(cells: int = 5, n: int = 3_000, epsilon: float = 3.5) -> Estimate:
    channel = StampChannel(response_table("dam", epsilon, cells))
    rng = np.random.default_rng(1)
    density = rng.dirichlet(np.full(cells**2, 0.3)).reshape(cells, cells)
    return estimate(channel, counted(channel, density, n, rng), "em")


def test_an_estimate_without_samples_is_answered_by_a_field_of_its_counts() -> None:
    found = example(epsilon=1.0)
    sampled = Field().fit(found.channel, found.counts)
    weights = np.linspace(0, 1, 25).reshape(5, 5)
    for method in ("auto", "posterior"):
        share = region_share(found, weights, method=method)
        assert share == region_share(sampled, weights, method=method)
    assert share_intervals(found, 0.95, "auto").method == "posterior"
    assert cell_intervals(found).method == "fisher"
    of_field = (cell_intervals(of, method="posterior").upper for of in (found, sampled))
    np.testing.assert_array_equal(*of_field)


def test_the_share_is_the_mean_over_the_samples() -> None:
    found = example()
    samples = np.random.default_rng(2).dirichlet(np.ones(25), 50).reshape(-1, 5, 5)
    sampled = dataclasses.replace(found, samples=samples)
    mask = np.zeros((5, 5))
    mask[1:3, 2:] = 1
    share = region_share(sampled, mask, method="posterior")
    assert share.estimate == pytest.approx((samples * mask).sum((1, 2)).mean())


def test_quantiles_are_stretched_and_patches_added() -> None:
    """More upwards, and most for a single cell."""
    rng = np.random.default_rng(3)
    samples = rng.dirichlet(np.full(144, 30.0), 400).reshape(-1, 12, 12)
    found = dataclasses.replace(example(12, epsilon=0.5), samples=samples)
    mean = samples.mean(0)
    patches = Patches(mean, RADIUS * disk_radius(found.channel))
    assert patches.radius > 1
    single = np.zeros((12, 12))
    single[2, 3] = 1
    half = np.zeros((12, 12))
    half[:6] = 1
    for weights, cells in ((single, 1), (half, 72)):
        shares = (samples * weights).sum((1, 2))
        low, high = np.quantile(shares, (0.025, 0.975))
        share = shares.mean()
        open_ = 1.96 * np.sqrt(patches.variance(weights))
        up = MANY_UP + (CELL_UP - MANY_UP) / cells
        lower = share - np.hypot(STRETCH * (share - low), open_)
        interval = region_share(found, weights)
        assert interval.lower == pytest.approx(max(lower, 0), rel=0.01)
        upper = share + np.hypot(STRETCH * (high - share), up * open_)
        assert interval.upper == pytest.approx(upper, rel=0.01)
    uncertainty = cell_intervals(found)
    assert uncertainty.upper[2, 3] == pytest.approx(region_share(found, single).upper)
    assert uncertainty.lower[2, 3] == pytest.approx(region_share(found, single).lower)


def test_what_is_known_of_a_region_is_known_of_the_rest() -> None:
    samples = np.random.default_rng(3).dirichlet(np.full(25, 2.0), 200).reshape(-1, 5, 5)
    found = dataclasses.replace(example(), samples=samples)
    rng = np.random.default_rng(4)
    for held in (1, 3, 12, 20, 24):
        mask = np.zeros(25, bool)
        mask[rng.choice(25, held, replace=False)] = True
        share = region_share(found, mask.reshape(5, 5))
        rest = region_share(found, ~mask.reshape(5, 5))
        assert (rest.lower, rest.upper) == pytest.approx((1 - share.upper, 1 - share.lower))


@pytest.mark.parametrize("lumps", ["smooth", "spots"])
def test_posterior_intervals_cover_and_are_narrower_than_fisher(lumps: str) -> None:
    # At least .9 of the blocks of a level of .95: 10 of 20. Intervals that hold 9 do not pass.
    cells, n, runs = 6, 4_000, 20
    channel = StampChannel(response_table("dam", 2.5, cells))
    truth = np.full((cells, cells), 1e-3)
    if lumps == "smooth":
        x = (np.arange(cells) + 0.5) / cells
        truth = np.exp(-4 * ((x[:, None] - 0.4) ** 2 + (x - 0.5) ** 2))
    else:
        truth[1, 1], truth[4, 2], truth[2, 4] = 0.5, 0.3, 0.2
    truth /= truth.sum()
    rng = np.random.default_rng(5)
    block = np.zeros((cells, cells))
    block[1:4, 1:4] = 1
    share = float((block * truth).sum())
    inside = halves = 0
    widths = np.zeros(2)
    for _ in range(runs):
        found = Field().fit(channel, counted(channel, truth, n, rng))
        interval = region_share(found, block, method="posterior")
        inside += interval.lower <= share <= interval.upper
        halves += 2 * abs(share - interval.estimate) <= (interval.upper - interval.lower) / 2
        wide = region_share(found, block, method="fisher")
        widths += interval.upper - interval.lower, wide.upper - wide.lower
    assert binom.cdf(inside, runs, 0.9) > FALSE_ALARM
    assert binom.cdf(round(0.45 * runs), runs, 0.9) < FALSE_ALARM
    assert halves < inside
    assert widths[0] < widths[1]


def test_an_estimate_that_the_counts_reject_is_left_outside_of_fisher() -> None:
    found = example(n=100_000)
    flat = dataclasses.replace(found, density=np.full((5, 5), 1 / 25))
    weights = np.zeros((5, 5))
    weights.flat[found.density.argmax()] = 1
    share = region_share(flat, weights, method="fisher")
    assert share.estimate == 1 / 25
    assert share.lower > share.estimate


@pytest.mark.parametrize("method", COUNT_METHODS)
def test_nowhere_and_everywhere_are_certain(method: str) -> None:
    found = Field().fit(example().channel, example().counts)
    for level in (0.1, 1 - 1e-16):
        nowhere = region_share(found, np.zeros((5, 5)), level, method)
        assert (nowhere.estimate, nowhere.lower, nowhere.upper) == (0, 0, 0)
        everywhere = region_share(found, np.ones((5, 5), bool), level, method)
        assert (everywhere.lower, everywhere.upper) == pytest.approx((1, 1), abs=1e-6)


def test_of_a_quarter_of_a_single_cell_next_to_nothing_is_known() -> None:
    found = example(cells=1)
    for method in COUNT_METHODS:
        share = region_share(found, [[0.25]], 0.95, method)
        assert share.estimate == 0.25
        assert share.lower == 0
        assert share.upper == pytest.approx(1)


def test_a_channel_that_tells_nothing_leaves_everything_possible() -> None:
    flat = MatrixChannel(np.full((3, 4), 1 / 3), (2, 2), epsilon=1.0)
    found = estimate(flat, np.array([5.0, 2.0, 0.0]), "em")
    share = region_share(found, np.eye(2))
    assert share.lower < 0.1
    assert share.upper > 0.9


def test_scores_of_reports_that_are_no_sets_are_refused() -> None:
    with pytest.raises(InputError, match="scores needs reports that are sets, got StampChannel"):
        region_share(example(), np.ones((5, 5)), method="scores")


def test_beyond_95_quantiles_are_read_there_and_drawn_out_as_a_normal_law() -> None:
    assert read_at(0.9) == (0.9, 1.0)
    assert read_at(0.99) == (0.95, pytest.approx(ndtri(0.995) / ndtri(0.975)))
