"""Table 1 of Bagdasaryan et al. 2022: error and communication of all releases on Manhattan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import click

from experiments.means import mean_and_half_width, shown, span
from experiments.papers.distributed.branches import KEPT, LOOP, authors_grid
from experiments.papers.distributed.places import Place, manhattan_place, side_option
from experiments.papers.distributed.report import MSE_UNIT
from experiments.papers.distributed.runs import Case, Runs, adaptive, play_all
from experiments.setup import COUNT, Setup, experiment
from experiments.tables import markdown
from ldpspatial.release.distributed.levels.adaptive_grid import AdaptiveGrid
from ldpspatial.release.distributed.levels.flat import Flat
from ldpspatial.release.distributed.levels.hierarchical import (
    Hierarchical,
    HierarchicalOracle,
    NonPrivateBestLevel,
)
from ldpspatial.release.distributed.levels.sketch import CountMin, CountMinMinimum, CountMinOracle
from ldpspatial.release.distributed.levels.spatial_decomposition import (
    SpatialDecomposition,
    SpatialDecompositionOracle,
)
from ldpspatial.release.distributed.sums.cohort import Cohort
from ldpspatial.release.release import Release

ADAPTIVE = "adaptive hierarchical"
GRID = "adaptive grid, authors' settings"
NON_PRIVATE = "non-private, best level (oracle)"
# Of 10,000 clients that fail with chance 0.10 more than 0.12 practically never do.
DROP_OUTS = Cohort(drop_out=0.1, tolerated=0.12)


WITH_DROP_OUTS = {
    NON_PRIVATE: (6.55, 2),
    ADAPTIVE: (7.02, 1244),
    "spatial decomposition (oracle)": (7.78, 1_048_576),
    "hierarchical (oracle)": (7.79, 1_398_100),
    GRID: (9.96, 2882),
    "count-min, median (oracle)": (11.73, 40_000),
    "flat": (21.93, 1_048_576),
}


@dataclass(frozen=True)
class Column:
    """A setting of the table and the paper's numbers in it: MSE (1e-13), vector length."""

    title: str
    users: int
    cohort: Cohort
    paper: Mapping[str, tuple[float, int]]


def columns(few: int, many: int) -> list[Column]:
    """Return the settings of the table: the paper's, and the last as its authors' code has it."""
    lost = round(100 * (1 - KEPT))
    return [
        Column(f"{few:,} users", few, Cohort(), {
            NON_PRIVATE: (7.75, 2),
            ADAPTIVE: (7.88, 340),
            "spatial decomposition (oracle)": (8.56, 1_048_576),
            "hierarchical (oracle)": (8.81, 1_398_100),
            GRID: (9.67, 460),
            "count-min, median (oracle)": (11.62, 40_000),
            "flat": (41.40, 1_048_576),
        }),
        Column(f"{many:,} users", many, Cohort(), {
            NON_PRIVATE: (6.19, 2),
            ADAPTIVE: (6.99, 1254),
            "spatial decomposition (oracle)": (7.72, 1_048_576),
            "hierarchical (oracle)": (7.75, 1_398_100),
            GRID: (9.89, 3448),
            "count-min, median (oracle)": (11.69, 40_000),
            "flat": (21.40, 1_048_576),
        }),
        Column(f"{many:,} users, 10 % drop out", many, DROP_OUTS, WITH_DROP_OUTS),
        Column(f"the same, authors' settings: {lost} % lost", many, LOOP, WITH_DROP_OUTS),
    ]  # fmt: skip


def releases(place: Place, cohort: Cohort) -> dict[str, Release]:
    """Return the rows of the table; oracles choose their level against the whole map."""
    truth = place.density
    sketch = CountMinOracle(cohort=cohort, truth=truth)
    return {
        NON_PRIVATE: NonPrivateBestLevel(cohort=cohort, truth=truth),
        ADAPTIVE: adaptive(cohort),
        "adaptive grid": AdaptiveGrid(cohort),
        GRID: authors_grid(cohort),
        "spatial decomposition (oracle)": SpatialDecompositionOracle(cohort=cohort, truth=truth),
        "spatial decomposition": SpatialDecomposition(cohort=cohort),
        "hierarchical (oracle)": HierarchicalOracle(cohort=cohort, truth=truth),
        "hierarchical": Hierarchical(cohort=cohort),
        "count-min, median (oracle)": sketch,
        "count-min, median": CountMin(cohort=cohort),
        "count-min, minimum (oracle)": replace(sketch, estimator="minimum"),
        "count-min, minimum": CountMinMinimum(cohort=cohort),
        "flat": Flat(cohort),
    }


