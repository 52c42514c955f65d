"""The adaptive histogram over disjoint cohorts: each user is asked once, at all of epsilon."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.many_locations import ManyLocations
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import (
    OneLocation,
    Round,
    grown,
    one_hot,
)
from ldpspatial.release.distributed.adaptive.side_data import SideData
from ldpspatial.release.distributed.adaptive.turns import Turns
from ldpspatial.release.distributed.schedule import wanted_people
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum
from tests.support.cohorts import HalfNoise, Recording, log_likelihood_ratio, replays
from tests.support.crowds import crowd


def test_the_schedule_pays_in_people() -> None:
    people = cells_by_user(np.arange(10_000), np.arange(10_000) % 1024, (32, 32))
    trace = AdaptiveHierarchical(Cohort()).rounds_of(people, 1.0, np.random.default_rng(1))
    # 2 T tau / c each, tau(1) = 1.3570, and the last cohort is everybody who is left.
    assert [(len(step.tree), step.asked) for step in trace] == [
        (4, 109),
        (16, 435),
        (64, 1737),
        (256, 10_000 - 109 - 435 - 1737),
    ]
    assert [step.micro for step in trace] == [1_000_000] * 4
    assert [step.remaining for step in trace] == [1_000_000] * 3 + [0]
    assert [step.best for step in trace] == [9891, 9456, 7719, 7719]
    for step in trace:
        # Two deviations of the noise of all who can still be asked, in people of this cohort.
        noise = noise_deviation(1.0, 1)
        assert step.deviation == pytest.approx(noise)
        assert step.threshold == pytest.approx(2 * noise * step.asked / step.best)


def test_even_cohorts_are_of_one_size() -> None:
    release = AdaptiveHierarchical(schedule="even", rounds=3, threshold=6.0)
    trace = release.rounds_of(crowd(3001, 32, 3), 1.0, np.random.default_rng(3))
    assert [step.asked for step in trace] == [1001, 1001, 999]
    # A number of people is one of all users.
    assert [step.threshold for step in trace] == pytest.approx([6006 / 3001] * 2 + [5994 / 3001])


@pytest.mark.parametrize("shard_size", [10, 300, 10_000])
def test_the_people_wanted_are_the_fewest_whose_noise_is_small_enough(shard_size: int) -> None:
    cohort = Cohort(shard_size=shard_size)
    for epsilon, length, c in ((1.0, 16, 0.1), (0.3, 5, 2.0), (4.0, 30, 0.5)):
        law = cohort, 1, 1
        found = wanted_people(c, epsilon, length, 10**7, *law)

        def fits(people: int, epsilon: float = epsilon, length: int = length, c: float = c) -> bool:
            noise = noise_deviation(epsilon, 1) * np.sqrt(len(cohort.shards(people)))
            return bool(2 * noise <= c * people / length) and people >= 3 * length

        least = next(n for n in range(1, 10**7) if fits(n))
        assert least - 1 <= found <= least
    assert wanted_people(1e-300, 1.0, 16, 1000, Cohort(), 1, 1) > 1000


# --- each user in one round


@settings(max_examples=40)
@given(
    users=st.integers(1, 400),
    epsilon=st.floats(1e-6, 20),
    calibration=st.floats(1e-2, 50),
    expansion=st.sampled_from([1.0, 2.0, 7.5, inf]),
    rounds=st.integers(1, 6),
    schedule=st.sampled_from(["scheduled", "even"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_user_answers_in_exactly_one_round(
    users: int, epsilon: float, calibration: float, expansion: float, rounds: int, schedule: str,
    seed: int,
) -> None:  # fmt: skip
    # Each user is in a cell of their own, and squares are never given up: who answered shows.
    cohort = Recording(shard_size=30)
    people = cells_by_user(np.arange(users), np.arange(users), (20, 20))
    pixels = frozenset((5, row, column) for row in range(20) for column in range(20))
    tree = PrefixTree((20, 20), pixels)
    release = AdaptiveHierarchical(
        cohort, calibration, expansion, rounds, start=tree, schedule=schedule,  # type: ignore[arg-type]
    )  # fmt: skip
    trace = release.ask(
        people.shape,
        users,
        OneLocation().of(people, np.random.default_rng(seed)),
        lambda step: step.tree if len(step.tree) < 400 else tree.collapse([(5, 19, 19)]),
        epsilon,
        np.random.default_rng(seed),
    )
    answered = np.zeros(users, dtype=int)
    for step, call in zip(trace, cohort.calls, strict=True):
        assert call.contributions.shape == (step.asked, len(step.tree))
        assert call.epsilon == step.spent <= epsilon
        at = step.tree.assign(np.arange(users))
        answered += np.asarray(call.contributions.sum(axis=0))[at] * (step.tree.areas[at] == 1)
    assert sum(step.asked for step in trace) == users
    alone = [step.tree.areas[step.tree.assign(np.arange(users))] == 1 for step in trace]
    assert (answered[np.all(alone, axis=0)] == 1).all()
    assert 1 <= len(trace) <= rounds


def test_who_is_asked_first_is_drawn_and_not_a_matter_of_place_or_number() -> None:
    # Each of four users is asked first as often: chi-square, false alarm 1e-6.
    tree = PrefixTree.quadrants((2, 2))
    people = cells_by_user(np.arange(4), np.arange(4), (2, 2))
    answers = OneLocation().of(people, np.random.default_rng(0))
    cohort = Recording()
    release = AdaptiveHierarchical(cohort, rounds=2, schedule="even")
    for seed in range(400):
        rng = np.random.default_rng(seed)
        release.ask((2, 2), 4, answers, lambda step: tree, 1.0, rng)
    first = sum(np.asarray(call.contributions.sum(axis=0)) for call in cohort.calls[::2])
    assert ((first - 200) ** 2 / 100).sum() < 30.7 * 4 / 3  # 3 degrees of freedom, pairs


# --- what may be noticed of a user


def losses(cohort: Cohort, there: bool, seed: int) -> list[float]:
    """Tell by the counts of both rounds whether a pixel's only user is there, 6,400 times.

    Of 4,000 users 64 have a pixel of their own, or are silent; the others send zeros.
    """
    pixels = frozenset((3, row, column) for row in range(8) for column in range(8))
    tree = PrefixTree((8, 8), pixels)
    release = AdaptiveHierarchical(cohort, 0.5, start=tree)
    rng, found = np.random.default_rng(seed), list[float]()

    def answers(tree: PrefixTree, rng: np.random.Generator) -> sparse.csr_array:
        vectors = one_hot(np.arange(4000) % 64, len(tree))
        vectors.data[64 if there else 0 :] = 0
        return vectors

    for _ in range(100):
        trace = release.ask((8, 8), 4000, answers, lambda step: tree, 1.0, rng)
        assert [step.asked for step in trace] == [348, 3652]
        found += np.where(trace[1].counts >= 1, 1.0, np.where(trace[0].counts >= 3, 0, -1)).tolist()
    return found


def test_a_user_who_sends_zeros_instead_cannot_be_noticed_beyond_epsilon() -> None:
    # False alarm 1e-6. A user is most probably in the second round, where the statistic is the
    # best: P = .91 / (1 + 1/e) + .09 / (1 + e), Q = 1 / (1 + e). Half of the noise is noticed.
    bounds = [
        lower_bound_epsilon(losses(cohort, True, 19), losses(cohort, False, 20))
        for cohort in (Cohort(), HalfNoise())
    ]
    assert 0.7 < bounds[0] <= 1.0 < bounds[1]


@pytest.mark.parametrize("locations", [OneLocation(), ManyLocations(scale=60)])
def test_in_the_round_that_asks_it_a_user_loses_epsilon(
    locations: OneLocation | ManyLocations,
) -> None:
    # The best statistic there is; asked in two rounds at that noise a user would be noticed.
    recording = Recording()
    people = cells_by_user([0, 0, 0, 1, 2, 3], [0, 5, 15, 3, 9, 14], (4, 4))
    release = AdaptiveHierarchical(recording, rounds=2, schedule="even", locations=locations)
    claim = release.release(people, 2.0, np.random.default_rng(4)).claim
    rng = np.random.default_rng(5)
    assert [call.contributions.shape[0] for call in recording.calls] == [2, 2]
    twice = np.zeros((2, 40_000))
    for call in recording.calls:
        ratios = [log_likelihood_ratio(call, 0, sums) for sums in replays(call, 0, 40_000, rng)]
        assert lower_bound_epsilon(*ratios) <= claim.epsilon == 2.0
        twice += ratios
    assert lower_bound_epsilon(*twice) > 2.0


# --- drop-outs, the rest of a cohort, status


def test_a_cohort_that_is_withheld_leaves_the_tree_to_the_next() -> None:
    people = crowd(2000, 16, 12)
    release = AdaptiveHierarchical(Cohort(drop_out=0.5), rounds=4, schedule="even")
    trace = release.rounds_of(people, 1.0, np.random.default_rng(12))
    assert [step.asked for step in trace] == [500] * 4
    assert {step.tree for step in trace} == {PrefixTree.quadrants((16, 16))}
    assert release.release(people, 1.0, np.random.default_rng(12)).claim.epsilon == 1.0


def asked(turns: Turns, clients: int) -> Round:
    """Answer a turn with so many people in each element, of whom few came."""
    turn = turns.next()
    assert turn is not None
    counts = np.full(turn.length, clients // turn.length, dtype=np.int64)
    return turns.take(NoisySum(counts, 1, 1, clients, clients, 0.0))


def test_turns_go_on_with_those_who_came() -> None:
    release = AdaptiveHierarchical()

    def grow(step: Round) -> PrefixTree:
        return grown(step.tree, step.counts, step.threshold, release.depth)

    turns = Turns(release, (32, 32), 10_000, 1.0, grow)
    first = turns.next()
    assert first is not None
    assert first == turns.next()
    assert (first.people, first.micro, first.length, first.sensitivity) == (109, 10**6, 4, 1)
    assert (asked(turns, 100).asked, asked(turns, 440).asked) == (100, 440)
    assert asked(turns, 1700).remaining == 10**6
    last = turns.next()
    assert last is not None
    assert last.people == 10_000 - 100 - 440 - 1700
    assert asked(turns, 5000).remaining == 0  # whoever stays away is not asked again
    assert turns.next() is None
    with pytest.raises(InputError, match="seen must be the sums of the turn that is asked now"):
        turns.take(NoisySum(np.zeros(4, dtype=np.int64), 1, 1, 4, 4, 0.0))


def test_sums_of_another_turn_are_refused() -> None:
    turns = Turns(AdaptiveHierarchical(), (32, 32), 1000, 1.0, lambda step: step.tree)
    turns.next()
    good = NoisySum(np.zeros(4, dtype=np.int64), 1, 1, 4, 4, 0.0)
    for wrong in (
        replace(good, counts=good.counts[:3]),
        replace(good, clients=0),
        replace(good, clients=1001),
    ):
        with pytest.raises(InputError, match="seen must be the sums of the turn"):
            turns.take(wrong)
    turns.take(good)


def status_of(people: UserCells) -> np.ndarray:
    return people.visits.indices % 2 == 0


def test_a_proportion_is_that_of_the_last_cohort() -> None:
    people = crowd(6000, 16, 5)
    side = SideData(AdaptiveHierarchical(Cohort()), width=0.2)
    trace = side.rounds_of(people, status_of(people), 2.0, np.random.default_rng(5))
    assert sum(step.asked for step in trace) == 6000
    assert len(trace) > 1
    found = side.run(people, status_of(people), 2.0, np.random.default_rng(5))
    assert found.claim.epsilon == 2.0
    assert found.facts["vector_length"] == max(2 * len(step.tree) for step in trace)
    assert float(found.facts["survivors"]) == trace[-1].asked


# --- the claim, and what it costs


def test_the_claim_says_that_nobody_is_asked_twice() -> None:
    release = AdaptiveHierarchical()
    found = release.release(crowd(4000, 16, 16), 1.5, np.random.default_rng(16))
    assert (found.claim.epsilon, found.claim.neighbours, found.claim.unit) == (1.5, "zero", "user")
    words = " ".join(found.claim.conditions)
    assert "each user is asked in one of at most 10 rounds" in words
    assert "does not depend on the data" in words
    assert set(release.claim(1.5).conditions) == set(found.claim.conditions)
    paper = replace(release, asked="every round").claim(1.5)
    assert "rounds composed" in " ".join(paper.conditions)
    assert found.facts["epsilons"] == " ".join(["1.5"] * int(found.facts["rounds"]))


def test_the_map_is_as_good_and_what_a_user_sends_is_shorter() -> None:
    people = crowd(20_000, 64, 17)
    errors, lengths = [], []
    for release in (AdaptiveHierarchical(), AdaptiveHierarchical(asked="every round")):
        runs = [release.release(people, 1.0, np.random.default_rng(seed)) for seed in range(4)]
        errors.append(np.mean([np.mean((run.density - people.density) ** 2) for run in runs]))
        lengths.append(max(float(run.facts["vector_length"]) for run in runs))
    assert errors[0] < 1.15 * errors[1]
    assert lengths[0] < 0.8 * lengths[1]
