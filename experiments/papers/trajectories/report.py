"""Tables of errors, orderings, trends and numbers of reports; and the figure."""

import json
from collections.abc import Sequence
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.means import mean_and_half_width, shown, span
from experiments.pairs import Array, errors_of, verdict
from experiments.papers.trajectories.places import Place
from experiments.papers.trajectories.runs import (
    EPSILON,
    EPSILONS,
    OURS,
    PUBLISHED,
    RIVALS,
    SETTINGS,
    SIDE,
    SIDES,
    TRUTHS,
    releases,
)
from experiments.tables import markdown
from ldpspatial.release.local import LdpTrace
from ldpspatial.release.local.trajectories.trajectory_release import (
    adjacent_moves,
    trails_of,
    without_stays,
)

LABELS = tuple(releases("user"))
COLOURS = dict(zip(LABELS, ("C3", "C1", "C2", "C0", "C9", "C0", "0.5"), strict=True))
ENDS = SIDES[1], SIDES[-1]  # on one cell all errors are 0
BESIDE = (*RIVALS, "uniform")
WEIGHS = {"users": "trajectories", "visits": "points"}


def errors_table(table: pa.Table, truth: str) -> str:
    """Return W2 in cells by place, release and setting, against one of the truths."""
    held = table.filter(pc.equal(table["truth"], truth))
    header = ["trajectories", "mechanism, estimator", "claim"]
    header += [f"d {side}, eps {epsilon:g}" for side, epsilon in SETTINGS]
    rows = []
    for place in pc.unique(held["data"]).to_pylist():
        own = held.filter(pc.equal(held["data"], place))
        for label in LABELS:
            first = own.filter(pc.equal(own["release"], label)).slice(0, 1).to_pylist()[0]
            estimator = json.loads(first["facts"])["estimator"]
            errors = [shown(errors_of(own, label, "w2", cells=d, epsilon=e)) for d, e in SETTINGS]
            rows.append([place, f"{label}: {estimator}", _claim(first), *errors])
    return markdown(header, rows)


def reports_table(table: pa.Table, places: Sequence[Place]) -> str:
    """Return how many reports a user sends, here and as published, at the usual setting."""
    header = ["trajectories", "points each", "as published: a report a move"]
    header += [*RIVALS, OURS, "DAM, 4 reports", PUBLISHED]
    rows = []
    for place in places:
        trails = trails_of("the table", place.on(SIDE))
        moves = adjacent_moves(without_stays(trails), SIDE, LdpTrace().longest(SIDE)).lengths - 1
        points = _spread(trails.lengths)
        constant = [_reports(table, place.name, label) for label in header[3:-1]]
        rows.append([f"{place.name} ({len(trails):,})", points, _spread(moves), *constant, points])
    return markdown(header, rows)


def orderings_table(table: pa.Table) -> str:
    """Return in how many settings from d = 5 on DAM's error is lower than, level with, higher."""
    header = ["trajectories", "the same weight", "release", *(f"beside {name}" for name in BESIDE)]
    rows = []
    for place, truth in product(pc.unique(table["data"]).to_pylist(), TRUTHS):
        own = table.filter((pc.field("data") == place) & (pc.field("truth") == truth))
        for ours in (OURS, PUBLISHED):
            tallies = [_tally(own, ours, other) for other in BESIDE]
            rows.append([place, WEIGHS[truth], ours, *tallies])
    return markdown(header, rows)


