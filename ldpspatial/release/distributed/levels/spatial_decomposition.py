"""Spatial decomposition: the cells of every level, the budget in geometric parts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpspatial.release.distributed.levels.budgets import split_budget
from ldpspatial.release.distributed.levels.level_choice import ChosenByTruth, NoisyCounts, OneLevel
from ldpspatial.release.distributed.levels.map_levels import Ints, Levels
from ldpspatial.validate import MICRO


@dataclass(frozen=True)
class SpatialDecomposition(OneLevel):
    """Level i gets epsilon_i proportional to 2^(-i/3) (Bagdasaryan et al. 2022, section 6.2).

    A client's vectors, one a level, go out together; each level is a sum of its own, with noise of
    its own epsilon and L1 norm 1.

    Attributes
    ----------
    cohort : Cohort
        Shards, drop-outs and modulus.
    """

    name: ClassVar[str] = "spatial-decomposition"
    growth: ClassVar[float] = 2 ** (-1 / 3)

    def budgets(self, levels: Levels, epsilon: float) -> list[int]:
        """Return the millionths of epsilon that levels 1, 2, ... get; at most epsilon in all.

        Raises
        ------
        InputError
            Epsilon is too small to be divided.
        """
        return split_budget(epsilon, [self.growth**i for i in range(1, levels.depth + 1)])

    def vector_length(self, levels: Levels) -> int:
        """Return the number of cells of all levels."""
        return levels.length

    def collect(
        self, levels: Levels, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> NoisyCounts:
        """Return the noisy counts of all levels, from one sum a level."""
        budgets = self.budgets(levels, epsilon)
        decays = [micro / MICRO for micro in budgets]
        # A client is in one cell of every level, so the epsilons of the levels add up.
        sums = [
            self.cohort.sum(levels.one_hot(cells, level), decay, 1, rng)
            for level, decay in enumerate(decays, start=1)
        ]
        return NoisyCounts(
            levels,
            [found.survivors for found in sums],
            sum(budgets) / MICRO,
            levels.split(np.concatenate([found.counts for found in sums])),
            decays,  # at sensitivity 1, -ln a is the level's epsilon
            [found.deviation for found in sums],
        )


@dataclass(frozen=True)
class SpatialDecompositionLeaves(SpatialDecomposition):
    """Level i gets epsilon_i proportional to 2^(i/3): more for the leaves (Cormode et al. 2012)."""

    name: ClassVar[str] = "spatial-decomposition-leaves"
    growth: ClassVar[float] = 2 ** (1 / 3)


@dataclass(frozen=True)
class SpatialDecompositionOracle(ChosenByTruth, SpatialDecomposition):
    """The same with the level chosen against the truth, as the published table has it."""

    name: ClassVar[str] = "spatial-decomposition-oracle"
