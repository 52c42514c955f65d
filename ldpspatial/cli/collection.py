"""``collection``: make and inspect the document that devices and server agree on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from client_sdk import Collection, Grid
from ldpspatial.cli.documents import read_collection
from ldpspatial.cli.options import (
    grid_options,
    make_grid,
    mechanism_options,
    square_side,
    wanted_cells,
    wanted_epsilon,
    wanted_squared_radius,
)
from ldpspatial.cli.output import show
from ldpspatial.cli.output_files import check_new, write_document
from ldpspatial.collecting.results import real_radius, squared_radius
from ldpspatial.release.local.disks.disk_radius import FOR_USERS


@click.group()
def collection() -> None:
    """Make or show a collection document."""


@collection.command("new")
@click.argument("name")
@mechanism_options
@grid_options
@click.option(
    "--max-reports", type=int, default=1, show_default=True,
    help="Reports that one device may give; the loss of a device is this times epsilon.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to write.")
def new(name: str, out: Path, **options: Any) -> None:
    """Write a new collection document.

    The document is final: its id is the SHA-256 of its text, and devices pin it.

    \b
    Examples:
      ldpspatial collection new "noon in Berlin" --center 52.52,13.405 --side-km 20 \\
          --epsilon 3.5 --out berlin.json
      ldpspatial collection new "noon in Berlin" --center 52.52,13.405 --side-km 20 \\
          --epsilon 3.5 --for-users 10000 --out berlin.json
    """
    grid = wanted_grid(options)
    check_new(out)
    made = Collection.create(
        name,
        grid,
        wanted_epsilon(options),
        options["mechanism"],
        options["radius"],
        options["max_reports"],
        wanted_squared_radius(options, grid.cells, FOR_USERS),
    )
    write_document(out, made.to_json())
    _show(made)
    click.echo(f"Written to {out}")


def wanted_grid(options: Mapping[str, Any]) -> Grid:
    """Return the square that the options give."""
    square = [options[key] for key in ("center", "side_km", "bounds", "plane")]
    grid = make_grid(wanted_cells(options, FOR_USERS, square_side(options)), *square)
    if grid is None:
        raise click.UsageError("Give the square: --center and --side-km, --bounds, or --plane.")
    return grid


@collection.command("show")
@click.argument("document", metavar="COLLECTION", type=click.Path(path_type=Path))
def show_document(document: Path) -> None:
    """Verify a collection document and show what it asks of a device.

    \b
    Example:
      ldpspatial collection show berlin.json
    """
    _show(read_collection(document))


def _show(made: Collection) -> None:
    show(
        made.name,
        {
            "id": made.digest,
            "claim": f"{made.epsilon:g}-LDP per report (local), "
            f"{made.epsilon * made.max_reports:g} per device and collection",
            **design_facts(made),
        },
    )


def design_facts(made: Collection) -> dict[str, str]:
    """Return what to show of mechanism and grid."""
    grid = made.grid
    table = made.table
    south, west = grid.center(0, 0)
    north, east = grid.center(grid.cells - 1, grid.cells - 1)
    height, width = grid.cell_size
    unit = "m" if grid.kind == "geographic" else "plane units"
    return {
        "mechanism": f"{table.mechanism}, disk radius {table.radius} cells, "
        f"{table.output_size} output cells{real_radius(squared_radius(table))}",
        "grid": f"{grid.cells} x {grid.cells} cells of {height:.4g} x {width:.4g} {unit}",
        "corner cells": f"{south:.5f}, {west:.5f} to {north:.5f}, {east:.5f}",
    }
