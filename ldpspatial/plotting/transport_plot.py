"""Where the mass went: the difference of two maps, and on it the flows of a cheapest plan."""

import re
import textwrap
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import FuncNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from ldpspatial.errors import InputError
from ldpspatial.metrics.density import total_variation
from ldpspatial.metrics.flows import Bundles, bundles, length_text, share_text, single_flows
from ldpspatial.metrics.transport import Transport
from ldpspatial.plotting.flow_arrows import POINTS, add_arrows, add_key, lengthened, lengthening
from ldpspatial.plotting.scale_bar import Extent, add_scale_bar, round_number
from ldpspatial.validate import instance, whole_number

Array = NDArray[np.float64]

# Layout in inches.
PANEL = 5.6  # longer side of a map
LONGEST, THINNEST = 9.0, 1.2  # longer side of a thin map, and the shorter one that it is to have
ROOM = np.array([1.8, 3.4])  # height and width: for the colour bar beside, the text below
LEFT, RIGHT = 0.75, 1.3  # axis and its label, colour bar
ABOVE, TITLE = 0.4, 0.35  # title of the map, title of the figure
AXIS, KEY, LINE = 0.65, 0.3, 0.17  # below the map: its axis, sample arrows, a line of text
MARGIN = 0.15  # of key and text
BAR_GAP, BAR_WIDTH = 0.12, 0.18
TICK = 1.4  # twice the distance of ticks on the colour bar
CHARACTERS = 14.0  # of the caption per inch
LOWEST_WITH_SCALE = 1.5  # a lower map would be hidden by its scale bar
METRES_PER_KM = 1000.0

BLOCKS = 16  # along the longer side of the map
FEW = 40  # arrows that are drawn in any case
ENOUGH = 0.9  # of the cost: no more arrows are drawn


@dataclass(frozen=True)
class _Frame:
    """A map on its axes: centre (y, x) of cell (0, 0), and height and width of a cell."""

    shape: tuple[int, ...]
    origin: Array
    cell: Array
    unit: str
    labels: tuple[str, str]  # of the axes, y and x
    inches: Array  # height and width of the map

    def at(self, cells: ArrayLike) -> Array:
        """Return places (..., 2), row and column, as y and x."""
        return np.asarray(self.origin + self.cell * np.asarray(cells))

    @property
    def extent(self) -> Extent:
        """Edges of the map."""
        (bottom, left), (top, right) = self.at([[0.0, 0.0], self.shape]) - self.cell / 2
        return left, right, bottom, top


def plot_transport(
    p: ArrayLike,
    q: ArrayLike,
    plan: Transport,
    unit: str = "cells",
    arrows: int = 150,
    title: str | None = None,
) -> Figure:
    """Draw how a second map differs from a first one, and how its mass got there.

    Colours show q - p: red where q has more, blue where it has less, on a scale that goes with the
    square root. Arrows show what the plan carries from one cell to another; their width goes with
    the square root of the mass. Where there is too much to show, all that leaves a block of cells,
    a sixteenth of the map's longer side, in one of eight directions and about as far is one arrow,
    from the mean of its sources to the mean of its targets. Where arrows would be too short to
    read, all are drawn longer by one round factor. The caption says so, and how much is drawn.

    Parameters
    ----------
    p, q : (R, C) arrays of numbers >= 0
        The maps that the plan was made for; row 0 is the south, column 0 the west.
    plan : Transport
    unit : str
        Unit of `plan.cell`: "cells", where axes count rows and columns; "m", where axes are km from
        the centre; or any other, where axes are that unit from the centre.
    arrows : int >= 0
        At most so many are drawn, those that add most to the distance; fewer where fewer make up
        90 % of the mean cost.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
        ``figure.axes`` are the map, its colour bar and the key to the arrows.

    Raises
    ------
    InputError
        The maps break a rule of `transport`, or the plan does not carry p to q.
    """
    arrows = whole_number("arrows", arrows, 0)
    instance("plan", plan, Transport)
    instance("unit", unit, str)
    if title is not None:
        instance("title", title, str)
    difference = _difference(p, q, plan)
    frame = _frame(difference.shape, plan, unit)
    found = single_flows(plan)
    block = None
    if found.number_for(ENOUGH) > arrows:
        block = _block(frame)
        found = bundles(plan, block)
    drawn = found.dearest(min(max(found.number_for(ENOUGH), FEW), arrows))
    ends = frame.at(drawn.start), frame.at(drawn.end)
    factor = lengthening(*ends, drawn.mass, frame.extent, POINTS * frame.inches.max())
    says = _caption(plan, found, drawn, block, factor)

    figure, panel, bar, key = _layout(frame, says, title)
    _draw_difference(panel, difference, frame)
    panel.set_title(_distance(plan, unit), fontsize=11, parse_math=False)
    add_arrows(panel, *lengthened(*ends, factor, frame.extent), drawn.mass)
    _draw_colour_bar(bar, panel, float(abs(difference).max()), max(frame.inches[0], ROOM[0]))
    add_key(key, drawn.mass, share_text)
    return figure


