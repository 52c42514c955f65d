"""``ranges``: how many people are in each region of a file, from an estimate."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from client_sdk import Grid
from ldpspatial.cli.output import progress, show_table
from ldpspatial.collecting.results import read_estimate
from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.cells import Interval
from ldpspatial.estimation.intervals.regions import COUNT_METHODS, share_intervals
from ldpspatial.files.atomic import replacing
from ldpspatial.files.columns import as_numbers, read_columns
from ldpspatial.files.table_layout import existing_file, table_layout
from ldpspatial.places.regions import polygon, rectangle

SIDES = ("south", "west", "north", "east")
GEOJSON = (".geojson", ".json")
NAME = 40  # characters of a name on the screen
ROUNDING = 1e-9  # a share outside its interval by no more than this counts as inside
CUT = 1e-3  # cells of which less is out, or in beside whole ones, are not cut: files round edges


@dataclass(frozen=True)
class Region:
    """A region of a file: its name, its geometry as GeoJSON, and its weights of the cells."""

    name: str
    geometry: dict[str, Any]
    weights: NDArray[np.float64]

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Mask of the cells that are neither wholly in it nor wholly out of it."""
        least = CUT * self.weights.max()  # a region may be a speck of one cell
        held = (self.weights >= least) & (self.weights > 0)
        return np.asarray(held & (1 - self.weights >= CUT))


@dataclass(frozen=True)
class Answer:
    """A region with its share of the people, how many these are, and how much is in cut cells."""

    region: Region
    share: Interval
    people: float
    in_cut_cells: float  # of its estimate, from 0 to 1


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
    help="auto: fisher to 20 cells a side, likelihood to 32, bootstrap beyond. The method scores, "
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

    Each region gets its share of all people, an interval, people (share times reports), and how
    much of its share is in cells that it cuts. A cut cell counts with its covered part, as if its
    people were spread evenly in it. Intervals cover that share of cells, every one at its level by
    itself: of 100 at 95 %, about five miss. They account for the noise of the reports, not for
    where people are within a cell: the people inside a region that cuts cells are missed more
    often. Draw regions along the edges of cells (those of estimate.geojson), or take finer cells.

    \b
    Methods:
      fisher      right for every map, and wide on fine grids; to 64 cells a side
      likelihood  narrower, as no cell holds fewer than 0 people; to 64 cells a side; too
                  narrow where nearly all people crowd into a few cells
      bootstrap   any size; too narrow at every peak

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
        shares = share_intervals(result, level, method, np.random.default_rng(seed))
        answers = []
        for region in found:
            share = shares.of(region.weights)
            part = _part_in(region.cut, region.weights * result.density)
            answers.append(Answer(region, share, share.estimate * result.n, part))
            advance(len(answers), len(found))
    if table is not None:
        _write_csv(table, answers)
    if drawn is not None:
        members = {"reports": result.n, "level": level, "method": shares.method}
        if collection.grid.kind == "plane":
            members["plane"] = True
        _write_geojson(drawn, members, answers)
    _show(answers, f"{100 * level:g} % intervals by {shares.method}, {result.n} reports")
    for written in filter(None, (table, drawn)):
        click.echo(f"Written to {written}")


def read_regions(path: Path, grid: Grid) -> list[Region]:
    """Read the regions of a table of rectangles or of a GeoJSON document."""
    existing_file(path)
    read = _polygons if path.suffix.lower() in GEOJSON else _rectangles
    found = read(path, grid)
    if not found:
        raise InputError(f"REGIONS must hold at least one region, but {path.name!r} holds none")
    return found


def _rectangles(path: Path, grid: Grid) -> list[Region]:
    layout = table_layout(path)
    wanted = ("name", *SIDES)
    missing = [name for name in wanted if layout.names.count(name) != 1]
    if missing:
        raise InputError(
            f"REGIONS must have the columns {', '.join(wanted)} once each, "
            f"but {path.name!r} lacks or repeats {', '.join(missing)}"
        )
    columns = read_columns(
        layout, [layout.names.index(side) for side in SIDES], [layout.names.index("name")]
    )
    if columns.ragged:
        raise InputError(
            f"REGIONS must have {len(layout.names)} fields in every row, "
            f"but row {columns.first_ragged} of {path.name!r} has not"
        )
    *arrays, names = columns.arrays
    sides = zip(
        *(as_numbers(each, side)[0].tolist() for each, side in zip(arrays, SIDES, strict=True)),
        strict=True,
    )
    regions = []
    for row, (given, box) in enumerate(zip(names.to_pylist(), sides, strict=True), 1):
        text = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
        name = str(text) if text not in (None, "") else f"region {row}"
        try:
            weights = rectangle(grid, *box)
        except InputError as error:
            raise InputError(f"row {row} of {path.name!r}: {error}") from None
        south, west, north, east = box
        east += 360.0 if west > east else 0.0
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        regions.append(Region(name, {"type": "Polygon", "coordinates": [ring]}, weights))
    return regions


