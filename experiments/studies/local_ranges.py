"""How many people are in a rectangle: range queries of local releases, others for reference."""

import json
from collections.abc import Mapping
from functools import partial
from itertools import product
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.progress import Progress, TaskID

from client_sdk import Grid
from experiments.means import mean_and_half_width, shown
from experiments.pairs import Array, errors_of, verdict
from experiments.setup import COUNT, Setup, experiment
from experiments.sources import CHICAGO_SQUARE, NEW_YORK_SQUARE, chicago, new_york
from experiments.tables import markdown
from experiments.uniform import Uniform
from ldpspatial.comparison.compare import compare_people
from ldpspatial.datasets import synthetic_maps
from ldpspatial.places.points import Points
from ldpspatial.places.users import UserCells, user_cells
from ldpspatial.release.central import Laplace, SparseEmd
from ldpspatial.release.distributed import AdaptiveHierarchical, Cohort
from ldpspatial.release.local import (
    Ahead,
    Dam,
    Hdg,
    Hio,
    Huem,
    KRr,
    Mdsw,
    MdswJoint,
    Olh,
    Oue,
    Recommended,
    Rhombus,
    SubsetSelection,
)
from ldpspatial.release.release import Release

SIDES = (16, 32)
EPSILONS = (1.0, 3.5)
POOL = 5  # people that are made, as a multiple of those drawn for a repeat
UNITS = {"range": 100.0, "w2": 1.0}  # per cent of all people; cells
DIGITS = {"range": 3, "w2": 2}
LOCAL: dict[str, Release] = {
    "recommended": Recommended(),
    "dam": Dam(),
    "huem": Huem(),
    "rhombus": Rhombus(),
    "k-rr, EM": KRr(),
    "k-rr, projection": KRr(estimator="projection"),
    "oue": Oue(),
    "olh": Olh(),
    "subset-selection, projection": SubsetSelection(estimator="projection"),
    "mdsw, smoothed": Mdsw(fine=False),
    "mdsw, plain": Mdsw(smoothing=False),
    "mdsw-joint": MdswJoint(),
    "hio": Hio(),
    "hdg": Hdg(),
    "ahead": Ahead(),
}
SLOW: dict[str, Release] = {"subset-selection, EM": SubsetSelection()}
REFERENCES: dict[str, Release] = {
    "uniform": Uniform(),
    "adaptive-hierarchical": AdaptiveHierarchical(Cohort(), asked="every round"),  # as in the paper
    "laplace": Laplace(),
    "sparse-emd": SparseEmd(),
}
COLOURS = {"local": "C0", "distributed": "C2", "central": "C1", "nobody asked": "0.5"}
MARKERS = dict(zip(EPSILONS, ("o", "D"), strict=True))


@experiment("local-ranges", repeats=10)
@click.option("--users", default=100_000, show_default=True, type=COUNT,
              help="People drawn for each repeat.")  # fmt: skip
@click.option("--slow-repeats", default=2, show_default=True, type=COUNT,
              help="Runs of subset selection with EM, which takes a minute each.")  # fmt: skip
def local_ranges(setup: Setup, users: int, slow_repeats: int) -> None:
    """Errors of 200 random rectangles, and W2, of every local release.

    Normal and SZipf, and people drawn with replacement from assaults in Chicago and from pick-ups
    of green taxis in New York, whole squares; d 16 and 32, epsilon 1 and 3.5.
    """
    table = play(setup, users, min(slow_repeats, setup.repeats))
    parts = (
        "Error beside DAM's: geometric mean of the ratio over maps and grids.",
        summary_table(table),
        "Which local release is best in each setting, and which are level with it by 95 % "
        "intervals of paired differences. Subset selection with EM has fewer runs and is left out.",
        best_table(table),
        "Mean absolute error of 200 random rectangles, in per cent of all people.",
        errors_table(table, "range"),
        "Exact W2 in cells.",
        errors_table(table, "w2"),
    )
    setup.publish("\n\n".join(parts), {"": draw(table)}, {})


