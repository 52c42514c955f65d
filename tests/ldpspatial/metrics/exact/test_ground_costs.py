import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from ldpspatial.errors import InputError
from ldpspatial.metrics import SeparableCost, wasserstein
from ldpspatial.metrics.exact.ground_costs import (
    COST_LIMIT,
    RELATIVE_ERROR,
    GroundCost,
    PowerSum,
    Tabulated,
    check_shape,
    ground_cost,
)
from tests.support import naive_transport as naive
from tests.support.naive_metrics import line_distance
from tests.support.naive_transport import Cell

EVERY_METRIC = [(1, "euclidean"), (1, "cityblock"), (2, "euclidean"), (2, "cityblock")]
every_metric = pytest.mark.parametrize(("order", "ground"), EVERY_METRIC)

SIDES = [(1.0, 1.0), (1 / 3, 1.0), (1.0, 1 / math.pi), (1e-3 / 7, 1.0), (0.9999, 1.0), (1.0, 0.0)]
SHAPES = [(1, 1), (1, 6), (6, 1), (2, 2), (5, 7), (40, 3)]


def real_cost(order: int, ground: str, sides: tuple[float, float]) -> Callable[[Cell, Cell], Any]:
    """The cost between two cells, in Fractions; a root to 60 digits."""
    height, width = (Fraction(side) for side in sides)

    def cost(x: Cell, y: Cell) -> Fraction:
        down, right = abs(x[0] - y[0]) * height, abs(x[1] - y[1]) * width
        if ground == "cityblock":
            return (down + right) ** order
        square = down**2 + right**2
        return square if order == 2 else root(square)

    return cost


def root(square: Fraction) -> Fraction:
    digits = 10**60
    return Fraction(math.isqrt(square.numerator * digits**2 // square.denominator), digits)


def largest(cost: GroundCost) -> int:
    parts = cost.whole.parts()
    if isinstance(parts, tuple):
        return int(parts[0][-1]) + int(parts[1][-1])
    return int(parts.max())


@every_metric
@pytest.mark.parametrize("sides", SIDES)
def test_bounds_enclose_the_least_real_cost(
    order: int, ground: str, sides: tuple[float, float]
) -> None:
    rng = np.random.default_rng([1, order, len(ground)])
    shape = (4, 5) if 0.0 not in sides else (4, 1)
    real = real_cost(order, ground, sides)
    cells = [(row, column) for row in range(shape[0]) for column in range(shape[1])]
    for nodes in (8, 10**6):
        made = ground_cost(shape, nodes, order, ground, sides)
        whole_cost = partial(naive.unit_cost, made.whole.parts())
        for _ in range(10):
            sources, targets = (
                [cells[k] for k in rng.choice(len(cells), 4, replace=False)] for _ in range(2)
            )
            least, _ = naive.least_by_permutations(sources, targets, real)
            whole, order_of_targets = naive.least_by_permutations(sources, targets, whole_cost)
            down, right = abs(np.array(sources) - np.array(order_of_targets)).T
            cost, lower, upper = made.bounds(np.full(4, 3), down, right, 3 * int(whole))
            assert lower <= 3 * least <= upper
            assert lower <= cost <= upper
            # They are close, and the cost is what the plan really costs.
            assert upper - lower <= 3 * (least + 1) * Fraction(2 * RELATIVE_ERROR)
            spent = sum(real(x, y) for x, y in zip(sources, order_of_targets, strict=True))
            assert abs(cost - 3 * spent) <= spent * Fraction(1, 2**49)


@pytest.mark.parametrize(("order", "ground"), [(1, "cityblock"), (2, "euclidean")])
@pytest.mark.parametrize("sides", SIDES)
def test_where_the_axes_add_up_the_cost_of_a_plan_is_exact(
    order: int, ground: str, sides: tuple[float, float]
) -> None:
    made = ground_cost((30, 1 if 0.0 in sides else 20), 50, order, ground, sides)
    assert isinstance(made, PowerSum)
    real = real_cost(order, ground, sides)
    flow, down, right = np.array([5, 2**50, 1]), np.array([29, 0, 3]), np.array([0, 0, 0])
    cost, _, upper = made.bounds(flow, down, right, 1)
    assert cost == upper == 5 * real((0, 0), (29, 0)) + real((0, 0), (3, 0))


def test_square_cells_have_the_squares_themselves_for_costs() -> None:
    made = ground_cost((4, 3), 24, 2, "euclidean", (1.0, 1.0))
    assert isinstance(made.whole, SeparableCost)
    assert made.whole.rows.tolist() == [0, 1, 4, 9]
    assert made.whole.columns.tolist() == [0, 1, 4]
    _, lower, upper = made.bounds(np.array([7]), np.array([3]), np.array([2]), 7 * 13)
    assert lower == upper == 7 * 13


@pytest.mark.parametrize(("order", "ground"), [(1, "euclidean")])
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_whole_cost_of_a_table_is_within_its_error(
    order: int, ground: str, sides: tuple[float, float], shape: tuple[int, int]
) -> None:
    made = ground_cost(shape, 2 * shape[0] * shape[1], order, ground, sides)
    assert isinstance(made, Tabulated)
    real = real_cost(order, ground, sides)
    for cell, whole in np.ndenumerate(made.whole.table):
        assert abs(int(whole) - made.scale * real((0, 0), (cell[0], cell[1]))) <= made.error
    assert made.whole.table[0, 0] == 0
    assert (np.diff(made.whole.table, axis=0) >= 0).all()
    assert (np.diff(made.whole.table, axis=1) >= 0).all()


@every_metric
@pytest.mark.parametrize("sides", SIDES)
def test_a_step_changes_the_cost_by_no_more_than_stated(
    order: int, ground: str, sides: tuple[float, float]
) -> None:
    shape = (7, 5)
    made = ground_cost(shape, 70, order, ground, sides)
    real = real_cost(order, ground, sides)
    down, right = (Fraction(step) * (1 + Fraction(1, 2**50)) for step in made.steps)
    for row, column in np.ndindex(shape):
        cost = real((0, 0), (row, column))
        assert row == shape[0] - 1 or real((0, 0), (row + 1, column)) - cost <= down
        assert column == shape[1] - 1 or real((0, 0), (row, column + 1)) - cost <= right


@every_metric
@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (64, 64), (1000, 7)])
@pytest.mark.parametrize("sides", SIDES[:5])
def test_costs_times_nodes_stay_below_the_limit(
    order: int, ground: str, shape: tuple[int, int], sides: tuple[float, float]
) -> None:
    for nodes in (2, 3, 1000, 2 * shape[0] * shape[1]):
        made = ground_cost(shape, nodes, order, ground, sides)
        assert largest(made) * nodes <= COST_LIMIT


