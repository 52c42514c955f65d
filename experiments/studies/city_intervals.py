"""How often intervals hold the truth in real cities: cells, rectangles, discs, polygons."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product

import click
import numpy as np
from matplotlib.path import Path as Outline
from numpy.typing import NDArray

from client_sdk import response_table
from experiments.cities import HELD_BACK, SQUARES, TUNED, City, cities
from experiments.finished import played
from experiments.setup import Selection, Setup, experiment
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial import Field, StampChannel, estimate, recommended
from ldpspatial.channels.playing import play
from ldpspatial.estimation.intervals import Interval, cell_intervals, share_intervals
from ldpspatial.estimation.intervals.fisher import fisher
from ldpspatial.estimation.intervals.interval import standard_errors
from ldpspatial.estimation.result import Estimate
from ldpspatial.places.regions import polygon

Array = NDArray[np.float64]

SIDES = (15, 32, 64)
BEFORE = 20  # cells a side up to which fisher intervals were the default
USERS = (10_000, 100_000, 1_000_000)
EPSILONS = (1.0, 2.0, 3.5)
RECTANGLES = 100
DISCS = 40
POLYGONS = 20
DISTRICTS = 20
WIDEST_TURN = 2.8  # between corners of a star: with a wider one its centre may lie outside
PEAKS = 0.05  # the fullest twentieth of the cells
COLUMNS = ("cells", "peaks", "rectangles", "discs", "polygons", "polygon width", "over fisher's",
           "polygon error", "over that of EM")  # fmt: skip
ERRORS = ("eps", "users", "field", "it expects", "EM", "field over EM", "EM, cells rightly divided",
          "true cells", "unbiased")  # fmt: skip
NARROW = 0.001  # level of intervals that are hardly cut at 0 and 1
MEAN_ERROR = float(np.sqrt(2 / np.pi))  # of a normal law, in standard deviations


@dataclass(frozen=True)
class Held:
    """What the intervals of one collection held, and how wide they were.

    Attributes
    ----------
    city : str
    cells, users : int
    epsilon : float
    numbers : tuple of float
        Coverage of cells, peaks, rectangles, discs and polygons; mean width of polygons, with that
        of fisher at 20 cells a side.
    errors : tuple of float
        Mean errors of polygons: the field's; what its samples expect it to be; and at 20 cells a
        side EM's; EM's if each cell is divided as its people are; of the true shares of cells,
        divided by area; of the efficient unbiased estimate.
    """

    city: str
    cells: int
    users: int
    epsilon: float
    numbers: tuple[float, ...]
    errors: tuple[float, ...]


@experiment("city-intervals", repeats=1)
@click.option("--most-users", cls=Selection, default=USERS[-1], show_default=True,
              help="More are left out.")  # fmt: skip
def city_intervals(setup: Setup, most_users: int) -> None:
    """Coverage of 95 % intervals in eleven squares of eight cities, as one gets them by default.

    Cells, their fullest twentieth, 100 random rectangles, 40 discs around people and 20 polygons;
    15, 32 and 64 cells a side, 10,000 to 1,000,000 users, epsilon 1, 2 and 3.5. Polygons are held
    against the points themselves, and beside fisher intervals at 20 cells a side. Runs that were
    finished are kept in --out and not played again.
    """
    users = [n for n in USERS if n <= most_users]
    cases = product(SQUARES, SIDES, users, EPSILONS, range(setup.repeats))
    found = played(setup, partial(measured, setup), cases, Held)
    text = "\n\n".join(
        f"{title}\n\n{summary(found, names)}"
        for title, names in (
            ("Cities that nothing was chosen on:", HELD_BACK),
            ("Cities that the field and its intervals were chosen on:", TUNED),
        )
    )
    errors = by_knowledge(found, HELD_BACK)
    click.echo(f"{text}\n\n{errors}")
    if setup.write:
        replace_block(DOCS / "experiments" / "region-intervals.md", "city-intervals", text)
        replace_block(DOCS / "experiments" / "region-intervals.md", "polygon-errors", errors)


def measured(setup: Setup, case: tuple[str, int, int, float, int]) -> list[Held]:
    """Play one collection in a city and ask for intervals."""
    name, cells, n, epsilon, _ = case
    (city,) = cities(setup.data, (name,))
    number = [int(1000 * each) for each in case[1:]]
    rng = np.random.default_rng([setup.seed, list(SQUARES).index(name), *number])
    people = city.people(n, rng)
    found = collected(city, people, cells, epsilon, rng)
    found = Field().fit(found.channel, found.counts)
    law = city.law(cells)
    sure = cell_intervals(found)
    inside = (sure.lower <= law) & (law <= sure.upper)
    peaks = law >= np.sort(law.ravel())[-max(1, round(PEAKS * law.size))]
    shares = share_intervals(found, 0.95, "auto")
    hits = [
        np.mean([_holds(shares.of(mask), float((mask * law).sum())) for mask in masks])
        for masks in (rectangles(cells, RECTANGLES, rng), discs(city, cells, rng))
    ]
    before = collected(city, people, BEFORE, epsilon, rng)
    widths, errors = of_polygons(city, found, before)
    numbers = (inside.mean(), inside[peaks].mean(), *hits, *widths)
    return [Held(name, cells, n, epsilon, tuple(map(float, numbers)), tuple(map(float, errors)))]


def of_polygons(city: City, found: Estimate, before: Estimate) -> tuple[Array, Array]:
    """Return coverage and the two widths, and the errors of `Held`: means over polygons."""
    samples = np.asarray(found.samples)
    shares = share_intervals(found, 0.95, "auto")
    wide = share_intervals(before, 0.95, "fisher")
    narrow = fisher(before, NARROW)
    everybody = city.histogram(city.points, BEFORE)
    widths, errors = [], []
    for corners in polygons(city, np.random.default_rng(list(SQUARES).index(city.name))):
        inside = Outline(corners).contains_points(city.points)
        truth = float(inside.mean())
        south, west, side = city.square
        at = [(south + side * y, west + side * x) for y, x in corners]
        fine = polygon(city.grid(len(found.density)), at)
        coarse = polygon(city.grid(BEFORE), at)
        ours, theirs = shares.of(fine), wide.of(coarse)
        widths.append((_holds(ours, truth), ours.upper - ours.lower, theirs.upper - theirs.lower))
        within = city.histogram(city.points[inside], BEFORE) / np.maximum(everybody, 1)
        drawn = (samples * fine).sum((1, 2))
        lower, upper = narrow.bounds(coarse)
        errors.append(
            (
                abs(ours.estimate - truth),
                np.abs(drawn - drawn.mean()).mean(),
                abs(theirs.estimate - truth),
                abs((np.where(everybody > 0, within, coarse) * before.density).sum() - truth),
                abs((coarse * everybody).sum() / everybody.sum() - truth),
                MEAN_ERROR * (upper - lower) / (2 * standard_errors(NARROW)),
            )
        )
    return np.mean(widths, axis=0), np.mean(errors, axis=0)


def collected(
    city: City, people: Array, cells: int, epsilon: float, rng: np.random.Generator
) -> Estimate:
    """Return EM's estimate of what people reported under the recommended disk."""
    square = recommended(cells, epsilon, len(people)).squared_radius
    table = response_table("disk", epsilon, cells, squared_radius=square)
    counts = city.histogram(people, cells)
    rows, cols = np.nonzero(counts)
    times = counts[rows, cols]
    channel = StampChannel(table)
    return estimate(channel, play(table, rows.repeat(times), cols.repeat(times), rng), "scaled")


