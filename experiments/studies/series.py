"""A budget over seven windows: one window in full, two at half of it, or all at a seventh."""

from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from client_sdk import ResponseTable, response_table
from client_sdk.kernels import cells_of
from experiments.places import Place, places
from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block
from experiments.trials import mean_and_error
from ldpspatial import StampChannel, estimate, wasserstein
from ldpspatial.channels.playing import play
from ldpspatial.errors import LdpSpatialError
from ldpspatial.places.cell_maps import people_map
from ldpspatial.privacy.still_device import still_device_risk

Ints = NDArray[np.int64]

CELLS = 15
WINDOWS = 7
LOSS = 3.5  # of a device, over all windows
ANSWERS = (1, 2, 7)
TRIALS = 100_000  # still devices
COUNT = click.IntRange(1)


@click.command()
@click.option("--data", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Folder with the data files: adds Chicago and New York.")  # fmt: skip
@click.option("--devices", default=40_000, show_default=True, type=COUNT)
@click.option("--repeats", default=20, show_default=True, type=COUNT, help="Series on each map.")
@click.option("--seed", default=1, show_default=True)
@click.option("--write", is_flag=True, help="Put the tables into docs/experiments/windows.md.")
def series(data: Path | None, devices: int, repeats: int, seed: int, write: bool) -> None:
    """Exact W2 of a window, and the risk of staying, by how a budget is spread over windows.

    DAM on 15 x 15 cells, seven windows, a loss of 3.5 a device in all: each device answers one
    window drawn at random at epsilon 3.5, two at 1.75, or all seven at 0.5. People are drawn anew
    for every window, with replacement where they come from data.
    """
    try:
        found = places(CELLS, data)
    except LdpSpatialError as error:
        raise click.ClickException(str(error)) from error
    rng = np.random.default_rng(seed)
    tables = {answers: response_table("dam", LOSS / answers, CELLS) for answers in ANSWERS}
    rows = []
    for name, place in tracked(found.items(), "maps"):
        errors = np.array([play_series(place, tables, devices, rng) for _ in range(repeats)])
        rows.append([name, *(mean_and_error(column.tolist()) for column in errors.T)])
    error_table = markdown(["map", *map(_called, ANSWERS)], rows)
    text = f"{error_table}\n\n{risk_table(tables, devices, rng)}"
    click.echo(text)
    if write:
        replace_block(DOCS / "experiments" / "windows.md", "series", text)


def play_series(
    place: Place, tables: Mapping[int, ResponseTable], devices: int, rng: np.random.Generator
) -> list[float]:
    """Play one series and return the mean W2 of its windows in cells, by number of answers.

    The truth of a window is where all devices are in it, those that do not answer included. All
    designs see the same people.
    """
    answered = {answers: windows_answered(devices, answers, rng) for answers in tables}
    errors = dict.fromkeys(tables, 0.0)
    for window in range(WINDOWS):
        points = place.draw(devices, rng)
        rows, cols, _ = cells_of(place.grid, points[:, 0], points[:, 1])
        people = people_map(rows, cols, CELLS)
        for answers, table in tables.items():
            chosen = answered[answers][:, window]
            counts = play(table, rows[chosen], cols[chosen], rng)
            found = estimate(StampChannel(table), counts, "scaled")
            errors[answers] += wasserstein(people / devices, found.density) / WINDOWS
    return list(errors.values())


def windows_answered(devices: int, answers: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw, device by device, which windows it answers: a (devices, windows) mask."""
    ranks = rng.random((devices, WINDOWS)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks < answers)


def risk_table(tables: Mapping[int, ResponseTable], devices: int, rng: np.random.Generator) -> str:
    """Return what each design tells of a device that stays in one cell over the series."""
    rows = []
    for answers, table in tables.items():
        risk = still_device_risk(table, answers, TRIALS, rng)
        rows.append(
            [
                _called(answers),
                f"{devices * answers // WINDOWS:,}",
                f"{risk.exact_cell.estimate:.3f}",
                f"{risk.within_one_cell.estimate:.3f}",
            ]
        )
    head = ["each device answers", "reports a window", "its cell is named", "or one around it"]
    return markdown(head, rows)


def _called(answers: int) -> str:
    number = f"{answers} of {WINDOWS}" if answers < WINDOWS else f"all {WINDOWS}"
    return f"{number} at eps {LOSS / answers:g}"
