"""Draw one report from a table, in exact integer arithmetic, with the standard library only.

One uniform integer u below the total weight decides. As in GridAreaResponse (Du et al. 2024,
Algorithm 2) it first picks the part, then the cell in it:

- **low**: the base weight of every output cell. u // base is the cell, whatever the input.
- **high**: what the cells with the table's largest weight have above the base.
- **mixed**: what the other disk cells have above the base.

High and mixed cells are drawn as an orbit (an offset and its mirror images, all of one weight)
and then an image of it. docs/protocol.md fixes the order, so that every port gives the same
report for the same entropy.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from client_sdk.entropy import Entropy, below
from client_sdk.errors import ParameterError
from client_sdk.response import Offset, ResponseTable, orbit, orbit_size


@dataclass(frozen=True)
class Excess:
    """Orbits of one part, by (x, y) ascending, with the weight of a cell above the base."""

    orbits: list[tuple[int, int, int]]  # x, y, excess of each of its cells

    @property
    def ends(self) -> list[int]:
        """Running totals: orbit i owns the integers [ends[i-1], ends[i])."""
        return list(accumulate(orbit_size(x, y) * excess for x, y, excess in self.orbits))


class Parts:
    """The integers [0, total) of a table: [0, low), [low, high) and [high, total)."""

    def __init__(self, table: ResponseTable):
        lifted = [
            (x, y, weight - table.base_weight)
            for x, row in enumerate(table.octant)
            for y, weight in enumerate(row)
            if weight > table.base_weight
        ]
        top = table.max_weight - table.base_weight
        self.high = Excess([o for o in lifted if o[2] == top])
        self.mixed = Excess([o for o in lifted if o[2] != top])
        self.high_ends = self.high.ends
        self.mixed_ends = self.mixed.ends
        self.low_end = table.output_size * table.base_weight
        self.high_end = self.low_end + (self.high_ends[-1] if self.high_ends else 0)


class Sampler:
    """Draws reports for input cells of one table."""

    def __init__(self, table: ResponseTable):
        self.table = table
        self.parts = Parts(table)

    def draw(self, row: int, col: int, entropy: Entropy) -> tuple[int, int]:
        """Return the reported (row, col) for input cell (row, col) of the square."""
        table = self.table
        parts = self.parts
        # A fraction would survive in the reports that are drawn from the disk.
        if type(row) is not int or type(col) is not int or not table.is_input(row, col):
            raise ParameterError(
                f"row and col must be whole numbers from 0 to {table.cells - 1} (not repeated here)"
            )
        u = below(table.total_weight, entropy)
        if u < parts.low_end:
            return table.output_cell(u // table.base_weight)
        if u < parts.high_end:
            drow, dcol = _pick(parts.high, parts.high_ends, u - parts.low_end)
        else:
            drow, dcol = _pick(parts.mixed, parts.mixed_ends, u - parts.high_end)
        return row + drow, col + dcol


def _pick(part: Excess, ends: list[int], v: int) -> Offset:
    """Return the offset that owns integer v of a part."""
    # A search, not a walk: the time of a walk tells how far it went (docs/protocol.md, section 4).
    i = bisect_right(ends, v)
    x, y, excess = part.orbits[i]
    before = ends[i - 1] if i else 0
    return orbit(x, y)[(v - before) // excess]
