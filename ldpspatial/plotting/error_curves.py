"""The figure of error curves: one line a release, coloured by trust model."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

Array = NDArray[np.float64]

MODELS = {"local": "Blues", "distributed": "Greens", "central": "Oranges", "none": "Greys"}
MARKERS = "osD^vP*X<>"
MOST_TICKS = 5
ALIKE = 1e-9  # errors that differ by no more of their size
USUAL_LETTERS = 26  # of a name in the legend
WIDTH_OF_LETTER = 0.085  # inches


class Curve(Protocol):
    """What is drawn of one release: means over x, and the ends of their intervals."""

    @property
    def release(self) -> str:
        """Name of the release."""

    @property
    def model(self) -> str:
        """Trust model, a key of ``MODELS``."""

    @property
    def x(self) -> Array:
        """(k,) places, rising; infinite where nothing is promised."""

    @property
    def mean(self) -> Array:
        """(k,) means."""

    @property
    def lower(self) -> Array:
        """(k,) lower ends of the intervals; NaN where there is none."""

    @property
    def upper(self) -> Array:
        """(k,) upper ends."""


def curves_figure(
    curves: Sequence[Curve], labels: tuple[str, str], logarithmic: bool, title: str | None = None
) -> Figure:
    """Return a figure of its own with curves and their legend; see :func:`draw_curves`."""
    # As wide as the names ask for, so that the axes keep their room beside a long legend.
    lines = [line for curve in curves for line in f"{curve.model}: {curve.release}".splitlines()]
    width = 7.6 + WIDTH_OF_LETTER * max(0, max(map(len, lines), default=0) - USUAL_LETTERS)
    figure = Figure(figsize=(width, 4.4), layout="constrained")
    axes = figure.add_subplot()
    draw_curves(axes, curves, labels, logarithmic)
    legend = axes.legend(
        handles=legend_handles(axes), loc="center left", bbox_to_anchor=(1.01, 0.5)
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a label may hold dollar signs, which would begin a formula
    if title:
        axes.set_title(title, parse_math=False)
    return figure


def draw_curves(
    axes: Axes, curves: Sequence[Curve], labels: tuple[str, str], logarithmic: bool
) -> None:
    """Draw curves, with their intervals as bars, into axes of a larger figure.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    curves : sequence of Curve
    labels : (str, str)
        Of the two axes.
    logarithmic : bool
        Whether the errors lie on a logarithmic axis, where some is above 0. The other axis
        always is one.
    """
    finite = [float(x) for curve in curves for x in curve.x if np.isfinite(x)] or [1.0]
    axes.set_xscale("log")
    if logarithmic and any((curve.mean > 0).any() for curve in curves):
        axes.set_yscale("log")

    for model, colours in MODELS.items():
        group = [curve for curve in curves if curve.model == model]
        shades = colormaps[colours](np.linspace(0.9, 0.45, max(len(group), 1)))
        for curve, colour, marker in zip(group, shades, MARKERS * len(group), strict=False):
            _draw(axes, curve, colour, marker, (min(finite), max(finite)))

    _widen(axes)
    axes.set(xlabel=labels[0], ylabel=labels[1])
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


def _widen(axes: Axes) -> None:
    """Give room to errors that are the same but for rounding, which would fill the whole axis."""
    low, high = axes.get_ylim()
    if high - low < ALIKE * abs(high):
        is_log = axes.get_yscale() == "log"
        room = (low / 2, high * 2) if is_log else (low - abs(low) / 2, high + abs(high) / 2)
        axes.set_ylim(*room)


def _plain_ticks(axis: Axis, located: bool) -> None:
    """Write ticks of a logarithmic axis as numbers, not as powers, and not too many of them."""
    if located:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axis.set_minor_locator(NullLocator())
