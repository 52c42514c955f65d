"""Proof that a plan is the cheapest one: linear-programming duality, checked in whole numbers.

A plan that carries supply to demand costs at least the sum of the dual values times the masses, for
any dual values whose sum is at most the cost for every pair of cells. Where the two are equal, no
plan is cheaper and no dual values are better (Peyre and Cuturi 2019, sections 2.5 and 3.3).

Nothing here is shared with the solver: no tree, no pricing kernel, no compiled code. Every pair of
cells is looked at; where costs add up over the axes, along one axis and then along the other.
"""

from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpspatial.errors import SolverError

Ints = npt.NDArray[np.int64]

# Stands for a dual value that allows any other: far above all values, and sums of two still fit.
_FAR = 2**62
_LARGEST = 2**61

_PAIRS = 2**18  # looked at in one go


def check(
    supply: Ints,
    demand: Ints,
    sources: Ints,
    targets: Ints,
    flow: Ints,
    source_value: Ints,
    target_value: Ints,
    cost: Ints | tuple[Ints, Ints],
) -> int:
    """Return the cost of a plan once the dual values have proved that none is cheaper.

    Parameters
    ----------
    supply, demand : (R, C) int64
        Masses, >= 0.
    sources, targets : (n, 2) int64
        Cells (row, column) of each flow.
    flow : (n,) int64
        Units carried, > 0.
    source_value, target_value : (R, C) int64
        Dual values; those at cells without mass do not matter.
    cost : (R, C) int64 or ((R,), (C,)) int64
        Cost by rows and columns moved: a table, or two parts that add up.

    Raises
    ------
    SolverError
        The plan does not carry supply to demand, a pair of dual values is above the cost, the two
        totals differ, a number is too large to be sure, or a part is not an array of the given type
        and shape.
    """
    parts = cost if isinstance(cost, tuple) else (cost,)
    _check_types(supply, demand, sources, targets, flow, source_value, target_value, *parts)
    _check_plan_shapes(sources.shape, targets.shape, flow.shape)
    _check_map_shapes(supply.shape, (demand, source_value, target_value), parts)
    _check_plan(supply, demand, sources, targets, flow)
    _check_dual_values(
        np.where(supply > 0, source_value, -_FAR), np.where(demand > 0, target_value, -_FAR), cost
    )
    down, right = abs(sources - targets).T
    unit_cost = cost[0][down] + cost[1][right] if isinstance(cost, tuple) else cost[down, right]
    primal = _exact_dot(flow, unit_cost)
    dual = _exact_dot(supply[supply > 0], source_value[supply > 0])
    dual += _exact_dot(demand[demand > 0], target_value[demand > 0])
    if primal != dual:
        raise SolverError(f"the plan costs {primal}, but the dual values prove only {dual}")
    return primal


def _check_types(*arrays: object) -> None:
    for array in arrays:
        # A subclass might count or compare in ways of its own, as masked arrays do.
        if type(array) is not np.ndarray or array.dtype != np.int64:
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise SolverError(f"the proof must hold arrays of 64-bit whole numbers, not {kind}")


def _check_plan_shapes(*shapes: tuple[int, ...]) -> None:
    sources, targets, flow = shapes
    if len(flow) != 1 or not sources == targets == (*flow, 2):
        raise _misshapen(*shapes)


def _check_map_shapes(
    shape: tuple[int, ...], maps: tuple[Ints, ...], cost: tuple[Ints, ...]
) -> None:
    # One table has the shape of the maps; of two parts each has the length of one axis.
    allowed = ((shape,), tuple((length,) for length in shape))
    shapes = tuple(part.shape for part in cost)
    if len(shape) != 2 or 0 in shape or shapes not in allowed:
        raise _misshapen(shape, *shapes)
    if any(each.shape != shape for each in maps):
        raise _misshapen(shape, *(each.shape for each in maps))


def _misshapen(*shapes: tuple[int, ...]) -> SolverError:
    return SolverError(f"the parts of the proof do not fit together: their shapes are {shapes}")


