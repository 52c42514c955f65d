"""The group of all commands, and how errors of the packages reach the user."""

import io
import sys
import warnings
from typing import Any

import click

from client_sdk import ClientError
from client_sdk.collection import DesignWarning
from ldpspatial import __version__
from ldpspatial.cli.audit import audit
from ldpspatial.cli.collection import collection
from ldpspatial.cli.compare import compare
from ldpspatial.cli.distance import distance
from ldpspatial.cli.estimate import estimate
from ldpspatial.cli.plan import plan
from ldpspatial.cli.ranges import ranges
from ldpspatial.cli.series import series
from ldpspatial.cli.simulate import demo, simulate
from ldpspatial.errors import LdpSpatialError

# The packages' errors name arguments; who sits at the command line has options.
OPTIONS = {
    "on_missing='drop'": "--on-missing drop",
    "on_invalid='drop'": "--on-invalid drop",
    "method='bootstrap'": "--intervals bootstrap",
    "plane=True": "--plane",
}


class Commands(click.Group):
    """Shows expected errors as one line and warnings as notes, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A path that the terminal's character set lacks must not end a run that went well.
            sys.stdout.reconfigure(errors="backslashreplace")
        with warnings.catch_warnings():
            warnings.simplefilter("always", DesignWarning)  # for the user, whatever -W says
            warnings.showwarning = lambda message, *_, **__: click.echo(
                f"Warning: {message}", err=True
            )
            try:
                return super().invoke(ctx)
            except (LdpSpatialError, ClientError) as error:
                message = str(error)
                for argument, option in OPTIONS.items():
                    message = message.replace(argument, option)
                raise click.ClickException(message) from error
            except MemoryError as error:
                raise click.ClickException("there is not enough memory for this") from error
            except BrokenPipeError:
                raise  # click ends quietly when the reader of a pipe has gone
            except OSError as error:
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


for command in (
    demo,
    simulate,
    estimate,
    ranges,
    compare,
    distance,
    plan,
    audit,
    collection,
    series,
):
    main.add_command(command)
