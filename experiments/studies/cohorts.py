"""What clients that fail and collude cost: the table of docs/distributed.md, section 5."""

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from client_sdk import Grid
from experiments.cities import SQUARES
from experiments.progress import tracked
from experiments.sources import CHICAGO_SQUARE, chicago, data_option, new_york
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.comparison.compare import compare_people
from ldpspatial.places.users import UserCells, user_cells
from ldpspatial.release.distributed import (
    REALISTIC,
    AdaptiveGrid,
    AdaptiveHierarchical,
    Cohort,
    DistributedLevels,
    Hierarchical,
    SparseEmdSums,
)

CELLS, USERS = 64, 9_000
EPSILONS = (0.5, 2.0)
METRICS = ("w2", "l1", "mse")
RELEASES = (DistributedLevels, AdaptiveHierarchical, SparseEmdSums, AdaptiveGrid, Hierarchical)
COHORTS = {"ideal": Cohort(), "realistic": REALISTIC}


@click.command()
@data_option
@click.option("--repeats", default=12, show_default=True, type=click.IntRange(2))
@click.option("--seed", default=3, show_default=True)
@click.option("--jobs", default=-1, show_default=True)
@click.option("--write", is_flag=True, help="Put the table into docs/distributed.md.")
def cohorts(data: Path, repeats: int, seed: int, jobs: int, write: bool) -> None:
    """Errors where a tenth of the clients fails and a tenth may be dishonest, over those without.

    Chicago and New York, 9,000 users, 64 x 64 cells, epsilon 0.5 and 2.
    """
    releases = {
        f"{kind.name}, {name}": kind(cohort=cohort)
        for kind in RELEASES
        for name, cohort in COHORTS.items()
    }
    tables = [
        compare_people(
            {CELLS: people}, EPSILONS, releases, repeats, np.random.default_rng(seed),
            users=[USERS], metrics=METRICS, jobs=jobs, data=city,
        )
        for city, people in tracked(list(_cities(data)), "cities")
    ]  # fmt: skip
    rows = [
        [f"`{kind.name}`", *(_ratios(tables, kind.name, metric) for metric in METRICS)]
        for kind in RELEASES
    ]
    text = markdown(["release", "W2", "L1", "MSE"], rows)
    click.echo(text)
    if write:
        replace_block(DOCS / "distributed.md", "cohorts", text)


def _cities(data: Path) -> Iterator[tuple[str, UserCells]]:
    yield "Chicago", user_cells(chicago(data), Grid.from_bounds(*CHICAGO_SQUARE, CELLS))
    square = SQUARES["new york"][1]
    yield "New York", user_cells(new_york(data), Grid.from_bounds(*square, CELLS))


def _ratios(tables: list[pa.Table], name: str, metric: str) -> str:
    """Return the geometric mean of realistic over ideal, and its smallest and largest."""
    found = []
    for table in tables:
        for epsilon in EPSILONS:
            ideal, realistic = (
                np.mean([
                    row[metric]
                    for row in table.to_pylist()
                    if row["release"] == f"{name}, {cohort}" and row["epsilon"] == epsilon
                ])
                for cohort in COHORTS
            )  # fmt: skip
            found.append(realistic / ideal)
    mean = np.exp(np.mean(np.log(found)))
    return f"{mean:.2f} ({min(found):.2f} to {max(found):.2f})"
