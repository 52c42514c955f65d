from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from ldpspatial.metrics.exact.network_simplex import POTENTIAL_LIMIT, Ints, Tree, improve, plant
from tests.support import naive_transport as naive
from tests.support.naive_transport import Arc, Arcs, Flow


@dataclass
class Planted:
    """A tree, the costs (n, n) between its nodes and what each of them sends."""

    tree: Tree
    cost: Ints
    balance: list[Flow]

    def arcs(self) -> Arcs:
        return {
            (v, above) if upward else (above, v): (flow, tie)
            for v, (flow, tie, above, *_, upward) in enumerate(self.tree.node.tolist())
            if above >= 0
        }

    def spent(self) -> Flow:
        """Costs of the flows and of the ties."""
        each = [(int(self.cost[arc]), amount) for arc, amount in self.arcs().items()]
        return naive.total((cost * flow, cost * tie) for cost, (flow, tie) in each)

    def add(self, *arcs: Arc) -> int:
        tails, heads = np.array(arcs, np.int32).reshape(-1, 2).T.copy()
        return int(improve(self.tree, tails, heads, self.cost[tails, heads]))

    def reduced(self) -> Ints:
        potential = self.tree.potential
        reduced: Ints = self.cost + potential[:, None] - potential[None, :]
        return reduced


def planted(arcs: Arcs, balance: Sequence[Flow], cost: Ints) -> Planted:
    """Plant a tree; everything about its nodes is then in their new numbers."""
    tails, heads = np.array(list(arcs), np.int64).reshape(-1, 2).T.copy()
    flow, tie = np.array(list(arcs.values()), np.int64).reshape(-1, 2).T.copy()
    *tree, old = plant(tails, heads, flow, tie, cost[tails, heads])
    assert sorted(old) == list(range(len(balance)))
    made = Planted(Tree(*tree), cost[np.ix_(old, old)].copy(), [balance[v] for v in old])
    assert {(old[a], old[b]): amount for (a, b), amount in made.arcs().items()} == arcs
    return made


def check(made: Planted) -> None:
    """Work out all that the tree says of itself from its parents and compare."""
    tree, n = made.tree, len(made.balance)
    parents, size, last, before = (
        tree.node[name].tolist() for name in ("parent", "size", "last", "before")
    )
    thread = tree.thread.tolist()
    below = naive.subtrees(parents)
    root = parents.index(-1)
    order = [root]
    while thread[order[-1]] != root and len(order) < n:
        order.append(thread[order[-1]])
    assert sorted(order) == list(range(n))
    assert [before[thread[v]] for v in range(n)] == list(range(n))
    assert size == [len(nodes) for nodes in below]
    for place, v in enumerate(order):
        piece = order[place : place + size[v]]
        assert set(piece) == below[v]
        assert last[v] == piece[-1]
    arcs = made.arcs()
    assert naive.is_spanning_tree(arcs, range(n))
    assert naive.balances(arcs, n) == made.balance
    assert min(arcs.values(), default=(1, 0)) > (0, 0)
    potential = tree.potential.tolist()
    assert all(made.cost[a, b] + potential[a] == potential[b] for a, b in arcs)


def check_pivot(made: Planted, arc: Arc) -> str:
    """Add one arc of negative reduced cost and return which side of the tree moved."""
    parents, size, n = made.tree.node["parent"].tolist(), made.tree.node["size"], len(made.balance)
    expected, (a, b) = naive.pivot(made.arcs(), *arc)
    moved = int(size[a if parents[a] == b else b])
    spent, potential = made.spent(), made.tree.potential.copy()
    assert made.add(arc) == 1
    check(made)
    assert made.arcs() == expected
    assert made.spent() < spent
    assert np.count_nonzero(made.tree.potential != potential) == min(moved, n - moved)
    root_stays = made.tree.node["parent"][parents.index(-1)] == -1
    assert root_stays == (2 * moved <= n)
    return "smaller" if root_stays else "with the root"


