"""Local against distributed against central on six cities: the figure of the README shows three."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute  # pa.compute
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.progress import Progress, TaskID

from client_sdk import Grid
from experiments.cities import SQUARES
from experiments.generated import generated
from experiments.sources import (
    CHICAGO_SQUARE,
    chicago,
    city_cells,
    data_option,
    gowalla,
    manhattan,
    new_york,
    people_of,
    tokyo,
)
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.comparison.compare import compare_people
from ldpspatial.comparison.curves import SHUFFLE_DELTA, Against, draw_error_curves, error_curve
from ldpspatial.comparison.results import write_results
from ldpspatial.places.users import UserCells, user_cells
from ldpspatial.plotting.error_curves import legend_handles
from ldpspatial.plotting.heat_map import save_figure
from ldpspatial.release.central import (
    CentralAdaptiveGrid,
    CentralLevels,
    Laplace,
    PrivTree,
    SparseEmd,
    UniformGrid,
)
from ldpspatial.release.distributed import AdaptiveHierarchical, DistributedLevels, SparseEmdSums
from ldpspatial.release.local import Dam, Recommended
from ldpspatial.release.release import Release

CELLS = 64
EPSILONS = (0.5, 1.0, 2.0, 3.5, 5.0)
SMALL_EPSILONS = (0.02, 0.1)  # what shuffled local reports come to; too little for one report
# The recommended release of each model comes first, then what papers have. Where clients are asked
# for sums, a tenth of them fails and a tenth colludes.
RELEASES: dict[str, Release] = {
    "recommended": Recommended(),
    "dam": Dam(),
    "distributed-levels": DistributedLevels(),
    "adaptive-hierarchical": AdaptiveHierarchical(),
    "adaptive-hierarchical, c = 1": AdaptiveHierarchical(calibration=1.0),
    "sparse-emd-sums": SparseEmdSums(),
    "central-levels": CentralLevels(),
    "laplace": Laplace(),
    "uniform-grid, single cells": UniformGrid(parts=CELLS, negatives="nearest"),
    "privtree": PrivTree(),
    "sparse-emd, w = 20": SparseEmd(),
    "sparse-emd, w = 200": SparseEmd(keep=200),
    "uniform-grid": UniformGrid(),
    "central-adaptive-grid": CentralAdaptiveGrid(),
}
# The figure would be too full with these.
NOT_DRAWN = (
    "adaptive-hierarchical, c = 1",
    "sparse-emd-sums",
    "uniform-grid",
    "central-adaptive-grid",
)
USERS = 20_000
CITIES = ("Chicago", "Manhattan", "Gowalla, Austin", "New York", "Tokyo", "Stockholm")
DRAWN = CITIES[:3]
READINGS: tuple[Against, ...] = ("epsilon", "replacement_epsilon", "shuffled_epsilon")


@click.command()
@data_option
@click.option("--out", type=click.Path(path_type=Path), default=Path("experiments-output/flagship"),
              show_default=True, help="Folder of finished runs.")  # fmt: skip
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1),
              help="Runs of each setting; more may be added to finished ones.")  # fmt: skip
@click.option("--seed", default=1, show_default=True)
@click.option("--jobs", default=-1, show_default=True)
@click.option("--write", is_flag=True, help="Put table and figure into docs.")
def flagship(data: Path, out: Path, repeats: int, seed: int, jobs: int, write: bool) -> None:
    """Exact W2 over epsilon of local, distributed and central releases on six cities."""
    command = "python -m " + " ".join(["experiments", *sys.argv[1:]])
    click.echo(command)
    tables = {}
    with Progress() as bar:
        for city, people in _cities(data, seed).items():
            play = partial(
                compare_people,
                {CELLS: people},
                repeats=repeats,
                users=[min(USERS, len(people))],
                metrics=["w2", "l1", "mse"],
                folder=out / _folder(city),
                jobs=jobs,
                data=city,
                progress=partial(_show, bar, bar.add_task(city)),
            )
            rng = np.random.default_rng(seed)
            parts = [play(EPSILONS, RELEASES, rng=rng)]
            trusted = {name: each for name, each in RELEASES.items() if each.model != "local"}
            parts.append(play(SMALL_EPSILONS, trusted, rng=rng))
            tables[city] = pa.concat_tables(parts)
            write_results(out / _folder(city), tables[city], ["w2", "l1"], SHUFFLE_DELTA)
    text = markdown(
        ["city", "users", "release", *(f"eps {epsilon:g}" for epsilon in EPSILONS)],
        [row for city, table in tables.items() for row in _rows(city, table)],
    )
    click.echo(text)
    gains = markdown(["model", "release", "over", "ratio", "best and worst", "within 10 %"],
                     list(_gains(tables)))  # fmt: skip
    click.echo(gains)
    figure = draw({city: _drawn(tables[city]) for city in DRAWN})
    save_figure(figure, out / "flagship.png")
    if write:
        save_figure(figure, generated(DOCS, "flagship.png"))
        page = DOCS / "experiments" / "trust-models.md"
        replace_block(page, "flagship", text)
        replace_block(page, "flagship-gains", gains)


def _drawn(table: pa.Table) -> pa.Table:
    return table.filter(pa.compute.invert(pa.compute.is_in(table["release"], pa.array(NOT_DRAWN))))


def _gains(tables: dict[str, pa.Table]) -> Iterator[list[str]]:
    """Yield what each model's recommended release gains over all others of it, and over models."""
    errors = {name: [] for name in RELEASES}
    for table in tables.values():
        for name, found in errors.items():
            curve = error_curve(table, name, "w2")
            found += [curve.mean[list(curve.x).index(epsilon)] for epsilon in EPSILONS]
    models: dict[str, list[str]] = {}
    for name, release in RELEASES.items():
        models.setdefault(release.model, []).append(name)
    best = {model: np.min([errors[name] for name in names], 0) for model, names in models.items()}
    for model, (ours, *rivals) in models.items():
        for rival in rivals:
            yield _gain(model, ours, rival, np.divide(errors[ours], errors[rival]))
        if len(rivals) > 1:
            least = np.min([errors[rival] for rival in rivals], 0)
            every = "the best of these in each setting"
            yield _gain(model, ours, every, np.divide(errors[ours], least))
    ours = models["local"][0]
    others = np.minimum(best["distributed"], best["central"])
    yield _gain("local", ours, "the best of the other models", np.divide(errors[ours], others))
    ratios = best["distributed"] / best["central"]
    yield _gain("distributed", "the best one", "the best central one", ratios)


