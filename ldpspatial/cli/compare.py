"""``compare``: error curves of local, distributed and central releases on the same people."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpspatial.cli.documents import blamed
from ldpspatial.cli.options import (
    COLUMNS,
    Finite,
    column_options,
    fit_grid,
    grid_options,
    make_grid,
)
from ldpspatial.cli.output import progress, show, show_table
from ldpspatial.cli.output_files import check_kept
from ldpspatial.comparison.compare import compare as play
from ldpspatial.comparison.curves import error_curve, told
from ldpspatial.comparison.folder import RUNS, SETTINGS, check_labels, earlier_root, with_earlier
from ldpspatial.comparison.promises import Against, by_promise, without_promise
from ldpspatial.comparison.release_file import read_releases
from ldpspatial.comparison.results import TABLES, parts, write_results
from ldpspatial.comparison.runs import TRUTHS
from ldpspatial.comparison.scores import DEFAULT_METRICS, METRICS
from ldpspatial.errors import InputError
from ldpspatial.files.points import read_points
from ldpspatial.privacy.shuffling import amplified_epsilon
from ldpspatial.release.local import DiskAndSets, Matched
from ldpspatial.release.parameters import described
from ldpspatial.release.registry import find_releases, releases
from ldpspatial.release.release import Release
from ldpspatial.validate import MAX_CELLS, processes

DEFAULT_RELEASES = ("recommended", "distributed-levels", "central-levels")
DEFAULT_EPSILONS = (0.5, 1.0, 2.0, 5.0)


def _show_releases(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    rows: dict[str, str] = {}
    for name, release in releases().items():
        rows[name] = str(release.claim(1.0))
        if told := described(release):
            rows[name] += f"\n      {told}"
    rows[Matched.name] = (
        "a local release at the local privacy of another one, with its own claim\n"
        "      inner=NAME, to=NAME, cells=N, all three to be given"
    )
    rows[DiskAndSets.name] = (
        "what recommended:aim=cells is on a grid, with numbers of your own: some report by a disk\n"
        "      share=A, squared_radius=N, both to be given; sets=difference-sets"
    )
    show("Releases, what they promise at epsilon 1, and their parameters with defaults", rows)
    context.exit()


@click.command()
@click.argument("points", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), required=True,
    help="Folder of results; finished runs in it are kept.",
)  # fmt: skip
@click.option(
    "--cells", "sides", type=click.IntRange(1, MAX_CELLS), multiple=True, required=True,
    help="Cells along a side; repeat for several.",
)  # fmt: skip
@grid_options
@click.option(
    "--epsilon", "epsilons", type=float, multiple=True, default=DEFAULT_EPSILONS,
    show_default=True, help="Privacy loss; repeat for several.",
)  # fmt: skip
@click.option(
    "--release", "names", metavar="NAME[:PARAMETER=VALUE,...]", multiple=True,
    help="What to compare, with parameters of its own; repeat for several.  "
    f"[default: {', '.join(DEFAULT_RELEASES)}]",
)  # fmt: skip
@click.option(
    "--releases", "release_file", type=click.Path(path_type=Path),
    help="JSON file of releases to compare: a list of such texts, or of objects with the fields "
    "release, label (as you like) and a field for each parameter.",
)  # fmt: skip
@click.option(
    "--repeats", type=click.IntRange(1), default=5, show_default=True,
    help="Runs of each setting.",
)  # fmt: skip
@click.option(
    "--users", type=click.IntRange(1), multiple=True,
    help="Draw this many users for each repeat; all by default, repeat for several.",
)  # fmt: skip
@click.option(
    "--metric", "metrics", type=click.Choice(list(METRICS)), multiple=True,
    default=DEFAULT_METRICS, show_default=True, help="Errors to measure.",
)  # fmt: skip
@click.option(
    "--sigma", type=Finite(0), default=0.0, show_default=True,
    help="Compare heat maps: a Gaussian filter with a deviation of this many cells.",
)  # fmt: skip
@click.option(
    "--truth", type=click.Choice(TRUTHS), default="users", show_default=True,
    help="The map of the users drawn, of all users in the file, or of the visits of those drawn.",
)  # fmt: skip
@click.option(
    "--blocks", type=click.IntRange(1),
    help="Measure W1 and W2 between this many blocks a side: faster on large grids.",
)  # fmt: skip
@click.option(
    "--shuffle-delta", type=Finite(0, 1, min_open=True, max_open=True),
    help="Draw the curves also as if local reports had been shuffled, at this delta.",
)  # fmt: skip
@click.option(
    "--mixed", is_flag=True,
    help="Draw promises that cannot be compared into one figure as well, each curve marked.",
)  # fmt: skip
@column_options
@click.option("--user", help="Column that tells users apart; without it every row is a user.")
@click.option(
    "--jobs", type=int, default=-1, show_default=True,
    help="Processes; -1 takes every core.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), help="To repeat a comparison; drawn by default.")
@click.option(
    "--list-releases", is_flag=True, is_eager=True, expose_value=False,
    callback=_show_releases, help="Show all releases with their claims and parameters.",
)  # fmt: skip
def compare(**options: Any) -> None:
    """Compare what each trust model costs, on the same people.

    Every row of POINTS (CSV, TSV or Parquet) is one position; with --user, one person may hold
    many. Each release is run at each epsilon, several times, and its map is compared with
    theirs. Local releases trust nobody, distributed ones that enough clients are honest, central
    ones the server: a claim is stated in every row, and the same epsilon is not the same promise.

    \b
    Writes into --out:
      runs.jsonl         finished runs; start again with the same --out and they are not repeated
      errors.csv, errors.parquet
                         one row per run: setting, errors, claim, seed, versions
      curves.csv         means with 95 % intervals, and what kind of promise each is of
      METRIC-replacement.png
                         the error curves over the epsilon of one relation, replacement of a user
      METRIC-epsilon-RELATION.png
                         over the epsilon of each claim itself, a figure for each relation: replace,
                         zero, add-or-remove
      METRIC-shuffled.png
                         with --shuffle-delta: over replacement, with local reports shuffled
      METRIC-users-RELATION.png, METRIC-cells-RELATION.png
                         where --users or --cells vary and epsilon does not; where it does too,
                         a figure over epsilon for each of them
      METRIC-...-mixed.png
                         with --mixed: what was held apart, in one figure that marks each curve
    Releases whose promise is of another kind, per report, with a delta or under
    geo-indistinguishability, have figures of their own, whose names say so. A run whose delta is 1
    promises nothing and is left out of them. To a folder of finished runs more may be added: other
    releases, epsilons, repeats, numbers of users, cells or metrics. Only what is missing is played,
    and tables and figures hold all runs of the folder.

    \b
    Examples:
      ldpspatial compare visits.csv --cells 32 --out curves
      ldpspatial compare visits.csv --cells 32 --out curves --release sparse-emd:keep=200 \\
          --release adaptive-hierarchical:c=1,shard_size=1000 --release recommended:estimator=em
      ldpspatial compare checkins.parquet --user user --cells 64 --center 30.3,-97.75 \\
          --side-km 40 --release dam --release sparse-emd --epsilon 1 --users 100 --users 1000 \\
          --out by-users
    """
    out: Path = options["out"]
    processes("--jobs", options["jobs"])
    if options["shuffle_delta"]:
        _check_accountant(options["shuffle_delta"])
    inputs = {"POINTS": options["points"], "--releases": options["release_file"]}
    check_kept("--out", [out / name for name in (*TABLES, RUNS, SETTINGS)], inputs)
    wanted = _wanted(options["names"], options["release_file"])
    with _folder_is_out():
        check_labels(out, wanted)
    with progress("read positions") as (stage, advance), _folder_is_out():
        with blamed("POINTS", options["points"], **COLUMNS):
            people = read_points(
                options["points"], options["lat"], options["lon"], options["user"],
                plane=options["plane"] is not None, on_missing=options["on_missing"],
            )  # fmt: skip
        square = [options[key] for key in ("center", "side_km", "bounds", "plane")]
        largest = max(options["sides"])
        grid = make_grid(largest, *square) or fit_grid(people.coordinates, largest)
        stage("play")
        table = play(
            people,
            grid,
            options["epsilons"],
            wanted,
            options["repeats"],
            _generator(out, options["seed"]),
            users=options["users"] or None,
            cells=options["sides"],
            metrics=options["metrics"],
            sigma=options["sigma"],
            truth=options["truth"],
            blocks=options["blocks"],
            folder=out,
            jobs=options["jobs"],
            data=options["points"].name,
            progress=advance,
        )
        stage("write files")
        table = with_earlier(out, table)
        metrics = [name for name in METRICS if table[name].null_count < table.num_rows]
        delta, mixed = options["shuffle_delta"], options["mixed"]
        written = write_results(out, table, metrics, delta, mixed)
    _report(table, options["metrics"][0])
    _say_what_is_left_out(table)
    _say_what_is_held_apart(table, mixed)
    outside, absent = (table[name][0].as_py() for name in ("outside", "users_outside"))
    if outside:
        click.echo(f"Outside the square: {outside} of all positions, all that {absent} users have.")
    click.echo(f"Written to {out}: " + ", ".join(path.name for path in written))


@contextmanager
def _folder_is_out() -> Iterator[None]:
    """Let errors within call the folder of runs as it was typed."""
    try:
        yield
    except InputError as error:
        raise error.retold(lambda told: re.sub("^folder ", "--out ", told)) from None


def _wanted(names: tuple[str, ...], file: Path | None) -> dict[str, Release]:
    """Return what is to be compared by label: what is named, then what the file has."""
    if file is None:
        return find_releases(names or DEFAULT_RELEASES)
    wanted = find_releases(names) if names else {}
    for label, release in read_releases(file).items():
        if label in wanted:
            raise InputError(f"releases must have different labels, got {label!r} twice")
        wanted[label] = release
    return wanted


def _check_accountant(delta: float) -> None:
    """Say now rather than after all runs that the accountant of shuffled reports is missing."""
    try:
        amplified_epsilon(1.0, 2, delta)
    except ImportError as error:
        raise InputError(f"--shuffle-delta: {error}") from None


def _generator(out: Path, seed: int | None) -> np.random.Generator:
    """Return the generator of a new comparison; one that goes on has its own seed in --out."""
    earlier = earlier_root(out)
    if None not in (seed, earlier) and np.random.default_rng(seed).bytes(16).hex() != earlier:
        raise InputError(
            f"--seed must be that of the comparison in {out}, got {seed}: leave it out to go on, "
            "or take a new folder"
        )
    return np.random.default_rng(seed)


def _report(table: pa.Table, metric: str) -> None:
    """Print the curves of one metric, a table for each kind of promise, a line for each release."""
    for part in parts(table.filter(pc.is_valid(table[metric]))):
        places = sorted(pc.unique(part.table[part.setting]).to_pylist())
        header = ["release", "trust", *(f"{x:g}" for x in places)]
        for promise, runs in by_promise(part.table, part.setting).items():
            rows = []
            for label in pc.unique(runs["release"]).to_pylist():
                curve = error_curve(runs, label, metric, part.setting)
                shown = map(_with_interval, curve.mean, curve.lower, curve.upper)
                at = dict(zip(curve.x.tolist(), shown, strict=True))
                rows.append([told(curve), curve.model, *(at.get(x, "") for x in places)])
            title = f"{METRICS[metric].label}, over {part.setting}{part.told}: {promise}"
            show_table(title, header, rows)


def _say_what_is_left_out(table: pa.Table) -> None:
    reading: Against
    for reading, where in (("epsilon", "tables and figures"), ("replacement_epsilon", "figures")):
        for label, epsilons in without_promise(table, reading).items():
            at = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
            click.echo(
                f"No promise over {reading}, so left out of {where}: {label} at epsilon {at}, "
                "whose delta is 1 there."
            )


def _say_what_is_held_apart(table: pa.Table, mixed: bool) -> None:
    """Name promises between which no conversion leads, and what can be done about it."""
    kinds = by_promise(table, "replacement_epsilon")
    if len(kinds) == 1:
        return
    each = (f"{kind}: {', '.join(_private(rows))}" for kind, rows in kinds.items())
    line = f"Held apart, as no conversion leads from one to the other: {'; '.join(each)}."
    if not mixed:
        line += " --mixed draws them into one figure as well, and marks each curve."
    if any("geo-indistinguishability" in kind for kind in kinds):
        line += (
            " --release matched:inner=NAME,to=NAME,cells=N runs a local release at the local "
            "privacy of another."
        )
    click.echo(line)


def _private(table: pa.Table) -> list[str]:
    """Return the labels of what is no yardstick."""
    rows = table.filter(pc.not_equal(table["model"], "none"))
    return pc.unique(rows["release"]).to_pylist()  # type: ignore[no-any-return]


def _with_interval(mean: float, lower: float, upper: float) -> str:
    return f"{mean:.3g}" if np.isnan(upper) else f"{mean:.3g} [{lower:.2g}, {upper:.2g}]"
