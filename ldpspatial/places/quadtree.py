"""Quadtrees: the squares into which a square around a map is divided recursively.

A map of any shape lies in the south-west corner of a square of 2^depth x 2^depth cells. Level i
divides that square into 4^i equal nodes; level 0 is the whole of it, and nodes of level ``depth``
are cells. Cells beyond the map hold nothing, whatever the data, so nodes wholly beyond it do not
exist: the shape of the map decides that, and nothing else.

On a map of 33 cells a side that leaves slivers of one cell, and other nodes twice as wide as they
need be. An *even* tree stretches the map over the whole square instead, to the cell: nodes of a
level differ by a cell at most, and where the side is a power of two nothing changes.

A node has three names:

- (level, row, column), row 0 the south and column 0 the west;
- its prefix, the quadrants on the way from the root, a digit 2 * north + east for each;
- its number in Z order, which interleaves the bits of row and column: the prefix, read in base 4.
  The children of node c are 4c..4c+3, and the leaves below a node follow each other.

Trees that are cut by halves, axis by axis, are another thing:
``ldpspatial/release/local/trees/halving_tree.py``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldpspatial.validate import map_shape, true_or_false, whole_number

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = TypeVar("Codes", int, Ints)
Node: TypeAlias = tuple[int, int, int]  # level, row, column

ROOT: Node = (0, 0, 0)
MAX_DEPTH = 14  # a map of 4^14 cells is as large as memory allows


@dataclass(frozen=True)
class Quadtree:
    """The nodes over a map of some shape.

    Attributes
    ----------
    shape : (rows, columns)
        Of the map, in cells.
    even : bool
        Whether the map is stretched over the whole square.

    Raises
    ------
    InputError
        A map without cells.

    Examples
    --------
    >>> tree = Quadtree((3, 5))
    >>> Quadtree((5, 5), even=True).areas(1).tolist(), Quadtree((5, 5)).areas(1).tolist()
    ([[9.0, 6.0], [6.0, 4.0]], [[16.0, 4.0], [4.0, 1.0]])
    >>> tree.depth, [tree.sides(level) for level in range(4)]
    (3, [(1, 1), (1, 2), (2, 3), (3, 5)])
    >>> tree.index(np.array([0, 14]), 2).tolist(), tree.numbers(2).tolist()
    ([0, 5], [0, 1, 2, 3, 4, 6])
    """

    shape: tuple[int, int]
    even: bool = False

    def __post_init__(self) -> None:
        map_shape("shape", self.shape)
        true_or_false("even", self.even)

    @cached_property
    def depth(self) -> int:
        """Level of single cells: 2^depth is the least power of two that holds the map."""
        return (int(max(self.shape)) - 1).bit_length()

    def block(self, level: int) -> int:
        """Return the side of a level's nodes, in cells; of a tree that is not even."""
        self._check(level)
        return 1 << (self.depth - level)

    def sides(self, level: int) -> tuple[int, int]:
        """Return the rows and columns of a level's nodes."""
        self._check(level)
        rows, columns = (self._number(level, side) for side in self.shape)
        return rows, columns

    def areas(self, level: int) -> Array:
        """Return how many cells of the map lie in each node, shape ``sides(level)``."""
        self._check(level)
        heights, widths = (self._lengths(level, side) for side in self.shape)
        return np.outer(heights, widths).astype(np.float64)

    def index(self, cells: Ints, level: int) -> Ints:
        """Return in which node of a level cells lie; both row by row (row * columns + column)."""
        width = self.sides(level)[1]
        row, column = (
            self._rank(self._node_of(each, level), level)
            for each in np.divmod(cells, self.shape[1])
        )
        places: Ints = row * width + column
        return places

    def holds(self, node: Node) -> bool:
        """Tell whether a node exists: it has a cell inside the map."""
        level, row, column = node
        if not 0 <= level <= self.depth or row < 0 or column < 0:
            return False
        rows, columns = self.shape
        return bool(self._has_cell(row, level, rows) and self._has_cell(column, level, columns))

    def children(self, node: Node) -> tuple[Node, ...]:
        """Return the quadrants of a node that exist."""
        return tuple(child for child in quadrants(node) if self.holds(child))

    def numbers(self, level: int) -> Ints:
        """Return the numbers of a level's nodes, ascending."""
        return self._existing(level, np.arange(4**level, dtype=np.int64))

    def numbers_below(self, level: int, parents: Ints) -> Ints:
        """Return the numbers of the nodes of ``level`` below ``parents`` of the level above."""
        below = 4 * np.sort(parents)[:, np.newaxis] + np.arange(4)
        return self._existing(level, below.ravel())

    def positions(self, level: int, numbers: Ints) -> Ints:
        """Return where nodes lie among their level's, row by row (row * columns + column).

        Examples
        --------
        >>> tree = Quadtree((3, 5))
        >>> tree.positions(2, tree.numbers(2)).tolist()
        [0, 1, 3, 4, 2, 5]
        """
        row, column = (self._rank(each, level) for each in _apart(numbers, level))
        places: Ints = row * self.sides(level)[1] + column
        return places

    def spread(self, level: int, numbers: Ints, values: Array, missing: float = 0.0) -> Array:
        """Return a map on which every cell of a node holds the node's value.

        Parameters
        ----------
        level : int
        numbers : (n,) int64 array
            Different nodes of that level.
        values : (n,) float array
        missing : float
            For the cells of all other nodes.

        Examples
        --------
        >>> Quadtree((2, 3)).spread(1, np.array([1]), np.array([7.0])).tolist()
        [[0.0, 0.0, 7.0], [0.0, 0.0, 7.0]]
        """
        grid = np.full(self.sides(level), missing)
        grid.ravel()[self.positions(level, numbers)] = values
        heights, widths = (self._lengths(level, side) for side in self.shape)
        cells: Array = np.repeat(np.repeat(grid, heights, axis=0), widths, axis=1)
        return cells

    def pooled(self, level: int, numbers: Ints, values: Array, over: np.ufunc = np.add) -> Array:
        """Return the sum of a map's values in each node, or their least or largest.

        Parameters
        ----------
        level : int
        numbers : (n,) int64 array
            Nodes of that level.
        values : (rows, columns) float array
        over : numpy.ufunc
            ``np.add``, ``np.minimum`` or ``np.maximum``.

        Examples
        --------
        >>> Quadtree((2, 3)).pooled(1, np.array([0, 1]), np.arange(6.0).reshape(2, 3))
        array([8., 7.])
        """
        self._check(level)
        rows, columns = (self._starts(level, side) for side in self.shape)
        grid = over.reduceat(over.reduceat(values, rows, axis=0), columns, axis=1)
        found: Array = grid.ravel()[self.positions(level, numbers)]
        return found

    def pooled_levels(self, values: Array, over: np.ufunc = np.add) -> list[Array]:
        """Return the sums of a map's values in all nodes of levels 0 to depth, or their extremes.

        Each level from the next one, so that all of them take little longer than one.

        Parameters
        ----------
        values : (rows, columns) float array
        over : numpy.ufunc
            ``np.add``, ``np.minimum`` or ``np.maximum``.

        Returns
        -------
        list of arrays, each of shape ``sides(level)``

        Examples
        --------
        >>> [grid.tolist() for grid in Quadtree((2, 3)).pooled_levels(np.arange(6.0).reshape(2, 3))]
        [[[15.0]], [[8.0, 7.0]], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]
        """
        grids = [values]
        for level in range(self.depth - 1, -1, -1):
            # Where a node begins, one of its children does.
            rows, columns = (
                np.searchsorted(self._starts(level + 1, side), self._starts(level, side))
                for side in self.shape
            )
            grids.append(over.reduceat(over.reduceat(grids[-1], rows, axis=0), columns, axis=1))
        return grids[::-1]

    def leaf_numbers(self, cells: Ints) -> Ints:
        """Return the number of each cell (row * columns + column) among the leaves."""
        row, column = (self._node_of(each, self.depth) for each in np.divmod(cells, self.shape[1]))
        numbers: Ints = _interleaved(row, column, self.depth)
        return numbers

    def cells_below(self, level: int, number: int) -> tuple[slice, slice]:
        """Return the rows and columns of a node's cells, as far as the map goes."""
        self._check(level)
        rows, columns = (
            slice(self._first(place, level), min(self._first(place + 1, level), side))
            for place, side in zip(_apart(number, level), self.shape, strict=True)
        )
        return rows, columns

    def _check(self, level: int) -> None:
        whole_number("level", level, 0, self.depth)

    @cached_property
    def _span(self) -> int:
        """How many cells lie along the square."""
        return int(max(self.shape)) if self.even else 1 << self.depth

    def _node_of(self, cells: Codes, level: int) -> Codes:
        """Return the row of the node of cells of these rows, or the column of columns."""
        return (cells << level) // self._span

    def _first(self, places: Codes, level: int) -> Codes:
        """Return the first cell along an axis that does not lie before these nodes."""
        return -((-places * self._span) >> level)

    def _has_cell(self, places: Codes, level: int, side: int) -> Any:
        """Tell which nodes along an axis hold a cell; of an even tree leaves may be without."""
        first = self._first(places, level)
        return (first < side) & (self._node_of(first, level) == places)

    def _rank(self, places: Codes, level: int) -> Codes:
        """Return how many nodes along an axis exist before these."""
        return self._first(places, level) if level == self.depth else places

    def _number(self, level: int, side: int) -> int:
        """Return how many nodes along an axis hold a cell."""
        return side if level == self.depth else self._node_of(side - 1, level) + 1

    def _starts(self, level: int, side: int) -> Ints:
        """Return the first cell of each node along an axis."""
        nodes = np.arange(self._number(level, side), dtype=np.int64)
        return nodes if level == self.depth else self._first(nodes, level)

    def _lengths(self, level: int, side: int) -> Ints:
        """Return how many cells each node along an axis holds."""
        return np.diff(np.append(self._starts(level, side), side))

    def _existing(self, level: int, numbers: Ints) -> Ints:
        row, column = _apart(numbers, level)
        rows, columns = self.shape
        held = self._has_cell(row, level, rows) & self._has_cell(column, level, columns)
        existing: Ints = numbers[held]
        return existing


