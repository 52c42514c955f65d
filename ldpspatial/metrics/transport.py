"""The cheapest way to carry one map to another: how far, from where to where, and the proof."""

import sys
from dataclasses import dataclass, field
from fractions import Fraction
from operator import mul

import numpy as np
import numpy.typing as npt

from ldpspatial.errors import InputError
from ldpspatial.metrics._maps import (
    Cell,
    FloatArray,
    cell_sides,
    checked_order,
    checked_pair,
    checked_shares,
)
from ldpspatial.metrics.exact import certificate
from ldpspatial.metrics.exact.grid_costs import SeparableCost
from ldpspatial.metrics.exact.ground_costs import GroundCost, check_shape, ground_cost
from ldpspatial.metrics.exact.multiscale import cheapest_plan
from ldpspatial.metrics.exact.network_simplex import Ints
from ldpspatial.metrics.exact.outward import root_above, root_below, root_near
from ldpspatial.metrics.exact.whole_maps import (
    WholeMaps,
    differ_by_rounding,
    exact_difference,
    whole_maps,
)
from ldpspatial.validate import one_of, true_or_false

GROUNDS = ("euclidean", "cityblock")

LEAST_SIDE = 1e-12
"""Shortest side of a cell relative to the other; most grids ask for more."""

LARGEST_FLOAT = sys.float_info.max


@dataclass(frozen=True, eq=False)
class Proof:
    """A cheapest plan in whole numbers and what proves it, as `certificate.check` takes it."""

    supply: Ints
    demand: Ints
    sources: Ints
    targets: Ints
    flow: Ints
    source_value: Ints
    target_value: Ints
    cost: Ints | tuple[Ints, Ints]

    def check(self) -> int:
        """Return the least cost in whole numbers, proved afresh.

        Raises
        ------
        SolverError
            The proof fails.
        """
        return certificate.check(**vars(self))


@dataclass(frozen=True, eq=False)
class Transport:
    """A cheapest plan between two maps, each taken as mass 1.

    Attributes
    ----------
    value : float
        The Wasserstein distance, in the unit of `cell`.
    lower, upper : float
        Bounds that hold for the maps as given: all rounding is in them, of masses, of costs and to
        floats.
    sources, targets : (n, 2) int64
        Cells (row, column) between which mass is carried. For order 1, mass that both maps have at
        a cell stays there and is not listed; for order 2 a cell may keep some, from itself to
        itself.
    mass : (n,) float64
        Share of the map's mass that is carried, > 0: the least float where it is below all floats.
    order, ground, cell
        As given; `cell` as (height, width).
    proof : Proof or None
        The same in whole numbers. None where the maps are equal up to rounding.
    """

    value: float
    lower: float
    upper: float
    sources: Ints = field(repr=False)
    targets: Ints = field(repr=False)
    mass: FloatArray = field(repr=False)
    order: int
    ground: str | SeparableCost
    cell: tuple[float, float]
    proof: Proof | None = field(repr=False)


def transport(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    order: int = 2,
    ground: str | SeparableCost = "euclidean",
    cell: Cell = 1.0,
    certify: bool = True,
) -> Transport:
    """Return a cheapest plan that carries map p to map q, with bounds on its cost.

    Parameters
    ----------
    p, q, order
        As in `wasserstein`.
    ground : {"euclidean", "cityblock"} or SeparableCost
        Ground distance: 2-norm or 1-norm. Or any whole-number cost that is convex along each axis:
        `value` is then (the mean cost of a unit of mass) ** (1 / order).
    cell : float or (height, width)
        Side of a cell, in the unit wanted for the distance; without effect on a `SeparableCost`.
    certify : bool
        Whether to prove the plan the cheapest, in code that shares nothing with the solver.

    Raises
    ------
    InputError, SolverError
        As in `wasserstein`.

    Examples
    --------
    >>> plan = transport([[3, 1, 0]], [[0, 1, 3]], order=1)
    >>> plan.value, plan.sources.tolist(), plan.targets.tolist(), plan.mass.tolist()
    (1.5, [[0, 0]], [[0, 2]], [0.75])
    """
    return _carried(*checked_pair(p, q), order, ground, cell, certify)


