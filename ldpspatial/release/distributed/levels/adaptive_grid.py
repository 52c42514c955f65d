"""Adaptive grid: a coarse grid first, then each of its blocks cut up by the people it holds.

Two rounds, both answered by all users (Qardaji et al. 2013, as Bagdasaryan et al. 2022, section 6.2
carry it over). All borders lie between cells of the map.
"""

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar, Literal, get_args

import numpy as np

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells
from ldpspatial.release import rectangles
from ldpspatial.release.distributed.levels.map_levels import Array, Ints, ones_at
from ldpspatial.release.distributed.levels.one_visit import OneVisit, Published
from ldpspatial.release.distributed.schedule import Budget
from ldpspatial.release.distributed.sums.cohort import NoisySum
from ldpspatial.release.rectangles import MOST_BLOCKS, cut, density_of, refined
from ldpspatial.validate import MICRO, number_in, one_of, positive, true_or_false, whole_number

Rounding = Literal["down", "nearest"]


@dataclass(frozen=True)
class AdaptiveGrid(OneVisit):
    """Counts on blocks x blocks rectangles, then on n x n parts of each, which are published.

    n = sqrt(N' (1 - alpha) epsilon / c2), rounded, at least 1, for a block of noisy count N'.
    Qardaji et al. round up. The public code of Bagdasaryan et al. (geo_utils.py of their branch
    adagrid) has c2 = 15 and rounds to the nearest number, which gives the vector lengths that they
    print (docs/distributed.md). Two sums of vectors of L1 norm 1, the second chosen by the first.

    Attributes
    ----------
    alpha : float in (0, 1)
        Share of the budget for the first round.
    c2 : float > 0
        The larger, the fewer parts.
    blocks : int in [1, 4096]
        Along a side of the map, in the first round; its number of cells where that is less.
    rounding : {"down", "nearest"}
        Of n.
    consistent : bool
        Let each block's parts add up to the mean of both rounds, weighted by inverse variances
        (Qardaji et al. 2013, section IV); the distributed version does without.

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    name: ClassVar[str] = "adaptive-grid"
    alpha: float = 0.5
    c2: float = 10.0
    blocks: int = 10
    consistent: bool = False
    rounding: Rounding = "down"

    def __post_init__(self) -> None:
        super().__post_init__()
        number_in("alpha", self.alpha, "(0, 1)")
        positive("c2", self.c2)
        whole_number("blocks", self.blocks, 1, MOST_BLOCKS)
        true_or_false("consistent", self.consistent)
        one_of("rounding", self.rounding, get_args(Rounding))

    def budgets(self, epsilon: float) -> tuple[int, int]:
        """Return the millionths of epsilon that either round gets, at least one; all in all.

        Raises
        ------
        InputError
            Epsilon is less than two millionths.
        """
        micro = Budget(epsilon).micro
        if micro < 2:
            raise InputError(f"epsilon must be two millionths at least, got {epsilon!r}")
        first = min(max(1, int(self.alpha * micro)), micro - 1)
        return first, micro - first

    def publish(
        self, users: UserCells, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> Published:
        """Ask for the blocks, then for their parts, the same visit both times."""
        # Both rounds ask the same users, so their epsilons add up.
        budgets = self.budgets(epsilon)
        blocks = cut(users.shape, self.blocks)
        coarse = self._counted(blocks, cells, budgets[0], rng)
        # The parts follow from noisy counts and public numbers: choosing them costs nothing.
        labels, block_of = refined(blocks, self.parts(coarse.counts, epsilon))
        fine = self._counted(labels, cells, budgets[1], rng)
        if not fine.survivors:  # withheld: what was seen before is better than nothing
            density = density_of(coarse.counts.astype(np.float64), blocks)
        elif self.consistent:
            density = density_of(reconciled(coarse, fine, block_of), labels)
        else:
            density = density_of(fine.counts.astype(np.float64), labels)
        facts = {
            "vector_length": len(coarse.counts) + len(fine.counts),
            "rounds": 2,
            "survivors": fine.survivors,
        }
        return Published(density, sum(budgets) / MICRO, facts)

    def parts(self, counts: Ints, epsilon: float) -> list[int]:
        """Return along how many parts each side of a block is cut.

        Examples
        --------
        >>> AdaptiveGrid().parts(np.array([-3, 0, 79, 80, 2000]), 1.0)
        [1, 1, 1, 2, 10]
        >>> AdaptiveGrid(rounding="nearest").parts(np.array([-3, 44, 45, 124, 125]), 1.0)
        [1, 1, 2, 2, 3]
        """
        wanted = np.maximum(counts, 0) * (1 - self.alpha) * epsilon / self.c2
        if self.rounding == "nearest":  # floor(x + 1/2) is floor((2x + 1) / 2)
            return [max(1, (isqrt(int(4 * each)) + 1) // 2) for each in wanted.tolist()]
        # floor(sqrt(x)) is floor(sqrt(floor(x))), which isqrt gives without rounding.
        return [max(1, isqrt(int(each))) for each in wanted.tolist()]

    def _counted(self, labels: Ints, cells: Ints, micro: int, rng: np.random.Generator) -> NoisySum:
        places = labels.ravel()[cells][:, None]
        return self.cohort.sum(ones_at(places, int(labels.max()) + 1), micro / MICRO, 1, rng)


def reconciled(coarse: NoisySum, fine: NoisySum, block_of: Ints) -> Array:
    """Return the parts' counts with each block's sum drawn to its count in the first round.

    As :func:`ldpspatial.release.rectangles.reconciled`; those who answered differ by round.

    Parameters
    ----------
    coarse, fine : NoisySum
    block_of : (n,) int array
        The block that each part lies in.
    """
    counts = fine.counts.astype(np.float64)
    if not (coarse.survivors and fine.survivors):
        return counts
    rescaled = fine.survivors / coarse.survivors
    of_blocks = rescaled * coarse.counts.astype(np.float64)
    return rectangles.reconciled(
        of_blocks, (rescaled * coarse.deviation) ** 2, counts, fine.deviation**2, block_of
    )
