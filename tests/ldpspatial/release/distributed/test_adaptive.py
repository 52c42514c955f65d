"""The adaptive hierarchical histogram, run by run."""

from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, log

import numpy as np
import pytest
from scipy import sparse

from client_sdk import DesignWarning, Grid
from ldpspatial.errors import InputError
from ldpspatial.places.quadtree import ROOT, prefix_of, quadrants
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.non_private_tree import NonPrivateTree
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import OneLocation, grown, one_hot
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum
from tests.support import naive_prefix_tree as naive
from tests.support.crowds import crowd

ALL = "every round"  # the paper's form
QUIET = 1000.0  # each of ten rounds gets 100: noise other than 0 has a chance below e^-99


# --- the schedule


def test_the_rule_at_its_borders() -> None:
    tree = PrefixTree.quadrants((4, 4))
    after = grown(tree, np.array([8.0, 8.1, 2.0, 2.1]), 8.0, 10)
    kept = {(1, 0, 0), (1, 0, 1), (1, 1, 1), *quadrants((1, 0, 1))}
    assert after.nodes == kept  # split above 8 alone, removed at 2 and below
    assert grown(tree, np.array([8.0, 8.1, 2.0, 2.1]), 8.0, 1).nodes == kept & tree.nodes


def test_without_noise_the_run_is_the_twin_s() -> None:
    people = crowd(400, 12, 5)  # 12: not a power of two
    at = [divmod(int(cell), 12) for cell in people.visits.indices]
    trees = naive.exact_run(at, 10.0, 10, (12, 12))
    private = AdaptiveHierarchical(Cohort(), schedule="even", threshold=10.0, asked=ALL)
    runs = (
        private.rounds_of(people, QUIET, np.random.default_rng(6)),
        NonPrivateTree().rounds_of(people, np.random.default_rng(6)),
    )
    for trace in runs:
        assert len(trace) >= len(trees) > 3
        for step, twin in zip(trace, trees, strict=False):
            assert {prefix_of(node) for node in step.tree.nodes} | {""} == twin
            counts = dict(zip(map(prefix_of, step.tree.elements), step.counts, strict=True))
            assert counts == naive.counted(twin, at, (12, 12))


def test_the_same_position_answers_in_every_round() -> None:
    ids = np.repeat(np.arange(50), 6)
    cells = np.random.default_rng(7).integers(0, 64, len(ids))
    people = cells_by_user(ids, cells, (8, 8))
    release = AdaptiveHierarchical(Cohort(), schedule="even", threshold=2.0, asked=ALL)
    trace = release.rounds_of(people, QUIET, np.random.default_rng(8))
    assert len(trace) > 2
    for before, after in pairwise(trace):
        for part in before.tree.elements:
            if part not in after.tree.elements and part in after.tree.nodes:  # split in full
                inside = [after.tree.elements.index(node) for node in quadrants(part)]
                whole = before.counts[before.tree.elements.index(part)]
                assert after.counts[inside].sum() == whole


def test_most_visited_cells_can_answer() -> None:
    people = cells_by_user([1, 1, 1, 2], [0, 0, 3, 3], (2, 2))
    release = AdaptiveHierarchical(Cohort(), locations=OneLocation("most visited"))
    found = release.release(people, QUIET, np.random.default_rng(9))
    assert found.density.tolist() == [[0.5, 0.0], [0.0, 0.5]]


def test_a_run_goes_on_from_another_s_tree() -> None:
    people = crowd(3000, 32, 10)
    first = AdaptiveHierarchical().rounds_of(people, 1.0, np.random.default_rng(10))
    text = first[-1].tree.to_json()
    again = AdaptiveHierarchical(start=PrefixTree.from_json(text))
    trace = again.rounds_of(people, 1.0, np.random.default_rng(11))
    assert trace[0].tree == first[-1].tree
    assert trace[0].asked > first[0].asked
    assert "the tree of the first round" in " ".join(again.claim(1.0).conditions)


# --- drop-outs, modulus


def test_withheld_sums_leave_the_tree_and_the_map_alone() -> None:
    people = crowd(1000, 16, 12)
    release = AdaptiveHierarchical(cohort=Cohort(drop_out=0.5), rounds=4, asked=ALL)
    trace = release.rounds_of(people, 1.0, np.random.default_rng(12))
    assert len(trace) == 4
    assert {step.tree for step in trace} == {PrefixTree.quadrants((16, 16))}
    found = release.release(people, 1.0, np.random.default_rng(12))
    np.testing.assert_allclose(found.density, 1 / 256)
    assert found.facts["survivors"] == 0
    assert found.claim.epsilon == 1.0


@dataclass(frozen=True)
class LastWithheld(Cohort):
    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        seen = super().sum(contributions, epsilon, sensitivity, rng)
        if epsilon < 0.5:
            return seen
        return NoisySum(0 * seen.counts, seen.shards, 0, seen.clients, 0, 0.0)


def test_a_withheld_last_round_falls_back_on_the_one_before() -> None:
    people = crowd(10_000, 16, 13)
    release = AdaptiveHierarchical(cohort=LastWithheld(), asked=ALL)
    trace = release.rounds_of(people, 1.0, np.random.default_rng(13))
    found = release.release(people, 1.0, np.random.default_rng(13))
    assert trace[-1].survivors == 0
    before = trace[-2]
    np.testing.assert_array_equal(found.density, before.tree.density(before.counts))
    assert (found.facts["leaves"], found.facts["survivors"]) == (len(before.tree), before.survivors)