def rectangles(cells: int, number: int, rng: np.random.Generator) -> Iterable[Array]:
    """Yield masks of random rectangles of whole cells."""
    for _ in range(number):
        (south, north), (west, east) = (
            np.sort(rng.choice(cells + 1, 2, replace=False)) for _ in range(2)
        )
        mask = np.zeros((cells, cells))
        mask[south:north, west:east] = 1
        yield mask


def discs(city: City, cells: int, rng: np.random.Generator) -> Iterable[Array]:
    """Yield masks of the cells whose centres lie in a disc around a person, and of the own cell.

    Radii are .01 to .3 sides of the square, alike in logarithms.
    """
    centres = (np.arange(cells) + 0.5) / cells
    for _ in range(DISCS):
        y, x = city.points[rng.integers(len(city.points))]
        radius = np.exp(rng.uniform(*np.log([0.01, 0.3])))
        mask = (np.hypot(centres[:, None] - y, centres - x) <= radius).astype(np.float64)
        mask[min(int(y * cells), cells - 1), min(int(x * cells), cells - 1)] = 1
        yield mask


def _holds(share: Interval, truth: float) -> bool:
    return share.lower <= truth <= share.upper


def polygons(city: City, rng: np.random.Generator) -> Iterable[Array]:
    """Yield stars of 5 to 19 corners that hold .5 to 95 % of a city's points.

    Half of them around a point, half around anywhere; (corners, 2) in sides of the square.
    """
    found = 0
    while found < POLYGONS:
        anyone = city.points[rng.integers(len(city.points))]
        centre = anyone if found % 2 else rng.random(2)
        corners = int(rng.integers(5, 20))
        turns = np.sort(rng.random(corners)) * 2 * np.pi
        if np.diff([*turns, turns[0] + 2 * np.pi]).max() > WIDEST_TURN:
            continue
        reach = rng.uniform(0.06, 0.4) * np.exp(0.25 * rng.standard_normal(corners))
        outline = centre + np.column_stack([reach * np.sin(turns), reach * np.cos(turns)])
        if 0.005 < Outline(outline).contains_points(city.points).mean() < 0.95:
            found += 1
            yield outline


