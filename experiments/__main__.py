"""One command for every measurement."""

import click

from experiments.accuracy import accuracy
from experiments.attacks import attacks
from experiments.benchmarks import benchmarks
from experiments.better_default import better_default
from experiments.claims import claims
from experiments.coverage import coverage
from experiments.dam_paper.commands import COMMANDS as DAM_PAPER
from experiments.distributed.commands import COMMANDS as DISTRIBUTED
from experiments.flagship import flagship
from experiments.heatmaps.commands import COMMANDS as HEATMAPS
from experiments.ledger_attacks import ledger_attacks
from experiments.local_ranges import local_ranges
from experiments.orderings import orderings
from experiments.plan_figure import plan_figure
from experiments.secure_aggregation import secure_aggregation
from experiments.series import series
from experiments.still_device import still_device
from experiments.stopping import stopping
from experiments.trajectories.commands import COMMANDS as TRAJECTORIES


@click.group()
def main() -> None:
    """Run a measurement that the docs quote."""


OWN = (
    accuracy,
    attacks,
    benchmarks,
    better_default,
    claims,
    coverage,
    ledger_attacks,
    orderings,
    plan_figure,
    secure_aggregation,
    series,
    still_device,
    stopping,
)
for command in (*OWN, flagship, *HEATMAPS, *DISTRIBUTED, *DAM_PAPER, *TRAJECTORIES, local_ranges):
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="python -m experiments")
