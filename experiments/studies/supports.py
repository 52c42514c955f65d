"""How often a support is spoken against: where it holds everybody, and where it does not."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from client_sdk import response_table
from experiments.generated import write_page
from experiments.progress import tracked
from experiments.sources import data_option
from experiments.studies.fit_check import maps_of
from experiments.tables import DOCS, markdown
from ldpspatial import StampChannel
from ldpspatial.errors import LdpSpatialError
from ldpspatial.estimation.field.outside import gain_of_outside

Array = NDArray[np.float64]

# What counts by chance was chosen on Gowalla's cities, of which these have none.
MAPS = ("normal", "szipf", "mnormal", "chicago", "new york", "tokyo", "uniform")
SIDES = (15, 32, 64)
EPSILONS = (0.7, 1.4, 2.5, 4.0, 6.0)
USERS = (2_000, 50_000, 1_000_000)
MECHANISMS = ("dam", "huem")
KEPT = 0.4  # part of the people who are beyond a line, and of whom no one is then there
LEFT_OUT = (0.01, 0.02, 0.05, 0.15)
HOLDS = "holds all"


@dataclass(frozen=True)
class Asked:
    """One collection and what was said of a support."""

    map: str
    epsilon: float
    users: int
    support: str
    told: bool


@click.command("supports")
@data_option
@click.option("--repeats", default=1, show_default=True, type=click.IntRange(1),
              help="Collections of each setting.")  # fmt: skip
@click.option("--side", type=click.Choice([str(side) for side in SIDES]),
              help="Of these cells a side alone.")  # fmt: skip
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
@click.option("--write", is_flag=True, help="Write docs/generated/supports.md.")
def supports(data: Path, repeats: int, side: str | None, seed: int, write: bool) -> None:
    """Show how often people outside a support are warned of: falsely, and rightly.

    Seven maps, 15 to 64 cells a side, epsilon .7 to 6, 2,000 to 10^6 reports, DAM and HUEM.
    Supports hold everybody, or leave out those beyond a line of random direction.
    """
    if write and side is not None:
        raise click.UsageError("--write is for the whole table: leave --side out")
    sides = SIDES if side is None else (int(side),)
    try:
        maps = {cells: maps_of(cells, data) for cells in sides}
    except LdpSpatialError as error:
        raise click.ClickException(str(error)) from error
    settings = list(product(sides, MAPS, EPSILONS, USERS, MECHANISMS, range(repeats)))
    asked: list[Asked] = []
    for number, (cells, name, epsilon, users, mechanism, _) in enumerate(
        tracked(settings, "collections")
    ):
        rng = np.random.default_rng([seed, number])
        channel = StampChannel(response_table(mechanism, epsilon, cells))
        for label, density, support in cases(maps[cells][name], rng):
            counts = _reports(channel, density, users, rng)
            told = gain_of_outside(channel, counts, support) > 0
            asked.append(Asked(name, epsilon, users, label, told))
    page = "\n\n".join(tables(asked))
    click.echo(page)
    if write:
        write_page(DOCS, "supports", page)


def cases(density: Array, rng: np.random.Generator) -> Iterator[tuple[str, Array, Array]]:
    """Yield what a support is, the map of the people, and the support; with a cell outside."""
    angle = rng.uniform(0, 2 * np.pi)
    rows, cols = np.indices(density.shape)
    order = np.argsort((rows * np.cos(angle) + cols * np.sin(angle)).ravel(), kind="stable")
    before = density.ravel()[order].cumsum()

    def beyond(share: float) -> Array:
        support = np.ones(density.size)
        support[order[before < share]] = 0
        return support.reshape(density.shape)

    kept = beyond(KEPT)
    around = ndimage.binary_dilation(density > 0).astype(np.float64)
    every = [(HOLDS, density * kept, kept), (HOLDS, density, around)]
    every += [(f"{share:.0%}", density, beyond(share)) for share in LEFT_OUT]
    for label, people, support in every:
        if 0 < np.count_nonzero(support) < support.size:
            yield label, people / people.sum(), support


def tables(asked: list[Asked]) -> Iterator[str]:
    """Yield the parts of the page."""
    held = [each for each in asked if each.support == HOLDS]
    wrong = sum(each.told for each in held)
    yield f"{wrong} false alarms in {len(held)} collections whose support holds everybody."
    yield "How often people are told of whom a support leaves out so many, at most, by epsilon."
    yield _by(asked, "epsilon", EPSILONS)
    yield "By the number of reports."
    yield _by(asked, "users", USERS)
    yield "By map."
    yield _by(asked, "map", MAPS)


def _by(asked: list[Asked], field: str, values: tuple[object, ...]) -> str:
    rows = []
    for value in values:
        some = [each for each in asked if getattr(each, field) == value]
        row = [f"{value:,}" if isinstance(value, int) else str(value)]
        for label in (HOLDS, *(f"{share:.0%}" for share in LEFT_OUT)):
            told = [each.told for each in some if each.support == label]
            row.append(f"{np.mean(told):.2f} of {len(told)}" if told else "-")
        rows.append(row)
    header = [{"users": "reports"}.get(field, field), HOLDS]
    return markdown([*header, *(f"{share:.0%} left out" for share in LEFT_OUT)], rows)


def _reports(channel: StampChannel, density: Array, users: int, rng: np.random.Generator) -> Array:
    law = channel.forward(density)[channel.support]
    counts = np.zeros(channel.support.shape)
    counts[channel.support] = rng.multinomial(users, law / law.sum())
    return counts
