"""One visit: releases in which every user reports one visit, by sums over vectors of fixed form.

Whatever the form, the promise is the same: zeros in place of a user's report change the sums of one
shard only, by an L1 norm that the noise is made for.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from ldpspatial.estimation.levels import LevelMap
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import TAKING_PART, Model, PrivacyClaim
from ldpspatial.release.distributed._checks import check_clients
from ldpspatial.release.distributed.levels.map_levels import Array, Ints
from ldpspatial.release.distributed.sums.cohort import REALISTIC, Cohort
from ldpspatial.release.release import Fact, Release, Released
from ldpspatial.validate import instance

CONDITIONS = (
    "one visit a user, drawn uniformly from the user's visits, once",
    "the map, its cells and how they are put together are public",
    TAKING_PART,
)


class Published(NamedTuple):
    """Outcome of a run.

    Attributes
    ----------
    density : (rows, columns) array
    spent : float
        Epsilon of all sums together.
    facts : mapping
    levels : LevelMap or None
        What intervals need, where there is such a thing.
    """

    density: Array
    spent: float
    facts: Mapping[str, Fact]
    levels: LevelMap | None = None


@dataclass(frozen=True)
class OneVisit(Release):
    """Base of releases by one visit a user.

    Attributes
    ----------
    cohort : Cohort
        How clients are put together.
    """

    model: ClassVar[Model] = "distributed"
    cohort: Cohort = REALISTIC

    def __post_init__(self) -> None:
        instance("cohort", self.cohort, Cohort)

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return epsilon-DP for what all sums tell together."""
        return self.claim_of(epsilon, None)

    def claim_of(self, epsilon: float, clients: int | None) -> PrivacyClaim:
        """Return the claim of a run with so many clients, where that is known."""
        claim = self.cohort.claim(epsilon, clients=clients)
        return replace(claim, conditions=claim.conditions + CONDITIONS)

    @abstractmethod
    def publish(
        self, users: UserCells, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> Published:
        """Run on users of whom the visit that counts is drawn.

        Parameters
        ----------
        users : UserCells
            For its shape; an oracle looks at more.
        cells : (users,) int64 array
            The visits: row * columns + column.
        epsilon : float > 0
        rng : numpy.random.Generator
        """

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Simulate a run; of a user with many positions one visit counts, drawn uniformly."""
        check_clients(users, epsilon, rng)
        found = self.publish(users, users.one_cell_each(rng), epsilon, rng)
        claim = self.claim_of(found.spent, len(users))
        return Released(found.density, claim, found.facts, levels=found.levels)
