"""Levels of a map as vectors: the same map in the coarser and coarser nodes of its quadtree.

Nodes that miss the map are known to be empty and carry no element, which depends on the shape of
the map alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Levels(Quadtree):
    """Levels 1 (two by two) to depth (the cells of the map) of a map; level 0 is the map whole.

    Examples
    --------
    >>> levels = Levels((3, 5))
    >>> levels.depth, [levels.sides(level) for level in range(4)], levels.length
    (3, [(1, 1), (1, 2), (2, 3), (3, 5)], 23)
    """

    @property
    def depth(self) -> int:
        """Number of the finest level, at least 1: a map of one cell has a vector, too."""
        return max(1, super().depth)

    @property
    def length(self) -> int:
        """Elements of a vector that holds levels 1 to depth, one after the other."""
        return self.start(self.depth + 1)

    def cells(self, level: int) -> int:
        """Return how many of the level's cells touch the map."""
        rows, columns = self.sides(level)
        return rows * columns

    def start(self, level: int) -> int:
        """Return where a level from 1 on begins in a vector of levels 1 to depth."""
        return sum(self.cells(coarser) for coarser in range(1, level))

    def one_hot(self, cells: Ints, level: int) -> sparse.csr_array:
        """Return one row a client, with a one at the client's cell of the level."""
        return ones_at(self.index(cells, level)[:, None], self.cells(level))

    def one_hot_all(self, cells: Ints) -> sparse.csr_array:
        """Return one row a client, with a one in each of levels 1 to depth: ``length`` elements."""
        return ones_at(self.index_all(cells), self.length)

    def index_all(self, cells: Ints) -> Ints:
        """Return where cells of the map lie in levels 1 to depth, shape (cells, depth)."""
        numbers = range(1, self.depth + 1)
        return np.stack([self.start(i) + self.index(cells, i) for i in numbers], axis=1)

    def split(self, vector: Ints) -> list[Array]:
        """Return the parts of a vector of ``length`` elements, level by level, as maps."""
        return [
            vector[self.start(i) : self.start(i + 1)].reshape(self.sides(i)).astype(np.float64)
            for i in range(1, self.depth + 1)
        ]

    def density(self, counts: ArrayLike, level: int) -> Array:
        """Return the density of a level's counts, each spread evenly over its part of the map.

        Parameters
        ----------
        counts : array_like, shape ``sides(level)``
            Negative ones count as zero; without a positive one the density is uniform.

        Returns
        -------
        (rows, columns) array
            Non-negative, sums to 1.

        Examples
        --------
        >>> Levels((2, 3)).density([[3, -1]], 1).tolist()
        [[0.25, 0.25, 0.0], [0.25, 0.25, 0.0]]
        """
        used = np.maximum(np.asarray(counts, np.float64), 0)
        areas = self.areas(level)
        total = used.sum()
        heights = used / (total * areas) if total > 0 else np.full(used.shape, 1 / areas.sum())
        block = self.block(level)
        spread = np.repeat(np.repeat(heights, block, axis=0), block, axis=1)
        return np.ascontiguousarray(spread[: self.shape[0], : self.shape[1]])


def ones_at(places: NDArray[np.integer[Any]], length: int) -> sparse.csr_array:
    """Return one row a client with ones at the client's places; a place named k times holds k.

    Parameters
    ----------
    places : (clients, k) integer array in [0, length)
    length : int
    """
    clients, each = places.shape
    ones = np.ones(places.size, dtype=np.int64)
    starts = np.arange(0, places.size + 1, each)
    rows = sparse.csr_array((ones, places.ravel(), starts), shape=(clients, length))
    rows.sum_duplicates()
    return rows
