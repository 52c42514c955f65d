"""Heat maps of one city side by side: Figure 2 of Ghazi et al. (AAAI 2023)."""

from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from experiments.papers.heatmaps.data import busiest
from experiments.papers.heatmaps.figures import map_panels
from experiments.papers.heatmaps.plays import OURS, SIGMAS_A_SIDE, Conduct, conducted, with_tops
from experiments.papers.heatmaps.summary import scores_table
from experiments.sources import gowalla
from ldpspatial.metrics import heat_map

EPSILONS = (1.0, 5.0)
SHOWN = ("laplace", "laplace-top 0.01 %", OURS)


@click.command("heatmap-examples")
@conducted("heatmap-examples")
@click.option("--side", default=256, show_default=True, help="Cells along a side.")
@click.option("--users", default=200, show_default=True)
@click.option(
    "--place",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Which city, 1 the busiest.",
)
def heatmap_examples(data: Path, conduct: Conduct, side: int, users: int, place: int) -> None:
    """Heat maps of a city under three releases, side by side (Ghazi et al., Figure 2).

    From left to right: the original, noise on every cell, the largest 0.01 % of the noisy cells,
    sparse EMD; epsilon 1 above, 5 below.
    """
    *_, city = busiest(gowalla(data), side, users, place).values()
    rng = np.random.default_rng(conduct.seed)
    people = city.sample(users, rng)
    releases = with_tops(0.01)
    found = {
        (epsilon, name): releases[name].release(people, epsilon, rng).density
        for epsilon in EPSILONS
        for name in SHOWN
    }
    sigma = side / SIGMAS_A_SIDE

    def seen(density: NDArray[np.float64]) -> NDArray[np.float64]:
        return heat_map(density, sigma)

    maps = {
        f"eps = {epsilon:g}": [
            seen(people.density),
            *(seen(found[epsilon, name]) for name in SHOWN),
        ]
        for epsilon in EPSILONS
    }
    text = (f"{users} users of city cell {place}, {side} x {side} cells, sigma = {sigma:g} cells; "
            "the metrics of these maps:\n\n")  # fmt: skip
    text += scores_table(people.density, found, sigma)
    figure = map_panels(maps, ["original", *SHOWN], 1.75)
    conduct.report("heatmap-examples", text, figures={"heatmap-examples": figure})
