"""Exact W2 of the default estimate on the synthetic maps."""

import click
import numpy as np

from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block
from experiments.trials import draw_trial, mean_and_error
from ldpspatial import estimate, wasserstein
from ldpspatial.datasets import synthetic_maps
from ldpspatial.estimation.estimate import RULES


@click.command()
@click.option("--repeats", default=20, show_default=True)
@click.option("--people", default=100_000, show_default=True)
@click.option("--epsilon", default=3.5, show_default=True)
@click.option("--write", is_flag=True, help="Put the table into docs/experiments/estimators.md.")
def accuracy(repeats: int, people: int, epsilon: float, write: bool) -> None:
    """Mean exact W2 in cells, default estimator, d = 5 and 15."""
    rng = np.random.default_rng(20)
    settings = [(name, cells) for name in synthetic_maps() for cells in (5, 15)]
    rows = []
    for name, cells in tracked(settings, "settings"):
        errors: dict[str, list[float]] = {rule: [] for rule in RULES}
        for _ in range(repeats):
            trial = draw_trial(name, cells, epsilon, people, rng)
            for rule, found in errors.items():
                density = estimate(trial.channel, trial.counts, rule).density
                found.append(wasserstein(trial.truth, density))
        rows.append([name, cells, *(mean_and_error(found) for found in errors.values())])
    table = markdown(["map", "d", *(f"{rule} stop" for rule in RULES)], rows)
    click.echo(table)
    if write:
        replace_block(DOCS / "experiments" / "estimators.md", "accuracy", table)