@experiment("distributed-table1", repeats=10)
@side_option
@click.option(
    "--few", default=10_000, type=COUNT, show_default=True, help="Users of the first setting."
)
@click.option("--many", default=100_000, type=COUNT, show_default=True, help="Users of the others.")
def table1(setup: Setup, side: int, few: int, many: int) -> None:
    """All releases on Manhattan (Bagdasaryan et al. 2022, Table 1).

    Mean squared error and vector length at epsilon 1 with shards of 10,000: 10,000 users, 100,000
    users, and 100,000 of whom 10 % drop out in each round, or 18 %: as many as the loop of the
    authors' code loses where 10 % are asked for. The paper's map has 1024 x 1024 pixels;
    here it is the reduced one of 216 x 216 with its pixels repeated. Users are drawn from the map,
    and the whole map is the truth. An oracle's level is chosen against the truth, as the paper
    does it; without that word the level is chosen from noisy counts.
    """
    place = manhattan_place(setup.data, side)
    settings = columns(few, many)
    cases = {
        column.title: [
            Case(label, release, column.users)
            for label, release in releases(place, column.cohort).items()
        ]
        for column in settings
    }
    runs = {
        column.title: play_all(place, cases[column.title], setup, f"{column.users}-{number}")
        for number, column in enumerate(settings)
    }
    text = "\n\n".join(
        [
            table(settings, cases, runs),
            *(order(column, cases[column.title], runs[column.title]) for column in settings),
        ]
    )
    setup.publish(text, {}, {})


def table(settings: list[Column], cases: Mapping[str, list[Case]], runs: Mapping[str, Runs]) -> str:
    """Return errors and lengths, ours and the paper's."""
    rows = []
    for label in (case.label for case in cases[settings[0].title]):
        row = [label]
        for column in settings:
            own = _own(cases[column.title], runs[column.title], label)
            row.append(shown(MSE_UNIT * own.values("mse")))
            row.append(f"{column.paper[label][0]:.2f}" if label in column.paper else "")
        lengths = [_own(cases[c.title], runs[c.title], label) for c in settings]
        row.append("; ".join(dict.fromkeys(span(own.values("vector_length")) for own in lengths)))
        papers = [f"{c.paper[label][1]:,}" for c in settings if label in c.paper]
        rows.append([*row, "; ".join(dict.fromkeys(papers))])
    titles = [title for column in settings for title in (column.title, "paper")]
    return markdown(["MSE (1e-13)", *titles, "vector length", "paper"], rows)


def order(column: Column, cases: list[Case], runs: Runs) -> str:
    """Return who comes first, and how far the next one is from the adaptive method, in pairs."""
    means = {case.label: runs.of(case).values("mse").mean() for case in cases}
    ours = [label for label in sorted(means, key=means.__getitem__) if label in column.paper]
    paper = sorted(column.paper, key=lambda label: column.paper[label][0])
    own = _own(cases, runs, ADAPTIVE).values("mse")
    following = ours[ours.index(ADAPTIVE) + 1]
    beyond = MSE_UNIT * (_own(cases, runs, following).values("mse") - own)
    mean, half = mean_and_half_width(beyond)
    same = "The paper has the same order." if ours == paper else f"The paper: {_chain(paper)}."
    return (
        f"{column.title}: {_chain(ours)}. {same} From the adaptive method to the next, "
        f"{following}, in pairs of the same people: {mean:.2f} ± {half:.2f}."
    )


def _chain(labels: list[str]) -> str:
    short = (label.removesuffix(" (oracle)").removesuffix(", best level") for label in labels)
    return " < ".join(short)


def _own(cases: list[Case], runs: Runs, label: str) -> Runs:
    return runs.of(next(case for case in cases if case.label == label))
