"""``audit``: hold a mechanism or a collection document to its claim."""

import sys
from pathlib import Path

import click

from client_sdk import Collection, ResponseTable, response_table
from client_sdk.shared import MECHANISMS
from ldpspatial.cli.estimate import read_collection
from ldpspatial.cli.options import SQUARED_RADIUS_HELP
from ldpspatial.cli.output import progress, show
from ldpspatial.collecting.results import real_radius
from ldpspatial.privacy.audit import Audit
from ldpspatial.privacy.audit import audit as examine


@click.command()
@click.argument("subject", metavar="COLLECTION|MECHANISM")
@click.option("--epsilon", type=float, help="With a mechanism: privacy loss of one report.")
@click.option("--cells", type=int, help="With a mechanism: cells along a side.")
@click.option("--radius", type=int, help="With a mechanism: disk radius in cells.")
@click.option("--squared-radius", type=int, help=SQUARED_RADIUS_HELP)
@click.option("--draws", type=int, default=1_000_000, show_default=True, help="Reports to draw.")
def audit(
    subject: str,
    epsilon: float | None,
    cells: int | None,
    radius: int | None,
    squared_radius: int | None,
    draws: int,
) -> None:
    """Check the privacy of a mechanism, and its sampler.

    Prints the worst ratio between the probabilities of a report under two positions, as an exact
    fraction, and holds it against e^epsilon by a rigorous bound. Then draws a million reports
    through the device code and tests their distribution (false alarm 1e-6). The exit status is
    1 where a check fails.

    \b
    Examples:
      ldpspatial audit collection.json
      ldpspatial audit dam --epsilon 3.5 --cells 15
      ldpspatial audit disk --epsilon 3.5 --cells 15 --squared-radius 13
    """
    source = _source(subject, epsilon, cells, radius, squared_radius)
    with progress("draw and test reports"):
        result = examine(source, draws)
    show(f"{result.mechanism} on {result.cells} x {result.cells} cells", _rows(result))
    click.secho("passed" if result.passed else "FAILED", bold=True)
    if not result.passed:
        sys.exit(1)


def _source(
    subject: str,
    epsilon: float | None,
    cells: int | None,
    radius: int | None,
    squared_radius: int | None,
) -> Collection | ResponseTable:
    if subject in MECHANISMS:
        if epsilon is None or cells is None:
            raise click.UsageError("A mechanism needs --epsilon and --cells.")
        return response_table(subject, epsilon, cells, radius, squared_radius)
    if any(option is not None for option in (epsilon, cells, radius, squared_radius)):
        raise click.UsageError("A collection brings its own epsilon, cells and radius.")
    return read_collection(Path(subject))


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
