"""``audit``: hold a mechanism or a collection document to its claim."""

import sys
from math import floor, isinf
from pathlib import Path

import click
import numpy as np
from click.core import ParameterSource

from client_sdk import Collection, ResponseTable, response_table
from client_sdk.shared import MECHANISMS
from ldpspatial.cli.documents import read_collection
from ldpspatial.cli.options import SQUARED_RADIUS_HELP, check_squared_radius
from ldpspatial.cli.output import progress, show
from ldpspatial.collecting.results import real_radius
from ldpspatial.privacy.audit import Audit
from ldpspatial.privacy.audit import audit as examine
from ldpspatial.release.attack import Attack, attack
from ldpspatial.release.local import Recommended
from ldpspatial.release.local.disks.dam import DiskRelease
from ldpspatial.release.registry import find_releases, release_names
from ldpspatial.release.release import Release


@click.command()
@click.argument("subject", metavar="COLLECTION|MECHANISM|RELEASE")
@click.option(
    "--epsilon", type=float, help="Without a collection: the privacy loss that is claimed."
)
@click.option("--cells", type=int, help="Without a collection: cells along a side.")
@click.option("--radius", type=int, help="With a mechanism: disk radius in cells.")
@click.option("--squared-radius", type=int, help=SQUARED_RADIUS_HELP)
@click.option(
    "--draws",
    type=int,
    default=1_000_000,
    show_default=True,
    help="With a mechanism or a collection: reports to draw.",
)
@click.option(
    "--runs",
    type=int,
    default=2_000,
    show_default=True,
    help="With a release that is not a mechanism: runs on each of two inputs.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of those runs.")
@click.pass_context
def audit(
    ctx: click.Context,
    subject: str,
    epsilon: float | None,
    cells: int | None,
    radius: int | None,
    squared_radius: int | None,
    draws: int,
    runs: int,
    seed: int,
) -> None:
    """Check the privacy of a mechanism or a release, and its sampler.

    Prints the worst ratio between the probabilities of a report under two positions, as an exact
    fraction, and holds it against e^epsilon by a rigorous bound. Then draws a million reports
    through the device code and tests their distribution (false alarm 1e-6). The exit status is
    1 where a check fails.

    A release that draws from no table of whole weights, of this package or another (module:Name),
    is attacked instead: it runs on two inputs that its claim calls neighbours, on a map of few
    cells, and its maps must not tell the two apart better than the claim allows. That finds a
    release with too little noise, and proves nothing about one that passes. A release may be given
    parameters, as in ``compare``: name:parameter=value,...

    \b
    Examples:
      ldpspatial audit collection.json
      ldpspatial audit dam --epsilon 3.5 --cells 15
      ldpspatial audit disk --epsilon 3.5 --cells 15 --squared-radius 13
      ldpspatial audit sparse-emd --epsilon 1 --cells 2 --runs 20000
      ldpspatial audit flat:shard_size=100,drop_out=0 --epsilon 1 --cells 2
    """
    source = _source(subject, epsilon, cells, radius, squared_radius)
    if isinstance(source, Release):
        _refuse(ctx, "is for mechanisms and collections", "draws")
        passed = _attack(subject, source, float(epsilon or 0), int(cells or 0), runs, seed)
    else:
        _refuse(ctx, "are for releases that draw from no table of weights", "runs", "seed")
        with progress("draw and test reports"):
            result = examine(source, draws)
        show(f"{result.mechanism} on {result.cells} x {result.cells} cells", _rows(result))
        passed = result.passed
    click.secho("passed" if passed else "FAILED", bold=True)
    if not passed:
        sys.exit(1)


def _refuse(ctx: click.Context, rule: str, *names: str) -> None:
    """Refuse options that were given and would be ignored."""
    if any(ctx.get_parameter_source(name) is not ParameterSource.DEFAULT for name in names):
        options = " and ".join(f"--{name}" for name in names)
        raise click.UsageError(f"{options} {rule}.")


def _source(
    subject: str,
    epsilon: float | None,
    cells: int | None,
    radius: int | None,
    squared_radius: int | None,
) -> Collection | ResponseTable | Release:
    is_known = subject in MECHANISMS or subject in release_names()
    if not is_known and (Path(subject).exists() or ":" not in subject):
        if any(option is not None for option in (epsilon, cells, radius, squared_radius)):
            if not Path(subject).exists():
                raise click.UsageError(f"No mechanism, release or file is called {subject!r}.")
            raise click.UsageError("A collection brings its own epsilon, cells and radius.")
        return read_collection(Path(subject))
    if epsilon is None or cells is None:
        raise click.UsageError("A mechanism or a release needs --epsilon and --cells.")
    if subject in MECHANISMS:
        check_squared_radius(subject, squared_radius)
        return response_table(subject, epsilon, cells, radius, squared_radius)
    if radius is not None or squared_radius is not None:
        raise click.UsageError("--radius and --squared-radius are for mechanisms.")
    (release,) = find_releases([subject]).values()
    if isinstance(release, Recommended):
        release = release.chosen(cells, epsilon)
    return release.table(cells, epsilon) if isinstance(release, DiskRelease) else release


def _attack(
    called: str, release: Release, epsilon: float, cells: int, runs: int, seed: int
) -> bool:
    with progress("run on two inputs") as (_, advance):
        found = attack(release, epsilon, cells, runs, np.random.default_rng(seed), advance)
    rows = {
        "claim": str(found.claim),
        "loss that the claim allows": "any" if isinf(found.allowed) else f"{found.allowed:.6g}",
        "loss that was seen": (f"{_least(found.seen)} at least" if found.seen else "none")
        + f", from {runs:,} runs on each input",
        **(
            {"what that rules out": _ruled_out(found, epsilon)}
            if found.passed and not isinf(found.allowed)
            else {}
        ),
        **({} if found.passed else {"told apart by": found.by}),
    }
    show(f"{called} on {cells} x {cells} cells", rows)
    return found.passed


def _ruled_out(found: Attack, epsilon: float) -> str:
    """Return for which epsilons so little noise would be refused; losses may be of two people."""
    if not found.seen:
        return "nothing: these inputs and --runs tell nothing apart"
    return f"as little noise at any --epsilon below {_least(epsilon * found.power)}, and no more"


def _least(loss: float) -> str:
    """Return a bound from below, which is never rounded up."""
    return f"{floor(1000 * loss) / 1000:g}"


def _rows(result: Audit) -> dict[str, str]:
    promised = {True: "yes", False: "NO", None: "unknown name"}[result.as_promised]
    rows = {
        "claim": f"local, {result.epsilon:g}-LDP per report",
        "disk radius": f"{result.radius}{real_radius(result.squared_radius)}"
        + (" (k-ary randomised response)" if result.radius == 0 else ""),
        "output cells": str(result.output_size),
        "max weight / base weight": f"{result.max_ratio} = {float(result.max_ratio):.12g}",
        "worst ratio over positions": f"{result.realised_ratio} = e^{result.realised_epsilon:.12g}",
        "at most e^epsilon": "yes, exactly" if result.holds else "NO",
        "unused epsilon": f"{result.unused_epsilon:.3g}",
        "same total for every position": "yes" if result.same_total else "NO",
        "the table its name promises": promised,
        "compiled = plain sampler": "yes" if result.samplers_agree else "NO",
    }
    for test in result.tests:
        rows[f"{test.sampler} sampler at {test.cell}, {test.bins}"] = (
            f"chi-square {test.statistic:.0f}, {test.degrees} degrees of freedom, "
            f"p = {test.p_value:.3g}{'' if test.ok else '  FAILED'}"
        )
    return rows
