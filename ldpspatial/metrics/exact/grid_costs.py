"""Costs between the cells of a grid in whole numbers: all that the solver knows of distances."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ldpspatial.errors import InputError
from ldpspatial.metrics.exact.halves import Halves
from ldpspatial.metrics.exact.network_simplex import Ints, NodeIds
from ldpspatial.metrics.exact.pricing import SeparablePricing
from ldpspatial.metrics.exact.table_pricing import TablePricing
from ldpspatial.validate import whole_array

Cells: TypeAlias = npt.NDArray[np.bool_]

MOST_SHOWN = 8  # costs that a message repeats


class Pricing(Protocol):
    """Finds violated arcs of a network, round after round."""

    def cheapest(self, value: Ints, limit: Ints, halves: Halves) -> tuple[Ints, NodeIds]:
        """Price all arcs.

        Parameters
        ----------
        value, limit : (R, C)
            Dual values of targets and of sources, ABSENT where there is none.

        Returns
        -------
        best, target : (R, C)
            At each source the least cost - value over all targets, and the cell row * C + column
            of that target. Where `limit` is not above it, the least may be left at `limit`.
        """
        ...


class GridCost(Protocol):
    """Whole costs of moving a unit by a number of rows and of columns."""

    def between(self, down: Ints, right: Ints) -> Ints:
        """Return the costs (n,) of moving by `down` >= 0 rows and `right` >= 0 columns."""
        ...

    def coarser(self) -> "GridCost":
        """Return the costs on the grid of half as many rows and columns."""
        ...

    def parts(self) -> Ints | tuple[Ints, Ints]:
        """Return the costs by rows and columns moved: one table, or two arrays that add up."""
        ...

    def pricing(self, sources: Cells, targets: Cells) -> Pricing:
        """Return what prices the arcs from the cells of one (R, C) mask to those of another."""
        ...


@dataclass(frozen=True, eq=False)
class SeparableCost:
    """Costs rows[|dy|] + columns[|dx|]: whole, 0 at 0, nondecreasing and convex.

    Parameters
    ----------
    rows : (R,) int64
        Cost of moving by 0 .. R - 1 rows.
    columns : (C,) int64
        Cost of moving by 0 .. C - 1 columns.

    Both are kept as read-only copies.

    Raises
    ------
    InputError
        The costs break one of these rules.
    """

    rows: Ints
    columns: Ints

    def __post_init__(self) -> None:
        for field, given in (("rows", self.rows), ("columns", self.columns)):
            cost = whole_array(field, given, ("n",), -(2**63), 2**63)
            slopes = np.diff(cost.astype(object)).tolist()  # of Python's numbers: nothing wraps
            # After the leading 0, slopes that never fall are never negative.
            if cost[:1].tolist() != [0] or any(a > b for a, b in pairwise([0, *slopes])):
                more = ", ..." if len(cost) > MOST_SHOWN else ""
                raise InputError(
                    f"{field} must start at 0, be nondecreasing and convex, "
                    f"got {', '.join(map(str, cost[:MOST_SHOWN]))}{more}"
                )
            cost.flags.writeable = False  # what was checked stays so
            object.__setattr__(self, field, cost)

    def between(self, down: Ints, right: Ints) -> Ints:
        """Return rows[down] + columns[right]."""
        total: Ints = self.rows[down] + self.columns[right]
        return total

    def parts(self) -> tuple[Ints, Ints]:
        """Return rows and columns."""
        return self.rows, self.columns

    def coarser(self) -> "SeparableCost":
        """Return every other cost."""
        # A coarse cell is two fine ones wide; every other value of a convex cost is convex.
        return SeparableCost(self.rows[::2], self.columns[::2])

    def pricing(self, sources: Cells, targets: Cells) -> Pricing:
        """Price along rows, then along columns."""
        # Copies, as read-only arrays are another type, for which all would be compiled again.
        return SeparablePricing(self.rows.copy(), self.columns.copy(), targets)


@dataclass(frozen=True, eq=False)
class TableCost:
    """Costs table[|dy|, |dx|] (R, C) int64: 0 at [0, 0], nondecreasing along both axes."""

    table: Ints

    def between(self, down: Ints, right: Ints) -> Ints:
        """Return table[down, right]."""
        cost: Ints = self.table[down, right]
        return cost

    def parts(self) -> Ints:
        """Return the table."""
        return self.table

    def coarser(self) -> "TableCost":
        """Return every other row and column of the table."""
        return TableCost(np.ascontiguousarray(self.table[::2, ::2]))

    def pricing(self, sources: Cells, targets: Cells) -> Pricing:
        """Price pairs of blocks of cells, of which most can be left out."""
        return TablePricing(self.table, sources, targets)
