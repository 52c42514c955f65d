"""``plan``: what a collection will give, before it starts."""

from pathlib import Path

import click
import numpy as np

from client_sdk import Collection, Grid, response_table
from client_sdk.shared import MECHANISMS, UNIT
from ldpspatial.cli.options import MECHANISM_HELP, SIDE_KM, Numbers, centred_grid
from ldpspatial.cli.output import progress, show_table
from ldpspatial.cli.output_files import check_new, write_document
from ldpspatial.errors import InputError
from ldpspatial.estimation.field.estimator import FIELD
from ldpspatial.planning.designs import Design
from ldpspatial.planning.grid_size import with_ring
from ldpspatial.planning.plan import Plan
from ldpspatial.planning.plan import plan as make_plan
from ldpspatial.planning.series_plan import SeriesPlan
from ldpspatial.privacy.still_device import Probability


@click.command()
@click.option("--side-km", type=SIDE_KM, required=True, help="Side of the square in km.")
@click.option("--epsilon", type=float, required=True, help="Privacy loss of one report.")
@click.option(
    "--devices",
    type=int,
    required=True,
    help="Reports that will arrive; with --windows, the devices of the series.",
)
@click.option("--windows", type=int, help="Windows of time of a series; needs --answers.")
@click.option("--answers", type=int, help="Windows that each device answers, at most --windows.")
@click.option("--cells", type=int, multiple=True, help="A grid size to try; repeat for several.")
@click.option(
    "--mechanism", type=click.Choice(MECHANISMS), default="disk",
    show_default=True, help=MECHANISM_HELP,
)  # fmt: skip
@click.option(
    "--repeats",
    type=int,
    default=5,
    show_default=True,
    help="Collections played, 2 at least: they tell what is chance.",
)
@click.option(
    "--seed", type=click.IntRange(0), help="Seed of the simulated people, to repeat their maps."
)
@click.option(
    "--out", type=click.Path(path_type=Path),
    help="Collection document to write: the one that is recommended. Needs --center and --name.",
)  # fmt: skip
@click.option("--center", type=Numbers("LAT,LON"), help="With --out, centre of the square.")
@click.option("--name", help="With --out, what people call the collection.")
@click.option(
    "--ring", is_flag=True,
    help="With --out, collect from a square that is larger than the area, by the disk's radius: "
    "devices outside report from the edge. The area is written beside --out, for ranges --of.",
)  # fmt: skip
def plan(
    side_km: float,
    epsilon: float,
    devices: int,
    windows: int | None,
    answers: int | None,
    cells: tuple[int, ...],
    mechanism: str,
    repeats: int,
    seed: int | None,
    out: Path | None,
    center: tuple[float, float] | None,
    name: str | None,
    ring: bool,
) -> None:
    """Show the error to expect, and which grid to take.

    Plays whole collections in a synthetic city, as rough as real ones are, and measures the exact
    Wasserstein distance in metres, with a quick look (EM). "W2" is between the true and the
    estimated cell map; "grid" is what cells of that size lose by themselves; "total" bounds the
    distance from the people to the estimate. The grid to "take" is the finest whose total is within
    5 % of the smallest: fine cells cost no privacy, as the disk grows with them, and regions that
    cut cells need them. "k-RR" marks grids on which a report ignores distance. On that grid the
    recommended disk is then measured with the recommended estimator, the field. Where even that is
    not better by a tenth, and beyond chance, than a uniform map and than the field of reports that
    say nothing, nothing is recommended.

    With --out the recommended collection is written; simulate, estimate and ranges need no other
    choice.

    A series repeats the collection in --windows windows of time. Each device answers --answers of
    them, which it draws at random when it joins, and so loses answers x epsilon in all. A window
    is expected to hold devices x answers / windows reports, and the grids are planned for those.
    Below the advice stand the error of one window and that of all windows together, and what the
    reports tell of a device that stays in one cell: how often the attacker who is right most often
    names that cell. Fewer answers protect it better and make the maps of windows worse.

    \b
    Examples:
      ldpspatial plan --side-km 12 --epsilon 3.5 --devices 50000
      ldpspatial plan --side-km 12 --epsilon 3.5 --devices 50000 \\
          --center 48.0,11.0 --name "noon in town" --out collection.json
      ldpspatial plan --side-km 40 --epsilon 1.4 --devices 1000000 --cells 10 --cells 20
      ldpspatial plan --side-km 12 --epsilon 3.5 --devices 40000 --windows 7 --answers 1
    """
    if (windows is None) != (answers is None):
        missing = "--windows" if windows is None else "--answers"
        raise InputError(f"--windows and --answers must be given together, got no {missing}")
    if out is not None:
        if center is None or name is None or windows is not None:
            raise click.UsageError("--out needs --center and --name, and no --windows.")
        _check_writable(out, ring)
        # Whatever is wrong with name, place or epsilon is told before minutes of playing.
        Collection.create(name, centred_grid(center, side_km * 1000, 64), epsilon)
    elif center is not None or name is not None or ring:
        raise click.UsageError("--center, --name and --ring go with --out.")
    with progress("play collections") as (stage, advance):
        result = make_plan(
            side_km * 1000,
            epsilon,
            devices,
            np.random.default_rng(seed),
            cells or None,
            mechanism,
            repeats=repeats,
            progress=advance,
            windows=windows,
            answers=answers,
            on_stage=stage,
        )
    _show(result)
    for warning in result.warnings:
        click.echo(f"Warning: {warning}", err=True)
    click.echo(_advice(result, repeats) if result.tells_something else _no_advice(result))
    if result.forged:
        click.echo(_forged(result))
    if result.series is not None:
        _show_series(result.series, result.epsilon, result.recommended.cell_m)
    if out is not None and center is not None and name is not None:
        _write(out, center, name, result, ring)


