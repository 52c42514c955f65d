"""Intervals of an estimate: against the dense formula, at the edges, and bad input."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from client_sdk import ResponseTable, response_table
from ldpspatial import Estimate, StampChannel, estimate
from ldpspatial.errors import InputError
from ldpspatial.estimation import LikelihoodGain, cell_intervals
from ldpspatial.estimation.intervals import Interval
from ldpspatial.estimation.intervals.fisher import FISHER_CELLS
from tests.support import naive_channel

Array = NDArray[np.float64]
CELLS = 6
BLOCK = np.zeros((CELLS, CELLS), bool)
BLOCK[:2, :3] = True


@cache
def example(channel: StampChannel, n: int) -> Estimate:
    """Return the estimate of n reports of a random map, with samples that look like it."""
    rng = np.random.default_rng(1)
    cells = channel.table.cells
    density = rng.dirichlet(np.ones(cells**2)).reshape(cells, cells)
    law = channel.forward(density)[channel.support]
    found = estimate(channel, rng.multinomial(n, law / law.sum()), max_iterations=100)
    samples = rng.dirichlet(100 * found.density.ravel() + 1e-3, 60).reshape(-1, cells, cells)
    return dataclasses.replace(found, samples=samples)


@pytest.mark.parametrize(("mechanism", "epsilon", "radius"), [("dam", 3.5, None), ("huem", 2, 3)])
def test_fisher_is_the_dense_formula(mechanism: str, epsilon: float, radius: int | None) -> None:
    table = response_table(mechanism, epsilon, CELLS, radius)
    found = example(StampChannel(table), 2_000)
    dense = naive_channel.matrix(table)
    counts = naive_channel.gathered(table, found.counts)
    f, n = found.density.ravel(), counts.sum()
    weights = np.diag(1 / (dense @ f))
    inverse = np.linalg.inv(dense.T @ weights @ dense)
    unbiased = inverse @ dense.T @ weights @ counts / n
    covariance = (inverse - np.outer(f, f)) / n
    z = norm.ppf(0.95)
    intervals = cell_intervals(found, 0.9, "fisher")
    least = (z / n) ** 2
    reach = z * np.sqrt(np.diag(covariance) + least)
    lower = np.clip(unbiased - reach, 0, 1).reshape(CELLS, CELLS)
    upper = np.clip(np.maximum(unbiased, 0) + reach, 0, 1).reshape(CELLS, CELLS)
    np.testing.assert_allclose(intervals.lower, lower, atol=1e-9)
    np.testing.assert_allclose(intervals.upper, upper, atol=1e-9)
    np.testing.assert_allclose(intervals.width, upper - lower, atol=1e-9)
    chosen = BLOCK.ravel().astype(float)
    share = intervals.region(BLOCK)
    error = z * np.sqrt(chosen @ covariance @ chosen + least)
    assert share.estimate == pytest.approx(f[BLOCK.ravel()].sum())
    assert share.lower == pytest.approx(max(chosen @ unbiased - error, 0), abs=1e-9)
    assert share.upper == pytest.approx(chosen @ unbiased + error, abs=1e-9)
    assert unbiased.min() < 0  # the rule for negative estimates was at work


def test_intervals_of_randomised_response_are_the_textbook_ones() -> None:
    # b = 0: each cell's unbiased estimate is (c / n - q) / (p - q), its variance binomial, so
    # that (z / n)^2 changes the fourth digit.
    channel = StampChannel(response_table("dam", 4.0, 3, 0))
    counts = np.array([[900, 700, 800], [500, 1000, 900], [600, 800, 900]])
    found = estimate(channel, counts, LikelihoodGain(1e-9))
    p = np.exp(4) / (np.exp(4) + 8)
    q, n = (1 - p) / 8, counts.sum()
    share = counts / n
    z = norm.ppf(0.975)
    reach = z * np.sqrt(share * (1 - share) / n / (p - q) ** 2 + (z / n) ** 2)
    intervals = cell_intervals(found)
    np.testing.assert_allclose(intervals.lower, (share - q) / (p - q) - reach, atol=1e-6)
    np.testing.assert_allclose(intervals.upper, (share - q) / (p - q) + reach, atol=1e-6)


def both(found: Estimate, level: float = 0.95) -> list[tuple[Array, Array, Interval, Interval]]:
    """Return lower, upper, all cells and no cell for both methods."""
    shape = found.density.shape
    results = []
    for method in ("fisher", "posterior"):
        intervals = cell_intervals(found, level, method)
        assert intervals.method == method
        assert intervals.level == level
        everywhere, nowhere = (intervals.region(np.full(shape, full)) for full in (True, False))
        results.append((intervals.lower, intervals.upper, everywhere, nowhere))
    return results


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.5, 10.0])
@pytest.mark.parametrize("cells", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 30, 10**12])
def test_intervals_lie_in_0_to_1_and_everyone_is_somewhere(
    epsilon: float, cells: int, n: int
) -> None:
    channel = StampChannel(response_table("dam", epsilon, cells))
    found = example(channel, n)
    for level in (1e-9, 0.95, 1 - 1e-16):
        for lower, upper, everywhere, nowhere in both(found, level):
            assert (lower >= 0).all()
            assert (lower <= upper).all()
            assert (upper <= 1).all()
            assert everywhere.estimate == pytest.approx(1)
            assert everywhere.lower == pytest.approx(1, abs=1e-4)
            assert everywhere.upper == pytest.approx(1, abs=1e-4)
            assert (nowhere.estimate, nowhere.lower, nowhere.upper) == (0, 0, 0)
    if cells == 1:
        assert lower.item() == pytest.approx(1)
        assert upper.item() == pytest.approx(1)


@pytest.mark.parametrize("epsilon", [1.4, 3.5])
def test_a_single_report_leaves_every_cell_uncertain(epsilon: float) -> None:
    channel = StampChannel(response_table("dam", epsilon, 5))
    counts = np.zeros(channel.output_shape)
    counts[(channel.output_shape[0] // 2,) * 2] = 1
    intervals = cell_intervals(estimate(channel, counts, "em"))
    assert intervals.width.min() > 0.5


def test_a_share_of_which_no_report_was_seen_may_be_as_large_as_wilson_says() -> None:
    channel = StampChannel(response_table("dam", 12.0, 3, 0))
    counts = np.zeros((3, 3))
    counts[0, 0] = 50
    intervals = cell_intervals(estimate(channel, counts, "em"))
    assert intervals.upper[2, 2] == pytest.approx(norm.ppf(0.975) ** 2 / 50, rel=0.01)
    corner = np.zeros((3, 3), bool)
    corner[2] = True
    assert intervals.region(corner).upper == pytest.approx(intervals.upper[2, 2], rel=0.01)
    assert intervals.lower[0, 0] == pytest.approx(1 - norm.ppf(0.975) ** 2 / 50, rel=0.01)


def test_wider_levels_contain_narrower_ones() -> None:
    channel = StampChannel(response_table("dam", 3.5, CELLS))
    found = example(channel, 3_000)
    for method in ("fisher", "posterior"):
        narrow, wide = (cell_intervals(found, level, method) for level in (0.5, 0.99))
        assert (wide.lower <= narrow.lower).all()
        assert (wide.upper >= narrow.upper).all()


def test_fisher_takes_64_cells_and_no_more() -> None:
    channel = StampChannel(response_table("dam", 3.5, FISHER_CELLS + 1, 0))
    found = estimate(channel, channel.support.astype(int), max_iterations=1)
    with pytest.raises(InputError, match="method fisher takes at most 64 cells a side, got 65"):
        cell_intervals(found, method="fisher")


@pytest.mark.parametrize(
    "table",
    [
        ResponseTable("says nothing", 1.0, 3, 4, ((4,),)),
        response_table("huem", 1e-6, 5),
        response_table("huem", 0.01, 15),
    ],
    ids=["all inputs alike", "tiny epsilon", "small epsilon"],
)
def test_counts_that_do_not_determine_every_cell_are_refused(table: ResponseTable) -> None:
    channel = StampChannel(table)
    found = estimate(channel, channel.support.astype(int), "em")
    with pytest.raises(InputError, match="the counts do not determine every cell"):
        cell_intervals(found, method="fisher")
    assert cell_intervals(found).method == "posterior"


FOUND = estimate(StampChannel(response_table("dam", 3.5, 3, 0)), np.ones((3, 3), int), "em")
RNG = np.random.default_rng(1)


def test_a_region_may_be_a_list() -> None:
    mask = [[True, False, False]] * 3
    region = cell_intervals(FOUND).region(mask)
    assert region == cell_intervals(FOUND).region(np.array(mask))
    assert dataclasses.astuple(region)[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("n", [1, 40])
def test_the_mean_of_samples_lies_in_its_interval(n: int) -> None:
    """Nearly all samples have nobody in most cells, as they hold whole users."""
    channel = StampChannel(response_table("disk", 2.0, 8, squared_radius=4))
    counts = np.zeros(channel.support.shape)
    counts[3, 4] = n
    found = cell_intervals(estimate(channel, counts), method="posterior")
    assert (found.lower <= found.density).all()
    assert (found.density <= found.upper).all()
