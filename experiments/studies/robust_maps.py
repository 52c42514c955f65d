"""What the robust estimator wins where reports are forged, and whether it loses where none is."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from experiments.cities import cities
from experiments.forgers import farthest
from experiments.progress import tracked
from experiments.sources import data_option
from experiments.studies.fit_check import forgeries, table_of
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial import Estimator, Field, StampChannel, wasserstein
from ldpspatial.errors import LdpSpatialError
from ldpspatial.estimation import Robust

Array = NDArray[np.float64]

CELLS = 15
USERS = 100_000
CITIES = ("austin", "tokyo")  # nothing was chosen on them
FORGED = ((1.0, 0.05), (3.5, 0.02), (3.5, 0.1), (6.0, 0.05))  # epsilon, share of the reports
NOTHING = "nothing"


@dataclass(frozen=True)
class Errors:
    """W2 in cells to where people are.

    Attributes
    ----------
    robust, plain : float
        Of the map by :class:`Robust` and by :class:`Field`, from all reports.
    honest : float
        By Field from the reports that were not forged.
    """

    robust: float
    plain: float
    honest: float


@click.command("robust")
@data_option
@click.option("--repeats", default=1, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=1, show_default=True)
@click.option("--write", is_flag=True, help="Put the table into docs.")
def robust_maps(data: Path, repeats: int, seed: int, write: bool) -> None:
    """W2 of maps by the robust estimator, relative to the field, where reports are forged.

    Two real cities on 15 x 15 cells, the recommended disk, 100,000 reports.
    """
    rng = np.random.default_rng(seed)
    try:
        laws = [city.law(CELLS) for city in cities(data, CITIES)]
    except LdpSpatialError as error:
        raise click.ClickException(str(error)) from error
    found: dict[tuple[str, float, float], list[Errors]] = {}
    settings = list(product(FORGED, laws, range(repeats)))
    for (epsilon, share), law, _ in tracked(settings, "settings"):
        channel = StampChannel(table_of("recommended", epsilon, CELLS, USERS))
        for name, shape in shapes_of(channel, law):
            part = 0.0 if name == NOTHING else share
            errors = measured(channel, law, shape, part, rng)
            found.setdefault((name, epsilon, share), []).append(errors)
    text = table_text(found)
    click.echo(text)
    if write:
        replace_block(DOCS / "experiments" / "forged-reports.md", "robust", text)


def shapes_of(channel: StampChannel, law: Array) -> Iterator[tuple[str, Array]]:
    """Yield what is forged, as distributions over output cells."""
    yield NOTHING, channel.support / channel.support.sum()
    for name, _, shape in forgeries(channel, law):
        if name != "unrandomised":  # the copy of the map is the same with a larger share
            yield name, shape
    corner = np.zeros(law.shape)
    corner[farthest(law)] = 1
    yield "unrandomised, far corner", np.pad(corner, channel.table.radius)
    drawn = channel.forward(corner)
    lifted = np.where(channel.support, drawn - drawn[channel.support].min(), 0)
    yield "disk alone, far corner", lifted / lifted.sum()
    yield "drawn, far corner", drawn / drawn.sum()
    yield "noise", channel.support / channel.support.sum()


def measured(
    channel: StampChannel, law: Array, shape: Array, share: float, rng: np.random.Generator
) -> Errors:
    """Play one collection of which a share is forged, and return the errors of its maps."""
    forged = round(USERS * share)
    honest = _drawn(channel.forward(law), USERS - forged, rng)
    counts = honest + _drawn(shape, forged, rng)
    return Errors(
        robust=_error(Robust(), channel, law, counts),
        plain=_error(Field(), channel, law, counts),
        honest=_error(Field(), channel, law, honest),
    )


def _drawn(law: Array, n: int, rng: np.random.Generator) -> Array:
    return np.asarray(rng.multinomial(n, law.ravel() / law.sum()).reshape(law.shape))


def _error(estimator: Estimator, channel: StampChannel, law: Array, counts: Array) -> float:
    return wasserstein(law, estimator.fit(channel, counts).density)


def table_text(found: dict[tuple[str, float, float], list[Errors]]) -> str:
    """Return the table: geometric means over the maps, relative to the field on all reports."""
    names = dict.fromkeys(name for name, _, _ in found)
    rows = [[name, *(_told(found[(name, *setting)]) for setting in FORGED)] for name in names]
    header = [f"eps {epsilon:g}, {share:.0%}" for epsilon, share in FORGED]
    return markdown(["forged", *header], rows)


def _told(errors: list[Errors]) -> str:
    robust = np.array([each.robust / each.plain for each in errors])
    honest = np.array([each.honest / each.plain for each in errors])
    return f"{_mean(robust):.2f} ({robust.max():.2f}), {_mean(honest):.2f}"


def _mean(ratios: Array) -> float:
    return float(np.exp(np.log(ratios).mean()))
