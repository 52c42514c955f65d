"""Shares of regions whose cut cells are divided by public weights."""

import dataclasses
import itertools
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import Grid, response_table
from ldpspatial import EM, Estimate, InputError, StampChannel
from ldpspatial.collecting.region_shares import region_shares
from ldpspatial.estimation.intervals.trust import learned_trust
from ldpspatial.places.regions import Region
from ldpspatial.places.within import Within

pytest.importorskip("shapely")

Array = NDArray[np.float64]
SIDE, FINER = 8, 16
GRID = Grid.plane(0, 0, SIDE, SIDE)


@cache
def town() -> Array:
    """Where people are: along a few streets, and around a square."""
    rng = np.random.default_rng(7)
    fine = np.full((SIDE * FINER,) * 2, 0.01)
    fine[rng.choice(SIDE * FINER, 12, replace=False)] += rng.gamma(1, size=(12, 1))
    fine[:, rng.choice(SIDE * FINER, 12, replace=False)] += rng.gamma(1, size=(1, 12))
    fine[70:76, 40:60] += 3
    return np.asarray(fine / fine.sum())


@cache
def found() -> Estimate:
    """What two million people report on average."""
    channel = StampChannel(response_table("disk", 4.0, SIDE, squared_radius=1))
    density = town().reshape(SIDE, FINER, SIDE, FINER).sum((1, 3))
    counts = np.where(channel.support, np.round(2e6 * channel.forward(density)), 0)
    return EM().fit(channel, counts)


def boxes() -> list[Region]:
    """Return rectangles along finer cells, so that the truth is a sum of them."""
    rng = np.random.default_rng(8)
    ends = np.sort([rng.choice(SIDE * FINER + 1, (2, 2), replace=False) for _ in range(30)], axis=1)
    sides = (ends / FINER).reshape(30, 4).tolist()  # south, west, north, east
    return [Region.rectangle(str(k), GRID, *box) for k, box in enumerate(sides)]


def truth(region: Region) -> float:
    assert region.geometry is not None
    ring = np.round(np.array(region.geometry["coordinates"][0]) * FINER).astype(int)
    (west, south), (east, north) = ring.min(0), ring.max(0)
    return float(town()[south:north, west:east].sum())


def errors(within: Within | None) -> Array:
    shares = region_shares(found(), boxes(), within=within)
    return np.array([row.share.estimate - truth(row.region) for row in shares.rows])


def test_the_right_weights_take_most_of_the_error_and_foreign_ones_add_little() -> None:
    by_area = np.abs(errors(None)).mean()
    right = np.abs(errors(Within(GRID, town()))).mean()
    foreign = np.abs(errors(Within(GRID, np.roll(town(), (37, 51), (0, 1))))).mean()
    assert right < 0.5 * by_area
    assert foreign < 1.15 * by_area


def test_intervals_hold_with_right_and_with_foreign_weights() -> None:
    for within in (Within(GRID, town()), Within(GRID, np.roll(town(), (37, 51), (0, 1)))):
        rows = region_shares(found(), boxes(), within=within).rows
        held = [row.share.lower <= truth(row.region) <= row.share.upper for row in rows]
        assert np.mean(held) >= 0.9


def test_each_cut_cell_counts_with_its_part_and_the_result_tells_the_trust() -> None:
    within = Within(GRID, town())
    trust = learned_trust(found(), within)
    shares = region_shares(found(), boxes(), method="fisher", within=within)
    plain = region_shares(found(), boxes(), method="fisher")
    assert (shares.trust, plain.trust) == (trust, None)
    for row, without in zip(shares.rows, plain.rows, strict=True):
        area = row.region.weights
        weights = area + trust * (within.parts(row.region) - area)
        assert row.share.estimate == pytest.approx((weights * found().density).sum())
        same = ("wholly_inside", "touched")
        assert [getattr(row, name) for name in same] == [getattr(without, name) for name in same]
        assert row.by_public_weights == pytest.approx(row.in_cut_cells)  # known everywhere
        assert without.by_public_weights == 0
        assert row.wholly_inside - 1e-12 <= row.share.estimate <= row.touched + 1e-12


def test_what_has_no_geometry_or_no_weights_is_divided_by_area() -> None:
    fine = town().copy()
    fine[: 4 * FINER] = 0  # nothing public in the south
    within = Within(GRID, fine)
    south = Region.rectangle("south", GRID, 0.3, 0.3, 3.6, 5.6)
    drawn = Region("drawn", Region.rectangle("", GRID, 0.3, 0.3, 7.6, 5.6).weights)
    for row, plain in zip(
        region_shares(found(), [south, drawn], within=within).rows,
        region_shares(found(), [south, drawn]).rows,
        strict=True,
    ):
        assert row.share == plain.share
        assert row.by_public_weights == 0 < row.in_cut_cells


def test_an_area_is_divided_by_the_same_weights_as_its_regions() -> None:
    """Two halves of an area have all of its people, and the area its share of everybody."""
    within = Within(GRID, town())
    outer = Region.rectangle("outer", GRID, 1.3, 1.2, 6.7, 6.55)
    halves = [
        Region.rectangle("west", GRID, 1.3, 1.2, 6.7, 3.8),
        Region.rectangle("east", GRID, 1.3, 3.8, 6.7, 6.55),
    ]
    sampled = dataclasses.replace(found(), samples=found().density[None].repeat(40, 0))
    shares = region_shares(sampled, [outer, *halves], area=[outer], within=within)
    whole, *two = [row.share.estimate for row in shares.rows]
    assert whole == pytest.approx(1)
    assert sum(two) == pytest.approx(1, abs=0.01)
    (alone,) = region_shares(sampled, [outer], within=within).rows
    assert shares.of_all == pytest.approx(alone.share.estimate)
    by_area = region_shares(sampled, halves, area=[outer])
    as_weights = region_shares(sampled, halves, area=outer.weights)
    for one, other in zip(by_area.rows, as_weights.rows, strict=True):
        assert dataclasses.astuple(one.share) == dataclasses.astuple(other.share)
    for part, area in itertools.product(shares.rows, by_area.rows):
        assert part.region is not area.region or part.share.estimate != area.share.estimate


def test_weights_of_another_grid_are_refused() -> None:
    with pytest.raises(InputError, match="within must be of the estimate's grid of 8 x 8 cells"):
        region_shares(found(), boxes(), within=Within(Grid.plane(0, 0, 8, 4), town()))
