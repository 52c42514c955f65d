"""k-ary randomised response on the cells of the map: the client's table at disk radius 0."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from client_sdk import ResponseTable, response_table
from ldpspatial.places.users import UserCells
from ldpspatial.release.local.disks.dam import DiskRelease
from ldpspatial.release.local.sets.set_reports import (
    Array,
    Ints,
    SetEstimator,
    cells_privacy,
    check_estimator,
    on_simplex,
)
from ldpspatial.release.release import Released


@dataclass(frozen=True)
class KRr(DiskRelease):
    """k-RR: the own cell with probability e^eps / (e^eps + m - 1), else any other of the m.

    Attributes
    ----------
    estimator : {"em", "projection"}
        EM, or unbiased shares projected on the densities.
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`; only with "em".
    """

    name: ClassVar[str] = "k-rr"
    estimator: SetEstimator = "em"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_estimator(self.estimator, self.rule, KRr.rule)

    def table(self, cells: int, epsilon: float) -> ResponseTable:
        """Return the table that devices draw from: whole weights, no disk around the own cell."""
        return response_table("dam", epsilon, cells, radius=0)

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess, in cells."""
        always_one = np.zeros(cells**2 + 1)
        always_one[1] = 1
        return cells_privacy(cells, epsilon, always_one)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw one report a user and estimate the density."""
        if self.estimator == "em":
            return super()._release(users, epsilon, rng)
        claim = self.claim(epsilon)
        table, counts = self._played(users, epsilon, rng)
        density = on_simplex(krr_frequencies(counts.ravel(), table)).reshape(users.shape)
        return Released(density, claim, {"estimator": "projection"})


def krr_frequencies(counts: Ints, table: ResponseTable) -> Array:
    """Return unbiased shares of the cells, (c / n - q) / (p - q); they sum to 1.

    Parameters
    ----------
    counts : (m,) array of int
        Reports by cell, at least one.
    table : client_sdk.ResponseTable
        At radius 0.
    """
    base = table.base_weight / table.total_weight
    lift = (table.max_weight - table.base_weight) / table.total_weight
    return np.asarray((counts / counts.sum() - base) / lift)
