"""The recommended local releases beside their rivals at their best, by map.

As in `levels`, ours has an aim, "distance" where it is W2 and "cells" where it is L1 or MSE, and a
rival's parameter is chosen in hindsight: for each setting and each error the one with the least
mean error over all repeats, which no user could know. Of many, the least mean of few repeats is
also the luckiest, so further rows choose by the other repeats. OLH, whose variance is that of OUE,
is not played, nor is EM for subset selection, which takes minutes. Releases under
geo-indistinguishability, per report and per trajectory promise something else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import get_args

import click
import numpy as np
from numpy.typing import NDArray

from experiments.cities import HELD_BACK, SQUARES, TUNED, City, cities
from experiments.generated import write_page
from experiments.progress import tracked
from experiments.setup import Setup, experiment
from experiments.studies.levels import (
    AIMS,
    METRICS,
    NEAR,
    SHARES,
    Errors,
    Setting,
    best_of,
    best_of_others,
    errors_of,
    of_family,
    of_rivals,
    summary,
)
from experiments.tables import DOCS, markdown, replace_block
from experiments.towns import Town, towns
from ldpspatial.comparison.compare import compare_people
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.level_sums import Aim
from ldpspatial.release.local import (
    Ahead,
    Dam,
    Disk,
    Hdg,
    Hio,
    Huem,
    KRr,
    Mdsw,
    MdswJoint,
    Oue,
    Recommended,
    Rhombus,
    SubsetSelection,
)
from ldpspatial.release.release import Release

Array = NDArray[np.float64]

OURS = "recommended"
TOWNS = (2621, 2622, 2623, 2624)  # the field's prior was chosen on others of their kind
GENERATED = tuple(town.name for town in towns(TOWNS))
MAPS = (*SQUARES, *GENERATED)
SIDES = (15, 32, 64)
USERS = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
KINDS: Mapping[str, Sequence[str]] = {
    "cities that nothing was chosen on": HELD_BACK,
    "cities that the field was chosen on": TUNED,
    "generated towns": GENERATED,
}
FAMILIES: Mapping[str, Mapping[str, Release]] = {
    OURS: {aim: Recommended(aim=aim) for aim in get_args(Aim)},
    "disk, em": {"": Disk("scaled")},
    "dam": {
        "published stop": Dam("published"),
        **{f"b = {b or 'best'}": Dam("scaled", b) for b in (None, 1, 2, 4, 8)},
    },
    "huem": {rule: Huem(rule) for rule in ("scaled", "published")},
    "rhombus": {"": Rhombus()},
    "k-rr": {"em": KRr(), "projection": KRr(estimator="projection")},
    "oue": {"": Oue()},
    "subset selection": {"": SubsetSelection("projection")},
    "mdsw": {"smoothed": Mdsw(), "em": Mdsw(smoothing=False)},
    "mdsw, both coordinates": {"smoothed": MdswJoint(True), "em": MdswJoint()},
    "hio": {"": Hio()},
    "hdg": {"": Hdg()},
    "ahead": {"": Ahead()},
}
# Of each aim first the errors that it is for; the others show what the wrong one costs.
BY_AIM: Mapping[Aim, Sequence[str]] = {"distance": METRICS, "cells": ("l1", "mse", "w2")}
HINDSIGHT = "hindsight"
CHOSEN_BY: Mapping[str, Callable[[Errors], Array]] = {
    HINDSIGHT: best_of,
    "the other repeats": best_of_others,
}
MOST_LOSSES = 12  # that are shown


@experiment("local-rivals", repeats=1)
@click.option("--every", default=1, show_default=True, type=click.IntRange(1),
              help="Play one setting in so many.")  # fmt: skip
def local_rivals(setup: Setup, every: int) -> None:
    """Compare the recommended local releases with rivals whose parameters are chosen in hindsight.

    Eleven squares of cities and four generated towns; 15, 32 and 64 cells a side, 10^3 to 10^6
    users in factors of ten, epsilon .1 to 5; W2, L1 and MSE. Settings that were played are kept in
    --out and not played again.
    """
    chosen = [Setting(*each) for each in product(MAPS, SIDES, USERS, EPSILONS)][::every]
    found: dict[Setting, Errors] = {}
    for at in tracked(chosen, setup.name):
        found |= played(setup, at)
    text = shown(found)
    click.echo(text)
    if setup.write:
        write_page(DOCS, setup.name, text)
        replace_block(DOCS / "recommended.md", setup.name, by_kind(found))


def played(setup: Setup, at: Setting) -> dict[Setting, Errors]:
    """Play all releases in one setting, on the same people."""
    rng = np.random.default_rng([setup.seed, *map(ord, at.map), at.cells, at.users])
    points = _place(setup, at.map).people(at.users, rng)
    row, column = np.minimum((points * at.cells).astype(np.int64), at.cells - 1).T
    people = cells_by_user(np.arange(at.users), row * at.cells + column, (at.cells, at.cells))
    name = "-".join(map(str, (at.map.replace(" ", "-"), at.cells, at.users)))
    return errors_of(
        compare_people(
            {at.cells: people}, [at.epsilon], releases_of(at.cells), setup.repeats, rng,
            users=[at.users], metrics=METRICS, jobs=setup.jobs, data=at.map,
            folder=setup.out / f"{name}-{at.epsilon:g}",
        )
    )  # fmt: skip


@lru_cache
def _place(setup: Setup, name: str) -> City | Town:
    if name in SQUARES:
        (city,) = cities(setup.data, (name,))
        return city
    return next(town for town in towns(TOWNS) if town.name == name)


def releases_of(cells: int) -> dict[str, Release]:
    """Return what is played, by labels of family and parameter; no disk is wider than the map."""
    return {
        f"{family}: {parameter}": release
        for family, some in FAMILIES.items()
        for parameter, release in some.items()
        if (getattr(release, "radius", None) or 0) < cells
    }


def shown(found: Mapping[Setting, Errors]) -> str:
    """Return tables: ours over the best of all, over each rival, and where the best was nearer."""
    return "\n\n".join((over_best(found), over_each(found), losses(found)))


def by_kind(found: Mapping[Setting, Errors]) -> str:
    """Return a table of ours, with the aim of each error, over the best rival in hindsight."""
    rows = []
    for kind, these in _by_kind(found):
        over = np.array([np.log(ratios(errors)) for errors in these])
        rows += [
            (kind, len(these), metric.upper(), *summary(over[:, k]))
            for k, metric in enumerate(METRICS)
        ]
    return markdown(("maps", "settings", "error", *SHARES), rows)


def _by_kind(found: Mapping[Setting, Errors]) -> Iterator[tuple[str, list[Errors]]]:
    for kind, places in {"all": MAPS, **KINDS}.items():
        these = [errors for at, errors in found.items() if at.map in places]
        if these:
            yield kind, these


def over_best(found: Mapping[Setting, Errors]) -> str:
    """Return a table of ours over the best of all rivals, by kind of map, with either aim."""
    rows: list[tuple[object, ...]] = []
    for kind, these in _by_kind(found):
        for (aim, metrics), (by, best) in product(BY_AIM.items(), CHOSEN_BY.items()):
            over = np.array([np.log(ratios(errors, aim=aim, best=best)) for errors in these])
            rows += [
                (kind, len(these), aim, by, m.upper(), *summary(over[:, METRICS.index(m)]))
                for m in metrics
                if by == HINDSIGHT or AIMS[m] == aim
            ]
    header = ("maps", "settings", "aim", "rival chosen by", "error", *SHARES)
    return markdown(header, rows)


def over_each(found: Mapping[Setting, Errors]) -> str:
    """Return a table of ours over each rival at its best: geometric mean, and the worst.

    Ours is of each error that with its aim.
    """
    rows = []
    for rival in FAMILIES:
        if rival != OURS:
            over = np.array([ratios(errors, rival) for errors in found.values()])
            means, worst = np.exp(np.log(over).mean(axis=0)), over.max(axis=0)
            cells = (f"{mean:.2f} ({most:.2f})" for mean, most in zip(means, worst, strict=True))
            rows.append((rival, *cells))
    return markdown(("over", *(f"{metric.upper()} (worst)" for metric in METRICS)), rows)


def losses(found: Mapping[Setting, Errors]) -> str:
    """Return a table of the settings in which the best rival was nearer by more than a tenth."""
    lost = []
    for at, errors in found.items():
        for metric, ratio, label in zip(METRICS, ratios(errors), nearest(errors), strict=True):
            if ratio > NEAR:
                lost.append((ratio, at, metric, label.removesuffix(": ")))
    lost.sort(key=lambda each: -each[0])
    rows = [
        (
            at.map,
            at.cells,
            f"{at.users:,}",
            f"{at.epsilon:g}",
            metric.upper(),
            f"{ratio:.2f}",
            label,
        )
        for ratio, at, metric, label in lost[:MOST_LOSSES]
    ]
    head = (
        f"In {len({at for _, at, _, _ in lost})} of {len(found)} settings some rival was nearer by "
        "more than a tenth in some error"
    )
    header = ("map", "cells", "users", "eps", "error", "ratio", "nearest")
    return f"{head}; the largest losses:\n\n{markdown(header, rows)}" if lost else f"{head}."


def ratios(
    errors: Errors,
    rival: str | None = None,
    aim: Aim | None = None,
    best: Callable[[Errors], Array] = best_of,
) -> Array:
    """Return our errors over those of a rival at its best, by default of the best of all.

    Ours is the release of one aim, or for each error of the aim that is for it.
    """
    others = of_rivals(OURS, errors) if rival is None else of_family(rival, errors)
    ours = [
        errors[f"{OURS}: {aim or AIMS[metric]}"].mean(axis=0)[k] for k, metric in enumerate(METRICS)
    ]
    return np.array(ours) / best(others)


def nearest(errors: Errors) -> list[str]:
    """Return for each error the label of the rival with the least."""
    others = of_rivals(OURS, errors)
    means = np.array([each.mean(axis=0) for each in others.values()])
    labels = list(others)
    return [labels[at] for at in means.argmin(axis=0)]
