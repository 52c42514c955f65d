"""The client's own mechanisms as releases: DAM, DAM-NS and HUEM, each with EM.

Every user sends one report, from one of their positions drawn uniformly, so what the report
promises holds for the user with all their positions: the law of the report is a mixture of laws
whose ratio is at most e^epsilon, whatever the positions.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np

from client_sdk import ResponseTable, response_table
from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.playing import Ints, play
from ldpspatial.estimation import estimate
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.local_privacy import local_privacy
from ldpspatial.release.local.local_release import (
    LocalRelease,
    check_rule,
    check_side,
    estimator_name,
    square_side,
)
from ldpspatial.release.release import Released
from ldpspatial.validate import exact_epsilon


@dataclass(frozen=True)
class DiskRelease(LocalRelease):
    """A response table of the client, drawn from as devices do, then EM.

    Attributes
    ----------
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`.
    """

    rule: str = "scaled"

    def __post_init__(self) -> None:
        check_rule(self.rule)

    @abstractmethod
    def table(self, cells: int, epsilon: float) -> ResponseTable:
        """Return the table that devices draw from."""

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess, in cells."""
        check_side(cells)  # before a large table is made in vain
        return local_privacy(StampChannel(self.table(cells, epsilon)))

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: the ratio of the table's whole weights is at most e^epsilon."""
        claim = super().claim(epsilon)
        exact_epsilon(epsilon)
        return claim

    def _played(
        self, users: UserCells, epsilon: float, rng: np.random.Generator
    ) -> tuple[ResponseTable, Ints]:
        """Return the table, and the counts of one report a user by output cell."""
        side = square_side(self.name, users)
        table = self.table(side, epsilon)
        return table, play(table, *np.divmod(users.one_cell_each(rng), side), rng)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw one report a user from the table and estimate the density from their counts."""
        claim = self.claim(epsilon)
        table, counts = self._played(users, epsilon, rng)
        found = estimate(StampChannel(table), counts, self.rule)
        return Released(
            found.density,
            claim,
            {
                "estimator": estimator_name(found),
                "radius": table.radius,
                "realised_epsilon": log(table.max_ratio()),
                "iterations": found.iterations,
            },
            found,
        )


@dataclass(frozen=True)
class PaperDisk(DiskRelease):
    """A mechanism of the DAM paper, at its own radius floor(b* d) or another.

    Attributes
    ----------
    radius : int, optional
        Disk radius in cells.
    """

    radius: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius is not None:
            self._keep_whole("radius", 0)

    def table(self, cells: int, epsilon: float) -> ResponseTable:
        """Return the table that devices draw from."""
        return response_table(self.name, epsilon, cells, self.radius)


@dataclass(frozen=True)
class Dam(PaperDisk):
    """Disk Area Mechanism with EM (Du et al., arXiv 2412.06541).

    Attributes
    ----------
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`.
    radius : int, optional
        Disk radius in cells; by default the paper's, floor(b* d).
    """

    name: ClassVar[str] = "dam"


@dataclass(frozen=True)
class DamNs(PaperDisk):
    """DAM without shrunken areas of mixed cells.

    Attributes
    ----------
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`.
    radius : int, optional
        Disk radius in cells; by default the paper's, floor(b* d).
    """

    name: ClassVar[str] = "dam-ns"


@dataclass(frozen=True)
class Huem(PaperDisk):
    """Hybrid Uniform-Exponential Mechanism with EM.

    Attributes
    ----------
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`.
    radius : int, optional
        Disk radius in cells; by default the paper's, floor(b* d).
    """

    name: ClassVar[str] = "huem"


PAPER_DISKS = (Dam, DamNs, Huem)
