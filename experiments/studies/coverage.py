"""Coverage of the 95 % intervals, by simulation."""

from collections.abc import Mapping, Sequence

import click
import numpy as np
from numpy.typing import NDArray

from client_sdk import response_table
from experiments.generated import write_page
from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block
from experiments.trials import draw_trial
from ldpspatial import StampChannel, estimate
from ldpspatial.datasets import synthetic_maps
from ldpspatial.estimation import cell_intervals

Row = tuple[str, ...]
HEADER = ("map", "d", "eps", "n", "method", "cells covered", "peaks", "block",
          "mean width of a cell", "of the block")  # fmt: skip
POPULATION = 10_000_000  # draws behind a map's law
SETTINGS = ((15, 3.5, 100_000), (15, 5.0, 10_000), (32, 3.5, 100_000))  # d, eps, n
METHODS = {"scaled": "fisher", "field": "posterior"}  # by rule


@click.command()
@click.option("--repeats", default=20, show_default=True)
@click.option(
    "--write",
    is_flag=True,
    help="Write the page and the summary in docs/experiments/estimators.md.",
)
def coverage(repeats: int, write: bool) -> None:
    """Share of intervals that hold the truth: all cells, peaks, and a block of 3 x 3 cells."""
    found = {rule: covered(rule, repeats) for rule in METHODS}
    page = "\n\n".join(
        f"## Estimates by `{rule}`\n\n{markdown(HEADER, rows)}" for rule, rows in found.items()
    )
    summary = summarised(found)
    click.echo(f"{page}\n\n{summary}")
    if write:
        write_page(DOCS, "coverage", page)
        replace_block(DOCS / "experiments" / "estimators.md", "coverage", summary)


def covered(rule: str, repeats: int) -> list[Row]:
    """Return the coverage of estimates by a rule, a row for each setting, map and method."""
    rng = np.random.default_rng(22)
    names = [*synthetic_maps(), "city", "spots"]
    settings = [(name, *how) for how in SETTINGS for name in names]
    rows: list[Row] = []
    for name, cells, epsilon, people in tracked(settings, rule):
        channel = StampChannel(response_table("dam", epsilon, cells))
        found = _covered(channel, _density(name, cells, rng), people, repeats, rng, rule)
        cell, peak, block, width, block_width = found
        shares = (f"{cell:.2f}", f"{peak:.2f}", f"{block:.2f}")
        widths = (f"{width:.2%}", f"{block_width:.2%}")
        setting = (str(cells), str(epsilon), str(people))
        rows.append((name, *setting, METHODS[rule], *shares, *widths))
    return rows


def summarised(found: Mapping[str, Sequence[Row]]) -> str:
    """Return the least and the most over the maps, a line for each rule, setting and method."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for rule, rows in found.items():
        for row in rows:
            groups.setdefault((f"`{rule}`", *row[1:5]), []).append(row)
    lines = [
        [*key, *(_span([row[column] for row in rows]) for column in range(5, len(HEADER)))]
        for key, rows in groups.items()
    ]
    return markdown(["rule", *HEADER[1:]], lines)


def _span(cells: Sequence[str]) -> str:
    """Return the least and the most of numbers as they are shown."""
    least, most = (choose(cells, key=lambda cell: float(cell.rstrip("%"))) for choose in (min, max))
    return least if least == most else f"{least} to {most}"


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
) -> NDArray[np.float64]:
    block = np.zeros(truth.shape, bool)
    block[3:6, 3:6] = True
    peaks = truth >= np.quantile(truth, 0.95)
    law = channel.forward(truth)[channel.support]
    total = np.zeros(5)
    for _ in range(repeats):
        result = estimate(channel, rng.multinomial(people, law / law.sum()), rule)
        found = cell_intervals(result, method=METHODS[rule])
        share = found.region(block)
        inside = (found.lower <= truth) & (truth <= found.upper)
        hit = share.lower <= truth[block].sum() <= share.upper
        width = found.width.mean(), share.upper - share.lower
        total += (inside.mean(), inside[peaks].mean(), hit, *width)
    return total / repeats
