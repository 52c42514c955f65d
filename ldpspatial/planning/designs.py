"""Mechanisms with their estimators, measured against each other on one grid before a collection."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from client_sdk import ResponseTable, response_table
from ldpspatial.channels.disk import StampChannel
from ldpspatial.datasets import SyntheticMap
from ldpspatial.estimation import estimate
from ldpspatial.estimation.em import QUICK
from ldpspatial.estimation.field.estimator import FIELD
from ldpspatial.planning.rehearsal import People, rehearse
from ldpspatial.release.local.disks.disk_radius import disk_squared_radius

Array = NDArray[np.float64]

UNIFORM_CELLS = 32  # from here on the distance of the uniform map hardly depends on the grid


@dataclass(frozen=True)
class Lead:
    """By how much one total is below another, both on the same people in each repeat.

    Attributes
    ----------
    mean_m, standard_error_m : float
        Of the paired differences, in metres over maps and repeats; positive where it is below.
    times : float
        Standard errors that chance alone hardly passes: the more, the fewer repeats tell of it.
    """

    mean_m: float
    standard_error_m: float
    times: float = 2.0

    @property
    def is_ahead(self) -> bool:
        """Whether it is below by more than chance."""
        return self.mean_m > self.times * self.standard_error_m

    @property
    def is_behind(self) -> bool:
        """Whether it is above by more than chance."""
        return self.mean_m < -self.times * self.standard_error_m

    @property
    def is_level(self) -> bool:
        """Whether the difference may be chance."""
        return not (self.is_ahead or self.is_behind)


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
    over_planned, over_nothing : Lead
        By how much ``total_m`` is below that of the planned mechanism, and of what needs no report
        of these people: a uniform map, or the field of reports that say nothing of them (it knows
        that cities crowd), whichever is nearer.
    no_better_than_uniform : tuple of str
        Maps on which the total is no smaller than that of a uniform map.
    """

    mechanism: str
    squared_radius: int | None
    rule: str
    w2_m: float
    standard_error_m: float
    total_m: float
    over_planned: Lead
    over_nothing: Lead
    no_better_than_uniform: tuple[str, ...]

    @property
    def nothing_m(self) -> float:
        """Total of what needs no report of these people."""
        return self.total_m + self.over_nothing.mean_m

    @property
    def is_randomised_response(self) -> bool:
        """Whether the disk is a single cell, so that reports ignore distance."""
        return self.squared_radius == 0


def measure_designs(
    table: ResponseTable,
    laws: Mapping[str, SyntheticMap],
    side_m: float,
    devices: int,
    repeats: int,
    rng: np.random.Generator,
    tell: Callable[[], None],
) -> tuple[Design, ...]:
    """Play a table with plain EM against the recommended disk with a field.

    Every repeat draws the people of a map once, for all designs. The planned table comes first.

    Parameters
    ----------
    table : ResponseTable
        What was planned with.
    laws : mapping of names to SyntheticMap
    side_m : float
        Side of the square in metres.
    devices, repeats : int
    rng : numpy.random.Generator
    tell : callable
        Called after every collection that was played.
    """
    square = disk_squared_radius(table.cells, table.epsilon, devices)
    disk = response_table("disk", table.epsilon, table.cells, squared_radius=square)
    square = disk.squared_radius  # of the same disk the least, as its document says it
    radius = square if table.mechanism == disk.mechanism else None
    played = ((table, QUICK, radius), (disk, FIELD, square))
    w2 = np.empty((len(played), len(laws), repeats))
    total = np.empty_like(w2)
    uniform = np.empty((len(laws), repeats))
    nothing = np.empty_like(uniform)
    blind = _blind(disk, devices, rng)
    for m, law in enumerate(laws.values()):
        for k in range(repeats):
            points = law.draw(devices, rng)
            uniform[m, k] = side_m * total_of_uniform(law, points)
            people = People.on_grid(law, points, table.cells)
            nothing[m, k] = min(uniform[m, k], side_m * people.misfit(blind).total)
            for i, (each, rule, _) in enumerate(played):
                misfit = rehearse(people, each, rng, rule)
                w2[i, m, k], total[i, m, k] = side_m * misfit.w2, side_m * misfit.total
                tell()
    return tuple(
        Design(
            each.mechanism,
            squared,
            rule,
            w2_m=float(w2[i].mean()),
            standard_error_m=standard_error(w2[i]),
            total_m=float(total[i].mean()),
            over_planned=wary_lead(total[i], total[0]),
            over_nothing=lead(total[i], nothing),
            no_better_than_uniform=maps_lost(laws, total[i], uniform),
        )
        for i, (each, rule, squared) in enumerate(played)
    )


