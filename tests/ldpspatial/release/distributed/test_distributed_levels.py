"""What the recommended distributed release hands to its map: the law of its sums."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.estimation.levels import NoisyLevel
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.distributed import REALISTIC, Cohort, DistributedLevels, TwoServers
from ldpspatial.release.distributed.campaigns import campaign_plan
from ldpspatial.release.distributed.levels import distributed_levels as module
from ldpspatial.release.level_sums import Asked, measure
from tests.support.cohorts import Recording
from tests.support.round_sessions import CAMPAIGN

BOTH: tuple[Asked, ...] = ("once", "every round")


@pytest.mark.parametrize("cohort", [Cohort(), REALISTIC])
def test_sums_are_in_steps_of_one_person_over_the_share_that_was_counted(cohort: Cohort) -> None:
    """So the law of counts may tell whole people; each person adds (1 - f) / f to a variance."""
    users = cells_by_user(range(2000), np.arange(2000) % 64, (8, 8))
    run = DistributedLevels(cohort, aim="cells").release(users, 4.0, np.random.default_rng(1))
    assert run.levels is not None
    level = run.levels.levels[-1]
    assert level.step == pytest.approx(2000 / run.facts["survivors"])
    assert level.per_person == pytest.approx(level.step - 1)
    steps = level.sums / level.step
    assert steps == pytest.approx(np.round(steps))


@pytest.mark.parametrize(
    ("cohort", "epsilon", "levels"),
    [
        (REALISTIC, 1.0, [2, 5]),
        (Cohort(), 1.0, [2, 5]),
        (Cohort(), 3.0, [5]),  # most noise is 0, and a tenth of epsilon would be half as much again
    ],
)
def test_wide_areas_are_counted_twice(cohort: Cohort, epsilon: float, levels: list[int]) -> None:
    people = np.random.default_rng(1).integers(0, 1024, 30_000)
    users = cells_by_user(range(len(people)), people, (32, 32))
    for aim in ("distance", "cells"):
        run = DistributedLevels(cohort, aim=aim).release(users, epsilon, np.random.default_rng(2))
        assert run.levels is not None
        found = [level.level for level in run.levels.levels if 0 < level.variance < np.inf]
        assert found == (levels if aim == "distance" else [5])
        assert run.facts["rounds"] == len(found)
        assert run.claim.epsilon == pytest.approx(epsilon, abs=1e-6)


def test_wide_areas_come_nearer_where_clients_fail() -> None:
    """People are everywhere, so noise and who failed add up: the second count takes some of it.

    Sixteen areas of 64 cells with 5,000 people on average. Summed over cells, whose noise is that
    of all of epsilon, errors are as the release says itself. Over 60 maps (960 squares, a standard
    error of .05) they are .75 times as large, and .92 times by what is learned of cells alone.
    """
    rng = np.random.default_rng(3)
    cohort = Cohort(100_000, drop_out=0.1, tolerated=0.2)
    cells = rng.integers(0, 1024, 80_000)
    users = cells_by_user(range(len(cells)), cells, (32, 32))
    single = DistributedLevels(cohort, aim="cells").release(users, 1.0, rng).levels
    assert single is not None
    truth = areas_of(users.density) * len(cells)
    squares = []
    for _ in range(60):
        run = DistributedLevels(cohort).release(users, 1.0, rng)
        squares.append(((areas_of(run.density) * len(cells) - truth) ** 2).mean())
    one = single.levels[-1]
    assert np.mean(squares) < 0.83 * (64 * one.variance + one.per_person * truth.mean())


def areas_of(cells: NDArray[Any]) -> NDArray[Any]:
    """Return the sums of a map of 32 x 32 cells in sixteen areas."""
    found: NDArray[Any] = cells.reshape(4, 8, 4, 8).sum(axis=(1, 3))
    return found


# --- each client asked once


def crowd_of(clients: int, side: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return cells of people who are mostly near one corner."""
    at = np.minimum(rng.exponential(side / 6, (clients, 2)).astype(np.int64), side - 1)
    found: NDArray[Any] = at[:, 0] * side + at[:, 1]
    return found


@pytest.mark.parametrize("clients", [1, 2, 9, 5000])
@pytest.mark.parametrize("aim", ["distance", "cells"])
def test_asked_once_each_client_answers_in_one_round(clients: int, aim: Any) -> None:
    """Rows of the rounds are of clients who were not asked before, at all of epsilon."""
    cells = crowd_of(clients, 16, np.random.default_rng(1))
    users = cells_by_user(range(clients), cells, (16, 16))
    for epsilon in (0.05, 2.0):
        cohort = Recording(shard_size=1000)
        release = DistributedLevels(cohort, aim, "once")
        run = release.release(users, epsilon, np.random.default_rng(2))
        rows = [call.contributions.shape[0] for call in cohort.calls]
        assert sum(rows) == clients == run.facts["survivors"]
        assert min(rows) > 0
        assert len(rows) == run.facts["rounds"]
        assert all(call.epsilon == epsilon for call in cohort.calls)
        assert all(call.contributions.sum(axis=1).max() <= 1 for call in cohort.calls)
        assert all(call.loss <= epsilon for call in cohort.calls)
        assert run.claim.epsilon == epsilon


