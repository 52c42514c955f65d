"""Errors as lines and maps as pictures, for the figures of this folder."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.ticker import FuncFormatter

from experiments.means import mean_and_half_width
from experiments.papers.distributed.runs import Runs, Setting
from experiments.sources import Array

MSE_UNIT = 1e13


def draw_curve(
    axes: Axes, runs: Runs, settings: Sequence[Setting], x: Sequence[float], label: str
) -> None:
    """Draw mean squared errors (1e-13) with intervals over x, a setting each."""
    errors = [MSE_UNIT * runs.of(setting).values("mse") for setting in settings]
    mean, half = np.transpose([mean_and_half_width(each) for each in errors])
    axes.errorbar(x, mean, np.nan_to_num(half), marker="o", markersize=4, capsize=2, label=label)
    axes.set_ylabel("MSE (1e-13)")
    axes.grid(alpha=0.3)


def log_errors(axes: Axes) -> None:
    """Make the axis of errors logarithmic, its ticks plain numbers."""
    axes.set_yscale("log")
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(plain)
    axes.yaxis.set_minor_formatter(plain)


def draw_map(axes: Axes, density: Array, title: str, top: float) -> None:
    """Draw a density with the square root of the mass as colour, south below."""
    axes.imshow(density, cmap="magma", norm=PowerNorm(0.5, 0, top, clip=True), origin="lower",
                interpolation="antialiased")  # fmt: skip
    axes.set_title(title, fontsize=9)
    axes.set_axis_off()
