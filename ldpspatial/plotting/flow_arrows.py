"""Arrows whose width tells how much flows, and a key to their widths.

Areas and places are in units of the axes, y before x; widths are in points.
"""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from ldpspatial.plotting.scale_bar import Extent, round_number

Array = NDArray[np.float64]

POINTS = 72  # per inch
INK, HALO = "0.1", "white"
WIDEST, THINNEST = 5.0, 0.35
FACTORS = (1, 2, 5, 10, 20, 50, 100)
READABLE = 12.0  # mean length of arrows that show a direction
LONGEST = 0.5  # of the longer side of the map
SAMPLES = (1.0, 0.25, 0.04)  # of the largest mass: widths of 1, 1/2 and 1/5


def lengthening(start: Array, end: Array, mass: Array, area: Extent, side: float) -> int:
    """Return the round factor by which arrows (k, 2) must be longer to be read.

    Parameters
    ----------
    area : left, right, bottom, top
        The map.
    side : float
        Its longer side in points.
    """
    if len(mass) == 0:
        return 1
    left, right, bottom, top = area
    length = np.hypot(*(end - start).T) / max(right - left, top - bottom)
    wanted = READABLE / (side * float(np.average(length, weights=mass)))
    allowed = LONGEST / float(length.max())
    enough = next((factor for factor in FACTORS if factor >= wanted), FACTORS[-1])
    return max(factor for factor in FACTORS if factor == 1 or factor <= min(enough, allowed))


def lengthened(start: Array, end: Array, factor: int, area: Extent) -> tuple[Array, Array]:
    """Return arrows made longer at their ends, then moved back to where they end on the map."""
    if factor == 1:
        return start, end
    left, right, bottom, top = area
    end = start + factor * (end - start)
    # Moved as a whole, so that length and direction stay those of the flow.
    back = np.clip(end, (bottom, left), (top, right)) - end
    return start + back, end + back


def add_arrows(
    axes: Axes, start: Array, end: Array, mass: Array, largest: float | None = None
) -> None:
    """Draw arrows from `start` to `end` (k, 2), the widest ones lowest.

    Their width goes with the square root of `mass` (k,): it is WIDEST at `largest`, which is the
    largest of them if it is not given.
    """
    scale = largest or mass.max(initial=0.0)
    for each in np.argsort(-mass, kind="stable"):
        width = max(WIDEST * float(np.sqrt(mass[each] / scale)), THINNEST)
        _add_arrow(axes, start[each][::-1], end[each][::-1], width)


def add_key(axes: Axes, mass: Array, text: Callable[[float], str]) -> None:
    """Fill axes, whose units are points, with up to three sample arrows and their masses."""
    axes.set_axis_off()
    if len(mass) == 0:
        return
    largest = float(mass.max())
    least = float(mass.min())
    samples = {round_number(largest * share) for share in SAMPLES}
    samples = {sample for sample in samples if sample >= least / 2} or {round_number(largest)}
    y = float(np.mean(axes.get_ylim()))
    axes.text(0, y, "mass of an arrow:", fontsize=9, va="center_baseline")
    for k, sample in enumerate(sorted(samples)):
        x = 100.0 + 90.0 * k
        start = np.array([[y, x]])
        end = np.array([[y, x + 28]])
        add_arrows(axes, start, end, np.array([sample]), largest)
        axes.text(x + 34, y, text(sample), fontsize=9, va="center_baseline")


def _add_arrow(axes: Axes, start: Array, end: Array, width: float) -> None:
    pixels = axes.transData.transform([start, end])
    length = POINTS / axes.figure.dpi * float(np.hypot(*(pixels[1] - pixels[0])))
    head = min(3.0 + 1.5 * width, 0.75 * length)
    style = f"simple,tail_width={width},head_width={2.5 + 1.8 * width},head_length={head}"
    axes.add_patch(
        FancyArrowPatch(
            tuple(start), tuple(end), arrowstyle=style, mutation_scale=1, shrinkA=0, shrinkB=0,
            facecolor=INK, linewidth=0, path_effects=[withStroke(linewidth=1.1, foreground=HALO)],
        )
    )  # fmt: skip
