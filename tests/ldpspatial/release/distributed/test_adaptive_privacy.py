"""What a run of the adaptive histogram spends, and what may be noticed of one user."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import Answers, OneLocation
from ldpspatial.release.distributed.schedule import Budget
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support.cohorts import HalfNoise
from tests.support.crowds import crowd

Schedule: TypeAlias = Literal["scheduled", "even"]


# --- the schedule


@settings(max_examples=60)
@given(
    epsilon=st.floats(1e-6, 50),
    calibration=st.floats(1e-3, 50),
    expansion=st.floats(1, 9),
    rounds=st.integers(1, 6),
    schedule=st.sampled_from(["scheduled", "even"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_run_spends_more_than_epsilon(
    epsilon: float, calibration: float, expansion: float, rounds: int, schedule: Schedule, seed: int
) -> None:
    people = crowd(60, 8, seed)
    release = AdaptiveHierarchical(
        Cohort(shard_size=25),
        calibration,
        expansion,
        rounds,
        schedule=schedule,
        asked="every round",
    )
    trace = release.rounds_of(people, epsilon, np.random.default_rng(seed))
    assert 1 <= len(trace) <= rounds
    assert min(step.micro for step in trace) >= 1
    whole = sum(Fraction(step.micro, 10**6) for step in trace)
    assert 0 <= Fraction(str(epsilon)) - whole < Fraction(1, 10**6)
    left = np.cumsum([step.micro for step in trace][::-1])[::-1] - [step.micro for step in trace]
    assert [step.remaining for step in trace] == left.tolist()
    claim = release.release(people, epsilon, np.random.default_rng(seed)).claim
    assert claim.epsilon <= epsilon
    assert claim.epsilon == float(whole)


@settings(max_examples=100)
@given(st.floats(1e-6, 1e3), st.lists(st.floats(0, 40), max_size=8))
def test_a_budget_pays_no_more_than_it_has(epsilon: float, wanted: list[float]) -> None:
    budget = Budget(epsilon)
    whole = budget.micro
    paid = [budget.pay(part) for part in wanted] + [budget.pay_all()]
    assert sum(paid) == whole <= Fraction(str(epsilon)) * 10**6
    assert budget.micro == 0
    for part, got in zip(wanted, paid, strict=False):
        assert got <= max(part * 1e6, 1)


# --- how the tree grows


@dataclass(frozen=True)
class Silent:
    """The neighbouring input, 64 times over: the first user of each pixel sends only zeros."""

    inner: OneLocation = field(default_factory=OneLocation)
    scale: int = 1

    def sensitivity(self, length: int) -> int:
        return self.inner.sensitivity(length)

    def of(self, users: UserCells, rng: np.random.Generator) -> Answers:
        answers = self.inner.of(users, rng)

        def silenced(tree: PrefixTree, rng: np.random.Generator) -> sparse.csr_array:
            vectors = answers(tree, rng)
            vectors.data[:64] = 0  # a one in each row, in their order
            return vectors

        return silenced


def losses(cohort: Cohort, locations: OneLocation | Silent, runs: int, seed: int) -> list[float]:
    """Log-likelihood ratio of "the first user is there" and "sends zeros", by run and pixel.

    Every pixel is an element of its own with 50 people, so it is an experiment of its own: no
    element is removed or added, and the noise of elements is independent. The loss of a count is
    + epsilon where it is at least what it is with the user, else - epsilon; rounds add up.
    """
    pixels = frozenset((3, row, column) for row in range(8) for column in range(8))
    people = cells_by_user(np.arange(3200), np.arange(3200) % 64, (8, 8))
    release = AdaptiveHierarchical(
        cohort,
        0.113,
        1.5,
        start=PrefixTree((8, 8), pixels),
        locations=locations,
        asked="every round",
    )
    rng, found = np.random.default_rng(seed), []
    for _ in range(runs):
        trace = release.rounds_of(people, 1.0, rng)
        assert [(len(step.tree), round(step.spent, 1)) for step in trace] == [(64, 0.5)] * 2
        likely = [np.where(step.counts >= 50, step.spent, -step.spent) for step in trace]
        found += np.sum(likely, axis=0).tolist()
    return found


def bound_of(cohort: Cohort) -> float:
    return lower_bound_epsilon(
        losses(cohort, OneLocation(), 200, 19), losses(cohort, Silent(), 200, 20)
    )


def test_a_user_who_sends_zeros_instead_cannot_be_noticed_beyond_epsilon() -> None:
    # 12,800 samples a side. The bound exceeds 1 with probability 1e-6 if the claim holds. And it
    # is near: "as many as with the user, twice" has P = (1 + e^-1/2)^-2 = 0.39, Q = P / e, of
    # which it finds 0.77 on average, deviation 0.03.
    assert 0.6 < bound_of(Cohort(shard_size=4000)) <= 1.0


def test_half_the_noise_would_be_noticed() -> None:
    # Now P = (1 + 1/e)^-2 = 0.53 and Q = P / e^2: the bound is 1.71 on average, deviation 0.03.
    assert bound_of(HalfNoise(shard_size=4000)) > 1.0


# --- arguments
