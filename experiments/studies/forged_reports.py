"""How far forged reports move a map, and how often the check of the fit notices them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from client_sdk import Grid, ResponseTable, response_table
from client_sdk.kernels import cells_of
from experiments.forgers import FORGERS, Cell, busiest, farthest
from experiments.generated import write_page
from experiments.means import shown
from experiments.places import Place, places
from experiments.progress import tracked
from experiments.sources import data_option
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial import StampChannel, estimate, wasserstein
from ldpspatial.channels.playing import play
from ldpspatial.datasets import CITY_CENTER, CITY_SIDE_M, city
from ldpspatial.errors import LdpSpatialError
from ldpspatial.estimation import goodness_of_fit
from ldpspatial.places.cell_maps import people_map

Array = NDArray[np.float64]

CELLS = 15
MECHANISMS = ("dam", "huem")
EPSILONS = (1.0, 3.5, 6.0)
PEOPLE = (10_000, 100_000)
SHARES = (0.001, 0.01, 0.05)  # forged, of all reports
REACH = 2  # cells around a place whose share of the map is looked at
CORNER = "far corner"
CROWD = "busiest cell"
KINDS = (  # what is sent, and where the forgers are said to be
    ("unrandomised", CROWD),
    ("unrandomised", CORNER),
    ("disk alone", CORNER),
    ("drawn", CORNER),
    ("noise", CORNER),
)
SUMMARISED = "dam"

Kind = tuple[str, str]
Forged = tuple[Kind, float]


@dataclass(frozen=True)
class Setting:
    """A collection: mechanism, epsilon of a report, honest reports."""

    mechanism: str
    epsilon: float
    people: int


@dataclass(frozen=True)
class Outcome:
    """What forged reports did to one map, or to many: arrays are (maps, repeats).

    Attributes
    ----------
    moved : W2 in cells between the estimates with and without them
    error : W2 in cells between the truth and the estimate with them
    added : what they added to the share of the map around their place
    noticed : 1 where the check of the fit raised an alarm
    """

    moved: Array
    error: Array
    added: Array
    noticed: Array


@dataclass(frozen=True)
class Measured:
    """All runs of one setting.

    Attributes
    ----------
    error, alarms : (maps, repeats) arrays
        W2 to the truth in cells, and alarms, with nothing forged.
    forged : Outcome by what was forged
    """

    error: Array
    alarms: Array
    forged: Mapping[Forged, Outcome]


@click.command("forged-reports")
@data_option
@click.option("--repeats", default=6, show_default=True, type=click.IntRange(2),
              help="Collections on each map.")  # fmt: skip
@click.option("--seed", default=1, show_default=True)
@click.option("--write", is_flag=True, help="Write the page and the summary in docs/experiments.")
def forged_reports(data: Path, repeats: int, seed: int, write: bool) -> None:
    """Show how far forged reports move a map, and how often the fit check notices them.

    DAM and HUEM on 15 x 15 cells, epsilon 1, 3.5 and 6, 10,000 and 100,000 honest reports, the
    default estimator; .1, 1 and 5 % of all reports forged in five ways.
    """
    try:
        where = all_places(data)
    except LdpSpatialError as error:
        raise click.ClickException(str(error)) from error
    settings = [
        Setting(mechanism, epsilon, people)
        for mechanism in MECHANISMS
        for people in PEOPLE
        for epsilon in EPSILONS
    ]
    rng = np.random.default_rng(seed)
    found = {
        setting: measured(setting, list(where.values()), repeats, rng)
        for setting in tracked(settings, "settings")
    }
    page = f"Maps: {', '.join(where)}; {repeats} collections on each.\n\n{pages(found)}"
    summary = summarised(found)
    click.echo(f"{page}\n\n{summary}")
    if write:
        write_page(DOCS, "forged-reports", page)
        replace_block(DOCS / "experiments" / "forged-reports.md", "forged-reports", summary)


def all_places(data: Path) -> dict[str, Place]:
    """Return the maps that are measured on, by name."""
    grid = Grid.from_center(*CITY_CENTER, CITY_SIDE_M, CELLS)
    return {**places(CELLS, data), "city": Place(grid, city)}


def measured(
    setting: Setting, where: Sequence[Place], repeats: int, rng: np.random.Generator
) -> Measured:
    """Play all collections of a setting, on all maps."""
    table = response_table(setting.mechanism, setting.epsilon, CELLS)
    runs = [[played(place, table, setting.people, rng) for _ in range(repeats)] for place in where]
    kinds = runs[0][0].forged
    return Measured(
        np.array([[run.error for run in row] for row in runs]),
        np.array([[run.alarms for run in row] for row in runs]),
        {
            kind: Outcome(
                *(
                    np.array([[getattr(run.forged[kind], field) for run in row] for row in runs])
                    for field in ("moved", "error", "added", "noticed")
                )
            )
            for kind in kinds
        },
    )


def played(place: Place, table: ResponseTable, people: int, rng: np.random.Generator) -> Measured:
    """Play one collection, and each forgery on top of its reports."""
    points = place.draw(people, rng)
    rows, cols, _ = cells_of(place.grid, points[:, 0], points[:, 1])
    truth = people_map(rows, cols, table.cells) / people
    honest = play(table, rows, cols, rng)
    without = _looked_at(table, honest)
    cells = {CORNER: farthest(truth), CROWD: busiest(truth)}
    forged = {}
    for sent, at in KINDS:
        for share in SHARES:
            n = forged_number(people, share)
            counts = honest + FORGERS[sent](table, cells[at], n, rng)
            forged[(sent, at), share] = _outcome(table, counts, truth, without, cells[at])
    return Measured(
        np.array(wasserstein(truth, without.density)), np.array(without.is_alarm), forged
    )


def forged_number(people: int, share: float) -> int:
    """Return how many reports to add to those of honest people, so that this share is forged."""
    return round(people * share / (1 - share))


@dataclass(frozen=True)
class _Look:
    """A map as the server sees it."""

    density: Array
    is_alarm: bool


def _looked_at(table: ResponseTable, counts: NDArray[np.int64]) -> _Look:
    found = estimate(StampChannel(table), counts, "scaled")
    return _Look(found.density, not goodness_of_fit(found).is_plausible())


def _outcome(
    table: ResponseTable, counts: NDArray[np.int64], truth: Array, without: _Look, place: Cell
) -> Outcome:
    found = _looked_at(table, counts)
    around = _around(place, table.cells)
    return Outcome(
        np.array(wasserstein(without.density, found.density)),
        np.array(wasserstein(truth, found.density)),
        found.density[around].sum() - without.density[around].sum(),
        np.array(found.is_alarm),
    )


@cache
def _around(place: Cell, cells: int) -> NDArray[np.bool_]:
    """Return which cells are near a place."""
    rows, cols = np.indices((cells, cells))
    return np.maximum(abs(rows - place[0]), abs(cols - place[1])) <= REACH


def pages(found: Mapping[Setting, Measured]) -> str:
    """Return the long tables: one of what happens with nothing forged, one for each way."""
    parts = ["## Nothing forged", _honest(found)]
    for kind in KINDS:
        parts += [f"## {_called(kind)}", _of_kind(found, kind)]
    return "\n\n".join(parts)


def _honest(found: Mapping[Setting, Measured]) -> str:
    rows = [
        [*_setting(setting), shown(runs.error.mean(axis=0)), _of(runs.alarms)]
        for setting, runs in found.items()
    ]
    every = np.concatenate([runs.alarms.ravel() for runs in found.values()])
    # The upper end of the one-sided 95 % interval by Clopper and Pearson.
    most = beta.ppf(0.95, every.sum() + 1, every.size - every.sum()) if not every.all() else 1.0
    total = f"False alarms: {_of(every)} in all; 95 % sure that they are rarer than {most:.2%}."
    header = ["mechanism", "n", "eps", "W2 to the truth", "alarms"]
    return f"{markdown(header, rows)}\n\n{total}"


def _of_kind(found: Mapping[Setting, Measured], kind: Kind) -> str:
    rows = []
    for setting, runs in found.items():
        for share in SHARES:
            outcome = runs.forged[kind, share]
            ratios = outcome.moved.mean(axis=1) / runs.error.mean(axis=1)
            rows.append(
                [
                    *_setting(setting),
                    f"{share:.1%}",
                    shown(outcome.moved.mean(axis=0)),
                    f"{ratios.mean():.2f} ({ratios.min():.2f} to {ratios.max():.2f})",
                    shown(outcome.error.mean(axis=0)),
                    f"{100 * outcome.added.mean():+.2f}",
                    _by_map(outcome.noticed.mean(axis=1)),
                ]
            )
    header = ["mechanism", "n", "eps", "forged", "map moved by", "in errors (by map)",
              "W2 to the truth then", "points added", "noticed (by map)"]  # fmt: skip
    return markdown(header, rows)


def summarised(found: Mapping[Setting, Measured]) -> str:
    """Return the short table: how far the map moves in errors, and how often that is noticed."""
    settings = [setting for setting in found if setting.mechanism == SUMMARISED]
    header = ["forged", *(f"n {each.people:,}, eps {each.epsilon:g}" for each in settings)]
    rows = []
    for kind in KINDS:
        for share in SHARES:
            row = [f"{_called(kind)}, {share:.1%}"]
            for setting in settings:
                runs = found[setting]
                outcome = runs.forged[kind, share]
                ratio = (outcome.moved.mean(axis=1) / runs.error.mean(axis=1)).mean()
                row.append(f"{ratio:.2f}, {_percent(outcome.noticed.mean())}")
            rows.append(row)
    return markdown(header, rows)


def _setting(setting: Setting) -> list[str]:
    return [setting.mechanism, f"{setting.people:,}", f"{setting.epsilon:g}"]


def _called(kind: Kind) -> str:
    sent, at = kind
    return sent if sent == "noise" else f"{sent}, {at}"


def _of(alarms: Array) -> str:
    return f"{int(alarms.sum()):,} of {alarms.size:,}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share in (0, 1) else f"{share:.1%}"


def _by_map(shares: Array) -> str:
    """Return the mean over the maps and, where they differ, the least and the most."""
    mean = _percent(shares.mean())
    if shares.min() == shares.max():
        return mean
    return f"{mean} ({_percent(shares.min())} to {_percent(shares.max())})"
