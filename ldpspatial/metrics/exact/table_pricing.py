"""For each source the target of least reduced cost, for any cost that grows with the distance.

The slack of two cells is cost - value - limit: below 0 the arc between them is violated. A solver
prices all arcs hundreds of times while most slacks hardly change, so for each pair of tiles, blocks
of 8 x 8 cells, a lower bound of the slacks between their cells is kept. Until the next call it
falls by no more than the largest rise of a dual value in either tile. Elkan (ICML 2003) carries the
bounds of k-means along in the same way. While the bound stays at or above 0, no arc between the two
tiles is violated.

Other pairs of tiles are looked at again: first tile against tile, by the cost at their least
distance and their largest dual values, then so row against row, then cell against cell. Every arc
is either computed or bounded, all in whole numbers, so a call that finds none violated is a proof.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ldpspatial.compiled import compiled
from ldpspatial.metrics.exact.halves import Halves
from ldpspatial.metrics.exact.network_simplex import Ints, NodeIds
from ldpspatial.metrics.exact.pricing import ABSENT

SIDE = 8
"""Rows and columns of a tile: one row is what `_row_against_row` takes at a time."""

FAR = 2**62 - 1
"""Minus the dual value of a cell that is not a node; no slack of two nodes makes up for it."""


class Tiles(NamedTuple):
    """The n tiles that have a source, or those that have a target.

    Attributes
    ----------
    corner : (n, 2)
        Row and column of the first cell.
    value : (n, SIDE, SIDE)
        Dual values, -FAR at cells that are not nodes.
    peak, row_peak : (n,), (n, SIDE)
        Largest value, and that of each row.
    rise : (n,)
        Most that a value rose at the last change; below 0 if all of them fell.
    """

    corner: Ints
    value: Ints
    peak: Ints
    row_peak: Ints
    rise: Ints


class TablePricing:
    """Prices the arcs of one network again and again, between any changes of its dual values.

    Parameters
    ----------
    cost : (R, C) int64
        Cost by rows and columns moved, nondecreasing along both axes, 0 at [0, 0], below 2^61.
    sources, targets : (R, C) bool
        The nodes; at least one of each.

    Notes
    -----
    Memory: 8 bytes for each pair of tiles, 8 MB on a full 256 x 256 grid.
    """

    def __init__(self, cost: Ints, sources: npt.NDArray[np.bool_], targets: npt.NDArray[np.bool_]):
        rows, columns = sources.shape
        down = np.arange(_whole_tiles(rows))
        right = abs(np.arange(1 - _whole_tiles(columns), _whole_tiles(columns)))
        # Mirrored, so that what a row of a tile needs is contiguous. Beyond the grid any cost does.
        self._cost = cost[np.ix_(np.minimum(down, rows - 1), np.minimum(right, columns - 1))]
        self._sources, self._targets = _tiles(sources), _tiles(targets)
        # The tiles start with dual values of 0, and with those no slack is below 0.
        self._slack = np.zeros((len(self._sources.corner), len(self._targets.corner)), np.int64)
        self._least = np.empty_like(self._sources.value)

    def cheapest(self, value: Ints, limit: Ints, halves: Halves) -> tuple[Ints, NodeIds]:
        """Price all arcs.

        Parameters
        ----------
        value, limit : (R, C) int64
            Dual values of targets and of sources, of magnitude below 2^61 at the nodes that the
            network was made with and ABSENT elsewhere.

        Returns
        -------
        best, target : (R, C)
            At each source the least of `limit` and of cost - value over all targets. Where the
            latter is less, the cell row * C + column of a target that has it, else -1.
        """
        _take(value, self._targets)
        _take(limit, self._sources)
        best = limit.copy()
        target = np.full(limit.shape, -1, np.int32)
        tiles = (self._sources, self._targets)
        shared = (self._cost, *tiles, self._slack, self._least, best, target)
        halves(_price_tiles, len(self._sources.corner), *shared)
        return best, target


def _whole_tiles(cells: int) -> int:
    return -(-cells // SIDE) * SIDE


def _tiles(nodes: npt.NDArray[np.bool_]) -> Tiles:
    rows, columns = (_whole_tiles(cells) for cells in nodes.shape)
    padded = np.zeros((rows, columns), bool)
    padded[: nodes.shape[0], : nodes.shape[1]] = nodes
    cells = padded.reshape(rows // SIDE, SIDE, columns // SIDE, SIDE)
    corner = np.argwhere(cells.any(axis=(1, 3))) * SIDE
    value = np.zeros((len(corner), SIDE, SIDE), np.int64)
    one = value[:, 0, 0]
    return Tiles(corner, value, one.copy(), value[:, 0].copy(), one.copy())


@compiled
def _take(value: Ints, tiles: Tiles) -> None:
    """Take over new dual values (R, C)."""
    for k in range(len(tiles.corner)):
        row, column = tiles.corner[k]
        held = tiles.value[k]
        rise = peak = np.int64(-FAR)
        for y in range(SIDE):
            row_peak = np.int64(-FAR)
            for x in range(SIDE):
                new = np.int64(-FAR)
                inside = row + y < value.shape[0] and column + x < value.shape[1]
                if inside and value[row + y, column + x] != ABSENT:
                    new = value[row + y, column + x]
                    rise = max(rise, new - held[y, x])
                    row_peak = max(row_peak, new)
                held[y, x] = new
            tiles.row_peak[k, y] = row_peak
            peak = max(peak, row_peak)
        tiles.peak[k], tiles.rise[k] = peak, rise


@compiled
def _price_tiles(
    begin: int,
    end: int,
    cost: Ints,
    sources: Tiles,
    targets: Tiles,
    slack: Ints,
    least: Ints,
    best: Ints,
    target: NodeIds,
) -> None:
    """Price the arcs from the tiles begin .. end - 1 of the sources; `least` is working space."""
    middle = cost.shape[1] // 2  # where nothing is moved by columns
    for i in range(begin, end):
        limit = sources.value[i]
        found = least[i]
        row, column = sources.corner[i]
        for j in range(len(targets.corner)):
            # No slack of the pair has fallen by more than this since its bound was kept.
            rise = sources.rise[i] + targets.rise[j]
            if slack[i, j] >= rise:
                slack[i, j] -= rise
                continue
            down = row - targets.corner[j, 0]
            right = column - targets.corner[j, 1]
            nearest = middle + max(abs(right) - SIDE + 1, 0)
            bound = cost[max(abs(down) - SIDE + 1, 0), nearest] - sources.peak[i] - targets.peak[j]
            if bound < 0:
                bound = _least_slack(cost, down, right, sources, i, targets, j, found)
            slack[i, j] = bound
            if bound < 0:
                _keep_lower(found, limit, row, column, j, best, target)
        _name_cells(row, column, cost, targets, best, target)


@compiled
def _keep_lower(
    found: Ints, limit: Ints, row: int, column: int, tile: int, best: Ints, target: NodeIds
) -> None:
    """Put what was `found` in a tile of the targets into `best`, and the tile into `target`."""
    for y in range(SIDE):
        for x in range(SIDE):
            # The first holds at sources alone, so the second stays in the grid.
            if found[y, x] < limit[y, x] and found[y, x] < best[row + y, column + x]:
                best[row + y, column + x] = found[y, x]
                target[row + y, column + x] = tile


@compiled
def _name_cells(
    row: int, column: int, cost: Ints, targets: Tiles, best: Ints, target: NodeIds
) -> None:
    """Put the first cell that has the least in place of its tile, for all sources of one tile."""
    middle = cost.shape[1] // 2
    columns = best.shape[1]
    for y in range(row, min(row + SIDE, best.shape[0])):
        for x in range(column, min(column + SIDE, columns)):
            tile = target[y, x]
            if tile < 0:
                continue
            top, left = targets.corner[tile]
            # Backwards, so that the first of several is the one that stays.
            for k in range(SIDE * SIDE - 1, -1, -1):
                down = k // SIDE
                right = k % SIDE
                moved = cost[abs(y - top - down), middle + x - left - right]
                if moved - targets.value[tile, down, right] == best[y, x]:
                    target[y, x] = (top + down) * columns + left + right


@compiled
def _least_slack(
    cost: Ints, down: int, right: int, sources: Tiles, i: int, targets: Tiles, j: int, least: Ints
) -> int:
    """Return the least slack between two tiles, or a lower bound of it that is not below 0.

    The sources' tile lies `down` and `right` of the targets'. Each source's least cost - value,
    where it is below the limit, is put into `least` (SIDE, SIDE).
    """
    middle = cost.shape[1] // 2
    nearest = middle + max(abs(right) - SIDE + 1, 0)
    value = targets.value[j]
    limit = sources.value[i]
    slack: int = FAR
    least[:] = FAR
    for y in range(SIDE):
        limit_peak = sources.row_peak[i, y]
        if limit_peak == -FAR:
            continue
        for row in range(SIDE):
            apart = abs(down + y - row)
            bound = cost[apart, nearest] - targets.row_peak[j, row] - limit_peak
            if bound >= 0:
                slack = min(slack, bound)
            else:
                # Columns of two tiles are from right - SIDE + 1 to right + SIDE - 1 apart.
                _row_against_row(cost[apart, middle + right - SIDE + 1 :], value[row], least[y])
    for y in range(SIDE):
        for x in range(SIDE):
            slack = min(slack, least[y, x] - limit[y, x])
    return slack


@compiled
def _row_against_row(cost: Ints, value: Ints, least: Ints) -> None:
    """Lower `least` (SIDE,) to the least cost - value; the first cost is of 7 columns leftwards."""
    # Written out: the compiler makes vector instructions of a loop over x with a body like this,
    # not of two nested loops.
    v0 = value[7]
    v1 = value[6]
    v2 = value[5]
    v3 = value[4]
    v4 = value[3]
    v5 = value[2]
    v6 = value[1]
    v7 = value[0]
    for x in range(len(least)):
        a = min(cost[x] - v0, cost[x + 1] - v1)
        b = min(cost[x + 2] - v2, cost[x + 3] - v3)
        c = min(cost[x + 4] - v4, cost[x + 5] - v5)
        d = min(cost[x + 6] - v6, cost[x + 7] - v7)
        a = min(a, b)
        c = min(c, d)
        a = min(a, c)
        least[x] = min(least[x], a)