def _difference(p: ArrayLike, q: ArrayLike, plan: Transport) -> Array:
    """Return q - p, both scaled to mass 1, once it is sure that the plan turns p into q."""
    total_variation(p, q)  # refuses what is not a pair of maps
    first = np.asarray(p, np.float64)
    second = np.asarray(q, np.float64)
    difference = np.asarray(second / second.sum() - first / first.sum())
    ends = np.concatenate([plan.sources, plan.targets])
    if (ends >= difference.shape).any():
        raise InputError(f"plan must be one of maps of shape {difference.shape}")
    left = difference.copy()
    # q - p plus what leaves minus what arrives: 0 everywhere for a plan that turns p into q.
    np.add.at(left, tuple(plan.sources.T), plan.mass)
    np.subtract.at(left, tuple(plan.targets.T), plan.mass)
    if abs(left).max() > 1e-9:
        raise InputError("plan must carry p to q, but it was made for other maps")
    return difference


def _frame(shape: tuple[int, ...], plan: Transport, unit: str) -> _Frame:
    ground = np.array(plan.cell) * shape
    # A thin map is drawn longer, so that its shorter side does not vanish.
    longer = min(max(PANEL, THINNEST * ground.max() / ground.min()), LONGEST)
    inches = longer * ground / ground.max()
    if unit == "cells":
        labels = "row (south to north)", "column (west to east)"
        return _Frame(shape, np.zeros(2), np.ones(2), unit, labels, inches)
    cell = np.array(plan.cell)
    labels = f"y from the centre ({unit})", f"x from the centre ({unit})"
    if unit == "m":
        cell = cell / METRES_PER_KM
        unit = "km"
        labels = "km north of the centre", "km east of the centre"
    return _Frame(shape, cell * (1 - np.array(shape)) / 2, cell, unit, labels, inches)


def _block(frame: _Frame) -> tuple[int, int]:
    """Return the rows and columns of cells in a block, which is as square as can be."""
    cells_per_inch = np.array(frame.shape) / frame.inches
    rows, columns = np.maximum(np.rint(PANEL / BLOCKS * cells_per_inch), 1).astype(int).tolist()
    return rows, columns


def _layout(frame: _Frame, says: str, title: str | None) -> tuple[Figure, Axes, Axes, Axes]:
    """Return a figure with its texts, and in it the axes of map, colour bar and key."""
    high, wide = frame.inches
    height, width = np.maximum(frame.inches, ROOM)
    across = LEFT + width + RIGHT
    says = re.sub(" (?=%|ppm)", "\N{NO-BREAK SPACE}", says)
    lines = textwrap.wrap(says, int(CHARACTERS * (across - 2 * MARGIN)))
    text = LINE * (len(lines) + 0.5)
    down = text + KEY + AXIS + height + ABOVE + (TITLE if title else 0)
    figure = Figure((across, down))

    def axes(left: float, bottom: float, *size: float) -> Axes:
        return figure.add_axes((left / across, bottom / down, size[0] / across, size[1] / down))

    left = LEFT + (width - wide) / 2
    bottom = text + KEY + AXIS
    panel = axes(left, bottom, wide, high)
    bar = axes(left + wide + BAR_GAP, bottom, BAR_WIDTH, height)
    key = axes(MARGIN, text, across - 2 * MARGIN, KEY)
    key.set(xlim=(0, POINTS * (across - 2 * MARGIN)), ylim=(0, POINTS * KEY))
    place = MARGIN / across, (text - LINE / 4) / down
    figure.text(*place, "\n".join(lines), fontsize=9, va="top")
    if title:
        # A name may hold dollar signs, which would begin a formula.
        figure.suptitle(title, fontsize=13, y=1 - 0.1 / down, va="top", parse_math=False)
    return figure, panel, bar, key


