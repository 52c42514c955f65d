import importlib
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import ot
import pytest

from experiments.benchmarks import distance_maps, flow_oracles
from ldpspatial import SeparableCost, Transport, transport, wasserstein
from tests.support import naive_metrics

Ints = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

EVERY_METRIC = [(1, "euclidean"), (1, "cityblock"), (2, "euclidean"), (2, "cityblock")]
KINDS = ("dense", "holes", "single cell", "equal", "one row", "ratios", "ties", "checkerboard")
every_metric = pytest.mark.parametrize(("order", "ground"), EVERY_METRIC)


def instance(rng: np.random.Generator, kind: str) -> tuple[Ints, Ints]:
    """Two whole-number maps of one total."""
    rows, columns = (int(x) for x in rng.integers(1, 7, 2))
    shape = (1, rows * columns) if kind == "one row" else (rows, columns)
    p, q = rng.integers(1, 100, shape), rng.integers(1, 100, shape)
    if kind == "holes":
        p, q = p * (rng.random(shape) < 0.4), q * (rng.random(shape) < 0.4)
    elif kind == "single cell":
        p = np.zeros(shape, np.int64)
    elif kind == "equal":
        q = p.copy()
    elif kind == "ratios":
        p, q = (np.rint(10.0 ** rng.uniform(0, 9, shape)).astype(np.int64) for _ in range(2))
    elif kind == "ties":
        p, q = rng.integers(0, 2, shape), rng.integers(0, 2, shape)
    elif kind == "checkerboard":
        p = (np.indices(shape).sum(axis=0) % 2).astype(np.int64) * 3
        q = 3 - p
    short = int(p.sum() - q.sum())
    smaller = q if short > 0 else p
    smaller[tuple(rng.integers(0, shape))] += abs(short)
    if p.sum() == 0:
        p[0, 0] = q[-1, -1] = 1
    return p, q


def cost_matrix(shape: tuple[int, ...], order: int, ground: str) -> FloatArray:
    rows, columns = (each.ravel() for each in np.indices(shape))
    down, right = abs(rows[:, None] - rows), abs(columns[:, None] - columns)
    if ground == "cityblock":
        return (down + right).astype(float) ** order
    return (down**2 + right**2).astype(float) if order == 2 else np.hypot(down, right)


def by_pot(p: Any, q: Any, cost: FloatArray) -> float:
    # Of mass 1: POT rescales one side and calls whole numbers infeasible for their rounding.
    return float(ot.emd2(p.ravel() / p.sum(), q.ravel() / q.sum(), cost, numItermax=10**7))


def counted_cost(plan: Transport, units: int, order: int, ground: str) -> int:
    """The least cost of whole-number maps of which `units` are in the plan, in whole numbers."""
    if plan.proof is None:
        return 0
    down, right = abs(plan.sources - plan.targets).T
    unit_cost = (down + right) ** order if ground == "cityblock" else down**2 + right**2
    # A unit of the solver is the largest that all masses are multiples of.
    factor = Fraction(units, int(plan.proof.flow.sum()))
    assert factor.denominator == 1
    return int(factor) * int(plan.proof.flow @ unit_cost)


@every_metric
def test_500_instances_equal_pot_and_the_linear_program(order: int, ground: str) -> None:
    rng = np.random.default_rng([order, len(ground)])
    for number in range(512):
        p, q = instance(rng, KINDS[number % len(KINDS)])
        expected = by_pot(p, q, cost_matrix(p.shape, order, ground))
        plan, total = transport(p, q, order, ground), int(p.sum())
        assert plan.value**order == pytest.approx(expected, rel=1e-9)
        assert plan.lower <= plan.value <= plan.upper
        if (order, ground) != (1, "euclidean"):  # whole costs: equal, not just close
            units = total if order == 2 else int(np.maximum(p - q, 0).sum())
            cost = {1: "cityblock", 2: "squared"}.get(order, "")
            if (order, ground) == (2, "cityblock"):
                cost = "squared cityblock"
            by_or_tools = flow_oracles.dense_cost(p, q, cost)
            assert counted_cost(plan, units, order, ground) == by_or_tools
        if number % 4 == 0 and p.size <= 25:
            by_scipy = naive_metrics.wasserstein(p / total, q / total, order, ground)
            assert plan.value == pytest.approx(by_scipy, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["shapes", "sparse spots", "mostly empty", "city"])
def test_64_by_64_equals_minimum_cost_flow_of_or_tools(name: str) -> None:
    p, q = flow_oracles.whole_masses(*distance_maps.draw_pair(name, (64, 64), 0))
    for order, ground, oracle in (
        (2, "euclidean", flow_oracles.two_hop_cost),
        (1, "cityblock", flow_oracles.four_neighbour_cost),
    ):
        plan = transport(p, q, order, ground)
        units = int(p.sum()) if order == 2 else int(np.maximum(p - q, 0).sum())
        assert counted_cost(plan, units, order, ground) == oracle(p, q)
        assert plan.upper - plan.lower <= 1e-14 * plan.value


@every_metric
def test_bounds_hold_for_masses_that_are_no_whole_numbers(order: int, ground: str) -> None:
    # On a line the distance is known exactly: carry mass from left to right.
    rng = np.random.default_rng([order, len(ground), 1])
    for _ in range(40):
        p, q = rng.random((1, 9)), rng.random((1, 9))
        p *= q.sum() / p.sum()
        exact = Fraction(0)
        first = [Fraction(x) / sum(map(Fraction, p[0])) for x in p[0].tolist()]
        second = [Fraction(x) / sum(map(Fraction, q[0])) for x in q[0].tolist()]
        i = j = 0
        while i < 9 and j < 9:
            mass = min(first[i], second[j])
            exact += mass * abs(i - j) ** order
            first[i], second[j] = first[i] - mass, second[j] - mass
            i, j = i + (first[i] == 0), j + (second[j] == 0)
        plan = transport(p, q, order, ground)
        assert Fraction(plan.lower) ** order <= exact <= Fraction(plan.upper) ** order
        assert plan.upper - plan.lower <= 1e-12


