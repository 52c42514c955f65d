"""``simulate`` and ``demo``: a whole collection played on known positions."""

import os
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from client_sdk import Collection, Grid
from client_sdk.shared import character_fault
from ldpspatial.cli.documents import blamed, read_collection
from ldpspatial.cli.estimator_options import chosen_rule, estimator_options
from ldpspatial.cli.options import (
    CHOICES,
    COLUMNS,
    column_options,
    fit_grid,
    grid_options,
    make_grid,
    mechanism_options,
    square_side,
    wanted_cells,
    wanted_epsilon,
    wanted_squared_radius,
)
from ldpspatial.cli.output import Stage, progress, result_folder, show
from ldpspatial.collecting.mapping import intervals
from ldpspatial.collecting.report_files import write_reports
from ldpspatial.collecting.results import estimate_summary, real_radius, write_estimate
from ldpspatial.collecting.simulation import OUTSIDERS, Simulation
from ldpspatial.collecting.simulation import simulate as play
from ldpspatial.collecting.verdicts import verdicts
from ldpspatial.datasets import CITY_CENTER, CITY_SIDE_M, city, synthetic_maps
from ldpspatial.files.points import read_points
from ldpspatial.places.points import Points
from ldpspatial.planning.grid_size import recommended_cells
from ldpspatial.release.local.disks.disk_radius import disk_squared_radius
from ldpspatial.validate import MAX_CELLS

EXACT_CELLS = 256  # some ten seconds there, minutes beyond
NAME_LENGTH = 200  # of a collection
PEOPLE = click.IntRange(1, 10_000_000)


@click.command()
@click.argument("points", type=click.Path(path_type=Path), required=False)
@mechanism_options
@grid_options
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of results.")
@click.option("--overwrite", is_flag=True, help="Replace the earlier result in --out.")
@column_options
@click.option(
    "--outsiders", type=click.Choice(OUTSIDERS), default="drop", show_default=True,
    help="Positions outside the square: left out, or moved to its edge as devices do.",
)  # fmt: skip
@click.option(
    "--map", "map_name", type=click.Choice(sorted(synthetic_maps())),
    help="A synthetic map in place of POINTS.",
)  # fmt: skip
@click.option("--people", type=PEOPLE, help="How many people to draw from --map.")
@click.option(
    "--collection", type=click.Path(path_type=Path),
    help="A collection document, as plan --out writes it: square, cells, epsilon and mechanism.",
)  # fmt: skip
@estimator_options
def simulate(**options: Any) -> None:
    """Play a whole collection on a file of positions.

    Every row of POINTS (CSV, TSV or Parquet) is one person, whose position goes through the
    device code; the reports are counted and the map is estimated and compared with the truth.

    \b
    Writes into --out:
      collection.json    what devices and server agree on
      reports.parquet    the randomised reports (id, row, col, collection)
      estimate.npz, estimate.csv, estimate.geojson
                         the map with 95 % intervals
      heatmap.png        truth, reports, estimate, interval width
      summary.json       n, epsilon, radius, exact W2 in cells and metres, seconds

    Without a square, the smallest one around all positions is taken: fine for a simulation,
    but a real collection must choose its square without looking at positions.

    \b
    Examples:
      ldpspatial simulate visits.csv --epsilon 3.5 --out result
      ldpspatial simulate trips.parquet --lat pickup_lat --lon pickup_lon \\
          --bounds 40.56,-74.05,0.32 --epsilon 3.5 --out result
      ldpspatial simulate --map normal --people 100000 --epsilon 3.5 --out result
      ldpspatial simulate visits.csv --collection collection.json --out result
      ldpspatial simulate visits.csv --epsilon 3.5 --estimator em --out quick-look
    """
    inputs = [options[name] for name in ("points", "collection") if options[name]]
    with (
        progress("read positions") as (stage, _),
        result_folder(options["out"], options["overwrite"], inputs) as folder,
    ):
        people, collection = _people_and_collection(options)
        summary = _run(folder, collection, people, options, stage)
    _report(options["out"], summary, options["outsiders"])


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("demo-output"), show_default=True,
    help="Folder of results; an earlier result is replaced.",
)  # fmt: skip
@click.option(
    "--people", type=PEOPLE, default=100_000, show_default=True, help="People in the city."
)
@click.option(
    "--cells", type=click.IntRange(1, MAX_CELLS),
    help="Cells along a side; by default as recommended for so many people.",
)  # fmt: skip
@click.option(
    "--epsilon", type=float, default=3.5, show_default=True, help="Privacy loss of one report."
)
def demo(out: Path, people: int, cells: int | None, epsilon: float) -> None:
    """Play a collection in a synthetic city.

    The five-minute tour, without any download. It writes what simulate writes; begin with
    heatmap.png and summary.json.

    \b
    Examples:
      ldpspatial demo
      ldpspatial demo --epsilon 1.4 --out demo-private
    """
    options = {
        "outsiders": "drop",
        "rule": None,
        "smoothing": None,
        "method": "auto",
    }
    with (
        progress("draw a city") as (stage, _),
        result_folder(out, overwrite=True) as folder,
    ):
        points = Points(city(people, np.random.default_rng()))
        side = cells or recommended_cells(people, CITY_SIDE_M)
        grid = Grid.from_center(*CITY_CENTER, CITY_SIDE_M, side)
        disk = disk_squared_radius(side, epsilon, people)
        collection = Collection.create("synthetic city", grid, epsilon, "disk", squared_radius=disk)
        summary = _run(folder, collection, points, options, stage)
    _report(out, summary, "drop")


