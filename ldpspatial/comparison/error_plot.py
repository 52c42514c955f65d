"""The figure of error curves: one line a release, coloured by trust model."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from ldpspatial.comparison.curves import AXES, SHUFFLE_DELTA, Against, Curve, error_curve
from ldpspatial.comparison.scores import METRICS

MODELS = {"local": "Blues", "distributed": "Greens", "central": "Oranges", "none": "Greys"}
MARKERS = "osD^vP*X<>"
MOST_TICKS = 5


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
        As in :func:`ldpspatial.comparison.error_curve`.
    title : str, optional
    releases : labels, optional
        Which to draw; all by default.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with :func:`ldpspatial.plotting.heat_map.save_figure`.
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
    """Draw the curves, 95 % intervals as bars, into axes of a larger figure."""
    labels = list(releases or pc.unique(table["release"]).to_pylist())
    curves = [error_curve(table, label, metric, against, shuffle_delta) for label in labels]
    finite = [float(x) for curve in curves for x in curve.x if np.isfinite(x)] or [1.0]
    axes.set_xscale("log")
    positive = any((curve.mean > 0).any() for curve in curves)
    if positive and not METRICS[metric].grows:
        axes.set_yscale("log")
    for model, colours in MODELS.items():
        group = [curve for curve in curves if curve.model == model]
        shades = colormaps[colours](np.linspace(0.9, 0.45, max(len(group), 1)))
        for curve, colour, marker in zip(group, shades, MARKERS * len(group), strict=False):
            _draw(axes, curve, colour, marker, (min(finite), max(finite)))
    label = AXES[against]
    if against == "shuffled_epsilon":
        label += f" (delta {shuffle_delta:g})"
    axes.set(xlabel=label, ylabel=_measured(table, metric))
    ticks = sorted(set(finite))
    if len(ticks) <= MOST_TICKS:
        axes.set_xticks(ticks)
    _plain_ticks(axes.xaxis, located=len(ticks) > MOST_TICKS)
    if axes.get_yscale() == "log":
        _plain_ticks(axes.yaxis, located=True)
    axes.grid(alpha=0.3)


def legend_handles(axes: Axes) -> list[Artist]:
    """Return the curves in the order of trust models, for a legend outside the axes."""
    handles, labels = axes.get_legend_handles_labels()
    models = [list(MODELS).index(label.split(":")[0]) for label in labels]
    return [handles[k] for k in np.argsort(models, kind="stable")]


def _draw(axes: Axes, curve: Curve, colour: str, marker: str, span: tuple[float, float]) -> None:
    name = f"{curve.model}: {curve.release}"
    if axes.get_yscale() == "log" and not curve.mean.any():
        name += " (0, below the axis)"
    if not np.isfinite(curve.x).all():  # nothing is promised: a line at its height
        axes.plot(span, [curve.mean.mean()] * 2, color=colour, linestyle="--", label=name)
        return
    # Bars, not bands: where a bound is 0, a band on a logarithmic axis covers its neighbours too.
    bars = curve.mean - curve.lower, curve.upper - curve.mean
    axes.errorbar(
        curve.x, curve.mean, np.nan_to_num(np.array(bars)), color=colour, marker=marker,
        markersize=4, capsize=3, elinewidth=1, linestyle="--" if curve.model == "none" else "-",
        label=name,
    )  # fmt: skip


def _measured(table: pa.Table, metric: str) -> str:
    """Return what the axis shows, filter and blocks included."""
    label = METRICS[metric].label
    blocks, sigma = table["blocks"][0].as_py(), table["sigma"][0].as_py()
    if METRICS[metric].moves and blocks is not None:
        label += f",\nbetween {blocks} x {blocks} blocks"
    return label + (f",\nGaussian filter of {sigma:g} cells" if sigma else "")


def _plain_ticks(axis: Axis, located: bool) -> None:
    """Write ticks of a logarithmic axis as numbers, not as powers, and not too many of them."""
    if located:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axis.set_minor_locator(NullLocator())