def _check_writable(out: Path, ring: bool) -> None:
    """Refuse files that are there, and a folder that is not."""
    check_new(out)
    if ring:
        check_new(_area_file(out), "the area beside out")
    if not out.absolute().parent.is_dir():
        raise InputError(f"out must lie in a folder that exists, got {str(out)!r}")


def _write(out: Path, center: tuple[float, float], name: str, result: Plan, ring: bool) -> None:
    """Write the collection that a plan recommends, and the area where there is a ring around it."""
    if not result.tells_something:
        raise InputError(f"nothing is recommended, so {out} is not written")
    best = result.recommended_design
    mechanism = best.mechanism
    squared = best.squared_radius
    area = centred_grid(center, result.side_m, result.recommended.cells)
    grid = area
    if ring:
        table = response_table(mechanism, result.epsilon, area.cells, squared_radius=squared)
        grid = centred_grid(center, *with_ring(result.side_m, area.cells, table.radius))
    made = Collection.create(name, grid, result.epsilon, mechanism, squared_radius=squared)
    write_document(out, made.to_json())
    click.echo(f"Written to {out}: {made.digest}")
    if best.rule != FIELD:
        click.echo(f"Pass --estimator {best.rule} to what reads it: by default that is {FIELD}.")
    if ring:
        _write_area(_area_file(out), area)


def _write_area(file: Path, area: Grid) -> None:
    """Write a square as a table of regions with one row."""
    ends = (area.south, area.west, area.south + area.height, area.west + area.width)
    row = ",".join(["area", *(f"{end / UNIT:.7f}" for end in ends)])
    write_document(file, f"name,south,west,north,east\n{row}\n")
    click.echo(f"Written to {file}: the area, for ranges --of")


def _area_file(out: Path) -> Path:
    return out.with_name(f"{out.stem}-area.csv")


def _show(result: Plan) -> None:
    series = result.series
    devices = f"{result.devices} devices"
    if series is not None:
        devices = (
            f"{series.devices} devices, each answering {series.answers} of {series.windows} "
            f"windows: {result.devices} reports a window"
        )
    title = (
        f"{devices}, {result.epsilon:g}-LDP per report, "
        f"{result.side_m / 1000:g} km square, {result.mechanism}"
    )
    header = ("cells", "cell m", "radius", "W2 m", "grid m", "total m", "misplaced", "note")
    taken = result.recommended if result.tells_something else None
    rows = []
    for row in result.rows:
        notes = ("k-RR", row.is_randomised_response), ("take", row is taken)
        rows.append(
            (
                str(row.cells),
                _metres(row.cell_m),
                str(row.radius),
                f"{_metres(row.w2_m)} ± {_metres(row.standard_error_m)}",
                _metres(row.resolution_m),
                _metres(row.total_m),
                f"{row.misplaced:.0%}",
                ", ".join(note for note, applies in notes if applies),
            )
        )
    show_table(title, header, rows)


