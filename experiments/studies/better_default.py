"""What ``ldpspatial.recommended`` returns beside what one has without it, city by city.

Every rival gets the same people. What was tuned on a city is not measured on it: the table has the
cities that nothing was chosen on first, and the others below them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import click
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from client_sdk import ResponseTable, response_table
from experiments.cities import HELD_BACK, MORE, SQUARES, TUNED, City, cities
from experiments.finished import played
from experiments.generated import generated, write_page
from experiments.setup import Selection, Setup, experiment
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial import EM, Field, StampChannel, recommended, wasserstein
from ldpspatial.datasets import synthetic_maps
from ldpspatial.estimation.smoothing import five_point
from ldpspatial.plotting.heat_map import save_figure

Array = NDArray[np.float64]

SIDES = (15, 32, 64)
EPSILONS = (0.5, 1.0, 1.4, 2.0, 3.5, 5.0, 6.0, 7.0)
USERS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
SYNTHETIC = tuple(synthetic_maps())
OURS = "recommended"
PLAIN = "disk, em"  # the same reports with plain EM
PUBLISHED = "dam, published stop"
SMOOTHED = "dam, ems (k = 1/4)"  # the smoothing of the authors' program for their Figure 8
LAW_POINTS = 300_000  # that the law of a synthetic map is read from
RIVALS = (PLAIN, PUBLISHED, SMOOTHED)
GROUPS: Mapping[str, Sequence[str]] = {
    "cities that nothing was chosen on": HELD_BACK,
    "cities that the field was chosen on": TUNED,
    "synthetic maps": SYNTHETIC,
}
HEADER = (
    "settings",
    *(f"over {rival}" for rival in RIVALS),
    "worst over plain EM",
    "not converged",
)
LOSS = 1.0  # of a ratio, beyond which a setting is a loss
MOST_LOSSES = 20  # that are shown


class Case(NamedTuple):
    """A setting."""

    map: str
    cells: int
    users: int
    epsilon: float


@dataclass(frozen=True)
class Outcome:
    """W2 in cells by release, the squared radius, and what the field said of itself."""

    case: Case
    errors: Mapping[str, float]
    squared_radius: int
    verdict: str

    def ratio(self, rival: str) -> float:
        """Return the error of what is recommended over that of a rival."""
        return self.errors[OURS] / self.errors[rival]


@experiment("better-default", repeats=1)
@click.option(
    "--most-users", cls=Selection, default=USERS[-1], show_default=True, help="More are left out."
)
@click.option(
    "--every",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Play one setting in so many.",
)
@click.option(
    "--least-users",
    cls=Selection,
    default=0,
    show_default=True,
    help="Of these, fewer are left out.",
)
@click.option("--least-epsilon", cls=Selection, default=0.0, show_default=True,
              help="And so are smaller ones.")  # fmt: skip
def better_default(
    setup: Setup, most_users: int, every: int, least_users: int, least_epsilon: float
) -> None:
    """Compare the recommended release with plain EM, DAM as published and smoothed EM, by map.

    Eleven squares of cities and three synthetic maps; 15, 32 and 64 cells a side, 10^3 to 10^8
    users in factors of ten, epsilon .5 to 7. Settings that were played are kept in --out and not
    played again.
    """
    users = [n for n in USERS if n <= most_users]
    cases = [Case(*each) for each in product((*SQUARES, *SYNTHETIC), SIDES, users, EPSILONS)]
    chosen = [
        case
        for case in cases[::every]
        if case.users >= least_users and case.epsilon >= least_epsilon
    ]
    outcomes = played(setup, partial(play, setup), chosen, outcome_of)
    text = "\n\n".join((by_map(outcomes), by_kind(outcomes), losses(outcomes)))
    click.echo(text)
    figure = draw(outcomes)
    save_figure(figure, setup.out / "recommended.png", dpi=90)
    if setup.write:
        save_figure(figure, generated(DOCS, "recommended.png"), dpi=90)
        write_page(DOCS, setup.name, text)
        replace_block(DOCS / "recommended.md", setup.name, by_group(outcomes))


def outcome_of(case: tuple[str, int, int, float], **fields: Any) -> Outcome:
    """Return an outcome of its fields, as a folder of finished runs has them."""
    return Outcome(Case(*case), **fields)


def play(setup: Setup, case: Case) -> list[Outcome]:
    """Play one setting: the same people through each release."""
    number = [int(1000 * each) for each in (case.cells, case.users, case.epsilon)]
    names = [*SQUARES, *SYNTHETIC, *MORE]
    rng = np.random.default_rng([setup.seed, names.index(case.map), *number])
    law = law_of(setup, case.map, case.cells)
    people = rng.multinomial(case.users, law.ravel()).reshape(law.shape)
    square = recommended(case.cells, case.epsilon, case.users).squared_radius
    disk = response_table("disk", case.epsilon, case.cells, squared_radius=square)
    dam = response_table("dam", case.epsilon, case.cells)
    of_disk = StampChannel(disk), reported(disk, people, rng)
    of_dam = StampChannel(dam), reported(dam, people, rng)
    maps: dict[str, Callable[[], Array]] = {
        PLAIN: lambda: EM().fit(*of_disk).density,
        PUBLISHED: lambda: EM("published").fit(*of_dam).density,
        SMOOTHED: lambda: EM("published", five_point(0.25)).fit(*of_dam).density,
    }
    truth = people / case.users
    field = Field().fit(*of_disk)
    errors = {label: wasserstein(truth, make()) for label, make in maps.items()}
    errors[OURS] = wasserstein(truth, field.density)
    return [Outcome(case, errors, int(square or 0), str(field.facts["verdict"]))]


def law_of(setup: Setup, name: str, cells: int) -> Array:
    """Return the shares of the cells of a city or of a synthetic map."""
    if name in SQUARES or name in MORE:
        (city,) = cities(setup.data, (name,))
        return city.law(cells)
    chosen = synthetic_maps()[name]
    at = (chosen.draw(LAW_POINTS, np.random.default_rng(0)) - (chosen.y0, chosen.x0)) / chosen.side
    return City(name, (0.0, 0.0, 1.0), np.clip(at, 0.0, 1 - 1e-9)).law(cells)


def reported(table: ResponseTable, people: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Return counts of the reports of people by cell, cell by cell: any number of them."""
    channel = StampChannel(table)
    counts = np.zeros(channel.support.shape)
    unit = np.zeros(people.shape)
    for at in zip(*np.nonzero(people), strict=True):
        unit[at] = 1
        law = np.maximum(channel.forward(unit)[channel.support], 0)
        counts[channel.support] += rng.multinomial(people[at], law / law.sum())
        unit[at] = 0
    return counts


