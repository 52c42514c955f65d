"""Coverage of the 95 % intervals, by simulation."""

import click
import numpy as np
from numpy.typing import NDArray

from client_sdk import response_table
from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block
from experiments.trials import draw_trial
from ldpspatial import StampChannel, estimate
from ldpspatial.datasets import synthetic_maps
from ldpspatial.estimation import cell_intervals

POPULATION = 10_000_000  # draws behind a map's law
SETTINGS = {  # by rule: d, eps, n
    "scaled": ((15, 3.5, 100_000), (15, 5.0, 10_000), (32, 3.5, 100_000)),
    "cross-validated": ((15, 3.5, 100_000),),
}


@click.command()
@click.option("--repeats", default=100, show_default=True)
@click.option("--write", is_flag=True, help="Put the table into docs/estimation.md.")
def coverage(repeats: int, write: bool) -> None:
    """Share of intervals that hold the truth: all cells, peaks, and a block of 3 x 3 cells."""
    for rule in SETTINGS:
        table = covered_table(rule, repeats)
        click.echo(f"{rule}\n{table}")
        if write:
            replace_block(DOCS / "estimation.md", f"coverage-{rule}", table)


def covered_table(rule: str, repeats: int) -> str:
    """Return the coverage of estimates by a stopping rule as a table."""
    rng = np.random.default_rng(22)
    names = [*synthetic_maps(), "city", "spots"]
    settings = [(name, *how) for how in SETTINGS[rule] for name in names]
    rows = []
    for name, cells, epsilon, people in tracked(settings, rule):
        channel = StampChannel(response_table("dam", epsilon, cells))
        found = _covered(channel, _density(name, cells, rng), people, repeats, rng, rule)
        for method, (cell, peak, block, width, block_width) in found.items():
            shares = (f"{cell:.2f}", f"{peak:.2f}", f"{block:.2f}")
            widths = (f"{width:.2%}", f"{block_width:.2%}")
            rows.append([name, cells, epsilon, people, method, *shares, *widths])
    header = ["map", "d", "eps", "n", "method", "cells covered", "peaks", "block"]
    return markdown([*header, "mean width of a cell", "of the block"], rows)


def _density(name: str, cells: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the law of a map; "spots" holds 60 % of the people in three cells."""
    if name == "spots":
        density = np.full((cells, cells), 0.4 / cells**2)
        for place, share in (((3, 4), 0.3), ((10, 11), 0.2), ((7, 2), 0.1)):
            density[place] += share
        return density
    return draw_trial(name, cells, 20.0, POPULATION, rng).truth


def _covered(
    channel: StampChannel,
    truth: NDArray[np.float64],
    people: int,
    repeats: int,
    rng: np.random.Generator,
    rule: str,
) -> dict[str, NDArray[np.float64]]:
    block = np.zeros(truth.shape, bool)
    block[3:6, 3:6] = True
    peaks = truth >= np.quantile(truth, 0.95)
    law = channel.forward(truth)[channel.support]
    sums = {method: np.zeros(5) for method in ("fisher", "bootstrap")}
    for _ in range(repeats):
        result = estimate(channel, rng.multinomial(people, law / law.sum()), rule)
        for method, total in sums.items():
            found = cell_intervals(result, method=method, rng=rng, replicates=40)
            share = found.region(block)
            inside = (found.lower <= truth) & (truth <= found.upper)
            hit = share.lower <= truth[block].sum() <= share.upper
            width = found.width.mean(), share.upper - share.lower
            sums[method] = total + np.array([inside.mean(), inside[peaks].mean(), hit, *width])
    return {method: total / repeats for method, total in sums.items()}
