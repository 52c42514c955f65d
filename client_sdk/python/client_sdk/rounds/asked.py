"""Which counts a round asks for: squares of the quadtree over a grid, and a device's part in them.

A node (level, row, column) is one of the 2^level x 2^level squares of its level; row 0 is the
south, column 0 the west. A round asks for levels or for nodes.

- *Levels*: a position counts on every level, in the square around it. Its vector holds as many ones
  as there are levels.
- *Nodes*: a position counts once, in the deepest node around it (the longest matching prefix of
  Bagdasaryan et al. 2022, section 5.3), or not at all where there is none.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from client_sdk import canonical
from client_sdk.errors import CollectionError

MAX_DEPTH = 12  # a grid has at most 4096 cells on a side
MAX_LENGTH = 1 << 20

Node = tuple[int, int, int]


@dataclass(frozen=True)
class Asked:
    """The elements of the vectors of a round, in their order; either levels or nodes.

    Attributes
    ----------
    levels : tuple of int
        Ascending; all squares of each, row by row from the south-west.
    nodes : tuple of (level, row, column)
        Different ones, in ascending order.

    Raises
    ------
    CollectionError
        A level or node that cannot be, both kinds or neither, or more than 2^20 elements.

    Examples
    --------
    >>> Asked(levels=(1, 2)).ones(2, 3, 0)
    [2, 16]
    >>> Asked(nodes=((0, 0, 0), (2, 3, 0))).ones(2, 3, 0)
    [1]
    """

    levels: tuple[int, ...] = ()
    nodes: tuple[Node, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.levels) == bool(self.nodes):
            raise CollectionError("asked must hold either levels or nodes, at least one")
        for level in self.levels:
            canonical.integer(level, "asked.levels", 0, MAX_DEPTH)
        for node in self.nodes:
            if not isinstance(node, tuple) or len(node) != 3:
                raise CollectionError("asked.nodes must be triples of level, row and column")
            level = canonical.integer(node[0], "asked.nodes: a level", 0, MAX_DEPTH)
            for place in node[1:]:
                canonical.integer(place, "asked.nodes: a row or column", 0, (1 << level) - 1)
        for kind in ("levels", "nodes"):
            listed = getattr(self, kind)
            if any(a >= b for a, b in pairwise(listed)):
                raise CollectionError(f"asked.{kind} must be different ones in ascending order")
        if self.length > MAX_LENGTH:
            raise CollectionError(
                f"asked must have at most {MAX_LENGTH} elements, got {self.length}"
            )

    @property
    def length(self) -> int:
        """How many elements a vector has."""
        return sum(4**level for level in self.levels) if self.levels else len(self.nodes)

    @property
    def depth(self) -> int:
        """The deepest level of an element."""
        return max(self.levels) if self.levels else max(node[0] for node in self.nodes)

    @property
    def norm(self) -> int:
        """The largest L1 norm of the vector of one position."""
        return max(len(self.levels), 1)

    def ones(self, depth: int, row: int, column: int) -> list[int]:
        """Return the elements in which the cell of a grid of 2^depth cells on a side counts one."""
        if self.levels:
            return [
                start + ((row >> (depth - level)) << level) + (column >> (depth - level))
                for level, start in zip(self.levels, self._starts, strict=True)
            ]
        for level in range(depth, -1, -1):
            shift = depth - level
            place = self._places.get((level, row >> shift, column >> shift))
            if place is not None:
                return [place]
        return []

    def vector(self, depth: int, row: int, column: int) -> list[int]:
        """Return the vector of a cell: zeros, and a one in each of its elements."""
        vector = [0] * self.length
        for place in self.ones(depth, row, column):
            vector[place] = 1
        return vector

    def document(self) -> dict[str, list[int] | list[list[int]]]:
        """Return the part of a round document."""
        if self.levels:
            return {"levels": list(self.levels)}
        return {"nodes": [list(node) for node in self.nodes]}

    @classmethod
    def parse(cls, document: object) -> "Asked":
        """Read what :meth:`document` wrote.

        Raises
        ------
        CollectionError
        """
        if not isinstance(document, dict) or len(document) != 1:
            raise CollectionError("asked must be a JSON object with levels or nodes")
        (kind,) = document
        listed = document[kind]
        if kind not in ("levels", "nodes") or not isinstance(listed, list):
            raise CollectionError("asked must hold a list named levels or nodes")
        if len(listed) > MAX_LENGTH:
            raise CollectionError(f"asked must have at most {MAX_LENGTH} elements")
        if kind == "levels":
            return cls(levels=tuple(listed))
        if not all(isinstance(node, list) for node in listed):
            raise CollectionError("asked.nodes must be triples of level, row and column")
        return cls(nodes=tuple(tuple(node) for node in listed))

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((4**level for level in self.levels[:-1]), initial=0))

    @cached_property
    def _places(self) -> dict[Node, int]:
        return {node: place for place, node in enumerate(self.nodes)}
