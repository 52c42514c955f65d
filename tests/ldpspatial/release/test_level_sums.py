"""How levels are asked: budgets, where it begins, and that a level is asked only below its own."""

from dataclasses import replace
from itertools import pairwise
from math import sqrt
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpspatial import wasserstein
from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.levels import level_intervals
from ldpspatial.estimation.levels import NoisyLevel
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.distributed import Cohort, DistributedLevels
from ldpspatial.release.distributed.levels.distributed_levels import answers
from ldpspatial.release.level_sums import (
    Aim,
    Fineness,
    averaged,
    budget_parts,
    first_level,
    measure,
    of_wide_areas,
    planned,
)
from ldpspatial.release.registry import find_releases

Ints = NDArray[np.int64]


@given(st.integers(1, 20_000_000), st.integers(1, 14))
def test_parts_are_all_of_epsilon(micro: int, levels: int) -> None:
    parts = budget_parts(micro, levels)
    assert sum(parts) == micro
    assert min(parts) >= 1
    assert len(parts) <= levels
    assert all(one >= other for one, other in pairwise(parts))


@given(
    st.floats(-1e9, 1e12),
    st.floats(0, 1e6),
    st.integers(1, 14),
    st.sampled_from(get_args(Fineness)),
)
def test_the_first_level_exists(people: float, more: float, depth: int, fineness: Fineness) -> None:
    assert 1 <= first_level(people, depth, fineness) <= depth
    assert first_level(people, depth, fineness) <= first_level(people + more, depth, fineness)


@given(st.floats(1, 1e12), st.integers(1, 14))
def test_asked_once_is_no_finer_and_single_cells_alone_are_the_same(
    people: float, depth: int
) -> None:
    once, every_round = (first_level(people, depth, way) for way in ("once", "secure"))
    assert once <= every_round
    assert every_round < depth or once == depth


def test_clients_who_are_asked_once_begin_on_the_level_for_that() -> None:
    """8,500 people a noise are level 4 asked once, else level 5."""
    people, epsilon = 100_000, 0.3
    users = town(people, (64, 64))
    for asked, first in (("once", 4), ("every round", 5)):
        run = DistributedLevels(asked=asked).release(users, epsilon, np.random.default_rng(1))
        assert run.levels is not None
        measured = [k for k, level in enumerate(run.levels.levels) if level.variance < np.inf]
        assert measured[1] == first


@given(
    st.floats(-1e9, 1e12),
    st.integers(1, 20_000_000),
    st.integers(1, 14),
    st.sampled_from(["distance", "cells"]),
)
def test_a_plan_spends_all_and_for_cells_at_once(
    people: float, micro: int, depth: int, aim: Aim
) -> None:
    first, parts = planned(people, micro, depth, aim)
    assert sum(parts) == micro
    assert first + len(parts) - 1 <= depth
    assert aim == "distance" or (first, parts) == (depth, [micro])


def test_for_cells_all_of_epsilon_is_on_them() -> None:
    users = town(20_000)
    central = CentralLevels("cells").release(users, 1.0, np.random.default_rng(1))
    summed = DistributedLevels(Cohort(20_000), "cells").release(
        users, 1.0, np.random.default_rng(1)
    )
    for run, epsilon in ((central, 31 / 32), (summed, 1.0)):
        assert run.levels is not None
        asked = [level for level in run.levels.levels[1:] if level.variance < np.inf]
        assert [(level.level, len(level.nodes)) for level in asked] == [(5, 1024)]
        assert asked[0].variance == pytest.approx(noise_deviation(epsilon, 1) ** 2, rel=0.2)
    assert summed.facts["rounds"] == 1
    assert central.claim.epsilon == summed.claim.epsilon == 1.0


def test_each_aim_is_better_at_what_it_is_for() -> None:
    """10,000 people at epsilon .1, ten runs each."""
    users = town(10_000, (64, 64))
    truth = users.density
    errors = {}
    for aim in get_args(Aim):
        rng = np.random.default_rng(1)
        maps = [CentralLevels(aim).release(users, 0.1, rng).density for _ in range(10)]
        far = np.mean([wasserstein(truth, each) for each in maps])
        errors[aim] = far, np.mean([((truth - each) ** 2).sum() for each in maps])
    assert errors["distance"][0] < 0.7 * errors["cells"][0]
    assert errors["cells"][1] < 0.9 * errors["distance"][1]


@pytest.mark.parametrize("release", [CentralLevels(), DistributedLevels(Cohort())])
def test_one_cell_more_a_side_costs_nothing(release: CentralLevels | DistributedLevels) -> None:
    """Nodes are as wide on 33 cells as on 32: with slivers along the border W2 was 2 to 3.6 times.

    Of eight runs each the ratio of means is 1.0 here, and its standard deviation below a tenth.
    """
    places = np.random.default_rng(0).normal(0.5, 0.13, (1000, 2)).clip(0, 0.999)
    errors = []
    for side in (32, 33):
        row, column = (places * side).astype(int).T
        users = cells_by_user(range(1000), row * side + column, (side, side))
        runs = [release.release(users, 0.3, np.random.default_rng(seed)) for seed in range(8)]
        errors.append(np.mean([wasserstein(users.density, r.density) / side for r in runs]))
    assert errors[1] < 1.4 * errors[0]


