from collections import Counter

import numpy as np
import pytest

from ldpspatial.metrics.exact.dealing import Parts, Plan, deal
from ldpspatial.metrics.exact.network_simplex import Ints
from tests.support import naive_transport as naive
from tests.support.naive_transport import Arcs

Maps = tuple[Ints, Ints, Ints, Ints]  # supply, its ties, demand, its ties; (R, C) each

SHAPES = [(1, 1), (1, 2), (2, 1), (2, 2), (1, 7), (7, 1), (3, 5), (5, 4), (6, 6), (9, 7)]
MASSES = ["equal", "small", "holes", "points", "large"]


def random_masses(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> Ints:
    masses = rng.integers(1, {"equal": 2, "large": 2**40}.get(kind, 4), shape)
    if kind in ("holes", "points"):
        masses *= rng.random(shape) < (0.4 if kind == "holes" else 0.1)
    masses[tuple(rng.integers(0, shape))] += kind != "equal"
    return masses


def random_maps(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> Maps:
    """Maps of one total, with the ties of network_simplex.py: 1 a source, all at one target."""
    supply, demand = random_masses(rng, shape, kind), random_masses(rng, shape, kind)
    short = int(supply.sum() - demand.sum())
    demand.flat[np.flatnonzero(demand)[-1]] += max(short, 0)
    supply.flat[np.flatnonzero(supply)[-1]] += max(-short, 0)
    supply_tie = (supply > 0).astype(np.int64)
    demand_tie = np.zeros_like(supply_tie)
    demand_tie.flat[rng.choice(np.flatnonzero(demand))] = supply_tie.sum()
    return supply, supply_tie, demand, demand_tie


def coarser(fine: Ints) -> Ints:
    coarse = np.zeros(((fine.shape[0] + 1) // 2, (fine.shape[1] + 1) // 2), np.int64)
    for (row, column), mass in np.ndenumerate(fine):
        coarse[row // 2, column // 2] += mass
    return coarse


def arcs_of(plan: Plan) -> Arcs:
    """The plan as a tree: targets are numbered after all sources."""
    cells = plan.shape[0] * plan.shape[1]
    tails, heads = plan.source.tolist(), (plan.target + cells).tolist()
    flows = zip(plan.flow.tolist(), plan.tie.tolist(), strict=True)
    arcs = dict(zip(zip(tails, heads, strict=True), flows, strict=True))
    assert len(arcs) == len(plan.source), "two flows from one cell to another"
    return arcs


def plan_of(arcs: Arcs, shape: tuple[int, int]) -> Plan:
    tails, heads = np.array(list(arcs)).T
    flow, tie = np.array(list(arcs.values())).T
    return Plan(tails, heads - shape[0] * shape[1], flow, tie, shape)


def check(plan: Plan, maps: Maps) -> Arcs:
    """The plan carries one map to the other along a spanning tree, never nothing."""
    arcs = arcs_of(plan)
    supply, supply_tie, demand, demand_tie = (each.ravel().tolist() for each in maps)
    assert plan.shape == maps[0].shape
    sent = list(zip(supply, supply_tie, strict=True))
    received = [(-mass, -tie) for mass, tie in zip(demand, demand_tie, strict=True)]
    balance = sent + received
    assert naive.balances(arcs, len(balance)) == balance
    assert naive.is_spanning_tree(arcs, [v for v, (mass, _) in enumerate(balance) if mass != 0])
    assert min(arcs.values()) > (0, 0)
    return arcs


def dealt(plan: Plan, maps: Maps) -> Plan:
    return deal(plan, Parts.of_maps(*maps[:2]), Parts.of_maps(*maps[2:]))


def from_one_cell(maps: Maps) -> Plan:
    return dealt(Plan.of_one_cell(int(maps[0].sum()), int(maps[1].sum())), maps)


def shuffled(plan: Plan, rng: np.random.Generator, pivots: int) -> Plan:
    """Another spanning tree of the same maps, after arcs at random came in."""
    arcs = arcs_of(plan)
    tails, heads = ([*{arc[end]: 0 for arc in arcs}] for end in (0, 1))
    for _ in range(pivots):
        arc = int(rng.choice(tails)), int(rng.choice(heads))
        if arc not in arcs:
            arcs, _ = naive.pivot(arcs, *arc)
    return plan_of(arcs, plan.shape)


def collected(arcs: Arcs, fine: tuple[int, int], coarse: tuple[int, int]) -> Arcs:
    """Sum up flows by the blocks of 2 x 2 cells that their ends are in."""

    def block(node: int) -> int:
        side, cell = divmod(node, fine[0] * fine[1])
        row, column = divmod(cell, fine[1])
        return side * coarse[0] * coarse[1] + row // 2 * coarse[1] + column // 2

    sums: Arcs = {}
    for (tail, head), amount in arcs.items():
        arc = block(tail), block(head)
        sums[arc] = naive.plus(sums.get(arc, (0, 0)), amount)
    return sums


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", MASSES)
def test_from_one_cell_to_a_grid(shape: tuple[int, int], kind: str) -> None:
    rng = np.random.default_rng([1, *shape, len(kind)])
    for _ in range(5):
        maps = random_maps(rng, shape, kind)
        check(from_one_cell(maps), maps)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", MASSES)
def test_from_blocks_of_cells_to_their_cells(shape: tuple[int, int], kind: str) -> None:
    rng = np.random.default_rng([2, *shape, len(kind)])
    for pivots in (0, 3, 30):
        maps = random_maps(rng, shape, kind)
        supply, supply_tie, demand, demand_tie = map(coarser, maps)
        coarse_maps = supply, supply_tie, demand, demand_tie
        plan = shuffled(from_one_cell(coarse_maps), rng, pivots)
        arcs = check(plan, coarse_maps)
        finer = check(dealt(plan, maps), maps)
        # Each flow went from cells of the one block to cells of the other.
        assert collected(finer, shape, plan.shape) == arcs


@pytest.mark.parametrize("kind", MASSES)
def test_through_several_levels(kind: str) -> None:
    rng = np.random.default_rng([3, len(kind)])
    levels = [random_maps(rng, (13, 11), kind)]
    while levels[-1][0].size > 1:
        supply, supply_tie, demand, demand_tie = map(coarser, levels[-1])
        levels.append((supply, supply_tie, demand, demand_tie))
    plan = from_one_cell(levels.pop())
    for maps in reversed(levels):
        plan = shuffled(dealt(plan, maps), rng, 20)
        check(plan, maps)


def test_equal_maps_of_equal_masses_do_not_run_out_at_once() -> None:
    # Every partial sum of flows is one of masses: only the ties keep the tree together.
    ones = np.ones((6, 6), np.int64)
    tie = np.zeros_like(ones)
    tie[0, 0] = 36
    maps = ones, ones, ones, tie
    arcs = check(from_one_cell(maps), maps)
    assert Counter(flow for flow, _ in arcs.values()) == {1: 36, 0: 35}


def test_masses_of_2_to_the_52_are_dealt_to_the_unit() -> None:
    supply, demand = np.zeros((2, 3, 3), np.int64)
    supply[0, 0], supply[2, 1], supply[1, 2] = 2**52 - 12, 5, 7
    demand[0, 2], demand[2, 2] = 11, 2**52 - 11
    tie = np.zeros_like(supply)
    tie[2, 2] = 3
    maps = supply, (supply > 0).astype(np.int64), demand, tie
    check(from_one_cell(maps), maps)


def test_on_a_line_neighbours_serve_neighbours() -> None:
    # From a row to a row, the rule in the order of the cells is itself the cheapest plan.
    rng = np.random.default_rng(4)
    for shape in ((1, 12), (12, 1)):
        maps = random_maps(rng, shape, "small")
        plan = from_one_cell(maps)
        order = np.lexsort((plan.target, plan.source))
        assert (np.diff(plan.target[order]) >= 0).all()


def test_parts_are_the_cells_with_mass() -> None:
    mass, tie = np.array([[0, 4, 0], [1, 0, 2]]), np.array([[0, 1, 0], [1, 0, 1]])
    parts = Parts.of_maps(mass, tie)
    assert (parts.cell.tolist(), parts.mass.tolist()) == ([1, 3, 5], [4, 1, 2])
    assert (parts.tie.tolist(), parts.shape) == ([1, 1, 1], (2, 3))
