"""One command for every measurement."""

import click

from experiments.accuracy import accuracy
from experiments.benchmarks import benchmarks
from experiments.claims import claims
from experiments.coverage import coverage
from experiments.distributed.commands import COMMANDS as DISTRIBUTED
from experiments.flagship import flagship
from experiments.heatmaps.commands import COMMANDS as HEATMAPS
from experiments.plan_figure import plan_figure
from experiments.secure_aggregation import secure_aggregation
from experiments.stopping import stopping


@click.group()
def main() -> None:
    """Run a measurement that the docs quote."""


OWN = (accuracy, benchmarks, claims, coverage, plan_figure, secure_aggregation, stopping)
for command in (*OWN, flagship, *HEATMAPS, *DISTRIBUTED):
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="python -m experiments")
