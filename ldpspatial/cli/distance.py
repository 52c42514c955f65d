"""``distance``: how far apart two maps are, and where their mass differs."""

import time
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ldpspatial.cli.documents import blamed
from ldpspatial.cli.options import Finite
from ldpspatial.cli.output import progress, show
from ldpspatial.cli.output_files import check_output, placed, results_beside
from ldpspatial.files.maps import CellMap, common_place, read_map
from ldpspatial.files.plans import SUFFIXES, is_plan, write_plan
from ldpspatial.metrics.exact.whole_maps import exact_total, shares
from ldpspatial.metrics.flows import flow_lengths, length_text, share_text
from ldpspatial.metrics.transport import GROUNDS, Transport, transport_of_shares

Array = NDArray[np.float64]
DIGITS = 10  # of the distance and its bounds
FIGURES = (".png", ".pdf", ".svg")
SAME_TOTAL = Fraction(1, 10**9)  # relative difference of totals that is not worth mentioning
LONGEST_NAME = 32  # characters, in a title


@click.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option(
    "--order", type=click.IntRange(1, 2), default=2, show_default=True,
    help="1: the mean distance moved. 2: the root mean square, in which far moves weigh more.",
)  # fmt: skip
@click.option(
    "--ground", type=click.Choice(GROUNDS), default="euclidean", show_default=True,
    help="Distances as the crow flies, or along rows and columns.",
)  # fmt: skip
@click.option(
    "--cell", type=Finite(0, min_open=True), metavar="METRES",
    help="Side of a cell, in place of what the files say.",
)  # fmt: skip
@click.option(
    "--column", "columns", multiple=True, default=["density"], show_default=True,
    help="Numbers to take: a column, a property in GeoJSON, an array in npz. Give it twice where "
    "FIRST and SECOND differ.",
)  # fmt: skip
@click.option(
    "--plan", type=click.Path(path_type=Path),
    help="Write what moves from where to where, as .csv or .parquet.",
)  # fmt: skip
@click.option(
    "--figure", type=click.Path(path_type=Path),
    help="Draw it on a map, as .png, .pdf or .svg.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace an earlier plan and figure.")
def distance(
    first: Path,
    second: Path,
    order: int,
    ground: str,
    cell: float | None,
    columns: tuple[str, ...],
    plan: Path | None,
    figure: Path | None,
    overwrite: bool,
) -> None:
    """Measure how far apart two maps are.

    The exact Wasserstein distance: how far mass has to be carried, by the cheapest plan, to turn
    the map in FIRST into the map in SECOND. A crowd one cell off is a small error, a crowd across
    town a large one. The answer comes with proven bounds, rounding included; --plan and --figure
    show where the mass went wrong.

    \b
    FIRST and SECOND are maps of one grid, in any of these formats:
      estimate.npz, estimate.csv, estimate.geojson   as simulate and estimate write them
      .csv, .tsv, .parquet   columns row, col, density (see --column), a line for every cell
      .csv, .tsv, .npy       rows of plain numbers, the southernmost first

    Distances are in metres where the files tell where the cells lie, or with --cell; else in
    cells. Counts and shares can be compared: each map is taken as a whole of 100 %.

    The plan has a line for every flow, those that matter most first: source_row, source_col,
    target_row, target_col, mass (share of the whole) and distance. The figure shows where the
    second map has too much or too little, and the flows as arrows.

    \b
    Examples:
      ldpspatial distance monday/estimate.npz tuesday/estimate.npz
      ldpspatial distance truth.csv result/estimate.csv --column people --column density \\
          --plan moved.csv --figure moved.png
      ldpspatial distance a.npy b.npy --order 1 --ground cityblock --cell 250
    """
    if len(columns) > 2:
        raise click.UsageError("Give --column once, or twice: for FIRST and for SECOND.")
    inputs = first, second, *results_beside(first), *results_beside(second)
    if plan is not None:
        earlier = "an earlier plan", is_plan
        check_output("--plan", plan, SUFFIXES, overwrite, inputs, earlier)
    if figure is not None:
        check_output("--figure", figure, FIGURES, overwrite, inputs)
    with progress("read maps") as (stage, _):
        maps = []
        for argument, path, column in zip(
            ("FIRST", "SECOND"), (first, second), (columns[0], columns[-1]), strict=True
        ):
            with blamed(argument, path):
                maps.append(read_map(path, column))
        sides, unit = _cell(maps, cell)
        p, q = (each.values for each in maps)
        stage("carry mass")
        began = time.perf_counter()
        result = transport_of_shares(p, q, order, ground, sides)
        seconds = time.perf_counter() - began
        stage("write files")
        if plan is not None:
            with placed("--plan", plan, overwrite) as file:
                write_plan(file, result)
        if figure is not None:
            title = " → ".join(map(_short, (first, second)))
            with placed("--figure", figure, overwrite) as file:
                _draw(file, shares(p), shares(q), result, unit, title)
    show(f"From {first} to {second}", _rows(maps, result, unit, seconds))
    for path in filter(None, (plan, figure)):
        click.echo(f"Written to {path}")