def transport_of_shares(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    order: int = 2,
    ground: str | SeparableCost = "euclidean",
    cell: Cell = 1.0,
    certify: bool = True,
) -> Transport:
    """Return what `transport` does, for maps of any two totals: each total counts as 100 %.

    For maps that are known to be shares, such as counts beside densities; `transport` treats totals
    that differ as a mistake. Neither map is rounded before its total is divided out.

    Examples
    --------
    >>> transport_of_shares([[3, 1, 0]], [[0, 0.25, 0.75]], order=1).value
    1.5
    """
    return _carried(*checked_shares(p, q), order, ground, cell, certify)


def _carried(
    p: FloatArray,
    q: FloatArray,
    order: int,
    ground: str | SeparableCost,
    cell: Cell,
    certify: bool,
) -> Transport:
    order = checked_order(order)
    sides = cell_sides(cell)
    _check_options(order, ground, sides, certify, p.shape)
    # A plan joins filled cells only, and costs depend on differences: the rest is cut off.
    box, corner = _box_of_mass(p, q)
    first = p[box]
    second = q[box]
    maps = _whole_maps(first, second, order, ground)
    if maps is None:
        bound = _bound(first, second, order, ground, sides)
        none = np.empty((0, 2), np.int64)
        return Transport(0.0, 0.0, bound, none, none, np.empty(0), order, ground, sides, None)
    unit, costs = _costs(first, second, order, ground, sides)
    proof = _solve(maps, costs)
    if certify:
        proof.check()
    cost, least, most = (unit**order * each for each in _real_costs(proof, maps, costs))
    lower = root_below(least, order)
    upper = root_above(most, order)
    # root_near may be off by one place: the value is kept between the bounds, which never are.
    return Transport(
        min(max(root_near(cost, order), lower), upper),
        lower,
        upper,
        proof.sources + corner,
        proof.targets + corner,
        maps.share(proof.flow),
        order,
        ground,
        sides,
        proof,
    )


def _check_options(
    order: int, ground: object, sides: tuple[float, float], certify: object, shape: tuple[int, ...]
) -> None:
    # Fractions, as the extent itself may be beyond all floats.
    extent = sum(n * Fraction(side) for n, side in zip(shape, sides, strict=True))
    if isinstance(ground, SeparableCost):
        check_shape(ground, shape)
    elif one_of("ground", ground, GROUNDS) and extent**order > LARGEST_FLOAT:
        # Costs of flows are floats too.
        raise InputError(
            f"cell must leave {shape[0]} rows and {shape[1]} columns an extent below "
            f"{LARGEST_FLOAT ** (1 / order):.3g} for order {order}, got {sides!r}"
        )
    true_or_false("certify", certify)


def _whole_maps(
    p: FloatArray, q: FloatArray, order: int, ground: str | SeparableCost
) -> WholeMaps | None:
    """Return maps in whole numbers, None where they differ by nothing but rounding."""
    if differ_by_rounding(p, q):
        return None
    # Where the cost is a distance, mass that both maps have need not move (triangle inequality).
    distance = order == 1 and not isinstance(ground, SeparableCost)
    maps = whole_maps(p, q, without_common=distance)
    return None if np.array_equal(maps.supply, maps.demand) else maps


def _real_costs(
    proof: Proof, maps: WholeMaps, costs: GroundCost
) -> tuple[Fraction, Fraction, Fraction]:
    """Return the real cost of the plan and bounds on the least one, for maps of mass 1."""
    down, right = abs(proof.sources - proof.targets).T
    # In Python's numbers: a flow times its cost may be beyond 64 bits.
    least = sum(map(mul, proof.flow.tolist(), costs.whole.between(down, right).tolist()))
    bounds = costs.bounds(proof.flow, down, right, least)
    cost, lower, upper = (each * maps.unit for each in bounds)
    displaced = _displaced(maps, costs)
    return cost, max(lower - displaced, Fraction(0)), upper + displaced


