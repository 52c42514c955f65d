from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpspatial.metrics.exact.halves import Halves
from ldpspatial.metrics.exact.table_pricing import SIDE, TablePricing
from tests.support import naive_pricing
from tests.support.naive_pricing import ABSENT, Ints

LARGEST = 2**61 - 1

SHAPES = [
    (1, 1),
    (1, 3 * SIDE + 1),
    (2 * SIDE + 3, 1),
    (SIDE, SIDE),
    (SIDE + 1, 2 * SIDE - 1),
    (3 * SIDE, 2 * SIDE),
    (29, 34),
]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)

Mask: TypeAlias = NDArray[np.bool_]

COSTS = ["euclidean", "cityblock squared", "steps", "flat"]
every_cost = pytest.mark.parametrize("kind", COSTS)


def table(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
    """A table of costs, 0 at 0 and nondecreasing along both axes."""
    down, right = np.indices(shape)
    if kind == "euclidean":
        distances: Ints = np.rint(np.hypot(down, right) * 2**20).astype(np.int64)
        return distances
    if kind == "cityblock squared":
        squares: Ints = (down + right) ** 2
        return squares
    if kind == "steps":  # neither convex nor smooth
        steps: Ints = rng.integers(0, 50, shape) * (rng.random(shape) < 0.3)
        steps[0, 0] = 0
        steps = steps.cumsum(axis=0).cumsum(axis=1)
        return steps
    return np.zeros(shape, np.int64)


def nodes(shape: tuple[int, ...], share: float, rng: np.random.Generator) -> Mask:
    """A mask (R, C) of some share of the cells, of one at least."""
    mask = rng.random(shape) < share
    mask[tuple(rng.integers(0, shape))] = True
    return mask


def duals(mask: Mask, scale: int, rng: np.random.Generator) -> Ints:
    return np.where(mask, rng.integers(-scale, scale + 1, mask.shape), ABSENT)


def feasible_limit(value: Ints, sources: Mask, cost: Ints) -> Ints:
    """The largest dual values of sources with which no arc is violated."""
    return np.where(sources, naive_pricing.least_reduced(value, cost), ABSENT)


def check(pricing: TablePricing, value: Ints, limit: Ints, cost: Ints, threads: int = 1) -> int:
    """Compare one call with the twin; return how many sources have a violated arc."""
    given_value, given_limit = value.copy(), limit.copy()
    with Halves(threads) as halves:
        best, target = pricing.cheapest(value, limit, halves)
    assert np.array_equal(value, given_value)
    assert np.array_equal(limit, given_limit)
    assert np.array_equal(best, naive_pricing.best_of(value, limit, cost))
    violated = best < limit
    assert np.all(target[~violated] == -1)
    cell = target[violated]
    assert np.all(value.ravel()[cell] != ABSENT)
    between = naive_pricing.cost_matrix(cost, value.shape)[np.flatnonzero(violated), cell]
    assert np.array_equal(between - value.ravel()[cell], best[violated])
    return int(violated.sum())


@every_shape
@every_cost
@pytest.mark.parametrize("share", [1.0, 0.5, 0.03])
def test_unrelated_dual_values(shape: tuple[int, ...], kind: str, share: float) -> None:
    rng = np.random.default_rng(1)
    cost = table(kind, shape, rng)
    sources, targets = nodes(shape, share, rng), nodes(shape, share, rng)
    pricing = TablePricing(cost, sources, targets)
    scale = int(cost.max()) // 4 + 3
    for _ in range(4):
        check(pricing, duals(targets, scale, rng), duals(sources, scale, rng), cost)


@every_shape
@every_cost
def test_dual_values_that_move_a_little_at_each_call(shape: tuple[int, ...], kind: str) -> None:
    rng = np.random.default_rng(2)
    cost = table(kind, shape, rng)
    sources, targets = nodes(shape, 0.7, rng), nodes(shape, 0.7, rng)
    pricing = TablePricing(cost, sources, targets)
    value = duals(targets, int(cost.max()) // 8, rng)
    step = max(int(cost[tuple(min(1, n - 1) for n in shape)]), 4)
    for _ in range(12):
        limit = feasible_limit(value, sources, cost)
        assert check(pricing, value, limit, cost) == 0
        raised = (rng.random(shape) < 0.1) & sources
        limit[raised] += rng.integers(1, step, int(raised.sum()))
        assert check(pricing, value, limit, cost) == raised.sum()
        # A pivot moves a part of the tree: sources there fall by as much as targets rise.
        part, shift = rng.random(shape) < rng.random(), int(rng.integers(-step, step))
        value[part & targets] += shift
        limit[part & sources] -= shift
        check(pricing, value, limit, cost)


@pytest.mark.parametrize("shape", [(1, 2 * SIDE + 3), (2 * SIDE + 3, 1), (2 * SIDE + 1, 3 * SIDE)])
def test_a_source_and_a_target_alone(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(6)
    cost = table("euclidean", shape, rng)
    for source, target in rng.integers(0, shape, (150, 2, 2)):
        sources, targets = np.zeros(shape, bool), np.zeros(shape, bool)
        sources[tuple(source)] = targets[tuple(target)] = True
        value = duals(targets, 2**30, rng)
        limit = feasible_limit(value, sources, cost)
        assert check(TablePricing(cost, sources, targets), value, limit, cost) == 0
        limit[sources] += 1
        assert check(TablePricing(cost, sources, targets), value, limit, cost) == 1


def test_one_violated_arc_among_all_is_found() -> None:
    rng = np.random.default_rng(3)
    shape = (3 * SIDE + 2, 4 * SIDE - 1)
    cost = table("euclidean", shape, rng)
    everywhere = np.ones(shape, bool)
    value = duals(everywhere, 2**20, rng)
    limit = feasible_limit(value, everywhere, cost)
    pricing = TablePricing(cost, everywhere, everywhere)
    assert check(pricing, value, limit, cost) == 0
    for row, column in rng.integers(0, shape, (15, 2)):
        limit[row, column] += 1
        assert check(pricing, value, limit, cost) == 1
        limit[row, column] -= 1
        assert check(pricing, value, limit, cost) == 0


def test_shifting_all_dual_values_against_each_other_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    shape = (20, 20)
    cost = table("cityblock squared", shape, rng)
    sources, targets = nodes(shape, 0.6, rng), nodes(shape, 0.6, rng)
    value, limit = duals(targets, 200, rng), duals(sources, 200, rng)
    pricing = TablePricing(cost, sources, targets)
    with Halves(1) as halves:
        _, target = pricing.cheapest(value, limit, halves)
        for shift in (10**6, -(2**60), 2**60):
            moved = (
                np.where(targets, value + shift, ABSENT),
                np.where(sources, limit - shift, ABSENT),
            )
            assert np.array_equal(pricing.cheapest(*moved, halves)[1], target)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(SHAPES), st.sampled_from([1, 2**40, LARGEST]))
def test_dual_values_up_to_the_largest(seed: int, shape: tuple[int, int], scale: int) -> None:
    rng = np.random.default_rng(seed)
    cost = np.sort(np.sort(rng.integers(0, LARGEST, shape, endpoint=True), axis=0), axis=1)
    cost[0, 0] = 0
    sources, targets = nodes(shape, 0.5, rng), nodes(shape, 0.5, rng)
    pricing = TablePricing(cost, sources, targets)
    for _ in range(4):
        value, limit = duals(targets, scale, rng), duals(sources, scale, rng)
        if rng.random() < 0.5:  # all at the ends of the range
            value = np.where(targets, np.where(value > 0, scale, -scale), ABSENT)
            limit = np.where(sources, np.where(limit > 0, scale, -scale), ABSENT)
        check(pricing, value, limit, cost)


@every_cost
def test_two_threads_and_no_history_give_the_same_targets(kind: str) -> None:
    rng = np.random.default_rng(5)
    shape = (3 * SIDE + 5, 3 * SIDE)
    cost = table(kind, shape, rng)
    sources, targets = nodes(shape, 0.8, rng), nodes(shape, 0.8, rng)
    alone, together = (TablePricing(cost, sources, targets) for _ in range(2))
    value = duals(targets, int(cost.max()) // 8, rng)
    for _ in range(6):
        limit = feasible_limit(value, sources, cost)
        limit[sources] += rng.integers(-3, 4, int(sources.sum()))
        with Halves(1) as halves, Halves(2) as both:
            best, target = TablePricing(cost, sources, targets).cheapest(value, limit, halves)
            for pricing, threads in ((alone, halves), (together, both)):
                found = pricing.cheapest(value, limit, threads)
                assert np.array_equal(found[0], best)
                assert np.array_equal(found[1], target)
        value[targets] += rng.integers(-3, 4, int(targets.sum()))
