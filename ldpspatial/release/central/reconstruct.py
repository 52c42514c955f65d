"""From noisy sums in some nodes of a quadtree to a map: the reconstruction of sparse EMD.

Ghazi et al. (AAAI 2023, Algorithm 2) choose nodes S level by level and take the map s' >= 0 that
minimises, summed over all nodes c of the measured levels, with i the level of c,

    2^-i |t(c) - s'(c)|,   t(c) = noisy sum of c where c is in S, and 0 elsewhere.

This linear program lives on a tree, so it needs no solver. What a node and all below it cost is a
convex, piecewise linear function of the mass that the node is given. The pieces of the children,
sorted by slope, make the function of their parent: on the way up pieces are collected, on the way
down mass is handed out, cheapest piece first. The arithmetic on the way up is in whole numbers,
masses in units of 1 / MASS and slopes in units of 2^-l, so the minimum is exact.

Many maps are minimal, and far from each other, where pieces have equal slopes. The rule for ties:

- Pieces of equal slope are filled in equal proportion.
- Mass beyond what is asked for below a node is spread evenly over the cells of the node. All ways
  to place it cost the same: 2^-j on every level j below, since nothing there asks for more.

A node that was left out asks for nothing, so it gets mass by the second rule alone.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ldpspatial.places.quadtree import Quadtree
from ldpspatial.release.central.quantise import MASS

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasuredLevel:
    """What was measured on one level.

    Attributes
    ----------
    level : int
    nodes : (m,) int64 array
        On the first level all nodes, further down the children of the chosen ones.
    noisy : (m,) int64 array
        Their sums with noise, in units of 1 / MASS.
    chosen : (m,) bool array
        Which of them are in S; on the first level all.
    """

    level: int
    nodes: Ints
    noisy: Ints
    chosen: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A map of masses, and how well it fits.

    Attributes
    ----------
    masses : float array, shape of the map
        In users; all 0 where no sum of the first level is positive.
    objective : float
        The minimum, in users.
    variables : int
        Of the linear program in its small form: chosen leaves and nodes left out.
    """

    masses: Array
    objective: float
    variables: int


@dataclass
class _Node:
    """A node with what it and all below it cost.

    ``pieces`` is slope -> mass, by ascending slope; mass beyond all pieces has the largest slope
    there is, 2 weight - 1 for a node of weight 2^(l - i).
    """

    level: int
    number: int
    children: list["_Node"] = field(default_factory=list)
    pieces: dict[int, int] = field(default_factory=dict)


def reconstruct(tree: Quadtree, measured: Sequence[MeasuredLevel]) -> Reconstruction:
    """Return the best fitting map.

    Parameters
    ----------
    tree : Quadtree
    measured : sequence of MeasuredLevel
        The coarsest first, then every level down to the leaves.
    """
    roots = _grow(tree, measured)
    masses = np.zeros(tree.shape)
    # Costs are in units of 2^-l: level i weighs 2^(l - i).
    cost = sum(
        int(np.abs(level.noisy[level.chosen]).sum()) << (tree.depth - level.level)
        for level in measured
    )  # of no mass at all
    for root in roots:
        # Pieces that lower the cost. Slopes are odd, so none is 0 and the best mass is unique.
        wanted = {slope: mass for slope, mass in root.pieces.items() if slope < 0}
        cost += sum(slope * mass for slope, mass in wanted.items())
        _hand_out(tree, root, sum(wanted.values()), masses)
    left_out = sum(int((~level.chosen).sum()) for level in measured)
    return Reconstruction(
        masses=masses / MASS,
        objective=cost / (MASS << tree.depth),
        variables=left_out + int(measured[-1].chosen.sum()),
    )


def _grow(tree: Quadtree, measured: Sequence[MeasuredLevel]) -> list[_Node]:
    """Build the nodes from the leaves up; return those of the first level."""
    nodes: list[_Node] = []
    for level in reversed(measured):
        children: defaultdict[int, list[_Node]] = defaultdict(list)
        for child in nodes:
            children[child.number >> 2].append(child)
        weight = 1 << (tree.depth - level.level)
        # A node that was left out asks for nothing: no pieces, every unit costs 2 weight - 1.
        nodes = [
            _Node(level.level, number, below := children[number], _pieces(below, noisy, weight))
            if chosen
            else _Node(level.level, number)
            for number, noisy, chosen in zip(
                level.nodes.tolist(), level.noisy.tolist(), level.chosen.tolist(), strict=True
            )
        ]
    return nodes


def _pieces(children: list[_Node], target: int, weight: int) -> dict[int, int]:
    """Return the pieces of a chosen node: those below it, plus weight |mass - target|."""
    below: defaultdict[int, int] = defaultdict(int)
    for child in children:
        for slope, mass in child.pieces.items():
            below[slope] += mass
    pieces: defaultdict[int, int] = defaultdict(int)
    # Below 0 nothing is asked for: every unit leads away from the noisy sum.
    missing = max(target, 0)
    # Up to the target a unit also brings this node nearer, by weight, and beyond it farther away.
    # Cheap pieces are filled first; missing is what the target lacks when they are full.
    for slope in sorted(below):
        before = min(below[slope], missing)
        pieces[slope - weight] += before
        pieces[slope + weight] += below[slope] - before
        missing -= before
    pieces[-1] += missing  # beyond all pieces the slope below is weight - 1
    return {slope: pieces[slope] for slope in sorted(pieces) if pieces[slope]}


def _hand_out(tree: Quadtree, node: _Node, mass: float, masses: Array) -> None:
    """Place a mass in the cells of a node at the least cost."""
    given: defaultdict[int, float] = defaultdict(float)
    slopes = sorted({slope for child in node.children for slope in child.pieces})
    for slope in slopes:
        asked = sum(child.pieces.get(slope, 0) for child in node.children)
        # The last piece that is reached is filled in part, in one proportion for all children.
        share = min(mass / asked, 1.0)
        for child in node.children:
            given[child.number] += share * child.pieces.get(slope, 0)
        mass = max(mass - asked, 0.0)  # floats on the way down: rounding may pass 0
    for child in node.children:
        if given[child.number] > 0:
            _hand_out(tree, child, given[child.number], masses)
    if mass > 0:
        block = masses[tree.cells_below(node.level, node.number)]
        block += mass / block.size
