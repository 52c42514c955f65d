"""The choice between a field and the reports alone: when each is taken, and that it holds then."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import EM, Estimate, Field, StampChannel
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.errors import InputError, InputWarning
from ldpspatial.estimation import Robust, cell_intervals
from ldpspatial.estimation.intervals import alone, region_share, share_intervals
from ldpspatial.estimation.intervals.alone import (
    PART,
    PARTS,
    _blocks,
    _cells_alone,
    _cells_out_of_question,
    _look,
)
from ldpspatial.estimation.intervals.doubt import CONTRADICTED, divisions, telling
from ldpspatial.estimation.intervals.fisher import fisher, reports_alone
from ldpspatial.estimation.intervals.posterior import posterior
from tests.support.fields import reports

Array = NDArray[np.float64]
CELLS = 8
MANY = 10_000_000
WEST = np.zeros((CELLS, CELLS), bool)
WEST[:, : CELLS // 2] = True


def centred(found: Estimate) -> Estimate:
    """Return an estimate of which the density is the mean of the samples."""
    assert found.samples is not None
    return replace(found, density=found.samples.mean(0))


def half_empty() -> Array:
    """Return a map of many heights, with nobody in the east."""
    rng = np.random.default_rng(4)
    density = rng.dirichlet(np.full(CELLS**2, 0.5)).reshape(CELLS, CELLS)
    density[:, CELLS // 2 :] = 0.0
    return np.asarray(density / density.sum())


def one_hill() -> Array:
    """Return a smooth map."""
    y, x = np.indices((CELLS, CELLS)) / CELLS
    density = np.exp(-((x - 0.4) ** 2 + (y - 0.6) ** 2) / 0.05)
    return np.asarray(density / density.sum())


def few_places() -> Array:
    """Return a map of 15 x 15 cells unlike any city: .4 in the middle, the rest in five others."""
    density = np.zeros((15, 15))
    density.flat[np.random.default_rng(0).choice(225, 5, replace=False)] = 0.12
    density[7, 7] += 0.4
    return density


@cache
def told_of_few_places(seed: int) -> Estimate:
    channel = StampChannel(response_table("disk", 6.0, 15, radius=0))
    return Field().fit(channel, reports(few_places(), MANY, np.random.default_rng(seed), channel))


@cache
def told_of_a_hill(n: int) -> Estimate:
    channel = StampChannel(response_table("disk", 3.0, CELLS, radius=1))
    return Field().fit(channel, reports(one_hill(), n, np.random.default_rng(1), channel))


@cache
def fitted(epsilon: float, n: int, seed: int = 1, where: str = "") -> Estimate:
    field = {"": Field(), "west": Field(support=WEST * 1.0), "east": Field(support=~WEST * 1.0)}
    channel = StampChannel(response_table("disk", epsilon, CELLS, radius=1))
    counts = reports(half_empty(), n, np.random.default_rng(seed), channel)
    return field[where].fit(channel, counts)


def test_where_reports_tell_little_the_field_is_taken_as_it_is() -> None:
    found = fitted(1.0, 100_000)
    chosen, field = cell_intervals(found), cell_intervals(found, method="posterior")
    assert (chosen.method, chosen.moved) == ("posterior", False)
    np.testing.assert_array_equal(chosen.lower, field.lower)
    np.testing.assert_array_equal(chosen.upper, field.upper)
    look = _look(centred(found), None)
    assert not look.contradicted
    sure = posterior(found, 0.95, crowded=False)
    assert sum(map(sure.width_of, _blocks((CELLS, CELLS)))) < PART * look.blocks


def test_one_report_more_changes_no_method() -> None:
    """What reports tell decides, and not how many they are."""
    for n in (20_000, 999_999, 1_000_000):
        assert cell_intervals(fitted(6.0, n)).method == "fisher"


def test_regions_are_asked_of_the_reports_where_cells_stay_with_the_field(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alone, "MOST_WIDENED", 1.75)  # those of cells are 1.83 times as wide
    found = told_of_a_hill(100_000)
    level = 0.8  # widths are held against each other at .95
    chosen, field = (cell_intervals(found, level, method) for method in ("auto", "posterior"))
    mean = centred(found)
    alone_ = cell_intervals(mean, level, "fisher")
    sure = posterior(found, 0.95, crowded=False), cell_intervals(mean, method="fisher")
    assert (chosen.method, chosen.of_regions) == ("posterior", "posterior or fisher")
    assert chosen.moved
    assert share_intervals(found, level, "auto").method == "posterior or fisher"
    np.testing.assert_array_equal(chosen.lower, field.lower)
    np.testing.assert_array_equal(chosen.upper, field.upper)
    rng = np.random.default_rng(3)
    by = []
    for _ in range(200):
        weights = (rng.random((CELLS, CELLS)) < rng.random()).astype(float)
        one = min((weights > 0).sum(), (weights < 1).sum()) == 1  # as among the cells
        part = sure[0].width_of(weights) / max(sure[1].width_of(weights), 1e-300)
        by.append(not one and part >= PART)
        taken = alone_ if by[-1] else field
        assert chosen.bounds(weights) == pytest.approx(taken.bounds(weights), abs=1e-12)
        assert chosen.bounds(weights / 2)[1] == pytest.approx(taken.bounds(weights)[1] / 2)
        assert chosen.method_of(weights / 2) == chosen.method_of(weights) == taken.method
    assert 5 < sum(by) < 195  # either way is taken of some
    for cell in range(0, CELLS**2, 7):  # and the complement of a cell
        mask = np.arange(CELLS**2).reshape(CELLS, CELLS) == cell
        assert chosen.region(mask).upper == pytest.approx(chosen.upper[mask][0], abs=1e-12)
        assert chosen.region(~mask).lower == pytest.approx(1 - chosen.upper[mask][0], abs=1e-12)
        assert chosen.method_of(mask) == chosen.method_of(np.ones_like(mask)) == "posterior"


def test_a_field_that_the_reports_contradict_is_left_for_them() -> None:
    """A field is narrow and wrong where nearly all cells are empty, and few people are elsewhere.

    40 rectangles on each of five runs hold alike, so the least share of .95 that is no alarm, .85,
    is three standard errors of about .03 below.
    """
    truth = few_places()
    rng = np.random.default_rng(8)
    ends = np.sort(rng.integers(0, 16, (40, 2, 2)), axis=2)
    rows, cols = np.indices((15, 15))
    regions = [
        ((rows >= top) & (rows < bottom) & (cols >= left) & (cols < right)).astype(float)
        for (top, bottom), (left, right) in ends
    ]
    held: dict[str, list[bool]] = {"auto": [], "posterior": []}
    for seed in range(5):
        found = told_of_few_places(seed)
        assert _look(centred(found), None).contradicted
        for method, holds in held.items():
            chosen = cell_intervals(found, method=method)
            for weights in regions:
                lower, upper = chosen.bounds(weights)
                holds.append(lower - 1e-12 <= (weights * truth).sum() <= upper + 1e-12)
    assert np.mean(held["auto"]) > 0.85
    assert np.mean(held["posterior"]) < 0.75


def test_what_reports_tell_of_sets_is_what_the_inverse_says() -> None:
    mean = centred(fitted(6.0, MANY))
    sets, _ = divisions(mean.density, None)
    told = telling(mean, sets, None)
    exact = fisher(mean, 0.95)
    for weights, beyond, error in zip(sets, told.beyond, told.errors, strict=True):
        low, high = exact.bounds(weights)
        if low > 0:  # else it is cut
            assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.01)
            share = float((weights * mean.density).sum())
            assert (high + low) / 2 - share == pytest.approx(beyond, abs=0.02 * error)
    assert told.beyond.sum() == pytest.approx(0, abs=0.02 * told.errors.max())


def test_divisions_have_each_cell_once_from_few_people_to_many() -> None:
    density = half_empty()
    for sets in divisions(density, None):
        np.testing.assert_array_equal(sets.sum(0), np.ones((CELLS, CELLS)))
        means = [(each * density).sum() / each.sum() for each in sets]
        assert means == sorted(means)
    by_cells, by_people = divisions(density, None)
    assert [int(each.sum()) for each in by_cells] == [CELLS] * 8
    shares = [(each * density).sum() for each in by_people]
    assert shares[0] < 1e-4
    assert shares[-1] > 0.4
    for sets in divisions(density, WEST):
        np.testing.assert_array_equal(sets.sum(0), WEST * 1.0)
    assert [len(sets) for sets in divisions(np.full((1, 3), 1 / 3), None)] == [3, 2]


def test_a_field_that_is_right_is_contradicted_as_seldom_as_is_said() -> None:
    """Counts of the field's own map: of 200 at most one is contradicted, which fails once in 5,000.

    The samples are those of the least that a posterior can leave open, none at all, for which the
    law is exact; that of a p-value is uniform.
    """
    truth = one_hill()
    channel = StampChannel(response_table("disk", 3.0, CELLS, radius=1))
    samples = np.repeat(truth[None], 2, axis=0)
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        counts = reports(truth, 100_000, rng, channel)
        known = replace(told_of_a_hill(100_000), density=truth, counts=counts, samples=samples)
        alarms += _look(known, None).contradicted
    assert CONTRADICTED == 1e-4
    assert alarms <= 1


def test_the_rule_that_made_the_map_does_not_matter() -> None:
    found = fitted(6.0, MANY)
    quick = EM().fit(found.channel, found.counts)
    weights = np.linspace(0, 1, CELLS**2).reshape(CELLS, CELLS)
    assert region_share(quick, weights) == region_share(found, weights)


def test_cells_are_asked_of_the_reports_where_they_tell_them() -> None:
    assert _cells_alone(3.0, field=1.8, open_=4.0, most=5.0)  # hardly wider
    assert not _cells_alone(3.0, field=1.7, open_=4.0, most=5.0)
    assert _cells_alone(2.0, field=0.4, open_=2.0, most=5.0)  # wider, and right
    assert not _cells_alone(2.0, field=0.39, open_=2.0, most=5.0)  # far wider
    assert not _cells_alone(2.0, field=0.4, open_=2.1, most=10.0)  # no answer
    assert _cells_alone(2.0, field=0.2, open_=2.0, most=10.0)
    assert not _cells_alone(2.0, field=0.19, open_=2.0, most=10.0)
    assert _cells_alone(2.0, field=0.19, open_=2.0, most=np.inf)
    assert not _cells_alone(2.0, field=0.19, open_=2.1, most=np.inf)


def test_some_cells_say_how_wide_the_reports_leave_all() -> None:
    for found in (fitted(6.0, MANY), told_of_a_hill(100_000), told_of_few_places(0)):
        mean = centred(found)
        widths = 2 * 1.96 * np.sqrt(reports_alone(mean).variance).sum()
        assert 0.5 < _look(mean, None).cells / widths < 2
    assert _cells_out_of_question(4.1, field=0.1)
    assert not _cells_out_of_question(3.9, field=0.1)
    assert not _cells_out_of_question(6.5, field=1.0)


def test_the_inverse_is_found_only_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told_of_a_hill(100_000)
    monkeypatch.setattr(alone, "MOST_WIDENED", 1.75)
    early = cell_intervals(found)
    asked = []
    monkeypatch.setattr(alone, "_cells_out_of_question", lambda *_: True)
    monkeypatch.setattr(
        alone, "reports_alone", lambda *given: asked.append(1) or reports_alone(*given)
    )
    late = cell_intervals(found)
    np.testing.assert_array_equal(late.upper, early.upper)
    assert asked == []
    for _ in range(2):
        assert late.bounds(WEST) == early.bounds(WEST)
    assert asked == [1]


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_very_many_reports_are_asked_alone_at_every_level(level: float) -> None:
    found = fitted(6.0, MANY)
    mean = centred(found)
    chosen = cell_intervals(found, level)
    sure = cell_intervals(mean, level, "fisher")
    assert (chosen.method, chosen.moved) == ("fisher", True)
    np.testing.assert_array_equal(chosen.lower, sure.lower)
    np.testing.assert_array_equal(chosen.upper, sure.upper)
    np.testing.assert_array_equal(chosen.density, mean.density)
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
    exact = sum(map(intervals.width_of, west))
    least = 2 * 1.96 * telling(found, west, None).errors.sum()
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
    with pytest.warns(InputWarning, match="not to be trusted: its support leaves out people"):
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
    """20 collections: a share of .95 held has standard errors of .01 by cell; alarm below .92.

    The field's own hold fewer: most cells of the east are empty, and it leaves somebody there.
    """
    truth = half_empty()
    held = []
    for seed in range(20):
        found = fitted(6.0, MANY, seed + 10)
        chosen = cell_intervals(found)
        assert chosen.method == "fisher"
        held.append((chosen.lower <= truth) & (truth <= chosen.upper))
    assert np.mean(held) > 0.92


def test_where_no_field_takes_the_channel_the_reports_alone_are_asked() -> None:
    """A grid that is not square, by randomised response."""
    kept = np.full((15, 15), 1.0)
    np.fill_diagonal(kept, np.exp(3.0))
    channel = MatrixChannel(kept / kept.sum(0), (3, 5))
    truth = np.arange(1.0, 16.0).reshape(3, 5) / 120
    found = EM().fit(channel, np.round(20_000 * channel.forward(truth)))
    north = np.zeros((3, 5))
    north[0] = 1
    share = region_share(found, north)
    assert share == region_share(found, north, method="fisher")
    assert share.lower < 15 / 120 < share.upper
    with pytest.raises(InputError, match="with rule field"):
        region_share(found, north, method="posterior")
