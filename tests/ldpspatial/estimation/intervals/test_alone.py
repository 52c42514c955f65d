"""The choice between a field and the reports alone: when each is taken, and that it holds then."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import EM, Estimate, Field, StampChannel
from ldpspatial.errors import InputWarning
from ldpspatial.estimation import Robust, cell_intervals
from ldpspatial.estimation.intervals import alone, region_share
from ldpspatial.estimation.intervals.alone import (
    FEWEST,
    MOST_WIDTH,
    PARTS,
    _blocks,
    _least_width,
)
from ldpspatial.estimation.intervals.fisher import fisher
from tests.support.fields import reports

Array = NDArray[np.float64]
CELLS = 8
MANY = 10_000_000
WEST = np.zeros((CELLS, CELLS), bool)
WEST[:, : CELLS // 2] = True


def half_empty() -> Array:
    """Return a map of many heights, with nobody in the east."""
    rng = np.random.default_rng(4)
    density = rng.dirichlet(np.full(CELLS**2, 0.5)).reshape(CELLS, CELLS)
    density[:, CELLS // 2 :] = 0.0
    return np.asarray(density / density.sum())


@cache
def fitted(epsilon: float, n: int, seed: int = 1, where: str = "") -> Estimate:
    field = {"": Field(), "west": Field(support=WEST * 1.0), "east": Field(support=~WEST * 1.0)}
    channel = StampChannel(response_table("disk", epsilon, CELLS, radius=1))
    counts = reports(half_empty(), n, np.random.default_rng(seed), channel)
    return field[where].fit(channel, counts)


def test_where_reports_tell_little_the_field_is_taken_as_it_is() -> None:
    found = fitted(1.0, FEWEST)
    chosen, field = cell_intervals(found), cell_intervals(found, method="posterior")
    assert (chosen.method, chosen.moved) == ("posterior", False)
    np.testing.assert_array_equal(chosen.lower, field.lower)
    np.testing.assert_array_equal(chosen.upper, field.upper)
    blocks = _blocks((CELLS, CELLS))
    width = sum(upper - lower for lower, upper in map(field.bounds, blocks))
    assert width < MOST_WIDTH * _least_width(found, blocks, None)


def test_few_reports_take_the_field_however_much_they_tell() -> None:
    assert cell_intervals(fitted(6.0, FEWEST - 1)).method == "posterior"
    assert cell_intervals(fitted(6.0, FEWEST)).method == "fisher"


def test_the_rule_that_made_the_map_does_not_matter() -> None:
    found = fitted(6.0, MANY)
    quick = EM().fit(found.channel, found.counts)
    weights = np.linspace(0, 1, CELLS**2).reshape(CELLS, CELLS)
    assert region_share(quick, weights) == region_share(found, weights)


def test_cells_that_would_be_far_wider_stay_with_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fitted(6.0, MANY)
    field = cell_intervals(found, method="posterior").width.sum()
    times = cell_intervals(found, method="fisher").width.sum() / field
    monkeypatch.setattr(alone, "MOST_WIDENED", 1.01 * times)
    assert cell_intervals(found).method == "fisher"
    monkeypatch.setattr(alone, "MOST_WIDENED", 0.99 * times)
    assert cell_intervals(found).method == "posterior"


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_very_many_reports_are_asked_alone_at_every_level(level: float) -> None:
    found = fitted(6.0, MANY)
    assert found.samples is not None
    mean = found.samples.mean(0)
    chosen = cell_intervals(found, level)
    sure = cell_intervals(replace(found, density=mean), level, "fisher")
    assert (chosen.method, chosen.moved) == ("fisher", True)
    np.testing.assert_array_equal(chosen.lower, sure.lower)
    np.testing.assert_array_equal(chosen.upper, sure.upper)
    np.testing.assert_array_equal(chosen.density, mean)
    assert chosen.bounds(WEST.astype(float)) == sure.bounds(WEST.astype(float))


def test_shares_lie_within_intervals_of_the_reports_alone() -> None:
    found = fitted(6.0, MANY)
    chosen = cell_intervals(found, 0.01)  # so narrow that means lie outside of most
    outside = 0
    for block in _blocks((CELLS, CELLS)):
        share = chosen.region(block > 0)
        mean = float((block * chosen.density).sum())
        outside += not share.lower <= mean <= share.upper
        assert share.estimate == min(max(mean, share.lower), share.upper)
        assert region_share(found, block, 0.01) == share
    assert outside > 0


def test_blocks_are_quarters_and_sixteenths_and_widths_those_of_fisher() -> None:
    blocks = _blocks((CELLS, CELLS))
    assert [int(block.sum()) for block in blocks] == [16] * 4 + [4] * 16
    assert PARTS == (2, 4)
    found = fitted(6.0, MANY)
    intervals = fisher(found, 0.95)
    # Those in the east are cut at 0, and as wide as they are without a cut where they are not.
    west = blocks[[block[:, : CELLS // 2].any() for block in blocks]]
    exact = sum(upper - lower for lower, upper in map(intervals.bounds, west))
    least = _least_width(found, west, None)
    assert 0.98 * exact < least < 1.001 * exact


def test_cells_where_nobody_can_be_are_known() -> None:
    found = fitted(6.0, MANY, where="west")
    chosen = cell_intervals(found)
    assert chosen.method == "fisher"
    assert (chosen.upper[~WEST] == 0).all()
    assert chosen.region(WEST).lower == pytest.approx(1.0, abs=1e-6)
    # Fewer unknowns, so less is open than without.
    free = cell_intervals(fitted(6.0, MANY))
    assert chosen.width[WEST].sum() < free.width[WEST].sum()


def test_with_a_support_that_the_counts_speak_against_the_field_stays() -> None:
    with pytest.warns(InputWarning, match="support leaves out people"):
        found = fitted(6.0, MANY, where="east")
    assert cell_intervals(found).method == "posterior"


def test_where_forged_reports_were_taken_out_the_field_of_the_others_stays() -> None:
    honest = fitted(6.0, MANY)
    forged = honest.counts.copy()
    forged[CELLS // 2 + 1, CELLS - 1] += MANY / 20
    found = Robust().fit(honest.channel, forged)
    assert found.details.taken_out > 0.03
    chosen = cell_intervals(found)
    assert chosen.method == "posterior"
    assert chosen.region(~WEST).upper < 0.01  # where the forged ones say that 5 % are
    # Nothing is taken out of honest counts, which it is a field of as any other.
    assert cell_intervals(Robust().fit(honest.channel, honest.counts)).method == "fisher"


def test_intervals_hold_where_the_reports_are_asked_alone() -> None:
    """40 collections: a share of .95 held has standard errors of .007 by cell; alarm below .92.

    The field's own hold fewer: most cells of the east are empty, and it leaves somebody there.
    """
    truth = half_empty()
    held = []
    for seed in range(40):
        found = fitted(6.0, MANY, seed + 10)
        chosen = cell_intervals(found)
        assert chosen.method == "fisher"
        held.append((chosen.lower <= truth) & (truth <= chosen.upper))
    assert np.mean(held) > 0.92
