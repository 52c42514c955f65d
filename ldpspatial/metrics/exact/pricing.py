"""For each source the target of least reduced cost, where the cost separates over the axes.

min over (r, c) of rows[|y - r|] + columns[|x - c|] - value[r, c] is a minimum along each row, then
one along each column: the two hops of Auricchio et al. (NeurIPS 2018), without an arc of that
network in memory. Each minimum along a line has convex costs, so the best partner moves one way as
the query moves (Monge); halving the steps finds all in O(n log n) (Aggarwal et al. 1987). Where the
cost is proportional to the distance, one sweep each way finds all in O(n). All d^4 arcs are priced
exactly in O(d^2 log d), or O(d^2).
"""

import numpy as np
import numpy.typing as npt

from ldpspatial.compiled import compiled
from ldpspatial.metrics.exact.halves import Halves
from ldpspatial.metrics.exact.network_simplex import Ints, NodeIds

ABSENT = np.iinfo(np.int64).min
"""Dual value of a cell that is not a node of the network."""

_FAR = 2**62  # above all costs, and sums with them still fit


class SeparablePricing:
    """Prices the arcs of one network again and again.

    Parameters
    ----------
    rows, columns : (R,), (C,) int64
        Costs of moving by so many rows and columns, 0 at 0 and convex.
    targets : (R, C) bool
        The cells that are targets; at least one.
    """

    def __init__(self, rows: Ints, columns: Ints, targets: npt.NDArray[np.bool_]):
        self._rows, self._columns = rows, columns
        self._slopes = _slope(rows), _slope(columns)
        self._present = np.flatnonzero(targets.any(axis=1))
        shape = (targets.shape[1], len(self._present))
        self._least, self._partner = np.empty(shape, np.int64), np.empty(shape, np.int32)
        self._best = np.empty(targets.shape, np.int64)
        self._target = np.empty(targets.shape, np.int32)
        self._value: Ints | None = None  # of the last call

    def cheapest(self, value: Ints, limit: Ints, halves: Halves) -> tuple[Ints, NodeIds]:
        """Price all arcs, whatever `limit` is; see `grid_costs.Pricing`.

        Only rows whose dual values have changed since the last call are looked at, and then the
        columns to which that makes a difference: after a few pivots that is a part of the map. The
        arrays returned are updated by the next call.
        """
        changed = np.ones(value.shape[0], bool)
        stale = np.ones(value.shape[1], bool)
        if self._value is not None:
            np.any(value != self._value, axis=1, out=changed)
            stale[:] = False
        self._value = value.copy()
        lines = np.flatnonzero(changed[self._present])
        halves(
            cheapest_in_rows,
            len(lines),
            *(lines, value, self._present, self._columns, self._slopes[1]),
            *(self._least, self._partner, stale),
        )
        columns = np.flatnonzero(stale)
        halves(
            cheapest_in_columns,
            len(columns),
            *(columns, self._present, self._rows, self._slopes[0]),
            *(self._least, self._partner, self._best, self._target),
        )
        return self._best, self._target


def _slope(cost: Ints) -> int:
    """Return the cost of a distance of 1 if all costs are proportional to it, else -1."""
    slope = int(cost[1]) if len(cost) > 1 else 0
    return slope if np.array_equal(cost, slope * np.arange(len(cost))) else -1


