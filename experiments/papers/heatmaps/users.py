"""Metrics over the number of users in one city (Ghazi et al., AAAI 2023, section 4.1)."""

from pathlib import Path

import click

from experiments.papers.heatmaps.data import busiest
from experiments.papers.heatmaps.figures import metric_panels
from experiments.papers.heatmaps.plays import SIGMAS_A_SIDE, Conduct, conducted, with_tops
from experiments.papers.heatmaps.summary import means_table
from experiments.sources import gowalla

USERS = (50, 100, 200, 300, 400, 500)


@click.command("heatmap-users")
@conducted("heatmap-users", repeats=10)
@click.option("--epsilon", default=1.0, show_default=True)
@click.option("--side", default=256, show_default=True, help="Cells along a side.")
@click.option("--users", multiple=True, type=int, default=USERS, show_default=True)
def heatmap_users(
    data: Path, conduct: Conduct, epsilon: float, side: int, users: tuple[int, ...]
) -> None:
    """Heat-map metrics over the number of users of one city (Ghazi et al., section 4.1).

    The city is the part of the United States with the most Gowalla check-ins, and epsilon is 1:
    the paper says of neither what it took. Intervals are over trials of this one city.
    """
    city = busiest(gowalla(data), side, max(users), 1)
    sigma = side / SIGMAS_A_SIDE
    table = conduct.play(
        city, with_tops(0.01, 0.1, 1), [epsilon], sigma=sigma, users=users,
        kept=f"epsilon-{epsilon:g}",
    )  # fmt: skip
    setting = (f"The busiest city cell, eps = {epsilon:g}, {conduct.repeats} trials, "
               f"{side} x {side} cells, sigma = {sigma:g} cells")  # fmt: skip
    text = f"{setting}; mean and 95 % interval over trials:\n\n"
    text += means_table(table, "users", "repeat")
    figure = metric_panels(table, "users", "repeat", setting)
    conduct.report("heatmap-users", text, table, {"heatmap-users": figure})
