"""How often intervals of a change hold the truth in cities where people move, and how wide."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import click
import numpy as np
from matplotlib.path import Path as Outline
from numpy.typing import NDArray

from client_sdk import response_table
from experiments.changing_cities import CITIES, HELD_BACK, TUNED, ChangingCity, changing_city
from experiments.cities import City
from experiments.finished import played
from experiments.setup import Selection, Setup, experiment
from experiments.studies.city_intervals import POLYGONS, districts, polygons, rectangles
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial import Estimate, Field, StampChannel, recommended, wasserstein
from ldpspatial.channels.playing import play
from ldpspatial.estimation.intervals.changes import change_intervals
from ldpspatial.places.regions import polygon

Array = NDArray[np.float64]

# Cells a side, reports a window, epsilon.
SETTINGS = (
    (15, 1_000, 0.5), (20, 1_000, 1.0), (32, 1_000, 0.5), (15, 2_000, 1.0), (15, 2_000, 3.5),
    (15, 20_000, 1.0), (15, 20_000, 3.5), (15, 100_000, 2.0), (15, 100_000, 6.0), (32, 2_000, 3.5),
    (32, 20_000, 2.0), (32, 100_000, 6.0),
)  # fmt: skip
PAIRS = ((0, 6), (0, 3), (3, 4))
RECTANGLES = 40
LEVEL = 0.95
COLUMNS = ("rectangles", "polygons", "districts", "first to last", "mean width",
           "over separate fits'", "these hold", "W2 over each alone's")  # fmt: skip


@dataclass(frozen=True)
class Held:
    """What the intervals of one series held.

    Attributes
    ----------
    city : str
    cells, users : int
    epsilon : float
    coverage : tuple of float
        Of rectangles, polygons and districts over all pairs of windows, and of all three from the
        first window to the last; of the latter by separate fits, too.
    widths : tuple of float
        Mean width from the first window to the last, together and by separate fits.
    w2 : float
        Of the first and the last map, over those of separate fits.
    """

    city: str
    cells: int
    users: int
    epsilon: float
    coverage: tuple[float, float, float, float, float]
    widths: tuple[float, float]
    w2: float


@experiment("window-changes", repeats=1)
@click.option("--most-cells", cls=Selection, default=32, show_default=True,
              help="Finer grids are left out.")  # fmt: skip
def window_changes(setup: Setup, most_cells: int) -> None:
    """Coverage of 95 % intervals of changes, from seven windows of eight cities.

    People who move by the hour, from where trips begin to where they end, from one city to another,
    or whose places swell and shrink; 15 to 32 cells a side, 1,000 to 100,000 reports a window,
    epsilon .5 to 6; rectangles, polygons, and districts around people. Windows are fitted together,
    and the first and the last alone, too. Runs that were finished are kept in --out and not played
    again.
    """
    settings = [each for each in SETTINGS if each[0] <= most_cells]
    cases = product(CITIES, settings, range(setup.repeats))
    found = played(setup, partial(measured, setup), cases, Held)
    text = "\n\n".join(
        f"{title}\n\n{summary(found, names)}"
        for title, names in (
            ("Cities that the stretch was not chosen on:", HELD_BACK),
            ("Cities that the stretch of changes was chosen on:", TUNED),
        )
    )
    click.echo(text)
    if setup.write:
        replace_block(DOCS / "experiments" / "region-intervals.md", "window-changes", text)


def measured(setup: Setup, case: tuple[str, tuple[int, int, float], int]) -> list[Held]:
    """Play one series in a city, and ask for changes."""
    name, (cells, n, epsilon), repeat = case
    city = changing_city(setup.data, name)
    place = list(CITIES).index(name)
    rng = np.random.default_rng([setup.seed, place, cells, n, int(1000 * epsilon), repeat])
    laws = city.laws(cells)
    disk = recommended(cells, epsilon, n).squared_radius
    channel = StampChannel(response_table("disk", epsilon, cells, squared_radius=disk))
    counts = [reported(channel, law, n, rng) for law in laws]
    windows = Field().fit_windows(channel, counts)
    alone = [Field().fit(channel, counts[k]) for k in (0, -1)]
    masks, truths = regions_of(city, cells, rng)
    drawn = RECTANGLES + POLYGONS
    held = np.array([_held(windows[a], windows[b], masks, truths[:, b] - truths[:, a])
                     for a, b in PAIRS])  # fmt: skip
    apart = _held(*alone, masks, truths[:, -1] - truths[:, 0])
    hits = held[:, 0]
    coverage = (
        hits[:, :RECTANGLES], hits[:, RECTANGLES:drawn], hits[:, drawn:], hits[0], apart[0],
    )  # fmt: skip
    errors = [
        sum(wasserstein(maps[k].density, laws[k]) for k in (0, -1)) for maps in (windows, alone)
    ]
    return [Held(
        name, cells, n, epsilon,
        tuple(float(each.mean()) for each in coverage),  # type: ignore[arg-type]
        (float(held[0, 1].mean()), float(apart[1].mean())), errors[0] / errors[1],
    )]  # fmt: skip


def reported(channel: StampChannel, law: Array, n: int, rng: np.random.Generator) -> Array:
    """Return the counts of what n people of a law report."""
    people = rng.multinomial(n, law.ravel() / law.sum()).reshape(law.shape)
    rows, cols = np.nonzero(people)
    times = people[rows, cols]
    return play(channel.table, rows.repeat(times), cols.repeat(times), rng)


def regions_of(
    city: ChangingCity, cells: int, rng: np.random.Generator
) -> tuple[list[Array], Array]:
    """Return weights of rectangles, polygons and districts, and (regions, windows) true shares."""
    laws = city.laws(cells)
    masks = list(rectangles(cells, RECTANGLES, rng))
    shares = [(laws * mask).sum((1, 2)) for mask in masks]
    south, west, side = city.square
    still = City(city.name, city.square, city.points)
    outlines = list(polygons(still, np.random.default_rng(list(CITIES).index(city.name))))
    outlines += districts(still, city.shares, rng)
    for corners in outlines:
        at = [(south + side * y, west + side * x) for y, x in corners]
        masks.append(polygon(city.grid(cells), at))
        shares.append(city.shares[:, Outline(corners).contains_points(city.points)].sum(1))
    return masks, np.array(shares)


def _held(earlier: Estimate, later: Estimate, masks: Sequence[Array], changes: Array) -> Array:
    """Return which intervals hold the change, and how wide they are: (2, regions)."""
    intervals = change_intervals(earlier, later, LEVEL)
    found = [intervals.of(mask) for mask in masks]
    hits = [each.lower <= change <= each.upper for each, change in zip(found, changes, strict=True)]
    return np.array([hits, [each.upper - each.lower for each in found]], np.float64)


def summary(found: Iterable[Held], names: Iterable[str]) -> str:
    """Return a table by city, cells and users, with a line for all."""
    kept = [each for each in found if each.city in set(names)]
    groups = [("all", kept)]
    groups += [(name, [each for each in kept if each.city == name]) for name in names]
    for words, field in (("cells", "cells"), ("reports a window", "users")):
        values = sorted({getattr(each, field) for each in kept})
        groups += [
            (f"{value:,} {words}", [each for each in kept if getattr(each, field) == value])
            for value in values
        ]
    return markdown(["", *COLUMNS], [[name, *_line(group)] for name, group in groups if group])


def _line(group: list[Held]) -> list[str]:
    coverage = np.mean([each.coverage for each in group], axis=0)
    width = np.mean([each.widths[0] for each in group])
    ratio = np.exp(np.mean([np.log(each.widths[0] / each.widths[1]) for each in group]))
    w2 = np.exp(np.mean([np.log(each.w2) for each in group]))
    return [
        *(f"{each:.3f}" for each in coverage[:-1]), f"{100 * width:.2f} points",
        f"{ratio:.2f}", f"{coverage[-1]:.3f}", f"{w2:.2f}",
    ]  # fmt: skip