def optimise(made: Planted, rng: np.random.Generator) -> Counter[str]:
    """Pivot on any arc of negative reduced cost until there is none; count which sides moved."""
    sides: Counter[str] = Counter()
    while True:
        violated = np.argwhere(made.reduced() < 0).tolist()
        if not violated:
            return sides
        tail, head = violated[rng.integers(len(violated))]
        sides[check_pivot(made, (tail, head))] += 1


def random_edges(rng: np.random.Generator, n: int, kind: str) -> list[Arc]:
    order = rng.permutation(n).tolist()
    shapes: dict[str, Callable[[int], int]] = {
        "chain": lambda k: k - 1,
        "star": lambda k: 0,
        "broom": lambda k: min(k - 1, n // 2),
        "any": lambda k: int(rng.integers(k)),
    }
    above = shapes[kind]
    return [(order[above(k)], order[k]) for k in range(1, n)]


def random_network(rng: np.random.Generator, n: int, kind: str, most: int) -> Planted:
    """A tree between nodes that send or take little or nothing, arcs allowed both ways."""
    flow = rng.integers(-2, 3, n)
    flow[-1] -= flow.sum()
    # No part of the nodes has ties of sum 0, so that no part of a tree balances.
    balance = [(int(each), 1) for each in flow[:-1]] + [(int(flow[-1]), 1 - n)]
    cost = rng.integers(0, most, (n, n), endpoint=True)
    np.fill_diagonal(cost, 0)
    return planted(naive.flow_of_tree(random_edges(rng, n, kind), balance), balance, cost)


def bipartite(rng: np.random.Generator, supply: Ints, demand: Ints, between: Ints) -> Planted:
    """The tree that deals sources out to targets, both in a random order."""
    m, k = between.shape
    rows, columns = rng.permutation(m), rng.permutation(k)
    ties = np.zeros(k, np.int64)
    ties[0] = m
    sources = [(int(supply[i]), 1) for i in rows]
    targets = [(int(demand[j]), int(ties[j])) for j in columns]
    # The other way round an arc costs more than any way through the tree.
    cost = np.full((m + k, m + k), (m + k) * (int(between.max()) + 1))
    cost[:m, m:] = between[np.ix_(rows, columns)]
    balance = sources + [(-flow, -tie) for flow, tie in targets]
    return planted(naive.north_west(sources, targets), balance, cost)


KINDS = ["chain", "star", "broom", "any"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 9, 40])
def test_planted_trees_are_right(kind: str, n: int) -> None:
    rng = np.random.default_rng([1, n])
    for _ in range(5):
        made = random_network(rng, n, kind, 1000)
        check(made)
        assert made.tree.thread.tolist() == [*range(1, n), 0]  # neighbours in memory
        assert made.tree.potential[0] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [1, 3, 10**12])
def test_every_pivot_leaves_a_tree_that_is_right_and_cheaper(kind: str, most: int) -> None:
    rng = np.random.default_rng([2, len(kind), most])
    sides: Counter[str] = Counter()
    for n in [2, 3, 4, 5, 8, 13, 21] * 3:
        made = random_network(rng, n, kind, most)
        sides += optimise(made, rng)
    assert min(sides["smaller"], sides["with the root"]) >= 5, sides


@pytest.mark.parametrize("n", [2, 3, 5, 9, 16])
def test_flows_between_any_nodes_cost_what_the_linear_program_says(n: int) -> None:
    rng = np.random.default_rng([3, n])
    for kind in KINDS * 2:
        made = random_network(rng, n, kind, 20)
        optimise(made, rng)
        balance = np.array([flow for flow, _ in made.balance])
        assert made.spent()[0] == naive.least_flow_cost(balance, made.cost)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 2), (5, 7), (12, 8)])
@pytest.mark.parametrize("most", [0, 1, 3, 1000])
def test_transports_cost_what_the_linear_program_says(shape: Arc, most: int) -> None:
    rng = np.random.default_rng([4, *shape, most])
    for largest in (1, 3, 1000):
        supply, demand = (rng.integers(1, largest, size, endpoint=True) for size in shape)
        short = int(supply.sum() - demand.sum())
        demand[-1] += max(short, 0)
        supply[-1] += max(-short, 0)
        between = rng.integers(0, most, shape, endpoint=True)
        made = bipartite(rng, supply, demand, between)
        optimise(made, rng)
        assert made.spent()[0] == naive.least_cost(supply, demand, between)


