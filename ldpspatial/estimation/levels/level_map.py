"""From noisy sums on the levels of a quadtree to a map: least squares up, shrunken shares down.

A node's people are the sum of those in its children. On the way up, each node's own sum and the
sum of its children are averaged by inverse variances, which is least squares with all that lies
below the node (Hay et al., VLDB 2010, section 4; here with a variance of its own for each level,
and with nodes that were not divided, or of which no sum was taken). Where a random part of the
people was counted, the variance of a sum grows with the people of its node, so a first map, which
takes them for spread evenly, says how to weigh the sums of the second. On the way down, the people
of a node go to its children:

- A node's children share its people as their sums say, drawn to what shares are like on this level,
  which is learned from all of its nodes (:mod:`ldpspatial.estimation.levels.shares`).
- What comes out is drawn to the nearest shares that are not negative. A node's people stay its
  people, so that noise below does not add up where nobody is, as it does where negative cells are
  cut off one by one.
- On the finest level of which every node was measured, people are told again by the law of counts
  that is learned from all of its nodes (:mod:`ldpspatial.estimation.levels.learned_counts`). Where
  sums were taken of the leaves of a tree alone, the people of these are told again.

A node without children spreads its people evenly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.estimation.levels.learned_counts import learned_counts, learned_leaves
from ldpspatial.estimation.levels.noisy_level import NoisyLevel
from ldpspatial.estimation.levels.shares import shared
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.validate import instance

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = 1e-9  # people of a map whose noisy total is not positive


@dataclass(frozen=True, eq=False)
class LevelMap:
    """A map and the sums that it was made of.

    Attributes
    ----------
    tree : Quadtree
    levels : tuple of NoisyLevel
        From level 0 down, without a gap.
    density : (rows, columns) array
        Non-negative, sums to 1.
    children : tuple of (m, 4) int64 arrays
        For each level but the last, where a node's children are on the next; -1 for none.
    sums, variances : tuples of (m,) arrays
        Least squares of each node by its own sum and those below it: without bias, and the
        variance of its noise, infinite where nothing was measured.
    """

    tree: Quadtree
    levels: tuple[NoisyLevel, ...] = field(repr=False)
    density: Array = field(repr=False)
    children: tuple[Ints, ...] = field(repr=False)
    sums: tuple[Array, ...] = field(repr=False)
    variances: tuple[Array, ...] = field(repr=False)

    @property
    def people(self) -> float:
        """Least squares of all people."""
        return float(self.sums[0][0])


def combined(tree: Quadtree, levels: Sequence[NoisyLevel]) -> LevelMap:
    """Return the map of noisy sums.

    Parameters
    ----------
    tree : Quadtree
    levels : sequence of NoisyLevel
        Level 0 first, then every level down to the last one of which anything was asked. A level
        holds all children that exist of some nodes of the level above, and no others.

    Raises
    ------
    InputError
        Levels with a gap, or nodes that are not all children of some nodes above.

    Examples
    --------
    >>> tree = Quadtree((2, 2))
    >>> whole = NoisyLevel(0, np.array([0]), np.array([100.0]), 0.0)
    >>> cells = NoisyLevel(1, np.arange(4), np.array([91.0, -2.0, 9.0, 2.0]), 4.0)
    >>> combined(tree, [whole, cells]).density.round(2).tolist()
    [[0.9, 0.0], [0.08, 0.01]]
    """
    checked = _checked(tree, levels)
    children = tuple(_children(tree, above, below) for above, below in pairwise(checked))
    sums, variances = _up(checked, [_at_first(level) for level in checked], children)
    density = _down(tree, checked, children, sums, variances)
    if any(level.per_person for level in checked):
        # Who is not counted is missed where people are, and that the first map tells.
        people = density * max(float(sums[0][0]), 0.0)
        own = [_by_people(tree, level, people) for level in checked]
        sums, variances = _up(checked, own, children)
        density = _down(tree, checked, children, sums, variances)
    return LevelMap(tree, checked, density, children, sums, variances)


def _checked(tree: Quadtree, levels: Sequence[NoisyLevel]) -> tuple[NoisyLevel, ...]:
    instance("tree", tree, Quadtree)
    found = tuple(instance("each of levels", level, NoisyLevel) for level in levels)
    numbers = [level.level for level in found]
    if numbers != list(range(len(found))) or not 1 <= len(found) <= tree.depth + 1:
        raise InputError(f"levels must be 0, 1, ... to at most {tree.depth}, got {numbers}")
    if len(found[0].nodes) != 1:
        raise InputError("levels must begin with the whole map")
    if not any(np.isfinite(level.variance) for level in found):
        raise InputError("levels must hold one of which sums were taken")
    return found


def _children(tree: Quadtree, above: NoisyLevel, below: NoisyLevel) -> Ints:
    """Return for each node above the places of its children below, -1 where there is none."""
    places = np.full((len(above.nodes), 4), -1, dtype=np.int64)
    parents = below.nodes >> 2
    at = np.minimum(np.searchsorted(above.nodes, parents), len(above.nodes) - 1)
    divided = np.unique(at)
    whole = tree.numbers_below(below.level, above.nodes[divided])
    if not np.array_equal(whole, below.nodes):
        raise InputError(
            f"nodes of level {below.level} must be all children of some nodes of the level above"
        )
    places[at, below.nodes & 3] = np.arange(len(below.nodes))
    return places


def _at_first(level: NoisyLevel) -> Array:
    """Return the variance of each sum, as if all nodes of the level held equally many."""
    sums = level.sums if level.measured is None else level.sums[level.measured]
    mean = max(float(sums.mean()), 0.0)
    return level.by_node(level.variance + level.per_person * mean)


def _by_people(tree: Quadtree, level: NoisyLevel, people: Array) -> Array:
    """Return the variance of each sum, given a map of the people; one more a node, to be safe."""
    held = tree.pooled(level.level, level.nodes, people)
    return level.by_node(level.variance + level.per_person * (held + 1))


def _up(
    levels: Sequence[NoisyLevel], own: Sequence[Array], children: Sequence[Ints]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return least squares of each node by what was measured in it and below it.

    ``own`` are the variances of each level's sums.
    """
    sums = [levels[-1].sums]
    variances = [own[-1]]
    for level, noise, below in zip(levels[-2::-1], own[-2::-1], children[::-1], strict=True):
        total, spread = (gathered(values, below, 0.0).sum(1) for values in (sums[0], variances[0]))
        spread[(below < 0).all(1)] = np.inf
        mean, variance = _averaged(level.sums, noise, total, spread)
        sums.insert(0, mean)
        variances.insert(0, variance)
    return tuple(sums), tuple(variances)