def test_ten_percent_of_drop_outs_cost_little() -> None:
    people = crowd(20_000, 32, 14)
    cohort = Cohort(shard_size=5000, drop_out=0.1, tolerated=0.13)
    found = AdaptiveHierarchical(cohort=cohort, asked=ALL).release(
        people, 1.0, np.random.default_rng(14)
    )
    assert 17_000 < float(found.facts["survivors"]) < 19_000
    error = np.abs(found.density - people.density).sum()
    full = AdaptiveHierarchical(cohort=Cohort(shard_size=5000), asked=ALL)
    baseline = full.release(people, 1.0, np.random.default_rng(14))
    assert error < 1.2 * np.abs(baseline.density - people.density).sum()


def test_a_modulus_that_may_be_too_small_is_reported() -> None:
    people = crowd(1000, 8, 15)
    release = AdaptiveHierarchical(cohort=Cohort(bits=11), asked=ALL)
    with pytest.warns(DesignWarning, match="11 bits"):
        found = release.release(people, 1.0, np.random.default_rng(15))
    assert float(found.facts["rounds_that_may_wrap"]) > 0


# --- the result and its claim


def test_the_release_beside_its_rounds() -> None:
    people = crowd(4000, 20, 16)
    release = AdaptiveHierarchical(cohort=Cohort(shard_size=1500), asked=ALL)
    trace = release.rounds_of(people, 2.0, np.random.default_rng(16))
    found = release.release(people, 2.0, np.random.default_rng(16))
    assert found.density.shape == (20, 20)
    assert found.density.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(found.density, trace[-1].tree.density(trace[-1].counts))
    assert found.facts == {
        "rounds": len(trace),
        "vector_length": sum(len(step.tree) for step in trace),
        "leaves": len(trace[-1].tree),
        "epsilons": " ".join(f"{step.spent:.4g}" for step in trace),
        "asked": " ".join(["4000"] * len(trace)),
        "survivors": 4000,
        "rounds_that_may_wrap": 0,
    }
    assert (found.claim.model, found.claim.neighbours) == ("distributed", "zero")
    assert (found.claim.epsilon, found.claim.unit, found.claim.delta) == (2.0, "user", 0.0)
    words = " ".join(found.claim.conditions)
    assert "at most 10 rounds composed" in words
    assert "3 disjoint shards of at most 1334 clients" in words
    assert "clients omit or reveal their noise" in words
    assert set(release.claim(2.0).conditions) < set(found.claim.conditions)


def test_counts_from_the_threshold_on_can_make_the_map() -> None:
    people = crowd(400, 8, 5)
    release = AdaptiveHierarchical(Cohort(), calibration=1.0, shown="threshold")
    everything = replace(release, shown="positive")
    final = release.rounds_of(people, 1.0, np.random.default_rng(6))[-1]
    low = (final.counts > 0) & (final.counts < final.threshold)
    assert low.any()
    counts = np.where(final.counts < final.threshold, 0.0, final.counts)
    found = release.release(people, 1.0, np.random.default_rng(6)).density
    np.testing.assert_array_equal(found, final.tree.density(counts))
    whole = everything.release(people, 1.0, np.random.default_rng(6)).density
    np.testing.assert_array_equal(whole, final.tree.density(final.counts))
    assert (found == 0).sum() > (whole == 0).sum()


def test_positions_go_in_as_for_any_release() -> None:
    points = np.random.default_rng(17).uniform(0, 4, (200, 2))
    grid = Grid.plane(0, 0, 4.0, 4)
    found = AdaptiveHierarchical().run(points, grid, 1.0, np.random.default_rng(17))
    assert found.density.shape == (4, 4)


def test_the_tree_without_noise_promises_nothing() -> None:
    found = NonPrivateTree().release(crowd(500, 16, 18), 1.0, np.random.default_rng(18))
    assert (found.claim.model, found.claim.epsilon) == ("none", inf)
    assert str(found.claim) == "no privacy"
    assert float(found.facts["vector_length"]) > 20
    assert NonPrivateTree(rounds=1).release(
        crowd(500, 16, 18), 1.0, np.random.default_rng(18)
    ).facts == {"rounds": 1, "vector_length": 4, "leaves": 4}


def test_bad_fields_are_refused() -> None:
    with pytest.raises(InputError, match=r"expansion must be a number in \[1, inf\], got 0"):
        AdaptiveHierarchical(expansion=0)
    for release in (AdaptiveHierarchical, NonPrivateTree):
        with pytest.raises(InputError, match="depth must be a whole number from 1 to 14, got 15"):
            release(depth=15)
    with pytest.raises(InputError, match="threshold must be 'adaptive' or a number, got 'fixed'"):
        AdaptiveHierarchical(threshold="fixed")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="shown must be one of positive, threshold, got 'all'"):
        AdaptiveHierarchical(shown="all")  # type: ignore[arg-type]


def test_bad_arguments_are_refused() -> None:
    people, rng = crowd(10, 4, 20), np.random.default_rng(20)
    other = AdaptiveHierarchical(start=PrefixTree.quadrants((4, 8)))
    with pytest.raises(InputError, match=r"a tree of the map \(4, 4\), got \(4, 8\)"):
        other.release(people, 1.0, rng)
    with pytest.raises(InputError, match="epsilon must be at least a millionth"):
        AdaptiveHierarchical().release(people, 9e-7, rng)


def test_a_map_of_one_pixel() -> None:
    people = cells_by_user([1, 2], [0, 0], (1, 1))
    trace = AdaptiveHierarchical().rounds_of(people, log(2), np.random.default_rng(21))
    assert {step.tree.elements for step in trace} == {(ROOT,)}
    assert one_hot(np.array([2, 0]), 3).toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
