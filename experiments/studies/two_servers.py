"""The release for two servers beside the ones for one server, and the sizes of its reports."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from experiments.cities import SQUARES, City, cities
from experiments.progress import tracked
from experiments.setup import Selection, Study
from experiments.sources import data_option
from experiments.studies.levels import METRICS, Setting, errors_of
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.comparison.compare import compare_people
from ldpspatial.comparison.range_queries import random_rectangles
from ldpspatial.estimation.intervals.levels import level_intervals
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.distributed import Batch, Cohort, DistributedLevels, TwoServers
from ldpspatial.release.distributed.sums.two_servers.report_size import multihot_report
from ldpspatial.release.level_sums import Asked
from ldpspatial.release.release import Release

Array = NDArray[np.float64]

PAGE = "two-servers.md"
SIDE = 64
BLOCKS = 32  # W2 is measured between so many blocks a side
EPSILONS = (0.5, 2.0)
USERS = (1_000, 10_000, 100_000)
CITIES = ("austin", "chicago", "tokyo")
CENTRAL = "central-levels"
SECURE = "distributed-levels"
TWO = "two-servers"
FAILING = ", some fail"
ASKED: Asked = "every round"  # by both, so that they differ in the noise alone
# By model, since what they promise differs: the tables name each.
RELEASES: Mapping[str, Mapping[str, Release]] = {
    "central": {CENTRAL: CentralLevels()},
    "distributed": {
        SECURE: DistributedLevels(Cohort(), asked=ASKED),
        TWO: TwoServers(Batch()),
        SECURE + FAILING: DistributedLevels(
            Cohort(drop_out=0.1, tolerated=0.2, colluding=0.1), asked=ASKED
        ),
        TWO + FAILING: TwoServers(Batch(drop_out=0.1)),
    },
}
RECTANGLES = 20  # a run
LENGTHS = (4, 64, 256, 1024, 4096, 16_384)


@click.command("two-servers", cls=Study)
@data_option
@click.option("--out", type=click.Path(path_type=Path),
              default=Path("experiments-output/two-servers"), show_default=True,
              help="Folder of finished runs.")  # fmt: skip
@click.option("--repeats", default=8, show_default=True)
@click.option("--city", "names", cls=Selection, type=click.Choice(list(SQUARES)), multiple=True,
              default=CITIES, show_default=True)  # fmt: skip
@click.option("--seed", default=1, show_default=True)
@click.option("--jobs", default=-1, show_default=True)
@click.option("--write", is_flag=True, help="Put the tables into docs/two-servers.md.")
def two_servers(
    data: Path, out: Path, repeats: int, names: tuple[str, ...], seed: int, jobs: int, write: bool
) -> None:
    """Error of two servers' noise beside one server's, intervals, and bytes a report."""
    found: dict[Setting, dict[str, Array]] = {}
    inside: dict[Setting, Held] = {}
    for city in tracked(cities(data, names), "cities"):
        rng = np.random.default_rng(seed)
        for users in USERS:
            for epsilon in EPSILONS:
                at = Setting(city.name, SIDE, users, epsilon)
                inside[at] = held(crowd(city, users, rng), epsilon, repeats, rng)
        people = {SIDE: crowd(city, max(USERS), np.random.default_rng(seed))}
        for model, some in RELEASES.items():
            table = compare_people(
                people, EPSILONS, some, repeats, np.random.default_rng(seed),
                users=USERS, metrics=METRICS, blocks=BLOCKS, jobs=jobs, data=city.name,
                folder=out / model / city.name.replace(" ", "-"),
            )  # fmt: skip
            for at, errors in errors_of(table).items():
                means = {label: np.log(each.mean(axis=0)) for label, each in errors.items()}
                found.setdefault(at, {}).update(means)
    parts = {
        "two-servers-errors": error_table(found),
        "two-servers-intervals": interval_table(inside),
        "two-servers-sizes": size_table(),
    }
    for name, text in parts.items():
        click.echo(text)
        if write:
            replace_block(DOCS / PAGE, name, text)


class Held(NamedTuple):
    """What 95 % intervals held: shares of rectangles and of cells, and the rectangles' width."""

    rectangles: float
    cells: float
    width: float


