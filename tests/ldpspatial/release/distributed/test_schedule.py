"""How much each round asks for, and when elements are split."""

import numpy as np
import pytest

from ldpspatial.places.users import cells_by_user
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.schedule import split_threshold, wanted_epsilon
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support.crowds import crowd


def test_the_paper_s_schedule_for_ten_thousand_people() -> None:
    # Table 1 and appendix A: vectors of 4 + 16 + 64 + 256 = 340, and 0.76 left for the last round.
    people = cells_by_user(np.arange(10_000), np.arange(10_000) % 1024, (32, 32))
    trace = AdaptiveHierarchical(asked="every round").rounds_of(
        people, 1.0, np.random.default_rng(1)
    )
    assert [len(step.tree) for step in trace] == [4, 16, 64, 256]
    assert [round(step.spent, 3) for step in trace] == [0.011, 0.045, 0.181, 0.763]
    # sqrt(2) / (c U / (2 T)) for large deviations, on paper
    assert trace[0].spent == pytest.approx(np.sqrt(2) / 125, rel=1e-3)


def test_the_calibration_is_two_deviations_of_the_total_in_mean_counts() -> None:
    cohort = Cohort(shard_size=10_000)
    for users, length, c in ((10_000, 64, 0.1), (95_000, 256, 0.1), (40_000, 7, 2.0)):
        epsilon = wanted_epsilon(c, users, length, cohort, 1, 1)
        total = noise_deviation(epsilon, 1) * np.sqrt(-(-users // 10_000))
        assert 2 * total == pytest.approx(c * users / length, rel=1e-9)
        assert split_threshold(users, epsilon, cohort, 1, 1) == pytest.approx(2 * total)


def test_the_threshold_is_of_the_best_noise_that_is_still_possible() -> None:
    trace = AdaptiveHierarchical(Cohort(shard_size=500), asked="every round").rounds_of(
        crowd(2000, 16, 2), 1.0, np.random.default_rng(2)
    )
    assert len(trace) > 1
    for step in trace:
        best = noise_deviation(max(step.micro, step.remaining) / 1e6, 1)
        assert step.threshold == pytest.approx(2 * np.sqrt(4) * best)
        assert step.deviation == pytest.approx(np.sqrt(4) * noise_deviation(step.spent, 1))


def test_even_rounds_get_the_same_and_the_rest_goes_to_the_last() -> None:
    release = AdaptiveHierarchical(schedule="even", rounds=3, threshold=5.0, asked="every round")
    trace = release.rounds_of(crowd(3000, 32, 3), 1.0, np.random.default_rng(3))
    assert [step.micro for step in trace] == [333_333, 333_333, 333_334]
    assert {step.threshold for step in trace} == {5.0}
    early = release.rounds_of(cells_by_user([1], [0], (2, 2)), 1.0, np.random.default_rng(4))
    assert [step.micro for step in early] == [333_333, 666_667]  # nothing left to split
