from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, sqrt

import numpy as np
import pytest
from scipy import sparse

from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.distributed.levels.adaptive_grid import AdaptiveGrid, reconciled
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum
from tests.support.cohorts import Recording, Silent


def test_parts_by_the_guideline() -> None:
    grid = AdaptiveGrid()
    counts = np.array([-50, 0, 19, 20, 79, 80, 1000, 10_000])
    expected = [max(1, floor(sqrt(max(n, 0) * 0.5 * 0.7 / 10))) for n in counts.tolist()]
    assert grid.parts(counts, 0.7) == expected
    assert AdaptiveGrid(alpha=0.2, c2=5.0).parts(np.array([1000]), 1.0) == [12]


def test_two_rounds_with_the_shares_of_epsilon() -> None:
    recording, rng = Recording(), np.random.default_rng(1)
    people = cells_by_user(range(3000), rng.integers(40, size=3000), (40, 40))
    released = AdaptiveGrid(recording, alpha=0.3).release(people, 1.0, rng)
    first, second = recording.calls
    assert (first.epsilon, second.epsilon) == (0.3, 0.7)
    assert first.sensitivity == second.sensitivity == 1
    parts = AdaptiveGrid(alpha=0.3).parts(first.found.counts, 1.0)
    assert len(first.found.counts) == 100
    assert len(second.found.counts) == sum(min(n, 4) ** 2 for n in parts)
    length = len(first.found.counts) + len(second.found.counts)
    assert released.facts == {"vector_length": length, "rounds": 2, "survivors": 3000}


def test_a_user_with_many_visits_answers_both_rounds_by_the_same() -> None:
    recording, rng = Recording(), np.random.default_rng(2)
    people = cells_by_user(np.repeat(np.arange(200), 3), rng.integers(100, size=600), (10, 10))
    AdaptiveGrid(recording).release(people, 1.0, rng)
    first, second = (call.contributions for call in recording.calls)
    assert (first.indices == second.indices).all()  # blocks of one cell


def test_the_map_is_the_second_round_spread_evenly() -> None:
    people = cells_by_user(range(1000), [0] * 900 + [21] * 100, (6, 6))
    released = AdaptiveGrid(Silent(), blocks=2).release(people, 1.0, np.random.default_rng(3))
    # 900 people: 6 parts a side, of which 3 fit; 100 people: 2 parts of 1 and 2 cells a side.
    assert released.density[0, 0] == pytest.approx(0.9)
    assert released.density[3:5, 3:5] == pytest.approx(np.full((2, 2), 0.025))
    assert released.facts["vector_length"] == 4 + 9 + 1 + 1 + 4


def noisy_sum(counts: list[int], survivors: int, deviation: float) -> NoisySum:
    return NoisySum(np.array(counts), 1, 1, survivors, survivors, deviation)


def test_reconciled_known_answers() -> None:
    coarse, block_of = noisy_sum([100, 40], 10, 2.0), np.array([0, 0, 0, 0, 1])
    fine = noisy_sum([10, 20, 30, 28, 30], 10, 1.0)
    # Block 0: variances 4 and 4 * 1, mean of 100 and 88 is 94: 6 to share. Block 1: 4 and 1.
    assert reconciled(coarse, fine, block_of) == pytest.approx([11.5, 21.5, 31.5, 29.5, 32.0])
    half = noisy_sum([50, 20], 5, 1.0)  # half of the people answered
    assert reconciled(half, fine, block_of) == pytest.approx([11.5, 21.5, 31.5, 29.5, 32.0])
    unseen = noisy_sum([0, 0], 0, 0.0)
    assert reconciled(unseen, fine, block_of).tolist() == [10, 20, 30, 28, 30]
    exact = noisy_sum([100, 40], 10, 0.0)
    assert reconciled(exact, fine, block_of) == pytest.approx([13, 23, 33, 31, 40])
    silent = noisy_sum([10, 20, 30, 28, 30], 10, 0.0)
    assert reconciled(coarse, silent, block_of).tolist() == [10, 20, 30, 28, 30]
    withheld = noisy_sum([0, 0, 0, 0, 0], 0, 0.0)
    assert reconciled(coarse, withheld, block_of).tolist() == [0, 0, 0, 0, 0]


def test_reconciled_sums_of_blocks_have_the_least_variance() -> None:
    """1 / (1 / 4 + 1 / 4) = 2 for weights by variance; 4,000 draws, 5 standard errors."""
    rng, block_of = np.random.default_rng(4), np.zeros(4, dtype=np.int64)
    sums = []
    for _ in range(4000):
        coarse = noisy_sum([round(rng.normal(400, 200))], 9, 200.0)
        fine = noisy_sum(rng.normal(100, 100, 4).round().astype(int).tolist(), 9, 100.0)
        sums.append(reconciled(coarse, fine, block_of).sum())
    assert abs(np.var(sums) / 20_000 - 1) < 5 * sqrt(2 / 4000)
    assert abs(np.mean(sums) - 400) < 5 * sqrt(20_000 / 4000)


def test_rounds_of_different_survivors_are_put_on_one_scale() -> None:
    people = cells_by_user(range(20_000), np.repeat([0, 63], 10_000), (8, 8))
    grid = AdaptiveGrid(Cohort(drop_out=0.3, tolerated=0.4), blocks=2, consistent=True)
    released = grid.release(people, 5.0, np.random.default_rng(5))
    assert released.density[0, 0] == pytest.approx(0.5, abs=0.03)


@dataclass(frozen=True)
class OnlyFirst(Cohort):
    """Withholds the second round."""

    calls: list[int] = field(default_factory=list, compare=False)

    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        self.calls.append(1)
        if len(self.calls) == 1:
            return super().sum(contributions, epsilon, sensitivity, rng)
        return NoisySum(np.zeros(contributions.shape[1], np.int64), 1, 0, 1, 0, 0.0)


@pytest.mark.parametrize("consistent", [False, True])
def test_where_the_second_round_is_withheld_the_first_is_published(consistent: bool) -> None:
    people = cells_by_user(range(5000), [0] * 5000, (8, 8))
    grid = AdaptiveGrid(OnlyFirst(), blocks=2, consistent=consistent)
    released = grid.release(people, 5.0, np.random.default_rng(6))
    assert released.density[:4, :4] == pytest.approx(np.full((4, 4), 1 / 16), abs=0.01)
    assert released.facts["survivors"] == 0


@pytest.mark.parametrize("epsilon", [0.000002, 0.0000029, 0.3, 20.0])
@pytest.mark.parametrize("alpha", [1e-9, 0.3, 0.5, 1 - 1e-9])
def test_budgets_add_up_and_neither_is_empty(epsilon: float, alpha: float) -> None:
    first, second = AdaptiveGrid(alpha=alpha).budgets(epsilon)
    assert min(first, second) >= 1
    assert first + second == int(Fraction(str(epsilon)) * 10**6)
    assert abs(first - alpha * (first + second)) <= 1


def test_an_epsilon_too_small_for_two_rounds_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon must be two millionths at least"):
        AdaptiveGrid().budgets(0.0000019)
