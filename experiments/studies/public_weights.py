"""Shares of regions that cut cells: what public weights inside cells bring, and wrong ones cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product

import click
import numpy as np
from matplotlib.path import Path as Outline
from numpy.typing import NDArray

from experiments.cities import SQUARES, City, cities
from experiments.finished import played
from experiments.setup import Selection, Setup, experiment
from experiments.studies.city_intervals import collected, polygons
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial import Field
from ldpspatial.collecting.region_shares import region_shares
from ldpspatial.places.regions import Region
from ldpspatial.places.within import Within, finer_grid

Array = NDArray[np.float64]

SMALL = ("new york a", "new york b")  # some hundred points, of which half are too few
NAMES = tuple(name for name in SQUARES if name not in SMALL)
SIDES = (20, 32, 64)
COLLECTIONS = ((10_000, 1.0), (100_000, 2.0), (1_000_000, 3.5))  # users, epsilon
FEW = 100  # venues of a poor file
FAR = (0.31, 0.17)  # sides of the square by which a file is shifted, around its edges
NEAR = 1 / 40  # the same of another: half a cell where 20 make a side
AREA = "area alone"
COLUMNS = ("cells", "inside cells", "trust", "error, true counts", "error", "worst city",
           "coverage", "worst city", "width")  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What the polygons of one collection were told by one file.

    Attributes
    ----------
    city : str
    cells : int
    file : str
    numbers : tuple of float
        Trust; mean error of shares with the true counts of cells and with the estimate's, share of
        intervals that hold the truth, their mean width.
    """

    city: str
    cells: int
    file: str
    numbers: tuple[float, ...]


@experiment("public-weights", repeats=1)
@click.option(
    "--least-users", cls=Selection, type=click.IntRange(0), default=0, show_default=True,
    help="Collections of fewer are left out.",
)  # fmt: skip
def public_weights(setup: Setup, least_users: int) -> None:
    """Error and coverage of shares of polygons with public weights inside cells.

    The people are one half of the users of a city. The public files are places of the other half:
    each once, a hundred of them, and all at wrong places. Truth is counted on the points
    themselves, in 20 polygons a city; 20, 32 and 64 cells a side. Runs that were finished are kept
    in --out and not played again.
    """
    collections = [each for each in COLLECTIONS if each[0] >= least_users]
    cases = product(NAMES, SIDES, collections, range(setup.repeats))
    found = played(setup, partial(measured, setup), cases, Told)
    text = summary(found)
    click.echo(text)
    if setup.write:
        replace_block(DOCS / "experiments" / "region-intervals.md", "public-weights", text)


def measured(setup: Setup, case: tuple[str, int, tuple[int, float], int]) -> list[Told]:
    """Play one collection of half of a city, and ask for polygons with each file."""
    name, cells, (n, epsilon), run = case
    (everybody,) = cities(setup.data, (name,))
    number = list(SQUARES).index(name)
    city, others = everybody.halves(np.random.default_rng([setup.seed, number]))
    rng = np.random.default_rng([setup.seed, number, cells, n, run])
    found = collected(city, city.people(n, rng), cells, epsilon, rng)
    found = Field().fit(found.channel, found.counts)
    law = city.law(cells)
    regions, truths = asked(city, cells, np.random.default_rng(number))
    rows = []
    for file, within in files(others, cells, np.random.default_rng(number)).items():
        shares = region_shares(found, regions, within=within)
        trust = shares.trust or 0.0
        told = []
        for row, truth in zip(shares.rows, truths, strict=True):
            weights = row.region.weights
            if within is not None:
                weights = weights + trust * (within.parts(row.region) - weights)
            share = row.share
            told.append(
                (
                    abs((weights * law).sum() - truth),
                    abs(share.estimate - truth),
                    share.lower <= truth <= share.upper,
                    share.upper - share.lower,
                )
            )
        rows.append(Told(name, cells, file, (trust, *map(float, np.mean(told, axis=0)))))
    return rows


def asked(city: City, cells: int, rng: np.random.Generator) -> tuple[list[Region], list[float]]:
    """Return polygons in a city's square, and the share of its points in each."""
    south, west, side = city.square
    regions = []
    truths = []
    for number, outline in enumerate(polygons(city, rng)):
        corners = [(south + side * y, west + side * x) for y, x in outline]
        regions.append(Region.polygon(str(number), city.grid(cells), corners))
        truths.append(float(Outline(outline).contains_points(city.points).mean()))
    return regions, truths


def files(others: City, cells: int, rng: np.random.Generator) -> Mapping[str, Within | None]:
    """Return public weights by what they are made of."""
    places = np.unique(np.round(others.points, 5), axis=0)
    few = places[rng.permutation(len(places))[:FEW]]
    grid = others.grid(cells)
    found: dict[str, Within | None] = {AREA: None}
    for name, points in (
        ("places of others", places),
        (f"{FEW} of them", few),
        ("all, half a 20th off", (places + NEAR) % 1),
        ("all, far off", (places + FAR) % 1),
    ):
        at = City(others.name, others.square, points)
        found[name] = Within(grid, at.law(finer_grid(grid).cells))
    return found


def summary(found: list[Told]) -> str:
    """Return a table with a line for each file and number of cells."""
    lines = []
    for cells, file in dict.fromkeys((each.cells, each.file) for each in found):
        kept = [each for each in found if (each.cells, each.file) == (cells, file)]
        towns = dict.fromkeys(each.city for each in kept)
        by_city = np.array(
            [np.mean([each.numbers for each in kept if each.city == town], 0) for town in towns]
        )
        trust, exact, error, held, width = by_city.mean(0)
        lines.append(
            [
                str(cells), file, "" if file == AREA else f"{trust:.2f}",
                f"{exact:.2%}", f"{error:.2%}", f"{by_city[:, 2].max():.2%}",
                f"{held:.3f}", f"{by_city[:, 3].min():.2f}", f"{width:.2%}",
            ]
        )  # fmt: skip
    return markdown(COLUMNS, lines)
