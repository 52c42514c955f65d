"""Sums of sparse whole numbers in the nodes of a quadtree."""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.places.quadtree import Quadtree

Ints = NDArray[np.int64]


class Pyramid:
    """Sums of a sparse map in any node of its quadtree; nothing is stored but the map.

    Parameters
    ----------
    tree : Quadtree
    cells, values : (n,) int64 arrays
        What the map holds, by cell (row * columns + column).
    """

    def __init__(self, tree: Quadtree, cells: Ints, values: Ints):
        leaves = tree.leaf_numbers(cells)
        order = np.argsort(leaves)
        self.tree = tree
        self._leaves = leaves[order]
        self._ends = np.concatenate([[0], np.cumsum(values[order])])  # sums before each leaf

    def sums(self, level: int, nodes: Ints) -> Ints:
        """Return the sum in each of these nodes."""
        # Leaves below a node begin with its digits, two bits a level: one interval in their order.
        shift = 2 * (self.tree.depth - level)
        first = np.searchsorted(self._leaves, nodes << shift)
        end = np.searchsorted(self._leaves, (nodes + 1) << shift)
        sums: Ints = self._ends[end] - self._ends[first]
        return sums
