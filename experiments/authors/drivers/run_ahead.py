"""Run AHEAD as its authors published it, in two dimensions: cells of people in, a map out.

Arguments: the clone, a file with ``rows`` and ``columns`` (npz), the file to write, epsilon, cells
a side (a power of two), a seed. Needs numpy and scipy. A dictionary of nodes stands in for what
they use of treelib; of pandas they only write a table with. Their tree answers queries, so the map
is what it says of each cell: a leaf's frequency spread evenly, negatives zero.
"""

import math
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

BRANCHING = 2  # along each axis


class Node:
    """A node of a tree."""

    def __init__(self, identifier: str, depth: int, data: Any):
        self.identifier, self.level, self.data = identifier, depth, data
        self.children: list[Node] = []


class Tree:
    """What they need of treelib's trees: nodes in the order in which they came."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def create_node(self, _tag: str, identifier: str, parent: Any = None, data: Any = None) -> None:
        """Put a node below its parent."""
        above = None if parent is None else self._nodes[parent]
        node = Node(identifier, 0 if above is None else above.level + 1, data)
        if identifier in self._nodes:
            raise ValueError(f"there is a node {identifier}")
        self._nodes[identifier] = node
        if above is not None:
            above.children.append(node)

    def all_nodes(self) -> list[Node]:
        """Return the nodes."""
        return list(self._nodes.values())

    def leaves(self) -> list[Node]:
        """Return the nodes that have none below them."""
        return [node for node in self._nodes.values() if not node.children]

    def children(self, identifier: str) -> list[Node]:
        """Return the nodes right below one."""
        return self._nodes[identifier].children

    def depth(self, node: Node | None = None) -> int:
        """Return the level of a node, or the deepest one."""
        return max(each.level for each in self._nodes.values()) if node is None else node.level

    def size(self, level: int) -> int:
        """Return how many nodes are on a level."""
        return sum(node.level == level for node in self._nodes.values())


def main() -> None:
    """Grow their tree and ask it for each cell."""
    clone, given, found, epsilon, cells, seed = sys.argv[1:]
    sys.path.insert(0, clone)
    for name, content in (("treelib", {"Tree": Tree, "Node": Node}), ("pandas", {})):
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(content)
    theirs = import_module("ahead_2dim")
    np.random.seed(int(seed))  # noqa: NPY002 - what their code draws from
    people = np.load(given)
    side = int(cells)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "people.txt"
        np.savetxt(path, np.stack([people["rows"], people["columns"]], 1), "%d")
        height = int(math.log(side, BRANCHING))
        groups = theirs.user_record_partition(path, height, [side, side])
    tree = grown(theirs, groups, side, float(epsilon))
    density = np.zeros((side, side))
    for leaf in tree.leaves():
        top, bottom, left, right = leaf.data.interval.astype(int)
        area = (bottom - top) * (right - left)
        density[top:bottom, left:right] = max(leaf.data.frequency, 0.0) / area
    np.savez(found, density=density / density.sum())


def grown(theirs: Any, groups: Any, side: int, epsilon: float) -> Tree:
    """Return their tree after all steps, called as their program calls them."""
    branch = np.full(2, BRANCHING)
    height = len(groups)
    theta = theirs.theta_calculation(height, epsilon, groups.sum(), branch, 2)
    tree: Tree = theirs.Tree()
    whole = theirs.Nodex(1, True, 1, np.array([0, side, 0, side]))
    tree.create_node("Root", "root", data=whole)
    vectors = theirs.construct_translation_vector([side, side], branch)
    theirs.ahead_tree_construction(tree, height, theta, branch, vectors, groups, epsilon)
    theirs.ahead_tree_postprocessing(tree)
    return tree


if __name__ == "__main__":
    main()