def districts(city: City, shares: Array, rng: np.random.Generator) -> Iterable[Array]:
    """Yield small stars around people that hold .02 to .4 of them in some window.

    Parameters
    ----------
    city : City
    shares : (windows, points) array
        Share of the people at each of its points.
    rng : numpy Generator

    Yields
    ------
    (corners, 2) array in sides of the square
    """
    found = 0
    while found < DISTRICTS:
        outline = _star(city.points[rng.integers(len(city.points))], rng)
        if outline is None:
            continue
        inside = Outline(outline).contains_points(city.points)
        if 0.02 < shares[:, inside].sum(1).max() < 0.4:
            found += 1
            yield outline


def _star(centre: Array, rng: np.random.Generator) -> Array | None:
    """Return 5 to 15 corners, 1/40 to 1/6 of a side away; None where the centre may be outside."""
    turns = np.sort(rng.random(int(rng.integers(5, 16)))) * 2 * np.pi
    if np.diff([*turns, turns[0] + 2 * np.pi]).max() > WIDEST_TURN:
        return None
    middle = np.exp(rng.uniform(*np.log([1 / 40, 1 / 6])))
    reach = middle * np.exp(0.25 * rng.standard_normal(len(turns)))
    return np.asarray(centre + np.column_stack([reach * np.sin(turns), reach * np.cos(turns)]))


def summary(found: Iterable[Held], names: Iterable[str]) -> str:
    """Return a table by city, with a line for all, and by cells, epsilon and users."""
    kept = [each for each in found if each.city in set(names)]
    groups = [("all", kept)]
    groups += [(name, [each for each in kept if each.city == name]) for name in names]
    groups += [(f"{d} cells", [each for each in kept if each.cells == d]) for d in SIDES]
    groups += [(f"eps {eps:g}", [each for each in kept if each.epsilon == eps]) for eps in EPSILONS]
    groups += [(f"{n:,} users", [each for each in kept if each.users == n]) for n in USERS]
    lines = [[name, *_line(group)] for name, group in groups if group]
    return markdown(["", *COLUMNS], lines)


def _line(group: list[Held]) -> list[str]:
    numbers = np.mean([each.numbers for each in group], axis=0)
    errors = np.mean([each.errors for each in group], axis=0)
    held = [f"{each:.3f}" for each in numbers[:5]]
    width, before = numbers[5:]
    return [
        *held, f"{width:.2%}", f"{width / before:.2f}",
        f"{errors[0]:.2%}", f"{errors[0] / errors[2]:.2f}",
    ]  # fmt: skip


def by_knowledge(found: Iterable[Held], names: Iterable[str]) -> str:
    """Return a table of errors of polygons by epsilon and users, on the finest grid."""
    kept = [each for each in found if each.city in set(names) and each.cells == max(SIDES)]
    lines = []
    for epsilon, n in product(EPSILONS, USERS):
        group = [each.errors for each in kept if (each.epsilon, each.users) == (epsilon, n)]
        if group:
            field, expected, before, *parts = np.mean(group, axis=0)
            lines.append(
                [
                    f"{epsilon:g}", f"{n:,}", f"{field:.2%}", f"{expected:.2%}", f"{before:.2%}",
                    f"{field / before:.2f}", *(f"{part:.2%}" for part in parts),
                ]
            )  # fmt: skip
    return markdown(ERRORS, lines)
