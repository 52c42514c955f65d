"""``ranges``: how many people are in each region of a file, from an estimate."""

import os
from pathlib import Path

import click
import numpy as np

from ldpspatial.cli.output import progress, show_table
from ldpspatial.collecting.region_shares import (
    RegionShares,
    region_shares,
    write_csv,
    write_geojson,
)
from ldpspatial.collecting.results import read_estimate
from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.regions import COUNT_METHODS
from ldpspatial.files.regions import read_regions
from ldpspatial.places.regions import cut_cells

NAME = 40  # characters of a name on the screen
WHOLE = 0.999  # of an area in the square, beside what files round


@click.command()
@click.argument("estimate", metavar="ESTIMATE", type=click.Path(path_type=Path))
@click.argument("regions", metavar="REGIONS", type=click.Path(path_type=Path))
@click.option("--csv", "table", type=click.Path(path_type=Path), help="Table to write, .csv.")
@click.option(
    "--geojson", "drawn", type=click.Path(path_type=Path),
    help="Regions with their shares to write, .geojson.",
)  # fmt: skip
@click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95,
    show_default=True, help="Probability with which one interval covers the truth.",
)  # fmt: skip
@click.option(
    "--method", type=click.Choice(COUNT_METHODS), default="auto", show_default=True,
    help="auto: posterior with rule field; else fisher to 20 cells a side, likelihood to 32, "
    "bootstrap beyond. The method scores, "
    "for reports that are sets, is there for objects in Python only.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True,
    help="Seed of what bootstrap draws: the same seed gives the same intervals.",
)  # fmt: skip
def ranges(
    estimate: Path,
    regions: Path,
    table: Path | None,
    drawn: Path | None,
    level: float,
    method: str,
    seed: int,
) -> None:
    """Tell how many people are in rectangles and polygons.

    ESTIMATE is the folder that simulate or estimate wrote, or the estimate.npz in it. REGIONS is a
    table (CSV, TSV or Parquet) of rectangles with the columns name, south, west, north and east,
    or a GeoJSON FeatureCollection of polygons, longitude first, with the property name. Polygons
    need the extra regions: pip install "ldpspatial[regions]".

    Each region gets its share of all people, an interval, people (share times reports), and the
    shares of the cells that it covers wholly and of those that it touches. A cut cell counts with
    its covered part, as if its people were spread evenly in it; the CSV says how much of the share
    is in such cells. Of a region that leaves the map, the part in it counts.

    Intervals cover that share of cells, every one at its level by itself: of 100 at 95 %, about
    five miss. They account for the noise of the reports, not for where people are within a cell:
    the people inside a region that cuts cells are missed more often. Draw regions along the edges
    of cells (those of estimate.geojson), or take finer cells.

    \b
    Methods:
      fisher      right for every map, and wide on fine grids; to 64 cells a side
      likelihood  narrower, as no cell holds fewer than 0 people; to 64 cells a side; too
                  narrow where nearly all people crowd into a few cells
      bootstrap   any size; too narrow at every peak
      posterior   any size, for maps of rule field: from its samples

    \b
    A table of two regions of the map that simulate --map normal draws:
      name,south,west,north,east
      centre,-1,-1,1,1
      north,0,-9,9,9

    \b
    Examples:
      ldpspatial ranges result regions.csv --csv shares.csv --geojson shares.geojson
      ldpspatial ranges result/estimate.npz districts.geojson --level 0.9 --csv shares.csv
    """
    for option, path, suffix in (("--csv", table, ".csv"), ("--geojson", drawn, ".geojson")):
        if path is not None:
            _check_output(option, path, suffix, (estimate, regions))
    with progress("read") as (stage, advance):
        collection, result = read_estimate(estimate)
        stage("regions")
        found = read_regions(regions, collection.grid)
        stage("intervals")
        rng = np.random.default_rng(seed)
        shares = region_shares(result, found, level, method, rng, advance)
    if table is not None:
        write_csv(table, shares)
    if drawn is not None:
        write_geojson(drawn, collection.grid, shares)
    _show(shares)
    for written in filter(None, (table, drawn)):
        click.echo(f"Written to {written}")


def _check_output(option: str, path: Path, suffix: str, inputs: tuple[Path, ...]) -> None:
    """Refuse, before any work is done, what could not be written after it."""
    if path.suffix.lower() != suffix:
        raise InputError(f"{option} must end in {suffix}, got {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{option} must lie in a folder that exists, got {str(path)!r}")
    if os.path.realpath(path) in map(os.path.realpath, inputs):
        raise InputError(f"{option} must not replace an input, got {str(path)!r}")


def _show(shares: RegionShares) -> None:
    rows = []
    for row in shares.rows:
        share = row.share
        parts = [f"{each:.2%}" for each in (share.estimate, share.lower, share.upper)]
        name = "".join(filter(str.isprintable, row.region.name))[:NAME]
        between = f"{row.wholly_inside:.2%} to {row.touched:.2%}"
        rows.append((name, *parts, f"{row.people:.0f}", between))
    title = f"{100 * shares.level:g} % intervals by {shares.method}, {shares.n} reports"
    show_table(title, ("region", "share", "lower", "upper", "people", "inside to touched"), rows)
    if cutting := sum(bool(cut_cells(row.region.weights).any()) for row in shares.rows):
        click.echo(
            f"Regions that cut cells: {cutting} of {len(rows)}. Their intervals do not know "
            "where in a cell people are: draw regions along the edges of cells, or take finer cells"
        )
    if beyond := [row.region for row in shares.rows if row.region.on_map < WHOLE]:
        click.echo(
            f"Regions that leave the map: {len(beyond)} of {len(rows)}, "
            f"{sum(not region.on_map for region in beyond)} of them wholly. Their shares are those "
            "of their parts in the square"
        )
    if outside := sum(row.is_outside for row in shares.rows):
        click.echo(
            f"Shares outside of their intervals: {outside} of {len(rows)}. The counts speak "
            "against them, as is common where nearly all people crowd into a few cells"
        )