def quadrants(node: Node) -> tuple[Node, Node, Node, Node]:
    """Return the four quadrants of a node.

    Examples
    --------
    >>> quadrants((1, 0, 1))
    ((2, 0, 2), (2, 0, 3), (2, 1, 2), (2, 1, 3))
    """
    level = node[0] + 1
    row = 2 * node[1]
    column = 2 * node[2]
    return (
        (level, row, column),
        (level, row, column + 1),
        (level, row + 1, column),
        (level, row + 1, column + 1),
    )


def prefix_of(node: Node) -> str:
    """Return the quadrants on the way from the root, a digit each: 2 * north + east.

    Examples
    --------
    >>> prefix_of((2, 1, 2)), node_of("12")
    ('12', (2, 1, 2))
    """
    level, row, column = node
    shifts = range(level - 1, -1, -1)
    return "".join(str(2 * (row >> shift & 1) + (column >> shift & 1)) for shift in shifts)


def node_of(prefix: str) -> Node:
    """Return the node of a prefix: the inverse of :func:`prefix_of`."""
    row = column = 0
    for digit in prefix:
        row = 2 * row + int(digit) // 2
        column = 2 * column + int(digit) % 2
    return len(prefix), row, column


def is_node(value: Any) -> bool:
    """Tell whether something is three whole numbers: level, row and column."""
    if not isinstance(value, tuple) or len(value) != 3:
        return False
    return all(isinstance(number, int | np.integer) for number in value)


def is_prefix(value: object) -> bool:
    """Tell whether something is a text of at most 14 digits 0 to 3."""
    return isinstance(value, str) and len(value) <= MAX_DEPTH and set(value) <= set("0123")


def _interleaved(row: Ints, column: Ints, bits: int) -> Ints:
    code = np.zeros_like(row)
    for bit in range(bits):
        code |= ((row >> bit) & 1) << (2 * bit + 1) | ((column >> bit) & 1) << (2 * bit)
    return code


def _apart(code: Codes, bits: int) -> tuple[Codes, Codes]:
    """Return the row and the column that :func:`_interleaved` made one number of."""
    # Zeros of code's kind: a number, or an array of its shape.
    row = 0 * code
    column = 0 * code
    for bit in range(bits):
        row = row | ((code >> (2 * bit + 1)) & 1) << bit
        column = column | ((code >> (2 * bit)) & 1) << bit
    return row, column
