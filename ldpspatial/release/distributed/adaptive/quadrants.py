"""Quadrants: the squares that a square is divided into, again and again, and their names.

A node (depth, row, column) is one of the 4^depth equal squares of a larger one; row 0 is the south,
column 0 the west. Its prefix names the same by the quadrants that lead to it.
"""

from typing import TypeAlias

Node: TypeAlias = tuple[int, int, int]  # depth, row, column
ROOT: Node = (0, 0, 0)
MAX_DEPTH = 14  # a map of 4^14 pixels is as large as memory holds


def children(node: Node) -> tuple[Node, Node, Node, Node]:
    """Return the four quadrants of a node.

    Examples
    --------
    >>> children((1, 0, 1))
    ((2, 0, 2), (2, 0, 3), (2, 1, 2), (2, 1, 3))
    """
    depth, row, column = node[0] + 1, 2 * node[1], 2 * node[2]
    return (
        (depth, row, column),
        (depth, row, column + 1),
        (depth, row + 1, column),
        (depth, row + 1, column + 1),
    )


def prefix_of(node: Node) -> str:
    """Return the quadrants on the way from the root, a digit each: 2 * north + east.

    Examples
    --------
    >>> prefix_of((2, 1, 2)), node_of("12")
    ('12', (2, 1, 2))
    """
    depth, row, column = node
    shifts = range(depth - 1, -1, -1)
    return "".join(str(2 * (row >> shift & 1) + (column >> shift & 1)) for shift in shifts)


def node_of(prefix: str) -> Node:
    """Return the node of a prefix: the inverse of :func:`prefix_of`."""
    row = column = 0
    for digit in prefix:
        row, column = 2 * row + int(digit) // 2, 2 * column + int(digit) % 2
    return len(prefix), row, column


def is_prefix(value: object) -> bool:
    """Tell whether something is a text of at most 14 digits 0 to 3."""
    return isinstance(value, str) and len(value) <= MAX_DEPTH and set(value) <= set("0123")
