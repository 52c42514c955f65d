"""Maps from noisy sums in the nodes of a quadtree, whoever drew the noise."""

from ldpspatial.estimation.levels.level_map import LevelMap, combined
from ldpspatial.estimation.levels.noisy_level import NoisyLevel

__all__ = ["LevelMap", "NoisyLevel", "combined"]
