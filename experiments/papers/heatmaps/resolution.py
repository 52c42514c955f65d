"""Metrics over the resolution of one city's map (Ghazi et al., AAAI 2023, section 4.1)."""

from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.papers.heatmaps.data import busiest
from experiments.papers.heatmaps.figures import metric_panels
from experiments.papers.heatmaps.plays import OURS, SIGMAS_A_SIDE, Conduct, conducted, with_tops
from experiments.papers.heatmaps.summary import means_table
from experiments.sources import gowalla
from experiments.tables import markdown

SIDES = (64, 128, 256, 512, 1024)


@click.command("heatmap-resolution")
@conducted("heatmap-resolution", repeats=10)
@click.option("--epsilon", default=1.0, show_default=True)
@click.option("--users", default=200, show_default=True, help="Users of a trial.")
@click.option("--side", "sides", multiple=True, type=int, default=SIDES, show_default=True)
def heatmap_resolution(
    data: Path, conduct: Conduct, epsilon: float, users: int, sides: tuple[int, ...]
) -> None:
    """Heat-map metrics over the resolution of one city's map (Ghazi et al., section 4.1).

    The paper goes from 64 to 256 cells along a side; here to 1024. The filter has the same width
    in metres at every resolution, 1/64 of the side, so that maps are compared at one coarseness.
    The EMD is measured between 64 x 64 blocks throughout.
    """
    checkins = gowalla(data)
    parts = []
    for side in sides:
        part = conduct.play(
            busiest(checkins, side, users, 1),
            with_tops(0.01, 0.1, 1),
            [epsilon],
            sigma=side / SIGMAS_A_SIDE,
            users=[users],
            kept=f"epsilon-{epsilon:g}-side-{side}",
        )
        parts.append(part)
    table = pa.concat_tables(parts)
    setting = (f"The busiest city cell, {users} users, eps = {epsilon:g}, "
               f"{conduct.repeats} trials, sigma = 1/{SIGMAS_A_SIDE} of the side")  # fmt: skip
    text = "\n\n".join(
        (
            f"{setting}; mean and 95 % interval over trials:",
            means_table(table, "cells", "repeat"),
            "Time of a release, median in milliseconds on one core:",
            times_table(table, sides),
        )
    )
    figure = metric_panels(table, "cells", "repeat", setting)
    conduct.report("heatmap-resolution", text, table, {"heatmap-resolution": figure})


def times_table(table: pa.Table, sides: tuple[int, ...]) -> str:
    """Return the median time of two releases at each resolution."""
    rows = []
    for name in (OURS, "laplace"):
        runs = table.filter(pc.equal(table["release"], name))
        at = runs["cells"].to_numpy()
        times = [np.median(runs["seconds"].to_numpy()[at == side]) for side in sides]
        rows.append([name, *(f"{1000 * seconds:.0f}" for seconds in times)])
    return markdown(["release", *(f"D = {side}" for side in sides)], rows)
