"""Options of the estimator and its intervals, for all commands that estimate."""

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from ldpspatial.errors import InputError
from ldpspatial.estimation.estimate import RULES, estimator_names, find_estimator
from ldpspatial.estimation.sieve import CROSS_VALIDATED
from ldpspatial.estimation.smoothing import SMOOTHERS
from ldpspatial.estimation.stopping import STOPPING_RULES

Command = Callable[..., Any]
INTERVALS = ("auto", "fisher", "bootstrap", "posterior", "none")
RULE_HELP = (
    f"How to estimate: one of {', '.join(RULES)}. {', '.join(STOPPING_RULES)} say when EM stops; "
    f"{CROSS_VALIDATED} finds out how smooth the map is as well: nearer to the truth in up to some "
    "thousand times the time. Only EM takes --smoothing. Estimators of other packages go by the "
    "name that they registered, or by module:Name."
)


class Rule(click.ParamType):  # type: ignore[type-arg,unused-ignore]
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


def estimator_options(command: Command) -> Command:
    """Add --rule, --smoothing and --intervals."""
    for option in reversed(
        (
            click.option(
                "--rule", type=Rule(), default="scaled", show_default=True, help=RULE_HELP
            ),
            click.option("--smoothing", type=click.Choice(list(SMOOTHERS)), help="Smoothed EM."),
            click.option(
                "--intervals",
                "method",
                type=click.Choice(INTERVALS),
                default="auto",
                show_default=True,
                help="95 % intervals: posterior with rule field; fisher to 20 cells, bootstrap "
                "beyond.",
            ),
        )
    ):
        command = option(command)
    return command
