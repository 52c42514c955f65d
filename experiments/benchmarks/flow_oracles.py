"""What a user would otherwise pick for an exact distance: OR-Tools on a network, POT on a matrix.

Masses are whole numbers of equal total, costs whole numbers in units of a cell, so the least cost
is a whole number. OR-Tools' own sum of it stops at 2^63 - 1 without a word; here it is summed from
the flows in Python's integers.

References
----------
Auricchio, Bassetti, Gualandi and Veneroni, Computing Kantorovich-Wasserstein distances on
d-dimensional histograms using (d+1)-partite graphs, NeurIPS 2018: the two-hop network.
Goldberg, An efficient implementation of a scaling minimum-cost flow algorithm, J. Algorithms
22(1), 1997: the method behind OR-Tools' SimpleMinCostFlow.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import ot
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from ldpspatial.errors import InputError, SolverError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

COSTS: dict[str, Callable[[IntArray, IntArray], IntArray]] = {
    "squared": lambda down, right: down**2 + right**2,
    "cityblock": lambda down, right: np.abs(down) + np.abs(right),
    "squared cityblock": lambda down, right: (np.abs(down) + np.abs(right)) ** 2,
}
"""Cost of a unit of mass by the rows and columns that it travels."""

# Near 2^53 the rounding of float64 comes to whole units.
MAX_ROUNDED_TOTAL = 2**50

_POT_OPTIMAL = 1
_POT_PIVOTS = 100_000_000


@dataclass(frozen=True)
class Network:
    """A minimum-cost flow problem.

    Attributes
    ----------
    tails, heads : ndarray of int32, shape (arcs,)
        Nodes that an arc leaves and enters.
    capacities, costs : ndarray of int64, shape (arcs,)
        Most flow of an arc, and what a unit of it costs.
    supplies : ndarray of int64, shape (nodes,)
        What a node sends; negative where it receives. The sum is 0.
    """

    tails: npt.NDArray[np.int32]
    heads: npt.NDArray[np.int32]
    capacities: IntArray
    costs: IntArray
    supplies: IntArray


@dataclass(frozen=True)
class Solution:
    """The least cost of a network and the time that it took.

    Attributes
    ----------
    cost : int
        Exact.
    build_seconds : float
        From the maps to a network that the solver holds.
    solve_seconds : float
        Inside the solver.
    """

    cost: int
    build_seconds: float
    solve_seconds: float


def two_hop_cost(p: IntArray, q: IntArray) -> int:
    """Return the least cost for the squared 2-norm, on the two-hop network; see `solve`."""
    return solve(lambda: two_hop_network(p, q)).cost


def four_neighbour_cost(p: IntArray, q: IntArray) -> int:
    """Return the least cost for the 1-norm, on the network of neighbours; see `solve`."""
    return solve(lambda: four_neighbour_network(p, q)).cost


def dense_cost(p: IntArray, q: IntArray, cost: str = "squared") -> int:
    """Return the least cost for any of `COSTS`, on the network of all pairs; see `solve`."""
    return solve(lambda: dense_network(p, q, cost)).cost


def pot_dense_cost(p: IntArray, q: IntArray, cost: str = "squared") -> float:
    """Return the least cost for any of `COSTS` as POT's network simplex finds it, in float64.

    Raises
    ------
    InputError
        As for `two_hop_network`.
    SolverError
        POT did not reach an optimum.
    """
    sources, targets, matrix = _pairs(p, q, cost)
    # POT rescales one side by total / total, product first. On masses of some 10^12 that rounds by
    # more than the 1e-8 that it lets pass, and feasible problems are refused.
    unit = 2.0 ** int(sources.sum()).bit_length()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the result code below says the same
        least, log = ot.emd2(
            sources / unit,
            targets / unit,
            matrix.astype(np.float64),
            numItermax=_POT_PIVOTS,
            log=True,
        )
    if log["result_code"] != _POT_OPTIMAL:
        raise SolverError(f"POT: {log['warning']}")
    return float(least) * unit


def whole_masses(
    p: npt.ArrayLike, q: npt.ArrayLike, total: int = 2**40
) -> tuple[IntArray, IntArray]:
    """Round two maps to whole masses of one total, by largest remainders.

    Each map is scaled to `total` and rounded down; the units left over go, one each, to the cells
    that lost most, ties to the first. No cell changes by a whole unit, so the least cost per unit
    of mass changes by less than cells / total of the largest cost between two cells.

    Parameters
    ----------
    p, q : array_like, shape (rows, columns)
        Masses >= 0 with positive totals.
    total : int
        At most 2^50.

    Raises
    ------
    InputError
        `total` is not in [1, 2^50].
    """
    if not 1 <= total <= MAX_ROUNDED_TOTAL:
        raise InputError(f"total: must be in [1, 2^50], not {total!r}")
    return _largest_remainders(np.asarray(p), total), _largest_remainders(np.asarray(q), total)


def _largest_remainders(masses: npt.NDArray[np.float64], total: int) -> IntArray:
    exact = masses.ravel() * (total / masses.sum())
    whole = np.floor(exact).astype(np.int64)
    losers = np.argsort(whole - exact, kind="stable")
    whole[losers[: max(total - int(whole.sum()), 0)]] += 1
    whole[np.argmax(whole)] += total - whole.sum()  # a unit, if float64 misses the total by one
    rounded: IntArray = whole.reshape(masses.shape)
    return rounded


def solve(build: Callable[[], Network]) -> Solution:
    """Build a network and return its least cost by OR-Tools.

    OR-Tools' solve lays out its graph and runs a maximum flow first: both are in `solve_seconds`.
    Answers are right for totals up to 2^62 (2^60 between neighbours, where every arc may carry all
    that moves) and largest cost times nodes up to 2^60; beyond, it reports a bad range.

    Raises
    ------
    SolverError
        OR-Tools reports anything but an optimum.
    """
    began = time.perf_counter()
    network = build()
    solver = SimpleMinCostFlow()
    costs = network.costs
    arcs = solver.add_arcs_with_capacity_and_unit_cost(
        network.tails, network.heads, network.capacities, costs
    )
    solver.set_nodes_supplies(np.arange(len(network.supplies), dtype=np.int32), network.supplies)
    del network  # the solver has its own copy, and peak memory is measured
    built = time.perf_counter()
    status = solver.solve()
    solved = time.perf_counter()
    if status != SimpleMinCostFlow.OPTIMAL:
        raise SolverError(f"OR-Tools: {status.name}")
    return Solution(_exact_cost(solver.flows(arcs), costs), built - began, solved - built)


def _exact_cost(flows: IntArray, costs: IntArray) -> int:
    used = flows > 0
    pairs = zip(flows[used].tolist(), costs[used].tolist(), strict=True)
    return sum(flow * cost for flow, cost in pairs)


def two_hop_network(p: IntArray, q: IntArray) -> Network:
    """Return the network for the squared 2-norm: along the row to a column, then along that.

    Nodes: the cells where `p` has mass; (row, column) for every row with mass of `p` and column
    with mass of `q`; the cells where `q` has mass. On full maps of d x d cells, 2 d^3 arcs.

    Raises
    ------
    InputError
        The maps are no 2-D arrays of whole numbers >= 0, of one shape and one positive total.
    """
    _check(p, q)
    sources = np.argwhere(p > 0)
    targets = np.argwhere(q > 0)
    row_used = p.any(axis=1)
    column_used = q.any(axis=0)
    rows = np.flatnonzero(row_used)
    columns = np.flatnonzero(column_used)
    row_rank = np.cumsum(row_used) - 1
    column_rank = np.cumsum(column_used) - 1
    sizes = np.cumsum([len(sources), len(rows) * len(columns), len(targets)])
    outer, between, inner = np.split(np.arange(sizes[-1], dtype=np.int32), sizes[:-1])
    between = between.reshape(len(rows), len(columns))
    first_costs = (sources[:, 1, None] - columns) ** 2
    second_costs = (targets[:, 0, None] - rows) ** 2
    first_heads = between[row_rank[sources[:, 0]]]
    second_tails = between.T[column_rank[targets[:, 1]]]
    return Network(
        np.concatenate([np.repeat(outer, len(columns)), second_tails.ravel()]),
        np.concatenate([first_heads.ravel(), np.repeat(inner, len(rows))]),
        np.concatenate([np.repeat(p[p > 0], len(columns)), np.repeat(q[q > 0], len(rows))]),
        np.concatenate([first_costs.ravel(), second_costs.ravel()]),
        np.concatenate([p[p > 0], np.zeros(between.size, np.int64), -q[q > 0]]),
    )


def four_neighbour_network(p: IntArray, q: IntArray) -> Network:
    """Return the network for the 1-norm: cells, and unit steps between neighbours both ways.

    Mass common to both maps stays where it is: W1 depends on p - q alone.

    Raises
    ------
    InputError
        As for `two_hop_network`.
    """
    _check(p, q)
    cells = np.arange(p.size, dtype=np.int32).reshape(p.shape)
    one = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    other = np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()])
    supplies = (p - q).ravel()
    moved = int(supplies[supplies > 0].sum())
    arcs = 2 * len(one)
    return Network(
        np.concatenate([one, other]),
        np.concatenate([other, one]),
        np.full(arcs, moved, np.int64),
        np.ones(arcs, np.int64),
        supplies,
    )


def dense_network(p: IntArray, q: IntArray, cost: str = "squared") -> Network:
    """Return the network of all pairs of cells with mass, one of `COSTS`.

    Raises
    ------
    InputError
        As for `two_hop_network`, or no such cost.
    """
    sources, targets, matrix = _pairs(p, q, cost)
    nodes = np.arange(len(sources) + len(targets), dtype=np.int32)
    return Network(
        np.repeat(nodes[: len(sources)], len(targets)),
        np.tile(nodes[len(sources) :], len(sources)),
        np.minimum.outer(sources, targets).ravel(),
        matrix.ravel(),
        np.concatenate([sources, -targets]),
    )


def _pairs(p: IntArray, q: IntArray, cost: str) -> tuple[IntArray, IntArray, IntArray]:
    """Return the masses of the cells with mass, (n,) and (m,), and their costs, (n, m)."""
    _check(p, q)
    if cost not in COSTS:
        raise InputError(f"cost: must be one of {', '.join(COSTS)}, not {cost!r}")
    sources = np.argwhere(p > 0)
    targets = np.argwhere(q > 0)
    down = sources[:, 0, None] - targets[:, 0]
    right = sources[:, 1, None] - targets[:, 1]
    return p[p > 0], q[q > 0], COSTS[cost](down, right)


def _check(p: IntArray, q: IntArray) -> None:
    for field, masses in (("p", p), ("q", q)):
        if masses.dtype != np.int64 or masses.ndim != 2 or masses.min(initial=0) < 0:
            raise InputError(f"{field}: must be a 2-D array of int64 >= 0")
    if p.shape != q.shape or not 0 < p.sum() == q.sum():
        raise InputError("q: must have the shape and the total, above 0, of p")
