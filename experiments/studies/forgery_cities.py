"""How near optimised forgeries come to what a summary says of them: real cities, default disks."""

from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from experiments.cities import cities
from experiments.means import range_of
from experiments.optimised_forgers import ascended, far_from, starts
from experiments.progress import tracked
from experiments.sources import data_option
from experiments.studies.fit_check import table_of
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial import StampChannel, wasserstein
from ldpspatial.errors import LdpSpatialError
from ldpspatial.estimation import influence
from ldpspatial.estimation.forgery.attacks import law_with

Array = NDArray[np.float64]

# By cells a side; the search for the worst output cell was not chosen on these.
PLACES = {15: ("cabs", "chicago c", "new york b"), 20: ("cabs",), 32: ("new york b",)}
EPSILONS = (0.5, 1.0, 2.0, 3.5, 6.0)
SHARES = (0.001, 0.01, 0.05)
USERS = 100_000  # whom the disk is recommended for


@dataclass(frozen=True)
class Attacked:
    """What forgeries did to one map, beside what was said of them; W2 in cells.

    Attributes
    ----------
    best : the farthest that any forgery moved the fit of maximum likelihood
    w2, reached, proven : as :func:`ldpspatial.estimation.influence` has them
    """

    best: float
    w2: float
    reached: float
    proven: float


@click.command("forgery-cities")
@data_option
@click.option("--seed", default=1, show_default=True, help="Of the starts.")
@click.option("--write", is_flag=True, help="Write the table in docs/experiments.")
def forgery_cities(data: Path, seed: int, write: bool) -> None:
    """Show how near optimised forgeries come to w2, on real cities with the recommended disk.

    .1, 1 and 5 % of all reports are forged, on 15, 20 and 32 cells a side. Ascents start from
    single outputs, honest reports of two corners, these without their even part, mixtures, and
    chance.
    """
    rng = np.random.default_rng(seed)
    try:
        where = {
            side: [city.law(side) for city in cities(data, names)] for side, names in PLACES.items()
        }
    except LdpSpatialError as error:
        raise click.ClickException(str(error)) from error
    settings = [(epsilon, share) for epsilon in EPSILONS for share in SHARES]
    found = {
        setting: [
            attacked(side, *setting, density, rng) for side in PLACES for density in where[side]
        ]
        for setting in tracked(settings, "settings")
    }
    table = shown(found)
    click.echo(table)
    if write:
        replace_block(DOCS / "experiments" / "forged-reports.md", "forgery-cities", table)


def attacked(
    side: int, epsilon: float, share: float, density: Array, rng: np.random.Generator
) -> Attacked:
    """Attack one map from all starts."""
    channel = StampChannel(table_of("recommended", epsilon, side, USERS))
    told = influence(channel, density, share)
    begun = list(starts(channel, density, share, rng).values())
    begun.append(law_with(channel, density, 1.0, *told.cells)[channel.support])
    fits = [ascended(channel, density, share, far_from(density), each)[1] for each in begun]
    best = max(wasserstein(density, fit) for fit in fits)
    return Attacked(best, told.w2, told.reached, told.proven)


def shown(found: dict[tuple[float, float], list[Attacked]]) -> str:
    """Return the table: a row for each setting, least and most over the maps in each column."""
    rows = [
        [
            f"{epsilon:g}",
            f"{share:.1%}",
            range_of(run.best for run in runs),
            range_of(run.best / run.reached for run in runs),
            range_of(run.w2 / run.best for run in runs),
            range_of(run.proven / run.best for run in runs),
            "yes" if any(run.best > run.w2 for run in runs) else "no",
        ]
        for (epsilon, share), runs in found.items()
    ]
    header = ["eps", "forged", "best attack, cells", "attack / reached", "w2 / attack",
              "proven / attack", "broken"]  # fmt: skip
    return markdown(header, rows)
