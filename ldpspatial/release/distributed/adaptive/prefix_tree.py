"""Prefix tree: squares of many sizes over a map, each pixel counted in the smallest around it.

A node (level, row, column) is one of those of the :class:`~ldpspatial.places.quadtree.Quadtree` of
the map. Any set of them is a tree: a node may lack some of its children (partial), or its parent
(orphaned). A pixel belongs to the deepest node around it, the longest matching prefix of its
quadrants; the root always stands, so every pixel has a node (Bagdasaryan et al. 2022, sections 5.3
and 5.6).
"""

import json
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.errors import InputError
from ldpspatial.places.quadtree import (
    MAX_DEPTH,
    ROOT,
    Node,
    Quadtree,
    is_node,
    is_prefix,
    node_of,
    prefix_of,
)
from ldpspatial.validate import (
    map_shape,
    number_array,
    number_in,
    shown,
    whole_array,
    whole_number,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_SIDE = 1 << MAX_DEPTH
FORMAT = "ldpspatial prefix tree 1"


@dataclass(frozen=True, repr=False)
class PrefixTree:
    """A set of squares; those that cover something of their own are the elements of a vector.

    Attributes
    ----------
    shape : (rows, columns)
        Of the map, in pixels; row 0 is the south.
    nodes : frozenset of (level, row, column)
        All nodes but the root, each with a pixel inside the map.

    Raises
    ------
    InputError
        A map without pixels or beyond 16,384 on a side, or a node outside the map.

    Examples
    --------
    >>> tree = PrefixTree.quadrants((4, 4))
    >>> tree, tree.elements
    (PrefixTree(4 elements on 4 x 4 pixels), ((1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)))
    >>> deeper = tree.split([(1, 0, 0)]).collapse([(1, 1, 1)])
    >>> deeper.elements[0], int(deeper.areas[0])  # the root covers what has no smaller node
    ((0, 0, 0), 4)
    >>> deeper.assign([0, 5, 15]).tolist()
    [3, 6, 0]
    """

    shape: tuple[int, int]
    nodes: frozenset[Node] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        if max(map_shape("shape", self.shape)) > MAX_SIDE:
            raise InputError(f"shape must lie in [1, {MAX_SIDE}] each way, got {self.shape}")
        if not isinstance(self.nodes, Set) or not all(map(is_node, self.nodes)):
            rule = "nodes must be a set of (level, row, column), three whole numbers"
            raise InputError(f"{rule}, got {shown(self.nodes)}")
        outside = [node for node in self.nodes if node == ROOT or not self._quadtree.holds(node)]
        if outside:
            raise InputError(f"nodes must lie inside the map, below the root, got {outside[0]}")

    def __len__(self) -> int:
        """T, the length of the vector that a client sends."""
        return len(self.elements)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"PrefixTree({len(self)} elements on {rows} x {columns} pixels)"

    @classmethod
    def quadrants(cls, shape: tuple[int, int]) -> "PrefixTree":
        """Return the tree to start from without a prior: the root's children inside the map."""
        tree = cls(shape)
        return tree.split([ROOT]) if tree.depth else tree

    @classmethod
    def from_density(
        cls, density: ArrayLike, share: float, depth: int | None = None
    ) -> "PrefixTree":
        """Return the quadrants, and the children of every square with more than a share of a map.

        A prior: the map of another time or another city, public or released under a claim of its
        own.

        Parameters
        ----------
        density : (rows, columns) array_like of finite numbers >= 0 with a positive sum
        share : float in (0, 1)
            Squares with more of the sum than this are split.
        depth : int >= 1, optional
            Level of the smallest squares; pixels by default.
        """
        masses = number_array("density", density, ("rows", "columns"), "[0, inf)", bools=True)
        if not masses.any():
            raise InputError("density must hold a number above 0, got zeros only")
        share = number_in("share", share, "(0, 1)")
        if depth is not None:
            depth = whole_number("depth", depth, 1)
        tree = cls.quadrants((masses.shape[0], masses.shape[1]))
        side = 1 << tree.depth
        square = np.zeros((side, side))
        square[: masses.shape[0], : masses.shape[1]] = masses / masses.sum()
        split = np.ones((1, 1), dtype=np.bool_)  # the whole map, into quadrants
        for level in range(1, min(tree.depth, tree.depth if depth is None else depth)):
            size = side >> level
            # Axes: row of node, row in it, column of node, column in it.
            sums = square.reshape(1 << level, size, 1 << level, size).sum(axis=(1, 3))
            heavy = sums > share
            # A heavy square's parent is as heavy and has been split; but sums round, so test it.
            heavy &= np.repeat(np.repeat(split, 2, axis=0), 2, axis=1)
            split = heavy
            squares = zip(*(at.tolist() for at in np.nonzero(heavy)), strict=True)
            tree = tree.split([(level, row, column) for row, column in squares])
        return tree

    @property
    def depth(self) -> int:
        """Depth of a pixel; the square around the map has 2^depth of them on a side."""
        return self._quadtree.depth

    @cached_property
    def _quadtree(self) -> Quadtree:
        return Quadtree(self.shape)

    @property
    def elements(self) -> tuple[Node, ...]:
        """Nodes with a pixel of their own, by level, row and column: what the vector counts."""
        return self._cover[0]

    @property
    def labels(self) -> Ints:
        """Index of the element that covers each pixel, shape ``shape``."""
        return self._cover[1]

    @property
    def areas(self) -> Ints:
        """Pixels that each element covers itself, shape (T,); they sum to rows * columns."""
        return self._cover[2]

    @cached_property
    def _cover(self) -> tuple[tuple[Node, ...], Ints, Ints]:
        nodes = [ROOT, *sorted(self.nodes)]
        table = np.array(nodes, dtype=np.int64)
        paint = np.zeros((1, 1), dtype=np.int64)
        for level in range(1, self.depth + 1):  # each level paints over the one above
            size = self._quadtree.block(level)
            paint = paint.repeat(2, axis=0).repeat(2, axis=1)
            paint = paint[: -(-self.shape[0] // size), : -(-self.shape[1] // size)]  # on the map
            first, last = np.searchsorted(table[:, 0], [level, level + 1])
            paint[table[first:last, 1], table[first:last, 2]] = np.arange(first, last)
        pixels = np.bincount(paint.ravel(), minlength=len(nodes))
        # Nodes whose pixels all belong to smaller ones are no elements: they would hold noise only.
        covering = np.flatnonzero(pixels)
        element = np.zeros(len(nodes), dtype=np.int64)
        element[covering] = np.arange(covering.size)
        labels = element[paint]
        areas = pixels[covering]
        labels.setflags(write=False)  # shared by everybody who asks
        areas.setflags(write=False)
        return tuple(nodes[index] for index in covering.tolist()), labels, areas

    def assign(self, cells: ArrayLike) -> Ints:
        """Return the index of the element that covers each cell.

        Parameters
        ----------
        cells : integer array in [0, rows * columns)
            Row * columns + column of the pixel.

        Raises
        ------
        InputError
            Cells that are not integers or lie beyond the map.
        """
        where = whole_array("cells", cells, ("n",), 0, self.shape[0] * self.shape[1])
        found: Ints = self.labels.ravel()[where]
        return found

    def density(self, counts: ArrayLike) -> Array:
        """Return the map that counts of the elements stand for; shape ``shape``, sum 1.

        Negative counts are read as 0, and each count is spread evenly over the pixels that its
        element covers itself. Counts without anything positive give the uniform map.

        Parameters
        ----------
        counts : (T,) array_like of finite numbers
        """
        masses = np.maximum(number_array("counts", counts, (len(self),)), 0.0)
        if not masses.any():
            masses = self.areas.astype(np.float64)
        spread: Array = (masses / masses.sum() / self.areas)[self.labels]
        return spread

    def split(self, nodes: Iterable[Node]) -> "PrefixTree":
        """Return the tree with the missing children of nodes; none outside the map is made.

        Raises
        ------
        InputError
            A node that is not in the tree, or is a pixel.
        """
        chosen = self._known(nodes)
        if any(level == self.depth for level, _, _ in chosen):
            raise InputError(f"a pixel cannot be split: nodes must have a level below {self.depth}")
        grown = (child for node in chosen for child in self._quadtree.children(node))
        return PrefixTree(self.shape, self.nodes.union(grown))

    def collapse(self, nodes: Iterable[Node]) -> "PrefixTree":
        """Return the tree without nodes: whoever was counted there falls to the next node around.

        Children of a removed node stay, as orphans. The root cannot be removed and is passed over,
        for people without any other node are counted there.

        Raises
        ------
        InputError
            A node that is not in the tree.
        """
        return PrefixTree(self.shape, self.nodes.difference(self._known(nodes)))

    def to_json(self) -> str:
        """Return the tree as text, for another run to start from; equal trees give equal text.

        A node is its prefix: a digit 0 to 3 for each level, twice the bit of the row plus the bit
        of the column.
        """
        prefixes = sorted(map(prefix_of, self.nodes))
        return json.dumps({"format": FORMAT, "shape": list(self.shape), "nodes": prefixes})

    @classmethod
    def from_json(cls, text: str) -> "PrefixTree":
        """Return the tree that :meth:`to_json` wrote.

        Raises
        ------
        InputError
            Text that is not such a document, or nodes outside the map.
        """
        try:
            document = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            raise InputError("a prefix tree must be a JSON document") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InputError(f"a prefix tree must have the format {FORMAT!r}")
        shape = document.get("shape")
        prefixes = document.get("nodes")
        if not isinstance(shape, list) or [type(side) for side in shape] != [int, int]:
            raise InputError("shape of a prefix tree must be two whole numbers")
        if not isinstance(prefixes, list) or not all(map(is_prefix, prefixes)):
            raise InputError("nodes of a prefix tree must be texts of the digits 0 to 3")
        return cls((shape[0], shape[1]), frozenset(map(node_of, prefixes)))

    def _known(self, nodes: Iterable[Node]) -> list[Node]:
        chosen = list(nodes)
        unknown = [node for node in chosen if node != ROOT and node not in self.nodes]
        if unknown:
            raise InputError(f"nodes must be in the tree, got {unknown[0]}")
        return chosen
