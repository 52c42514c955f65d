"""How often intervals from the noise of levels hold the truth: cells, rectangles, polygons."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import sqrt
from typing import cast

import click
import numpy as np
from matplotlib.path import Path as Outline
from numpy.typing import NDArray

from client_sdk import Grid
from experiments.cities import HELD_BACK, SQUARES, City, cities
from experiments.finished import played
from experiments.generated import write_page
from experiments.setup import Selection, Setup, experiment
from experiments.studies.city_intervals import PEAKS, polygons, rectangles
from experiments.studies.levels import COHORT
from experiments.tables import DOCS, markdown, replace_block
from experiments.towns import Town, towns
from ldpspatial import level_intervals
from ldpspatial.estimation.intervals import Uncertainty
from ldpspatial.estimation.intervals.levels import OPEN_PARTS
from ldpspatial.estimation.levels import LevelMap
from ldpspatial.places.regions import polygon
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.distributed import DistributedLevels
from ldpspatial.release.release import Release
from ldpspatial.validate import positive

Array = NDArray[np.float64]

# Seeds of towns that nothing else was measured on.
TOWNS = {town.name: town for town in towns((2721, 2722, 2723, 2724))}
USERS = (1_000, 10_000, 100_000, 1_000_000)
MAPS = (*HELD_BACK, *TOWNS)
SOME = ("austin", "town 2722", "tokyo", "town 2721")
# Cells a side, maps and numbers of users: fewer where there are more cells.
PARTS = (
    (32, MAPS, USERS),
    (64, SOME, (10_000,)),
    (256, SOME, (10_000, 1_000_000)),
)
EPSILONS = (0.1, 0.5, 1.0, 5.0)
RECTANGLES = 40
DRAWN = 20_000  # places of a town that its polygons are drawn around
RELEASES: Mapping[str, Release] = {
    "central-levels, distance": CentralLevels(),
    "central-levels, cells": CentralLevels("cells"),
    "distributed-levels, distance": DistributedLevels(COHORT),
    "distributed-levels, cells": DistributedLevels(COHORT, "cells"),
}
WAYS = ("", *(f", parts {way}" for way in OPEN_PARTS[1:]))
HELD = (
    *("cells", "cells with a sum", "people's cells", "peaks"),
    *(f"{regions}{way}" for way in WAYS for regions in ("rectangles", "polygons")),
)
WIDE = (
    "cell width",
    *(f"{region} width{way}" for region in ("rectangle", "polygon") for way in WAYS),
)
COLUMNS = (*HELD, *WIDE)
SUMMED_UP = ("cells with a sum", *HELD[4:5], *HELD[6:])
AIMED_AT = (0.94, 0.97)


@dataclass(frozen=True)
class Held:
    """What the intervals of one map held, and how wide they were.

    Attributes
    ----------
    release, map : str
    cells, users : int
    epsilon : float
    numbers : tuple of float
        Coverage of all cells, of those with a sum of their own, of those with people, of the
        fullest, of rectangles and polygons with their open parts together, apart and learned; mean
        widths of cells, and of rectangles and polygons in each way. Not a number where there is
        none.
    """

    release: str
    map: str
    cells: int
    users: int
    epsilon: float
    numbers: tuple[float, ...]


@experiment("level-intervals", repeats=4)
@click.option(
    "--release",
    "names",
    cls=Selection,
    multiple=True,
    type=click.Choice([*RELEASES]),
    default=[*RELEASES],
    help="This release alone; may be given again.",
)
@click.option(
    "--side", "sides", cls=Selection, multiple=True, type=int, help="These cells a side alone."
)
@click.option(
    "--users", cls=Selection, multiple=True, type=int, help="These numbers of users alone."
)
@click.option(
    "--epsilon", "epsilons", cls=Selection, multiple=True, type=float, help="These epsilons alone."
)
def level_intervals_study(
    setup: Setup,
    names: Sequence[str],
    sides: Sequence[int],
    users: Sequence[int],
    epsilons: Sequence[float],
) -> None:
    """Coverage of 95 % intervals of central-levels and distributed-levels, for both aims.

    Five cities and four generated towns, 1,000 to 1,000,000 users, epsilon .1 to 5, 32 cells a
    side; four of them at 64 and 256. All cells, the fullest twentieth, 40 random rectangles and 20
    polygons, which are held against the places themselves. In the distributed model 10 % of the
    clients fail and 10 % collude. Runs that were finished are kept in --out and not played again.
    """
    for epsilon in epsilons:
        positive("--epsilon", epsilon)
    asked = epsilons or EPSILONS
    cases = [
        case
        for cells, maps, numbers in PARTS
        for case in product(maps, (cells,), numbers, range(setup.repeats), [names], [asked])
        if (not sides or cells in sides) and (not users or case[2] in users)
    ]
    # The longest first, so that no process is left with one of them.
    cases.sort(key=lambda case: (case[1], case[2]), reverse=True)
    found = played(setup, partial(measured, setup), cases, Held)
    summary = _of_all(found, names)
    sections = "\n\n".join(_section(found, name) for name in names)
    settings = "\n\n".join(_by_setting(found, name) for name in names)
    click.echo(f"{summary}\n\n{sections}\n\n{settings}")
    if setup.write:
        replace_block(DOCS / "experiments" / "levels.md", setup.name, summary)
        write_page(DOCS, setup.name, f"{sections}\n\n{settings}")


def measured(
    setup: Setup, case: tuple[str, int, int, int, Sequence[str], Sequence[float]]
) -> list[Held]:
    """Publish maps of the same people by the releases at each epsilon, and ask for intervals."""
    name, cells, n, repeat, names, epsilons = case
    place = TOWNS[name] if name in TOWNS else cities(setup.data, (name,))[0]
    number = MAPS.index(name)
    rng = np.random.default_rng([setup.seed, number, cells, n, repeat])
    places = place.people(n, rng)
    at = np.minimum((places * cells).astype(np.int64), cells - 1)
    users = cells_by_user(np.arange(n), at[:, 0] * cells + at[:, 1], (cells, cells))
    regions = list(rectangles(cells, RECTANGLES, rng))
    truth = [float((mask * users.density).sum()) for mask in regions]
    for outline in polygons(_drawn_around(place), np.random.default_rng(number)):
        regions.append(polygon(Grid.plane(0, 0, 1, cells), list(map(tuple, outline))))
        truth.append(float(Outline(outline).contains_points(places).mean()))
    found = []
    for label, epsilon in product(names, epsilons):
        levels = cast(LevelMap, RELEASES[label].release(users, epsilon, rng).levels)
        numbers = _held(levels, users.density, regions, truth)
        found.append(Held(label, name, cells, n, epsilon, numbers))
    return found


def _drawn_around(place: City | Town) -> City:
    """Return the city itself, or some places of a town as one."""
    if isinstance(place, City):
        return place
    return City(place.name, (0, 0, 1), place.people(DRAWN, np.random.default_rng(place.seed)))


def _held(
    levels: LevelMap, density: Array, regions: Iterable[Array], truth: Iterable[float]
) -> tuple[float, ...]:
    """Return the numbers of one map; its rectangles come first among the regions."""
    ways = [level_intervals(levels, open_parts=each) for each in OPEN_PARTS]
    sure = ways[0]
    least = 1e-12  # where noise is in whole people an end may be the truth itself, but for rounding
    inside = (sure.lower <= density + least) & (density <= sure.upper + least)
    peaks = density >= np.sort(density.ravel())[-max(1, round(PEAKS * density.size))]
    told = [
        [_region(each, mask, share, least) for each in ways]
        for mask, share in zip(regions, truth, strict=True)
    ]
    # Means of each way by (held, width).
    of_rectangles, of_polygons = (
        np.mean(part, axis=0) for part in (told[:RECTANGLES], told[RECTANGLES:])
    )
    return (
        float(inside.mean()),
        _mean(inside[with_sums(levels)]),
        _mean(inside[density > 0]),
        _mean(inside[peaks & (density > 0)]),
        *(float(part[way, 0]) for way in range(len(ways)) for part in (of_rectangles, of_polygons)),
        float(sure.width.mean()),
        *of_rectangles[:, 1].tolist(),
        *of_polygons[:, 1].tolist(),
    )


def _region(sure: Uncertainty, mask: Array, truth: float, least: float) -> tuple[bool, float]:
    lower, upper = sure.bounds(mask)
    return lower <= truth + least and truth <= upper + least, upper - lower


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if values.size else float("nan")


def with_sums(levels: LevelMap) -> NDArray[np.bool_]:
    """Tell which cells were asked by themselves: the others lie in nodes that were not divided."""
    tree = levels.tree
    last = levels.levels[-1]
    if last.level < tree.depth or not np.isfinite(last.variance):
        return np.zeros(tree.shape, bool)
    return tree.spread(last.level, last.nodes, np.ones(len(last.nodes))) > 0


def _of_all(found: Sequence[Held], releases: Sequence[str]) -> str:
    """Return the table of all settings together, a line for each release."""
    rows = [[name, *_line([each for each in found if each.release == name])] for name in releases]
    return markdown(["", *COLUMNS], rows)


def _section(found: Iterable[Held], release: str) -> str:
    """Return the table of a release, and where the lowest of its settings lies."""
    ours = [each for each in found if each.release == release]
    groups = {
        "all": ours,
        "cities": [each for each in ours if each.map in SQUARES],
        "towns": [each for each in ours if each.map in TOWNS],
        **{f"{d} cells a side": [each for each in ours if each.cells == d] for d, _, _ in PARTS},
        **{f"{n:,} users": [each for each in ours if each.users == n] for n in USERS},
        **{f"eps {e:g}": [each for each in ours if each.epsilon == e] for e in EPSILONS},
    }
    table = markdown(
        ["", *COLUMNS], [[name, *_line(group)] for name, group in groups.items() if group]
    )
    extremes = "; ".join(_extremes(ours, name) for name in SUMMED_UP)
    return f"**{release}**. By setting: {extremes}.\n\n{table}"


def _settings(held: Iterable[Held]) -> dict[tuple[int, int, float], list[Held]]:
    """Return the runs of each number of cells and of users and each epsilon."""
    settings: dict[tuple[int, int, float], list[Held]] = {}
    for each in sorted(held, key=lambda each: (each.cells, each.users, each.epsilon)):
        settings.setdefault((each.cells, each.users, each.epsilon), []).append(each)
    return settings


def _extremes(ours: Iterable[Held], name: str) -> str:
    """Return how many settings lie outside of what is aimed at, and where the lowest is."""
    k = COLUMNS.index(name)
    known = {at: _with_error(group, k) for at, group in _settings(ours).items()}
    known = {at: found for at, found in known.items() if not np.isnan(found[0])}
    if not known:
        return f"no {name}"
    (cells, users, epsilon), (least, error) = min(known.items(), key=lambda item: item[1][0])
    low = sum(mean < AIMED_AT[0] for mean, _ in known.values())
    high = sum(mean > AIMED_AT[1] for mean, _ in known.values())
    return (
        f"{name} below {AIMED_AT[0]} in {low} of {len(known)} and above {AIMED_AT[1]} in {high}, "
        f"lowest {_shown(least, error, 'with a standard error of {}')} "
        f"({cells} cells a side, {users:,} users, eps {epsilon:g})"
    )


def _by_setting(found: Iterable[Held], release: str) -> str:
    """Return the coverage at each setting; in brackets its standard error over the runs."""
    rows = []
    for (cells, users, epsilon), group in _settings(
        each for each in found if each.release == release
    ).items():
        held = [_with_error(group, k) for k in range(len(HELD))]
        shown = ["" if np.isnan(mean) else _shown(mean, error, "({})") for mean, error in held]
        rows.append([cells, f"{users:,}", f"{epsilon:g}", len(group), *shown])
    header = ["cells a side", "users", "eps", "maps", *HELD]
    return f"**{release}**\n\n{markdown(header, rows)}"


def _with_error(group: Iterable[Held], k: int) -> tuple[float, float]:
    """Return the mean of a number over the maps that have it, and its standard error."""
    numbers = np.array([each.numbers[k] for each in group])
    there = numbers[~np.isnan(numbers)]
    if not there.size:
        return float("nan"), float("nan")
    error = there.std(ddof=1) / sqrt(there.size) if there.size > 1 else float("nan")
    return float(there.mean()), float(error)


def _shown(mean: float, error: float, words: str) -> str:
    """Return a mean, with its standard error unless it is of one map alone."""
    return f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} {words.format(f'{error:.3f}')}"


def _line(group: list[Held]) -> list[str]:
    numbers = [_with_error(group, k)[0] for k in range(len(COLUMNS))]
    shown = ["" if np.isnan(each) else f"{each:.3f}" for each in numbers[: len(HELD)]]
    return [*shown, *(f"{100 * width:.2g} %" for width in numbers[len(HELD) :])]
