from itertools import pairwise

import numpy as np
import pytest

from ldpspatial.metrics.exact.halves import Halves
from ldpspatial.metrics.exact.network_simplex import Ints, NodeIds
from ldpspatial.metrics.exact.pricing import (
    ABSENT,
    SeparablePricing,
    cheapest_in_columns,
    cheapest_in_rows,
)
from tests.support import naive_transport as naive

SHAPES = [(1, 1), (1, 2), (2, 1), (1, 13), (13, 1), (2, 2), (3, 5), (4, 4), (7, 6), (9, 17)]
COSTS = ["squares", "steps", "cubes", "nothing", "bends"]


def convex(rng: np.random.Generator, kind: str, size: int) -> Ints:
    moved = np.arange(size)
    if kind == "bends":  # slopes that often stay the same, and sometimes rise a lot
        slopes = np.cumsum(rng.integers(0, 9, size) * (rng.random(size) < 0.3))
        return np.concatenate([[0], np.cumsum(slopes[: size - 1])])
    costs: Ints = {
        "squares": 3 * moved**2,
        "steps": moved,
        "cubes": moved**3,
        "nothing": 0 * moved,
    }[kind]
    return costs


def random_values(
    rng: np.random.Generator, shape: tuple[int, int], share: float, most: int
) -> Ints:
    """Dual values up to `most`; about this share of the cells has one, a random cell always."""
    value = rng.integers(-most, most, shape, endpoint=True)
    absent = rng.random(shape) >= share
    absent[tuple(rng.integers(0, shape))] = False
    return np.where(absent, ABSENT, value)


def slope_of(cost: Ints) -> int:
    slopes = set(np.diff(cost).tolist())
    return -1 if len(slopes) > 1 else max(slopes, default=0)


def price(
    value: Ints, rows: Ints, columns: Ints, pieces: int, swept: bool = True
) -> tuple[Ints, NodeIds]:
    """Run both kernels, each over as many pieces of its loop; sweep where that is allowed."""
    present = np.flatnonzero((value != ABSENT).any(axis=1))
    slopes = (slope_of(rows), slope_of(columns)) if swept else (-1, -1)
    shape = (value.shape[1], len(present))
    least, partner = np.full(shape, -7), np.full(shape, -7, np.int32)
    best: Ints = np.full(value.shape, -7)
    target: NodeIds = np.full(value.shape, -7, np.int32)
    stale = np.zeros(value.shape[1], bool)
    lines = np.arange(len(present))
    for begin, end in cuts(len(present), pieces):
        cheapest_in_rows(
            begin, end, lines, value, present, columns, slopes[1], least, partner, stale
        )
    assert stale.all()
    lines = np.arange(value.shape[1])
    for begin, end in cuts(value.shape[1], pieces):
        cheapest_in_columns(
            begin, end, lines, present, rows, slopes[0], least, partner, best, target
        )
    return best, target


def cuts(size: int, pieces: int) -> list[tuple[int, int]]:
    """Bounds of the pieces of 0 .. size, the last one first: their order must not matter."""
    ends = [size * k // pieces for k in range(pieces + 1)]
    return list(pairwise(ends))[::-1]


def check(value: Ints, rows: Ints, columns: Ints) -> None:
    expected = naive.cheapest(value, ABSENT, (rows, columns))
    for swept in (True, False):
        best, target = price(value, rows, columns, 1, swept)
        assert np.array_equal(best, expected)
        # Which of several equally good targets is found does not matter: it must be one of them.
        for cell in np.ndindex(value.shape):
            aim = divmod(int(target[cell]), value.shape[1])
            assert value[aim] != ABSENT
            assert best[cell] == naive.unit_cost((rows, columns), cell, aim) - int(value[aim])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", COSTS)
def test_equals_the_minimum_over_all_pairs(shape: tuple[int, int], kind: str) -> None:
    rng = np.random.default_rng([1, *shape, len(kind)])
    for share in (1.0, 0.5, 0.1):
        rows, columns = convex(rng, kind, shape[0]), convex(rng, kind, shape[1])
        for most in (0, 1, 20, int(rows[-1] + columns[-1])):
            check(random_values(rng, shape, share, most), rows, columns)


@pytest.mark.parametrize("first", COSTS)
@pytest.mark.parametrize("second", COSTS)
def test_rows_and_columns_have_costs_of_their_own(first: str, second: str) -> None:
    rng = np.random.default_rng([2, len(first), len(second)])
    shape = (6, 11)
    rows, columns = convex(rng, first, shape[0]), 5 * convex(rng, second, shape[1])
    check(random_values(rng, shape, 0.4, 30), rows, columns)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (6, 1), (5, 7)])
def test_one_target_is_the_partner_of_all(shape: tuple[int, int]) -> None:
    rows, columns = np.arange(shape[0]) ** 2, np.arange(shape[1])
    for aim in np.ndindex(shape):
        value = np.full(shape, ABSENT)
        value[aim] = 10
        check(value, rows, columns)
        assert (price(value, rows, columns, 1)[1] == aim[0] * shape[1] + aim[1]).all()


