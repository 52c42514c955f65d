"""Tables of means and figures of curves, exact W2 or the published distance, in cells."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from experiments.means import mean_and_half_width, shown
from experiments.papers.dam.mechanisms import GEO, titled
from experiments.papers.dam.plays import Errors
from experiments.papers.dam.settings import Row, Setting
from experiments.tables import markdown

MARKERS = "osD^vP*X<>"
ABSENT = "–"
AXES = {"cells": "cells along a side, d", "epsilon": "epsilon of DAM"}
PANEL_WIDTH, PANEL_HEIGHT = 3.6, 2.9


def named(setting: Setting, against: str) -> str:
    """Return what a column is called: the value of what varies."""
    return f"d = {setting.cells}" if against == "cells" else f"eps {setting.epsilon:g}"


def means_table(errors: Errors, row: Row, metric: str = "w2") -> str:
    """Return means with 95 % intervals: a line for each data set and release."""
    lines = [
        [
            name,
            titled(label),
            *(
                shown(errors.of(name, label, at, metric), 3)
                if errors.has(name, label, at)
                else ABSENT
                for at in row.settings
            ),
        ]
        for name in errors.names
        for label in errors.labels(row.settings)
    ]
    return markdown(
        ["data", "release", *(named(setting, row.against) for setting in row.settings)], lines
    )


def matches_table(errors: Errors, settings: Sequence[Setting], label: str) -> str:
    """Return what SEM-Geo-I runs at in each setting: one line each, the same on all data."""
    lines = []
    for setting in sorted(set(settings)):
        first = errors.rows[errors.names[0], label, setting][0]["facts"]
        lines.append(
            [
                setting.cells,
                f"{setting.epsilon:g}",
                f"{first['matched_epsilon']:.4f}",
                first["subset_size"],
                f"{first['local_privacy']:.4f}",
                "held: the formula's k jumps" if first["jumped"] else "",
            ]
        )
    header = ["d", "DAM's eps", "eps' per cell", "k", "local privacy of both, cells", "k is"]
    return markdown(header, lines)


def draw_rows(errors: Errors, panels: Sequence[tuple[str, Row]], columns: int) -> Figure:
    """Draw exact W2 in a panel for each pair of a data set and a row of settings.

    Hollow and dashed is another notion than eps-LDP.
    """
    lines = ceil(len(panels) / columns)
    size = columns * PANEL_WIDTH, lines * PANEL_HEIGHT + 0.7
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    labels = list(dict.fromkeys(at for _, row in panels for at in errors.labels(row.settings)))
    for each, (name, row) in zip(axes, panels, strict=False):
        _draw(each, errors, name, row, labels)
    for each in axes[len(panels) :]:
        each.set_axis_off()
    handles = {
        text: handle
        for each in axes
        for handle, text in zip(*each.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return figure


def _draw(axes: Axes, errors: Errors, name: str, row: Row, labels: Sequence[str]) -> None:
    colours = colormaps["tab10"](np.arange(len(labels)) % 10)
    for label, colour, marker in zip(labels, colours, MARKERS, strict=False):
        at = [setting for setting in row.settings if errors.has(name, label, setting)]
        if not at:
            continue
        found = [mean_and_half_width(errors.of(name, label, each)) for each in at]
        mean, half = np.transpose(found)
        axes.errorbar([getattr(each, row.against) for each in at], mean, np.nan_to_num(half),
                      color=colour, marker=marker, markersize=3.5, capsize=2, linewidth=1.1,
                      label=titled(label), linestyle="--" if label in GEO else "-",
                      markerfacecolor="white" if label in GEO else colour)  # fmt: skip
    fixed = "eps {0.epsilon:g}" if row.against == "cells" else "d = {0.cells}"
    axes.set_title(f"{name}, {fixed.format(row.settings[0])}", fontsize=9)
    axes.set_xticks([getattr(setting, row.against) for setting in row.settings])
    axes.set(xlabel=AXES[row.against], ylabel="exact W2, cells")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.3)
