"""Error curves: means with intervals from the table of runs, and the figure.

Releases of different trust models promise different things at the same epsilon. So a curve says
which epsilon it is drawn over: that of each claim under its own neighbouring relation, or that
which every claim implies under one relation, replacement of one user's data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray
from scipy import stats

from ldpspatial.comparison.scores import METRICS, check_metrics
from ldpspatial.errors import InputError
from ldpspatial.shuffling import amplified_epsilon

Array = NDArray[np.float64]
Against = Literal["epsilon", "replacement_epsilon", "shuffled_epsilon", "users", "cells"]

AXES: dict[str, str] = {
    "epsilon": "epsilon, each claim under its own relation",
    "replacement_epsilon": "epsilon, every claim under replacement of one user",
    "shuffled_epsilon": "epsilon as before, local reports shuffled",
    "users": "users",
    "cells": "cells along a side",
}
MODELS = {"local": "Blues", "distributed": "Greens", "central": "Oranges", "none": "Greys"}
MARKERS = "osD^vP*X<>"
LEVEL = 0.95
MOST_TICKS = 5
SHUFFLE_DELTA = 1e-6


@dataclass(frozen=True)
class Curve:
    """Mean error of one release with 95 % intervals.

    Attributes
    ----------
    release, model : str
    x : (k,) array, rising
    mean, lower, upper : (k,) arrays
        Bounds of a t interval over the runs at each x; NaN where there is one run only.
    runs : (k,) array of int
    """

    release: str
    model: str
    x: Array
    mean: Array
    lower: Array
    upper: Array
    runs: NDArray[np.int64]


def error_curve(
    table: pa.Table,
    release: str,
    metric: str,
    against: Against = "epsilon",
    shuffle_delta: float = SHUFFLE_DELTA,
) -> Curve:
    """Return the error curve of a release.

    Parameters
    ----------
    table : pyarrow.Table
        As :func:`ldpspatial.compare` returns it.
    release : str
        Label in the column ``release``.
    metric : name in METRICS
    against : {"epsilon", "replacement_epsilon", "shuffled_epsilon", "users", "cells"}
        All other settings must be one: an average over different epsilons means nothing.
        "shuffled_epsilon" takes local reports as if a shuffler that all trust had mixed them
        (:mod:`ldpspatial.shuffling`), and other claims under replacement.
    shuffle_delta : float in (0, 1)
        Delta of the shuffled claim.

    Raises
    ------
    InputError
        No such runs, an unknown name, or runs that differ in more than ``against``.
    """
    check_metrics([metric])
    if against not in AXES:
        raise InputError(f"against must be one of {', '.join(AXES)}, got {against!r}")
    rows = table.filter(pc.equal(table["release"], release))
    if rows.num_rows == 0:
        raise InputError(f"release must be in the table, got {release!r}")
    setting = against.split("_")[-1]
    for column in ("data", "sigma", "truth", "blocks", "epsilon", "users", "cells"):
        values = pc.unique(rows[column]).to_pylist()
        if column != setting and len(values) > 1:
            raise InputError(f"{column} must be one along a curve over {against}, got {values}")
    at = rows[setting].to_numpy()
    errors = rows[metric].to_numpy()
    if np.isnan(errors).all():
        raise InputError(f"metric {metric} was not measured for {release!r}")
    places = np.unique(at)
    groups = [errors[at == place] for place in places]
    model = rows["model"][0].as_py()
    column = "replacement_epsilon" if against == "shuffled_epsilon" else against
    shown = [rows[column].to_numpy()[at == place].mean() for place in places]
    if against == "shuffled_epsilon" and model == "local":
        users = rows["users"][0].as_py()
        shown = [amplified_epsilon(epsilon, users, shuffle_delta) for epsilon in shown]
    centre, half = np.transpose([_mean_and_half_width(group) for group in groups])
    return Curve(
        release,
        model,
        np.asarray(shown, dtype=np.float64),
        centre,
        centre - half,
        centre + half,
        np.array([len(group) for group in groups]),
    )


def plot_error_curves(
    table: pa.Table,
    metric: str = "w2",
    against: Against = "epsilon",
    title: str | None = None,
    releases: Sequence[str] | None = None,
    shuffle_delta: float = SHUFFLE_DELTA,
) -> Figure:
    """Draw the error of every release, one line each, coloured by trust model.

    Parameters
    ----------
    table, metric, against, shuffle_delta
        As in :func:`error_curve`.
    title : str, optional
    releases : labels, optional
        Which to draw; all by default.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with :func:`ldpspatial.plotting.save_figure`.
    """
    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    axes = figure.add_subplot()
    draw_error_curves(axes, table, metric, against, releases, shuffle_delta)
    axes.legend(handles=legend_handles(axes), loc="center left", bbox_to_anchor=(1.01, 0.5))
    if title:
        axes.set_title(title)
    return figure


def draw_error_curves(
    axes: Axes,
    table: pa.Table,
    metric: str,
    against: Against,
    releases: Sequence[str] | None = None,
    shuffle_delta: float = SHUFFLE_DELTA,
) -> None:
    """Draw the curves into axes of a larger figure."""
    labels = list(releases or pc.unique(table["release"]).to_pylist())
    curves = [error_curve(table, label, metric, against, shuffle_delta) for label in labels]
    finite = [x for curve in curves for x in curve.x if np.isfinite(x)] or [1.0]
    span = min(finite), max(finite)
    for model, colours in MODELS.items():
        group = [curve for curve in curves if curve.model == model]
        shades = colormaps[colours](np.linspace(0.9, 0.45, max(len(group), 1)))
        for curve, colour, marker in zip(group, shades, MARKERS * len(group), strict=False):
            if not np.isfinite(curve.x).all():  # nothing is promised: a line at its height
                axes.plot(span, [curve.mean.mean()] * 2, color=colour, linestyle="--",
                          label=f"{model}: {curve.release}")  # fmt: skip
                continue
            drawn = curve.lower, curve.upper
            axes.plot(curve.x, curve.mean, color=colour, marker=marker, markersize=4,
                      linestyle="--" if model == "none" else "-",
                      label=f"{model}: {curve.release}")  # fmt: skip
            axes.fill_between(curve.x, *drawn, color=colour, alpha=0.2, linewidth=0)
    label = AXES[against]
    if against == "shuffled_epsilon":
        label += f" (delta {shuffle_delta:g})"
    axes.set(xlabel=label, ylabel=METRICS[metric].label)
    axes.set_xscale("log")
    ticks = sorted(set(finite))
    if len(ticks) <= MOST_TICKS:
        axes.set_xticks(ticks)
    _plain_ticks(axes.xaxis, located=len(ticks) > MOST_TICKS)
    if not METRICS[metric].grows:
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis, located=True)
    axes.grid(alpha=0.3)


def _plain_ticks(axis: Axis, located: bool) -> None:
    """Write ticks of a logarithmic axis as numbers, not as powers, and not too many of them."""
    if located:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axis.set_minor_locator(NullLocator())


def legend_handles(axes: Axes) -> list[Line2D]:
    """Return the lines in the order of trust models, for a legend outside the axes."""
    return [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]


def _mean_and_half_width(values: Array) -> tuple[float, float]:
    if len(values) < 2:
        return float(values.mean()), np.nan
    error = values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(error * stats.t.ppf((1 + LEVEL) / 2, len(values) - 1))