@compiled
def cheapest_in_rows(
    begin: int,
    end: int,
    lines: Ints,
    value: Ints,
    present: Ints,
    columns: Ints,
    slope: int,
    least: Ints,
    partner: NodeIds,
    stale: npt.NDArray[np.bool_],
) -> None:
    """Fill in the minima along the rows present[k] for the k in lines[begin:end].

    Parameters
    ----------
    value : (R, C)
        Dual values of the targets, ABSENT where there is none.
    present : (n,)
        The rows that have a target.
    columns : (C,)
        Convex cost of a distance along a row.
    slope : int
        Cost of a distance of 1 if all costs are proportional to it, else -1.
    least, partner : (C, n), results
        In the k-th place of line x, for row present[k]: the least columns[|x - c|] - value and
        its c. Transposed, so that what the second step reads is contiguous.
    stale : (C,), result
        Set at the columns where one of these is not what it was.
    """
    width = value.shape[1]
    place = np.empty(width, np.int64)
    offset = np.empty(width, np.int64)
    best = np.empty(width, np.int64)
    where = np.empty(width, np.int64)
    for i in range(begin, end):
        k = lines[i]
        row = present[k]
        found = 0
        for column in range(width):
            if value[row, column] != ABSENT:
                place[found], offset[found] = column, -value[row, column]
                found += 1
        if slope >= 0:
            _sweep(offset[:found], place, slope, best, where)
        else:
            _line_minima(offset[:found], place, columns, best, where)
        for column in range(width):
            nearest = place[where[column]]
            if least[column, k] != best[column] or partner[column, k] != nearest:
                least[column, k], partner[column, k] = best[column], nearest
                stale[column] = True


@compiled
def cheapest_in_columns(
    begin: int,
    end: int,
    columns: Ints,
    present: Ints,
    rows: Ints,
    slope: int,
    least: Ints,
    partner: NodeIds,
    best: Ints,
    target: NodeIds,
) -> None:
    """Fill in the columns[begin:end] of `best` and `target` (R, C).

    They are the least cost at a cell and the target that has it, as row * C + column. `present`,
    `least` and `partner` are what `cheapest_in_rows` took and gave.
    """
    height, width = best.shape
    along = np.empty(height, np.int64)
    where = np.empty(height, np.int64)
    for i in range(begin, end):
        column = columns[i]
        if slope >= 0:
            _sweep(least[column], present, slope, along, where)
        else:
            _line_minima(least[column], present, rows, along, where)
        for row in range(height):
            k = where[row]
            best[row, column] = along[row]
            target[row, column] = present[k] * width + partner[column, k]


@compiled
def _line_minima(offset: Ints, place: Ints, cost: Ints, best: Ints, where: Ints) -> None:
    """Fill in the least cost[|x - place[k]|] + offset[k] over k, and that k, for all x."""
    n = len(best)
    last = len(offset) - 1
    step = 1
    while step < n:
        step *= 2
    x = 0
    while step >= 1:
        # After the first round multiples of 2 step are known, and x runs through odd ones of step.
        low = where[x - step] if x >= step else 0
        while x < n:
            high = where[x + step] if x + step < n else last
            # Monge: x's leftmost best partner lies between those of x - step and x + step.
            arg = low
            least = cost[abs(x - place[low])] + offset[low]
            for k in range(low + 1, high + 1):
                found = cost[abs(x - place[k])] + offset[k]
                # Strictly less: of equals the leftmost, on which the next round relies.
                if found < least:
                    least, arg = found, k
            best[x], where[x] = least, arg
            low = high  # x + step comes before the next x, too
            x += 2 * step
        step //= 2
        x = step


@compiled
def _sweep(offset: Ints, place: Ints, slope: int, best: Ints, where: Ints) -> None:
    """Do as `_line_minima` for cost[k] = slope * k."""
    n = len(best)
    last = len(offset) - 1
    for x in range(place[0]):
        best[x], where[x] = _FAR, 0
    k = 0
    # Rightwards: the best of the places so far costs `slope` more with each x.
    least, arg = _FAR, 0
    for x in range(place[0], n):
        least += slope
        if k <= last and place[k] == x:
            if offset[k] < least:
                least = offset[k]
                arg = k
            k += 1
        best[x], where[x] = least, arg
    # Leftwards, and the better of the two.
    least, arg = _FAR, last
    k = last
    for x in range(n - 1, -1, -1):
        least += slope
        if k >= 0 and place[k] == x:
            if offset[k] < least:
                least = offset[k]
                arg = k
            k -= 1
        if least < best[x]:
            best[x], where[x] = least, arg
