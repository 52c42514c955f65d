"""The recommended central and distributed releases beside their rivals at their best, by map.

Ours has an aim, by what is asked: "distance" where it is W2, "cells" where it is L1 or MSE. Every
rival has its parameter chosen in hindsight: for each setting the one with the least mean error over
all repeats, which no user could know. Of many, the least mean of few repeats is also
the luckiest, so one row chooses by the other repeats; and one row allows a single choice for all
errors, as a map is one map. What was tuned on a city is not measured on it, and the towns were
drawn after tuning had ended.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import click
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.progress import Progress, TaskID

from experiments.cities import HELD_BACK, MORE, SQUARES, TUNED, City, cities
from experiments.generated import write_page
from experiments.level_rivals import CENTRAL_RIVALS
from experiments.setup import COUNT, Selection, Study, begun_with
from experiments.sources import data_option
from experiments.tables import DOCS, markdown, replace_block
from experiments.towns import Town, towns
from ldpspatial.comparison.compare import compare_people
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.central import CentralLevels, CentralQuadtree, UniformGrid, Wavelets
from ldpspatial.release.distributed import (
    AdaptiveGrid,
    AdaptiveHierarchical,
    Cohort,
    DistributedLevels,
    Hierarchical,
    SparseEmdSums,
    SpatialDecomposition,
)
from ldpspatial.release.distributed.adaptive.rounds import Shown
from ldpspatial.release.level_sums import Aim
from ldpspatial.release.release import Release
from ldpspatial.validate import positive

Array = NDArray[np.float64]

METRICS = ("w2", "l1", "mse")
AIMS: Mapping[str, Aim] = {"w2": "distance", "l1": "cells", "mse": "cells"}
BLOCKS = 64  # W2 is measured between cells, or between so many blocks a side where cells are more
# Seeds, first looked at when a rule was settled: all but the last four with rules before that of
# today.
TOWNS = (2601, 2602, 2603, 2604, 2605, 2606, 2621, 2622, 2623, 2624, 2671, 2672, 2673, 2674)
NEW = 4  # of the towns, the last ones: looked at with the rule of today alone
NEAR = 1.1
FAR = 4 / 3
ASKED: tuple[Literal["once", "every round"], ...] = ("once", "every round")
SHOWN: Mapping[Shown, str] = {"positive": "", "threshold": ", from the threshold on"}
WIDTHS = (20, 80, 320)  # of sparse EMD: nodes kept on a level
COHORT = Cohort(drop_out=0.1, tolerated=0.2, colluding=0.1)
CENTRAL = "central-levels"
DISTRIBUTED = "distributed-levels"
FAMILIES: Mapping[str, Mapping[str, Mapping[str, Release]]] = {
    CENTRAL: {
        CENTRAL: {aim: CentralLevels(aim) for aim in get_args(Aim)},
        **CENTRAL_RIVALS,
    },
    DISTRIBUTED: {
        DISTRIBUTED: {aim: DistributedLevels(COHORT, aim) for aim in get_args(Aim)},
        "adaptive hierarchical": {
            f"c = {c:g}, {asked}{more}": AdaptiveHierarchical(
                COHORT, calibration=c, asked=asked, shown=shown
            )
            for shown, more in SHOWN.items()
            for asked in ASKED
            for c in (0.1, 0.3, 1.0, 3.0)
        },
        "sparse emd over sums": {f"w = {keep}": SparseEmdSums(COHORT, keep) for keep in WIDTHS},
        "adaptive grid": {f"c2 = {c:g}": AdaptiveGrid(COHORT, c2=c) for c in (5.0, 10.0, 20.0)},
        "hierarchical": {"": Hierarchical(COHORT)},
        "spatial decomposition": {"": SpatialDecomposition(COHORT)},
    },
}


class Part(NamedTuple):
    """What is run together: every map, side, number of users and epsilon with each other."""

    maps: tuple[str, ...]
    sides: tuple[int, ...]
    users: tuple[int, ...]
    epsilons: tuple[float, ...]


class Setting(NamedTuple):
    """Where errors are compared: a mean over repeats of each release."""

    map: str
    cells: int
    users: int
    epsilon: float


GENERATED = tuple(town.name for town in towns(TOWNS))
KINDS: Mapping[str, Sequence[str]] = {
    "cities held back": HELD_BACK,
    "cities never used before": tuple(MORE),
    "generated towns": GENERATED[:-NEW],
    "towns never used before": GENERATED[-NEW:],
    "cities tuned on": TUNED,
}
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
SOME = ("austin", "tokyo", "town 2603", "town 2604")
PARTS = (
    Part((*HELD_BACK, *MORE, *GENERATED), (64,), (1_000, 10_000, 100_000), EPSILONS),
    Part(SOME, (32, 256), (1_000, 10_000, 100_000), (0.5,)),
    Part(SOME, (64,), (1_000_000,), (0.1, 5.0)),
)
REPEATS = {1_000: 8, 10_000: 6, 100_000: 3, 1_000_000: 2}  # up to so many users: luck is less
DRAWN_FROM = 100_000  # people of a map at least, of whom each repeat draws its users
Errors = Mapping[str, Array]  # by label, one row a repeat, one column a metric


@click.command(cls=Study)
@data_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("experiments-output/levels"),
    show_default=True,
    help="Folder of finished runs; what is in it is not run again.",
)
@click.option("--repeats", type=COUNT, help="By default 8 with few users to 2 with many.")
@click.option("--side", "sides", cls=Selection, type=COUNT, multiple=True, help="Cells a side.")
@click.option("--epsilon", "epsilons", cls=Selection, type=float, multiple=True)
@click.option("--users", "numbers", cls=Selection, type=COUNT, multiple=True)
@click.option(
    "--map",
    "names",
    cls=Selection,
    type=click.Choice([*SQUARES, *MORE, *GENERATED]),
    multiple=True,
    help="Cities and generated towns.",
)
@click.option(
    "--model",
    "models",
    type=click.Choice(list(FAMILIES)),
    multiple=True,
    default=tuple(FAMILIES),
    show_default=True,
    help="This model alone; each has tables of its own.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="A folder with runs goes on with the seed that it began with.",
)
@click.option("--jobs", default=-1, show_default=True)
@click.option("--write", is_flag=True, help="Put the tables into docs.")
def levels(
    data: Path, out: Path, repeats: int | None, sides: tuple[int, ...],
    epsilons: tuple[float, ...], numbers: tuple[int, ...], names: tuple[str, ...],
    models: tuple[str, ...], seed: int, jobs: int, write: bool,
) -> None:  # fmt: skip
    """Recommended central and distributed releases against rivals tuned in hindsight.

    What is run is a large part, of cities held back and generated towns on 64 x 64 cells, and two
    smaller ones with other sides and with 1,000,000 users. Naming maps, sides, epsilons or numbers
    of users puts these in the place of each part's own. Finished runs stay in the folder.
    """
    for epsilon in epsilons:
        positive("--epsilon", epsilon)
    seed = begun_with(out, seed)
    parts = dict.fromkeys(
        Part(names or part.maps, sides or part.sides, (users,), epsilons or part.epsilons)
        for part in PARTS
        for users in numbers or part.users
    )
    found: dict[str, dict[Setting, Errors]] = {model: {} for model in models}
    with Progress() as bar:
        for part in parts:
            for name, side, people in _people(part, data, seed):
                for model in models:
                    task = bar.add_task(f"{name}, {side} x {side}, {model}")
                    called = (name, side, *part.users, *part.epsilons)
                    plays = repeats or repeats_of(*part.users)
                    folder = out / model / "-".join(map(str, called)).replace(" ", "-")
                    table = compare_people(
                        {side: people}, part.epsilons, releases_of(model, side), plays,
                        np.random.default_rng(seed), users=part.users, metrics=METRICS,
                        blocks=min(side, BLOCKS), jobs=jobs, data=name, folder=folder,
                        progress=_shown_by(bar, task),
                    )  # fmt: skip
                    found[model].update(errors_of(table))
    for model, settings in found.items():
        short = f"{played(settings)}\n\n{in_short(model, settings)}"
        click.echo(short)
        if write:
            replace_block(DOCS / "experiments" / "levels.md", model, short)
            write_page(DOCS, model, in_full(model, settings))


def repeats_of(users: int) -> int:
    """Return how often a setting is played by default: more often where luck says more."""
    return next((some for most, some in REPEATS.items() if users <= most), min(REPEATS.values()))


def _shown_by(bar: Progress, task: TaskID) -> Callable[[int, int], None]:
    return lambda done, of: bar.update(task, completed=done, total=of)


def _people(part: Part, data: Path, seed: int) -> Iterator[tuple[str, int, UserCells]]:
    """Yield for each map and side of a part the map's name, the side, and its people."""
    real = cities(data, tuple(name for name in part.maps if name not in GENERATED))
    invented = [town for town in towns(TOWNS) if town.name in part.maps]
    places: list[City | Town] = [*real, *invented]
    for place in places:
        points = place.people(max(DRAWN_FROM, *part.users), np.random.default_rng(seed))
        for side in part.sides:
            at = np.minimum((points * side).astype(np.int64), side - 1)
            cells = at[:, 0] * side + at[:, 1]
            yield place.name, side, cells_by_user(np.arange(len(cells)), cells, (side, side))


