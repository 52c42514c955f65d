"""The recommended local release by its name: the disk that the number of users asks for."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from client_sdk import ResponseTable, response_table
from ldpspatial.estimation.field.estimator import FIELD
from ldpspatial.places.users import UserCells
from ldpspatial.release.local.disks.dam import DiskRelease
from ldpspatial.release.local.disks.disk import Disk
from ldpspatial.release.local.disks.disk_radius import FOR_USERS, MAX_USERS, disk_squared_radius
from ldpspatial.release.release import Released


@dataclass(frozen=True)
class Recommended(DiskRelease):
    """What :func:`ldpspatial.recommended` returns, for comparisons over epsilons, grids and users.

    Each run takes the disk for its own cells, epsilon and number of users. A collection has to name
    the number beforehand; a factor of ten hardly matters.

    Attributes
    ----------
    rule : str
        How the density is estimated, as in :func:`ldpspatial.estimate`; by default by a
        Bayesian field.
    n_users : int in [1, 10^12], optional
        Users who are expected to report; by default as many as a run has.
    """

    name: ClassVar[str] = "recommended"
    rule: str = FIELD
    n_users: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_users is not None:
            self._keep_whole("n_users", 1, MAX_USERS)

    def table(self, cells: int, epsilon: float) -> ResponseTable:
        """Return the table that devices draw from, for 100,000 users where no number was given."""
        square = disk_squared_radius(cells, epsilon, self.n_users or FOR_USERS)
        return response_table(Disk.name, epsilon, cells, squared_radius=square)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        if self.n_users is None:
            return replace(self, n_users=max(len(users), 1))._release(users, epsilon, rng)
        return super()._release(users, epsilon, rng)
