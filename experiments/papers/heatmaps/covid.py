"""Counties as users: the new data of a replication (Ngau, Kretz and Boudras, 2024)."""

from pathlib import Path

import click
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.papers.heatmaps.data import Counties, counties
from experiments.papers.heatmaps.figures import map_panels, metric_panels
from experiments.papers.heatmaps.plays import OURS, SIGMAS_A_SIDE, Conduct, conducted, with_tops
from experiments.papers.heatmaps.summary import means_table
from ldpspatial.metrics import heat_map
from ldpspatial.release.central import SparseEmd

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
SIDES = (16, 64)
RELEASES = {**with_tops(1, 10), "sparse-emd, w = 80": SparseEmd(keep=80)}  # beside w = 20


@click.command("covid")
@conducted("covid", repeats=10)
@click.option(
    "--side", "sides", multiple=True, type=click.IntRange(1), default=SIDES, show_default=True
)
def covid(data: Path, conduct: Conduct, sides: tuple[int, ...]) -> None:
    """Heat maps of US counties with COVID deaths (replication by Ngau et al., 2024).

    A county is a user and its deaths are check-ins, all at one place. A user has mass 1, so the
    number of deaths cancels: what is mapped is where the counties are. The JHU file to July 2020
    stands in for the one of the replication, to March 2023.
    """
    found = counties(data)
    parts = []
    texts = []
    for side in sides:
        people = found.on(side)
        sigma = side / SIGMAS_A_SIDE
        part = conduct.play(
            {"counties": people}, RELEASES, EPSILONS, sigma=sigma, kept=f"side-{side}"
        )
        parts.append(part)
        texts += [
            f"{len(people):,} counties, {side} x {side} cells, "
            f"sigma = 1/{SIGMAS_A_SIDE} of the side, {conduct.repeats} runs; "
            "mean and 95 % interval over runs:",
            means_table(part, "epsilon", "repeat"),
        ]
    left_out = ", ".join(f"{rows:,} {reason}" for reason, rows in found.left_out.items())
    texts.append(f"Rows left out: {left_out}.")
    maps = _maps(found, sides, conduct.seed)
    titles = ["original", *(f"eps = {epsilon:g}" for epsilon in EPSILONS)]
    title = f"counties, {sides[0]} x {sides[0]} cells"
    figures = {
        "covid-metrics": metric_panels(parts[0], "epsilon", "repeat", title),
        "covid-maps": map_panels(maps, titles, 1.25),
    }
    conduct.report("covid", "\n\n".join(texts), pa.concat_tables(parts), figures)


def _maps(
    found: Counties, sides: tuple[int, ...], seed: int
) -> dict[str, list[NDArray[np.float64]]]:
    rng = np.random.default_rng(seed)
    maps = {}
    for side in sides:
        people = found.on(side)
        runs = [RELEASES[OURS].release(people, epsilon, rng).density for epsilon in EPSILONS]
        maps[f"{side} x {side}"] = [
            heat_map(density, side / SIGMAS_A_SIDE) for density in (people.density, *runs)
        ]
    return maps
