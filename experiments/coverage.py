"""Coverage of the 95 % intervals, by simulation."""

import click
import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from client_sdk import response_table
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial import StampChannel, estimate
from ldpspatial.datasets import synthetic_maps

CELLS = 15
POPULATION = 10_000_000  # draws behind a map's density


@click.command()
@click.option("--repeats", default=100, show_default=True)
@click.option("--write", is_flag=True, help="Put the table into docs/estimation.md.")
def coverage(repeats: int, write: bool) -> None:
    """Share of intervals that hold the truth, per cell and for a block of 3 x 3 cells."""
    rng = np.random.default_rng(22)
    maps = {**{name: _density(name, rng) for name in synthetic_maps()}, "spots": _spots()}
    settings = [(name, eps, n) for name in maps for eps, n in ((3.5, 100_000), (5.0, 10_000))]
    rows = []
    for name, epsilon, people in track(settings, "settings"):
        channel = StampChannel(response_table("dam", epsilon, CELLS))
        found = _covered(channel, maps[name], people, repeats, rng)
        for method, (cell, block, width, block_width) in found.items():
            figures = (f"{cell:.3f}", f"{block:.2f}", f"{width:.2%}", f"{block_width:.2%}")
            rows.append([name, epsilon, people, method, *figures])
    header = ["map", "eps", "n", "method", "cells covered", "block covered"]
    table = markdown([*header, "mean width of a cell", "of the block"], rows)
    click.echo(table)
    if write:
        replace_block(DOCS / "estimation.md", "coverage", table)


def _density(name: str, rng: np.random.Generator) -> NDArray[np.float64]:
    chosen = synthetic_maps()[name]
    cells = (chosen.draw(POPULATION, rng) - (chosen.y0, chosen.x0)) / chosen.side * CELLS
    edges = np.arange(CELLS + 1)
    counts, _, _ = np.histogram2d(cells[:, 0], cells[:, 1], bins=[edges, edges])
    return counts / counts.sum()


def _spots() -> NDArray[np.float64]:
    density = np.full((CELLS, CELLS), 0.4 / CELLS**2)
    density[3, 4] += 0.3
    density[10, 11] += 0.2
    density[7, 2] += 0.1
    return density


def _covered(
    channel: StampChannel,
    truth: NDArray[np.float64],
    people: int,
    repeats: int,
    rng: np.random.Generator,
) -> dict[str, NDArray[np.float64]]:
    block = np.zeros(truth.shape, bool)
    block[3:6, 3:6] = True
    law = channel.forward(truth)[channel.support]
    sums = {method: np.zeros(4) for method in ("fisher", "bootstrap")}
    for _ in range(repeats):
        result = estimate(channel, rng.multinomial(people, law / law.sum()))
        for method, total in sums.items():
            found = result.uncertainty(method=method, rng=rng, replicates=40)
            share = found.region(block)
            inside = (found.lower <= truth) & (truth <= found.upper)
            hit = share.lower <= truth[block].sum() <= share.upper
            row = inside.mean(), hit, found.width.mean(), share.upper - share.lower
            sums[method] = total + np.array(row)
    return {method: total / repeats for method, total in sums.items()}