@every_metric
@pytest.mark.parametrize("cell", [1.0, (2.5, 0.75), (1 / 3, np.pi), (1e-3, 7.0)])
def test_bounds_enclose_the_linear_program_for_any_cell(
    order: int, ground: str, cell: float | tuple[float, float]
) -> None:
    rng = np.random.default_rng(3)
    sides = np.broadcast_to(cell, 2)
    for shape in [(4, 5), (1, 7), (6, 2)]:
        p, q = rng.random(shape), rng.random(shape) * (rng.random(shape) < 0.5)
        q *= p.sum() / q.sum()
        expected = naive_metrics.wasserstein(
            p / p.sum(), q / q.sum(), order, ground, (sides[0], sides[1])
        )
        plan = transport(p, q, order, ground, cell)
        assert plan.lower * (1 - 1e-9) <= expected <= plan.upper * (1 + 1e-9)
        assert plan.upper - plan.lower <= 1e-8 * plan.upper


@every_metric
def test_the_plan_carries_one_map_to_the_other(order: int, ground: str) -> None:
    rng = np.random.default_rng(4)
    p, q = rng.random((7, 11)), rng.random((7, 11))
    p[:2], q[:2], q[:, -3:] = 0, 0, 0  # empty margins keep their place
    q *= p.sum() / q.sum()
    plan = transport(p, q, order, ground, cell=(2.0, 3.0))
    moved = np.zeros_like(p)
    np.add.at(moved, tuple(plan.sources.T), -plan.mass)
    np.add.at(moved, tuple(plan.targets.T), plan.mass)
    assert np.abs(moved - (q - p) / p.sum()).max() < 1e-15
    steps = abs(plan.sources - plan.targets) * [2.0, 3.0]
    apart = steps.sum(axis=1) if ground == "cityblock" else np.hypot(*steps.T)
    assert (plan.mass @ apart**order) ** (1 / order) == pytest.approx(plan.value, rel=1e-12)
    assert plan.mass.min() > 0
    if order == 1:
        assert not (plan.sources == plan.targets).all(axis=1).any()
    assert wasserstein(p, q, order, ground, (2.0, 3.0)) == plan.value


def test_any_separable_convex_cost() -> None:
    rng = np.random.default_rng(5)
    for rows, columns in [([0, 1, 8, 27], [0, 0, 0, 5, 100]), ([0], [0, 2, 4, 6]), ([0, 7], [0])]:
        shape = (len(rows), len(columns))
        p, q = rng.integers(1, 50, shape), rng.integers(1, 50, shape)
        p[0, 0] += max(0, q.sum() - p.sum())
        q[0, 0] += max(0, p.sum() - q.sum())
        y, x = (each.ravel() for each in np.indices(shape))
        cost = np.array(rows)[abs(y[:, None] - y)] + np.array(columns)[abs(x[:, None] - x)]
        plan = transport(p, q, 1, SeparableCost(np.array(rows), np.array(columns)))
        assert plan.value == pytest.approx(by_pot(p, q, cost.astype(float)), rel=1e-9)


def test_a_distance_that_is_no_distance_cancels_nothing() -> None:
    # With cost k^3, two steps of 1 are cheaper than one of 2, also for order 1.
    cube = SeparableCost(np.array([0]), np.array([0, 1, 8]))
    assert transport([[1, 1, 0]], [[0, 1, 1]], 1, cube).value == 1.0


@every_metric
def test_equal_maps_need_no_plan_and_no_proof(order: int, ground: str) -> None:
    p = np.random.default_rng(6).random((5, 6))
    for q in (p, p * 3 / 3):
        plan = transport(p, q, order, ground)
        assert (plan.value, plan.lower, len(plan.mass), plan.proof) == (0.0, 0.0, 0, None)
        assert plan.upper <= 1e-6
    assert transport(p, p, order, ground).upper == 0.0


def test_for_pure_shifts_the_plan_is_the_shift() -> None:
    p = np.zeros((40, 50))
    p[5:20, 5:30] = np.random.default_rng(7).integers(1, 1000, (15, 25))
    q = np.roll(p, (9, 13), (0, 1))
    plan = transport(p, q)
    assert plan.value == pytest.approx(np.hypot(9, 13), rel=1e-15)
    assert (plan.targets - plan.sources == [9, 13]).all()


def test_the_result_is_the_same_every_time() -> None:
    p, q = distance_maps.draw_pair("rough field", (130, 128), 0)  # priced by two threads
    first, second = transport(p, q), transport(p, q)
    assert first.value == second.value
    assert np.array_equal(first.sources, second.sources)
    assert np.array_equal(first.targets, second.targets)
    assert np.array_equal(first.mass, second.mass)


def test_a_proof_that_fails_is_an_error_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("ldpspatial.metrics.transport")
    solve = module.cheapest_plan
    monkeypatch.setattr(module, "cheapest_plan", lambda p, q, cost: solve(q, p, cost))
    p, q = np.random.default_rng(8).random((2, 6, 6))
    q *= p.sum() / q.sum()
    with pytest.raises(Exception, match="does not carry p to q"):
        wasserstein(p, q)
    assert wasserstein(p, q, certify=False) > 0