def by_group(outcomes: list[Outcome]) -> str:
    """Return a table by group of maps: geometric means of ratios, and the worst one."""
    rows = [
        row(title, [o for o in outcomes if o.case.map in names]) for title, names in GROUPS.items()
    ]
    return markdown(["maps", *HEADER], [each for each in rows if each])


def by_map(outcomes: list[Outcome]) -> str:
    """Return a table by map, the groups one below the other."""
    rows = []
    for title, names in GROUPS.items():
        rows.append(row(f"**{title}**", [o for o in outcomes if o.case.map in names]))
        rows += [row(name, [o for o in outcomes if o.case.map == name]) for name in names]
    return markdown(["map", *HEADER], [each for each in rows if each])


def by_kind(outcomes: list[Outcome]) -> str:
    """Return a table by cells, users and epsilon, over the cities that nothing was chosen on."""
    kept = [o for o in outcomes if o.case.map in HELD_BACK]
    rows = []
    for label, key in (
        ("{} cells", "cells"), ("{:,} users", "users"), ("eps {:g}", "epsilon"),
    ):  # fmt: skip
        for value in sorted({getattr(o.case, key) for o in kept}):
            here = [o for o in kept if getattr(o.case, key) == value]
            rows.append(row(label.format(value), here))
    return markdown(["setting", *HEADER], [each for each in rows if each])


def losses(outcomes: list[Outcome]) -> str:
    """Name the settings in which plain EM on the same reports, or DAM as published, was nearer."""
    rows = [
        [
            o.case.map, str(o.case.cells), f"{o.case.users:,}", f"{o.case.epsilon:g}",
            *(f"{o.ratio(rival):.2f}" for rival in RIVALS), o.verdict,
        ]
        for o in sorted(outcomes, key=lambda each: -max(map(each.ratio, RIVALS)))
        if max(map(o.ratio, RIVALS)) > LOSS
    ]  # fmt: skip
    if not rows:
        return "No rival was nearer in any setting."
    head = f"A rival was nearer in {len(rows)} of {len(outcomes)} settings; the largest losses:"
    columns = ["map", "d", "users", "eps", *(f"over {rival}" for rival in RIVALS), "verdict"]
    return f"{head}\n\n{markdown(columns, rows[:MOST_LOSSES])}"


def draw(outcomes: list[Outcome]) -> Figure:
    """Draw the ratio to plain EM over epsilon, a panel for each side, a line for each map."""
    sides = sorted({o.case.cells for o in outcomes})
    figure = Figure(figsize=(3.6 * len(sides), 4.2), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(sides), sharey=True))
    for axes, cells in zip(panels, sides, strict=True):
        here = [o for o in outcomes if o.case.cells == cells]
        for name in dict.fromkeys(o.case.map for o in here):
            line = [o for o in here if o.case.map == name]
            at = sorted({o.case.epsilon for o in line})
            means = [_mean([o for o in line if o.case.epsilon == each], PLAIN) for each in at]
            style = "o-" if name in HELD_BACK else "s--" if name in TUNED else "^:"
            axes.plot(at, means, style, markersize=4, label=name)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_title(f"{cells} x {cells} cells", fontsize=9)
        axes.set_xlabel("epsilon")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("W2 over that of plain EM")
    lines = panels[0].get_lines()[:-1]
    figure.legend(handles=lines, loc="outside lower center", ncols=5, fontsize=8)
    return figure


def row(title: str, group: list[Outcome]) -> list[str]:
    """Return a line of a table: geometric means of ratios, and the worst one; of none nothing."""
    if not group:
        return []
    means = [f"{_mean(group, rival):.2f}" for rival in RIVALS]
    worst = f"{max(o.ratio(PLAIN) for o in group):.2f}"
    doubted = sum(o.verdict != "converged" for o in group)
    return [title, str(len(group)), *means, worst, str(doubted)]


def _mean(group: list[Outcome], rival: str) -> float:
    """Return the geometric mean of the ratio to a rival."""
    return float(np.exp(np.mean([np.log(o.ratio(rival)) for o in group])))
