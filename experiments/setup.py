"""What experiments with runs of their own ask for, and where their results go."""

import functools
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from matplotlib.figure import Figure

from experiments.generated import generated, write_page
from experiments.sources import data_option
from experiments.tables import DOCS
from ldpspatial.errors import LdpSpatialError
from ldpspatial.plotting.heat_map import save_figure
from ldpspatial.validate import processes

COUNT = click.IntRange(1)


@dataclass(frozen=True)
class Setup:
    """Options of a command.

    Attributes
    ----------
    name : str
        Of the command; figures and the page in docs/generated have it too.
    data, out : Path
    repeats, jobs, seed : int
    write : bool
    """

    name: str
    data: Path
    out: Path
    repeats: int
    jobs: int
    seed: int
    write: bool

    def pool(self) -> ProcessPoolExecutor:
        """Return as many processes as --jobs asks for."""
        jobs = processes("--jobs", self.jobs)
        return ProcessPoolExecutor(None if jobs == -1 else jobs)

    def publish(self, text: str, shown: Mapping[str, Figure], kept: Mapping[str, Figure]) -> None:
        """Print the text; save figures; with --write put the text and ``shown`` into docs.

        Parameters
        ----------
        text : str
            Markdown.
        shown : mapping of endings to figures
            A figure is named after the command with its ending, as "" or "-tokyo".
        kept : mapping of endings to figures
            Figures that no document may show: their data's licence forbids to pass them on.
        """
        click.echo(text)
        for ending, figure in {**shown, **kept}.items():
            save_figure(figure, self.out / f"{self.name}{ending}.png", dpi=90)
        if self.write:
            for ending, figure in shown.items():
                save_figure(figure, generated(DOCS, f"{self.name}{ending}.png"), dpi=90)
            write_page(DOCS, self.name, text)


def experiment(name: str, repeats: int) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function of a `Setup` and of options of its own."""

    def decorate(body: Callable[..., None]) -> click.Command:
        @functools.wraps(body)
        def run(
            data: Path, out: Path, repeats: int, jobs: int, seed: int, write: bool, **own: Any
        ) -> None:
            click.echo("python -m " + " ".join(["experiments", *sys.argv[1:]]))
            out.mkdir(parents=True, exist_ok=True)
            try:
                body(Setup(name, data, out, repeats, jobs, seed, write), **own)
            except LdpSpatialError as error:
                raise click.ClickException(str(error)) from error

        options = [
            click.option("--out", type=click.Path(path_type=Path, file_okay=False),
                         default=Path("experiments-output") / name, show_default=True,
                         help="Folder of finished runs and figures."),
            click.option("--repeats", default=repeats, show_default=True,
                         type=COUNT, help="Runs of each setting."),
            click.option("--jobs", default=-1, show_default=True,
                         help="Processes, -1 for one a core."),
            click.option("--seed", default=1, show_default=True,
                         help="A folder with runs goes on with the seed that it began with."),
            click.option("--write", is_flag=True, help="Put tables and figures into docs."),
        ]  # fmt: skip
        for option in reversed(options):
            run = option(run)
        return click.command(name)(data_option(run))

    return decorate
