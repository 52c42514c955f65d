"""The group of all commands, loaded when they are called, and how errors reach the user."""

import importlib
import io
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import click

from client_sdk import ClientError, DesignWarning
from ldpspatial import __version__
from ldpspatial.errors import InputError, InputWarning, LdpSpatialError

# Name, module below this package, and the first line of the help: a request for the list of
# commands, or for the version, does not wait for their imports.
COMMANDS = {
    "demo": ("simulate", "Play a collection in a synthetic city."),
    "simulate": ("simulate", "Play a whole collection on a file of positions."),
    "estimate": ("estimate", "Estimate the map from files of reports."),
    "count": ("count", "Count reports, or add what was counted elsewhere."),
    "ranges": ("ranges", "Tell how many people are in rectangles and polygons."),
    "compare": ("compare", "Compare what each trust model costs, on the same people."),
    "distance": ("distance", "Measure how far apart two maps are."),
    "plan": ("plan", "Show the error to expect, and which grid to take."),
    "audit": ("audit", "Check the privacy of a mechanism or a release, and its sampler."),
    "collection": ("collection", "Make or show a collection document."),
    "series": ("series", "Make, play or map a collection that repeats."),
    "serve": ("serve", "Take reports from devices and keep them in STORE."),
    "store": ("store", "Make, fill, close and release the store of a collection server."),
    "rounds": ("rounds", "Open campaigns of secure sums, and map what they come to."),
}


class Commands(click.Group):
    """Loads a command when it is called; shows errors as one line and warnings as notes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order in which people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command, or return None where there is none of this name."""
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"ldpspatial.cli.{COMMANDS[name][0]}")
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        # For module:Name, as python -m finds it; last, so that no file there hides another module.
        if "" not in sys.path:  # the folder in which one works
            sys.path.append("")
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A path that the terminal's character set lacks must not end a run that went well.
            sys.stdout.reconfigure(errors="backslashreplace")
        with warnings.catch_warnings():
            for category in (DesignWarning, InputWarning):  # for the user, whatever -W says
                warnings.simplefilter("always", category)
            warnings.showwarning = _noter()
            try:
                return super().invoke(ctx)
            except InputError as error:  # it may name an argument; here are options
                options = self._options(ctx)
                raise click.ClickException(_typed(error.with_options(options), options)) from error
            except (LdpSpatialError, ClientError) as error:
                raise click.ClickException(_typed(str(error), self._options(ctx))) from error
            except MemoryError as error:
                raise click.ClickException("there is not enough memory for this") from error
            except BrokenPipeError:
                raise  # click ends quietly when the reader of a pipe has gone
            except OSError as error:
                raise click.ClickException(str(error)) from error

    def _options(self, ctx: click.Context) -> dict[str, str]:
        """Return what is typed for each parameter of the command that was called."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        commands = [command, *getattr(command, "commands", {}).values()]  # those of a group, too
        parameters = [each for one in commands for each in getattr(one, "params", ())]
        return {
            str(p.name): p.opts[0]
            if isinstance(p, click.Option)
            else p.human_readable_name.rstrip(".")
            for p in parameters
        }


def _noter() -> Callable[..., None]:
    """Return what shows warnings as notes, the same text once: two maps may be of one fit."""
    shown: set[str] = set()

    def note(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            click.echo(f"Warning: {message}", err=True)

    return note


def _typed(message: str, options: Mapping[str, str]) -> str:
    """Return a message whose subject, where it is a parameter, is what is typed for it."""
    found = re.match(r"(?:each of )?(\w+)(?= must )", message)
    if found is None or found[1] not in options:
        return message
    return options[found[1]] + message[found.end() :]


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
