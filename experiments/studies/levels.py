"""The recommended central and distributed releases beside their rivals at their best, by map.

Every rival has its parameter chosen in hindsight: for each setting the one with the least mean
error over all repeats, which no user could know. Of many, the least mean of few repeats is also
the luckiest, so one row chooses by the other repeats; and one row allows a single choice for all
errors, as a map is one map. What was tuned on a city is not measured on it, and the towns were
drawn after tuning had ended.
"""

from collections.abc import Iterable, Mapping, Sequence
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
from experiments.towns import towns
from ldpspatial.comparison.compare import compare_people
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.central import CentralLevels, CentralQuadtree, UniformGrid, Wavelets
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

SIDES = (32, 64, 256)
EPSILONS = (0.1, 0.5, 2.0, 5.0)
USERS = (1_000, 10_000, 100_000, 1_000_000)
METRICS = ("w2", "l1", "mse")
BLOCKS = 64  # W2 is measured between cells, or between so many blocks a side where cells are more
TOWNS = (2601, 2602, 2603, 2604, 2605, 2606)  # seeds, first looked at when the rule was settled
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


GENERATED = tuple(town.name for town in towns(TOWNS))
KINDS: Mapping[str, Sequence[str]] = {
    "cities held back": HELD_BACK,
    "generated towns": GENERATED,
    "cities tuned on": TUNED,
}
Errors = Mapping[str, Array]  # by label, one row a repeat, one column a metric


@click.command()
@data_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("experiments-output/levels"),
    show_default=True,
    help="Folder of finished runs; what is in it is not run again.",
)
@click.option("--repeats", default=3, show_default=True)
@click.option("--side", "sides", type=int, multiple=True, default=SIDES, show_default=True)
@click.option(
    "--epsilon", "epsilons", type=float, multiple=True, default=EPSILONS, show_default=True
)
@click.option("--users", "numbers", type=int, multiple=True, default=USERS, show_default=True)
@click.option(
    "--map",
    "names",
    type=click.Choice([*SQUARES, *GENERATED]),
    multiple=True,
    help="Cities and generated towns; all by default.",
)
@click.option(
    "--model",
    "models",
    type=click.Choice(list(FAMILIES)),
    multiple=True,
    default=tuple(FAMILIES),
    show_default=True,
)
@click.option("--seed", default=1, show_default=True)
@click.option("--jobs", default=-1, show_default=True)
@click.option("--write", is_flag=True, help="Put the tables into docs.")
def levels(
    data: Path, out: Path, repeats: int, sides: tuple[int, ...], epsilons: tuple[float, ...],
    numbers: tuple[int, ...], names: tuple[str, ...], models: tuple[str, ...], seed: int,
    jobs: int, write: bool,
) -> None:  # fmt: skip
    """Recommended central and distributed releases against rivals tuned in hindsight.

    All by default: that takes a day on two cores. A part is run by naming maps, sides, epsilons
    and numbers of users. Finished runs stay in the folder, and a larger part goes on from them.
    """
    wanted = names or (*SQUARES, *GENERATED)
    found: dict[str, dict[Setting, Errors]] = {model: {} for model in models}
    real = cities(data, tuple(name for name in wanted if name in SQUARES))
    with Progress() as bar:
        for place in (*real, *(town for town in towns(TOWNS) if town.name in wanted)):
            points = place.people(max(numbers), np.random.default_rng(seed))
            for side in sides:
                at = np.minimum((points * side).astype(np.int64), side - 1)
                cells = at[:, 0] * side + at[:, 1]
                people = {side: cells_by_user(np.arange(len(cells)), cells, (side, side))}
                for model in models:
                    task = bar.add_task(f"{place.name}, {side} x {side}, {model}")
                    folder = out / model / f"{place.name}-{side}-{max(numbers)}".replace(" ", "-")
                    table = compare_people(
                        people, epsilons, releases_of(model, side), repeats,
                        np.random.default_rng(seed), users=numbers, metrics=METRICS,
                        blocks=min(side, BLOCKS), jobs=jobs, data=place.name, folder=folder,
                        progress=lambda done, of, task=task: bar.update(
                            task, completed=done, total=of
                        ),
                    )  # fmt: skip
                    found[model].update(errors_of(table))
    text = shown(found)
    click.echo(text)
    if write:
        replace_block(DOCS / "experiments" / "levels.md", "levels", text)
        full = "\n\n".join(by_setting(model, settings) for model, settings in found.items())
        write_page(DOCS, "levels", full)


def shown(found: Mapping[str, Mapping[Setting, Errors]]) -> str:
    """Return what was run, in words, and a table for each model and kind of map."""
    settings = sorted({at for some in found.values() for at in some})
    repeats = {len(each) for some in found.values() for e in some.values() for each in e.values()}
    every = {
        "maps": len({at.map for at in settings}),
        "sides": ", ".join(map(str, sorted({at.cells for at in settings}))),
        "users": ", ".join(f"{n:,}" for n in sorted({at.users for at in settings})),
        "eps": ", ".join(f"{e:g}" for e in sorted({at.epsilon for at in settings})),
        "repeats": " or ".join(map(str, sorted(repeats))),
    }
    parts = ["Run: " + "; ".join(f"{name} {value}" for name, value in every.items()) + "."]
    for model, some in found.items():
        for kind, places in KINDS.items():
            these = {at: errors for at, errors in some.items() if at.map in places}
            if these:
                title = f"{model}, {kind}: {len(these)} settings"
                parts.append(f"**{title}**\n\n{ratios(model, these)}")
    return "\n\n".join(parts)


