"""Authors' code and the releases here on the same people: exact W2 in cells."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid, response_table
from experiments.authors.clones import (
    AHEAD,
    CENTRAL_MAPS,
    DISKS,
    HDG,
    HEAT_MAPS,
    LDPTRACE,
    SQUARE_WAVE,
    Clone,
)
from experiments.papers.trajectories.places import Place
from ldpspatial import wasserstein
from ldpspatial.datasets import density_walks, synthetic_maps
from ldpspatial.places.users import Trails, UserCells, user_cells
from ldpspatial.release.central import (
    CentralAdaptiveGrid,
    CentralLevels,
    CentralQuadtree,
    LeastCostPartition,
    UniformGrid,
    Wavelets,
)
from ldpspatial.release.distributed import AdaptiveHierarchical, Cohort
from ldpspatial.release.local import Ahead, Dam, DamNs, Hdg, Huem, LdpTrace, Mdsw
from ldpspatial.release.local.trajectories.trajectory_release import density_of, trails_of
from ldpspatial.release.release import Release

Array = NDArray[np.float64]

PARTS = 300  # cells along a side of the map that walks are drawn on
CENTRES = ((70, 90), (200, 220))  # of the crowds that walks go through, in those cells
SPREAD = 25.0
TRAILS = 1_000
PIXELS = 1024  # along a side of the only map that the code of heat maps takes


@dataclass(frozen=True)
class Duel:
    """One setting: whose code, on what, and how our releases are called.

    Attributes
    ----------
    clone : Clone
    data : str
    cells, users : int
    epsilon : float
    draw : callable
        ``draw(rng)`` returns the people of a repeat and what else the authors' code needs.
    theirs : callable
        ``theirs(duel, code, people, drawn, seed)`` returns the authors' map.
    ours : mapping of labels to releases
    """

    clone: Clone
    data: str
    cells: int
    users: int
    epsilon: float
    draw: "Callable[[Duel, np.random.Generator], tuple[UserCells, Array]]"
    theirs: "Callable[[Duel, Path, UserCells, Array, int], Array]"
    ours: dict[str, Release]

    def play(self, code: Path, repeats: int, seed: int) -> dict[str, Array]:
        """Return errors by label, "theirs" first, repeat by repeat on the same people."""
        found: dict[str, list[float]] = {"theirs": [], **{label: [] for label in self.ours}}
        for repeat in range(repeats):
            people, drawn = self.draw(self, np.random.default_rng([seed, repeat]))
            maps = {"theirs": self.theirs(self, code, people, drawn, seed + repeat)}
            for label, release in self.ours.items():
                rng = np.random.default_rng([seed, repeat, 1])
                maps[label] = release.release(people, self.epsilon, rng).density
            for label, density in maps.items():
                found[label].append(wasserstein(people.density, density))
        return {label: np.array(errors) for label, errors in found.items()}


def duels(some: Iterable[Place] = ()) -> Iterator[Duel]:
    """Yield all settings: data, cells a side, users and epsilon of each author's code.

    Parameters
    ----------
    some : iterable of Place
        Whose trajectories LDPTrace is given, beside generated ones.
    """
    yield from _of_trails(some)
    for each in (_of_pairs, _of_disks, _of_noisy_trees, _of_central_maps):
        yield from each()


def _of_trails(some: Iterable[Place]) -> Iterator[Duel]:
    releases: dict[str, Release] = {"one slot": LdpTrace(), "all slots": LdpTrace("all")}
    settings = ((15, 1.5), (5, 5.0), (15, 10.0))
    for cells, epsilon in settings:
        setting = ("walks, two crowds", cells, TRAILS, epsilon)
        yield Duel(LDPTRACE, *setting, _walks, _their_trace, releases)
    for place in some:
        for cells, epsilon in settings:
            draw = partial(_some_of, place.on(cells))
            yield Duel(LDPTRACE, place.name, cells, TRAILS, epsilon, draw, _their_trace, releases)


def _of_pairs() -> Iterator[Duel]:
    settings = [("normal", 15, 100_000, 3.5), ("normal", 5, 100_000, 3.5)]
    settings += [("szipf", 15, 100_000, 3.5), ("normal", 15, 10_000, 1.0)]
    waves: dict[str, Release] = {"fine bins": Mdsw(), "whole cells": Mdsw(fine=False)}
    for setting in settings:
        yield Duel(SQUARE_WAVE, *setting, _points, _their_wave, waves)
    settings = [("normal", 16, 100_000, 1.0), ("normal", 32, 100_000, 3.5)]
    settings += [("szipf", 16, 100_000, 1.0), ("szipf", 32, 10_000, 3.5)]
    grids: tuple[tuple[Clone, dict[str, Release]], ...]
    grids = ((HDG, {"powers of two": Hdg()}), (AHEAD, {"as it is": Ahead()}))
    for clone, releases in grids:
        for setting in settings:
            yield Duel(clone, *setting, _points, _their_grids, releases)


def _of_disks() -> Iterator[Duel]:
    # Their EM takes cells^2 times outputs a step in boxed numbers: a minute and more at 15 a side.
    settings = [("normal", 10, 10_000, 3.5), ("normal", 10, 10_000, 6.0)]
    settings += [("szipf", 5, 10_000, 3.5), ("mnormal", 5, 10_000, 1.0)]
    for setting in settings:
        yield Duel(DISKS, *setting, _points, _their_disk, _two_stops(Dam))
    yield Duel(DISKS, "normal", 10, 10_000, 3.5, _points, _their_disk, _two_stops(DamNs))
    for epsilon in (1.0, 3.5):
        yield Duel(DISKS, "normal", 5, 10_000, epsilon, _points, _their_disk, _two_stops(Huem))


def _of_noisy_trees() -> Iterator[Duel]:
    settings = [("normal", 64, 10_000, 1.0), ("szipf", 64, 10_000, 1.0)]
    settings += [("mnormal", 64, 10_000, 0.3), ("mnormal", 64, 10_000, 5.0)]
    like_theirs = AdaptiveHierarchical(Cohort(), asked="every round", shown="threshold")
    trees: dict[str, Release] = {
        "every round, from the threshold on": like_theirs,
        "once": AdaptiveHierarchical(Cohort()),
    }
    for setting in settings:
        yield Duel(HEAT_MAPS, *setting, _points, _their_tree, trees)
    yield Duel(HEAT_MAPS, "normal, as drawn", 64, 10_000, 1.0, _points, _their_image, trees)


def _of_central_maps() -> Iterator[Duel]:
    users = 10_000
    kinds: dict[str, Callable[..., Release]] = {
        "uniform-grid": partial(UniformGrid, people=users),
        "adaptive-grid": partial(CentralAdaptiveGrid, people=users),
        "quadtree": partial(CentralQuadtree, depth=6),
        "privelet": partial(Wavelets, depth=6, basis="tensor", growth=1.0),
    }
    for name, kind in kinds.items():
        releases = {name: kind(), f"{name}, nearest map": kind(negatives="nearest")}
        theirs = partial(_their_central, name=name)
        for data, epsilon in (("mnormal", 0.3), ("szipf", 1.0)):
            yield Duel(CENTRAL_MAPS, data, 64, users, epsilon, _points, theirs, releases)
    theirs = partial(_their_central, name="dawa")
    releases = {"least-cost-partition": LeastCostPartition(), "central-levels": CentralLevels()}
    for setting in (("normal", 32, 100_000, 0.1), ("szipf", 32, users, 1.0)):
        yield Duel(CENTRAL_MAPS, *setting, _points, theirs, releases)


def _two_stops(kind: type[Dam] | type[DamNs] | type[Huem]) -> dict[str, Release]:
    return {f"{kind.name}, published stop": kind("published"), "scaled stop": kind()}


def _walks(duel: Duel, rng: np.random.Generator) -> tuple[UserCells, Array]:
    at = np.arange(PARTS)
    crowd = sum(
        np.exp(-np.add.outer((at - y) ** 2, (at - x) ** 2) / (2 * SPREAD**2)) for y, x in CENTRES
    )
    points = density_walks(crowd, duel.users, rng)
    return user_cells(points, Grid.plane(0.0, 0.0, 1.0, duel.cells)), np.empty(0)


def _some_of(everybody: UserCells, duel: Duel, rng: np.random.Generator) -> tuple[UserCells, Array]:
    return everybody.sample(duel.users, rng), np.empty(0)


def _their_trace(duel: Duel, code: Path, people: UserCells, _: Array, seed: int) -> Array:
    trails = trails_of("their code", people)
    given = {"starts": trails.starts, "cells": trails.cells}
    found = duel.clone.run(code, given, duel.epsilon, duel.cells, seed)
    drawn = Trails(found["starts"].astype(np.int64), found["cells"].astype(np.int64))
    return density_of(drawn, duel.cells**2, "user").reshape(duel.cells, duel.cells)


def _points(duel: Duel, rng: np.random.Generator) -> tuple[UserCells, Array]:
    law = synthetic_maps()[duel.data.partition(",")[0]]
    points = law.draw(duel.users, rng)
    values = (points - [law.y0, law.x0]) / law.side
    inside = ((values >= 0) & (values < 1)).all(axis=1)
    grid = Grid.plane(law.y0, law.x0, law.side, duel.cells)
    return user_cells(points[inside], grid), values[inside]


def _their_wave(duel: Duel, code: Path, _: UserCells, values: Array, seed: int) -> Array:
    asked = np.random.default_rng(seed).integers(2, size=len(values))
    given = {name: values[asked == axis, axis] for axis, name in enumerate(("down", "across"))}
    found = duel.clone.run(code, given, duel.epsilon, duel.cells, seed)
    density = np.outer(found["down"], found["across"])
    return np.asarray(density / density.sum())


def _their_grids(duel: Duel, code: Path, _: UserCells, values: Array, seed: int) -> Array:
    rows, columns = (values * duel.cells).astype(np.int64).T
    found = duel.clone.run(code, {"rows": rows, "columns": columns}, duel.epsilon, duel.cells, seed)
    return np.asarray(found["density"])


def _their_disk(duel: Duel, code: Path, _: UserCells, values: Array, _seed: int) -> Array:
    rows, columns = (values * duel.cells).astype(np.int64).T
    name = next(iter(duel.ours.values())).name
    radius = response_table(name, duel.epsilon, duel.cells).radius
    people = {"rows": rows, "columns": columns}
    found = duel.clone.run(code, people, duel.epsilon, duel.cells, name, radius)["density"]
    return np.asarray(found / found.sum())


def _their_central(
    duel: Duel, code: Path, people: UserCells, _: Array, seed: int, name: str
) -> Array:
    counts = np.rint(people.density * len(people))
    return np.asarray(duel.clone.run(code, {"counts": counts}, duel.epsilon, name, seed)["density"])


def _their_tree(
    duel: Duel, code: Path, _: UserCells, values: Array, seed: int, name: str = "density"
) -> Array:
    rows, columns = (values * PIXELS).astype(np.int64).T
    people = {"rows": rows, "columns": columns}
    return np.asarray(duel.clone.run(code, people, duel.epsilon, duel.cells, seed)[name])


_their_image = partial(_their_tree, name="image")
