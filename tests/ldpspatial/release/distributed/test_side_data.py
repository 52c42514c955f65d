from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import binom, norm

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.many_locations import ManyLocations
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import OneLocation
from ldpspatial.release.distributed.adaptive.side_data import SideData, proportion_interval
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum
from tests.support.cohorts import Recording, log_likelihood_ratio, replays

FloatArray = NDArray[np.float64]
QUIET = 1000.0


def city(users: int, side: int, seed: int) -> tuple[UserCells, NDArray[np.bool_], FloatArray]:
    """People everywhere, more of them in the middle, and a focus of infection in a corner."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(side / 2, side / 8, (users, 2))
    at = np.where(rng.random((users, 1)) < 0.5, middle, rng.uniform(0, side, (users, 2)))
    at = np.clip(at, 0, side - 1).astype(int)
    rows, columns = np.indices((side, side))
    chance = 0.02 + 0.6 * np.exp(-(rows**2 + columns**2) / (2 * (side / 4) ** 2))
    people = cells_by_user(np.arange(users), at[:, 0] * side + at[:, 1], (side, side))
    return people, rng.random(users) < chance[at[:, 0], at[:, 1]], chance


# --- the interval


def test_without_noise_it_is_wilson_s() -> None:
    # Newcombe 1998, table I: 81 of 263 and 15 of 148, 0 of 20, 1 of 29, at 95 %.
    proportion, lower, upper = proportion_interval(
        [81, 15, 0, 1], [263 - 81, 148 - 15, 20, 28], 0.0, 0.95
    )
    assert proportion.round(4).tolist() == [0.308, 0.1014, 0.0, 0.0345]
    assert lower.round(4).tolist() == [0.2553, 0.0624, 0.0, 0.0061]
    assert upper.round(4).tolist() == [0.3662, 0.1605, 0.1611, 0.1718]


@settings(max_examples=100)
@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.0, 12.0), st.sampled_from([0.8, 0.99]))
def test_the_quadratic_is_the_scan_over_p(
    has: int, has_not: int, deviation: float, confidence: float
) -> None:
    # Many shards: the noise is all but normal, and so is the quantile.
    _, lower, upper = proportion_interval([has], [has_not], deviation, confidence, shards=10**12)
    n, p = has + has_not, np.linspace(0, 1, 4001)
    z = norm.ppf((1 + confidence) / 2)
    variance = n * p * (1 - p) + (p**2 + (1 - p) ** 2) * deviation**2
    inside = p[((1 - p) * has - p * has_not) ** 2 <= z**2 * variance * (1 + 1e-9)]
    assert lower[0] <= inside.min() + 2.6e-4 if n else lower[0] == 0
    assert upper[0] >= inside.max() - 2.6e-4 if n else upper[0] == 1
    if upper[0] - lower[0] < 1:  # where the set is one piece, it is the set
        assert lower[0] == pytest.approx(inside.min(), abs=2.6e-4)
        assert upper[0] == pytest.approx(inside.max(), abs=2.6e-4)


def test_negative_and_empty_counts() -> None:
    proportion, lower, upper = proportion_interval([-4, 0, -3], [-2, 0, 900], 2.0, 0.9)
    assert np.isnan(proportion).tolist() == [True, True, False]
    assert (lower[:2].tolist(), upper[:2].tolist()) == ([0, 0], [1, 1])
    assert (proportion[2], lower[2]) == (0, 0)
    assert 0 < upper[2] < 0.01


def coverage(people: int, p: float, epsilon: float, deviation: float, shards: int = 1) -> float:
    """Share of 20,000 noisy pairs of counts whose 95 % interval holds p."""
    rng, runs = np.random.default_rng(people), 20_000
    stop = -np.expm1(-epsilon)
    noise = (rng.geometric(stop, (2, shards, runs)) - rng.geometric(stop, (2, shards, runs))).sum(1)
    has = rng.binomial(people, p, runs)
    _, lower, upper = proportion_interval(
        has + noise[0], people - has + noise[1], deviation, 0.95, shards
    )
    return float(np.mean((lower <= p) & (p <= upper)))


@pytest.mark.parametrize("p", [0.0, 0.01, 0.2, 0.5, 0.9])
def test_the_interval_holds_the_truth_as_often_as_it_says(p: float) -> None:
    # 0.94 is the claim of docs/adaptive.md for epsilon <= 1; 0.93 here is 5 deviations below it.
    assert binom.cdf(0.93 * 20_000, 20_000, 0.94) < 1e-6
    for people in (10, 100, 1000):
        for epsilon in (0.1, 1.0):
            assert coverage(people, p, epsilon, noise_deviation(epsilon, 1)) > 0.93
            total = np.sqrt(10) * noise_deviation(epsilon, 1)
            assert coverage(people, p, epsilon, total, shards=10) > 0.93


def test_an_interval_that_leaves_noise_out_would_be_noticed() -> None:
    assert coverage(100, 0.5, 0.1, 0.0) < 0.8
    assert coverage(1000, 0.2, 0.1, noise_deviation(0.1, 1) / 2) < 0.9


# --- the map


def test_without_noise_the_counts_are_exact() -> None:
    people, positive, _ = city(2000, 16, 1)
    side = SideData(
        AdaptiveHierarchical(Cohort(), schedule="even", asked="every round"), width=0.15
    )
    trace = side.rounds_of(people, positive, QUIET, np.random.default_rng(1))
    cells = people.visits.indices
    for step in trace:
        element = step.tree.assign(cells)
        for status, counts in ((positive, step.counts[::2]), (~positive, step.counts[1::2])):
            exact = np.bincount(element[status], minlength=len(step.tree))
            assert counts.tolist() == exact.tolist()
    found = side.run(people, positive, QUIET, np.random.default_rng(1))
    tree = found.tree
    element = tree.assign(cells)
    share = np.bincount(element, positive) / np.maximum(np.bincount(element), 1)
    known = ~np.isnan(found.proportion)
    np.testing.assert_allclose(found.proportion[known], share[tree.labels][known], atol=1e-12)
    assert found.density.sum() == pytest.approx(1)


def test_a_fine_map_where_the_proportion_is_known_well() -> None:
    people, positive, chance = city(40_000, 32, 2)
    found = SideData(width=0.15).run(people, positive, 1.0, np.random.default_rng(2))
    assert found.proportion.shape == found.lower.shape == found.upper.shape == (32, 32)
    assert len(found.tree) > 20
    known = ~np.isnan(found.proportion)
    ordered = (found.lower <= found.proportion) & (found.proportion <= found.upper)
    assert ordered[known].all()
    # Most widths are as wanted, the focus is found, and most intervals hold the truth.
    assert float(found.facts["share_of_pixels_within_width"]) > 0.6
    assert np.nanmean(found.proportion[:4, :4]) > 0.4
    assert np.nanmean(found.proportion[20:, 20:]) < 0.1
    weight = people.density.ravel()
    labels = found.tree.labels.ravel()
    mean = np.bincount(labels, weight * chance.ravel()) / np.bincount(labels, weight)
    held = (found.lower.ravel() <= mean[labels]) & (mean[labels] <= found.upper.ravel())
    assert np.mean([held[labels == element][0] for element in range(len(found.tree))]) > 0.85


def test_a_narrower_width_makes_a_coarser_map() -> None:
    people, positive, _ = city(20_000, 32, 3)
    sizes = [
        len(SideData(width=width).run(people, positive, 1.0, np.random.default_rng(3)).tree)
        for width in (0.05, 0.4)
    ]
    assert sizes[0] < sizes[1]


def test_where_nothing_can_be_known_one_interval_remains() -> None:
    people, positive, _ = city(1000, 8, 4)
    found = SideData(width=0.01).run(people, positive, 1.0, np.random.default_rng(4))
    assert len(found.tree) == 1
    assert np.unique(found.lower).size == 1


def test_the_regions_are_split_and_given_up_by_width() -> None:
    # Quadrants of 4,000, 1,000, 250 and 60 people, half of them positive, next to no noise. Width
    # 0.1 at 95 % takes 380 people: a quarter of 4,000 has them, a quarter of 1,000 has not, and
    # 250 have not.
    sizes = [4000, 1000, 250, 60]
    quadrant = np.repeat(np.arange(4), sizes)
    cells = np.array([0, 2, 8, 10])[quadrant]
    people = cells_by_user(np.arange(len(cells)), cells, (4, 4))
    positive = np.arange(len(cells)) % 2 == 0
    side = SideData(AdaptiveHierarchical(schedule="even", asked="every round"), width=0.1)
    trace = side.rounds_of(people, positive, QUIET, np.random.default_rng(5))
    assert trace[0].tree == PrefixTree.quadrants((4, 4))
    children = {(2, 0, 0), (2, 0, 1), (2, 1, 0), (2, 1, 1)}
    assert trace[1].tree.nodes == {(1, 0, 0), (1, 0, 1)} | children


def test_position_and_status_are_one_answer() -> None:
    people, positive, _ = city(500, 8, 6)
    side = SideData(AdaptiveHierarchical(Cohort(shard_size=200), asked="every round"))
    trace = side.rounds_of(people, positive, 1.0, np.random.default_rng(6))
    for step in trace:
        assert step.counts.size == 2 * len(step.tree)
        # sensitivity 1 over both statuses: not 2, and not each with its own epsilon
        assert step.deviation == pytest.approx(np.sqrt(3) * noise_deviation(step.spent, 1))
    found = side.run(people, positive, 1.0, np.random.default_rng(6))
    assert found.claim.epsilon == 1.0
    assert found.facts["vector_length"] == sum(step.counts.size for step in trace)
    assert side.claim(1.0) == side.histogram.claim(1.0)


def test_bad_arguments_are_refused() -> None:
    people, positive, _ = city(20, 4, 7)
    rng = np.random.default_rng(7)
    statuses: list[Any] = [positive[:-1], positive.astype(int), [positive]]
    for status in statuses:
        with pytest.raises(InputError, match="positive must be a bool for each of 20 users"):
            SideData().run(people, status, 1.0, rng)
    with pytest.raises(InputError, match="locations OneLocation"):
        SideData(AdaptiveHierarchical(locations=ManyLocations()))
    with pytest.raises(InputError, match="threshold 'adaptive', got 5"):
        SideData(AdaptiveHierarchical(threshold=5))
    most = SideData(AdaptiveHierarchical(locations=OneLocation("most visited")))
    assert most.run(people, positive, 1.0, rng).proportion.shape == (4, 4)


def test_place_and_status_cannot_be_told_from_zeros_beyond_epsilon() -> None:
    # False alarm 1e-6; half of the noise is noticed.
    recording = Recording()
    people = cells_by_user([0, 1, 2], [0, 5, 15], (4, 4))
    histogram = AdaptiveHierarchical(recording, rounds=2, asked="every round")
    SideData(histogram).run(people, np.array([True, False, True]), 2.0, np.random.default_rng(4))
    rng = np.random.default_rng(5)
    bounds = []
    for factor in (1, 2):
        ratios = np.zeros((2, 40_000))
        for call in recording.calls:
            asked = replace(call, epsilon=factor * call.epsilon)
            drawn = replays(asked, 0, 40_000, rng)
            ratios += [log_likelihood_ratio(asked, 0, sums) for sums in drawn]
        bounds.append(lower_bound_epsilon(*ratios))
    assert bounds[0] <= 2.0 < bounds[1]


@dataclass(frozen=True)
class FirstOnly(Cohort):
    """Sums of which that of the four quadrants alone is seen."""

    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        found = super().sum(contributions, epsilon, sensitivity, rng)
        if len(found.counts) == 8:
            return found
        return replace(found, counts=0 * found.counts, revealed=0, survivors=0, deviation=0.0)


def test_the_map_is_of_the_last_sum_that_was_seen_and_of_all_its_people() -> None:
    people, positive, _ = city(3000, 16, 8)
    histogram = AdaptiveHierarchical(FirstOnly(100), schedule="even", rounds=3)
    side = SideData(histogram)
    first, *others = side.rounds_of(people, positive, 2.0, np.random.default_rng(8))
    assert first.asked == 1000 < first.best
    assert [step.survivors for step in others] == [0, 0]
    found = side.run(people, positive, 2.0, np.random.default_rng(8))
    has, has_not = first.counts[::2], first.counts[1::2]
    expected = proportion_interval(has, has_not, first.deviation, 0.95, shards=10)
    for each, values in zip(expected, (found.proportion, found.lower, found.upper), strict=True):
        np.testing.assert_array_equal(each[first.tree.labels], values)
    np.testing.assert_array_equal(found.density, first.tree.density(has + has_not))


def test_decisions_count_with_the_least_noise_that_is_still_possible() -> None:
    """Of as many elements as there are widths near the wanted one, by the rule in its docstring."""
    people, positive, _ = city(6000, 32, 9)
    cohort = Cohort(200)
    every = PrefixTree.quadrants((32, 32))
    for _ in range(3):
        every = every.split(every.elements)
    histogram = AdaptiveHierarchical(cohort, schedule="even", rounds=3, start=every)
    side = SideData(histogram, width=0.3)
    first, second, _ = side.rounds_of(people, positive, 4.0, np.random.default_rng(9))
    counts = first.counts * first.best / first.asked
    least = cohort.deviation(4.0, 1, first.best)

    def narrow(part: float) -> list[bool]:
        told = part * counts[::2], part * counts[1::2], least, 0.95, cohort.shard_count(first.best)
        _, lower, upper = proportion_interval(*told)
        return (upper - lower <= 0.3).tolist()  # type: ignore[no-any-return]

    split, kept = (dict(zip(every.elements, narrow(part), strict=True)) for part in (0.25, 1.0))
    expected = every.split([node for node in split if split[node] and node[0] < every.depth])
    assert second.tree == expected.collapse([node for node in kept if not kept[node]])


def test_no_node_is_deeper_than_the_histogram_lets_it() -> None:
    people, positive, _ = city(20_000, 32, 10)
    for depth in (2, 3):
        side = SideData(AdaptiveHierarchical(Cohort(), depth=depth), width=0.4)
        tree = side.run(people, positive, 20.0, np.random.default_rng(10)).tree
        assert max(node[0] for node in tree.elements) == depth
