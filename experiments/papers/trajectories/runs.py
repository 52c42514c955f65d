"""What is played: releases at equal epsilon per trajectory, and the published comparison."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import pyarrow as pa
from rich.progress import Progress, TaskID

from experiments.papers.trajectories.places import Place
from experiments.setup import Setup
from experiments.uniform import Uniform
from ldpspatial.comparison.compare import compare_people
from ldpspatial.release.local import DamPoints, DamTrajectory, LdpTrace, PivotTrace
from ldpspatial.release.local.trajectories.trajectory_release import Weigh
from ldpspatial.release.release import Release

SIDES = (1, 5, 10, 15, 20)
SIDE = 15
EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5)
EPSILON = 1.5
SETTINGS = tuple(
    dict.fromkeys([(side, EPSILON) for side in SIDES] + [(SIDE, epsilon) for epsilon in EPSILONS])
)
TRUTHS: dict[str, Weigh] = {"users": "user", "visits": "visit"}
OURS = "DAM, 1 report"
PUBLISHED = "DAM, every point"
RIVALS = ("LDPTrace, one slot", "LDPTrace, all slots", "PivotTrace")


def releases(weigh: Weigh) -> dict[str, Release]:
    """Return the releases by label, LDPTrace with the map of trajectories or of points."""
    return {
        RIVALS[0]: LdpTrace("one", weigh),
        RIVALS[1]: LdpTrace("all", weigh),
        RIVALS[2]: PivotTrace(),
        OURS: DamTrajectory(slots=1),
        "DAM, 4 reports": DamTrajectory(slots=4),
        PUBLISHED: DamPoints(),
        "uniform": Uniform(),
    }


def play(setup: Setup, places: Iterable[Place], walks: int) -> pa.Table:
    """Play all settings on all places, against both truths; runs that are kept are not repeated.

    Parameters
    ----------
    setup : Setup
    places : Place
    walks : int
        Trajectories drawn anew for each repeat, the same for all releases; fewer where a place
        has no more.
    """
    tables = []
    with Progress() as bar:
        for place in places:
            people = {side: place.on(side) for side in SIDES}
            drawn = min(walks, *map(len, people.values()))
            for truth, weigh in TRUTHS.items():
                for sides, epsilons in ((SIDES, (EPSILON,)), ((SIDE,), EPSILONS)):
                    task = bar.add_task(f"{place.name}, {truth}, {len(sides)} grids")
                    found = compare_people(
                        {side: people[side] for side in sides},
                        epsilons,
                        releases(weigh),
                        setup.repeats,
                        np.random.default_rng(setup.seed),
                        users=[drawn],
                        metrics=["w2"],
                        truth=truth,
                        folder=setup.out / folder(place) / truth,
                        jobs=setup.jobs,
                        data=place.name,
                        progress=partial(_show, bar, task),
                    )
                    tables.append(found)
    return _without_doubles(pa.concat_tables(tables))


def folder(place: Place) -> str:
    """Return the name of a place's folder."""
    return place.name.lower().replace(",", "").replace(" ", "-")


def _without_doubles(table: pa.Table) -> pa.Table:
    """Return every run once: the usual setting belongs to both sweeps."""
    seeds = list(zip(table["truth"].to_pylist(), table["seed"].to_pylist(), strict=True))
    return table.take(sorted({key: row for row, key in enumerate(seeds)}.values()))


def _show(bar: Progress, task: TaskID, done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)