def _box_of_mass(p: FloatArray, q: FloatArray) -> tuple[tuple[slice, slice], Ints]:
    """Return the smallest block of cells that holds all mass, and its first cell."""
    filled = (p > 0) | (q > 0)
    rows, columns = (np.flatnonzero(filled.any(axis=axis)).tolist() for axis in (1, 0))
    box = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    return box, np.array([rows[0], columns[0]])


def _bound(
    p: FloatArray,
    q: FloatArray,
    order: int,
    ground: str | SeparableCost,
    cell: tuple[float, float],
) -> float:
    """Return an upper bound of the distance: as if all that differs went all the way."""
    rows, columns = p.shape
    if isinstance(ground, SeparableCost):
        farthest = Fraction(int(ground.rows[rows - 1]) + int(ground.columns[columns - 1]))
    else:
        # In the 1-norm, which is no less than the 2-norm: it bounds both grounds.
        extent = (rows - 1) * Fraction(cell[0]) + (columns - 1) * Fraction(cell[1])
        farthest = extent**order
    return root_above(farthest * exact_difference(p, q), order)


def _costs(
    p: FloatArray,
    q: FloatArray,
    order: int,
    ground: str | SeparableCost,
    cell: tuple[float, float],
) -> tuple[Fraction, GroundCost]:
    """Return the unit of length to solve in, and the costs in it, between the cells of the maps."""
    height, width = p.shape
    nodes = int(np.count_nonzero(p) + np.count_nonzero(q))
    if isinstance(ground, SeparableCost):
        part = SeparableCost(ground.rows[:height], ground.columns[:width])
        return Fraction(1), ground_cost((height, width), nodes, order, part, (1.0, 1.0))
    # The sides of square cells become 1: their costs are then whole numbers, or roots of them.
    used = (Fraction(cell[0]) * (height > 1), Fraction(cell[1]) * (width > 1))
    # Above 0: maps on a single cell are equal and do not come here.
    unit = max(used)
    sides = (used[0] / unit, used[1] / unit)
    if min(used) > 0 and min(sides) < LEAST_SIDE:
        raise InputError(f"cell must have no side below {LEAST_SIDE:g} of the other, got {cell!r}")
    return unit, ground_cost((height, width), nodes, order, ground, sides)


def _solve(maps: WholeMaps, costs: GroundCost) -> Proof:
    solution = cheapest_plan(maps.supply, maps.demand, costs.whole)
    plan = solution.plan
    shape = maps.supply.shape
    carried = plan.flow > 0  # other arcs of the tree carry nothing but a tie
    return Proof(
        supply=maps.supply,
        demand=maps.demand,
        sources=np.stack(np.divmod(plan.source[carried], shape[1]), axis=1),
        targets=np.stack(np.divmod(plan.target[carried], shape[1]), axis=1),
        flow=plan.flow[carried],
        source_value=solution.source_value,
        target_value=solution.target_value,
        cost=costs.whole.parts(),
    )


def _displaced(maps: WholeMaps, costs: GroundCost) -> Fraction:
    """Return a bound on how much the rounding of masses changed the least cost, per unit mass 1.

    Of each map half a unit at most is on the wrong side of each step of the snake through it, of
    both together a unit. Put right, step by step, each changes the cost of what it carries by no
    more than that of one step.
    """
    if not maps.rounded:
        return Fraction(0)
    rows, columns = maps.supply.shape
    down, right = costs.steps
    steps_of_snake: Fraction = (rows - 1) * down + rows * (columns - 1) * right
    return maps.unit * steps_of_snake
