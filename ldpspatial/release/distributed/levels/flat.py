"""Flat histogram: one number for every cell of the map, in one round."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpspatial.places.users import UserCells
from ldpspatial.release.distributed.levels.map_levels import Ints, Levels
from ldpspatial.release.distributed.levels.one_visit import OneVisit, Published


@dataclass(frozen=True)
class Flat(OneVisit):
    """A one in the client's cell and zeros elsewhere (Bagdasaryan et al. 2022, section 5.1).

    One sum of vectors of L1 norm 1.

    Attributes
    ----------
    cohort : Cohort
        Shards, drop-outs and modulus.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> people = cells_by_user(range(4000), [0] * 3200 + [3] * 800, (2, 2))
    >>> released = Flat().release(people, 1.0, np.random.default_rng(1))
    >>> released.density.round(1).tolist(), released.facts["vector_length"]
    ([[0.8, 0.0], [0.0, 0.2]], 4)
    """

    name: ClassVar[str] = "flat"

    def publish(
        self, users: UserCells, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> Published:
        """Sum the answers and publish the counts of the single cells as they are."""
        levels = Levels(users.shape)
        found = self.cohort.sum(levels.one_hot(cells, levels.depth), epsilon, 1, rng)
        facts = {
            "vector_length": len(found.counts),
            "rounds": 1,
            "level": levels.depth,
            "survivors": found.survivors,
        }
        density = levels.density(found.counts.reshape(users.shape), levels.depth)
        return Published(density, epsilon, facts)
