"""What experiments with runs of their own ask for, and where their results go."""

import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from matplotlib.figure import Figure

from experiments.generated import generated, write_page
from experiments.sources import data_option
from experiments.tables import DOCS
from ldpspatial.comparison.workers import end_with
from ldpspatial.errors import InputError, LdpSpatialError
from ldpspatial.plotting.heat_map import save_figure
from ldpspatial.validate import processes

COUNT = click.IntRange(1)
SEED = "seed"
Kind = TypeVar("Kind")


class Selection(click.Option):
    """An option that leaves settings of a study out."""


class Study(click.Command):
    """A command whose errors are one line, and that puts whole tables into docs or none."""

    def invoke(self, context: click.Context) -> Any:
        """Run, unless a part of the settings is to replace the tables of all."""
        given = selections(context)
        if given and context.params.get("write"):
            raise click.UsageError(
                f"--write must go without options that leave settings out, got {given[0]}: the "
                "tables in docs are of all of them"
            )
        try:
            return super().invoke(context)
        except LdpSpatialError as error:
            raise click.ClickException(str(error)) from error


def selections(context: click.Context) -> tuple[str, ...]:
    """Return the options of a command that leave settings out, as they were given."""
    found = []
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if isinstance(option, Selection) and source is not ParameterSource.DEFAULT:
            value = context.params[str(option.name)]
            values = value if option.multiple else (value,)
            found.append(" ".join(f"{option.opts[0]} {each}" for each in values))
    return tuple(found)


def begun_with(out: Path, seed: int) -> int:
    """Return the seed that a folder with runs began with; one without is given this one."""
    file = out / SEED
    out.mkdir(parents=True, exist_ok=True)
    if not file.exists() or all(each == file for each in out.iterdir()):
        file.write_text(f"{seed}\n")
    text = file.read_text().strip()
    if not text.isdecimal():
        raise InputError(f"{file} must hold the seed of the folder's runs, got {text!r}")
    return int(text)


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
    selected : tuple of str
        Options that leave settings out, as they were given.
    """

    name: str
    data: Path
    out: Path
    repeats: int
    jobs: int
    seed: int
    write: bool
    selected: tuple[str, ...] = ()

    def some(self, settings: Iterable[Kind]) -> list[Kind]:
        """Return the settings that options left, one at least."""
        found = list(settings)
        if not found:
            raise InputError(f"{' '.join(self.selected)} must leave a setting, but leaves none")
        return found

    def pool(self) -> ProcessPoolExecutor:
        """Return as many processes as --jobs asks for."""
        jobs = processes("--jobs", self.jobs)
        return ProcessPoolExecutor(
            None if jobs == -1 else jobs, initializer=end_with, initargs=(os.getpid(),)
        )

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
            selected = selections(click.get_current_context())
            begun = begun_with(out, seed)
            body(Setup(name, data, out, repeats, jobs, begun, write, selected), **own)

        options = [
            click.option("--out", type=click.Path(path_type=Path, file_okay=False),
                         default=Path("experiments-output") / name, show_default=True,
                         help="Folder of finished runs and figures."),
            click.option("--repeats", default=repeats, show_default=True,
                         type=COUNT, help="Runs of each setting."),
            click.option("--jobs", default=-1, show_default=True,
                         help="Processes, -1 for one a core."),
            click.option("--seed", default=1, show_default=True, type=click.IntRange(0),
                         help="A folder with runs goes on with the seed that it began with."),
            click.option("--write", is_flag=True, help="Put tables and figures into docs."),
        ]  # fmt: skip
        for option in reversed(options):
            run = option(run)
        return click.command(name, cls=Study)(data_option(run))

    return decorate