def played(found: Mapping[Setting, Errors]) -> str:
    """Return what was run, in words."""
    settings = sorted(found)
    repeats: dict[int, set[int]] = {}
    for at, errors in found.items():
        repeats.setdefault(at.users, set()).update(len(each) for each in errors.values())
    every = {
        "maps": len({at.map for at in settings}),
        "sides": ", ".join(map(str, sorted({at.cells for at in settings}))),
        "users": ", ".join(f"{n:,}" for n in sorted({at.users for at in settings})),
        "eps": ", ".join(f"{e:g}" for e in sorted({at.epsilon for at in settings})),
        "repeats": ", ".join(
            f"{' or '.join(map(str, sorted(some)))} of {users:,} users"
            for users, some in sorted(repeats.items())
        ),
    }
    return "Run: " + "; ".join(f"{name} {value}" for name, value in every.items()) + "."


def by_kind(found: Mapping[Setting, Errors]) -> Iterator[tuple[str, dict[Setting, Errors]]]:
    """Yield the settings of each kind of map that was played."""
    for kind, places in KINDS.items():
        if these := {at: errors for at, errors in found.items() if at.map in places}:
            yield kind, these


def in_short(model: str, found: Mapping[Setting, Errors]) -> str:
    """Return a table of ours, with the aim of each error, over the best of all rivals."""
    rows = []
    for kind, these in by_kind(found):
        rivals = [of_rivals(model, errors) for errors in these.values()]
        over = {
            choose: _over(model, these, np.array([choose(each) for each in rivals]))
            for choose in (best_of, best_of_others)
        }
        for k, metric in enumerate(METRICS):
            ratio, near, *rest = summary(over[best_of][AIMS[metric]][:, k])
            _, by_others, *_ = summary(over[best_of_others][AIMS[metric]][:, k])
            rows.append((kind, len(these), metric.upper(), ratio, near, by_others, *rest))
    ratio_, near_, *rest_ = SHARES
    header = ("maps", "settings", "error", ratio_, near_, "rival by other repeats", *rest_)
    return markdown(header, rows)


