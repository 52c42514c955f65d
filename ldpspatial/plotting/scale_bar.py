"""Scale bar: a line of a round length on a map, legible on any colour."""

import math

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

Extent = tuple[float, float, float, float]  # left, right, bottom, top in units of the axes


def round_number(target: float) -> float:
    """Return 1, 2 or 5 times a power of ten, whichever is nearest in ratio to ``target`` > 0."""
    power = math.floor(math.log10(target))
    # Read from text: 5 * 10.0**-6 is not the float that 5e-06 is.
    numbers = [float(f"{digit}e{power}") for digit in (1, 2, 5, 10)]
    return min(numbers, key=lambda number: abs(math.log(number / target)))


def scale_bar_length(width: float) -> float:
    """Return the round length nearest to a fifth of ``width`` > 0, between 1/8 and 1/3 of it.

    Examples
    --------
    >>> scale_bar_length(12.0), scale_bar_length(0.7)
    (2.0, 0.1)
    """
    return round_number(width / 5)


def add_scale_bar(axes: Axes, area: Extent, unit: str) -> None:
    """Draw the bar with its length and unit in the lower left corner of an area of the map."""
    left, right, bottom, top = area
    length = scale_bar_length(right - left)
    x = left + 0.05 * (right - left)
    y = bottom + 0.05 * (top - bottom)
    axes.plot(
        [x, x + length], [y, y], color="white", lw=2, solid_capstyle="butt", label="scale bar",
        scalex=False, scaley=False, path_effects=[withStroke(linewidth=3.5, foreground="black")],
    )  # fmt: skip
    axes.annotate(
        f"{length:,.10g} {unit}", (x, y), (0, 4), textcoords="offset points",
        ha="left", va="bottom", color="white", fontsize=9,
        path_effects=[withStroke(linewidth=2, foreground="black")],
    )  # fmt: skip