def test_asked_once_who_is_asked_first_is_drawn() -> None:
    """Four fifths of the people of each node are asked first: over 50 runs within six deviations.

    By number, as clients lie here, a fifth of the nodes would have nobody in the first round.
    """
    users = cells_by_user(range(1024), range(1024), (32, 32))
    first = np.zeros(256)
    for seed in range(50):
        cohort = Recording()
        DistributedLevels(cohort, asked="once").release(users, 2.0, np.random.default_rng(seed))
        assert [call.contributions.shape for call in cohort.calls] == [(820, 256), (204, 256)]
        one, other = (np.asarray(call.contributions.sum(axis=0)) for call in cohort.calls)
        assert (one + other == 4).all()  # and the others second
        first += one
    assert (abs(first - 200 * 820 / 1024) < 6 * np.sqrt(200 * 0.8 * 0.2)).all()


def test_the_claim_says_that_nobody_is_asked_twice() -> None:
    for release in (DistributedLevels(asked="once"), TwoServers(asked="once")):
        words = " ".join(release.claim(1.5).conditions)
        assert "each user is asked in one round" in words
        assert release.claim(1.5).epsilon == 1.5
    every = " ".join(DistributedLevels(asked="every round").claim(1.5).conditions)
    assert "one round" not in every
    assert "in one round, or in every one" in " ".join(DistributedLevels().claim(1.5).conditions)
    with pytest.raises(InputError, match="asked must be"):
        DistributedLevels(asked="twice")  # type: ignore[arg-type]


def test_asked_once_a_level_s_sums_stand_for_all_people() -> None:
    """They are off by as much as they say, noise and who was asked: squares are 1 in the mean.

    Of the first level, by which nothing was chosen. Without what people add these were 1.49; a
    standard error is .015.
    """
    cells = crowd_of(20_000, 32, np.random.default_rng(1))
    users = cells_by_user(range(len(cells)), cells, (32, 32))
    release = DistributedLevels(Cohort(2000, drop_out=0.1, tolerated=0.3), asked="once")
    squares, means = [], []
    for seed in range(40):
        levels = release.release(users, 0.8, np.random.default_rng(seed)).levels
        assert levels is not None
        measured = [each for each in levels.levels[1:] if np.isfinite(each.variance)]
        assert len(measured) > 1
        level = measured[0]
        truth = levels.tree.pooled(level.level, level.nodes, users.density * len(cells))
        off = (level.sums - truth) / np.sqrt(level.variance + level.per_person * truth)
        squares.append(float((off**2).mean()))
        means.append(float(off.mean()))
    assert 0.92 < np.mean(squares) < 1.08
    assert abs(np.mean(means)) < 0.05


def test_asked_once_finer_levels_have_less_noise_where_shards_are_many() -> None:
    """A fifth of the people costs a root of five, a fifth of epsilon five times the noise."""
    cells = crowd_of(100_000, 64, np.random.default_rng(1))
    users = cells_by_user(range(len(cells)), cells, (64, 64))
    noise = {}
    for asked in BOTH:
        run = DistributedLevels(Cohort(), asked=asked).release(users, 0.2, np.random.default_rng(2))
        assert run.levels is not None
        found = [each.variance for each in run.levels.levels[1:] if np.isfinite(each.variance)]
        noise[asked] = np.sqrt(found[:2])
    once, every_round = noise["once"], noise["every round"]
    assert every_round[1] / once[1] > 2
    assert every_round[0] / once[0] > 1.1


@pytest.mark.parametrize(
    ("clients", "epsilon", "asked"),
    [
        (10_000, 0.1, "every round"),  # one shard: a part of it has all of its noise
        (100_000, 0.1, "once"),
        (100_000, 1.0, "every round"),  # noise is less than what leaving people out adds
        (1_000_000, 2.0, "every round"),  # one round, of single cells
    ],
)
def test_who_is_asked_when_follows_from_public_numbers(
    clients: int, epsilon: float, asked: Any
) -> None:
    found = DistributedLevels().settled(clients, (64, 64), epsilon)
    assert found == DistributedLevels(asked=asked)
    for fixed in (DistributedLevels(asked="once"), DistributedLevels(asked="every round")):
        assert fixed.settled(clients, (64, 64), epsilon) is fixed
    # Two servers add as much noise to a batch however small it is.
    servers = TwoServers(asked="either")
    assert servers.settled(clients, (64, 64), epsilon) == TwoServers()


def test_oblong_maps_have_fewer_nodes_and_more_people_in_each() -> None:
    """Of 64 cells in a row eight nodes are first: played, sums asked once err by 1276, not 557."""
    asked = [DistributedLevels().settled(100_000, (64, n), 0.5).asked for n in (1, 64)]
    assert asked == ["every round", "once"]


