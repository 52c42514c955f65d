"""Options of the estimator and its intervals, for all commands that estimate."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.shell_completion import CompletionItem
from numpy.typing import NDArray

from client_sdk import Grid
from ldpspatial.cli.documents import blamed
from ldpspatial.cli.output_files import results_beside
from ldpspatial.collecting.results import read_estimate
from ldpspatial.errors import InputError
from ldpspatial.estimation.em import QUICK
from ldpspatial.estimation.estimate import RULES, Rule, estimator_names, find_estimator
from ldpspatial.estimation.field import Field
from ldpspatial.estimation.field.estimator import FIELD, MAP_ALONE
from ldpspatial.estimation.robust import ROBUST, Robust
from ldpspatial.estimation.smoothing import SMOOTHERS
from ldpspatial.estimation.stopping import STOPPING_RULES
from ldpspatial.files.side_information import read_prior, read_support

Command = Callable[..., Any]
INTERVALS = ("auto", "posterior", "fisher", "none")
RULE_HELP = (
    f"How to estimate: one of {', '.join(RULES)}. By default {FIELD}, a Bayesian model, in seconds "
    f"on any grid, with samples of what the reports leave open; {ROBUST} is the same without "
    f"reports that the check of the fit takes for forged, {MAP_ALONE} its map in about two "
    f"seconds and without samples. {QUICK} is a quick look; "
    f"{', '.join(STOPPING_RULES)} say when it stops, and only it takes --smoothing. "
    "Estimators of other packages go by the name that they registered, or by module:Name."
)


class RuleName(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The name of an estimator."""

    name = "rule"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what names no estimator."""
        try:
            find_estimator(value)
        except InputError as error:
            self.fail(str(error), param, ctx)
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the names."""
        return [CompletionItem(name) for name in estimator_names() if name.startswith(incomplete)]


def chosen_rule(options: Mapping[str, Any], grid: Grid) -> Rule | None:
    """Return the estimator that the options ask for, with what they know of a grid's places.

    None is the default.

    Raises
    ------
    InputError
        A file breaks a rule, or is given to an estimator that takes none.
    """
    support, prior, column = (options.get(name) for name in ("support", "prior", "prior_column"))
    rule: Rule | None = options["rule"]
    layers = {name: options.get(f"{name}_layer") for name in ("support", "prior")}
    for name, file in (("support", support), ("prior", prior)):
        if layers[name] is not None and file is None:
            raise click.UsageError(f"--{name}-layer needs --{name}.")
    if column is not None and prior is None:
        raise click.UsageError("--prior-column needs --prior.")
    if support is None and prior is None:
        return rule
    if rule not in (None, FIELD, ROBUST, MAP_ALONE):
        raise click.UsageError(
            f"--support and --prior need --estimator {FIELD}, {ROBUST} or {MAP_ALONE}."
        )
    known: dict[str, Any] = {}
    if support is not None:
        with blamed("--support", support, layer="--support-layer"):
            known["support"] = read_support(support, grid, layers["support"])
    if prior is not None:
        with blamed("--prior", prior, column="--prior-column", layer="--prior-layer"):
            known["prior"] = read_prior(prior, grid, column, layers["prior"])
    estimator = Robust if rule == ROBUST else Field
    return estimator(**known, map_alone=rule == MAP_ALONE)


def side_files(options: Mapping[str, Any]) -> list[Path]:
    """Return the files that --support and --prior name."""
    return [options[name] for name in ("support", "prior") if options.get(name) is not None]


def check_prior(options: Mapping[str, Any], windows: Iterable[NDArray[np.int64]]) -> None:
    """Refuse a --prior that is an estimate of the very counts, of a window: they would count twice.

    A table or a picture of it does not say which counts it is of: the estimate beside it does.
    """
    file = options["prior"]
    if file is None:
        return
    of_same = results_beside(file)
    is_result = Path(os.path.realpath(file)) in of_same
    kept = next(each for each in of_same if each.suffix == ".npz") if is_result else file
    try:
        _, earlier = read_estimate(kept)
    except InputError:  # another kind of map
        return
    if any(np.array_equal(earlier.counts, counts) for counts in windows):
        raise InputError(
            f"prior must not be made of the reports that are estimated, but {str(file)!r} is: "
            "they would count twice"
        )


def estimator_options(command: Command) -> Command:
    """Add --estimator, --smoothing, --intervals, and --support and --prior with their own."""
    for option in reversed(
        (
            click.option("--estimator", "--rule", "rule", type=RuleName(), help=RULE_HELP),
            click.option("--smoothing", type=click.Choice(list(SMOOTHERS)), help="Smoothed EM."),
            click.option(
                "--intervals",
                "method",
                type=click.Choice(INTERVALS),
                default="auto",
                show_default=True,
                help="95 % intervals: posterior with field, but fisher where reports "
                "tell about as much alone or contradict it; with others fisher to 20 cells and "
                "none beyond, unless posterior is asked for.",
            ),
            click.option(
                "--support",
                type=click.Path(path_type=Path),
                help="Where people can be, for field, robust and map-alone: regions as the command "
                "ranges reads them, or the share of each cell (columns row, col, share).",
            ),
            click.option(
                "--support-layer", help="Layer of --support, where a GIS file has several."
            ),
            click.option(
                "--prior",
                type=click.Path(path_type=Path),
                help="A public map, for field, robust and map-alone: an earlier estimate.npz or "
                "another map of cells, a table of towns or venues with latitude and longitude, or "
                "polygons with their people. How much it says of these people is learned.",
            ),
            click.option("--prior-layer", help="Layer of --prior, where a GIS file has several."),
            click.option("--prior-column", help="Which numbers of --prior to read."),
        )
    ):
        command = option(command)
    return command
