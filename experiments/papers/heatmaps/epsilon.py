"""Metrics over epsilon on city cells: Figure 1 of Ghazi et al. (AAAI 2023)."""

from pathlib import Path

import click

from experiments.papers.heatmaps.data import busiest
from experiments.papers.heatmaps.figures import metric_panels
from experiments.papers.heatmaps.plays import Conduct, conducted, with_tops
from experiments.papers.heatmaps.summary import differences_table, means_table
from experiments.sources import gowalla

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
SIGMAS = ("0", "4", "8")
SHOWN = "4"  # the sigma of the figure


@click.command("heatmap-epsilon")
@conducted("heatmap-epsilon", repeats=2)
@click.option("--sigma", type=click.Choice(SIGMAS), default=SHOWN, show_default=True,
              help="Gaussian filter of the heat maps in cells, 0 for none.")  # fmt: skip
@click.option("--side", default=256, show_default=True, help="Cells along a side.")
@click.option("--users", default=200, show_default=True, help="Users of a trial.")
@click.option("--places", type=click.IntRange(1), default=30, show_default=True,
              help="Cities, the busiest first.")  # fmt: skip
def heatmap_epsilon(
    data: Path, conduct: Conduct, sigma: str, side: int, users: int, places: int
) -> None:
    """Heat-map metrics over epsilon on city cells (Ghazi et al., AAAI 2023, Figure 1).

    The United States are cut into 300 x 300 parts, of which those with the most check-ins are
    maps; in a trial, users are drawn, and every release sees the same. Intervals are over places:
    trials of one place are averaged first. Gowalla alone stands in for Gowalla and Brightkite, and
    its file has no times, so check-ins of all months are taken.
    """
    table = conduct.play(
        busiest(gowalla(data), side, users, places),
        with_tops(0.01, 0.1, 1),
        EPSILONS,
        sigma=float(sigma),
        users=[users],
        kept=f"sigma-{sigma}",
    )
    setting = (f"{places} places, {conduct.repeats} trials each, {users} users, "
               f"{side} x {side} cells, sigma = {sigma} cells")  # fmt: skip
    text = "\n\n".join(
        (
            f"{setting}; mean and 95 % interval over places:",
            means_table(table, "epsilon", "data"),
            "Paired differences by place (* sparse-emd is better, × it is worse, each at 95 %):",
            differences_table(table, "epsilon", "data"),
        )
    )
    figure = metric_panels(table, "epsilon", "data", setting)
    figures = {"heatmap-epsilon": figure} if sigma == SHOWN else None
    conduct.report(f"heatmap-epsilon-sigma-{sigma}", text, table, figures)