def crowd(city: City, users: int, rng: np.random.Generator) -> UserCells:
    """Return people of a city, one place each."""
    places = city.people(users, rng)
    at = np.minimum((places * SIDE).astype(np.int64), SIDE - 1)
    return cells_by_user(np.arange(len(at)), at[:, 0] * SIDE + at[:, 1], (SIDE, SIDE))


def error_table(found: Mapping[Setting, Mapping[str, Array]]) -> str:
    """Return W2 by people and epsilon, and ratios of two servers to one, over all cities.

    Parameters
    ----------
    found : mapping of Setting to mapping of label to (3,) array
        Logarithms of mean errors, one a metric.
    """
    rows = []
    for users in USERS:
        for epsilon in EPSILONS:
            some = [e for at, e in found.items() if (at.users, at.epsilon) == (users, epsilon)]
            w2 = (np.exp(np.mean([e[label][0] for e in some])) for label in (CENTRAL, SECURE, TWO))
            rows.append(
                [f"{users:,}", f"{epsilon:g}", *(f"{value:.4f}" for value in w2),
                 _ratios(some, ""), _ratios(some, FAILING)]
            )  # fmt: skip
    every = list(found.values())
    rows.append(["all", "", "", "", "", _ratios(every, ""), _ratios(every, FAILING)])
    header = ["users", "eps", *(f"`{label}`, W2" for label in (CENTRAL, SECURE, TWO)),
              "two over one: W2, L1, MSE", "the same, 10 % fail"]  # fmt: skip
    return markdown(header, rows)


def _ratios(some: list[Mapping[str, Array]], which: str) -> str:
    over = np.exp(np.mean([e[TWO + which] - e[SECURE + which] for e in some], axis=0))
    return ", ".join(f"{value:.2f}" for value in over)


def held(users: UserCells, epsilon: float, runs: int, rng: np.random.Generator) -> Held:
    """Play the release and count how often its intervals hold the people's own shares."""
    regions = np.zeros((RECTANGLES, *users.shape), bool)
    rows = []
    for _ in range(runs):
        levels = TwoServers(Batch()).release(users, epsilon, rng).levels
        if levels is None:
            raise click.ClickException("a run without failures gave no levels")
        sure = level_intervals(levels)
        cells = (sure.lower <= users.density) & (users.density <= sure.upper)
        regions[:] = False
        for mask, box in zip(regions, random_rectangles(users.shape, RECTANGLES, rng), strict=True):
            south, west, north, east = box
            mask[south:north, west:east] = True
            share = users.density[mask].sum()
            got = sure.region(mask)
            rows.append((got.lower <= share <= got.upper, cells.mean(), got.upper - got.lower))
    return Held(*np.mean(rows, axis=0).tolist())


def interval_table(inside: Mapping[Setting, Held]) -> str:
    """Return what intervals held by people and epsilon, means over cities."""
    rows = []
    for users in USERS:
        for epsilon in EPSILONS:
            some = [e for at, e in inside.items() if (at.users, at.epsilon) == (users, epsilon)]
            rectangles, cells, width = np.mean(some, axis=0)
            rows.append(
                [f"{users:,}", f"{epsilon:g}", f"{rectangles:.3f}", f"{cells:.3f}", f"{width:.3f}"]
            )
    return markdown(["users", "eps", "rectangles held", "cells held", "width"], rows)


def size_table() -> str:
    """Return the sizes of reports by number of nodes."""
    rows = []
    for length in LENGTHS:
        size = multihot_report(length)
        rows.append(
            [f"{length:,}", size.chunk_length, f"{size.proof_elements:,}", f"{size.leader:,}",
             size.helper, f"{size.upload:,}", f"{size.verifier:,}"]
        )  # fmt: skip
    header = ["nodes", "`chunk_length`", "elements of the proof", "leader's share, bytes",
              "helper's share", "a client uploads", "server to server, a report"]  # fmt: skip
    return markdown(header, rows)
