"""Bounds against the distance in fractions: of any totals, at any scale, to the last place."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ldpspatial import InputError, SeparableCost, Transport, transport
from ldpspatial.metrics.exact.whole_maps import UNITS, exact_total, shares, snake
from ldpspatial.metrics.transport import transport_of_shares
from tests.support.exact_lines import exact_on_a_line

FloatArray = npt.NDArray[np.float64]

LEAST = math.ulp(0.0)
GROUNDS = ("euclidean", "cityblock")
METRICS = [(order, ground) for order in (1, 2) for ground in GROUNDS]


def holds(plan: Transport, cost: Fraction) -> bool:
    """Whether the bounds enclose cost ** (1 / order)."""
    order = plan.order
    return Fraction(plan.lower) ** order <= cost <= Fraction(plan.upper) ** order


def near_proportional(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Two maps of one row that hardly differ but in their totals."""
    p = rng.random(6)
    noise = 10.0 ** rng.uniform(-13, -5) * rng.uniform(-1, 1, 6)
    return p, p * 10.0 ** rng.uniform(-3, 3) * (1 + noise)


@pytest.mark.parametrize("order", [1, 2])
def test_bounds_hold_for_maps_of_any_totals(order: int) -> None:
    # Multiplied by each other's totals in floats, two in five of these had bounds that missed.
    rng = np.random.default_rng([1, order])
    for _ in range(300):
        p, q = near_proportional(rng)
        plan = transport_of_shares([p], [q], order)
        exact = exact_on_a_line(p.tolist(), q.tolist(), order)
        assert holds(plan, exact)
        if order == 1:
            assert plan.value == pytest.approx(float(exact), rel=1e-15, abs=0)
            assert plan.upper - plan.lower <= 2e-14 * plan.value


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.3, 0.7], [0.3 * 3.7 * (1 + 1e-9), 0.7 * 3.7]),
        ([3, 1], [1e308, 1.7e308]),  # a total beyond float64
        ([1.7e308, 1.7e308], [1.7e308, 1.1e308]),
        ([1e-310, 3e-310], [2e-200, 2e-200]),  # and products of totals below it
        ([LEAST, 0], [0, 1.7e308]),
    ],
)
@pytest.mark.parametrize("order", [1, 2])
def test_totals_may_be_as_far_apart_as_floats(p: list[float], q: list[float], order: int) -> None:
    for first, second in ((p, q), (q, p)):
        plan = transport_of_shares([first], [second], order)
        exact = exact_on_a_line(first, second, order)
        assert holds(plan, exact)
        assert plan.value == pytest.approx(float(exact) ** (1 / order), rel=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_counts_that_are_multiples_are_equal_and_others_are_told_apart(order: int) -> None:
    counts = np.random.default_rng(2).integers(0, 9, (5, 6))
    cost = SeparableCost(np.arange(5) ** 2, np.arange(6) ** 2)
    for ground in (*GROUNDS, cost):
        plan = transport_of_shares(counts * 2, counts * 3, order, ground)
        assert (plan.value, plan.upper, plan.proof) == (0.0, 0.0, None)
    assert transport_of_shares([[3]], [[2]], order).upper == 0.0
    # The nearest two such shares: numbers with a fraction that differ by less would be equal.
    n = 30_000_000
    plan = transport_of_shares([[n, n + 1]], [[n - 1, n]], order)
    assert plan.value == pytest.approx((4 * n**2 - 1) ** (-1 / order), rel=1e-15)
    assert holds(plan, Fraction(1, 4 * n**2 - 1))


@pytest.mark.parametrize("order", [1, 2])
def test_numbers_so_large_that_they_are_whole_are_no_counts(order: int) -> None:
    p = np.random.default_rng(3).random((5, 6)) * 2.0**70
    for q in (p * 3 / 3, p * 3, p / 3 * 2.0**900):
        plan = transport_of_shares(p, q, order)
        assert (plan.value, plan.proof) == (0.0, None)


def test_maps_of_any_totals_must_still_be_maps() -> None:
    for bad, rule in (
        ([[0.0, 0.0]], "must have a positive total, got 0.0"),
        ([[1.0, -1.0]], r"must hold numbers in \[0, inf\), got -1.0 at \[0, 1\]"),
    ):
        with pytest.raises(InputError, match=f"^p.*{rule}"):
            transport_of_shares(bad, [[1, 2]])
        with pytest.raises(InputError, match=f"^q.*{rule}"):
            transport_of_shares([[1, 2]], bad)
    with pytest.raises(InputError, match=r"^q must have the shape of p, \(1, 2\), got \(2, 1\)"):
        transport_of_shares([[1, 2]], [[1], [2]])
    with pytest.raises(InputError, match=r"^q must have the total of p, 1\.0"):
        transport([[1, 0]], [[0, 2]])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("cell", [LEAST, 1e-320, 1e-290, 1e-160, 1e153])
def test_bounds_hold_where_distances_leave_the_range_of_floats(cell: float, order: int) -> None:
    rng = np.random.default_rng([3, order])
    pairs: list[Any] = [([0, 2.0], [LEAST, math.nextafter(2, 0)]), ([1, 1e-40, 0], [1, 0, 1e-40])]
    for _ in range(40):
        p = rng.random(6)
        pairs.append((p.tolist(), (p * (1 + 4e-16 * rng.integers(-2, 3, 6))).tolist()))
        pairs.append((p.tolist(), rng.permutation(p).tolist()))
    for p, q in pairs:
        plan = transport([p], [q], order, cell=cell)
        exact = exact_on_a_line(p, q, order) * Fraction(cell) ** order
        assert holds(plan, exact)
        assert plan.lower <= plan.value <= plan.upper
        assert (plan.upper > 0) == (exact > 0)


def test_a_mass_below_all_floats_has_its_distance_all_the_same() -> None:
    # Half of the least float is carried, over 1e300.
    p, q = [0, 2.0], [LEAST, math.nextafter(2, 0)]
    plan = transport([p], [q], 1, cell=1e300)
    exact = exact_on_a_line(p, q, 1) * Fraction(1e300)
    assert holds(plan, exact)
    assert plan.value == pytest.approx(float(exact), rel=1e-15, abs=0)
    plan = transport([[4, 6 * LEAST, LEAST, 0]], [[4, 0, 0, 7 * LEAST]], 1, cell=1e300)
    assert plan.value == pytest.approx(3.25 * (LEAST * 1e300), rel=1e-15, abs=0)
    assert plan.mass.min() == LEAST  # in place of a quarter of it


@pytest.mark.parametrize(("order", "ground"), METRICS)
def test_bounds_hold_to_the_last_place_for_any_sides(order: int, ground: str) -> None:
    # Half of the mass goes down by a side that is no round part of the other.
    rng = np.random.default_rng([4, order])
    for _ in range(100):
        height, width = np.sort(rng.random(2) + 0.1).tolist()
        plan = transport([[3, 1], [0, 0]], [[1, 1], [2, 0]], order, ground, (height, width))
        assert holds(plan, Fraction(height) ** order / 2)
        assert plan.value == pytest.approx(height / 2 ** (1 / order), rel=1e-9)


def from_sums(sums: list[Fraction], shape: tuple[int, int]) -> FloatArray:
    """The map of total UNITS with these sums along the snake, exactly but for its last cell."""
    masses = np.diff([0.0, *map(float, sums)])
    p = np.empty(shape)
    p.flat[snake(shape)] = [*masses, UNITS - float(sums[-1])]
    return p


@pytest.mark.parametrize("shape", [(1, 9), (3, 5), (5, 3), (9, 1)])
def test_bounds_hold_when_all_rounding_goes_the_wrong_way(shape: tuple[int, int]) -> None:
    # Moves along columns are free, so what counts are sums over the columns up to each. A row that
    # the snake takes from the east adds its rounding with the other sign; a lone column is taken
    # from the south.
    rows, columns = shape
    up, down = Fraction(1, 2), Fraction(1, 2) - Fraction(1, 2**20)  # parts that are rounded so
    sums: tuple[list[Fraction], list[Fraction]] = ([], [])
    for step in range(1, rows * columns):
        parts = (up, down) if columns == 1 or (step // columns) % 2 == 0 else (down, up)
        for each, part in zip(sums, parts, strict=True):
            each.append(4 * step + part * bool(columns == 1 or step % columns))
    p, q = (from_sums(each, shape) for each in ([s + 2**20 for s in sums[0]], sums[1]))
    cost = SeparableCost(np.arange(rows) * (columns == 1), np.arange(columns))
    plan = transport(p, q, 1, cost)
    lines = (each if columns == 1 else each.T for each in (p, q))
    first, second = ([sum(map(Fraction, line)) for line in each.tolist()] for each in lines)
    exact = exact_on_a_line(first, second, 1)
    assert holds(plan, exact)
    # They have to be as wide as they are.
    wrong = (Fraction(plan.value) - exact) * UNITS
    assert wrong == pytest.approx(rows * (columns - 1) or rows - 1, rel=1e-4)


@pytest.mark.parametrize(("order", "ground"), METRICS)
@pytest.mark.parametrize("cell", [1.7e308, (1.0, 1e308), (9e307, 1.0), 1e154])
def test_cells_of_a_map_beyond_all_floats_are_refused(order: int, ground: str, cell: Any) -> None:
    corners = np.zeros((3, 3))
    corners[0, 0] = 1
    if (order, cell) != (1, 1e154):  # of which the square is not a float
        rule = "^cell must leave 3 rows and 3 columns an extent below 1"
        with pytest.raises(InputError, match=rule):
            transport(corners, corners[::-1, ::-1], order, ground, cell)
    largest = 3e307 if order == 1 else 2e153
    for sides in ((largest, largest / 7), largest):
        plan = transport(corners[:, ::2], corners[::-1, ::-2], order, ground, sides)
        assert math.isfinite(plan.upper)
        assert plan.value > largest


def test_of_the_extent_of_costs_that_are_given_nothing_is_asked() -> None:
    cost = SeparableCost(np.array([0]), np.array([0, 1, 4]))
    assert transport([[1, 0, 0]], [[0, 0, 1]], 2, cost, cell=1.7e308).value == 2.0


@pytest.mark.parametrize("scale", [1.0, 2.0**-1070, 2.0**1020, 1 / 3])
def test_shares_and_totals_of_any_scale(scale: float) -> None:
    p = np.random.default_rng(5).integers(1, 9, (4, 5)) * np.float64(scale)
    exact = [Fraction(mass) for mass in p.ravel().tolist()]
    assert exact_total(p) == sum(exact)
    for share, mass in zip(shares(p).ravel().tolist(), exact, strict=True):
        assert abs(Fraction(share) / (mass / sum(exact)) - 1) <= Fraction(1, 2**52)


@pytest.mark.parametrize("order", [1, 2])
def test_counts_and_their_own_shares_are_equal(order: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        counts = rng.integers(0, 999, (4, 5))
        for p, q in ((counts, counts / counts.sum()), (counts / counts.sum(), counts)):
            plan = transport_of_shares(p, q, order)
            assert (plan.value, plan.proof) == (0.0, None)


@pytest.mark.parametrize(("order", "ground"), METRICS)
def test_what_differs_by_rounding_may_have_to_go_from_corner_to_corner(
    order: int, ground: str
) -> None:
    more, less = math.nextafter(0.75, 1), math.nextafter(0.75, 0)
    p, q = [[0.75, 0.5], [0.5, less]], [[less, 0.5], [0.5, 0.75]]
    plan = transport(p, q, order, ground)
    assert (plan.value, plan.proof, more - less) == (0.0, None, 2.0**-52)
    carried = (Fraction(0.75) - Fraction(less)) / sum(map(Fraction, (0.75, 0.5, 0.5, less)))
    way = 2.0 if ground == "cityblock" else 1.4142
    assert Fraction(plan.upper) ** order >= carried * Fraction(way) ** order


def test_costs_of_ways_that_no_mass_can_go_may_be_beyond_the_limit() -> None:
    cost = SeparableCost(np.array([0, 2**62]), np.array([0, 1, 2**62]))
    assert transport([[3, 1, 0], [0, 0, 0]], [[1, 3, 0], [0, 0, 0]], 1, cost).value == 0.5