def test_an_unknown_aim_is_refused() -> None:
    for release in (CentralLevels, DistributedLevels):
        with pytest.raises(InputError, match="aim must be one of distance, cells, got 'both'"):
            release(aim="both")  # type: ignore[arg-type]
    central = find_releases(["central-levels:aim=cells"])
    assert central == {"central-levels:aim=cells": CentralLevels("cells")}


class Asked:
    """Answers without noise, and notes what was asked."""

    def __init__(self, tree: Quadtree, truth: NDArray[np.float64]):
        self.tree = tree
        self.truth = truth
        self.calls: list[tuple[int, Ints, int]] = []

    def __call__(self, level: int, nodes: Ints, micro: int) -> NoisyLevel:
        self.calls.append((level, nodes, micro))
        sums = [self.truth[self.tree.cells_below(level, node)].sum() for node in nodes.tolist()]
        return NoisyLevel(level, nodes, np.array(sums, float), 2 * (1e6 / micro) ** 2)


def test_crowds_are_followed_and_empty_places_are_not() -> None:
    tree = Quadtree((64, 64))
    truth = np.zeros((64, 64))
    truth[5, 7] = truth[50, 60] = 1000
    asked = Asked(tree, truth)
    whole = NoisyLevel(0, np.array([0]), np.array([2000.0]), 0.0)
    found = measure(tree, whole, 2, budget_parts(1_000_000, 5), asked)
    assert [len(level.nodes) for level in found] == [1, 4, 16, 8, 8, 8, 8]
    assert sum(micro for _, _, micro in asked.calls) == 1_000_000


@given(st.integers(1, 20_000_000), st.integers(5, 9))
def test_wide_areas_are_asked_once_more_beside_single_cells(micro: int, depth: int) -> None:
    wide = of_wide_areas(depth, [micro], depth)
    assert 9 * wide <= micro - wide
    tree = Quadtree((32, 32))
    asked = Asked(tree, np.ones((32, 32)))
    whole = NoisyLevel(0, np.array([0]), np.array([1024.0]), 0.0)
    found = measure(tree, whole, 5, [micro - wide], asked, wide)
    assert [level.level for level in found] == list(range(6))
    calls = [(level, len(nodes), each) for level, nodes, each in asked.calls]
    assert calls == [(2, 16, wide)] * (wide > 0) + [(5, 1024, micro - wide)]
    assert [bool(np.isfinite(level.variance)) for level in found[1:5]] == [
        False,
        wide > 0,
        *2 * [False],
    ]


def test_wide_areas_are_not_asked_where_they_say_nothing_new() -> None:
    assert of_wide_areas(4, [100], 4) == 0  # sixteen cells each
    assert of_wide_areas(5, [80, 20], 6) == 0  # coarser nodes are asked already


def test_where_nobody_crowds_the_rest_makes_the_level_surer() -> None:
    tree = Quadtree((64, 64))
    asked = Asked(tree, np.full((64, 64), 0.01))
    whole = NoisyLevel(0, np.array([0]), np.array([41.0]), 0.0)
    found = measure(tree, whole, 2, budget_parts(1_000_000, 5), asked)
    assert [call[0] for call in asked.calls] == [2, 2]
    assert [call[2] for call in asked.calls] == [800_000, 200_000]
    assert found[-1].variance == pytest.approx(50 / 17, 1e-5)  # 2 / epsilon^2 each


def test_measurements_are_averaged_by_inverse_variances() -> None:
    one = NoisyLevel(1, np.arange(4), np.full(4, 10.0), 1.0)
    other = NoisyLevel(1, np.arange(4), np.full(4, 20.0), 4.0)
    both = averaged(one, other)
    assert both.sums.tolist() == [12.0] * 4
    assert both.variance == pytest.approx(0.8)
    assert averaged(replace(one, step=1.0), replace(other, step=1.5)).step == 1.5
    tails = averaged(replace(one, excess=1.0), replace(other, excess=1.5))
    assert tails.excess == pytest.approx(0.8**2 * 1.0 + 0.2**2 * 1.5)
    part = averaged(replace(one, per_person=0.5), replace(other, per_person=0.25))
    assert part.per_person == pytest.approx(0.8**2 * 0.5 + 0.2**2 * 0.25)
    nothing = NoisyLevel.unmeasured(1, np.arange(4))
    assert averaged(one, nothing) is averaged(nothing, one) is one


@pytest.mark.parametrize(("epsilon", "least"), [(0.5, 0.0), (2.0, 0.0), (1400.0, 2.9)])
def test_the_excess_of_noise_falls_with_the_shards(epsilon: float, least: float) -> None:
    """It is the fourth moment of simulated noise: within .06 of that of 200,000 sums."""
    users = cells_by_user(np.arange(40), np.zeros(40, np.int64), (512, 512))
    run = DistributedLevels(Cohort(shard_size=10), "cells").release(
        users, epsilon, np.random.default_rng(3)
    )
    assert run.levels is not None
    found = run.levels.levels[-1]
    assert least <= found.excess <= 3
    if not least:
        noise = found.sums[1:]
        assert noise.var() == pytest.approx(found.variance, rel=0.02)
        assert found.excess == pytest.approx((noise**4).mean() / noise.var() ** 2 - 3, abs=0.06)