def crowds(data: Path, users: int, seed: int) -> dict[str, dict[int, UserCells]]:
    """Return the people that those of a run are drawn from, by map and side of the grid."""
    rng = np.random.default_rng(seed)
    number = POOL * users
    found = {}
    for name in ("normal", "szipf"):
        law = synthetic_maps()[name]
        at = law.draw(number, rng)
        square = (law.y0, law.x0, law.side)
        found[name] = {d: user_cells(at, Grid.plane(*square, d)) for d in SIDES}
    cities = {
        "chicago": (CHICAGO_SQUARE, chicago(data)),
        "new york": (NEW_YORK_SQUARE, new_york(data)),
    }
    for name, (bounds, points) in cities.items():
        drawn = Points(points.coordinates[rng.integers(len(points), size=number)])
        found[name] = {d: user_cells(drawn, Grid.from_bounds(*bounds, d)) for d in SIDES}
    return found


def play(setup: Setup, users: int, slow_repeats: int) -> pa.Table:
    """Play all releases on all maps; runs that are kept are not repeated."""
    tables = []
    sets = ((LOCAL | REFERENCES, setup.repeats), (SLOW, slow_repeats))
    with Progress() as bar:
        for (name, people), (releases, repeats) in product(
            crowds(setup.data, users, setup.seed).items(), sets
        ):
            task = bar.add_task(f"{name}, {len(releases)} releases")
            found = compare_people(
                people,
                EPSILONS,
                releases,
                repeats,
                np.random.default_rng(setup.seed),
                users=[min(users, *map(len, people.values()))],
                metrics=list(UNITS),
                folder=setup.out / name.replace(" ", "-"),
                jobs=setup.jobs,
                data=name,
                progress=partial(_show, bar, task),
            )
            tables.append(found)
    return pa.concat_tables(tables)


def errors_table(table: pa.Table, metric: str) -> str:
    """Return means with 95 % intervals by map, release and setting."""
    header = ["map", "release", "estimator", "claim"]
    header += [f"d {d}, eps {epsilon:g}" for d, epsilon in _settings()]
    rows = []
    for name in pc.unique(table["data"]).to_pylist():
        own = table.filter(pc.equal(table["data"], name))
        for label in (*LOCAL, *SLOW, *REFERENCES):
            first = own.filter(pc.equal(own["release"], label)).slice(0, 1).to_pylist()[0]
            errors = [
                shown(
                    UNITS[metric] * errors_of(own, label, metric, cells=d, epsilon=e),
                    DIGITS[metric],
                )
                for d, e in _settings()
            ]
            estimator = json.loads(first["facts"]).get("estimator", "its own")
            rows.append([name, label.split(",")[0], estimator, _claim(first), *errors])
    return markdown(header, rows)


def summary_table(table: pa.Table) -> str:
    """Return the errors of releases as multiples of DAM's, least range error at epsilon 1 first."""
    ratios = {
        label: [_ratio(table, label, metric, e) for metric in UNITS for e in EPSILONS]
        for label in (*LOCAL, *SLOW, *REFERENCES)
    }
    header = ["release", "trust"]
    header += [f"{name}, eps {e:g}" for name in ("rectangles", "W2") for e in EPSILONS]
    rows = [
        [label, _trust(label), *(f"{ratio:.2f}" for ratio in found)]
        for label, found in sorted(ratios.items(), key=lambda item: item[1][0])
    ]
    return markdown(header, rows)


def best_table(table: pa.Table) -> str:
    """Return the local release with the least mean error of each setting, and who is level."""
    header = ["map", "d", "eps", "best for rectangles", "best for W2"]
    rows = []
    for name, (d, epsilon) in product(pc.unique(table["data"]).to_pylist(), _settings()):
        best = [_best(table, metric, data=name, cells=d, epsilon=epsilon) for metric in UNITS]
        rows.append([name, d, f"{epsilon:g}", *best])
    return markdown(header, rows)