def test_a_run_says_who_was_asked_when() -> None:
    users = cells_by_user(range(100_000), np.arange(100_000) % 4096, (64, 64))
    for epsilon, said in ((0.1, "each user is asked in one round;"), (2.0, "10 disjoint shards")):
        run = DistributedLevels().release(users, epsilon, np.random.default_rng(1))
        same = DistributedLevels().settled(100_000, (64, 64), epsilon)
        assert said in " ".join(run.claim.conditions)
        assert "or in every one" not in " ".join(run.claim.conditions)
        again = same.release(users, epsilon, np.random.default_rng(1))
        assert (run.density == again.density).all()
        assert run.claim == again.claim


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_the_sums_that_are_chosen_are_the_nearer_ones(epsilon: float) -> None:
    """Of even people, first level, 100,000 clients, none of whom fails; both ways are played.

    Where they are within a tenth of each other either is fine.
    """
    users = cells_by_user(range(100_000), np.arange(100_000) % 4096, (64, 64))
    squares = {}
    for asked in BOTH:
        release = DistributedLevels(Cohort(), asked=asked)
        found = []
        for seed in range(3):
            levels = release.release(users, epsilon, np.random.default_rng(seed)).levels
            assert levels is not None
            first = next(each for each in levels.levels[1:] if np.isfinite(each.variance))
            found.append(float(((first.sums - 100_000 / len(first.nodes)) ** 2).mean()))
        squares[asked] = np.mean(found)
    chosen = DistributedLevels(Cohort()).settled(100_000, (64, 64), epsilon).asked
    assert squares[chosen] < 1.1 * min(squares.values())
    if epsilon == 0.1:
        assert chosen == "once"
        assert squares["once"] < 0.95 * squares["every round"]


@pytest.mark.parametrize("clients", [30_000, 100_000])
@pytest.mark.parametrize(
    "release",
    [
        DistributedLevels(asked="once"),
        TwoServers(asked="once"),
        DistributedLevels(asked="every round"),
    ],
)
def test_the_noise_of_the_next_level_is_foretold(
    release: DistributedLevels, clients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside that of the first: by the shards that its people are, or by its part of epsilon."""
    told = []

    def measured(*given: Any) -> Any:
        *_, parts, _, _, noisier = given
        told.append(noisier(*parts[:2]))
        return measure(*given)

    monkeypatch.setattr(module, "measure", measured)
    cells = crowd_of(clients, 64, np.random.default_rng(1))
    users = cells_by_user(range(clients), cells, (64, 64))
    levels = release.release(users, 0.2, np.random.default_rng(2)).levels
    assert levels is not None
    one, other, *_ = [each.variance for each in levels.levels[1:] if np.isfinite(each.variance)]
    assert told == [pytest.approx(np.sqrt(other / one), rel=0.03)]


@pytest.mark.parametrize(("noisier", "divided"), [(3.0, [0, 1]), (3.6, [0]), (0.4, [0, 1, 2, 3])])
def test_nodes_are_divided_by_the_noise_of_the_next_level(
    noisier: float, divided: list[int]
) -> None:
    """By two of its deviations, which are so many times those of this one."""
    tree = Quadtree((4, 4), even=True)
    whole = NoisyLevel(0, tree.numbers(0), np.array([23.0]), 0.0)
    asked = []

    def ask(level: int, nodes: NDArray[np.int64], part: int) -> NoisyLevel:
        asked.append((level, part, nodes.tolist()))
        sums = np.array([10.0, 7.0, 5.0, 1.0]) if level == 1 else np.ones(len(nodes))
        return NoisyLevel(level, nodes, sums, 1.0)

    measure(tree, whole, 1, [8, 2], ask, noisier=lambda one, other: noisier * (one, other).count(8))
    if len(divided) == 1:  # less than half of the people: the level is asked again
        assert asked == [(1, 8, [0, 1, 2, 3]), (1, 2, [0, 1, 2, 3])]
    else:
        below = [4 * node + k for node in divided for k in range(4)]
        assert asked == [(1, 8, [0, 1, 2, 3]), (2, 2, below)]


def test_where_the_noise_is_0_in_floats_people_are_counted() -> None:
    users = cells_by_user(range(500), np.arange(500) % 64, (8, 8))
    for asked in BOTH:
        release = DistributedLevels(Cohort(), asked=asked)
        run = release.release(users, 2000.0, np.random.default_rng(1))
        assert run.density == pytest.approx(users.density)


def test_campaigns_do_not_collect_what_two_servers_do() -> None:
    with pytest.raises(InputError, match="release must be distributed-levels or"):
        campaign_plan(CAMPAIGN, 2000, release=TwoServers())


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_all_rounds_together_cost_no_more_than_epsilon(epsilon: float) -> None:
    """Those for wide areas too, which single cells pay for."""
    cells = np.random.default_rng(1).integers(0, 1024, 30_000)
    users = cells_by_user(range(30_000), cells, (32, 32))
    cohort = Recording()
    DistributedLevels(cohort, asked="every round").release(users, epsilon, np.random.default_rng(2))
    assert len(cohort.calls) > 1
    assert sum(call.loss for call in cohort.calls) <= epsilon + 1e-9
