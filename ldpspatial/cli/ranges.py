"""``ranges``: how many people are in each region of a file, from an estimate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click

from client_sdk import Grid
from ldpspatial.cli.documents import blamed
from ldpspatial.cli.options import Finite
from ldpspatial.cli.output import progress, show_table
from ldpspatial.cli.output_files import check_output, placed, results_beside
from ldpspatial.collecting.region_changes import RegionChanges, region_changes
from ldpspatial.collecting.region_shares import RegionShares, region_shares
from ldpspatial.collecting.region_tables import write_csv, write_geojson, write_geopackage
from ldpspatial.collecting.results import read_estimate
from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.regions import COUNT_METHODS, LARGE
from ldpspatial.estimation.result import Estimate
from ldpspatial.files.gis import check_installed
from ldpspatial.files.regions import read_area, read_regions
from ldpspatial.files.side_information import read_within
from ldpspatial.places.regions import Region, clipped, cut_cells
from ldpspatial.places.within import Within

Found = TypeVar("Found", RegionShares, RegionChanges)

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
    "--gpkg", "packed", type=click.Path(path_type=Path),
    help="The same for a GIS, as the layer regions of a GeoPackage, .gpkg.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace earlier files of these names.")
@click.option("--layer", help="Layer of REGIONS to read, where a GIS file has several.")
@click.option(
    "--name-column", help="Column or property of REGIONS with the names.  [default: name]"
)
@click.option(
    "--of", "area", type=click.Path(path_type=Path),
    help="File of an area, as REGIONS: shares are of the people in it, the rest is left out.",
)  # fmt: skip
@click.option(
    "--since", "before", type=click.Path(path_type=Path),
    help="An earlier estimate of the same grid: tell how much shares changed since then.",
)  # fmt: skip
@click.option(
    "--within", "public", type=click.Path(path_type=Path),
    help="A public file of where people may be inside cells, with more detail than these: venues, "
    "towns, buildings as polygons, or a map of smaller cells. It must not come from the reports.",
)  # fmt: skip
@click.option("--within-layer", help="Layer of --within, where a GIS file has several.")
@click.option("--within-column", help="Which numbers of --within to read.")
@click.option(
    "--level", type=Finite(0, 1, min_open=True, max_open=True), default=0.95,
    show_default=True, help="Probability with which one interval covers the truth.",
)  # fmt: skip
@click.option(
    "--method", type=click.Choice(COUNT_METHODS), default="auto", show_default=True,
    help="auto is posterior, but fisher where reports tell about as much alone, or contradict "
    "it. The method scores, for reports that are sets, is there for objects in Python only.",
)  # fmt: skip
@click.option(
    "--forged", type=Finite(1e-4, 1, max_open=True), metavar="SHARE",
    help="Tell how far forgers of this share of all reports, such as 0.01, can move each region. "
    "It takes seconds a region, on 64 cells a side some ten.",
)  # fmt: skip
def ranges(
    estimate: Path,
    regions: Path,
    table: Path | None,
    drawn: Path | None,
    packed: Path | None,
    overwrite: bool,
    layer: str | None,
    name_column: str | None,
    area: Path | None,
    before: Path | None,
    public: Path | None,
    within_layer: str | None,
    within_column: str | None,
    level: float,
    method: str,
    forged: float | None,
) -> None:
    """Tell how many people are in rectangles and polygons.

    ESTIMATE is the folder that simulate or estimate wrote, or the estimate.npz in it. REGIONS is a
    table (CSV, TSV or Parquet) of rectangles with the columns name, south, west, north and east,
    or a file of polygons. GeoJSON, longitude first, needs the extra regions: pip install
    "ldpspatial[regions]". Shapefile (.shp or .zip), GeoPackage, FlatGeobuf, KML, MapInfo and
    GeoParquet need the extra gis: pip install "ldpspatial[gis]"; their coordinates are turned to
    degrees where the map is on the globe, and taken as they are on a plane.

    Each region gets its share of all people, an interval, people (share times reports), and the
    shares of the cells that it covers wholly and of those that it touches. A cut cell counts with
    its covered part, as if its people were spread evenly in it; the CSV says how much of the share
    is in such cells. Of a region that leaves the map, the part in it counts.

    With --within, cut cells are divided as the public file says, as far as the reports, which tell
    how people divide between cells, find it right; the rest is divided by area. It reads what
    --prior of estimate reads, and polygons in it need the extra regions.

    Devices outside of the square report from its edge. Collect a square that is larger than the
    area which matters by a ring of some disk radii, and give the area to --of: shares are then of
    the people in the area, and the ring is left out.

    With --since, each region gets the change of its share, ESTIMATE's minus the earlier one, with
    an interval. It is narrowest for two windows that "ldpspatial series estimate" mapped together;
    estimates of different reports that were made apart can be compared, too.

    With --forged, each region gets two ranges of points by which its share moves if so much of all
    reports is forged by people who know the table and the map: what attacks reached that were
    tried, and what is proved of every forgery, for the map of maximum likelihood of many reports.

    Intervals cover the people in the region, every one at its level by itself: of 100 at 95 %,
    about five miss. They account for the noise of the reports and for where people may be within a
    cell. Fine cells make them narrow.

    \b
    Methods:
      posterior   any size, narrow: from the samples of rule field; where the estimate has
                  none, a field is fitted to its counts, in seconds
      fisher      right for every map, and wide; to 64 cells a side

    \b
    A table of two regions of the map that simulate --map normal draws:
      name,south,west,north,east
      centre,-1,-1,1,1
      north,0,-9,9,9

    \b
    Examples:
      ldpspatial ranges result regions.csv --csv shares.csv --geojson shares.geojson
      ldpspatial ranges result/estimate.npz districts.geojson --level 0.9 --csv shares.csv
      ldpspatial ranges result districts.geojson --of city.geojson
      ldpspatial ranges result districts.geojson --within venues.csv
      ldpspatial ranges result districts.geojson --forged 0.01 --csv shares.csv
      ldpspatial ranges week/window-5 districts.geojson --since week/window-1 --csv changes.csv
      ldpspatial ranges result city.gpkg --layer districts --name-column NAMN --gpkg shares.gpkg
    """
    if public is None and (within_layer or within_column) is not None:
        raise click.UsageError("--within-layer and --within-column need --within.")
    if before is not None and public is not None:
        raise click.UsageError("--since takes no --within.")
    if before is not None and method not in ("auto", "posterior"):
        raise click.UsageError("--since needs --method posterior or auto.")
    if forged is not None and (before is not None or area is not None):
        raise click.UsageError("--forged takes neither --since nor --of.")
    outputs = {"--csv": table, "--geojson": drawn, "--gpkg": packed}
    results = results_beside(estimate) + ([] if before is None else results_beside(before))
    _check_outputs(outputs, overwrite, (estimate, regions, area, before, public, *results))
    found: RegionShares | RegionChanges
    with progress("read") as (stage, advance):
        with blamed("ESTIMATE", estimate):
            collection, result = read_estimate(estimate)
        earlier = None if before is None else _earlier(before, collection.grid)
        stage("regions")
        with blamed("REGIONS", regions, layer="--layer", name_column="--name-column"):
            wanted = read_regions(regions, collection.grid, layer, name_column)
        covered = None if area is None else _area(area, collection.grid)
        asked = _in_area(wanted, covered, collection.grid)
        within = None
        if public is not None:
            within = _within(public, collection.grid, within_column, within_layer)
        stage("intervals" if forged is None else "intervals and forged reports")
        if before is None or earlier is None:
            of = None if covered is None else [covered]
            found = region_shares(result, asked, level, method, advance, of, within, forged)
            found = _with_regions(found, wanted)
        else:
            whole = None if covered is None else covered.weights
            with blamed("--since", before, earlier="--since"):
                found = region_changes(earlier, result, asked, level, advance, whole)
            found = _with_regions(found, wanted)
    _write(outputs, collection.grid, found, overwrite)
    if isinstance(found, RegionChanges):
        _show_changes(found, asked)
    else:
        _show(found)
        _tell_of_within(found, within)
    _tell_of_area(asked, covered)
    for written in filter(None, outputs.values()):
        click.echo(f"Written to {written}")


def _write(
    outputs: Mapping[str, Path | None],
    grid: Grid,
    found: RegionShares | RegionChanges,
    overwrite: bool,
) -> None:
    """Write the files that were asked for."""
    for option, path in outputs.items():
        if path is None:
            continue
        with placed(option, path, overwrite) as file:
            if option == "--csv":
                write_csv(file, found)
            elif option == "--geojson":
                write_geojson(file, grid, found)
            else:
                write_geopackage(file, grid, found)


def _earlier(path: Path, grid: Grid) -> Estimate:
    """Read the earlier estimate, which must be of the same grid."""
    with blamed("--since", path):
        collection, found = read_estimate(path)
    if collection.grid != grid:
        raise InputError(
            f"--since must be an estimate of the same grid, got {str(path)!r}, whose square or "
            "number of cells is another one"
        )
    return found


def _area(path: Path, grid: Grid) -> Region:
    """Return the area that the regions of a file make together."""
    with blamed("--of", path):
        return read_area(path, grid)


def _within(path: Path, grid: Grid, column: str | None, layer: str | None) -> Within:
    """Return the public weights of a file."""
    with blamed("--within", path, column="--within-column", layer="--within-layer"):
        return read_within(path, grid, column, layer)


def _check_outputs(
    outputs: Mapping[str, Path | None], overwrite: bool, inputs: Iterable[Path | None]
) -> None:
    read = [each for each in inputs if each is not None]
    for option, path in outputs.items():
        if path is not None:
            check_output(option, path, (f".{option[2:]}",), overwrite, read)
    if outputs["--gpkg"] is not None:
        check_installed()


def _show(shares: RegionShares) -> None:
    title = f"{100 * shares.level:.12g} % intervals by {shares.method}, {shares.n} reports"
    if shares.of_all < 1:
        title += f", {shares.of_all:.1%} of them from the area"
    header: tuple[str, ...] = ("region", "share", "lower", "upper", "people", "inside to touched")
    if shares.forged is not None:
        header += (f"{100 * shares.forged:.3g} % forged", "at most")
    rows = []
    for row in shares.rows:
        share = row.share
        parts = [f"{each:.2%}" for each in (share.estimate, share.lower, share.upper)]
        between = f"{row.wholly_inside:.2%} to {row.touched:.2%}"
        moved = () if row.moved is None else tuple(map(_points, (row.moved[:2], row.moved[2:])))
        told = (*parts, f"{row.people:.0f}", between, *moved)
        rows.append((_name(row.region), *_known_of(row.region, told)))
    show_table(title, header, rows)
    if shares.forged is not None:
        click.echo(
            f"If {100 * shares.forged:.3g} % of all reports are forged, attacks that were tried "
            "move shares by so many points; no forgery moves those of maximum likelihood by more "
            "than the last column (proved, for many reports)"
        )
    if any(row.method != shares.method for row in shares.rows):
        alone = sum(row.method == "fisher" for row in shares.rows)
        click.echo(
            f"Regions told by fisher: {alone} of {len(rows)}, the others by posterior. Files say "
            "in their column method which"
        )
    _tell_of_edges(shares.regions)
    if outside := sum(row.is_outside for row in shares.rows):
        click.echo(
            f"Shares outside of their intervals: {outside} of {len(rows)}. The counts speak "
            "against them, as is common where nearly all people crowd into a few cells"
        )


def _show_changes(changes: RegionChanges, parts: Sequence[Region]) -> None:
    rows = []
    for row in changes.rows:
        change = row.change
        shares = [f"{each:.2%}" for each in (row.share_before, row.share)]
        points = [f"{100 * each:+.2f}" for each in (change.estimate, change.lower, change.upper)]
        told = (*shares, *points, "yes" if row.is_sure else "-")
        rows.append((_name(row.region), *_known_of(row.region, told)))
    title = (
        f"{100 * changes.level:.12g} % intervals of changes, {changes.method}, "
        f"{changes.n_before} and {changes.n} reports"
    )
    header = ("region", "before", "share", "change in points", "lower", "upper", "sure")
    show_table(title, header, rows)
    weights = [part.weights for part in parts]
    if small := sum(each.sum() < LARGE and bool(cut_cells(each).any()) for each in weights):
        click.echo(
            f"Regions of less than {LARGE:g} cells: {small} of {len(rows)}. All people of a cell "
            "may have come into such a region, or left it, for which these intervals do not allow"
        )
    _tell_of_edges(changes.regions)


def _known_of(region: Region, told: Sequence[str]) -> Sequence[str]:
    """Return what is told of a region, or that nothing is known of one that misses the map."""
    return told if region.on_map else ["-"] * len(told)


def _points(moved: Sequence[float]) -> str:
    """Return how far a share moves, down and up, in points."""
    return " to ".join(f"{100 * each:+.2f}" for each in moved)


def _name(region: Region) -> str:
    return "".join(filter(str.isprintable, region.name))[:NAME]


def _with_regions(found: Found, regions: Sequence[Region]) -> Found:
    """Return what was found of the parts of regions in an area, with the regions as they are."""
    rows = [replace(row, region=each) for row, each in zip(found.rows, regions, strict=True)]
    return replace(found, rows=tuple(rows))


def _in_area(regions: Sequence[Region], area: Region | None, grid: Grid) -> Sequence[Region]:
    return regions if area is None else [clipped(grid, region, area) for region in regions]


def _tell_of_area(parts: Sequence[Region], area: Region | None) -> None:
    """Say how many regions on the map have no part in an area: they hold none of its people."""
    missed = sum(part.on_map > 0 and not part.weights.any() for part in parts)
    if area is not None and missed:
        click.echo(f"Regions on the map that lie outside of the area: {missed} of {len(parts)}")


def _tell_of_within(found: RegionShares, within: Within | None) -> None:
    if within is not None:
        click.echo(
            f"--within places people in {within.known.sum()} of {within.known.size} cells. By the "
            f"reports it is trusted by {found.trust:.2f} (1: it divides cells, 0: area does)"
        )


def _tell_of_edges(regions: Sequence[Region]) -> None:
    if beyond := [region for region in regions if region.on_map < WHOLE]:
        wholly = sum(not region.on_map for region in beyond)
        click.echo(
            f"Regions that leave the map: {len(beyond)} of {len(regions)}, {wholly} of them "
            "wholly. Shares are those of their parts in the square"
            + ("; nothing is known of a region with no part in it" if wholly else "")
        )