def _people_and_collection(options: dict[str, Any]) -> tuple[Points, Collection]:
    """Read or draw the positions, and read or make the collection."""
    document = options["collection"]
    if document is None:
        epsilon = wanted_epsilon(options)  # refused before positions are read
        people, grid, name = _people_and_grid(options)
        squared = wanted_squared_radius(options, grid.cells, len(people.coordinates))
        choice = options["mechanism"], options["radius"]
        return people, Collection.create(name, grid, epsilon, *choice, squared_radius=squared)
    context = click.get_current_context()
    for name in (*CHOICES, "map_name", "people"):
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = "map" if name == "map_name" else name.replace("_", "-")
            raise click.UsageError(f"--collection takes the place of --{option}.")
    if options["points"] is None:
        raise click.UsageError("--collection needs a file of POINTS.")
    collection = read_collection(document)
    return _read(options, collection.grid.kind == "plane"), collection


def _read(options: dict[str, Any], plane: bool) -> Points:
    path: Path = options["points"]
    with blamed("POINTS", path, **COLUMNS):
        columns = options["lat"], options["lon"]
        return read_points(path, *columns, plane=plane, on_missing=options["on_missing"])


def _people_and_grid(options: dict[str, Any]) -> tuple[Points, Grid, str]:
    """Read or draw the positions, and make the square."""
    square = [options[key] for key in ("center", "side_km", "bounds", "plane")]
    path = options["points"]
    map_name = options["map_name"]
    if (path is None) == (map_name is None):
        raise click.UsageError("Give a file of POINTS, or --map with --people.")
    if map_name is not None:
        if options["people"] is None or any(side is not None for side in square):
            raise click.UsageError("--map needs --people, and brings its own square.")
        if options["lat"] is not None or options["lon"] is not None:
            raise click.UsageError("--lat and --lon name columns of a file, which --map lacks.")
        chosen = synthetic_maps()[map_name]
        drawn = chosen.draw(options["people"], np.random.default_rng())
        cells = wanted_cells(options, options["people"], None)
        own = Grid.plane(chosen.y0, chosen.x0, chosen.side, cells)
        return Points(drawn), own, f"{map_name} map"
    if options["people"] is not None:
        raise click.UsageError("--people goes with --map; a file of POINTS brings its own.")
    people = _read(options, options["plane"] is not None)
    cells = wanted_cells(options, len(people.coordinates), square_side(options))
    grid = make_grid(cells, *square)
    return people, grid or fit_grid(people.coordinates, cells), _name_of(path)


def _name_of(path: Path) -> str:
    """Return a name for a collection from a file's name, which may hold anything."""
    seen = "".join(
        character for character in path.name if character == " " or not character_fault(character)
    )
    return " ".join(seen.split())[:NAME_LENGTH].strip() or "positions"


def _run(
    folder: Path,
    collection: Collection,
    people: Points,
    options: dict[str, Any],
    stage: Stage,
) -> dict[str, Any]:
    """Simulate, write all files into the folder, and return the summary."""
    began = time.perf_counter()
    run = play(
        collection,
        people.coordinates,
        options["outsiders"],
        chosen_rule(options, collection.grid),
        options["smoothing"],
        exact_error=collection.grid.cells <= EXACT_CELLS,
        on_stage=stage,
    )
    stage("intervals")
    played = time.perf_counter()
    uncertainty = intervals(run.estimate, options["method"])
    seconds = {"intervals": time.perf_counter() - played}
    stage("write files")
    ids = np.frombuffer(os.urandom(16 * run.n), np.uint8).reshape(-1, 16)
    write_reports(folder / "reports.parquet", collection, *run.reports, ids)
    summary = _summary(run, people)
    seconds["all"] = time.perf_counter() - began
    summary["seconds"] = run.seconds | seconds
    write_estimate(folder, collection, run.estimate, uncertainty, summary, run.truth)
    return summary


def _summary(run: Simulation, people: Points) -> dict[str, Any]:
    height, width = run.collection.grid.cell_size
    geographic = run.collection.grid.kind == "geographic"
    note = None
    if run.w2_cells is None:
        note = f"exact W2 is computed up to {EXACT_CELLS} cells a side"
    return {
        **estimate_summary(run.collection, run.estimate),
        "outside": run.outside,
        "missing": people.dropped,
        "cell_height_m" if geographic else "cell_height": height,
        "cell_width_m" if geographic else "cell_width": width,
        "w2_cells": run.w2_cells,
        "w2_metres": run.w2_metres,
        "w2_note": note,
    }


def _not_inside(summary: dict[str, Any], outsiders: str) -> dict[str, str]:
    """Return what became of people who were not in the square."""
    outside, missing = f"{summary['outside']} outside", f"{summary['missing']} without position"
    if outsiders == "nearest":
        return {"moved to the edge": outside, "left out": missing}
    return {"left out": f"{outside}, {missing}"}


def _report(out: Path, summary: dict[str, Any], outsiders: str) -> None:
    error = f"not computed beyond {EXACT_CELLS} cells a side"
    if summary["w2_cells"] is not None:
        error = f"{summary['w2_cells']:.3f} cells"
    if summary["w2_metres"] is not None:
        error += f" = {summary['w2_metres']:.0f} m"
    people = "1 person" if summary["n"] == 1 else f"{summary['n']} people"
    show(
        f"{people}, each with {summary['epsilon']:g}-LDP per report",
        {
            "grid": f"{summary['cells']} x {summary['cells']} cells",
            "mechanism": f"{summary['mechanism']}, disk radius {summary['radius']}"
            + real_radius(summary["squared_radius"]),
            **_not_inside(summary, outsiders),
            "exact W2 of the map": error,
            **verdicts(summary),
            "seconds": f"{summary['seconds']['all']:.1f}",
        },
    )
    click.echo(f"Written to {out}: see heatmap.png")
