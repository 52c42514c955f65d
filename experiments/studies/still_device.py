"""How surely averaging locates a device that stays: the table of docs/privacy.md, section 4.1."""

from math import exp

import click
import numpy as np

from client_sdk import response_table
from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.privacy.still_device import still_device_risk

CELLS = 15
EPSILONS = (1.0, 3.5)
REPORTS = (1, 2, 4, 7, 30, 90, 365)


@click.command("still-device")
@click.option("--trials", default=1_000_000, show_default=True, type=click.IntRange(2),
              help="Devices simulated for each number of reports.")  # fmt: skip
@click.option("--seed", default=1, show_default=True)
@click.option("--write", is_flag=True, help="Put the table into docs/privacy.md.")
def still_device(trials: int, seed: int, write: bool) -> None:
    """Show how often the exact Bayes attacker names the cell of a device that stays.

    DAM on 15 x 15 cells, epsilon 1 and 3.5 a report, 1 to 365 reports.
    """
    rows = []
    errors = []
    for epsilon in tracked(EPSILONS, "epsilons"):
        table = response_table("dam", epsilon, CELLS)
        rng = np.random.default_rng(seed)
        risks = [still_device_risk(table, k, trials, rng) for k in REPORTS]
        found = {
            "its cell": [risk.exact_cell for risk in risks],
            "its cell or one of the eight around": [risk.within_one_cell for risk in risks],
        }
        for right, shares in found.items():
            rows.append([f"{epsilon:g}", right, *(shown(share.estimate) for share in shares)])
            errors += [share.standard_error for share in shares]
        allowed = [shown(_most(epsilon * k)) for k in REPORTS]
        rows.append([f"{epsilon:g}", "its cell: the most that the claim allows", *allowed])
    text = markdown(["eps", "what is right", *map(str, REPORTS)], rows)
    click.echo(f"{text}\n\nlargest standard error: {max(errors):.5f}")
    if write:
        replace_block(DOCS / "privacy.md", "still-device", text)


def shown(probability: float) -> str:
    """Return three decimals, and no "1.000" of what is not certain."""
    return f"{probability:.3f}" if probability < 0.9995 else "> 0.999"


def _most(loss: float) -> float:
    """Return the largest probability with which any attacker is right under a loss in all."""
    return 1 / (1 + (CELLS**2 - 1) * exp(-loss))
