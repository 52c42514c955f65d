"""A campaign that grows a histogram: which tree each round asks by, and the map of the sums."""

import numpy as np
import pytest

from client_sdk import CollectionError, Grid
from ldpspatial.errors import InputError
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.campaigns import HistogramPlan, SessionSum
from tests.support.campaign_sums import played, summed
from tests.support.crowds import crowd
from tests.support.round_devices import a_campaign

CAMPAIGN = a_campaign(rounds=20, most_clients=100, least_honest=50, sensitivity=1, most_length=400)


def test_cohorts_are_asked_until_enough_people_were_heard() -> None:
    people = crowd(1900, 8, 1)
    cells = people.visits.indices.astype(np.int64)
    plan = HistogramPlan(CAMPAIGN, 1900, tolerated=0.2)
    documents = played(plan, cells, np.random.default_rng(2))
    assert plan.rounds_taken == 20
    # 109 people are wanted for four squares: two cohorts of 95. Then 435 for sixteen, five of them.
    assert [d.length for d in documents][:3] == [4, 4, 16]
    changes = [
        d.round for d, e in zip(documents[1:], documents, strict=False) if d.asked != e.asked
    ]
    assert changes[0] == 3
    assert len(changes) == len(set(changes)) <= 3
    for document in documents:
        document.verify(CAMPAIGN)
        assert (document.clients, document.threshold, document.honest) == (100, 80, 80)
    found = plan.released()
    assert found.claim.epsilon == 1.0
    assert sum(map(int, str(found.facts["asked"]).split())) == 1900
    assert np.abs(found.density - people.density).sum() < 0.5


def test_the_plan_follows_from_the_sums_alone() -> None:
    cells = crowd(950, 8, 3).visits.indices.astype(np.int64)
    rng = np.random.default_rng(4)
    plan = HistogramPlan(CAMPAIGN, 950, tolerated=0.2)
    kept: list[list[SessionSum]] = []
    for number, cohort in enumerate(np.array_split(cells, 20), start=1):
        again = HistogramPlan(CAMPAIGN, 950, tolerated=0.2)
        for sums in kept:
            again.take(sums)
        document = again.document(number)
        assert document == plan.document(number)
        # Every third cohort comes to nothing, and every fifth was not held.
        found = summed(document, cohort, 8, rng)
        sums = [] if number % 5 == 0 else [found]
        if number % 3 == 0:
            sums = [SessionSum(len(cohort), 0, None)]
        kept.append(sums)
        plan.take(sums)
    assert plan.released().density.sum() == pytest.approx(1)


def test_more_people_than_were_expected_do_no_harm() -> None:
    cells = crowd(1900, 8, 5).visits.indices.astype(np.int64)
    plan = HistogramPlan(CAMPAIGN, 300, tolerated=0.2)
    documents = played(plan, cells, np.random.default_rng(6))
    assert len({d.asked for d in documents}) <= 3
    assert sum(map(int, str(plan.released().facts["asked"]).split())) == 1900


def test_vectors_stay_as_short_as_the_campaign_says() -> None:
    short = a_campaign(rounds=20, most_clients=100, least_honest=50, sensitivity=1, most_length=10)
    cells = crowd(1900, 8, 7).visits.indices.astype(np.int64)
    plan = HistogramPlan(short, 1900, tolerated=0.2)
    assert {d.length for d in played(plan, cells, np.random.default_rng(8))} == {4}


def test_a_campaign_without_a_sum_gives_the_uniform_map() -> None:
    plan = HistogramPlan(CAMPAIGN, 100)
    for _ in range(20):
        plan.take([SessionSum(90, 0, None)])
    found = plan.released()
    np.testing.assert_allclose(found.density, 1 / 64)
    with pytest.raises(InputError, match="number must be that of the next round"):
        plan.document(21)


def test_the_claim_names_those_who_may_collude_alike_everywhere() -> None:
    campaign = a_campaign(most_clients=100, least_honest=50, sensitivity=1, colluding_ppm=50_000)
    plan = HistogramPlan(campaign, 1000, tolerated=0.2)
    assert plan.document(1).honest == 75
    conditions = " ".join(plan.released().claim.conditions)
    assert "at most 5 % of a shard's clients omit or reveal their noise" in conditions
    assert (
        "at most 5 of the at most 100 clients of its session, whom the server seats" in conditions
    )


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="people must be a whole number from 1"):
        HistogramPlan(CAMPAIGN, 0)
    with pytest.raises(InputError, match=r"tolerated must leave more than the 10 clients"):
        HistogramPlan(a_campaign(colluding_ppm=100_000, sensitivity=1), 100, tolerated=0.95)
    with pytest.raises(CollectionError, match="honest must be at least 50"):
        HistogramPlan(a_campaign(least_honest=50, colluding_ppm=100_000), 100, tolerated=0.42)
    plan = HistogramPlan(CAMPAIGN, 100)
    for number in (0, 2):
        with pytest.raises(InputError, match="number must be that of the next round"):
            plan.document(number)
    tree = PrefixTree.quadrants((8, 8))
    assert plan.document(1).asked.nodes == tree.elements


def test_of_thousands_each_has_some_dozens_of_neighbours_if_the_server_is_trusted_by_name() -> None:
    limits = {"most_clients": 10_000, "least_honest": 5000, "sensitivity": 1}
    for server, degree in (("any", 9999), ("honest", 70)):
        campaign = a_campaign(**limits, colluding_ppm=100_000, server=server)
        plan = HistogramPlan(campaign, 10_000, tolerated=0.1)
        document = plan.document(1)
        document.verify(campaign)
        assert (document.server, document.degree) == (server, degree)
        assert ("circle" in plan.released().claim.conditions[-1]) == (server == "honest")
    small = a_campaign(most_clients=100, least_honest=50, sensitivity=1, server="honest")
    assert HistogramPlan(small, 100, tolerated=0.2).document(1).degree == 99


def test_who_may_collude_is_rounded_up_and_who_may_fail_down() -> None:
    campaign = a_campaign(most_clients=95, least_honest=50, sensitivity=1, colluding_ppm=50_000)
    document = HistogramPlan(campaign, 1000, tolerated=0.1).document(1)
    assert (document.threshold, document.colluding) == (86, 5)  # of 9.5 nine, of 4.75 five


def test_as_many_as_may_collude_are_too_few() -> None:
    with pytest.raises(InputError, match="tolerated must leave more than the 10 clients"):
        HistogramPlan(a_campaign(colluding_ppm=100_000, sensitivity=1), 100, tolerated=0.9)


def test_vectors_may_be_just_as_long_as_the_campaign_says() -> None:
    short = a_campaign(rounds=20, most_clients=100, least_honest=50, sensitivity=1, most_length=13)
    cells = crowd(1900, 8, 7).visits.indices.astype(np.int64)
    plan = HistogramPlan(short, 1900, tolerated=0.2)
    assert {d.length for d in played(plan, cells, np.random.default_rng(8))} == {4, 13}


def test_a_single_cell_has_a_plan() -> None:
    plan = HistogramPlan(a_campaign(grid=Grid.plane(0, 0, 8, 1), sensitivity=1), 100)
    assert plan.released().density.tolist() == [[1.0]]
