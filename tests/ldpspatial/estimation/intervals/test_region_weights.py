"""Intervals of regions of any weights: what they can hold, whole cells, everywhere, underflow."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from client_sdk import Grid, response_table
from ldpspatial import Estimate, StampChannel, estimate
from ldpspatial.errors import InputError
from ldpspatial.estimation import LikelihoodGain, cell_intervals, region_share
from ldpspatial.estimation.intervals.regions import COUNT_METHODS, share_intervals
from ldpspatial.places.regions import rectangle
from ldpspatial.release.local import PlanarLaplace

Array = NDArray[np.float64]
CELLS = 5


def example(n: int = 200, epsilon: float = 1.0) -> Estimate:
    """Return the estimate of n reports of a random map."""
    channel = StampChannel(response_table("dam", epsilon, CELLS))
    rng = np.random.default_rng(1)
    law = channel.forward(rng.dirichlet(np.ones(25)).reshape(5, 5))[channel.support]
    counts = np.zeros(channel.support.shape)
    counts[channel.support] = rng.multinomial(n, law / law.sum())
    return estimate(channel, counts)


FOUND = example()
SAMPLED = replace(
    FOUND, samples=np.random.default_rng(2).dirichlet(np.ones(25), 40).reshape(-1, 5, 5)
)
INTERVALS = {
    method: share_intervals(
        SAMPLED if method == "posterior" else FOUND, 0.95, method, np.random.default_rng(1)
    )
    for method in COUNT_METHODS
}


def test_a_part_of_a_cell_holds_no_more_than_all_people_times_its_part() -> None:
    part = rectangle(Grid.plane(0, 0, 5, 5), 1.4, 1.4, 1.5, 1.5)
    assert part.max() == pytest.approx(0.01)
    for method, intervals in INTERVALS.items():
        share = intervals.of(part)
        assert 0 <= share.lower <= share.upper <= part.max(), method


@pytest.mark.parametrize("method", COUNT_METHODS)
@given(weights=st.lists(st.floats(0, 1), min_size=25, max_size=25))
@settings(max_examples=30, deadline=None)
def test_a_share_and_its_interval_lie_between_the_least_and_the_largest_weight(
    method: str, weights: list[float]
) -> None:
    share = INTERVALS[method].of(np.reshape(weights, (5, 5)))
    assert min(weights) <= share.lower <= share.upper <= max(weights)
    assert min(weights) <= share.estimate <= max(weights)


@pytest.mark.parametrize("method", ["fisher", "bootstrap"])
def test_the_interval_goes_with_the_weights(method: str) -> None:
    # Half of everybody and a 64th of a region: exact in binary.
    region = np.zeros((5, 5))
    region[1:4, 2:] = 1
    whole, part = INTERVALS[method].of(region), INTERVALS[method].of(0.5 + region / 64)
    assert part.estimate == pytest.approx(0.5 + whole.estimate / 64)
    assert part.lower == pytest.approx(0.5 + whole.lower / 64, rel=1e-14)
    assert part.upper == pytest.approx(0.5 + whole.upper / 64, rel=1e-14)


@pytest.mark.parametrize("method", ["fisher", "bootstrap"])
def test_whole_cells_have_the_textbook_interval(method: str) -> None:
    """A centre -+ z standard errors at each level, cut to shares."""
    found = example(5_000, 3.5)
    narrow, wide = (
        cell_intervals(found, level, method, np.random.default_rng(1)) for level in (0.5, 0.9)
    )
    shares = share_intervals(found, 0.9, method, np.random.default_rng(1))
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


@pytest.mark.parametrize("method", COUNT_METHODS)
def test_everybody_is_everywhere_exactly(method: str) -> None:
    rng = np.random.default_rng(4)
    for share in (
        INTERVALS[method].of(np.ones((5, 5))),
        INTERVALS[method].of(np.full((5, 5), 0.3)),
    ):
        assert share.estimate == share.lower == share.upper
        assert share.upper in (1.0, 0.3)
    if method in ("fisher", "bootstrap"):
        region = cell_intervals(FOUND, 0.9, method, rng).region(np.ones((5, 5), bool))
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
    auto = share_intervals(found, 0.95, "auto")
    assert auto.method == "likelihood"
    share = auto.of(corner)
    assert 0 < share.lower < 1 / 3 < share.upper < 1
