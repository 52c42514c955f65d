"""``series simulate``: reports of a whole series, from known positions or a synthetic city."""

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from ldpspatial.cli.documents import blamed, read_series
from ldpspatial.cli.options import COLUMNS, column_options
from ldpspatial.cli.output import progress, result_folder, show_table
from ldpspatial.collecting.series_maps import moment
from ldpspatial.collecting.series_simulation import people_of_series, play_series
from ldpspatial.collecting.simulation import OUTSIDERS
from ldpspatial.errors import InputError
from ldpspatial.files.points import read_points


@click.command("simulate")
@click.argument("document", metavar="SERIES", type=click.Path(path_type=Path))
@click.argument("points", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--people", type=click.IntRange(1, 10_000_000), default=100_000, show_default=True,
    help="People of the synthetic city, where no POINTS are given.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder of reports, new or empty."
)
@column_options
@click.option(
    "--outsiders", type=click.Choice(OUTSIDERS), default="drop", show_default=True,
    help="Positions outside the square: left out, or moved to its edge as devices do.",
)  # fmt: skip
def simulate(document: Path, points: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Play a series, for trying out what becomes of its reports.

    POINTS are files of positions (CSV, TSV or Parquet), one for each window from the first on;
    every row is one person who reports. Without them a synthetic city is laid over the square, of
    which a growing part is seen in a mirror; each of its people answers as many windows as the
    series asks of a device.

    \b
    Writes into --out:
      reports-1.parquet, reports-2.parquet, ...
                    the reports of each window (id, row, col, collection)
      truth.csv     the share of each cell, by window

    \b
    Examples:
      ldpspatial series simulate week.json --people 100000 --out reports
      ldpspatial series simulate week.json monday.csv tuesday.csv --out reports
    """
    series = read_series(document)
    if len(points) > series.windows:
        raise InputError(
            f"POINTS must be at most a file for each of the {series.windows} windows, "
            f"got {len(points)}"
        )
    plane = series.template.grid.kind == "plane"
    columns = options["lat"], options["lon"]

    def positions(file: Path) -> NDArray[np.float64]:
        with blamed("POINTS", file, **COLUMNS):
            found = read_points(file, *columns, plane=plane, on_missing=options["on_missing"])
        return found.coordinates

    with (
        progress("play windows"),
        result_folder(out, None, (document, *points)) as folder,
    ):
        windows = map(positions, points)
        drawn = people_of_series(series, options["people"], np.random.default_rng())
        facts = play_series(folder, series, windows if points else drawn, options["outsiders"])
    rows = [
        (str(each["window"]), moment(series.start(each["window"])), str(each["n"]),
         str(each["outside"]))
        for each in facts
    ]  # fmt: skip
    show_table(f"Reports, each {series.epsilon:g}-LDP", ("window", "opens", "n", "outside"), rows)
    click.echo(f"Written to {out}")
