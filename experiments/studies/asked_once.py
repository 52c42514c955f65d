"""The recommended distributed release: each client asked once, or every one in each round."""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from experiments.cities import MORE, cities
from experiments.finished import played
from experiments.setup import COUNT, Selection, Setup, experiment
from experiments.studies.levels import COHORT
from experiments.tables import DOCS, markdown, replace_block
from experiments.towns import towns
from ldpspatial import wasserstein
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.distributed import DistributedLevels

Array = NDArray[np.float64]

NAME = "asked-once"
SIDE = 64
USERS = (10_000, 30_000, 100_000, 300_000)  # shards of 10,000 at most
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
TOWNS = (2671, 2672, 2673, 2674)
NAMES = (*MORE, *(town.name for town in towns(TOWNS)))


class Case(NamedTuple):
    """People of a place at one epsilon."""

    place: str
    users: int
    epsilon: float


@dataclass(frozen=True)
class Errors:
    """W2 in cells, the mean over repeats."""

    case: Case
    once: float
    every_round: float


@experiment(NAME, repeats=4)
@click.option("--map", "names", cls=Selection, type=click.Choice(NAMES), multiple=True,
              default=NAMES, show_default=True)  # fmt: skip
@click.option(
    "--users", "sizes", cls=Selection, type=COUNT, multiple=True, default=USERS, show_default=True
)
def asked_once(setup: Setup, names: tuple[str, ...], sizes: tuple[int, ...]) -> None:
    """Each client asked once at all of epsilon, or in every round at a part: W2 on 64 x 64 cells.

    On cities and towns that nothing was chosen on. 10 % of the clients fail, 10 % may collude.
    """
    cases = [Case(*each) for each in product(names, sizes, EPSILONS)]
    text = table(played(setup, partial(play, setup), cases, _errors))
    click.echo(text)
    if setup.write:
        replace_block(DOCS / "experiments" / "levels.md", NAME, text)


def _errors(case: tuple[str, int, float], **fields: Any) -> Errors:
    return Errors(Case(*case), **fields)


def play(setup: Setup, case: Case) -> list[Errors]:
    """Play one setting: the same people asked in both ways."""
    number = [NAMES.index(case.place), case.users, round(1000 * case.epsilon)]
    rng = np.random.default_rng([setup.seed, *number])
    (place,) = [
        *cities(setup.data, (case.place,) if case.place in MORE else ()),
        *(town for town in towns(TOWNS) if town.name == case.place),
    ]
    found = []
    for _ in range(setup.repeats):
        points = place.people(case.users, rng)
        at = np.minimum((points * SIDE).astype(np.int64), SIDE - 1)
        users = cells_by_user(np.arange(len(at)), at[:, 0] * SIDE + at[:, 1], (SIDE, SIDE))
        maps: list[Array] = [
            DistributedLevels(COHORT, asked=asked).release(users, case.epsilon, rng).density
            for asked in ("once", "every round")
        ]
        found.append([float(wasserstein(users.density, each)) for each in maps])
    once, every_round = np.mean(found, axis=0).tolist()
    return [Errors(case, once, every_round)]


def table(errors: list[Errors]) -> str:
    """Return the geometric mean over places of one way over the other, its error, and the worst."""
    ratios: dict[tuple[int, float], list[float]] = {}
    for each in errors:
        at = each.case.users, each.case.epsilon
        ratios.setdefault(at, []).append(each.once / each.every_round)
    epsilons = sorted({epsilon for _, epsilon in ratios})
    rows = []
    for size in sorted({users for users, _ in ratios}):
        rows.append((f"{size:,}", *(_cell(ratios[size, epsilon]) for epsilon in epsilons)))
    return markdown(("users", *(f"eps {epsilon:g}" for epsilon in epsilons)), rows)


def _cell(ratios: list[float]) -> str:
    logs = np.log(ratios)
    mean = float(np.exp(logs.mean()))
    error = mean * logs.std(ddof=1) / np.sqrt(len(logs)) if len(logs) > 1 else np.nan
    return f"{mean:.2f} ± {error:.2f} ({max(ratios):.2f})"
