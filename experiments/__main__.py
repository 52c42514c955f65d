"""One command for every measurement."""

import click

from experiments.accuracy import accuracy
from experiments.benchmarks import benchmarks
from experiments.coverage import coverage
from experiments.plan_figure import plan_figure
from experiments.stopping import stopping


@click.group()
def main() -> None:
    """Run a measurement that the docs quote."""


for command in (accuracy, benchmarks, coverage, plan_figure, stopping):
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="python -m experiments")
