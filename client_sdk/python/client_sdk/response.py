"""ResponseTable: the mechanism as the device runs it.

Whole-number weights over the cells that may be reported. A report for input cell x is output
cell y with probability weight(y - x) / total, where weight is the table's entry inside the disk
and the base weight outside it. Every input has the same output domain size and the same total,
so no ratio of probabilities exceeds max weight / base weight: privacy is read off the table
(docs/privacy.md). Sampling, the server's channel and the collection document use this object.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

Offset = tuple[int, int]
Octant = tuple[tuple[int, ...], ...]


def orbit(x: int, y: int) -> list[Offset]:
    """Return the distinct mirror images of offset (x, y), ascending by (drow, dcol)."""
    return sorted({(s * a, t * b) for a, b in ((x, y), (y, x)) for s in (-1, 1) for t in (-1, 1)})


def orbit_size(x: int, y: int) -> int:
    """Return len(orbit(x, y)) without building it."""
    if x == 0 and y == 0:
        return 1
    return 4 if y in (0, x) else 8


def half_widths(octant: Octant) -> list[int]:
    """Return h(0..b): row x of the disk is the interval of columns [-h(x), h(x)].

    Where the octant row stops before its diagonal, h(x) is its last y. Otherwise the row goes
    on beyond the diagonal as far as the octant's rows y > x still reach column x.
    """
    reach = [0] * (len(octant) + 2)  # reach[n] = number of octant rows longer than n
    for row in octant:
        reach[len(row) - 1] += 1
    for n in range(len(octant), -1, -1):
        reach[n] += reach[n + 1]
    return [len(row) - 1 if len(row) <= x else x + reach[x] - 1 for x, row in enumerate(octant)]


class DiskWeights(Mapping[Offset, int]):
    """The weights of the disk by (drow, dcol), held as one octant of it."""

    def __init__(self, octant: Octant):
        self._octant = octant
        self._half_widths = half_widths(octant)

    def __getitem__(self, offset: Offset) -> int:
        x, y = sorted((abs(offset[0]), abs(offset[1])), reverse=True)
        if x >= len(self._octant) or y >= len(self._octant[x]):
            raise KeyError(offset)
        return self._octant[x][y]

    def __iter__(self) -> Iterator[Offset]:
        radius = len(self._octant) - 1
        for drow in range(-radius, radius + 1):
            width = self._half_widths[abs(drow)]
            yield from ((drow, dcol) for dcol in range(-width, width + 1))

    def __len__(self) -> int:
        # Rows on both sides of the middle one, which was counted twice.
        return 2 * sum(2 * h + 1 for h in self._half_widths) - 2 * self._half_widths[0] - 1


@dataclass(frozen=True)
class ResponseTable:
    """Integer weights of one mechanism at one epsilon on one grid.

    Attributes
    ----------
    mechanism : str
        Name of the rule that made the weights, for people; privacy never depends on it.
    epsilon : float
        The privacy loss of one report that is claimed.
    cells : int
        Side d of the square in cells; input cells are (row, col) in [0, d) x [0, d).
    base_weight : int
        Weight of every output cell outside the disk.
    octant : tuple of tuples of int
        ``octant[x][y]`` is the weight at offset (x, y) and at its mirror images,
        x >= y >= 0, x = 0..radius. Rows stop where the disk stops.
    """

    mechanism: str
    epsilon: float
    cells: int
    base_weight: int
    octant: Octant

    @property
    def radius(self) -> int:
        """Reach b of the disk in cells; 0 means k-ary randomised response."""
        return len(self.octant) - 1

    @property
    def squared_radius(self) -> int:
        """Largest x^2 + y^2 of the disk: a circle through its farthest cell, in squared cells."""
        return max(x * x + (len(row) - 1) ** 2 for x, row in enumerate(self.octant))

    @cached_property
    def weights(self) -> DiskWeights:
        """Weights of the disk: mapping (drow, dcol) -> int."""
        return DiskWeights(self.octant)

    @cached_property
    def half_widths(self) -> tuple[int, ...]:
        """h(0..b): the margin reaches h(k) cells sideways in a row k cells off the square."""
        return tuple(half_widths(self.octant))

    @cached_property
    def _row_starts(self) -> list[int]:
        """Index of the first output cell of each row, rows -b .. d-1+b, and the end."""
        return list(accumulate((self._row_length(r) for r in self.output_rows), initial=0))

    @property
    def output_rows(self) -> range:
        """Rows of the output domain, south to north."""
        return range(-self.radius, self.cells + self.radius)

    def margin(self, row: int) -> int:
        """Return h such that output row ``row`` is the interval of columns [-h, d-1+h].

        The output domain is the union of the disks around all input cells, and the disk's rows
        only narrow away from its centre, so every row of the union is one interval.
        """
        return self.half_widths[max(-row, row - self.cells + 1, 0)]

    def _row_length(self, row: int) -> int:
        return self.cells + 2 * self.margin(row)

    @cached_property
    def output_size(self) -> int:
        """Number N of cells that may be reported."""
        return self._row_starts[-1]

    @cached_property
    def total_weight(self) -> int:
        """Sum of the weights over the output domain, the same for every input cell."""
        # The whole disk lies in the output domain, so its base weights are among those of N cells.
        excess = sum(
            orbit_size(x, y) * (weight - self.base_weight)
            for x, row in enumerate(self.octant)
            for y, weight in enumerate(row)
        )
        return self.output_size * self.base_weight + excess

    def output_cell(self, index: int) -> tuple[int, int]:
        """Return (row, col) of output cell number ``index``, 0 <= index < N, in row order."""
        starts = self._row_starts
        k = bisect_right(starts, index) - 1
        row = k - self.radius
        return row, index - starts[k] - self.margin(row)

    def output_cells(self) -> list[tuple[int, int]]:
        """Return the (row, col) of all output cells in index order: by row, then column."""
        margins = ((row, self.margin(row)) for row in self.output_rows)
        return [(row, col) for row, h in margins for col in range(-h, self.cells + h)]

    def is_output(self, row: int, col: int) -> bool:
        """Tell whether a report may name this cell."""
        if row not in self.output_rows:
            return False
        margin = self.margin(row)
        return -margin <= col < self.cells + margin

    def is_input(self, row: int, col: int) -> bool:
        """Tell whether (row, col) is a cell of the square."""
        return 0 <= row < self.cells and 0 <= col < self.cells

    def probability(self, drow: int, dcol: int) -> Fraction:
        """Return the exact probability of the output cell at this offset from the input cell.

        The offset must lead into the output domain; outside the disk all offsets are alike.
        """
        weight = self.weights.get((drow, dcol), self.base_weight)
        return Fraction(weight, self.total_weight)

    @property
    def max_weight(self) -> int:
        """Largest weight of the table."""
        return max(max(row) for row in self.octant)

    def max_ratio(self) -> Fraction:
        """Return max weight / base weight: no report is likelier by more under any input."""
        return Fraction(self.max_weight, self.base_weight)