def _draw_difference(axes: Axes, difference: Array, frame: _Frame) -> None:
    top = float(abs(difference).max()) or 1.0
    axes.imshow(
        difference,
        cmap="RdBu_r",
        norm=FuncNorm((_signed_root, _signed_square), -top, top),
        extent=frame.extent,
        origin="lower",
        aspect="auto",  # the axes have the proportions of the ground
    )
    axes.tick_params(labelsize=9)
    sides = zip((axes.yaxis, axes.xaxis), frame.labels, frame.inches, strict=True)
    for axis, label, inches in sides:
        ticks = max(2, round(8 * inches / PANEL))
        whole = frame.unit == "cells"
        locator = MaxNLocator(ticks, steps=[1, 2, 5, 10], integer=whole, min_n_ticks=1)
        axis.set_major_locator(locator)
        axis.set_label_text(label, fontsize=10)
    lines = textwrap.wrap(frame.labels[0], max(int(CHARACTERS * frame.inches[0]), 10))
    axes.set_ylabel("\n".join(lines))  # beside a low map there is less room than below a narrow one
    if frame.inches.min() > LOWEST_WITH_SCALE:
        add_scale_bar(axes, frame.extent, frame.unit)


def _draw_colour_bar(place: Axes, panel: Axes, top: float, inches: float) -> None:
    bar = panel.figure.colorbar(panel.images[0], cax=place)
    bar.set_label("second − first map: share of mass\nper cell (square-root scale)", fontsize=9.5)
    steps = max(round(inches / TICK), 2)
    ticks = {round_number(top * (k / steps) ** 2) for k in range(1, steps + 1)} if top else set()
    ticks = {tick for tick in ticks if tick <= top}
    place.yaxis.set_major_locator(FixedLocator(sorted({0.0, *ticks, *(-tick for tick in ticks)})))
    place.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _signed_text(value)))
    place.tick_params(labelsize=9)


def _signed_text(share: float) -> str:
    sign = {1: "+", 0: "", -1: "−"}[int(np.sign(share))]
    return sign + share_text(abs(share))


def _signed_root(values: Array) -> Array:
    return np.asarray(np.sign(values) * np.sqrt(np.abs(values)))


def _signed_square(values: Array) -> Array:
    return np.asarray(np.sign(values) * np.square(values))


def _distance(plan: Transport, unit: str) -> str:
    kind = f"W{plan.order}" + (" (city block)" if plan.ground == "cityblock" else "")
    return f"{kind} = {length_text(plan.value)} {unit}"


def _caption(
    plan: Transport,
    found: Bundles,
    drawn: Bundles,
    block: tuple[int, int] | None,
    factor: int,
) -> str:
    if len(found) == 0:
        return "Nothing has to move: the maps are equal."
    moved = found.mass.sum()
    cost = found.cost.sum()
    says = "A cheapest way to turn the first map into the second moves "
    says += f"{share_text(moved)} of the mass. "
    if len(drawn) == len(found):
        says += "The arrows show all of it"
    else:
        says += (
            f"The {len(drawn)} arrows show {share_text(drawn.mass.sum() / moved)} of that and "
            f"{share_text(drawn.cost.sum() / cost)} of W{plan.order}{'²' * (plan.order == 2)}"
        )
    if block is not None:
        says += f", summed up by blocks of {block[0]} x {block[1]} cells and larger ones"
    if factor > 1:
        says += f". Arrows are drawn {factor} times too long, so that they can be seen"
    return says + "."