def in_full(model: str, found: Mapping[Setting, Errors]) -> str:
    """Return tables by kind of map over the best of all and over each rival, and all settings."""
    parts = [played(found)]
    for title, table in (("Over the best of all", over_all), ("Over each rival", over_rivals)):
        parts.append(f"## {title}")
        parts += [
            f"**{model}, {kind}: {len(these)} settings**\n\n{table(model, these)}"
            for kind, these in by_kind(found)
        ]
    return "\n\n".join([*parts, f"## By setting\n\n{by_setting(model, found)}"])


def releases_of(model: str, side: int = 256) -> dict[str, Release]:
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


SHARES = ("ratio", "within 10 %", "within a third", "worst")  # as `summary` has them
HEADER = ("aim", "rival at its best", "error", *SHARES)
CHOICES: Mapping[str, Callable[[Errors], Array]] = {
    "the best of all": best_of,
    "the best of all, by the other repeats": best_of_others,
    "the best of all, one for all errors": best_at_once,
}


def over_rivals(model: str, settings: Mapping[Setting, Errors]) -> str:
    """Return a table of ours over each rival at its best: of each error, ours with its aim."""
    rows = []
    for rival in FAMILIES[model]:
        if rival != model:
            best = np.array([best_of(of_family(rival, errors)) for errors in settings.values()])
            over = _over(model, settings, best)
            rows += [_row(rival, metric, AIMS[metric], over) for metric in METRICS]
    return markdown(HEADER, rows)


def over_all(model: str, settings: Mapping[Setting, Errors]) -> str:
    """Return a table of ours over the best of all rivals.

    Over what is best for each error both aims are shown, so that it is seen what the wrong one
    costs.
    """
    everyone = [of_rivals(model, errors) for errors in settings.values()]
    rows = []
    for name, choose in CHOICES.items():
        best = np.array([choose(each) for each in everyone])
        over = _over(model, settings, best)
        for aim in over:
            rows += [
                _row(name, metric, aim, over)
                for metric in METRICS
                if choose is best_of or AIMS[metric] == aim
            ]
    return markdown(HEADER, rows)


def _over(model: str, settings: Mapping[Setting, Errors], best: Array) -> dict[Aim, Array]:
    """Return logarithms of our mean errors over others, by aim: a row a setting, a column each."""
    return {
        aim: np.log(
            np.array([errors[f"{model}: {aim}"].mean(axis=0) for errors in settings.values()])
            / best
        )
        for aim in get_args(Aim)
    }


def _row(rival: str, metric: str, aim: Aim, over: Mapping[Aim, Array]) -> tuple[str, ...]:
    return (aim, rival, metric.upper(), *summary(over[aim][:, METRICS.index(metric)]))


def summary(over: Array) -> Iterable[str]:
    """Yield geometric mean, shares within a tenth and a third, and the largest of ratios."""
    yield f"{np.exp(over.mean()):.2f}"
    yield f"{np.mean(over <= np.log(NEAR)):.2f}"
    yield f"{np.mean(over <= np.log(FAR)):.2f}"
    yield f"{np.exp(over.max()):.2f}"


def by_setting(model: str, settings: Mapping[Setting, Errors]) -> str:
    """Return a table of all settings: errors of ours with the aim for each, and over the best."""
    rows = []
    for at, errors in settings.items():
        best = best_of(of_rivals(model, errors))
        each = []
        for k, metric in enumerate(METRICS):
            own = errors[f"{model}: {AIMS[metric]}"].mean(axis=0)[k]
            each.append(f"{own:.3g} ({own / best[k]:.2f})")
        rows.append((at.map, at.cells, f"{at.users:,}", f"{at.epsilon:g}", *each))
    header = (
        "map",
        "cells",
        "users",
        "eps",
        *(f"{metric.upper()} (over best)" for metric in METRICS),
    )
    return markdown(header, rows)
