"""What a campaign on devices comes to: the recommended levels beside the histogram that grows.

Devices are left out: what a secure sum of people comes to is drawn by the device's own rule, the
rounds are those of the plan that a server follows, and sessions are dealt and fail as there.
"""

from itertools import product
from math import log
from typing import NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from client_sdk.rounds import Campaign, RoundDocument
from experiments.cities import MORE, City, cities
from experiments.progress import tracked
from experiments.setup import COUNT, Selection, Setup, experiment
from experiments.studies.levels import summary
from experiments.tables import DOCS, markdown, replace_block
from experiments.towns import Town, towns
from ldpspatial import level_intervals, wasserstein
from ldpspatial.comparison.range_queries import random_rectangles
from ldpspatial.release.distributed.campaigns import SessionSum, campaign_plan
from ldpspatial.release.distributed.noise.polya import sum_of_shares
from ldpspatial.release.distributed.sums.secure_sum import encode
from ldpspatial.release.release import Released
from ldpspatial.service.rounds.server import session_sizes

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

NAME = "campaigns"
SIDE = 64
ROUNDS = 20
SIZES = ((2_000, 100), (20_000, 100), (20_000, 1_000), (100_000, 1_000))  # people, most of a sum
EPSILONS = (0.5, 1.0, 4.0)
TOWNS = (2671, 2672, 2673, 2674)
NAMES = (*MORE, *(town.name for town in towns(TOWNS)))
LEVELS = "distributed-levels"
CALIBRATIONS = (0.1, 0.3, 1.0)
HISTOGRAMS = tuple(f"adaptive-hierarchical:c={c:g}" for c in CALIBRATIONS)
FAILING, TOLERATED = 0.05, 0.1
COLLUDING_PPM = 100_000
RECTANGLES = 20  # a map


class Case(NamedTuple):
    """People of a place in one campaign."""

    place: str
    people: int
    clients: int
    epsilon: float
    repeat: int


class Played(NamedTuple):
    """W2 of each release in cells, and the shares of what intervals of the levels hold."""

    errors: dict[str, float]
    rectangles: float
    apart: float  # rectangles with their open parts apart
    narrower: float  # width of these intervals over that of the others
    cells: float


@experiment(NAME, repeats=2)
@click.option("--map", "names", cls=Selection, type=click.Choice(NAMES), multiple=True,
              default=NAMES, show_default=True)  # fmt: skip
@click.option(
    "--people", "sizes", cls=Selection, type=COUNT, multiple=True, help="Of those played."
)
def campaigns(setup: Setup, names: tuple[str, ...], sizes: tuple[int, ...]) -> None:
    """Campaigns of 20 rounds on 64 x 64 cells, by release: W2, and what intervals hold.

    On cities and towns that nothing was chosen on. 5 % of the people fail, 10 % may collude.
    """
    settings = [
        Case(name, *size, epsilon, repeat)
        for name, size, epsilon, repeat in product(names, SIZES, EPSILONS, range(setup.repeats))
        if not sizes or size[0] in sizes
    ]
    every: list[City | Town] = [*cities(setup.data, tuple(MORE)), *towns(TOWNS)]
    places = {place.name: place for place in every}
    cells = [_cells_of(places[case.place], case, setup.seed) for case in settings]
    with setup.pool() as pool:
        came = list(tracked(pool.map(play_all, settings, cells), "campaigns", len(settings)))
    text = table(dict(zip(settings, came, strict=True)))
    click.echo(text)
    if setup.write:
        replace_block(DOCS / "round-server.md", NAME, text)


def _cells_of(place: City | Town, case: Case, seed: int) -> Ints:
    points = place.people(case.people, np.random.default_rng([seed, case.repeat]))
    at = np.minimum((points * SIDE).astype(np.int64), SIDE - 1)
    cells: Ints = at[:, 0] * SIDE + at[:, 1]
    return cells


def play_all(case: Case, cells: Ints) -> Played:
    """Play all releases on the same people."""
    truth = np.bincount(cells, minlength=SIDE**2).reshape(SIDE, SIDE) / len(cells)
    rng = np.random.default_rng([case.repeat, case.people, case.clients])
    found = {release: played(case, cells, release, rng) for release in (LEVELS, *HISTOGRAMS)}
    errors = {name: float(wasserstein(truth, each.density)) for name, (each, _) in found.items()}
    released, truth = found[LEVELS]
    levels = released.levels
    if levels is None:
        raise RuntimeError("levels have none")
    ways = [level_intervals(levels, open_parts=each) for each in ("together", "apart")]
    held, widths = [], []
    for south, west, north, east in random_rectangles(truth.shape, RECTANGLES, rng):
        inside = np.zeros(truth.shape, bool)
        inside[south:north, west:east] = True
        regions = [sure.region(inside) for sure in ways]
        held.append([each.lower <= truth[inside].sum() <= each.upper for each in regions])
        widths.append([each.upper - each.lower for each in regions])
    rectangles, apart = np.mean(held, axis=0).tolist()
    wide, narrow = np.mean(widths, axis=0).tolist()
    sure = ways[0]
    cells_held = ((sure.lower <= truth) & (truth <= sure.upper)).mean()
    return Played(errors, rectangles, apart, narrow / wide, float(cells_held))