@pytest.mark.parametrize("most", [0, 1, 5, 10**15])
def test_equal_masses_cost_what_the_best_assignment_costs(most: int) -> None:
    rng = np.random.default_rng([5, most])
    for n in (1, 2, 3, 10, 18):
        between = rng.integers(0, most, (n, n), endpoint=True)
        rows, columns = linear_sum_assignment(between)
        ones = np.ones(n, np.int64)
        made = bipartite(rng, ones, ones, between)
        optimise(made, rng)
        assert made.spent()[0] == int(between[rows, columns].sum())


def test_masses_up_to_2_to_the_52_are_exact() -> None:
    # One unit of 2^52 more or less on either arc: floats of this size could not tell.
    supply, demand = np.array([2**52 - 3, 3]), np.array([3, 2**52 - 3])
    between = np.array([[7, 1], [2, 9]])
    made = bipartite(np.random.default_rng(6), supply, demand, between)
    optimise(made, np.random.default_rng(6))
    assert made.spent()[0] == (2**52 - 3) + 3 * 2


def test_many_arcs_at_once_are_those_still_negative_one_by_one() -> None:
    for seed in range(20):
        together, alone = (
            random_network(np.random.default_rng([7, seed]), 15, "any", 50) for _ in range(2)
        )
        arcs = np.argwhere(together.reduced() < 0)
        wanted = [(a, b) for a, b in np.random.default_rng(seed).permutation(arcs).tolist()]
        assert together.add(*wanted) == sum(alone.add(arc) for arc in wanted) > 0
        check(together)
        assert together.arcs() == alone.arcs()
        assert np.array_equal(together.tree.potential, alone.tree.potential)


def test_arcs_that_are_not_negative_change_nothing() -> None:
    made = random_network(np.random.default_rng(8), 12, "any", 9)
    before = made.tree.node.copy(), made.tree.thread.copy(), made.tree.potential.copy()
    assert made.add(*made.arcs()) == 0  # reduced costs of exactly 0
    assert made.add() == 0
    assert all(map(np.array_equal, made.tree, before))


@pytest.mark.parametrize(("tail", "head"), [(0, 1), (1, 0)])
@pytest.mark.parametrize(("cost", "added"), [(POTENTIAL_LIMIT, 1), (POTENTIAL_LIMIT + 1, -1)])
def test_a_potential_beyond_the_limit_is_reported(
    tail: int, head: int, cost: int, added: int
) -> None:
    balance = [(-5, 1), (5, -1)]
    balance[tail], balance[head] = (5, 1), (-5, -1)
    costs = np.zeros((2, 2), np.int64)
    costs[tail, head] = POTENTIAL_LIMIT + 100
    made = planted({(tail, head): (5, 1)}, balance, costs)
    a, b = next(iter(made.arcs()))
    made.cost[a, b] = cost  # an arc beside the one in the tree, and cheaper
    assert made.add((a, b)) == added
    if added > 0:
        check(made)
        assert abs(made.tree.potential).max() == POTENTIAL_LIMIT


def test_a_large_network_stays_right() -> None:
    rng = np.random.default_rng(9)
    supply, demand = rng.integers(1, 9, 60), rng.integers(1, 9, 60)
    supply[0] += max(0, demand.sum() - supply.sum())
    demand[0] += supply.sum() - demand.sum()
    places = rng.integers(0, 12, (2, 60, 2))
    between = ((places[0][:, None] - places[1][None]) ** 2).sum(axis=2)
    made = bipartite(rng, supply, demand, between)
    while (negative := np.argwhere(made.reduced() < 0)).size:
        assert made.add(*((a, b) for a, b in rng.permutation(negative).tolist())) > 0
        check(made)
    assert made.spent()[0] == naive.least_cost(supply, demand, between)
