"""Quadtrees: the squares into which a square around a map is divided recursively.

A map of any shape lies in the south-west corner of a square of 2^depth x 2^depth cells. Level i
divides that square into 4^i equal nodes; level 0 is the whole of it, and nodes of level ``depth``
are cells. Cells beyond the map hold nothing, whatever the data, so nodes wholly beyond it do not
exist: the shape of the map decides that, and nothing else.

A node has three names:

- (level, row, column), row 0 the south and column 0 the west;
- its prefix, the quadrants on the way from the root, a digit 2 * north + east for each;
- its number in Z order, which interleaves the bits of row and column: the prefix, read in base 4.
  The children of node c are 4c..4c+3, and the leaves below a node follow each other.

Trees that are cut by halves, so that nodes of a level differ by a cell at most whatever the side of
the map, are another thing: ``ldpspatial/release/local/trees/halving_tree.py``.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldpspatial.validate import map_shape, whole_number

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

    Raises
    ------
    InputError
        A map without cells.

    Examples
    --------
    >>> tree = Quadtree((3, 5))
    >>> tree.depth, [tree.sides(level) for level in range(4)]
    (3, [(1, 1), (1, 2), (2, 3), (3, 5)])
    >>> tree.index(np.array([0, 14]), 2).tolist(), tree.numbers(2).tolist()
    ([0, 5], [0, 1, 2, 3, 4, 6])
    """

    shape: tuple[int, int]

    def __post_init__(self) -> None:
        map_shape("shape", self.shape)

    @property
    def depth(self) -> int:
        """Level of single cells: 2^depth is the least power of two that holds the map."""
        return (int(max(self.shape)) - 1).bit_length()

    def block(self, level: int) -> int:
        """Return the side of a level's nodes, in cells."""
        whole_number("level", level, 0, self.depth)
        return 1 << (self.depth - level)

    def sides(self, level: int) -> tuple[int, int]:
        """Return the rows and columns of a level's nodes."""
        block = self.block(level)
        return -(-self.shape[0] // block), -(-self.shape[1] // block)

    def areas(self, level: int) -> Array:
        """Return how many cells of the map lie in each node, shape ``sides(level)``."""
        block = self.block(level)
        # Only the last node along an axis may reach beyond the map.
        heights, widths = (
            np.minimum(block, side - block * np.arange(number, dtype=np.float64))
            for side, number in zip(self.shape, self.sides(level), strict=True)
        )
        return np.outer(heights, widths)

    def index(self, cells: Ints, level: int) -> Ints:
        """Return in which node of a level cells lie; both row by row (row * columns + column)."""
        rows, columns = np.divmod(cells, self.shape[1])
        block = self.block(level)
        places: Ints = rows // block * self.sides(level)[1] + columns // block
        return places

    def holds(self, node: Node) -> bool:
        """Tell whether a node exists: it has a cell inside the map."""
        level, row, column = node
        depth = self.depth
        if not 0 <= level <= depth:
            return False
        block = 1 << (depth - level)
        return 0 <= row * block < self.shape[0] and 0 <= column * block < self.shape[1]

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
        row, column = _apart(numbers, level)
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
        block = self.block(level)
        cells: Array = np.repeat(np.repeat(grid, block, axis=0), block, axis=1)
        return cells[: self.shape[0], : self.shape[1]]

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
        block = self.block(level)
        rows, columns = (np.arange(0, side, block) for side in self.shape)
        grid = over.reduceat(over.reduceat(values, rows, axis=0), columns, axis=1)
        found: Array = grid.ravel()[self.positions(level, numbers)]
        return found

    def leaf_numbers(self, cells: Ints) -> Ints:
        """Return the number of each cell (row * columns + column) among the leaves."""
        row, column = np.divmod(cells, self.shape[1])
        return _interleaved(row, column, self.depth)

    def cells_below(self, level: int, number: int) -> tuple[slice, slice]:
        """Return the rows and columns of a node's cells, as far as the map goes."""
        block = self.block(level)
        row, column = (block * place for place in _apart(number, level))
        rows, columns = self.shape
        return slice(row, min(row + block, rows)), slice(column, min(column + block, columns))

    def _existing(self, level: int, numbers: Ints) -> Ints:
        row, column = _apart(numbers, level)
        rows, columns = self.sides(level)
        return numbers[(row < rows) & (column < columns)]


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