def _check_plan(supply: Ints, demand: Ints, sources: Ints, targets: Ints, flow: Ints) -> None:
    for cells in (sources, targets):
        if ((cells < 0) | (cells >= supply.shape)).any():
            raise SolverError("the plan leaves the grid")
    sent = np.zeros_like(supply)
    received = np.zeros_like(demand)
    np.add.at(sent, tuple(sources.T), flow)
    np.add.at(received, tuple(targets.T), flow)
    # Flows are positive and their exact total is that of the masses: no sum can have wrapped.
    masses = (sum(supply.ravel().tolist()), sum(demand.ravel().tolist()))
    sound = bool((flow > 0).all()) and masses == (sum(flow.tolist()),) * 2 and masses[0] < 2**63
    if not (sound and np.array_equal(sent, supply) and np.array_equal(received, demand)):
        raise SolverError("the plan does not carry p to q")


def _check_dual_values(
    source_value: Ints, target_value: Ints, cost: Ints | tuple[Ints, Ints]
) -> None:
    for value in (source_value, target_value):
        if abs(value[value > -_FAR]).max(initial=0) > _LARGEST:
            raise SolverError("a dual value is beyond the range of exact sums")
    for part in cost if isinstance(cost, tuple) else (cost,):
        # 2^59, so that _FAR and a cost along each axis add up to less than 2^63.
        if part.min() < 0 or part.max() > _LARGEST // 4:
            raise SolverError("a cost is beyond the range of exact sums")
    if isinstance(cost, tuple):
        # Cells without a target begin at _FAR, above every source value: they violate nothing.
        least = _least_along(_least_along(-target_value, cost[1], 1), cost[0], 0)
        violated = source_value > least
    else:
        violated = _violated_by_pairs(source_value, target_value, cost)
    if violated.any():
        row, column = (int(i) for i in np.argwhere(violated)[0])
        raise SolverError(f"the dual value at cell [{row}, {column}] is above a cost")


def _least_along(start: Ints, cost: Ints, axis: int) -> Ints:
    """Return the least of start + cost over all cells along one axis, at each cell (R, C)."""
    start = np.ascontiguousarray(np.moveaxis(start, axis, -1))
    length = start.shape[-1]
    # both_ways[length - 1 + k] is cost[|k|]: a slice holds the costs from a place to all others.
    both_ways = np.concatenate([cost[:0:-1], cost])
    least = np.full_like(start, _FAR)
    sums = np.empty_like(start)
    # Places from which no line has a target to start at are left out: often they are most.
    for place in np.flatnonzero((start < _FAR).any(axis=0)).tolist():
        np.add(start[:, place, None], both_ways[length - 1 - place :][:length], out=sums)
        np.minimum(least, sums, out=least)
    return np.moveaxis(least, -1, axis)


def _violated_by_pairs(source_value: Ints, target_value: Ints, cost: Ints) -> Any:
    """Return where (R, C) a source and some target have a sum above their cost."""
    violated = np.zeros(source_value.shape, bool)
    sources = np.argwhere(source_value > -_FAR)
    targets = np.argwhere(target_value > -_FAR)
    limit = source_value[tuple(sources.T)]
    value = target_value[tuple(targets.T)]
    some = max(_PAIRS // max(len(targets), 1), 1)
    for begin in range(0, len(sources), some):
        part = sources[begin : begin + some]
        # (some sources, all targets): the place of cost[|dy|, |dx|] in the flat table.
        apart = abs(part[:, 0, None] - targets[:, 0]) * cost.shape[1]
        apart += abs(part[:, 1, None] - targets[:, 1])
        above = limit[begin : begin + some, None] + value > cost.take(apart)
        violated[tuple(part[above.any(axis=1)].T)] = True
    return violated


def _exact_dot(first: Ints, second: Ints) -> int:
    return sum(map(mul, first.tolist(), second.tolist()))