def _averaged(own: Array, noise: Array, total: Array, spread: Array) -> tuple[Array, Array]:
    """Return the mean of a level's own sums and those below, by inverse variances."""
    if not noise.any():
        return own, noise
    unknown = np.isinf(noise)
    noise = np.where(unknown, 1.0, noise)
    # The share of what lies below: 1 where it is known exactly, 0 where nothing is known.
    share = np.where(unknown, 1.0, noise / (noise + spread))
    below = np.where(np.isinf(spread), 0.0, total)
    sums = (1 - share) * own + share * below
    return sums, np.where(unknown, spread, (1 - share) * noise)


def _down(
    tree: Quadtree,
    levels: Sequence[NoisyLevel],
    children: Sequence[Ints],
    sums: Sequence[Array],
    variances: Sequence[Array],
) -> Array:
    """Hand each node's people to its children, and those of the last ones to their cells."""
    leaves: list[_Leaves] = []
    people = np.maximum(sums[0], LEAST)
    whole = _finest_whole(tree, levels)
    for step, level in enumerate(levels):
        if step == whole:
            known = slice(step + 1)
            people = learned_counts(tree, level, sums[known], variances[known], people)
        areas = _areas(tree, level)
        divided = np.zeros(len(people), bool)
        if step < len(children):
            divided = _divided(children[step], variances[step + 1])
        leaves.append(_Leaves(level, ~divided, people[~divided]))
        if not divided.any():
            break
        inner = children[step][divided]
        given = shared(
            people[divided],
            gathered(_areas(tree, levels[step + 1]), inner, 0.0) / areas[divided][:, np.newaxis],
            gathered(sums[step + 1], inner, 0.0),
            gathered(variances[step + 1], inner, 0.0),
        )
        people = np.zeros(len(sums[step + 1]))
        people[inner[inner >= 0]] = given[inner >= 0]
    return _spread(tree, _told_anew(leaves))


class _Leaves(NamedTuple):
    """The nodes of a level that are not divided."""

    level: NoisyLevel
    which: NDArray[np.bool_]
    people: Array


def _told_anew(leaves: Sequence[_Leaves]) -> Sequence[_Leaves]:
    """Return people by the law of the leaves' counts, where sums of leaves alone were taken."""
    if all(each.level.measured is None for each in leaves):
        return leaves
    sums = [each.level.sums[each.which] for each in leaves]
    variances = [each.level.by_node(each.level.variance)[each.which] for each in leaves]
    people = [each.people for each in leaves]
    told = learned_leaves(*map(np.concatenate, (sums, variances, people)))
    ends = np.cumsum([len(each) for each in people])[:-1]
    return [
        each._replace(people=part) for each, part in zip(leaves, np.split(told, ends), strict=True)
    ]


def _spread(tree: Quadtree, leaves: Iterable[_Leaves]) -> Array:
    """Return the map on which the people of a leaf are spread evenly."""
    density = np.zeros(tree.shape)
    for level, which, people in leaves:
        heights = people / _areas(tree, level)[which]
        density += tree.spread(level.level, level.nodes[which], heights)
    found: Array = density / density.sum()
    return found


def _finest_whole(tree: Quadtree, levels: Sequence[NoisyLevel]) -> int:
    """Return the finest level of which all nodes were measured, -1 for none."""
    measured = [
        level.level
        for level in levels
        if np.isfinite(level.by_node(level.variance)).all()
        and len(level.nodes) == np.prod(tree.sides(level.level))
    ]
    return max(measured, default=-1)


def _areas(tree: Quadtree, level: NoisyLevel) -> Array:
    """Return how many cells each node holds."""
    areas: Array = tree.areas(level.level).ravel()[tree.positions(level.level, level.nodes)]
    return areas


def divided_nodes(found: LevelMap, step: int) -> NDArray[np.bool_]:
    """Tell which nodes of a level have children of which something is known."""
    return _divided(found.children[step], found.variances[step + 1])


def _divided(children: Ints, variances: Array) -> NDArray[np.bool_]:
    known = gathered(variances, children, 0.0)
    return np.asarray((children >= 0).any(1) & np.isfinite(known).all(1))


def gathered(values: Array, places: Ints, missing: float) -> Array:
    """Return values at places, and another where a place is -1."""
    found: Array = np.append(values, missing)[places]  # -1 is the last one
    return found