def _blind(table: ResponseTable, devices: int, rng: np.random.Generator) -> Array:
    """Return the field of people who are everywhere: of few reports, what it takes for a city."""
    channel = StampChannel(table)
    law = channel.forward(np.full(channel.input_shape, 1 / table.cells**2)).ravel()
    law = np.maximum(law, 0)  # rounding alone goes below
    counts = rng.multinomial(devices, law / law.sum()).reshape(channel.output_shape)
    return estimate(channel, counts, FIELD).density


def better_design(designs: tuple[Design, ...]) -> Design:
    """Return the planned design, or the other one if that is ahead of it by more than chance.

    Where both collect the same reports it is the other, the default, unless that is behind.
    """
    planned, other = designs
    lead = other.over_planned
    same = (planned.mechanism, planned.squared_radius) == (other.mechanism, other.squared_radius)
    return other if lead.is_ahead or (same and not lead.is_behind) else planned


def warnings_of_map(
    name: str, collection: str, lost: list[int], grids: int, designs: tuple[Design, ...]
) -> list[str]:
    """Say where the estimate is no better than a uniform map for one map's people.

    Parameters
    ----------
    name : str
        Of the map.
    collection : str
        Mechanism, epsilon and devices, in words.
    lost : list of int
        Grids, of ``grids`` in all, on which the planned mechanism is no better.
    grids : int
    designs : tuple of Design
    """
    _, other = designs
    called = f"{other.mechanism} with rule {other.rule}"
    beaten = name in other.no_better_than_uniform
    if len(lost) == grids:
        return [
            f"{name}: {collection} are too few, or the cells too large: on every grid tried the "
            "estimate is no better than a uniform map, which is to know nothing; "
            f"{called} is {'no ' if beaten else ''}better"
        ]
    said = []
    if lost:
        said.append(
            f"{name}, {', '.join(map(str, lost))} cells: the estimate is no better than a uniform "
            "map, which is to know nothing"
        )
    if beaten and better_design(designs) is other:
        said.append(f"{name}: {called} is no better than a uniform map")
    return said


def total_of_uniform(law: SyntheticMap, points: Array) -> float:
    """Return the total of a uniform map, i.e. of knowing nothing, in sides of the square."""
    flat = np.full((UNIFORM_CELLS, UNIFORM_CELLS), 1 / UNIFORM_CELLS**2)
    return People.on_grid(law, points, UNIFORM_CELLS).misfit(flat).total


def lead(first: Array, second: Array) -> Lead:
    """Say by how much the first of two (maps, repeats) arrays is below the second, in pairs."""
    below = second - first
    return Lead(float(below.mean()), standard_error(below))


def wary_lead(first: Array, second: Array) -> Lead:
    """Say the same of designs, which may be level: chance passes for a lead in 1 of 20 cases.

    By a t law, as variances of few repeats are often too small (Welch 1947).
    """
    variances = (second - first).var(axis=1, ddof=1)
    squares = float((variances**2).sum())
    maps = float(variances.sum()) ** 2 / squares if squares > 0 else 1.0
    times = float(stdtrit(maps * (first.shape[1] - 1), 0.975))
    return replace(lead(first, second), times=times)


def standard_error(runs: Array) -> float:
    """Return the error of the mean of (maps, repeats) runs: chance of repeats, not of maps."""
    # Maps are not drawn: only the variances of each map's own mean add up.
    return sqrt(float((runs.var(axis=1, ddof=1) / runs.shape[1]).sum())) / len(runs)


def maps_lost(names: Iterable[str], totals: Array, uniform: Array) -> tuple[str, ...]:
    """Name the maps on which the mean of (maps, repeats) totals is no smaller than uniform's."""
    lost = totals.mean(axis=1) >= uniform.mean(axis=1)
    return tuple(name for name, none in zip(names, lost, strict=True) if none)
