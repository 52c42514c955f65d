"""Means with their intervals, as text and as lines."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike
from scipy import stats

from experiments.papers.distributed.runs import Runs, Setting
from experiments.sources import Array

LEVEL = 0.95
MSE_UNIT = 1e13


def mean_and_half_width(values: ArrayLike) -> tuple[float, float]:
    """Return a mean and half of its 95 % interval by Student's t; NaN of a single value."""
    given = np.asarray(values, dtype=np.float64)
    if given.size < 2:
        return float(given.mean()), float("nan")
    error = given.std(ddof=1) / np.sqrt(given.size)
    return float(given.mean()), float(error * stats.t.ppf((1 + LEVEL) / 2, given.size - 1))


def shown(values: ArrayLike, digits: int = 2) -> str:
    """Return "mean ± half width", without the latter where there is one value only.

    Examples
    --------
    >>> shown([1.0, 1.2, 1.4]), shown([3.0])
    ('1.20 ± 0.50', '3.00')
    """
    mean, half = mean_and_half_width(values)
    text = f"{mean:,.{digits}f}"
    return text if np.isnan(half) else f"{text} ± {half:,.{digits}f}"


def span(values: ArrayLike) -> str:
    """Return the least and the most of whole numbers, as "334-340", or the only one."""
    given = np.asarray(values)
    least = int(given.min())
    most = int(given.max())
    return f"{least:,}" if least == most else f"{least:,}-{most:,}"


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
