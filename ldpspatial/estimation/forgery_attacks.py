"""Attacks on a map by forgers who all send one output cell, and the search for the worst of them.

W2 has many summits over the output domain. So cells all over it are tried, a few of the best that
lie apart are fitted to the end, and from each of these the search goes to the output cell of the
steepest slope (:mod:`.forgery_slopes`) for as long as that moves the map farther.
"""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.protocol import operators
from ldpspatial.estimation.forgery_proofs import pooled
from ldpspatial.estimation.forgery_slopes import priced, slopes
from ldpspatial.metrics import wasserstein

Array = NDArray[np.float64]
Cell = tuple[int, int]  # of the output domain, as reports have it

STEPS = 1000  # of SQUAREM at most: fits that are not at their limit differ by chance
STEPS_BY_SIDE = 13_000  # divided by the cells a side: what there is time for on larger grids
QUICK_STEPS = 25  # enough to tell the worst of the output cells that are tried
SETTLED_STEP = 1e-9  # of the mass in one step of EM
SETTLED_GROWTH = 1e-5  # of a cell in one step, at the limit at most 0
LONGEST_LEAP = 1e4  # in steps of EM
TRIED = 5  # rows of output cells, and cells a row, besides those of the square's edge
BEGUN = 3  # of these are fitted to the end, and climb
CLIMB = 4  # times at most
AHEAD = 3  # output cells of steep slopes, apart from each other, of which the first better is taken
EXACT_SIDE = 64  # cells a side up to which maps are compared as they are
QUICK_BLOCKS = 32  # blocks a side on which those that are tried are compared


class SingleOutputs:
    """Attacks of one output cell each.

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
        The map that each attack makes, by output cell.
    """

    def __init__(self, channel: StampChannel, density: Array, share: float):
        self.fits: dict[Cell, Array] = {}
        self._channel = channel
        self._density = density
        self._share = share
        self._moved: dict[Cell, float] = {}

    def search(self) -> None:
        """Try cells all over the output domain, and climb from the best of them."""
        tried = _tried(self._channel)
        for cell in tried:
            self._attack(cell, self._steps(QUICK_STEPS, 5))
        far = {cell: _distance(self._density, self.fits[cell], QUICK_BLOCKS) for cell in tried}
        best = sorted(tried, key=far.__getitem__, reverse=True)
        side = len(self._density)
        for cell in _apart(best, max(2, side // 6))[:BEGUN]:
            self._climb(cell)

    def farthest(self) -> tuple[float, Cell]:
        """Return by how many cells the worst attack moves the map, and its output cell."""
        looked_at: set[Cell] = set()
        while True:
            cell = max(self._moved, key=self._moved.__getitem__)
            if cell in looked_at:
                return self._moved[cell], cell
            looked_at.add(cell)
            self._settle(cell)  # once more: a fit on its way may be farther than its limit

    def _climb(self, cell: Cell) -> None:
        """Go on to the output cell of the steepest slope while that moves the map farther."""
        self._settle(cell)
        for _ in range(CLIMB):
            for ahead in self._steepest(cell):
                if ahead not in self._moved:
                    self._settle(ahead)
                if self._moved[ahead] > self._moved[cell]:
                    break
            else:
                return
            cell = ahead

    def _settle(self, cell: Cell) -> None:
        steps = min(STEPS, STEPS_BY_SIDE // len(self._density))
        self._attack(cell, self._steps(steps, 100))
        self._moved[cell] = _distance(self._density, self.fits[cell], EXACT_SIDE)

    def _steps(self, steps: int, least: int) -> int:
        """Return how many steps there is time for above 64 cells a side, where each is slow."""
        return max(least, int(steps * min(1.0, EXACT_SIDE / len(self._density)) ** 2))

    def _attack(self, cell: Cell, steps: int) -> None:
        """Fit an attack with so many steps, after those that were made before."""
        law = law_with(self._channel, self._density, self._share, cell)
        # EM fills no cell that is empty.
        start = (1 - self._share) * self._density + self._share / self._density.size
        self.fits[cell] = most_likely(self._channel, law, self.fits.get(cell, start), steps)

    def _steepest(self, cell: Cell) -> list[Cell]:
        fit = self.fits[cell]
        side = -(-len(fit) // EXACT_SIDE)
        _, by_block = priced(pooled(self._density, EXACT_SIDE), pooled(fit, EXACT_SIDE))
        worth = np.repeat(np.repeat(by_block, side, 0), side, 1)[: len(fit), : len(fit)]
        law = law_with(self._channel, self._density, self._share, cell)
        slope = slopes(self._channel, law, fit, worth)
        order = np.argsort(slope, axis=None)[::-1][: len(fit) ** 2 // 4]
        radius = self._channel.table.radius
        rows, cols = np.unravel_index(order, slope.shape)
        ranked = [
            (int(row) - radius, int(col) - radius) for row, col in zip(rows, cols, strict=True)
        ]
        return _apart(ranked, max(2, len(fit) // 10))[:AHEAD]


def law_with(channel: StampChannel, density: Array, share: float, cell: Cell) -> Array:
    """Return the distribution of reports of which a share is one output cell."""
    law = (1 - share) * channel.forward(density)
    radius = channel.table.radius
    law[cell[0] + radius, cell[1] + radius] += share
    return law


def _apart(cells: list[Cell], least: int) -> list[Cell]:
    """Return the first of some cells and those after it that are so far from all returned."""
    found: list[Cell] = []
    for row, col in cells:
        if all(max(abs(row - r), abs(col - c)) >= least for r, c in found):
            found.append((row, col))
    return found


def _distance(before: Array, after: Array, blocks: int) -> float:
    """Return W2 in cells, between the maps of so many blocks a side where there are more cells."""
    side = -(-len(before) // blocks)
    return side * wasserstein(pooled(before, blocks), pooled(after, blocks), certify=False)


def _tried(channel: StampChannel) -> list[Cell]:
    """Return output cells all over the output domain, along its edge and that of the square."""
    table = channel.table
    last = table.cells - 1
    cells = set()
    for row in _spread(-table.radius, last + table.radius, TRIED, last):
        margin = table.margin(row)
        cells |= {(row, col) for col in _spread(-margin, last + margin, TRIED, last)}
    return sorted(cells)


def _spread(first: int, end: int, count: int, last: int) -> set[int]:
    return {0, last, *(int(k) for k in np.linspace(first, end, count).round())}


def most_likely(channel: StampChannel, law: Array, start: Array, steps: int) -> Array:
    """Return where EM goes to, by SQUAREM (Varadhan and Roland 2008, scheme S3).

    Estimators stop EM early on purpose; here its limit is wanted.
    """
    forward, adjoint = operators(channel)
    support = channel.support

    def ratio(density: Array) -> tuple[float, Array]:
        predicted = np.where(support, forward(density), 1.0)
        return float((law * np.log(predicted)).sum()), adjoint(law / predicted)

    density = start
    for _ in range(steps):
        growth = ratio(density)[1]
        first = density * growth
        likelihood, second = ratio(first)
        second = first * second
        step = first - density
        # A cell that a leap has all but emptied grows back by small steps: those are no end.
        if np.abs(step).sum() < SETTLED_STEP and growth.max() < 1 + SETTLED_GROWTH:
            break
        bend = second - first - step
        length = min(
            float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300), LONGEST_LEAP
        )
        if length > 1:
            leap = density + 2 * length * step + length**2 * bend
            leap = np.maximum(leap, 1e-12 * first)
            leap = leap / leap.sum()
            if ratio(leap)[0] >= likelihood:
                density = leap
                continue
        density = second / second.sum()
    return np.asarray(density)
