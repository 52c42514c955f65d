"""Least cost of carrying one whole-number map to another, from coarse grids to fine ones.

The network is the complete one, an arc from every source to every target, but no arc is stored.
Each round prices all of them at once (`GridCost.cheapest`), which gives the most violated arc of
each source, and pivots those in, most violated first. When none is violated the tree is optimal.

The tree of a grid of half as many rows and columns starts that of the next one (the multiscale idea
of Schmitzer, J. Math. Imaging Vis. 56, 2016): each coarse flow is dealt out to the cells of its
ends by the north-west corner rule, first at the sources, then at the targets. What comes out is
again a spanning tree with a feasible flow: cutting a node of a tree into k nodes takes k - 1 more
arcs, and that is how many the rule adds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpspatial.compiled import compiled
from ldpspatial.errors import SolverError
from ldpspatial.metrics.exact.dealing import Parts, Plan, deal
from ldpspatial.metrics.exact.grid_costs import GridCost
from ldpspatial.metrics.exact.halves import Halves
from ldpspatial.metrics.exact.network_simplex import Ints, Tree, improve, plant
from ldpspatial.metrics.exact.pricing import ABSENT

COARSEST = 64
"""Cells of a grid that is started from a single cell."""

FAR = 2**60
"""How far potentials may drift between rounds."""

TWO_THREADS_FROM = 128 * 128
"""Cells of a grid from which pricing on two cores pays for the hand-over."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A cheapest plan and the potentials that prove it.

    source_value and target_value are (R, C) dual values, ABSENT at cells without mass: the sum of
    two is at most the cost between their cells, and equal to it where flow goes.
    """

    plan: Plan
    source_value: Ints
    target_value: Ints
    pivots: int
    rounds: int


def cheapest_plan(supply: Ints, demand: Ints, cost: GridCost) -> Solution:
    """Carry `supply` to `demand`, (R, C) whole masses of one positive total, at least cost.

    Raises
    ------
    SolverError
        A potential left the range in which 64-bit sums are exact.
    """
    plan = Plan.of_one_cell(int(supply.sum()), int(np.count_nonzero(supply)))
    pivots = rounds = 0
    for sources, targets, level_cost in reversed(list(_levels(supply, demand, cost))):
        plan = deal(plan, sources, targets)
        network = _Network(plan, sources, targets, level_cost)
        with Halves(2 if supply.size >= TWO_THREADS_FROM else 1) as halves:
            added = network.optimise(halves)
        pivots = pivots + sum(added)
        rounds = rounds + len(added)
        plan = network.plan()
    return Solution(plan, network.source_value, network.target_value, pivots, rounds)


def _levels(supply: Ints, demand: Ints, cost: GridCost) -> Iterator[tuple[Parts, Parts, GridCost]]:
    """Yield sources, targets and cost of the grid, then of ever coarser ones."""
    supply_tie = (supply > 0).astype(np.int64)
    demand_tie = np.zeros_like(supply_tie)
    demand_tie.flat[np.flatnonzero(demand)[0]] = supply_tie.sum()
    maps = [supply, supply_tie, demand, demand_tie]
    while True:
        yield Parts.of_maps(*maps[:2]), Parts.of_maps(*maps[2:]), cost
        if maps[0].size <= COARSEST:
            return
        # Ties add up as masses do: supply and demand agree in both on every level.
        maps = [_coarser(each) for each in maps]
        cost = cost.coarser()


def _coarser(whole: Ints) -> Ints:
    """Return the sums over blocks of 2 x 2 cells; the last row and column may stand alone."""
    sums = np.add.reduceat(whole, np.arange(0, whole.shape[0], 2), axis=0)
    coarse: Ints = np.add.reduceat(sums, np.arange(0, whole.shape[1], 2), axis=1)
    return coarse


class _Network:
    """The tree of one level, the cells of its nodes, and the prices of its arcs."""

    def __init__(self, plan: Plan, sources: Parts, targets: Parts, cost: GridCost):
        self.shape = sources.shape
        tails = np.searchsorted(sources.cell, plan.source)
        heads = np.searchsorted(targets.cell, plan.target) + len(sources.cell)
        arc_cost = _between(cost, plan.source, plan.target, self.shape)
        node, thread, potential, old = plant(tails, heads, plan.flow, plan.tie, arc_cost)
        self.tree = Tree(node, thread, potential)
        self.cell = np.concatenate((sources.cell, targets.cell))[old]
        self.is_target = old >= len(sources.cell)
        self.source_node = self._nodes_at_cells(~self.is_target)
        self.target_node = self._nodes_at_cells(self.is_target)
        self.source_value = np.full(self.shape, ABSENT)
        self.target_value = np.full(self.shape, ABSENT)
        self.pricing = cost.pricing(self.source_node >= 0, self.target_node >= 0)

    def _nodes_at_cells(self, chosen: np.ndarray) -> np.ndarray:
        found = np.full(self.shape, -1, np.int32)
        found.flat[self.cell[chosen]] = np.flatnonzero(chosen)
        return found

    def optimise(self, halves: Halves) -> list[int]:
        """Pivot until no arc is violated; return the number of pivots of each round."""
        added: list[int] = []
        tree = self.tree
        value = self.target_value
        limit = self.source_value
        while True:
            _read_values(tree.potential, self.cell, self.is_target, limit.ravel(), value.ravel())
            best, target = self.pricing.cheapest(value, limit, halves)
            violated = np.flatnonzero(best < limit)
            # All arcs were priced at these very potentials, so this proves the tree optimal.
            if len(violated) == 0:
                return added
            least = best.ravel()[violated]
            order = np.argsort(least - limit.ravel()[violated])
            violated = violated[order]
            least = least[order]
            partner = target.ravel()[violated]
            pivots = improve(
                tree,
                self.source_node.ravel()[violated],
                self.target_node.ravel()[partner],
                # `least` is cost - value: this is the cost again.
                least + value.ravel()[partner],
            )
            if pivots < 0:
                raise SolverError("network simplex: potentials left the range of exact sums")
            added.append(pivots)

    def plan(self) -> Plan:
        """Return the arcs of the tree, those that carry nothing but a tie included."""
        node = self.tree.node
        child = np.flatnonzero(node["parent"] >= 0)
        parent = node["parent"][child]
        upward = node["upward"][child] == 1
        return Plan(
            source=self.cell[np.where(upward, child, parent)],
            target=self.cell[np.where(upward, parent, child)],
            flow=node["flow"][child].copy(),
            tie=node["tie"][child].astype(np.int64),
            shape=self.shape,
        )


def _between(cost: GridCost, first: Ints, second: Ints, shape: tuple[int, int]) -> Ints:
    rows, columns = np.divmod(first, shape[1])
    other_rows, other_columns = np.divmod(second, shape[1])
    return cost.between(abs(rows - other_rows), abs(columns - other_columns))


@compiled
def _read_values(
    potential: Ints, cell: Ints, is_target: np.ndarray, source_value: Ints, target_value: Ints
) -> None:
    """Fill in the dual values at the cells of the nodes.

    Each pivot moves a part of the potentials, so all of them drift. Once the first one has gone far
    they are moved back to it; not before, as pricing looks again at what has changed.
    """
    first = potential[0] if abs(potential[0]) > FAR else 0
    for v in range(len(potential)):
        potential[v] -= first
        # With these signs the reduced cost is cost - source value - target value.
        if is_target[v]:
            target_value[cell[v]] = potential[v]
        else:
            source_value[cell[v]] = -potential[v]