def draw(table: pa.Table) -> Figure:
    """Draw the range errors of all releases: a column a map, a row a grid."""
    names = pc.unique(table["data"]).to_pylist()
    figure = Figure(figsize=(3.1 * len(names) + 1.6, 8.6), layout="constrained")
    panels = figure.subplots(len(SIDES), len(names), sharey=True, squeeze=False)
    labels = [*LOCAL, *SLOW, *REFERENCES][::-1]
    for (row, side), (column, name) in product(enumerate(SIDES), enumerate(names)):
        own = table.filter(pc.equal(table["data"], name))
        _draw_panel(panels[row][column], own, labels, side)
        panels[row][column].set_title(f"{name}, d = {side}", fontsize=10)
    for axes in panels[-1]:
        axes.set_xlabel("mean error of rectangles (% of people)", fontsize=9)
    kinds = {f"epsilon {e:g}": ("k", marker) for e, marker in MARKERS.items()}
    kinds |= {trust: (colour, "s") for trust, colour in COLOURS.items()}
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="", label=text)
        for text, (colour, marker) in kinds.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_panel(axes: Axes, table: pa.Table, labels: list[str], side: int) -> None:
    places = np.arange(len(labels))
    colours = [COLOURS[_trust(label)] for label in labels]
    for epsilon, marker in MARKERS.items():
        errors = [
            UNITS["range"] * errors_of(table, label, "range", cells=side, epsilon=epsilon)
            for label in labels
        ]
        mean, half = np.transpose([mean_and_half_width(each) for each in errors])
        axes.errorbar(mean, places, xerr=np.nan_to_num(half), fmt="none", ecolor="0.6", zorder=1)
        axes.scatter(mean, places, c=colours, marker=marker, s=24)
    axes.set_xscale("log")
    axes.set_yticks(places, labels, fontsize=8)
    axes.grid(alpha=0.3)


def _settings() -> list[tuple[int, float]]:
    return list(product(SIDES, EPSILONS))


def _claim(row: Mapping[str, object]) -> str:
    if row["claim_epsilon"] == 0:
        return "nobody sends"
    kind = "eps-LDP" if row["model"] == "local" else f"DP ({row['claim_neighbours']})"
    return f"{row['model']}, {kind} per {row['claim_unit']}"


def _trust(label: str) -> str:
    release = (LOCAL | SLOW | REFERENCES)[label]
    return "nobody asked" if isinstance(release, Uniform) else release.model


def _ratio(table: pa.Table, label: str, metric: str, epsilon: float) -> float:
    """Return the geometric mean over maps and grids of the ratio of mean errors to DAM's."""
    ratios: list[float] = []
    for name, side in product(pc.unique(table["data"]).to_pylist(), SIDES):
        setting = {"data": name, "cells": side, "epsilon": epsilon}
        own, dam = (errors_of(table, each, metric, **setting).mean() for each in (label, "dam"))
        ratios.append(own / dam)
    return float(np.prod(ratios) ** (1 / len(ratios)))


def _best(table: pa.Table, metric: str, **setting: object) -> str:
    """Return the best local release of a setting with its error, and those level with it.

    Releases with fewer runs than the others are left out.
    """
    errors: dict[str, Array] = {
        label: errors_of(table, label, metric, **setting) for label in LOCAL
    }
    best = min(errors, key=lambda label: float(errors[label].mean()))
    level = [
        label
        for label, own in errors.items()
        if label != best and verdict(errors[best], own) == "level"
    ]
    text = f"{best} {UNITS[metric] * errors[best].mean():.2f}"
    return text + (f"; level: {', '.join(level)}" if level else "")


def _show(bar: Progress, task: TaskID, done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)