@pytest.mark.parametrize("kind", COSTS)
def test_potentials_of_an_optimum_have_many_ties(kind: str) -> None:
    # Values that are themselves a least cost are tight at many pairs at once.
    rng = np.random.default_rng([3, len(kind)])
    shape = (8, 7)
    rows, columns = convex(rng, kind, shape[0]), convex(rng, kind, shape[1])
    value = random_values(rng, shape, 0.2, 15)
    tight = -naive.cheapest(value, ABSENT, (rows, columns))
    check(tight, rows, columns)
    check(np.where(rng.random(shape) < 0.5, tight, ABSENT), rows, columns)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pieces", [2, 3, 20])
def test_pieces_of_the_loops_give_the_same(shape: tuple[int, int], pieces: int) -> None:
    rng = np.random.default_rng([4, *shape])
    rows, columns = convex(rng, "squares", shape[0]), convex(rng, "steps", shape[1])
    value = random_values(rng, shape, 0.5, 9)
    best, target = price(value, rows, columns, 1)
    pieced_best, pieced_target = price(value, rows, columns, pieces)
    assert np.array_equal(best, pieced_best)
    assert np.array_equal(target, pieced_target)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", COSTS)
def test_one_pricing_serves_ever_new_values(kind: str, threads: int) -> None:
    rng = np.random.default_rng([5, len(kind)])
    shape = (7, 10)
    rows, columns = convex(rng, kind, shape[0]), convex(rng, "steps", shape[1])
    targets = random_values(rng, shape, 0.4, 1) != ABSENT
    pricing = SeparablePricing(rows, columns, targets)
    with Halves(threads) as halves:
        for _ in range(3):
            value = np.where(targets, rng.integers(-30, 30, shape), ABSENT)
            best, target = pricing.cheapest(value, np.full(shape, 10**6), halves)
            assert np.array_equal(best, naive.cheapest(value, ABSENT, (rows, columns)))
            assert np.array_equal(target, price(value, rows, columns, 1)[1])


@pytest.mark.parametrize("kind", ["squares", "steps"])
def test_after_small_changes_the_answer_is_that_of_a_fresh_start(kind: str) -> None:
    rng = np.random.default_rng(9)
    shape = (19, 23)
    rows, columns = convex(rng, kind, shape[0]), convex(rng, kind, shape[1])
    targets = random_values(rng, shape, 0.4, 1) != ABSENT
    pricing = SeparablePricing(rows, columns, targets)
    value = np.where(targets, rng.integers(-30, 30, shape), ABSENT)
    with Halves(1) as halves:
        for size in (0, 1, 1, 3, 0, 8, 30, 1):
            places = rng.integers(0, shape, (size, 2))
            for row, column in places[targets[tuple(places.T)]]:
                value[row, column] += rng.integers(-40, 40)
            best, target = pricing.cheapest(value, np.full(shape, 10**6), halves)
            fresh = price(value, rows, columns, 1)
            assert np.array_equal(best, fresh[0])
            assert np.array_equal(target, fresh[1])


@pytest.mark.parametrize("slope", [1, -1])
def test_a_piece_leaves_the_others_alone(slope: int) -> None:
    value, cost, present = np.arange(12).reshape(3, 4), np.arange(4), np.arange(3)
    least, partner = np.full((4, 3), -99), np.full((4, 3), -99, np.int32)
    stale, lines = np.zeros(4, bool), np.arange(4)
    cheapest_in_rows(1, 2, lines, value, present, cost, slope, least, partner, stale)
    assert (least == -99).all(axis=0).tolist() == [True, False, True]
    assert (partner == -99).all(axis=0).tolist() == [True, False, True]
    cheapest_in_rows(0, 3, lines, value, present, cost, slope, least, partner, stale)
    best, target = np.full((3, 4), -99), np.full((3, 4), -99, np.int32)
    cheapest_in_columns(2, 3, lines, present, cost[:3], slope, least, partner, best, target)
    assert (best == -99).all(axis=0).tolist() == [True, True, False, True]
    assert (target == -99).all(axis=0).tolist() == [True, True, False, True]


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_values_and_costs_are_exact(sign: int) -> None:
    # Potentials of up to 2^61 and costs of up to 2^60 / nodes: one unit must still tell.
    rng = np.random.default_rng(5)
    squares, steps = np.arange(5) ** 2, np.arange(6)
    value = random_values(rng, (5, 6), 0.7, 3)
    for rows, columns in ((squares, steps**2), (squares, steps), (steps[:5], steps)):
        far = 2**53 * rows + np.arange(5), 2**55 * columns + np.arange(6)
        check(np.where(value == ABSENT, ABSENT, value + sign * (2**61 - 3)), *far)
        check(np.where(value == ABSENT, ABSENT, sign * value * 2**59), *far)