def _gain(model: str, ours: str, rival: str, ratios: NDArray[np.float64]) -> list[str]:
    mean = float(np.exp(np.log(ratios).mean()))
    near = f"{np.count_nonzero(ratios <= 1.1)} of {len(ratios)}"
    return [model, ours, rival, f"{mean:.2f}", f"{ratios.min():.2f} to {ratios.max():.2f}", near]


def draw(tables: dict[str, pa.Table]) -> Figure:
    """Draw a row for each reading of epsilon, a column for each city."""
    figure = Figure(figsize=(12.5, 10.0), layout="constrained")
    panels = figure.subplots(len(READINGS), len(tables), sharey="col")
    for row, reading in zip(panels, READINGS, strict=True):
        for axes, (city, table) in zip(row, tables.items(), strict=True):
            draw_error_curves(axes, table, "w2", reading, mixed=reading == "epsilon")
            users = table["users"][0].as_py()
            if axes is not row[len(row) // 2]:
                axes.set_xlabel("")  # long, and the same for all of a row
            if reading == READINGS[0]:
                axes.set_title(f"{city}, {users:,} users")
    figure.legend(handles=legend_handles(panels[0][0]), loc="outside lower center", ncols=4)
    return figure


def _show(bar: Progress, task: TaskID, done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)


def _cities(data: Path, seed: int) -> dict[str, UserCells]:
    south, west, side = CHICAGO_SQUARE
    everybody = user_cells(chicago(data), Grid.from_bounds(south, west, side, CELLS))
    island = _reduced(manhattan(data))
    walkers = people_of(island, 200_000, np.random.default_rng(seed))
    (austin,) = city_cells(gowalla(data), CELLS, 200, 1)
    places = [
        user_cells(points, Grid.from_bounds(*SQUARES[name][1], CELLS))
        for name, points in (
            ("new york", new_york(data)),
            ("tokyo", tokyo(data)),
            ("stockholm", gowalla(data)),
        )
    ]
    return dict(zip(CITIES, (everybody, walkers, austin, *places), strict=True))


def _folder(city: str) -> str:
    return city.split(",", maxsplit=1)[0].lower().replace(" ", "-")


def _reduced(luminosity: np.ndarray) -> np.ndarray:
    """Sum the 216 x 216 map into 64 x 64 cells, sharing pixels that a cell's edge cuts."""
    edges = np.linspace(0, luminosity.shape[0], CELLS + 1)
    total = np.pad(luminosity.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    at = np.arange(luminosity.shape[0] + 1)
    down = np.array([np.interp(edges, at, column) for column in total.T]).T
    both = np.array([np.interp(edges, at, row) for row in down])
    return np.diff(np.diff(both, axis=0), axis=1)


def _rows(city: str, table: pa.Table) -> list[list[str]]:
    rows = []
    for release in dict.fromkeys(table["release"].to_pylist()):
        curve = error_curve(table, release, "w2")
        shown = {
            x: f"{mean:.4f}" + ("" if np.isnan(upper) else f" ± {upper - mean:.4f}")
            for x, mean, upper in zip(curve.x, curve.mean, curve.upper, strict=True)
        }
        values = [shown[epsilon] for epsilon in EPSILONS]
        rows.append([city, f"{table['users'][0].as_py():,}", release, *values])
    return rows
