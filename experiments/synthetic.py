"""Runs on the maps of the DAM paper: people drawn anew in every repeat, runs kept and resumed."""

import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from client_sdk import Grid
from ldpspatial.comparison.compare import compare_people
from ldpspatial.datasets import synthetic_maps
from ldpspatial.errors import LdpSpatialError
from ldpspatial.places.users import UserCells, user_cells
from ldpspatial.release.release import Release

USERS = 100_000
POPULATION = 10  # times the users of a run: so many are there to draw from


@dataclass(frozen=True)
class Conduct:
    """How runs are played.

    Attributes
    ----------
    out : Path
        Folder of finished runs.
    repeats, seed, jobs, users : int
        Runs of each setting; processes, -1 for one a core; people of a run.
    write : bool
        Put tables and figures into docs.
    """

    out: Path
    repeats: int
    seed: int
    jobs: int
    users: int
    write: bool

    def play(
        self,
        name: str,
        cells: int,
        releases: Mapping[str, Release],
        epsilons: Iterable[float],
        progress: Callable[[int, int], None] | None = None,
    ) -> pa.Table:
        """Play releases on one map, all on the same people in a repeat; return all runs."""
        return compare_people(
            {cells: crowd(name, cells, self.users)},
            epsilons,
            releases,
            self.repeats,
            np.random.default_rng(self.seed),
            users=[self.users],
            metrics=["w2"],
            folder=self.out / f"{name}-{cells}",
            jobs=self.jobs,
            data=name,
            progress=progress,
        )


@functools.cache
def crowd(name: str, cells: int, users: int) -> UserCells:
    """Return the people that the users of a run are drawn from: always the same ones."""
    law = synthetic_maps()[name]
    points = law.draw(POPULATION * users, np.random.default_rng(0))
    return user_cells(points, Grid.plane(law.y0, law.x0, law.side, cells))


def on_synthetic_maps(name: str) -> Callable[[Callable[[Conduct], None]], click.Command]:
    """Make a command of a function of a `Conduct`; it needs no --data, as people are drawn."""

    def decorate(body: Callable[[Conduct], None]) -> click.Command:
        @functools.wraps(body)
        def run(**given: Any) -> None:
            click.echo("python -m " + " ".join(["experiments", *sys.argv[1:]]))
            given["out"].mkdir(parents=True, exist_ok=True)
            try:
                body(Conduct(**given))
            except LdpSpatialError as error:
                raise click.ClickException(str(error)) from error

        count = click.IntRange(1)
        options = [
            click.option("--out", type=click.Path(path_type=Path, file_okay=False),
                         default=Path("experiments-output") / name, show_default=True,
                         help="Folder of finished runs and figures."),
            click.option("--repeats", type=count, default=10, show_default=True,
                         help="Runs of each setting."),
            click.option("--users", type=count, default=USERS, show_default=True,
                         help="People drawn anew in each run."),
            click.option("--seed", default=1, show_default=True,
                         help="A folder with runs goes on with the seed that it began with."),
            click.option("--jobs", default=-1, show_default=True,
                         help="Processes, -1 for one a core."),
            click.option("--write", is_flag=True, help="Put tables and figures into docs."),
        ]  # fmt: skip
        for option in reversed(options):
            run = option(run)
        return click.command(name)(run)

    return decorate