def played(
    case: Case, cells: Ints, release: str, rng: np.random.Generator
) -> tuple[Released, Array]:
    """Let each person draw a round, and each round come to the sums of its sessions.

    Returns the map, and the shares by cell of those who were counted, whom intervals are about.
    """
    campaign = Campaign(
        NAME, Grid.plane(0, 0, SIDE, SIDE), ROUNDS, 0, 3600,
        micro_epsilon=round(case.epsilon * 10**6), sensitivity=1, most_length=SIDE**2,
        most_clients=case.clients, least_honest=case.clients // 2, colluding_ppm=COLLUDING_PPM,
    )  # fmt: skip
    plan = campaign_plan(campaign, len(cells), TOLERATED, release)
    drawn = rng.integers(0, ROUNDS, len(cells))
    counted = np.zeros(SIDE**2)
    for number in range(ROUNDS):
        document = plan.document(number + 1)
        people = rng.permutation(cells[drawn == number])
        sums = []
        for size in session_sizes(len(people), document.threshold, document.clients):
            staying = people[:size][rng.random(size) >= FAILING]
            people = people[size:]
            sums.append(session_sum(document, size, staying, rng))
            if sums[-1].survivors:
                counted += np.bincount(staying, minlength=SIDE**2)
        plan.take(sums)
    return plan.released(), counted.reshape(SIDE, SIDE) / max(counted.sum(), 1.0)


def session_sum(
    document: RoundDocument, size: int, staying: Ints, rng: np.random.Generator
) -> SessionSum:
    """Return what a session of so many people comes to, of whom these do not fail."""
    if len(staying) < document.threshold:
        return SessionSum(size, 0, None)
    total = np.bincount(elements(document)[staying], minlength=document.length + 1)[:-1]
    epsilon = document.micro_epsilon / 10**6
    total += sum_of_shares(len(staying), document.honest, epsilon, document.length, rng)
    return SessionSum(size, len(staying), encode(total, 1 << document.bits))


def elements(document: RoundDocument) -> Ints:
    """Return for each cell the element in which it counts, ``length`` where there is none."""
    found = np.full((SIDE, SIDE), document.length)
    asked = document.asked
    nodes = asked.nodes or tuple(
        (level, *place) for level in asked.levels for place in np.ndindex(1 << level, 1 << level)
    )
    for place, (level, row, column) in enumerate(nodes):  # deeper ones come later
        block = SIDE >> level
        found[row * block : (row + 1) * block, column * block : (column + 1) * block] = place
    return found.ravel()


def table(came: dict[Case, Played]) -> str:
    """Return ratios over the histogram by size and epsilon, and what intervals hold."""
    by_setting: dict[Case, list[Played]] = {}
    for case, each in came.items():
        by_setting.setdefault(case._replace(repeat=0), []).append(each)
    sizes = dict.fromkeys((case.people, case.clients) for case in by_setting)
    rows = []
    for people, clients in sizes:
        for epsilon in EPSILONS:
            wanted = (people, clients, epsilon)
            runs = [e for case, e in by_setting.items() if case[1:4] == wanted]
            if runs:
                rows.append((f"{people:,}", f"{clients:,}", f"{epsilon:g}", *_row(runs)))
    rows.append(("all", "", "", *_row(list(by_setting.values()))))
    header = (
        "people", "most of a sum", "eps", "over c = 0.1", "within 10 %", "within a third", "worst",
        "over the best c", "within 10 %", "within a third", "worst", "rectangles held",
        "parts apart", "width", "cells held",
    )  # fmt: skip
    return markdown(header, rows)


def _row(runs: list[list[Played]]) -> tuple[str, ...]:
    """Return what is told of some settings, each of several runs."""
    over: dict[str, list[float]] = {"usual": [], "best": []}
    for some in runs:
        mean = {release: np.mean([e.errors[release] for e in some]) for release in some[0].errors}
        over["usual"].append(log(mean[LEVELS] / mean[HISTOGRAMS[0]]))
        over["best"].append(log(mean[LEVELS] / min(mean[each] for each in HISTOGRAMS)))
    held = [
        f"{np.mean([getattr(e, what) for some in runs for e in some]):.3f}"
        for what in ("rectangles", "apart", "narrower", "cells")
    ]
    usual, best = (tuple(summary(np.array(each))) for each in over.values())
    return (*usual, *best, *held)
