"""Textbook rivals of the recommended central release, for comparison alone: noise in floats.

None of these is offered to users: what they promise rests on real numbers. Their errors are those
of exact noise.
"""

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.estimation.levels.level_map import gathered
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import Model, PrivacyClaim
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS, unit_sums
from ldpspatial.release.release import Release, Released, check_run

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FANOUT = 4


@dataclass(frozen=True)
class Rival(Release):
    """A central map from people by node."""

    model: ClassVar[Model] = "central"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return epsilon-DP as the papers have it, with noise of real numbers."""
        return PrivacyClaim(
            "central", epsilon, neighbours="add or remove", conditions=("noise of real numbers",)
        )

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run; a negative number counts as zero."""
        check_run(users, epsilon, rng)
        tree = Quadtree(users.shape)
        pyramid = Pyramid(tree, *unit_sums(users))
        people = np.maximum(self.people(tree, pyramid, epsilon, rng), 0)
        total = people.sum()
        uniform = np.full(users.shape, 1 / people.size)
        return Released(people / total if total > 0 else uniform, self.claim(epsilon))

    def people(
        self, tree: Quadtree, pyramid: Pyramid, epsilon: float, rng: np.random.Generator
    ) -> Array:
        """Return the people of each cell, shape of the map."""
        raise NotImplementedError


@dataclass(frozen=True)
class UniformGrid(Rival):
    """The nodes of one level, spread evenly (Qardaji et al., ICDE 2013, section IV)."""

    name: ClassVar[str] = "uniform-grid"
    level: int = 5

    def people(
        self, tree: Quadtree, pyramid: Pyramid, epsilon: float, rng: np.random.Generator
    ) -> Array:
        """Return noisy sums of one level."""
        level = min(self.level, tree.depth)
        nodes = tree.numbers(level)
        noisy = _sums(pyramid, level, nodes) + rng.laplace(0, 1 / epsilon, len(nodes))
        return _spread(tree, level, nodes, np.maximum(noisy, 0))


@dataclass(frozen=True)
class QuadtreeLeastSquares(Rival):
    """All levels with shares growth^level, least squares (Hay 2010; Cormode et al. 2012)."""

    name: ClassVar[str] = "quadtree"
    depth: int = 5
    growth: float = 2 ** (1 / 3)

    def people(
        self, tree: Quadtree, pyramid: Pyramid, epsilon: float, rng: np.random.Generator
    ) -> Array:
        """Return least squares of the last level, which may be negative."""
        depth = min(self.depth, tree.depth)
        parts = np.array([self.growth**level for level in range(depth + 1)])
        parts *= epsilon / parts.sum()
        levels = []
        for level, part in enumerate(parts):
            nodes = tree.numbers(level)
            noisy = _sums(pyramid, level, nodes) + rng.laplace(0, 1 / part, len(nodes))
            levels.append(NoisyLevel(level, nodes, noisy, 2 / part**2))
        found = combined(tree, levels)
        mean = found.sums[0]
        for step, children in enumerate(found.children):
            sums, variances = (
                gathered(values[step + 1], children, 0.0)
                for values in (found.sums, found.variances)
            )
            share = variances / variances.sum(1, keepdims=True)
            given = sums + share * (mean - sums.sum(1))[:, np.newaxis]
            mean = np.zeros(len(found.sums[step + 1]))
            mean[children[children >= 0]] = given[children >= 0]
        return _spread(tree, depth, tree.numbers(depth), mean)


@dataclass(frozen=True)
class PrivTree(Rival):
    """Nodes divided by noise that does not grow with depth (Zhang et al., SIGMOD 2016, Alg. 2)."""

    name: ClassVar[str] = "privtree"
    part: float = 0.5  # of epsilon for the shape of the tree

    def people(
        self, tree: Quadtree, pyramid: Pyramid, epsilon: float, rng: np.random.Generator
    ) -> Array:
        """Return noisy sums of the leaves."""
        scale = (2 * FANOUT - 1) / (FANOUT - 1) / (self.part * epsilon)
        step = scale * log(FANOUT)
        found = np.zeros(tree.shape)
        nodes = tree.numbers(0)
        for level in range(tree.depth + 1):
            sums = _sums(pyramid, level, nodes)
            biased = np.maximum(sums - level * step, -step)
            noisy = biased + rng.laplace(0, scale, len(nodes))
            divided = (noisy > 0) & (level < tree.depth)
            leaves = nodes[~divided]
            left = (1 - self.part) * epsilon
            counts = sums[~divided] + rng.laplace(0, 1 / left, len(leaves))
            found += _spread(tree, level, leaves, np.maximum(counts, 0))
            if not divided.any():
                break
            nodes = tree.numbers_below(level + 1, nodes[divided])
        return found


def _sums(pyramid: Pyramid, level: int, nodes: Ints) -> Array:
    sums: Array = pyramid.sums(level, nodes) / MASS
    return sums


def _spread(tree: Quadtree, level: int, nodes: Ints, people: Array) -> Array:
    areas = tree.areas(level).ravel()[tree.positions(level, nodes)]
    return tree.spread(level, nodes, people / areas)
