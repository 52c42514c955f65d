"""Intervals of regions of any weights: what they can hold, whole cells, everywhere, underflow."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from client_sdk import response_table
from ldpspatial import Estimate, StampChannel, estimate
from ldpspatial.errors import InputError
from ldpspatial.estimation import LikelihoodGain, cell_intervals, region_share
from ldpspatial.estimation.intervals.regions import share_intervals
from ldpspatial.release.local import PlanarLaplace

Array = NDArray[np.float64]
CELLS = 5


def example(n: int = 200, epsilon: float = 1.0, radius: int | None = None) -> Estimate:
    """Return the estimate of n reports of a random map."""
    channel = StampChannel(response_table("dam", epsilon, CELLS, radius))
    rng = np.random.default_rng(1)
    law = channel.forward(rng.dirichlet(np.ones(25)).reshape(5, 5))[channel.support]
    counts = np.zeros(channel.support.shape)
    counts[channel.support] = rng.multinomial(n, law / law.sum())
    return estimate(channel, counts, "em")


FOUND = example()
APART = example(radius=0)  # reports tell neighbours apart: nothing is open between cells
SAMPLED = replace(
    FOUND, samples=np.random.default_rng(2).dirichlet(np.ones(25), 40).reshape(-1, 5, 5)
)
METHODS = ("posterior", "fisher")
INTERVALS = {method: share_intervals(SAMPLED, 0.95, method) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
@given(weights=st.lists(st.booleans(), min_size=25, max_size=25))
@settings(max_examples=30)
def test_a_region_of_whole_cells_has_the_interval_of_its_cells(
    method: str, weights: list[bool]
) -> None:
    mask = np.reshape(weights, (5, 5))
    assert INTERVALS[method].of(mask) == cell_intervals(SAMPLED, 0.95, method).region(mask)


@pytest.mark.parametrize("method", METHODS)
@given(weights=st.lists(st.floats(0, 1), min_size=25, max_size=25))
@settings(max_examples=30)
def test_a_share_lies_in_its_interval_or_beside_it_and_both_in_0_to_1(
    method: str, weights: list[float]
) -> None:
    share = INTERVALS[method].of(np.reshape(weights, (5, 5)))
    assert 0 <= share.lower <= share.upper <= 1
    assert min(weights) <= share.estimate <= max(weights)
    if method == "posterior":
        assert share.lower <= share.estimate <= share.upper


def test_what_is_within_a_cut_cell_widens_the_interval_by_its_variance() -> None:
    """Half of a cell with the share f adds f^2 / 12 to the variance, and a whole one nothing."""
    crowd = np.full((5, 5), 0.5 / 24)
    crowd[2, 2] = 0.5
    known = replace(APART, density=crowd, samples=np.stack([crowd, crowd]))
    half = np.zeros((5, 5))
    half[0] = 1  # so that the region is larger than what it cuts
    half[2, 2] = 0.5
    row = 5 * 0.5 / 24
    share = share_intervals(known, 0.8, "posterior").of(half)
    reach = norm.isf(0.1) * 0.5 / np.sqrt(12)
    assert reach < 0.25
    assert share.estimate == pytest.approx(row + 0.25)
    ends = (row + 0.25 - reach, row + 0.25 + reach)
    assert (share.lower, share.upper) == pytest.approx(ends)
    whole = share_intervals(known, 0.8, "posterior").of(half > 0)
    assert (whole.lower, whole.estimate, whole.upper) == pytest.approx((row + 0.5,) * 3)


@pytest.mark.parametrize("side", [0.1, 0.5, 0.7, 1.0, 1.6, 2.3])
def test_a_small_region_may_hold_all_people_of_the_cells_that_it_touches(side: float) -> None:
    """Of a square around the corner of four cells, as large as it is small; and all but it."""
    crowd = np.full((5, 5), 0.6 / 21)
    crowd[1:3, 1:3] = 0.1
    known = replace(APART, density=crowd, samples=np.stack([crowd, crowd]))
    along = np.clip(side / 2 - np.array([1, 0, 0, 1, 2]), 0, 1)
    region = np.outer(along, along)
    intervals = share_intervals(known, 0.95, "posterior")
    found = intervals.of(region)
    whole, touched = crowd[region == 1].sum(), crowd[region > 0].sum()
    reach = norm.isf(0.025) * np.sqrt((region * (1 - region) * crowd**2).sum() / 3)
    lower, upper = max(found.estimate - reach, 0), found.estimate + reach
    way = min(0.5 / side**2, 1) ** 2 if side**2 < 5 else 0.0
    assert found.upper == pytest.approx(upper + way * max(touched - upper, 0))
    assert found.lower == pytest.approx(lower - way * max(lower - whole, 0))
    rest = intervals.of(1 - region)
    assert (rest.lower, rest.upper) == pytest.approx((1 - found.upper, 1 - found.lower))


@pytest.mark.parametrize("rounded", [0.0, 1e-15, 1e-12, 1e-7, 9e-4])
def test_what_files_round_off_is_not_left_out(rounded: float) -> None:
    """Everybody but for the rounding of an edge are all people: the peak may not be out."""
    crowd = np.full((5, 5), 0.4 / 24)
    crowd[0, 2] = 0.6
    known = replace(APART, density=crowd, samples=np.stack([crowd, crowd]))
    intervals = share_intervals(known, 0.95, "posterior")
    region = np.ones((5, 5))
    region[0] -= rounded
    found = intervals.of(region)
    assert found.lower >= 1 - 0.65 * 2 * np.sqrt(rounded)
    assert found.upper == 1
    row = np.zeros((5, 5))
    row[0] = 1 - rounded
    assert intervals.of(row).lower >= 0.6 + 4 * 0.4 / 24 - 2 * np.sqrt(rounded) - 1e-7


def test_weights_that_area_does_not_give_widen_the_interval_by_the_square_of_the_move() -> None:
    """A half of a cell that holds .8 of its people: (1 / 4 + .3^2) / 3 of the square of its share.

    The interval surrounds .8, and area alone gives what it gave.
    """
    crowd = np.full((5, 5), 0.8 / 24)
    crowd[2, 2] = 0.2
    known = replace(APART, density=crowd, samples=np.stack([crowd, crowd]))
    area = np.zeros((5, 5))
    area[2, 2] = 0.5
    weights = 1.6 * area
    weights[0] = 1  # so that nothing is cut at 0
    area[0] = 1
    middle = 0.2 * 0.8 + 5 * 0.8 / 24
    intervals = share_intervals(known, 0.9, "posterior")
    share = intervals.of(weights, area)
    reach = norm.isf(0.05) * 0.2 * np.sqrt((0.25 + 0.09) / 3)
    assert share.estimate == pytest.approx(middle)
    assert (share.lower, share.upper) == pytest.approx((middle - reach, middle + reach))
    assert intervals.of(area, area) == intervals.of(area)
    with pytest.raises(InputError, match="region_weights must be an array of numbers of shape"):
        intervals.of(weights, np.ones((4, 4)))


def test_whole_cells_have_the_textbook_interval() -> None:
    """A centre -+ z standard errors at each level, cut to shares."""
    found = example(5_000, 3.5)
    narrow, wide = (cell_intervals(found, level, "fisher") for level in (0.5, 0.9))
    shares = share_intervals(found, 0.9, "fisher")
    ratio = norm.isf(0.05) / norm.isf(0.25)
    rng = np.random.default_rng(2)
    whole = 0
    for _ in range(50):
        mask = rng.random((5, 5)) < rng.random()
        if mask.all() or not mask.any():
            continue
        inner, outer = narrow.region(mask), wide.region(mask)
        assert shares.of(mask) == outer
        if outer.lower > 0 and outer.upper < 1:
            whole += 1
            assert inner.lower + inner.upper == pytest.approx(outer.lower + outer.upper)
            assert outer.upper - outer.lower == pytest.approx(
                ratio * (inner.upper - inner.lower), rel=1e-3
            )
    assert whole > 10  # most are not cut


@pytest.mark.parametrize("method", METHODS)
def test_everybody_is_everywhere_exactly(method: str) -> None:
    share = INTERVALS[method].of(np.ones((5, 5)))
    assert share.estimate == share.lower == share.upper == 1
    region = cell_intervals(SAMPLED, 0.9, method).region(np.ones((5, 5), bool))
    assert (region.estimate, region.lower, region.upper) == (1, 1, 1)


@pytest.mark.parametrize("epsilon", [700.0, 1000.0])
def test_fisher_is_refused_where_a_prediction_underflows(epsilon: float) -> None:
    channel = PlanarLaplace().channel(CELLS, epsilon)
    counts = np.zeros(channel.support.shape)
    counts.flat[:3] = 1  # nobody near the other end of the map
    found = estimate(channel, counts, LikelihoodGain(1e-3))
    corner = np.zeros((5, 5))
    corner[0, 0] = 1
    with pytest.raises(InputError, match="the counts do not determine every cell"):
        region_share(found, corner, method="fisher")
