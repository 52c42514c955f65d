"""``plan``: what a collection will give, before it starts."""

import click
import numpy as np
from rich.table import Table

from ldpspatial.cli.output import console, progress
from ldpspatial.planning import Plan
from ldpspatial.planning import plan as make_plan


@click.command()
@click.option("--side-km", type=float, required=True, help="Side of the square in km.")
@click.option("--epsilon", type=float, required=True, help="Privacy loss of one report.")
@click.option("--devices", type=int, required=True, help="Reports that will arrive.")
@click.option("--cells", type=int, multiple=True, help="A grid size to try; repeat for several.")
@click.option(
    "--mechanism", type=click.Choice(["dam", "dam-ns", "huem"]), default="dam", show_default=True
)
@click.option("--repeats", type=int, default=3, show_default=True, help="Collections a map.")
@click.option("--seed", type=int, help="Seed of the simulated people, to repeat their maps.")
def plan(
    side_km: float,
    epsilon: float,
    devices: int,
    cells: tuple[int, ...],
    mechanism: str,
    repeats: int,
    seed: int | None,
) -> None:
    """Show the error to expect for several grid sizes, and which grid to take.

    Plays whole collections on three reference maps and measures the exact Wasserstein distance
    in metres. "W2" is between the true and the estimated cell map; "grid" is what cells of
    that size lose by themselves; "total" bounds the distance from the people to the estimate,
    and the recommended grid has the smallest, up to 5 %.

    \b
    Examples:
      ldpspatial plan --side-km 12 --epsilon 3.5 --devices 50000
      ldpspatial plan --side-km 40 --epsilon 1.4 --devices 1000000 --cells 10 --cells 20
    """
    with progress("play collections") as (_, advance):
        result = make_plan(
            side_km * 1000,
            epsilon,
            devices,
            np.random.default_rng(seed),
            cells or None,
            mechanism,
            repeats=repeats,
            progress=advance,
        )
    console.print(_table(result))
    for warning in result.warnings:
        click.echo(f"Warning: {warning}")
    best = result.recommended
    click.echo(
        f"Take {best.cells} cells of {best.cell_m:.0f} m: people are then off by at most "
        f"{best.total_m:.0f} m (root mean square); a map that knows nothing is off by "
        f"{result.uniform_m:.0f} m."
    )


def _table(result: Plan) -> Table:
    title = (
        f"{result.devices} devices, {result.epsilon:g}-LDP per report, "
        f"{result.side_m / 1000:g} km square, {result.mechanism}"
    )
    table = Table(title=title, title_justify="left")
    for name in ("cells", "cell m", "radius", "W2 m", "grid m", "total m", "misplaced", ""):
        table.add_column(name, justify="right")
    for row in result.rows:
        note = "k-RR" if row.is_randomised_response else ""
        table.add_row(
            str(row.cells),
            f"{row.cell_m:.0f}",
            str(row.radius),
            f"{row.w2_m:.0f} ± {row.standard_error_m:.0f}",
            f"{row.resolution_m:.0f}",
            f"{row.total_m:.0f}",
            f"{row.misplaced:.0%}",
            f"{note} take".strip() if row is result.recommended else note,
        )
    return table