def _polygons(path: Path, grid: Grid) -> list[Region]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        features = [(each["geometry"], each.get("properties") or {}, each.get("id"))
                    for each in document["features"]]  # fmt: skip
        named = [(geometry, properties.get("name", key)) for geometry, properties, key in features]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(
            f"REGIONS must be a GeoJSON FeatureCollection, but {path.name!r} is not"
        ) from None
    regions = []
    for number, (geometry, given) in enumerate(named, 1):
        try:
            if not isinstance(geometry, dict):
                raise InputError("geometry must be a GeoJSON Polygon or MultiPolygon, got none")
            weights = polygon(grid, geometry)
        except InputError as error:
            raise InputError(f"feature {number} of {path.name!r}: {error}") from None
        name = str(given) if given not in (None, "") else f"region {number}"
        regions.append(Region(name, geometry, weights))
    return regions


def _check_output(option: str, path: Path, suffix: str, inputs: tuple[Path, ...]) -> None:
    """Refuse, before any work is done, what could not be written after it."""
    if path.suffix.lower() != suffix:
        raise InputError(f"{option} must end in {suffix}, got {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{option} must lie in a folder that exists, got {str(path)!r}")
    if os.path.realpath(path) in map(os.path.realpath, inputs):
        raise InputError(f"{option} must not replace an input, got {str(path)!r}")


def _part_in(mask: NDArray[np.bool_], people: NDArray[np.float64]) -> float:
    everyone = float(people.sum())
    return float(people[mask].sum()) / everyone if everyone else 0.0


def _write_csv(path: Path, answers: list[Answer]) -> None:
    columns = {
        "name": [answer.region.name for answer in answers],
        "share": [answer.share.estimate for answer in answers],
        "lower": [answer.share.lower for answer in answers],
        "upper": [answer.share.upper for answer in answers],
        "people": [answer.people for answer in answers],
        "in_cut_cells": [answer.in_cut_cells for answer in answers],
    }
    with replacing(path) as stream:
        pa_csv.write_csv(pa.table(columns), stream)


def _write_geojson(path: Path, members: dict[str, Any], answers: list[Answer]) -> None:
    features = [
        {
            "type": "Feature",
            "geometry": answer.region.geometry,
            "properties": {
                "name": answer.region.name,
                "share": answer.share.estimate,
                "lower": answer.share.lower,
                "upper": answer.share.upper,
                "people": answer.people,
            },
        }
        for answer in answers
    ]
    head = json.dumps({"type": "FeatureCollection", **members})[:-1]
    lines = ",\n".join(json.dumps(feature, allow_nan=False) for feature in features)
    with replacing(path) as stream:
        stream.write(f'{head}, "features": [\n{lines}\n]}}\n'.encode())


def _show(answers: list[Answer], title: str) -> None:
    rows = []
    for answer in answers:
        share = answer.share
        shares = [f"{each:.2%}" for each in (share.estimate, share.lower, share.upper)]
        name = "".join(filter(str.isprintable, answer.region.name))[:NAME]
        rows.append((name, *shares, f"{answer.people:.0f}", f"{answer.in_cut_cells:.0%}"))
    show_table(title, ("region", "share", "lower", "upper", "people", "in cut cells"), rows)
    if cutting := sum(bool(answer.region.cut.any()) for answer in answers):
        click.echo(
            f"Regions that cut cells: {cutting} of {len(answers)}. Their intervals do not know "
            "where in a cell people are: draw regions along the edges of cells, or take finer cells"
        )
    outside = sum(
        not answer.share.lower - ROUNDING <= answer.share.estimate <= answer.share.upper + ROUNDING
        for answer in answers
    )
    if outside:
        click.echo(
            f"Shares outside of their intervals: {outside} of {len(answers)}. The counts speak "
            "against them, as is common where nearly all people crowd into a few cells"
        )
