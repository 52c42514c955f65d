"""The recommended local release by its name: what an aim, epsilon and users ask for."""

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from ldpspatial.estimation.field.estimator import FIELD
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.release.level_sums import Aim
from ldpspatial.release.local.disk_and_sets import DiskAndSets
from ldpspatial.release.local.disks.disk import Disk
from ldpspatial.release.local.disks.disk_radius import FOR_USERS, MAX_USERS, disk_squared_radius
from ldpspatial.release.local.local_release import LocalRelease, check_rule, square_side
from ldpspatial.release.release import Released
from ldpspatial.validate import exact_epsilon, one_of


@dataclass(frozen=True)
class Recommended(LocalRelease):
    """What :func:`ldpspatial.recommended` returns, for comparisons over epsilons, grids and users.

    Each run takes the release for its own cells, epsilon and number of users. A collection has to
    name the number beforehand; a factor of ten hardly matters.

    Attributes
    ----------
    rule : str
        How the density is estimated, as in :func:`ldpspatial.estimate`; by default by a
        Bayesian field.
    n_users : int in [1, 10^12], optional
        Users who are expected to report; by default as many as a run has.
    aim : {"distance", "cells"}
        What the map is for: where people are, by a disk that each device reports by, or how many
        are in single cells, by sets for some devices.
    """

    name: ClassVar[str] = "recommended"
    rule: str = FIELD
    n_users: int | None = None
    aim: Aim = "distance"

    def __post_init__(self) -> None:
        check_rule(self.rule)
        one_of("aim", self.aim, get_args(Aim))
        if self.n_users is not None:
            self._keep_whole("n_users", 1, MAX_USERS)

    def chosen(self, cells: int, epsilon: float, n_users: int = FOR_USERS) -> "Disk | DiskAndSets":
        """Return the release for a grid, an epsilon, and this number if it was given no other."""
        expected = self.n_users or n_users
        if self.aim == "cells":
            return DiskAndSets.chosen(cells, epsilon, expected, self.rule)
        square = disk_squared_radius(cells, epsilon, expected)
        return Disk(self.rule, square)

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP, which every report keeps, of a disk or of sets."""
        claim = super().claim(epsilon)
        exact_epsilon(epsilon)
        return claim

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess, in cells; as if for 100,000 users."""
        return self.chosen(cells, epsilon)._local_privacy(cells, epsilon)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run what is recommended for as many users."""
        side = square_side(self.name, users)
        return self.chosen(side, epsilon, len(users))._release(users, epsilon, rng)