def test_a_largest_cost_just_above_a_power_of_2_is_scaled_with_care() -> None:
    # limit / cost is below a power of 2 by less than the logarithm of it can show.
    made = ground_cost((2, 2), 1, 1, "euclidean", (1.0, math.sqrt(3 * 2.0**-52)))
    assert largest(made) <= COST_LIMIT


def test_costs_that_are_given_may_reach_the_limit() -> None:
    limit = COST_LIMIT // 10
    given = SeparableCost(np.array([0, 1, limit - 5]), np.array([0, 5]))
    made = ground_cost((3, 2), 10, 2, given, (1.0, 1.0))
    assert made.bounds(np.ones(1, np.int64), np.array([0]), np.array([1]), 9) == (Fraction(9),) * 3
    assert made.steps == pytest.approx((limit - 6, 5), rel=1e-15)
    with pytest.raises(InputError, match=rf"at most .* with 11 filled cells, got {limit}"):
        ground_cost((3, 2), 11, 2, given, (1.0, 1.0))
    huge = SeparableCost(np.array([0, 2**63 - 1]), np.array([0, 2**63 - 1]))
    with pytest.raises(InputError, match=f"got {2**64 - 2}"):  # the sum did not wrap around
        ground_cost((2, 2), 1, 2, huge, (1.0, 1.0))


@pytest.mark.parametrize(("order", "ground"), [(1, "cityblock"), (2, "euclidean")])
@pytest.mark.parametrize("ratio", [1e-17, 1e-100, 1e-200, 5e-324])
def test_sides_too_different_are_refused(order: int, ground: str, ratio: float) -> None:
    for sides in ((ratio, 1.0), (1.0, ratio)):
        with pytest.raises(InputError, match="cell must have sides that are less different"):
            ground_cost((9, 9), 100, order, ground, sides)


@every_metric
@pytest.mark.parametrize("cell", [(1e-320, 1e10), (1e10, 1e-320), (1e-200, 1.0)])
def test_a_side_that_vanishes_beside_the_other_is_not_free(
    order: int, ground: str, cell: tuple[float, float]
) -> None:
    # The ratio of the first two is below all floats, and may be all that mass moves along.
    p, q = np.array([[1, 1], [0, 0]]), np.array([[0, 0], [1, 1]])
    for first, second in ((p, q), (p.T, q.T)):
        with pytest.raises(InputError, match="cell must "):
            wasserstein(first, second, order, ground, cell)


