"""The recommended central and distributed releases beside their rivals at their best, by city.

Every rival has its parameter chosen in hindsight: for each setting the one with the least mean
error over all repeats, which no user could know. What was tuned on a city is not measured on it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.progress import Progress

from experiments.cities import HELD_BACK, SQUARES, TUNED, cities
from experiments.generated import write_page
from experiments.level_rivals import CENTRAL_RIVALS
from experiments.sources import data_option
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.comparison.compare import compare_people
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.distributed import (
    AdaptiveGrid,
    AdaptiveHierarchical,
    Cohort,
    DistributedLevels,
    Hierarchical,
    SpatialDecomposition,
)
from ldpspatial.release.release import Release

Array = NDArray[np.float64]

SIDES = (64,)
EPSILONS = (0.1, 0.5, 2.0)
USERS = (1_000, 10_000, 100_000)
METRICS = ("w2", "l1", "mse")
BLOCKS = 32  # W2 is measured between so many blocks a side
NEAR = 1.1
FAR = 4 / 3
COHORT = Cohort(drop_out=0.1, tolerated=0.2, colluding=0.1)
CENTRAL = "central-levels"
DISTRIBUTED = "distributed-levels"
FAMILIES: Mapping[str, Mapping[str, Mapping[str, Release]]] = {
    CENTRAL: {
        CENTRAL: {"": CentralLevels()},
        **CENTRAL_RIVALS,
    },
    DISTRIBUTED: {
        DISTRIBUTED: {"": DistributedLevels(COHORT)},
        "adaptive hierarchical": {
            f"c = {c:g}": AdaptiveHierarchical(COHORT, calibration=c, asked="every round")
            for c in (0.1, 0.3, 1.0, 3.0)
        },
        "adaptive grid": {f"c2 = {c:g}": AdaptiveGrid(COHORT, c2=c) for c in (5.0, 10.0, 20.0)},
        "hierarchical": {"": Hierarchical(COHORT)},
        "spatial decomposition": {"": SpatialDecomposition(COHORT)},
    },
}


class Setting(NamedTuple):
    """Where errors are compared: a mean over repeats of each release."""

    map: str
    cells: int
    users: int
    epsilon: float


@click.command()
@data_option
@click.option("--out", type=click.Path(path_type=Path), default=Path("experiments-output/levels"),
              show_default=True, help="Folder of finished runs.")  # fmt: skip
@click.option("--repeats", default=3, show_default=True)
@click.option("--side", "sides", type=int, multiple=True, default=SIDES, show_default=True)
@click.option("--city", "names", type=click.Choice(list(SQUARES)), multiple=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--jobs", default=-1, show_default=True)
@click.option("--write", is_flag=True, help="Put the tables into docs.")
def levels(
    data: Path, out: Path, repeats: int, sides: tuple[int, ...], names: tuple[str, ...],
    seed: int, jobs: int, write: bool,
) -> None:  # fmt: skip
    """Recommended central and distributed releases against rivals tuned in hindsight."""
    wanted = names or tuple(SQUARES)
    found: dict[str, dict[Setting, dict[str, Array]]] = {model: {} for model in FAMILIES}
    with Progress() as bar:
        for city in cities(data, wanted):
            rng = np.random.default_rng(seed)
            most = max(USERS)
            places = city.people(most, rng)
            people = {}
            for side in sides:
                at = np.minimum((places * side).astype(np.int64), side - 1)
                cells = at[:, 0] * side + at[:, 1]
                people[side] = cells_by_user(np.arange(most), cells, (side, side))
            for model in FAMILIES:
                task = bar.add_task(f"{city.name}, {model}")
                table = compare_people(
                    people, EPSILONS, releases_of(model), repeats, np.random.default_rng(seed),
                    users=USERS, metrics=METRICS, blocks=BLOCKS, jobs=jobs, data=city.name,
                    folder=out / model / city.name.replace(" ", "-"),
                    progress=lambda done, of, task=task: bar.update(task, completed=done, total=of),
                )  # fmt: skip
                found[model].update(errors_of(table))
    shown = []
    for model, settings in found.items():
        for kind, places_ in (("held back", HELD_BACK), ("tuned on", TUNED)):
            some = {at: each for at, each in settings.items() if at.map in places_}
            if some:
                title = f"{model}, cities {kind}: {len(some)} settings"
                shown.append(f"**{title}**\n\n{ratios(model, some)}")
    text = "\n\n".join(shown)
    click.echo(text)
    if write:
        replace_block(DOCS / "experiments" / "levels.md", "levels", text)
        full = "\n\n".join(by_setting(model, settings) for model, settings in found.items())
        write_page(DOCS, "levels", full)


def releases_of(model: str) -> dict[str, Release]:
    """Return what is played, by labels of family and parameter."""
    return {
        f"{family}: {parameter}": release
        for family, some in FAMILIES[model].items()
        for parameter, release in some.items()
    }


def errors_of(table: pa.Table) -> dict[Setting, dict[str, Array]]:
    """Return for each setting and label the logarithm of the mean errors, one a metric."""
    rows: dict[Setting, dict[str, list[list[float]]]] = {}
    for row in table.to_pylist():
        at = Setting(row["data"], row["cells"], row["users"], row["epsilon"])
        rows.setdefault(at, {}).setdefault(row["release"], []).append([row[m] for m in METRICS])
    return {
        at: {label: np.log(np.mean(errors, axis=0)) for label, errors in some.items()}
        for at, some in rows.items()
    }


def best_of(family: str, errors: Mapping[str, Array]) -> Array:
    """Return the least error of a family, by metric, over its parameters."""
    some = [error for label, error in errors.items() if label.partition(":")[0] == family]
    return np.min(some, axis=0)


def ratios(model: str, settings: Mapping[Setting, Mapping[str, Array]]) -> str:
    """Return a table of ours over each rival at its best, and over the best of all of them."""
    rivals = [family for family in FAMILIES[model] if family != model]
    ours = np.array([best_of(model, errors) for errors in settings.values()])
    of = {
        rival: np.array([best_of(rival, errors) for errors in settings.values()])
        for rival in rivals
    }
    of["the best of all"] = np.min(list(of.values()), axis=0)
    rows = []
    for rival, errors in of.items():
        over = ours - errors
        for k, metric in enumerate(METRICS):
            rows.append((rival, metric.upper(), *_summary(over[:, k])))
    header = ("rival at its best", "error", "ratio", "within 10 %", "within a third", "worst")
    return markdown(header, rows)


def _summary(over: Array) -> Iterable[str]:
    yield f"{np.exp(over.mean()):.2f}"
    yield f"{np.mean(over <= np.log(NEAR)):.2f}"
    yield f"{np.mean(over <= np.log(FAR)):.2f}"
    yield f"{np.exp(over.max()):.2f}"


def by_setting(model: str, settings: Mapping[Setting, Mapping[str, Array]]) -> str:
    """Return a table of all settings: errors of ours, and over the best rival."""
    rows = []
    for at, errors in settings.items():
        ours = best_of(model, errors)
        best = np.min([best_of(f, errors) for f in FAMILIES[model] if f != model], axis=0)
        over = np.exp(ours - best)
        shown = (f"{np.exp(ours[k]):.3g} ({over[k]:.2f})" for k in range(len(METRICS)))
        rows.append((at.map, at.cells, f"{at.users:,}", f"{at.epsilon:g}", *shown))
    header = (
        "map",
        "cells",
        "users",
        "eps",
        *(f"{metric.upper()} (over best)" for metric in METRICS),
    )
    return f"**{model}**\n\n{markdown(header, rows)}"
