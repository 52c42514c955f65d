"""From a flow between coarse cells to one between fine cells, by the north-west corner rule."""

from dataclasses import dataclass

import numpy as np

from ldpspatial.compiled import compiled
from ldpspatial.metrics.exact.network_simplex import Ints


@dataclass(frozen=True, eq=False)
class Parts:
    """The n cells of a map (R, C) that hold mass, in the order of row * C + column."""

    cell: Ints
    mass: Ints
    tie: Ints  # see network_simplex.py
    shape: tuple[int, int]

    @classmethod
    def of_maps(cls, mass: Ints, tie: Ints) -> "Parts":
        """Return the cells of positive mass."""
        cell = np.flatnonzero(mass)
        return cls(cell, mass.ravel()[cell], tie.ravel()[cell], mass.shape)


@dataclass(frozen=True, eq=False)
class Plan:
    """Flows (n,) from source cells to target cells of a grid (R, C), as row * C + column."""

    source: Ints
    target: Ints
    flow: Ints
    tie: Ints
    shape: tuple[int, int]

    @classmethod
    def of_one_cell(cls, mass: int, tie: int) -> "Plan":
        """Return the plan on a grid of one cell."""
        zero = np.zeros(1, np.int64)
        return cls(zero, zero, zero + mass, zero + tie, (1, 1))


def deal(plan: Plan, sources: Parts, targets: Parts) -> Plan:
    """Deal the flows of a plan out to the cells of a finer grid.

    A cell of the plan is a block of 2 x 2 cells of that grid, or, where the plan has one cell only,
    all of it. The plan of a spanning tree becomes that of a spanning tree.
    """
    arc, source, flow, tie = _deal_side(
        plan.source, plan.target, plan.flow, plan.tie, plan.shape, sources, plan.shape
    )
    arc, target, flow, tie = _deal_side(
        plan.target[arc], source, flow, tie, plan.shape, targets, sources.shape
    )
    return Plan(source[arc], target, flow, tie, sources.shape)


def _deal_side(
    end: Ints,
    other: Ints,
    flow: Ints,
    tie: Ints,
    shape: tuple[int, int],
    parts: Parts,
    other_shape: tuple[int, int],
) -> tuple[Ints, Ints, Ints, Ints]:
    """Deal each end's flows out to the parts of that end; return arc, cell, flow and tie of each.

    Both are taken in the order of the axis along which the other ends of the flows are spread
    more: parts that lie side by side then serve other ends that lie side by side.
    """
    rows, columns = np.divmod(other, other_shape[1])
    part_rows, part_columns = np.divmod(parts.cell, parts.shape[1])
    one_cell = shape == (1, 1)
    part_end = 0 * part_rows if one_cell else part_rows // 2 * shape[1] + part_columns // 2
    by_rows = _spread(end, rows, shape) >= _spread(end, columns, shape)
    # Sorted by end first on both sides: used up in order, flows meet the parts of their own end.
    arcs = _order(end, by_rows[end], rows, columns)
    cells = _order(part_end, by_rows[part_end], part_rows, part_columns)
    # More than needed: a flows dealt out to c parts of an end become a + c - 1.
    size = len(arcs) + len(cells)
    dealt = np.empty((4, size), np.int64)
    count = _north_west(flow[arcs], tie[arcs], parts.mass[cells], parts.tie[cells], dealt)
    arc, cell, flow, tie = dealt[:, :count]
    return arcs[arc], parts.cell[cells[cell]], flow, tie


def _spread(group: Ints, place: Ints, shape: tuple[int, int]) -> Ints:
    """Return for each cell of the grid the range of the places in its group."""
    low = np.full(shape[0] * shape[1], 2**31)
    high = np.zeros(shape[0] * shape[1], np.int64)
    np.minimum.at(low, group, place)
    np.maximum.at(high, group, place)
    spread: Ints = high - low
    return spread


def _order(group: Ints, by_rows: np.ndarray, rows: Ints, columns: Ints) -> Ints:
    major = np.where(by_rows, rows, columns)
    minor = np.where(by_rows, columns, rows)
    size = int(max(rows.max(), columns.max())) + 1
    order: Ints = np.argsort((group * size + major) * size + minor)
    return order


@compiled
def _north_west(flow: Ints, tie: Ints, mass: Ints, mass_tie: Ints, dealt: Ints) -> int:
    """Fill `dealt` with (arc, part, flow, tie); both sides are used up in the order given.

    Within a group the two sides never run out at once, as no part of a tree balances; at its end
    they do, and the next group begins.
    """
    arc = part = count = 0
    flow_left = flow[0]
    tie_left = tie[0]
    mass_left = mass[0]
    mass_tie_left = mass_tie[0]
    while True:
        arc_first = flow_left < mass_left or (flow_left == mass_left and tie_left <= mass_tie_left)
        both = flow_left == mass_left and tie_left == mass_tie_left
        dealt[0, count], dealt[1, count] = arc, part
        if arc_first:
            dealt[2, count], dealt[3, count] = flow_left, tie_left
        else:
            dealt[2, count], dealt[3, count] = mass_left, mass_tie_left
        mass_left -= dealt[2, count]
        mass_tie_left -= dealt[3, count]
        flow_left -= dealt[2, count]
        tie_left -= dealt[3, count]
        count += 1
        if arc_first:
            arc += 1
            if arc == len(flow):
                return count
            flow_left = flow[arc]
            tie_left = tie[arc]
        # The last part ends with the last arc, which has returned: `part` stays in range.
        if both or not arc_first:
            part += 1
            mass_left = mass[part]
            mass_tie_left = mass_tie[part]