def releases_of(model: str, side: int = max(SIDES)) -> dict[str, Release]:
    """Return what is played, by labels of family and parameter.

    Of grids and trees those that are no finer than the map: finer ones are the same release again,
    and of several tries the best is chosen.
    """
    return {
        f"{family}: {parameter}": release
        for family, some in FAMILIES[model].items()
        for parameter, release in some.items()
        if _finest(release) <= Quadtree((side, side)).depth
    }


def _finest(release: Release) -> int:
    """Return the level that a tree or grid always goes down to, 0 for what stops by itself."""
    if isinstance(release, UniformGrid):
        return (release.parts or 1).bit_length() - 1
    return release.depth or 0 if isinstance(release, CentralQuadtree | Wavelets) else 0


def errors_of(table: pa.Table) -> dict[Setting, Errors]:
    """Return for each setting and label the errors, one row a repeat, one column a metric."""
    rows: dict[Setting, dict[str, list[list[float]]]] = {}
    for row in table.to_pylist():
        at = Setting(row["data"], row["cells"], row["users"], row["epsilon"])
        rows.setdefault(at, {}).setdefault(row["release"], []).append([row[m] for m in METRICS])
    return {
        at: {label: np.array(errors) for label, errors in some.items()} for at, some in rows.items()
    }


def of_family(family: str, errors: Errors) -> Errors:
    """Return the errors of a family's labels."""
    return {label: each for label, each in errors.items() if label.partition(":")[0] == family}


def of_rivals(model: str, errors: Errors) -> Errors:
    """Return the errors of all labels but ours."""
    return {label: each for label, each in errors.items() if label.partition(":")[0] != model}


def best_of(errors: Errors) -> Array:
    """Return the least mean error of any label, by metric."""
    least: Array = np.min([each.mean(axis=0) for each in errors.values()], axis=0)
    return least


def best_at_once(errors: Errors) -> Array:
    """Return the mean errors of one label: that with the least geometric mean over metrics."""
    means = np.array([each.mean(axis=0) for each in errors.values()])
    chosen: Array = means[np.log(means).sum(axis=1).argmin()]
    return chosen


def best_of_others(errors: Errors) -> Array:
    """Return mean errors by metric where each repeat's label is the best of the other repeats.

    With one repeat there are no others, and it is the best of that one.
    """
    runs = np.array(list(errors.values()))  # labels, repeats, metrics
    repeats = runs.shape[1]
    if repeats == 1:
        return best_of(errors)
    others = (runs.sum(axis=1, keepdims=True) - runs).argmin(axis=0)
    chosen: Array = np.take_along_axis(runs, others[np.newaxis], axis=0)[0].mean(axis=0)
    return chosen


def ratios(model: str, settings: Mapping[Setting, Errors]) -> str:
    """Return a table of ours over each rival at its best, and over the best of all of them."""
    ours = np.array([best_of(of_family(model, errors)) for errors in settings.values()])
    rivals = {
        rival: [best_of(of_family(rival, errors)) for errors in settings.values()]
        for rival in FAMILIES[model]
        if rival != model
    }
    everyone = [of_rivals(model, errors) for errors in settings.values()]
    rivals["the best of all"] = [best_of(each) for each in everyone]
    rivals["the best of all, by the other repeats"] = [best_of_others(each) for each in everyone]
    rivals["the best of all, one for all errors"] = [best_at_once(each) for each in everyone]
    rows = []
    for rival, errors in rivals.items():
        over = np.log(ours / np.array(errors))
        for k, metric in enumerate(METRICS):
            rows.append((rival, metric.upper(), *_summary(over[:, k])))
    header = ("rival at its best", "error", "ratio", "within 10 %", "within a third", "worst")
    return markdown(header, rows)


def _summary(over: Array) -> Iterable[str]:
    yield f"{np.exp(over.mean()):.2f}"
    yield f"{np.mean(over <= np.log(NEAR)):.2f}"
    yield f"{np.mean(over <= np.log(FAR)):.2f}"
    yield f"{np.exp(over.max()):.2f}"


def by_setting(model: str, settings: Mapping[Setting, Errors]) -> str:
    """Return a table of all settings: errors of ours, and over the best rival."""
    rows = []
    for at, errors in settings.items():
        ours = best_of(of_family(model, errors))
        over = ours / best_of(of_rivals(model, errors))
        each = (f"{ours[k]:.3g} ({over[k]:.2f})" for k in range(len(METRICS)))
        rows.append((at.map, at.cells, f"{at.users:,}", f"{at.epsilon:g}", *each))
    header = (
        "map",
        "cells",
        "users",
        "eps",
        *(f"{metric.upper()} (over best)" for metric in METRICS),
    )
    return f"**{model}**\n\n{markdown(header, rows)}"
