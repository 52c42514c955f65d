"""Hierarchical histogram: the cells of every level side by side, the budget in equal parts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpspatial.release.distributed.levels.level_choice import ChosenByTruth, NoisyCounts, OneLevel
from ldpspatial.release.distributed.levels.map_levels import Ints, Levels


@dataclass(frozen=True)
class Hierarchical(OneLevel):
    """A one in each level's vector, the levels in one sum (Bagdasaryan et al. 2022, section 5.1).

    The vector has an L1 norm of the number of levels, so each entry's noise is that of
    epsilon / levels.

    Attributes
    ----------
    cohort : Cohort
        Shards, drop-outs and modulus.
    """

    name: ClassVar[str] = "hierarchical"

    def vector_length(self, levels: Levels) -> int:
        """Return the number of cells of all levels."""
        return levels.length

    def collect(
        self, levels: Levels, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> NoisyCounts:
        """Return the noisy counts of all levels, from one sum."""
        depth = levels.depth
        found = self.cohort.sum(levels.one_hot_all(cells), epsilon, depth, rng)
        return NoisyCounts(
            levels,
            (found.survivors,) * depth,
            epsilon,
            levels.split(found.counts),
            (epsilon / depth,) * depth,
            (found.deviation,) * depth,
        )


@dataclass(frozen=True)
class HierarchicalOracle(ChosenByTruth, Hierarchical):
    """The same with the level chosen against the truth, as the published table has it."""

    name: ClassVar[str] = "hierarchical-oracle"


@dataclass(frozen=True)
class NonPrivateBestLevel(ChosenByTruth):
    """Cells sent in the clear, counted on the level nearest to the truth: the error of sampling.

    Bagdasaryan et al. 2022, section 6.2.
    """

    name: ClassVar[str] = "non-private-best-level"

    def vector_length(self, levels: Levels) -> int:
        """Return 2: row and column."""
        del levels
        return 2

    def collect(
        self, levels: Levels, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> NoisyCounts:
        """Return the counts of those who do not drop out, without noise."""
        here = rng.random(len(cells)) >= self.cohort.drop_out
        total = np.bincount(levels.index_all(cells[here]).ravel(), minlength=levels.length)
        people = (int(here.sum()),) * levels.depth
        none = (0.0,) * levels.depth
        return NoisyCounts(levels, people, epsilon, levels.split(total), none, none)
