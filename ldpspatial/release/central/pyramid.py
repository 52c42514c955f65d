"""The quadtree over a map, and sums of sparse whole numbers in its nodes.

Level i divides a square of side 2^l into 4^i nodes; its leaves, of level l, are cells. A map of
another size lies at the south-west corner. Cells beyond it hold nothing, whatever the data, so
nodes wholly beyond it do not exist. A node's number interleaves the bits of its row and column (Z
order): node c has the children 4c..4c+3, and the leaves below a node follow each other.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = TypeVar("Codes", int, Ints)


@dataclass(frozen=True)
class Quadtree:
    """Geometry, which is public.

    Attributes
    ----------
    shape : (rows, columns)
        Of the map.
    """

    shape: tuple[int, int]

    @property
    def levels(self) -> int:
        """Level l of the leaves: 2^l is the least power of two that holds the map."""
        return (int(max(self.shape)) - 1).bit_length()

    def nodes(self, level: int) -> Ints:
        """Return all nodes of a level, ascending."""
        return self._existing(level, np.arange(4**level, dtype=np.int64))

    def children(self, level: int, parents: Ints) -> Ints:
        """Return the nodes of ``level`` below ``parents`` of the level above, ascending."""
        below = 4 * np.sort(parents)[:, np.newaxis] + np.arange(4)
        return self._existing(level, below.ravel())

    def block(self, level: int, node: int) -> tuple[slice, slice]:
        """Return the rows and columns of a node's cells, as far as the map goes."""
        side = 1 << (self.levels - level)
        row, column = (side * place for place in _apart(node, level))
        rows, columns = self.shape
        return slice(row, min(row + side, rows)), slice(column, min(column + side, columns))

    def leaves(self, cells: Ints) -> Ints:
        """Return the leaf of each cell, row * columns + column."""
        row, column = np.divmod(cells, self.shape[1])
        return _interleaved(row, column, self.levels)

    def _existing(self, level: int, nodes: Ints) -> Ints:
        row, column = _apart(nodes, level)
        shift = self.levels - level
        rows, columns = self.shape
        return nodes[(row << shift < rows) & (column << shift < columns)]


class Pyramid:
    """Sums of a sparse map in any node of its quadtree; nothing is stored but the map.

    Parameters
    ----------
    tree : Quadtree
    cells, values : (n,) int64 arrays
        What the map holds, by cell (row * columns + column).
    """

    def __init__(self, tree: Quadtree, cells: Ints, values: Ints):
        leaves = tree.leaves(cells)
        order = np.argsort(leaves)
        self.tree = tree
        self._leaves = leaves[order]
        self._ends = np.concatenate([[0], np.cumsum(values[order])])

    def sums(self, level: int, nodes: Ints) -> Ints:
        """Return the sum in each of these nodes."""
        shift = 2 * (self.tree.levels - level)
        first = np.searchsorted(self._leaves, nodes << shift)
        end = np.searchsorted(self._leaves, (nodes + 1) << shift)
        sums: Ints = self._ends[end] - self._ends[first]
        return sums


def _interleaved(row: Ints, column: Ints, bits: int) -> Ints:
    code = np.zeros_like(row)
    for bit in range(bits):
        code |= ((row >> bit) & 1) << (2 * bit + 1) | ((column >> bit) & 1) << (2 * bit)
    return code


def _apart(code: Codes, bits: int) -> tuple[Codes, Codes]:
    """Return the row and the column that :func:`_interleaved` made one number of."""
    row, column = 0 * code, 0 * code
    for bit in range(bits):
        row = row | ((code >> (2 * bit + 1)) & 1) << bit
        column = column | ((code >> (2 * bit)) & 1) << bit
    return row, column