def _advice(result: Plan, repeats: int) -> str:
    """Say which grid to take, what to collect with on it, and how that measured."""
    grid = result.recommended
    best = result.recommended_design
    other = next(design for design in result.designs if design is not best)
    options = f"--mechanism {best.mechanism}"
    aside = ""
    if best.squared_radius is not None:
        options += f" --squared-radius {best.squared_radius}{_single_cell(best)}"
        aside = f" (what --for-users {result.devices} takes)"
    level = ""
    if result.designs[1].over_planned.is_level:
        level = f"; over {repeats} collections that may be chance"
    why = ", the finest whose total is within 5 % of the smallest" if len(result.rows) > 1 else ""
    return (
        f"Take {grid.cells} x {grid.cells} cells of {_metres(grid.cell_m)} m{why}: people are then "
        f"off by about {_metres(best.total_m)} m in such a city with people drawn anew "
        f"(root mean square); a map that knows nothing is off by {_metres(result.uniform_m)} m.\n"
        f"Collect with {options} and estimate with --estimator {best.rule}{aside}: "
        f"{_measured(best)}, against {_measured(other)} with {other.mechanism}"
        f"{_single_cell(other)} "
        f"and --estimator {other.rule}{level}."
    )


def _forged(result: Plan) -> str:
    """Say how far forged reports can move the map."""
    cell_m = result.recommended.cell_m
    moved = ", ".join(
        f"{each.share:.0%} by up to {_metres(each.w2 * cell_m)} m" for each in result.forged
    )
    return f"Forged reports can move such a map, with {result.mechanism}: {moved}."


def _no_advice(result: Plan) -> str:
    """Say how far off people are with either design, where not collecting at all is as good."""
    grid = result.recommended
    best = result.recommended_design
    other = next(design for design in result.designs if design is not best)
    return (
        f"Nothing to recommend: on {grid.cells} x {grid.cells} cells people are off by about "
        f"{_metres(best.total_m)} m with {best.mechanism}{_single_cell(best)} and --estimator "
        f"{best.rule} in such a city with people drawn anew (root mean square), which is hardly "
        "better, or no better, than what needs no report, off by "
        f"{_metres(best.nothing_m)} m; with "
        f"{other.mechanism}{_single_cell(other)} and --estimator {other.rule} they are off by "
        f"{_metres(other.total_m)} m. It takes more devices, a larger epsilon or other cells."
    )


def _show_series(series: SeriesPlan, epsilon: float, cell_m: float) -> None:
    """Show the maps of a series, and what its reports tell of a device that stays."""
    design = series.design
    maps = [("one window", series.window)]
    if series.windows > 1:
        maps.append((f"all {series.windows} together", series.together))
    show_table(
        f"Maps of the series on that grid, {design.mechanism} and --estimator {design.rule}",
        ("map", "reports", "W2 m", "total m"),
        [
            (
                name,
                str(each.reports),
                f"{_metres(each.w2_m)} ± {_metres(each.standard_error_m)}",
                _metres(each.total_m),
            )
            for name, each in maps
        ],
    )
    if series.windows > 1:
        click.echo(
            "All together they are a map of people who are in every window where they are in the "
            "others, as they are here; they are not a map of people who move."
        )
    # One report has an exact answer; the later entries of equal keys say the same more precisely.
    shown = {
        series.windows: ("all windows answered", _percent(series.every_window.exact_cell)),
        series.answers: ("this series", _percent(series.risk.exact_cell)),
    }
    first, _ = shown.get(1, ("one report", ""))
    shown[1] = first, f"{series.one_report:.1%}"
    show_table(
        "A device that stays in one cell: how often the best attacker names that cell, of "
        f"{_metres(cell_m)} m",
        ("reports", "what it answers", "loss", "named"),
        [
            (str(reports), called, f"{reports * epsilon:g}", named)
            for reports, (called, named) in sorted(shown.items())
        ],
    )


def _percent(risk: Probability) -> str:
    return f"{risk.estimate:.1%} ± {risk.standard_error:.1%}"


def _single_cell(design: Design) -> str:
    return " (a single cell: k-ary randomised response)" if design.is_randomised_response else ""


def _measured(design: Design) -> str:
    w2 = _metres(design.w2_m)
    chance = _metres(design.standard_error_m)
    return f"total {_metres(design.total_m)} m, W2 {w2} ± {chance} m"


def _metres(length: float) -> str:
    return f"{length:.0f}" if length >= 10 else f"{length:.2g}"
