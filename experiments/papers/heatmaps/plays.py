"""What all commands here share: options, releases, metrics, and how runs are played and kept."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from matplotlib.figure import Figure

from experiments.generated import generated, write_page
from experiments.progress import tracked
from experiments.sources import data_option
from experiments.tables import DOCS
from ldpspatial.comparison.compare import compare_people
from ldpspatial.errors import LdpSpatialError
from ldpspatial.files.atomic import replacing
from ldpspatial.places.users import UserCells
from ldpspatial.plotting.heat_map import save_figure
from ldpspatial.release.central import Laplace, LaplaceTop, SparseEmd
from ldpspatial.release.release import Release

METRICS = ("similarity", "pearson", "kl", "w1")
OURS = "sparse-emd"
SIGMAS_A_SIDE = 64  # 4 cells of 256: the filter has this share of the map's side at any resolution
BLOCKS = 64  # W1 of larger maps is measured between so many blocks along a side
DPI = 90  # of figures in the docs: sharp enough, and files stay small


def with_tops(*tops: float) -> dict[str, Release]:
    """Return sparse EMD, noise on every cell, and the latter with the top t % kept."""
    kept = {f"laplace-top {top:g} %": LaplaceTop(top=top) for top in tops}
    return {OURS: SparseEmd(), "laplace": Laplace(), **kept}


def blocks_of(shape: tuple[int, ...]) -> int | None:
    """Return between how many blocks a side W1 is measured: of large squares, to save time."""
    rows, columns = shape
    return BLOCKS if rows == columns and rows > BLOCKS else None


@dataclass(frozen=True)
class Conduct:
    """How runs are played: by how many processes, from which seed, and where they are kept."""

    out: Path
    repeats: int
    seed: int
    jobs: int
    write: bool

    def play(
        self,
        places: Mapping[str, UserCells],
        releases: Mapping[str, Release],
        epsilons: Iterable[float],
        *,
        sigma: float,
        users: Iterable[int] | None = None,
        kept: str = "",
    ) -> pa.Table:
        """Play releases on several places; return all runs, the place in the column ``data``.

        Parameters
        ----------
        places : mapping of names to users
        releases, epsilons, sigma, users
            As in :func:`ldpspatial.compare`.
        kept : str
            Folder below ``out``: one for each way to measure the same runs.
        """
        wanted = list(epsilons)
        numbers = None if users is None else list(users)
        tables = []
        for name, people in tracked(places.items(), "places", total=len(places)):
            tables.append(
                compare_people(
                    {people.shape[0]: people},
                    wanted,
                    releases,
                    self.repeats,
                    np.random.default_rng(self.seed),
                    users=numbers,
                    metrics=METRICS,
                    sigma=sigma,
                    blocks=blocks_of(people.shape),
                    folder=self.out / kept / name.replace(" ", "-"),
                    jobs=self.jobs,
                    data=name,
                )
            )
        return pa.concat_tables(tables)

    def report(
        self,
        name: str,
        text: str,
        table: pa.Table | None = None,
        figures: Mapping[str, Figure] | None = None,
    ) -> None:
        """Show text, keep runs and figures in ``out``, and put text and figures into docs if asked.

        Parameters
        ----------
        name : str
            Of the page in docs/generated.
        text : str
        table : pyarrow.Table, optional
        figures : mapping of names of files, without suffix, to figures
        """
        click.echo(text)
        self.out.mkdir(parents=True, exist_ok=True)
        if table is not None:
            with replacing(self.out / f"{name}.csv") as stream:
                pa_csv.write_csv(table, stream)
        for file, figure in (figures or {}).items():
            save_figure(figure, self.out / f"{file}.png", dpi=DPI)
            if self.write:
                save_figure(figure, generated(DOCS, f"{file}.png"), dpi=DPI)
        if self.write:
            write_page(DOCS, name, text)


def conducted(
    name: str, repeats: int | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that every command has; the command gets them as ``data`` and ``conduct``.

    A command without a number of repeats plays nothing again and in one process.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(out: Path, seed: int, write: bool, **others: Any) -> None:
            played = {option: others.pop(option, 1) for option in ("repeats", "jobs")}
            try:
                command(conduct=Conduct(out=out, seed=seed, write=write, **played), **others)
            except LdpSpatialError as error:
                raise click.ClickException(str(error)) from error

        options = [
            data_option,
            click.option("--out", type=click.Path(path_type=Path), show_default=True,
                         default=Path("experiments-output", name), help="Folder of results."),
            click.option("--seed", default=1, show_default=True,
                         help="A folder with runs goes on with the seed that it began with."),
            click.option("--write", is_flag=True, help="Put tables and figures into docs."),
        ]  # fmt: skip
        if repeats is not None:
            options += [
                click.option("--repeats", "--trials", type=click.IntRange(1), default=repeats,
                             show_default=True, help="Runs of each setting."),
                click.option("--jobs", default=-1, show_default=True,
                             help="Processes, -1 for one a core."),
            ]  # fmt: skip
        for option in reversed(options):
            run = option(run)
        return run

    return decorate
