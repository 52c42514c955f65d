"""Mechanisms with their estimators, measured against each other on one grid before a collection."""

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from math import sqrt

import numpy as np

from client_sdk import ResponseTable, response_table
from ldpspatial.datasets import SyntheticMap
from ldpspatial.disk_radius import disk_squared_radius
from ldpspatial.estimation.stopping import CROSS_VALIDATED
from ldpspatial.rehearsal import People, rehearse


@dataclass(frozen=True)
class Design:
    """A mechanism on one grid with an estimator, and what it measured; lengths in metres.

    Attributes
    ----------
    mechanism : str
    squared_radius : int or None
        Of a plain disk, in squared cells; None where the mechanism has a radius of its own.
    rule : str
        How the map is estimated, as in :func:`ldpspatial.estimate`.
    w2_m, standard_error_m : float
        Exact W2 between true and estimated cell map, mean over maps and repeats, and the standard
        error of that mean by chance of the repeats.
    total_m : float
        Upper bound of W2 between people and estimate.
    """

    mechanism: str
    squared_radius: int | None
    rule: str
    w2_m: float
    standard_error_m: float
    total_m: float


def measure_designs(
    table: ResponseTable,
    laws: Mapping[str, SyntheticMap],
    side_m: float,
    devices: int,
    repeats: int,
    rng: np.random.Generator,
    progress: Callable[[], None] | None = None,
) -> tuple[Design, ...]:
    """Play a table with plain EM against the recommended disk with a cross-validated estimate.

    Every repeat draws the people of a map once, for all designs.

    Parameters
    ----------
    table : ResponseTable
        What was planned with.
    laws : mapping of names to SyntheticMap
    side_m : float
        Side of the square in metres.
    devices, repeats : int
    rng : numpy.random.Generator
    progress : callable, optional
        Called after every collection that was played.
    """
    square = disk_squared_radius(table.cells, table.epsilon, devices)
    disk = response_table("disk", table.epsilon, table.cells, squared_radius=square)
    played = ((table, "scaled", None), (disk, CROSS_VALIDATED, square))
    measured = np.empty((len(laws), repeats, len(played), 4))
    for m, law in enumerate(laws.values()):
        for k in range(repeats):
            people = People.on_grid(law, law.draw(devices, rng), table.cells)
            for i, (each, rule, _) in enumerate(played):
                measured[m, k, i] = astuple(rehearse(people, each, rng, rule))
                if progress is not None:
                    progress()
    designs = []
    for i, (each, rule, squared) in enumerate(played):
        runs = measured[:, :, i]
        chance = sqrt(float((runs[:, :, 0].var(axis=1, ddof=1) / repeats).sum())) / len(laws)
        w2, total = (side_m * float(runs[:, :, part].mean()) for part in (0, 2))
        designs.append(Design(each.mechanism, squared, rule, w2, side_m * chance, total))
    return tuple(designs)
