"""Figures: four metrics over what was varied, and heat maps side by side."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from matplotlib import colormaps
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.papers.heatmaps.clusters import cluster_means
from experiments.papers.heatmaps.plays import METRICS, OURS
from experiments.papers.heatmaps.summary import labels
from ldpspatial.comparison.scores import METRICS as SCORES

Array = NDArray[np.float64]

MARKERS = "osD^vP*X"
AXES = {"epsilon": "epsilon", "users": "users", "cells": "cells along a side"}


def metric_panels(table: pa.Table, against: str, cluster: str, title: str) -> Figure:
    """Draw each metric in a panel, a line a release, 95 % intervals over clusters shaded."""
    figure = Figure(figsize=(8.2, 5.8), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True)
    names = labels(table)
    others = [name for name in names if name != OURS]
    shades = dict(zip(others, colormaps["viridis"](np.linspace(0, 0.85, len(others))), strict=True))
    for axes, metric in zip(panels.flat, METRICS, strict=True):
        for marker, name in zip(MARKERS, names, strict=False):
            found = cluster_means(table, name, metric, against, cluster)
            colour = "crimson" if name == OURS else shades[name]
            axes.plot(found.x, found.mean, color=colour, marker=marker, markersize=4, label=name,
                      linewidth=2.2 if name == OURS else 1.2)  # fmt: skip
            low = found.mean - found.half_width
            high = found.mean + found.half_width
            axes.fill_between(found.x, low, high, color=colour, alpha=0.2, linewidth=0)
        better = "more" if SCORES[metric].grows else "less"
        axes.set_title(f"{SCORES[metric].label}: {better} is better", fontsize=9.5)
        axes.set_xscale("log")
        axes.set_xticks(found.x, [f"{x:g}" for x in found.x])
        axes.xaxis.minorticks_off()
        axes.grid(alpha=0.3)
    for axes in panels[-1]:
        axes.set_xlabel(AXES[against])
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    figure.suptitle(title, fontsize=11)
    return figure


def map_panels(rows: Mapping[str, Sequence[Array]], columns: Sequence[str], size: float) -> Figure:
    """Draw maps side by side, the original first.

    Colours of a row go with the square root of the share, from 0 to the largest of the original.

    Parameters
    ----------
    rows : mapping of labels to maps, each (height, width), row 0 the south
    columns : titles of the maps of a row
    size : float
        Height of a map in inches.
    """
    first = next(iter(rows.values()))[0]
    wide = size * first.shape[1] / first.shape[0]
    shape = len(columns) * (wide + 0.08) + 0.3, len(rows) * (size + 0.08) + 0.3
    figure = Figure(figsize=shape, layout="constrained")
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    for axes, title in zip(panels[0], columns, strict=True):
        axes.set_title(title, fontsize=9)
    for line, (label, maps) in zip(panels, rows.items(), strict=True):
        scale = PowerNorm(0.5, 0, float(maps[0].max()), clip=True)
        for axes, density in zip(line, maps, strict=True):
            axes.imshow(density, cmap="magma", norm=scale, origin="lower")
            axes.set(xticks=[], yticks=[])
        line[0].set_ylabel(label, fontsize=9)
    return figure