def _draw(figure: Path, p: Array, q: Array, result: Transport, unit: str, title: str) -> None:
    # Here: matplotlib takes longer to import than small maps take to compare.
    from ldpspatial.plotting.heat_map import save_figure  # noqa: PLC0415
    from ldpspatial.plotting.transport_plot import plot_transport  # noqa: PLC0415

    drawn = plot_transport(p, q, result, unit, title=title)
    save_figure(drawn, figure)


def _cell(maps: list[CellMap], side: float | None) -> tuple[tuple[float, float], str]:
    """Return height and width of a cell, and their unit."""
    place = common_place(*maps)
    if side is not None:
        return (side, side), "m"
    if place is None:
        return (1.0, 1.0), "cells"
    return place.cell_size(maps[0].values.shape), place.unit


def _rows(maps: list[CellMap], result: Transport, unit: str, seconds: float) -> dict[str, str]:
    name = f"W{result.order}"
    height, width = result.cell
    square = abs(height / width - 1) < 1e-6
    rows, columns = maps[0].values.shape
    size = f" of {height:.5g} x {width:.5g} {unit}" if unit != "cells" else ""
    value = f"{result.value:.{DIGITS}g} {unit}"
    if unit != "cells" and square:
        value += f" = {result.value / height:.6g} cells"
    lower, upper = _outward(result.lower, result.upper)
    moving = (result.sources != result.targets).any(axis=1)
    mass = result.mass[moving]
    ways = flow_lengths(result)[moving]
    carried = "nothing"
    if len(mass):
        share = float(mass.sum())
        mean = float(mass / share @ ways)
        carried = f"{share_text(share)} of the mass, by {length_text(mean)} {unit} on average, "
        carried += f"{length_text(ways.max())} at most"
    shown = {
        "grid": f"{rows} x {columns} cells{size}",
        f"exact {name}, {result.ground}": value,
        "proven bounds": f"{lower} <= {name} <= {upper} {unit}",
        "moved": carried,
    }
    totals = [exact_total(each.values) for each in maps]
    if abs(totals[0] - totals[1]) > SAME_TOTAL * max(totals):
        shown["totals"] = "{} and {}, each taken as 100 %".format(*map(_total_text, totals))
    return shown | {"seconds": f"{seconds:.2g}"}


def _total_text(total: Fraction) -> str:
    try:
        return f"{float(total):.9g}"
    except OverflowError:  # the sum of floats need not be one
        return f"{Decimal(int(total)):.9g}"


def _outward(lower: float, upper: float) -> tuple[str, str]:
    """Return bounds with few digits that are still bounds."""
    texts = []
    for bound, rounding in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING)):
        exact = Decimal(float(bound))
        step = Decimal(1).scaleb(exact.adjusted() - DIGITS + 1)
        style = "f" if -4 <= exact.adjusted() < DIGITS else "e"  # as the distance is written
        texts.append(f"{exact.quantize(step, rounding):{style}}" if exact else "0")
    return texts[0], texts[1]


def _short(path: Path) -> str:
    """Return the end of a path for a title, with its folder, where the files of results differ."""
    text = "/".join(path.parts[-2:])
    return text if len(text) <= LONGEST_NAME else f"…{text[1 - LONGEST_NAME :]}"