@every_metric
@pytest.mark.parametrize("ratio", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-13])
def test_costs_are_fine_enough_for_the_shorter_side_or_it_is_refused(
    order: int, ground: str, ratio: float
) -> None:
    # Columns have the same mass in both maps and nothing moves along the long side of the cells.
    rng = np.random.default_rng(3)
    p = rng.integers(0, 9, (12, 10)) + 1.0
    q, rows = rng.permutation(p, axis=0), np.arange(12.0)
    columns = zip(p.T / p.sum(axis=0)[:, None], q.T / q.sum(axis=0)[:, None], strict=True)
    lines = [line_distance(rows, a, rows, b, order) ** order for a, b in columns]
    expected = ratio * float(np.average(lines, weights=p.sum(axis=0))) ** (1 / order)
    try:
        distance = wasserstein(p, q, order, ground, (ratio, 1.0))
    except InputError:
        assert ratio < 1e-3
        return
    assert distance == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.mark.parametrize("sides", [(1.0, 1e-4), (1.0, 3e-3 / 7), (1 / 3, 1.0)])
def test_sides_that_pass_are_met_to_a_billionth(sides: tuple[float, float]) -> None:
    for order, ground in ((1, "cityblock"), (2, "euclidean")):
        made = ground_cost((64, 64), 2 * 64**2, order, ground, sides)
        rows, columns = made.whole.parts()
        ratio = Fraction(int(rows[1]), int(columns[1]))
        wanted = (Fraction(sides[0]) / Fraction(sides[1])) ** order
        assert abs(ratio / wanted - 1) <= Fraction(RELATIVE_ERROR)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([0, 2, 3], "start at 0, be nondecreasing and convex"),
        ([0, -1, -2], "nondecreasing"),
        ([0, 0, -1], "nondecreasing"),
        ([0, 3, 2], "nondecreasing"),
        ([1, 2, 3], "start at 0"),
        ([-1, 0, 1], "start at 0"),
        ([0, 1, -(2**63)], "nondecreasing"),  # by wrapping around the slope would be 2^63 - 1
        ([False, True], "whole numbers of .* got bool"),
        ([0, 2**64], "whole numbers of .* got object"),
        ([], "start at 0"),
        (np.array([0, 2**63], np.uint64), rf"lie in .*, {2**63}\)"),
        (np.array([0, 2**64 - 1], np.uint64), rf"lie in .*, {2**63}\)"),
    ],
)
def test_separable_costs_that_break_a_rule_are_refused(broken: Any, message: str) -> None:
    for field, arguments in (("rows", (broken, [0, 1])), ("columns", ([0, 1], broken))):
        with pytest.raises(InputError, match=f"{field} must .*{message}"):
            SeparableCost(*arguments)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.uint64, np.int64])
def test_separable_costs_of_any_whole_type_pass(dtype: Any) -> None:
    cost = SeparableCost(np.array([0, 0, 1, 127], dtype), np.zeros(1, dtype))
    assert cost.rows.dtype == cost.columns.dtype == np.int64
    assert cost.between(np.array([3, 1]), np.array([0, 0])).tolist() == [127, 0]
    assert cost.coarser().rows.tolist() == [0, 1]
    largest_of_all = SeparableCost(np.array([0, 2**63 - 1], np.uint64), [0])  # type: ignore[arg-type]
    assert int(largest_of_all.rows[1]) == 2**63 - 1


def test_separable_costs_do_not_follow_what_they_were_made_from() -> None:
    given = np.array([0, 1, 4])
    cost = SeparableCost(given, given)
    given[2] = 0
    assert cost.rows.tolist() == cost.columns.tolist() == [0, 1, 4]
    for checked in (cost, cost.coarser()):
        for part in (checked.rows, checked.columns):
            with pytest.raises(ValueError, match="read-only"):
                part[0] = 9


def test_costs_for_another_number_of_cells_are_refused() -> None:
    cost = SeparableCost(np.arange(3), np.arange(2))
    check_shape(cost, (3, 2))
    for shape in ((2, 3), (3, 3), (4, 2)):
        with pytest.raises(InputError, match=r"got \(3, 2\)"):
            check_shape(cost, shape)


def test_sides_that_many_cells_cannot_meet_to_a_billionth_are_refused() -> None:
    with pytest.raises(InputError, match="cell must have sides that are less different"):
        ground_cost((1000, 1000), 2 * 10**6, 2, "euclidean", (1.0, 0.0123))
