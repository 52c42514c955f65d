"""A campaign that collects levels: what each round asks, and the map with its intervals."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import Grid
from client_sdk.rounds import Asked, Campaign
from ldpspatial import level_intervals
from ldpspatial.errors import InputError
from ldpspatial.release.distributed import AdaptiveHierarchical, DistributedLevels
from ldpspatial.release.distributed.campaigns import (
    HistogramPlan,
    LevelsPlan,
    SessionSum,
    campaign_plan,
)
from tests.support.campaign_sums import played, summed
from tests.support.crowds import crowd
from tests.support.round_devices import a_campaign

Ints = NDArray[np.int64]
LIMITS: dict[str, Any] = {"most_clients": 100, "least_honest": 50, "sensitivity": 1}


def campaign(side: int = 8, epsilon: float = 1.0, most_length: int = 4096) -> Campaign:
    grid = Grid.from_center(52.5, 13.4, 8000, side)
    return a_campaign(
        rounds=20, most_length=most_length, micro_epsilon=round(epsilon * 1e6), grid=grid, **LIMITS
    )


def cells_of(people: int, side: int, seed: int) -> Ints:
    return crowd(people, side, seed).visits.indices.astype(np.int64)


def test_rounds_take_the_place_of_parts_of_epsilon() -> None:
    """1,900 people in sums of 95 at epsilon 4: 16 rounds of 64 nodes, then the crowded below."""
    cells = cells_of(1900, 32, 1)
    plan = LevelsPlan(campaign(32, 4.0), 1900, tolerated=0.2)
    documents = played(plan, cells, np.random.default_rng(2))
    asked = [document.asked for document in documents]
    assert asked[:16] == [Asked(levels=(4,))] * 16
    assert asked[16].nodes
    assert {node[0] for node in asked[16].nodes} == {5}
    assert asked[16:] == [asked[16]] * 4
    for document in documents:
        document.verify(plan.campaign)
        assert (document.clients, document.threshold, document.micro_epsilon) == (
            100,
            80,
            4 * 10**6,
        )
    found = plan.released()
    assert (found.claim.epsilon, found.facts["survivors"], found.facts["level"]) == (4.0, 1900, 5)
    assert "in one of 20 rounds" in found.claim.conditions[-2]
    truth = np.bincount(cells, minlength=1024).reshape(32, 32) / 1900
    blocks = np.abs(found.density - truth).reshape(8, 4, 8, 4).sum(axis=(1, 3))
    assert blocks.sum() < 0.6


def test_where_people_are_many_all_rounds_ask_for_cells() -> None:
    """And none for wide areas: nobody would be counted twice by that, as each has one round."""
    plan = LevelsPlan(campaign(32, 4.0), 200_000, tolerated=0.2)
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 1024, 1900)
    asked = [document.asked for document in played(plan, cells, rng)]
    assert asked == [Asked(levels=(5,))] * 20


def test_where_nobody_crowds_a_level_goes_on_to_the_end() -> None:
    rng = np.random.default_rng(4)
    plan = LevelsPlan(campaign(64, 3.0), 1900, tolerated=0.2)
    documents = played(plan, rng.integers(0, 4096, 1900), rng)
    assert {document.asked for document in documents} == {Asked(levels=(4,))}


def test_the_plan_follows_from_the_sums_alone() -> None:
    cells = cells_of(1900, 32, 5)
    rng = np.random.default_rng(6)
    plan = LevelsPlan(campaign(32, 4.0), 1900, tolerated=0.2)
    kept: list[list[SessionSum]] = []
    for number, cohort in enumerate(np.array_split(rng.permutation(cells), 20), start=1):
        again = LevelsPlan(campaign(32, 4.0), 1900, tolerated=0.2)
        for sums in kept:
            again.take(sums)
        document = again.document(number)
        assert document == plan.document(number)
        # Every third cohort comes to nothing, and every fifth was not held.
        sums = [] if number % 5 == 0 else [summed(document, cohort, 32, rng)]
        if number % 3 == 0:
            sums = [SessionSum(len(cohort), 0, None)]
        kept.append(sums)
        plan.take(sums)
        np.testing.assert_array_equal(plan.released().density.shape, (32, 32))
    assert plan.released().density.sum() == pytest.approx(1)


@pytest.mark.parametrize("silent", [range(1, 21), range(1, 17), range(17, 21), range(1, 3)])
def test_rounds_without_a_sum_leave_a_map(silent: range) -> None:
    plan = LevelsPlan(campaign(32, 4.0), 1900, tolerated=0.2)
    played(plan, cells_of(1900, 32, 7), np.random.default_rng(8), silent)
    found = plan.released()
    assert found.density.sum() == pytest.approx(1)
    assert found.levels is not None
    sure = level_intervals(found.levels)
    assert (sure.lower <= sure.upper).all()
    if len(silent) == 20:
        np.testing.assert_allclose(found.density, 1 / 1024)
    with pytest.raises(InputError, match="number must be that of the next round"):
        plan.document(21)


def test_vectors_are_no_longer_than_the_campaign_says() -> None:
    cells = cells_of(1900, 32, 9)
    for longest in (1, 2, 3):  # no room for the children of any node
        plan = LevelsPlan(campaign(32, 20.0, longest), 1900, tolerated=0.2)
        documents = played(plan, cells, np.random.default_rng(10))
        assert {document.asked for document in documents} == {Asked(levels=(0,))}
        assert plan.released().density.sum() == pytest.approx(1)
    for longest in (4, 70, 300):
        plan = LevelsPlan(campaign(32, 20.0, longest), 1900, tolerated=0.2)
        documents = played(plan, cells, np.random.default_rng(10))
        assert max(document.length for document in documents) <= longest
        levels = [max(document.asked.depth, 0) for document in documents]
        assert all(after - before in (0, 1) for before, after in pairwise(levels))
        assert levels[-1] == 5  # the fullest nodes are followed down
    with pytest.raises(InputError, match="aim must be distance where vectors are shorter"):
        LevelsPlan(campaign(32, 1.0, 1023), 1900, 0.2, DistributedLevels(aim="cells"))


def test_single_cells_alone_are_asked_where_these_are_the_aim() -> None:
    plan = campaign_plan(campaign(32), 1900, 0.2, "distributed-levels:aim=cells")
    rng = np.random.default_rng(11)
    documents = played(plan, rng.integers(0, 1024, 1900), rng)
    assert {document.asked for document in documents} == {Asked(levels=(5,))}


@pytest.mark.parametrize("side", [1, 2, 4])
def test_small_maps_have_plans(side: int) -> None:
    plan = LevelsPlan(campaign(side), 1900, tolerated=0.2)
    rng = np.random.default_rng(12)
    cells = rng.integers(0, side**2, 1900)
    played(plan, cells, rng)
    truth = np.bincount(cells, minlength=side**2).reshape(side, side) / 1900
    np.testing.assert_allclose(plan.released().density, truth, atol=0.1)


def test_intervals_hold_the_people_who_were_heard() -> None:
    """Of two cohorts, of levels and of cells alone: 95 % hold in .93 and more.

    40 campaigns with 64 cells or 8 bands each. Cells of one map share little, bands a total; with
    .95 the standard error over all is .01.
    """
    held: dict[str, list[float]] = {"cells": [], "bands": []}
    rng = np.random.default_rng(13)
    for _ in range(40):
        cells = cells_of(1900, 8, int(rng.integers(1000)))
        plan = LevelsPlan(campaign(8, 2.0), 1900, tolerated=0.2)
        played(plan, cells, rng)
        found = plan.released().levels
        assert found is not None
        sure = level_intervals(found)
        truth = np.bincount(cells, minlength=64).reshape(8, 8) / 1900
        held["cells"].append(((sure.lower <= truth) & (truth <= sure.upper)).mean())
        for row in range(8):
            band = np.zeros((8, 8), bool)
            band[row] = True
            region = sure.region(band)
            held["bands"].append(region.lower <= truth[band].sum() <= region.upper)
    assert np.mean(held["cells"]) > 0.93
    assert np.mean(held["bands"]) > 0.91


def test_any_number_of_people_may_be_expected() -> None:
    """Four thousand million of them: shards are counted and not listed."""
    for kind in (LevelsPlan, HistogramPlan):
        assert kind(campaign(), 2**32, tolerated=0.2).document(1).round == 1


def test_a_campaign_collects_what_it_is_told() -> None:
    for release, kind in (
        ("distributed-levels", LevelsPlan),
        (DistributedLevels(), LevelsPlan),
        ("adaptive-hierarchical:c=1", HistogramPlan),
        (AdaptiveHierarchical(), HistogramPlan),
    ):
        assert isinstance(campaign_plan(campaign(), 1900, 0.2, release), kind)
    for wrong in ("laplace", "nowhere:Thing", "distributed-levels:keep=3"):
        with pytest.raises(InputError, match=r"release must be|release distributed-levels"):
            campaign_plan(campaign(), 1900, 0.2, wrong)
    for own, field in (
        ("distributed-levels:shard_size=7", "cohort"),
        ("adaptive-hierarchical:drop_out=0.2", "cohort"),
        ("adaptive-hierarchical:rounds=3", "rounds"),
        ("adaptive-hierarchical:depth=3", "depth"),
    ):
        with pytest.raises(InputError, match=f"{field} must be left to the campaign"):
            campaign_plan(campaign(), 1900, 0.2, own)
    for text in ("distributed-levels:", "distributed-levels:aim"):
        with pytest.raises(InputError, match="parameters must be name=value"):
            campaign_plan(campaign(), 1900, 0.2, text)
    with pytest.raises(InputError, match="asked must be once"):
        campaign_plan(campaign(), 1900, 0.2, "adaptive-hierarchical:asked=every round")
