"""Plain disks of a real radius as a release: the client's "disk" table, then a field."""

from dataclasses import dataclass
from typing import ClassVar

from client_sdk import ResponseTable, response_table
from ldpspatial.estimation.field.estimator import FIELD
from ldpspatial.release.local.disks.dam import DiskRelease


@dataclass(frozen=True)
class Disk(DiskRelease):
    """A disk without mixed cells, of a radius that need not be whole.

    Attributes
    ----------
    rule : str
        How the density is estimated, as in :func:`ldpspatial.estimate`; by default by a
        Bayesian field.
    squared_radius : int, optional
        Square of the disk's radius in cells; by default that of DAM before rounding,
        floor((b* d)^2). :func:`ldpspatial.recommended` chooses it for a number of users.
    """

    name: ClassVar[str] = "disk"
    rule: str = FIELD
    squared_radius: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.squared_radius is not None:
            self._keep_whole("squared_radius", 0)

    def table(self, cells: int, epsilon: float) -> ResponseTable:
        """Return the table that devices draw from."""
        return response_table(self.name, epsilon, cells, squared_radius=self.squared_radius)
