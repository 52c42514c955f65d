"""What ``ldpspatial.recommended`` returns, compared with the DAM paper's mechanisms.

The choice looks at cells, epsilon and users alone. Each rival is given several estimators and
is judged by the one that turns out best on that very map: what nobody can choose beforehand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import exp
from pathlib import Path

import click
import numpy as np
from matplotlib.figure import Figure

from client_sdk import Grid
from experiments.generated import generated
from experiments.pairs import errors_of, verdict
from experiments.papers.dam.options import users_option
from experiments.papers.distributed.report import mean_and_half_width
from experiments.papers.distributed.setup import COUNT, Setup, experiment
from experiments.progress import tracked
from experiments.sources import CHICAGO_SQUARE, NEW_YORK_SQUARE, Array, chicago, new_york, people_of
from experiments.synthetic import POPULATION, crowd
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.comparison.compare import compare_people
from ldpspatial.places.points import Points
from ldpspatial.places.users import UserCells, user_cells
from ldpspatial.planning.recommendation import recommended
from ldpspatial.plotting.heat_map import save_figure
from ldpspatial.release.local import Dam, Disk, Huem, KRr, SubsetSelection
from ldpspatial.release.release import Release

CELLS = (15, 32)
EPSILONS = (1.4, 3.5, 5.0, 7.0)
MAPS = ("Chicago", "New York", "normal", "szipf", "mnormal")
BASELINE = "dam, em (published stop)"
OURS = "recommended"
NEAR = 1.1  # of the best rival's error
SIEVE = "cross-validated"
RIVALS: dict[str, Release] = {
    BASELINE: Dam(rule="published"),
    "dam, em (scaled stop)": Dam(),
    "dam, em (likelihood stop)": Dam(rule="likelihood"),
    "dam, sieve": Dam(rule=SIEVE),
    "huem, em (published stop)": Huem(rule="published"),
    "huem, em (scaled stop)": Huem(),
    "huem, sieve": Huem(rule=SIEVE),
    "k-rr, em (published stop)": KRr(rule="published"),
    "k-rr, projection": KRr(estimator="projection"),
    "k-rr, sieve": KRr(rule=SIEVE),
    "subset-selection, projection": SubsetSelection(estimator="projection"),
    "subset-selection, em": SubsetSelection(estimator="em"),
}
SLOW = ("subset-selection, em",)  # half a minute a run on 32 x 32 cells with 100,000 users


@dataclass(frozen=True)
class Case:
    """A setting."""

    name: str
    cells: int
    epsilon: float
    users: int


@dataclass(frozen=True)
class Outcome:
    """W2 in cells of every release in one setting, repeat by repeat, and what was recommended."""

    case: Case
    runs: Mapping[str, Array]
    release: Disk

    @cached_property
    def errors(self) -> dict[str, float]:
        """Mean W2 of every release."""
        return {label: float(runs.mean()) for label, runs in self.runs.items()}

    @property
    def ratio(self) -> float:
        """Error of what is recommended over that of DAM as published."""
        return self.errors[OURS] / self.errors[BASELINE]

    @property
    def best_rival(self) -> str:
        """The rival and estimator with the least error."""
        return min(RIVALS, key=lambda label: self.errors[label])

    @property
    def behind(self) -> float:
        """Error of what is recommended over that of the best rival."""
        return self.errors[OURS] / self.errors[self.best_rival]

    @property
    def is_far_behind(self) -> bool:
        """Whether the best rival is ahead by more than NEAR beyond chance, on the same people."""
        rival = self.runs[self.best_rival]
        return verdict(NEAR * rival, self.runs[OURS][: len(rival)]) == "lower"


@experiment("better-default", repeats=10)
@users_option
@click.option("--slow-repeats", default=2, show_default=True, type=COUNT,
              help="Of subset selection with EM, no more than of the others.")  # fmt: skip
@click.option("--quick", is_flag=True, help="15 x 15 cells and a tenth of the users only.")
def better_default(setup: Setup, users: int, slow_repeats: int, quick: bool) -> None:
    """Compare the recommended release with DAM, HUEM, k-RR and subset selection, 80 settings."""
    cases = [
        Case(name, cells, epsilon, count)
        for cells in (CELLS[:1] if quick else CELLS)
        for count in ((users // 10,) if quick else (users // 10, users))
        for epsilon in EPSILONS
        for name in MAPS
    ]
    outcomes = [play(setup, case, users, slow_repeats) for case in tracked(cases, "better-default")]
    text = "\n\n".join((summary(outcomes), by_setting(outcomes), far_behind(outcomes)))
    click.echo(text)
    figure = draw(outcomes)
    save_figure(figure, setup.out / "recommended.png", dpi=90)
    if setup.write:
        save_figure(figure, generated(DOCS, "recommended.png"), dpi=90)
        replace_block(DOCS / "recommended.md", setup.name, text)


def play(setup: Setup, case: Case, most: int, slow_repeats: int) -> Outcome:
    """Play everything in one setting, on users drawn anew in each repeat."""
    ours = recommended(case.cells, case.epsilon, case.users)
    everything = {**RIVALS, OURS: ours}
    slow = {label: everything.pop(label) for label in SLOW}
    runs = {}
    for releases, repeats in ((everything, setup.repeats), (slow, slow_repeats)):
        table = compare_people(
            {case.cells: people(setup.data, case.name, case.cells, most)},
            [case.epsilon],
            releases,
            min(repeats, setup.repeats),
            np.random.default_rng(setup.seed),
            users=[case.users],
            metrics=["w2"],
            folder=setup.out / f"{case.name}-{case.cells}".lower().replace(" ", "-"),
            jobs=setup.jobs,
            data=case.name,
        )
        runs |= {label: errors_of(table, label, "w2") for label in releases}
    return Outcome(case, runs, ours)


def people(data: Path, name: str, cells: int, users: int) -> UserCells:
    """Return the people that users are drawn from: a large crowd, distributed as the data are."""
    cities = {"Chicago": (chicago, CHICAGO_SQUARE), "New York": (new_york, NEW_YORK_SQUARE)}
    if name not in cities:
        return crowd(name, cells, users)
    read, square = cities[name]
    density = city_density(read(data), square, cells)
    return people_of(density, POPULATION * users, np.random.default_rng(0))


def city_density(points: Points, square: tuple[float, float, float], cells: int) -> Array:
    """Return the map of a city's data."""
    return user_cells(points, Grid.from_bounds(*square, cells)).density


