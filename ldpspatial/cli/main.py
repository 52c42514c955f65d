"""The group of all commands, and how errors of the packages reach the user."""

import warnings
from typing import Any

import click

from client_sdk import ClientError
from ldpspatial import __version__
from ldpspatial.cli.audit import audit
from ldpspatial.cli.collection import collection
from ldpspatial.cli.estimate import estimate
from ldpspatial.cli.plan import plan
from ldpspatial.cli.simulate import demo, simulate
from ldpspatial.errors import LdpSpatialError


class Commands(click.Group):
    """Shows expected errors as one line and design warnings as notes, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: click.echo(
                f"Warning: {message}", err=True
            )
            try:
                return super().invoke(ctx)
            except (LdpSpatialError, ClientError) as error:
                raise click.ClickException(str(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Collect where people are without learning where anyone is.

    Devices report one randomised grid cell each (local differential privacy); the commands
    here design a collection, play it on known positions, estimate the map from reports, and
    check what a collection promises.

    \b
    First steps:
      ldpspatial demo
      ldpspatial plan --side-km 12 --epsilon 3.5 --devices 50000
      ldpspatial simulate POINTS.csv --cells 15 --epsilon 3.5 --out result
    """


for command in (demo, simulate, estimate, plan, audit, collection):
    main.add_command(command)
