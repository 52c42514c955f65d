"""Shares of the people in an area: what is around it is left out."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import Collection, Grid, response_table
from ldpspatial import (
    Estimate,
    Field,
    StampChannel,
    cell_intervals,
    region_share,
    share_change,
)
from ldpspatial.collecting.region_shares import region_shares
from ldpspatial.collecting.results import write_npz
from ldpspatial.errors import InputError
from ldpspatial.estimation import estimate
from ldpspatial.estimation.intervals.area import people_in_area
from ldpspatial.places.regions import Region, rectangle

Array = NDArray[np.float64]

SAMPLES = np.random.default_rng(5).dirichlet(np.full(36, 1.5), 300).reshape(-1, 6, 6)


def sampled() -> Estimate:
    channel = StampChannel(response_table("dam", 3.5, 6))
    mean = SAMPLES.mean(0)
    counts = np.round(3_000 * channel.forward(mean))
    found = estimate(channel, counts, "em")
    return dataclasses.replace(found, density=mean, samples=SAMPLES)


def box(south: int, north: int) -> Array:
    weights = np.zeros((6, 6))
    weights[south:north] = 1
    return weights


def test_shares_of_an_area_are_those_of_each_sample_over_the_area() -> None:
    area, region = box(1, 5), box(1, 2)
    within, share = people_in_area(sampled(), area)
    assert share == pytest.approx((SAMPLES.mean(0) * area).sum())
    assert within.density[[0, 5]].sum() == 0
    ratios = (SAMPLES * region).sum((1, 2)) / (SAMPLES * area).sum((1, 2))
    assert within.samples is not None
    assert (within.samples * region).sum((1, 2)) == pytest.approx(ratios)
    shares = region_shares(sampled(), [Region("south", region)], area=area)
    (row,) = shares.rows
    assert shares.of_all == pytest.approx(share)
    assert row.share.estimate == pytest.approx(ratios.mean())
    assert row.people == pytest.approx(ratios.mean() * share * within.n)
    low, high = np.quantile(ratios, [0.025, 0.975])
    assert row.share.lower <= low + 1e-12  # stretched
    assert row.share.upper >= high - 1e-12
    assert row.share.upper - row.share.lower < 2 * (high - low)


def test_the_whole_square_as_area_changes_nothing() -> None:
    regions = [Region("a", box(0, 2)), Region("b", 0.5 * box(2, 3))]
    all_people = region_shares(sampled(), regions)
    of_square = region_shares(sampled(), regions, area=np.ones((6, 6)))
    assert of_square.of_all == pytest.approx(1)
    for first, second in zip(all_people.rows, of_square.rows, strict=True):
        assert dataclasses.astuple(first.share) == pytest.approx(dataclasses.astuple(second.share))


def test_a_region_counts_with_its_part_in_the_area() -> None:
    area = box(1, 5)
    beyond, inside = region_shares(
        sampled(), [Region("x", box(0, 3)), Region("y", box(1, 3))], area=area
    ).rows
    assert beyond.share == inside.share
    (whole,) = region_shares(sampled(), [Region("x", np.ones((6, 6)))], area=area).rows
    assert whole.share.estimate == pytest.approx(1)


def test_where_people_are_in_cells_that_the_area_cuts_is_left_open() -> None:
    cut = box(1, 5)
    cut[1] = 0.5
    within, _ = people_in_area(sampled(), cut)
    again, _ = people_in_area(sampled(), cut)
    assert within.samples is not None
    assert again.samples is not None
    assert np.array_equal(within.samples, again.samples)  # equal counts, equal numbers
    sums = (SAMPLES * cut).sum((1, 2))
    plain = (SAMPLES[:, 1, 0] * 0.5) / sums
    drawn = within.samples[:, 1, 0]
    assert drawn.mean() == pytest.approx(plain.mean(), rel=0.2)
    assert drawn.std() > 1.3 * plain.std()


def test_people_outside_who_report_from_the_edge_spoil_no_share_of_an_area() -> None:
    """A quarter of all live outside: without a ring their reports count at the edge.

    The share in the area's southern edge is .2 of those in the area. With 200,000 reports its error
    is below a percent, but for once in a million: the posterior's standard deviation is some .002.
    """
    rng = np.random.default_rng(8)
    at = rng.random((150_000, 2))  # in an area of 1 x 1, evenly
    outside = np.column_stack([rng.uniform(-2, 0, 50_000), rng.random(50_000)])  # south of it
    everyone = np.vstack([at, outside])
    grid = Grid.plane(-0.25, -0.25, 1.5, 12)
    cells = np.clip(((everyone + 0.25) / 0.125).astype(int), 0, 11)  # as devices do
    people = np.zeros((12, 12))
    np.add.at(people, tuple(cells.T), 1)
    channel = StampChannel(response_table("disk", 5.0, 12, squared_radius=2))
    law = channel.forward(people / people.sum())[channel.support]
    counts = np.zeros(channel.support.shape)
    counts[channel.support] = rng.multinomial(200_000, law / law.sum())
    region = rectangle(grid, 0.0, 0.0, 0.2, 1.0)
    area = rectangle(grid, 0.0, 0.0, 1.0, 1.0)
    shares = region_shares(Field().fit(channel, counts), [Region("edge", region)], area=area)
    (edge,) = shares.rows
    assert abs(edge.share.estimate - 0.2) < 0.01
    assert abs(shares.of_all - 0.75) < 0.01


@pytest.mark.parametrize(
    ("area", "rule"),
    [
        (np.ones((5, 5)), "area must be an array of numbers of shape"),
        (np.full((6, 6), 2.0), "area"),
        (np.zeros((6, 6)), "area must hold people, but its share of them is 0.0e"),
    ],
)
def test_areas_without_people_or_of_another_map_are_refused(area: Array, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        people_in_area(sampled(), area)


def test_intervals_by_counts_are_refused_for_a_map_of_an_area() -> None:
    within, share = people_in_area(sampled(), box(1, 5))
    assert within.of_all == share < 1
    rule = (
        r"method must be posterior for a map of the people in an area, .* a map of 0\.\d+ of them"
    )
    for asked in (
        lambda: region_share(within, box(1, 2), method="fisher"),
        lambda: cell_intervals(within, method="fisher"),
    ):
        with pytest.raises(InputError, match=rule):
            asked()
    assert region_share(within, box(1, 2)).upper < 1
    again, _ = people_in_area(within, box(1, 2))
    assert again.of_all == pytest.approx((SAMPLES * box(1, 2)).sum((1, 2)).mean(), rel=0.02)
    everybody, _ = people_in_area(sampled(), box(0, 6))
    assert everybody.of_all == 1
    region_share(everybody, box(1, 2), method="fisher")


def test_a_map_of_an_area_is_not_written_as_one_of_all(tmp_path: Path) -> None:
    within, _ = people_in_area(sampled(), box(1, 5))
    collection = Collection.create("plane", Grid.plane(0, 0, 6, 6), epsilon=3.5, mechanism="dam")
    with pytest.raises(
        InputError, match="estimate must be of all who reported, got one of the peo"
    ):
        write_npz(tmp_path / "estimate.npz", collection, within)


def test_shares_of_an_area_take_samples() -> None:
    with pytest.raises(InputError, match="method must be posterior for shares of an area"):
        region_shares(sampled(), [Region("a", box(0, 2))], 0.95, "fisher", area=np.ones((6, 6)))


def test_a_change_is_of_all_people_or_of_those_in_an_area() -> None:
    later = dataclasses.replace(sampled(), samples=SAMPLES[::-1])
    inside, _ = people_in_area(later, box(1, 5))
    with pytest.raises(InputError, match=r"both be of all people.*got 1 and 0\."):
        share_change(sampled(), inside, box(1, 2))


def test_samples_without_people_in_the_area_end_what_they_share_with_another_window() -> None:
    """The k-th sample of one window is no longer drawn with the k-th of the other."""
    first = Field().fit(sampled().channel, sampled().counts)
    assert first.samples is not None
    assert first.facts["fit"]
    emptied = first.samples.copy()
    emptied[3, :2] = 0
    inside, _ = people_in_area(dataclasses.replace(first, samples=emptied), box(0, 2))
    assert inside.samples is not None
    assert len(inside.samples) == len(emptied) - 1
    assert not inside.facts["fit"]
    whole, _ = people_in_area(first, box(0, 2))
    assert whole.facts["fit"] == first.facts["fit"]
