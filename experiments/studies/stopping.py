"""Which stopping rule: exact W2 over maps, grids, epsilons and numbers of people."""

from math import exp

import click
import numpy as np

from client_sdk import ParameterError
from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block
from experiments.trials import draw_trial
from ldpspatial import estimate, wasserstein
from ldpspatial.datasets import synthetic_maps
from ldpspatial.estimation import LikelihoodGain

FACTORS = (1e-1, 1e-2, 1e-3, 1e-4)  # tolerance in units of e^eps nats
SMOOTHED = ("binomial",)


@click.command()
@click.option("--repeats", default=3, show_default=True)
@click.option("--write", is_flag=True, help="Put the table into docs/experiments/estimators.md.")
def stopping(repeats: int, write: bool) -> None:
    """Geometric-mean W2 of every rule, relative to the likelihood rule at 1e-3 e^eps."""
    rng = np.random.default_rng(21)
    settings = [
        (name, cells, epsilon, people)
        for name in (*synthetic_maps(), "city")
        for cells in (5, 15, 32)
        for epsilon in (1.4, 3.5, 5.0)
        for people in (10_000, 100_000)
    ]
    errors: dict[tuple[str, int], list[float]] = {}
    for name, cells, epsilon, people in tracked(settings, "settings"):
        mean: dict[str, list[float]] = {}
        for _ in range(repeats):
            try:
                trial = draw_trial(name, cells, epsilon, people, rng)
            except ParameterError as error:
                raise click.ClickException(str(error)) from error
            for label, arguments in _rules(epsilon).items():
                density = estimate(trial.channel, trial.counts, **arguments).density
                mean.setdefault(label, []).append(wasserstein(trial.truth, density))
        for label, found in mean.items():
            errors.setdefault((label, cells), []).append(float(np.mean(found)))
    table = _table(errors)
    click.echo(table)
    if write:
        replace_block(DOCS / "experiments" / "estimators.md", "stopping", table)


def _rules(epsilon: float) -> dict[str, dict[str, object]]:
    rules: dict[str, dict[str, object]] = {
        f"likelihood, {factor:g} e^eps": {"rule": LikelihoodGain(factor * exp(epsilon))}
        for factor in FACTORS
    }
    rules["scaled: 0.0002 d e^eps"] = {"rule": "scaled"}
    rules["published"] = {"rule": "published"}
    for kernel in SMOOTHED:
        rules[f"EMS {kernel}, scaled"] = {"smoothing": kernel}
    return rules


def _table(errors: dict[tuple[str, int], list[float]]) -> str:
    labels = list(dict.fromkeys(label for label, _ in errors))
    sizes = sorted({cells for _, cells in errors})
    base = {cells: np.log(errors["likelihood, 0.001 e^eps", cells]) for cells in sizes}
    rows = []
    for label in labels:
        ratios = {cells: np.log(errors[label, cells]) - base[cells] for cells in sizes}
        columns = [f"{np.exp(ratios[cells].mean()):.2f}" for cells in sizes]
        together = np.concatenate(list(ratios.values()))
        rows.append([label, *columns, f"{np.exp(together.mean()):.2f}"])
    return markdown(["rule", *(f"d = {cells}" for cells in sizes), "all"], rows)
