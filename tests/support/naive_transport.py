"""Optimal transport the slow and obvious way: the twins of the solver and of its proof.

Nothing of ldpspatial is used. A tree is a dict of arcs, a flow is a pair (flow, tie), of which the
first part decides, and sums are Python's whole numbers.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

Ints: TypeAlias = npt.NDArray[np.int64]
Arc: TypeAlias = tuple[int, int]  # (tail, head)
Flow: TypeAlias = tuple[int, int]  # (flow, tie)
Arcs: TypeAlias = dict[Arc, Flow]
Cell: TypeAlias = tuple[int, int]
Cost: TypeAlias = Ints | tuple[Ints, Ints]  # by rows and columns moved: a table, or two parts


def plus(first: Flow, second: Flow, sign: int = 1) -> Flow:
    return first[0] + sign * second[0], first[1] + sign * second[1]


def total(flows: Iterable[Flow]) -> Flow:
    flow, tie = 0, 0
    for each in flows:
        flow, tie = plus((flow, tie), each)
    return flow, tie


def subtrees(parents: Sequence[int]) -> list[set[int]]:
    """The nodes below each node, itself included; -1 is the parent of the only root."""
    assert list(parents).count(-1) == 1
    below: list[set[int]] = [set() for _ in parents]
    for v in range(len(parents)):
        above, steps = v, 0
        while above >= 0:
            below[above].add(v)
            above, steps = parents[above], steps + 1
            assert steps <= len(parents), "the parents run in a circle"
    return below


def component(arcs: Iterable[Arc], start: int) -> set[int]:
    """The nodes that hang together with one, whichever way the arcs point."""
    arcs, reached = list(arcs), {start}
    while True:
        more = {v for arc in arcs if reached & set(arc) for v in arc} - reached
        if not more:
            return reached
        reached |= more


def is_spanning_tree(arcs: Iterable[Arc], nodes: Iterable[int]) -> bool:
    arcs, nodes = list(arcs), set(nodes)
    return len(arcs) == len(nodes) - 1 and component(arcs, min(nodes)) == nodes


def balances(arcs: Arcs, nodes: int) -> list[Flow]:
    """What goes out of each node less what comes in."""
    balance = [(0, 0)] * nodes
    for (tail, head), amount in arcs.items():
        balance[tail] = plus(balance[tail], amount)
        balance[head] = plus(balance[head], amount, -1)
    return balance


def flow_of_tree(edges: Sequence[Arc], balance: Sequence[Flow]) -> Arcs:
    """Send what each node has through a tree, along each edge the way that it has to go."""
    arcs: Arcs = {}
    for first, second in edges:
        others = [edge for edge in edges if edge != (first, second)]
        amount = total(balance[v] for v in component(others, first))
        forward = amount > (0, 0)
        arcs[(first, second) if forward else (second, first)] = (
            amount if forward else plus((0, 0), amount, -1)
        )
    return arcs


def north_west(supply: Sequence[Flow], demand: Sequence[Flow]) -> Arcs:
    """A tree from sources 0 .. m - 1 to targets m .. m + k - 1, all used up in their order."""
    arcs: Arcs = {}
    source, target = 0, 0
    left, wanted = supply[0], demand[0]
    while True:
        amount = min(left, wanted)
        arcs[source, len(supply) + target] = amount
        left, wanted = plus(left, amount, -1), plus(wanted, amount, -1)
        if left == wanted == (0, 0):
            return arcs
        if left == (0, 0):
            source += 1
            left = supply[source]
        else:
            target += 1
            wanted = demand[target]


def path(arcs: Iterable[Arc], start: int, end: int) -> list[int]:
    """The nodes of a tree from one to another, both included."""
    neighbours: dict[int, list[int]] = {}
    for tail, head in arcs:
        neighbours.setdefault(tail, []).append(head)
        neighbours.setdefault(head, []).append(tail)
    ways = [[start]]
    for way in ways:  # the list grows under the loop
        if way[-1] == end:
            return way
        ways += [[*way, v] for v in neighbours[way[-1]] if v not in way]
    raise AssertionError("no path")


def pivot(arcs: Arcs, tail: int, head: int) -> tuple[Arcs, Arc]:
    """The tree after an arc came in, and the arc that had to leave for it."""
    steps = list(itertools.pairwise(path(arcs, head, tail)))
    forward = [step for step in steps if step in arcs]
    backward = [(b, a) for a, b in steps if (b, a) in arcs]
    leaving = min(backward, key=arcs.__getitem__)
    amount = arcs[leaving]
    after = {**arcs, **{arc: plus(arcs[arc], amount) for arc in forward}}
    after |= {arc: plus(arcs[arc], amount, -1) for arc in backward}
    del after[leaving]
    return after | {(tail, head): amount}, leaving


def least_cost(supply: Ints, demand: Ints, cost: Ints) -> int:
    """The linear program of m sources and k targets, cost (m, k), by HiGHS."""
    m, k = cost.shape
    marginals = np.vstack([np.kron(np.eye(m), np.ones(k)), np.kron(np.ones(m), np.eye(k))])
    solution = linprog(
        cost.ravel(), A_eq=marginals[:-1], b_eq=np.concatenate([supply, demand])[:-1]
    )
    whole = round(float(solution.fun))
    assert abs(solution.fun - whole) < 1e-3, "too large for floats"
    return whole


def least_flow_cost(balance: Ints, cost: Ints) -> int:
    """The linear program of a flow along any arcs between n nodes, cost (n, n), by HiGHS."""
    n = len(balance)
    out_less_in = np.kron(np.eye(n), np.ones(n)) - np.kron(np.ones(n), np.eye(n))
    solution = linprog(cost.ravel(), A_eq=out_less_in[:-1], b_eq=balance[:-1])
    whole = round(float(solution.fun))
    assert abs(solution.fun - whole) < 1e-3, "too large for floats"
    return whole


def least_by_permutations(
    sources: Sequence[Cell], targets: Sequence[Cell], cost: Callable[[Cell, Cell], Fraction | int]
) -> tuple[Fraction, tuple[Cell, ...]]:
    """The least cost between cells of one unit each, and the target of each source.

    The corners of the polytope of such plans are the permutations (Birkhoff).
    """
    return min(
        (Fraction(sum(cost(x, y) for x, y in zip(sources, order, strict=True))), order)
        for order in itertools.permutations(targets)
    )


def unit_cost(cost: Cost, source: Cell, target: Cell) -> int:
    down, right = abs(source[0] - target[0]), abs(source[1] - target[1])
    if isinstance(cost, tuple):
        return int(cost[0][down]) + int(cost[1][right])
    return int(cost[down, right])


def cheapest(value: Ints, absent: int, cost: Cost) -> Ints:
    """At each cell (R, C) the least of cost - value over all cells that have a value."""
    targets = [cell for cell in np.ndindex(value.shape) if value[cell] != absent]
    best = np.empty(value.shape, np.int64)
    for cell in np.ndindex(value.shape):
        best[cell] = min(unit_cost(cost, cell, target) - int(value[target]) for target in targets)
    return best


def proves(
    supply: Ints,
    demand: Ints,
    sources: Ints,
    targets: Ints,
    flow: Ints,
    source_value: Ints,
    target_value: Ints,
    cost: Cost,
) -> bool:
    """Whether a plan carries supply to demand and the dual values show that none is cheaper."""
    cells = list(np.ndindex(supply.shape))
    left = {cell: int(supply[cell]) for cell in cells}
    wanted = {cell: int(demand[cell]) for cell in cells}
    spent = 0
    for x, y, units in zip(sources.tolist(), targets.tolist(), flow.tolist(), strict=True):
        source, target = (x[0], x[1]), (y[0], y[1])
        if units <= 0 or source not in left or target not in wanted:
            return False
        left[source] -= units
        wanted[target] -= units
        spent += units * unit_cost(cost, source, target)
    if any(left.values()) or any(wanted.values()):
        return False
    filled = [cell for cell in cells if supply[cell] > 0]
    aims = [cell for cell in cells if demand[cell] > 0]
    proved = sum(int(supply[cell]) * int(source_value[cell]) for cell in filled)
    proved += sum(int(demand[cell]) * int(target_value[cell]) for cell in aims)
    return spent == proved and all(
        int(source_value[x]) + int(target_value[y]) <= unit_cost(cost, x, y)
        for x in filled
        for y in aims
    )