def town(users: int, shape: tuple[int, int] = (32, 32), seed: int = 1) -> UserCells:
    rng = np.random.default_rng(seed)
    law = rng.gamma(0.1, 1, shape)
    cells = rng.choice(law.size, size=users, p=(law / law.sum()).ravel())
    return cells_by_user(np.arange(users), cells, shape)


@pytest.mark.parametrize("epsilon", [1e-6, 3e-5, 0.001])
def test_the_least_epsilon_has_a_map_in_the_central_model(epsilon: float) -> None:
    for users in (town(200), UserCells((32, 32), town(3).visits[:0])):
        run = CentralLevels().release(users, epsilon, np.random.default_rng(1))
        assert run.density.sum() == pytest.approx(1)
        assert run.claim.epsilon == epsilon


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (5, 13), (64, 64)])
def test_distributed_maps_are_densities_of_any_shape(shape: tuple[int, int]) -> None:
    for epsilon in (0.01, 1.0, 20.0):
        users = town(300, shape)
        run = DistributedLevels().release(users, epsilon, np.random.default_rng(1))
        assert run.density.shape == shape
        assert run.density.min() >= 0
        assert run.density.sum() == pytest.approx(1)
        assert run.claim.epsilon == epsilon
        assert run.claim.neighbours == "zero"


def test_much_epsilon_gives_the_truth() -> None:
    users = town(3000)
    run = DistributedLevels(Cohort()).release(users, 20.0, np.random.default_rng(1))
    assert np.abs(run.density - users.density).sum() < 0.01


def test_shards_move_the_first_level_up() -> None:
    """Noise of 16 shards has four times the deviation: a level coarser."""
    users = town(16_000, (64, 64))
    rng = np.random.default_rng(1)
    one = DistributedLevels(Cohort(shard_size=16_000)).release(users, 1.0, rng)
    many = DistributedLevels(Cohort(shard_size=1000)).release(users, 1.0, rng)
    assert one.levels is not None
    assert many.levels is not None
    first = [
        next(k for k, level in enumerate(run.levels.levels[1:], 1) if level.variance < np.inf)
        for run in (one, many)
    ]
    assert first[0] == first[1] + 1


def test_who_drops_out_is_stood_in_for() -> None:
    users = town(5000)
    cohort = Cohort(drop_out=0.1, tolerated=0.2)
    run = DistributedLevels(cohort).release(users, 4.0, np.random.default_rng(1))
    assert run.levels is not None
    missing = [level.per_person for level in run.levels.levels]
    assert missing[0] == 0  # how many clients there are is public
    assert missing[-1] == pytest.approx(1 / 9, rel=0.1)
    assert run.density.sum() == pytest.approx(1)
    assert np.abs(run.density - users.density).sum() < 0.3
    nobody = Cohort(drop_out=0.5, tolerated=0.1)
    withheld = DistributedLevels(nobody).release(users, 4.0, np.random.default_rng(1))
    assert withheld.density == pytest.approx(np.full((32, 32), 1 / 1024))
    assert withheld.levels is not None
    nothing_known = level_intervals(withheld.levels)
    assert (nothing_known.lower.max(), nothing_known.upper.min()) == (0, 1)


def test_an_answer_is_one_at_most() -> None:
    """The noise is made for an L1 norm of 1, whatever nodes are asked."""
    rng = np.random.default_rng(1)
    inside = rng.integers(0, 64, 200)
    for asked in (np.arange(64), np.array([3, 9, 60]), np.array([7])):
        rows = answers(inside, asked)
        assert rows.shape == (200, len(asked))
        norms = rows.sum(axis=1)
        assert norms.tolist() == np.isin(inside, asked).astype(int).tolist()
        who = rows.nonzero()
        assert (asked[who[1]] == inside[who[0]]).all()


def test_noise_is_that_of_the_claim() -> None:
    """Sums of the first level on empty nodes: the variance is within 5 standard errors."""
    users = cells_by_user(np.arange(50), np.zeros(50, int), (16, 16))
    rng = np.random.default_rng(1)
    for release in (CentralLevels(), DistributedLevels(Cohort())):
        seen = []
        told = []
        for _ in range(600):
            levels = release.release(users, 0.8, rng).levels
            assert levels is not None
            first = next(level for level in levels.levels[1:] if level.variance < np.inf)
            if first.level == 2:
                seen.append(first.sums[-1] / sqrt(first.variance))
                told.append(first.variance)
        found = np.array(seen)
        # A Laplace variable of variance 1 has a fourth moment of 6.
        assert abs((found**2).mean() - 1) < 5 * sqrt(5 / len(found))
        assert len(found) > 300