def trends_table(table: pa.Table) -> str:
    """Return mean errors at the ends of both sweeps, every trajectory of the same weight."""
    sides = f"d {ENDS[0]} to {ENDS[1]}, in cells", "the same in sides of the square"
    header = [
        "trajectories",
        "mechanism",
        *sides,
        f"eps {EPSILONS[0]:g} to {EPSILONS[-1]:g}, in cells",
    ]
    users = table.filter(pc.equal(table["truth"], "users"))
    rows = []
    for place, label in product(pc.unique(users["data"]).to_pylist(), (*RIVALS, OURS)):
        own = users.filter(pc.equal(users["data"], place))
        few, many = (errors_of(own, label, "w2", cells=d, epsilon=EPSILON) for d in ENDS)
        low, high = (
            errors_of(own, label, "w2", cells=SIDE, epsilon=e) for e in (EPSILONS[0], EPSILONS[-1])
        )
        trends = (few, many, 2), (few / ENDS[0], many / ENDS[1], 3), (low, high, 2)
        rows.append([place, label, *(_trend(*ends) for ends in trends)])
    return markdown(header, rows)


def draw(table: pa.Table) -> Figure:
    """Draw W2 over d at the left and over epsilon at the right, a row for each place.

    The truth weighs trajectories the same, but for DAM on every point, which estimates the map of
    points: dashed, as its epsilon is per point.
    """
    names = pc.unique(table["data"]).to_pylist()
    figure = Figure(figsize=(9.5, 3.1 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), 2, squeeze=False)
    for (left, right), name in zip(panels, names, strict=True):
        own = table.filter(pc.equal(table["data"], name))
        for label in LABELS:
            _draw_line(left, own, label, SIDES, [(side, EPSILON) for side in SIDES])
            _draw_line(right, own, label, EPSILONS, [(SIDE, epsilon) for epsilon in EPSILONS])
        left.set(title=f"{name}, epsilon {EPSILON:g}", xticks=SIDES, ylabel="exact W2 (cells)")
        right.set(title=f"{name}, d = {SIDE}", xticks=EPSILONS)
    panels[-1][0].set_xlabel("cells along a side, d")
    panels[-1][1].set_xlabel("epsilon per trajectory; per point where dashed")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _draw_line(
    axes: Axes,
    table: pa.Table,
    label: str,
    x: Sequence[float],
    settings: Sequence[tuple[int, float]],
) -> None:
    truth = "visits" if label == PUBLISHED else "users"
    held = table.filter(pc.equal(table["truth"], truth))
    errors = [errors_of(held, label, "w2", cells=side, epsilon=eps) for side, eps in settings]
    mean, half = np.transpose([mean_and_half_width(each) for each in errors])
    style = {PUBLISHED: "--", "uniform": ":"}.get(label, "-")
    text = f"{label}, epsilon per {'point' if label == PUBLISHED else 'trajectory'}"
    axes.errorbar(x, mean, np.nan_to_num(half), color=COLOURS[label], linestyle=style, capsize=2,
                  marker="" if label == "uniform" else "o", markersize=4,
                  label="uniform map, nobody asked" if label == "uniform" else text)  # fmt: skip
    axes.grid(alpha=0.3)


def _claim(row: dict[str, object]) -> str:
    if row["claim_epsilon"] == 0:
        return "nobody sends"
    return f"local, eps-LDP per {row['claim_unit']}"


def _spread(values: np.ndarray) -> str:
    return f"{values.min():,}, {np.median(values):,.0f}, {values.max():,}"


def _reports(table: pa.Table, place: str, label: str) -> str:
    usual = {"data": place, "release": label, "cells": SIDE, "epsilon": EPSILON}
    rows = table
    for column, value in usual.items():
        rows = rows.filter(pc.equal(rows[column], value))
    return span([json.loads(facts)["reports_per_user"] for facts in rows["facts"].to_pylist()])


def _tally(table: pa.Table, ours: str, other: str) -> str:
    found = [
        verdict(*(errors_of(table, label, "w2", cells=d, epsilon=e) for label in (ours, other)))
        for d, e in SETTINGS
        if d >= ENDS[0]
    ]
    return " / ".join(str(found.count(kind)) for kind in ("lower", "level", "higher"))


def _trend(first: Array, last: Array, digits: int) -> str:
    word = {"lower": "falls", "level": "level", "higher": "grows"}[verdict(last, first)]
    return f"{first.mean():.{digits}f} to {last.mean():.{digits}f}, {word}"
