"""``series``: collections that repeat in windows of time."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from client_sdk import Series
from ldpspatial.cli.collection import design_facts, wanted_grid
from ldpspatial.cli.documents import read_series
from ldpspatial.cli.options import (
    grid_options,
    mechanism_options,
    wanted_epsilon,
    wanted_squared_radius,
)
from ldpspatial.cli.output import show
from ldpspatial.cli.output_files import check_new, write_document
from ldpspatial.cli.series_estimate import estimate
from ldpspatial.cli.series_simulate import simulate
from ldpspatial.collecting.series_maps import moment
from ldpspatial.release.local.disks.disk_radius import FOR_USERS

MOST_SECONDS = 10**9  # of a window, as in every series document
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}


class Length(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A length of time in whole seconds, minutes, hours or days, as in 6h."""

    name = "length"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return seconds."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9]{1,12})(s|min|h|d)", str(value))
        if found is None:
            self.fail(f"must be a whole number with s, min, h or d, as in 6h, got {value!r}")
        seconds = int(found[1]) * SECONDS[found[2]]
        if not 1 <= seconds <= MOST_SECONDS:
            self.fail(f"must be 1 to {MOST_SECONDS} seconds, got {value!r}")
        return seconds


class Moment(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A moment with its offset from UTC, as in 2027-01-15T08:00+01:00."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return seconds since 1970."""
        if isinstance(value, int):
            return value
        try:
            # Python 3.10 does not read the Z.
            moment = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", str(value)))
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None or moment.microsecond:
            self.fail(
                "must be a date and time in whole seconds with an offset from UTC, as in "
                f"2027-01-15T08:00+01:00 or 2027-01-15T07:00Z, got {value!r}"
            )
        if moment.timestamp() < 0:
            self.fail(f"must not lie before 1970 in UTC, got {value!r}")
        return int(moment.timestamp())


@click.group()
def series() -> None:
    """Make, play or map a collection that repeats."""


series.add_command(estimate)
series.add_command(simulate)


@series.command("new")
@click.argument("name")
@mechanism_options
@grid_options
@click.option("--start", type=Moment(), required=True, help="When the first window opens.")
@click.option(
    "--every", type=Length(), required=True, help="Length of a window: 90s, 30min, 6h, 1d."
)
@click.option("--windows", type=int, required=True, help="Number of windows.")
@click.option(
    "--answers", type=int, default=1, show_default=True,
    help="Windows that one device answers; its loss over the series is this times epsilon.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to write.")
def new(name: str, out: Path, **options: Any) -> None:
    """Write a new series document.

    The document is final: its id is the SHA-256 of its text, and devices pin it. Each device draws
    which windows it answers when it joins. "ldpspatial plan --windows --answers" tells what that
    costs and protects.

    \b
    Example:
      ldpspatial series new "a week in Berlin" --center 52.52,13.405 --side-km 20 \\
          --epsilon 3.5 --start 2027-01-18T00:00+01:00 --every 1d --windows 7 --out week.json
    """
    check_new(out)
    grid = wanted_grid(options)
    made = Series.create(
        name,
        grid,
        wanted_epsilon(options),
        first_start=options["start"],
        window_seconds=options["every"],
        windows=options["windows"],
        answers=options["answers"],
        mechanism=options["mechanism"],
        radius=options["radius"],
        squared_radius=wanted_squared_radius(options, grid.cells, FOR_USERS),
    )
    write_document(out, made.to_json())
    _show(made)
    click.echo(f"Written to {out}")


@series.command("show")
@click.argument("document", metavar="SERIES", type=click.Path(path_type=Path))
def show_document(document: Path) -> None:
    """Verify a series document and show what it asks of a device.

    \b
    Example:
      ldpspatial series show week.json
    """
    _show(read_series(document))


@series.command("window")
@click.argument("document", metavar="SERIES", type=click.Path(path_type=Path))
@click.argument("window", type=int)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to write.")
def window(document: Path, window: int, out: Path) -> None:
    """Write the collection document of one WINDOW, counted from 1.

    For simulate --collection, count, and estimate of this window alone; "series estimate" maps all
    of them together and needs no such document.

    \b
    Example:
      ldpspatial series window week.json 3 --out wednesday.json
    """
    made = read_series(document)
    collection = made.collection(window)
    check_new(out)
    write_document(out, collection.to_json())
    facts = {"id": collection.digest, "opens": moment(made.start(window)),
             "closes": moment(made.start(window) + made.window_seconds)}  # fmt: skip
    show(collection.name, facts)
    click.echo(f"Written to {out}")


def _show(made: Series) -> None:
    show(made.name, {**series_facts(made), **design_facts(made.template)})


def series_facts(made: Series) -> dict[str, str]:
    """Return what is shown of a series but for its design."""
    end = made.first_start + made.windows * made.window_seconds
    return {
        "id": made.digest,
        "claim": f"{made.epsilon:g}-LDP per report (local), "
        f"{made.epsilon * made.answers:g} per device and series",
        "windows": f"{made.windows} of {made.window_seconds} s each, of which a device answers "
        f"{made.answers}",
        "time": f"{moment(made.first_start)} to {moment(end)}",
    }
