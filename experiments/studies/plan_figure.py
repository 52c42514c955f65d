"""The picture in docs/wasserstein.md: where the mass of an estimate went wrong."""

import click
import numpy as np

from experiments.generated import generated
from experiments.tables import DOCS
from experiments.trials import draw_trial
from ldpspatial import estimate, transport
from ldpspatial.plotting.heat_map import save_figure
from ldpspatial.plotting.transport_plot import plot_transport

PEOPLE = 20_000
CELLS = 32
EPSILON = 3.5


@click.command("plan-figure")
def plan_figure() -> None:
    """Draw the cheapest way from a synthetic town's people to their estimated map."""
    trial = draw_trial("mnormal", CELLS, EPSILON, PEOPLE, np.random.default_rng(1))
    found = estimate(trial.channel, trial.counts, "scaled").density
    plan = transport(trial.truth, found, order=1)
    title = f"{PEOPLE:,} people, {EPSILON}-LDP per report: from truth to estimate"
    figure = plot_transport(trial.truth, found, plan, title=title)
    save_figure(figure, generated(DOCS, "wasserstein-plan.png"))
    click.echo(f"W1 = {plan.value:.4f} cells, written to docs/generated/wasserstein-plan.png")