def summary(outcomes: list[Outcome]) -> str:
    """Return the two numbers that were asked for."""
    logs = np.mean([np.log(each.ratio) for each in outcomes])
    _, half = mean_and_half_width(
        np.mean([np.log(each.runs[OURS] / each.runs[BASELINE]) for each in outcomes], axis=0)
    )
    chance = "" if np.isnan(half) else f" ± {exp(logs) * half:.1%}"
    near = np.mean([each.behind <= NEAR for each in outcomes])
    ahead = np.mean([each.behind < 1 for each in outcomes])
    plain = [label for label in RIVALS if not label.endswith("sieve")]
    unaided = np.mean(
        [o.errors[OURS] <= NEAR * min(o.errors[label] for label in plain) for o in outcomes]
    )
    lost = sum(each.is_far_behind for each in outcomes)
    return (
        f"Geometric mean of W2 over {len(outcomes)} settings, {len(outcomes[0].runs[OURS])} "
        f"repeats: {1 - exp(logs):.1%}{chance} below {BASELINE}. Within {NEAR - 1:.0%} of the best "
        f"rival with its best estimator in {near:.0%} of the settings, ahead of it in {ahead:.0%}; "
        f"behind by more than {NEAR - 1:.0%} beyond chance (95% intervals of paired differences) "
        f"in {lost} settings. In {unaided:.0%} within {NEAR - 1:.0%} of the best rival that has "
        "not got the sieve."
    )


def by_setting(outcomes: list[Outcome]) -> str:
    """Return a table by cells, users and epsilon: ratios of geometric means over the maps."""
    rows = []
    keys = dict.fromkeys((o.case.cells, o.case.users, o.case.epsilon) for o in outcomes)
    for key in keys:
        here = [o for o in outcomes if (o.case.cells, o.case.users, o.case.epsilon) == key]
        geometric = partial(_over_maps, here)
        rows.append([
            str(key[0]), f"{key[1]:,}", f"{key[2]:g}", str(here[0].release.squared_radius),
            f"{geometric(OURS):.3f}", f"{geometric(BASELINE):.3f}",
            f"{geometric(OURS) / geometric(BASELINE):.2f}",
            *(f"{geometric(*(label for label in RIVALS if label.startswith(rival))):.3f}"
              for rival in ("dam", "huem", "k-rr", "subset")),
        ])  # fmt: skip
    header = ["d", "users", "eps", "squared radius", "recommended", BASELINE, "ratio",
              "dam, best", "huem, best", "k-rr, best", "subset selection, best"]  # fmt: skip
    return markdown(header, rows)


def far_behind(outcomes: list[Outcome]) -> str:
    """Name the settings in which a rival with its best estimator was ahead by more than 10 %."""
    rows = [
        [o.case.name, str(o.case.cells), f"{o.case.users:,}", f"{o.case.epsilon:g}", o.best_rival,
         f"{o.errors[o.best_rival]:.3f}", f"{o.errors[OURS]:.3f}",
         "yes" if o.is_far_behind else "no"]
        for o in outcomes if o.behind > NEAR
    ]  # fmt: skip
    if not rows:
        return "No rival was ahead by more than 10 % in any setting."
    return "Settings in which a rival was ahead by more than 10 %:\n\n" + markdown(
        ["map", "d", "users", "eps", "rival", "its W2", "recommended", "beyond chance"], rows
    )


def draw(outcomes: list[Outcome]) -> Figure:
    """Draw errors over those of DAM as published, a panel for each number of cells and users."""
    keys = list(dict.fromkeys((o.case.cells, o.case.users) for o in outcomes))
    figure = Figure(figsize=(3.4 * len(keys), 3.9), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(keys), sharey=True))
    for axes, key in zip(panels, keys, strict=True):
        here = [o for o in outcomes if (o.case.cells, o.case.users) == key]
        for name in dict.fromkeys(o.case.name for o in here):
            line = [o for o in here if o.case.name == name]
            axes.plot([o.case.epsilon for o in line], [o.ratio for o in line], "o-", label=name)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_title(f"{key[0]} x {key[0]} cells, {key[1]:,} users", fontsize=9)
        axes.set_xlabel("epsilon")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("W2 over that of DAM, published stop")
    panels[0].set_ylim(bottom=0)
    figure.legend(handles=panels[0].get_lines()[:-1], loc="outside lower center", ncols=len(MAPS))
    return figure


def _over_maps(outcomes: list[Outcome], *labels: str) -> float:
    """Return the geometric mean of the error over maps, on each that of the best of the labels."""
    return exp(np.mean([np.log(min(o.errors[label] for label in labels)) for o in outcomes]))
