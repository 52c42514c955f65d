"""Attacks on a map by forgers who send one output cell or a few, and the search for the worst.

W2 has many summits over the output domain. So cells all over it are tried, a few of the best that
lie apart are fitted to the end, and from each of these the search goes to the output cell of the
steepest slope (:mod:`..limit_fits`) for as long as that moves the map farther, and from the worst
at last to its neighbours.

Where people are spread out, one cell that gets all that is forged soon has what its reports can put
there. So cells of the square's edge and beyond it are also tried together with their mirror images.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.disk import StampChannel
from ldpspatial.estimation.forgery.proofs import pooled
from ldpspatial.estimation.limit_fits import LimitFits
from ldpspatial.metrics import transport, wasserstein

Array = NDArray[np.float64]
Cell = tuple[int, int]  # of the output domain, as reports have it
Cells = tuple[Cell, ...]  # that are sent alike

SMALL_SIDE = 32  # cells a side up to which fits settle closely before they are compared
QUICK = (
    1e-4,
    1e-2,
)  # of what is forged: how far fits of all that are tried settle, there and beyond
CLIMBING = (1e-6, 1e-3)  # and those of output cells that are climbed from
FEW = 100  # output cells that are all tried
TRIED = 5  # rows of output cells, and cells a row, besides those of the square's edge
BEGUN = 3  # of these are fitted to the end, and climb
CLIMB = 4  # times at most
AHEAD = 3  # output cells of steep slopes, apart from each other, of which the first better is taken
EXACT_SIDE = 64  # cells a side up to which maps are compared as they are
QUICK_BLOCKS = 32  # blocks a side on which attacks are compared with each other
ROUGH_BLOCKS = 16  # and on which those are found that need not be
MAY_BE_WORST = 0.85  # of the farthest there
POLISHED = 12  # of the cells a side: how far the last search looks from the worst first
SOLVING = 100  # conjugate gradients a step of the last fit, on grids of any size
EMPTY = 1e-12  # mass of a cell, so that each has a price


class Attacks:
    """Attacks of one output cell each, or of one with its mirror images.

    Parameters
    ----------
    channel : StampChannel
    density : (d, d) array
        The map of those who are honest.
    share : float in (0, 1)
        Forged, of all reports.

    Attributes
    ----------
    fits : dict
        The map that each attack makes, by its output cells.
    """

    def __init__(self, channel: StampChannel, density: Array, share: float):
        self.fits: dict[Cells, Array] = {}
        self._channel = channel
        self._density = density
        self._share = share
        self._limits = LimitFits(channel)
        self._is_wide = len(density) > SMALL_SIDE
        self._moved: dict[Cells, float] = {}

    def search(self) -> None:
        """Try cells all over the output domain, and climb from the best of them."""
        tried = _tried(self._channel)
        mirrored = _mirrored(self._channel, tried)
        attacks = [*((cell,) for cell in tried), *mirrored]
        self._attack(attacks, QUICK[self._is_wide])
        far = self._far(attacks)
        best = sorted(tried, key=lambda cell: far[cell,], reverse=True)
        side = len(self._density)
        for cell in _apart(best, max(2, side // 6), BEGUN):
            self._climb(cell)
        ((worst,), _) = max(self._moved.items(), key=lambda item: item[1])
        self._polish(worst)
        if mirrored:
            self._settle([max(mirrored, key=far.__getitem__)])

    def _far(self, attacks: list[Cells]) -> dict[Cells, float]:
        """Return about how far attacks move the map; closely of those that may be the worst."""
        far = {cells: _distance(self._density, self.fits[cells], ROUGH_BLOCKS) for cells in attacks}
        if len(self._density) > ROUGH_BLOCKS:
            least = MAY_BE_WORST * max(far.values())
            for cells in (each for each in attacks if far[each] >= least):
                far[cells] = _distance(self._density, self.fits[cells], QUICK_BLOCKS)
        return far

    def farthest(self) -> tuple[float, Cells]:
        """Return by how many cells the worst attack moves the map, and its output cells."""
        cells = max(self._moved, key=self._moved.__getitem__)
        law = law_with(self._channel, self._density, self._share, *cells)
        self.fits[cells] = LimitFits(self._channel, solving=SOLVING).fit(law, self._density)
        return _distance(self._density, self.fits[cells], EXACT_SIDE), cells

    def _climb(self, cell: Cell) -> None:
        """Go on to the output cell of the steepest slope while that moves the map farther."""
        self._settle([(cell,)])
        for _ in range(CLIMB):
            for ahead in self._steepest(cell):
                self._settle([(ahead,)])
                if self._moved[ahead,] > self._moved[cell,]:
                    break
            else:
                return
            cell = ahead

    def _polish(self, cell: Cell) -> None:
        """Go on to neighbours that move the map farther, ever nearer ones."""
        step = max(1, len(self._density) // POLISHED)
        while step:
            row, col = cell
            around = [(row - step, col), (row + step, col), (row, col - step), (row, col + step)]
            self._settle([(ahead,) for ahead in around if _reports(self._channel, ahead)])
            best = max([cell, *around], key=lambda each: self._moved.get((each,), 0.0))
            if best == cell:
                step //= 2
            cell = best

    def _settle(self, attacks: list[Cells]) -> None:
        """Fit attacks closely that were not yet, and find how far they move the map."""
        fresh = [cells for cells in attacks if cells not in self._moved]
        if fresh:
            self._attack(fresh, CLIMBING[self._is_wide])
        for cells in fresh:
            self._moved[cells] = _distance(self._density, self.fits[cells], QUICK_BLOCKS)

    def _attack(self, attacks: list[Cells], settled: float) -> None:
        laws = [law_with(self._channel, self._density, self._share, *each) for each in attacks]
        fits = self._limits.fits(np.stack(laws), self._density, settled * self._share)
        self.fits.update(zip(attacks, fits, strict=True))

    def _steepest(self, cell: Cell) -> list[Cell]:
        fit = self.fits[cell,]
        side = -(-len(fit) // QUICK_BLOCKS)
        _, by_block = priced(pooled(self._density, QUICK_BLOCKS), pooled(fit, QUICK_BLOCKS))
        worth = np.repeat(np.repeat(by_block, side, 0), side, 1)[: len(fit), : len(fit)]
        law = law_with(self._channel, self._density, self._share, cell)
        slope = self._limits.slopes(law, fit, worth)
        order = np.argsort(slope, axis=None)[::-1][: len(fit) ** 2 // 4]
        radius = self._channel.table.radius
        rows, cols = np.unravel_index(order, slope.shape)
        ranked = [
            (int(row) - radius, int(col) - radius) for row, col in zip(rows, cols, strict=True)
        ]
        return _apart(ranked, max(2, len(fit) // 10), AHEAD)


def priced(before: Array, after: Array) -> tuple[float, Array]:
    """Return squared W2 from one map to another, and what a unit of mass adds to it.

    Parameters
    ----------
    before, after : (d, d) array

    Returns
    -------
    float
        In cells squared.
    (d, d) array
        Up to a constant, by the cell to whose mass in ``after`` it is added: the dual values of
        optimal transport.
    """
    filled = after + EMPTY
    found = transport(before, filled / filled.sum(), certify=False)
    worth = np.zeros(after.shape) if found.proof is None else found.proof.target_value
    return found.value**2, worth.astype(np.float64)


def law_with(channel: StampChannel, density: Array, share: float, *cells: Cell) -> Array:
    """Return the distribution of reports of which a share is some different output cells, alike."""
    law = (1 - share) * channel.forward(density)
    rows, cols = np.transpose(cells) + channel.table.radius
    law[rows, cols] += share / len(cells)
    return law


def _reports(channel: StampChannel, cell: Cell) -> bool:
    """Return whether a cell is one of the output domain."""
    row, col = (k + channel.table.radius for k in cell)
    side = len(channel.support)
    return 0 <= row < side and 0 <= col < side and bool(channel.support[row, col])


def _apart(cells: list[Cell], least: int, most: int) -> list[Cell]:
    """Return the first of some cells and those after it that are so far from all returned."""
    found: list[Cell] = []
    for row, col in cells:
        if len(found) == most:
            break
        if all(max(abs(row - r), abs(col - c)) >= least for r, c in found):
            found.append((row, col))
    return found


def _distance(before: Array, after: Array, blocks: int) -> float:
    """Return W2 in cells, between the maps of so many blocks a side where there are more cells."""
    side = -(-len(before) // blocks)
    return side * wasserstein(pooled(before, blocks), pooled(after, blocks), certify=False)


def _tried(channel: StampChannel) -> list[Cell]:
    """Return all output cells, or many all over the domain, along its edge and the square's."""
    table = channel.table
    last = table.cells - 1
    if np.count_nonzero(channel.support) <= FEW:
        rows, cols = np.nonzero(channel.support)
        return [
            (int(r) - table.radius, int(c) - table.radius) for r, c in zip(rows, cols, strict=True)
        ]
    cells = set()
    for row in _spread(-table.radius, last + table.radius, TRIED, last):
        margin = table.margin(row)
        cells |= {(row, col) for col in _spread(-margin, last + margin, TRIED, last)}
    return sorted(cells)


def _mirrored(channel: StampChannel, tried: list[Cell]) -> list[Cells]:
    """Return those of the square's edge and beyond it, each with its images in all mirrors."""
    last = channel.table.cells - 1
    found = set()
    for row, col in tried:
        if 0 < row < last and 0 < col < last:
            continue
        rows, cols = (row, last - row), (col, last - col)
        found.add(tuple(sorted({*product(rows, cols), *product(cols, rows)})))
    return sorted(cells for cells in found if len(cells) > 1)


def _spread(first: int, end: int, count: int, last: int) -> set[int]:
    return {0, last, *(int(k) for k in np.linspace(first, end, count).round())}
