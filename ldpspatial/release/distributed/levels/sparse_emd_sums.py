"""Sparse EMD over secure sums: the same program on noise that clients add themselves.

Ghazi et al. (AAAI 2023) ask for noisy sums in nodes of a quadtree, level by level below the largest
ones, and for nothing else. A server that sees sums over shards of clients can ask for the same.
"""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.release.central.quantise import MASS
from ldpspatial.release.central.sparse_emd import SparseEmd, fitted
from ldpspatial.release.distributed.levels.distributed_levels import answers
from ldpspatial.release.distributed.levels.map_levels import Ints
from ldpspatial.release.distributed.levels.one_visit import OneVisit, Published
from ldpspatial.release.distributed.schedule import Budget
from ldpspatial.validate import MICRO


@dataclass(frozen=True)
class SparseEmdSums(OneVisit):
    """:class:`ldpspatial.release.central.SparseEmd` in rounds of secure sums, one a level.

    Attributes
    ----------
    cohort : Cohort
        Shards, drop-outs and modulus.
    keep : int in [1, 65536]
        Nodes followed on each level, w in the paper.
    decay : float in (0, 1]
        How epsilon falls from level to level, as there.

    Raises
    ------
    InputError
        A field breaks its rule.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> people = cells_by_user(range(1000), [7] * 1000, (16, 16))
    >>> run = SparseEmdSums().release(people, 1.0, np.random.default_rng(1))
    >>> bool(run.density[0, 7] > 0.9), run.facts["rounds"]
    (True, 3)
    """

    name: ClassVar[str] = "sparse-emd-sums"

    keep: int = 20
    decay: float = 1 / sqrt(2)

    def __post_init__(self) -> None:
        super().__post_init__()
        SparseEmd(self.keep, self.decay)  # checks them

    def publish(
        self, users: UserCells, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> Published:
        """Ask level after level, the same visit every time."""
        tree = Quadtree(users.shape)
        leaves = tree.leaf_numbers(cells)
        central = SparseEmd(self.keep, self.decay)
        budget = central.split(Budget(epsilon).micro, tree.depth)
        survivors: list[int] = []

        def ask(level: int, nodes: Ints, micro: int) -> Ints:
            # A client is in one node of a level at most, so the epsilons of the rounds add up.
            inside = leaves >> 2 * (tree.depth - level)
            seen = self.cohort.sum(answers(inside, nodes), micro / MICRO, 1, rng)
            survivors.append(seen.survivors)
            counts: Ints = seen.counts * MASS
            return counts

        measured = central.follow(tree, budget, ask)
        density, facts = fitted(tree, budget, measured)
        told = {
            "vector_length": facts["noisy sums"],
            "rounds": len(survivors),
            "survivors": min(survivors),
            "micro epsilons": facts["micro epsilons"],
        }
        return Published(density, sum(budget) / MICRO, told)
