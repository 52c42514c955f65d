"""Heat maps: the truth, the reports as received, the estimate and how sure it is.

Figures are made of ``matplotlib.figure.Figure`` alone: without display, without pyplot and its
global state, and so in threads too.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate
from ldpspatial.estimation.intervals import Uncertainty
from ldpspatial.files.atomic import replacing
from ldpspatial.places.cell_maps import cell_map
from ldpspatial.plotting.scale_bar import Extent, add_scale_bar, round_number
from ldpspatial.validate import file_path, instance, shown, whole_number

Array = NDArray[np.float64]

# Layout in inches, set by hand: matplotlib's layout engines move a figure drawn twice.
PANEL = 3.6  # longer side of a map
NARROWEST = 2.4  # room for a map, so that titles do not meet
LEFT, RIGHT = 0.45, 1.05  # tick labels, colour bar
BELOW, ABOVE = 0.32, 0.34  # tick labels, title of the map
LABEL = 0.3  # axis labels, at the left and at the bottom of the figure
TITLE = 0.35  # title of the figure
BAR_GAP, BAR_WIDTH = 0.1, 0.16
NO_CELL = "0.72"  # light grey, which none of the colour maps has
METRES_PER_KM = 1000.0
SMALLEST_PERCENT = 1e-3  # end of a scale below which percents have too many digits

# No time of writing, so that equal figures are equal files.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}


@dataclass(frozen=True)
class _Quantity:
    """What the cells of a map hold and how it is shown."""

    label: str
    colors: str
    is_share: bool
    square_root: bool = False

    def tick_text(self, top: float) -> Callable[[float, int | None], str]:
        """Return how ticks are written on a colour bar that ends at ``top``."""
        if not self.is_share:
            return lambda value, _: f"{value:,.6g}"
        factor, unit = (1e2, "%") if top >= SMALLEST_PERCENT else (1e6, "ppm")
        return lambda value, _: f"{factor * value:,.3g} {unit}"


PEOPLE = _Quantity("share of people per cell (square-root scale)", "magma", True, True)
REPORTS = _Quantity("reports per cell", "viridis", is_share=False)
WIDTH = _Quantity("share of people in a cell by itself", "cividis", is_share=True)


@dataclass(frozen=True)
class _Panel:
    """One map: values by cell, NaN where there is no cell; colours from 0 to ``top``."""

    title: str
    values: Array
    quantity: _Quantity
    top: float
    margin: int = 0  # cells around the square


def heat_map_figure(
    grid: Grid,
    estimate: Estimate,
    truth: ArrayLike | None = None,
    uncertainty: Uncertainty | None = None,
    title: str | None = None,
) -> Figure:
    """Draw an estimate beside what led to it.

    Up to four maps, in this order in ``figure.axes``: the truth, the reports as received, the
    estimate, the width of its intervals; in one row, or four as two columns. Truth and estimate
    share one colour scale, which goes with the square root of the share: it shows sparse
    quarters beside a dense centre, and its colour bar says so. Counts and widths are linear. All
    scales start at 0. Colours are perceptually uniform.

    Parameters
    ----------
    grid : Grid
        Axes are km, or plane units, from the centre of the square. Cells have their true
        proportions.
    estimate : Estimate
        Its counts are drawn where they lie on the grid: shape (d + 2b, d + 2b) for a margin of
        b >= 0 cells. The panel is left out where a channel reports something else.
    truth : (d, d) array of numbers >= 0, optional
        People or shares by cell; divided by its sum.
    uncertainty : Uncertainty, optional
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        An array does not fit the grid, is negative or not finite, or nobody is in ``truth``.
    """
    instance("grid", grid, Grid)
    instance("estimate", estimate, Estimate)
    if uncertainty is not None:
        instance("uncertainty", uncertainty, Uncertainty)
    if title is not None:
        instance("title", title, str)
    panels = _panels(grid, estimate, truth, uncertainty)
    rows = 2 if len(panels) == 4 else 1
    places = [divmod(k, rows)[::-1] for k in range(len(panels))]  # truth and estimate side by side
    return _laid_out(grid, panels, places, title)


def window_maps_figure(
    grid: Grid, maps: Mapping[str, ArrayLike], title: str | None = None
) -> Figure:
    """Draw maps of one place side by side, in rows, on one scale of colours.

    Parameters
    ----------
    grid : Grid
    maps : mapping of str to (d, d) array of numbers >= 0
        At least one, each below its name.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        An array does not fit the grid, is negative, not finite or 0 everywhere.
    """
    instance("grid", grid, Grid)
    if not isinstance(maps, Mapping) or not maps:
        raise InputError(f"maps must be a mapping of names to at least one map, got {shown(maps)}")
    if title is not None:
        instance("title", title, str)
    shares = {
        instance("maps: name", name, str): cell_map("maps", each, grid)
        for name, each in maps.items()
    }
    if not all(each.any() for each in shares.values()):
        raise InputError("maps must hold at least one person each, got a sum of 0")
    top = max(float(each.max()) for each in shares.values())
    panels = [_Panel(name, each, PEOPLE, top) for name, each in shares.items()]
    columns = ceil(sqrt(len(panels)))
    return _laid_out(grid, panels, [divmod(k, columns) for k in range(len(panels))], title)


def _laid_out(
    grid: Grid, panels: Sequence[_Panel], places: Sequence[tuple[int, int]], title: str | None
) -> Figure:
    """Draw maps in their rows and columns, counted from the top left."""
    rows, columns = (1 + max(place[axis] for place in places) for axis in range(2))
    height, width = (PANEL * side / max(grid.cell_size) for side in grid.cell_size)
    slot = LEFT + max(width, NARROWEST) + RIGHT, BELOW + height + ABOVE
    across = LABEL + columns * slot[0]
    down = LABEL + rows * slot[1] + (TITLE if title else 0)
    figure = Figure((across, down))
    for panel, (row, column) in zip(panels, places, strict=True):
        x = LABEL + column * slot[0] + LEFT + max(NARROWEST - width, 0) / 2
        y = LABEL + (rows - 1 - row) * slot[1] + BELOW
        axes = figure.add_axes((x / across, y / down, width / across, height / down))
        _draw(axes, panel, grid)
        _add_colour_bar(axes, panel, width)
        is_lowest = (row + 1, column) not in places
        _label_axes(axes, grid, left=column == 0, bottom=is_lowest)
    if title:
        # A name may hold dollar signs, which would begin a formula.
        figure.suptitle(title, fontsize=13, y=1 - 0.1 / down, va="top", parse_math=False)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write a figure as PNG, PDF or SVG, by suffix; the file is there in full or not at all.

    Equal figures give equal files: no date, no random ids.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : path ending in .png, .pdf or .svg
    dpi : int from 1 on
        Pixels per inch, in PDF and SVG of the maps only.

    Raises
    ------
    InputError
        Another suffix or dpi, or the file cannot be written.
    """
    instance("figure", figure, Figure)
    file = file_path("path", path)
    kind = file.suffix.lower().removeprefix(".")
    if kind not in METADATA:
        raise InputError(f"path must end in .png, .pdf or .svg, got {file.name!r}")
    dpi = whole_number("dpi", dpi, 1)
    # The salt fixes the ids inside an SVG; type 42 keeps text of a PDF searchable and editable.
    fixed = matplotlib.rc_context({"svg.hashsalt": "ldpspatial", "pdf.fonttype": 42})
    with replacing(file) as stream, fixed, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # of each letter that the font lacks
        figure.savefig(stream, format=kind, dpi=dpi, metadata=METADATA[kind], bbox_inches="tight")


def _panels(
    grid: Grid, estimate: Estimate, truth: ArrayLike | None, uncertainty: Uncertainty | None
) -> list[_Panel]:
    density = cell_map("estimate.density", estimate.density, grid)
    people = {"Estimate": density}
    if truth is not None:
        known = cell_map("truth", truth, grid)
        if known.sum() == 0:
            raise InputError("truth must hold at least one person, got a sum of 0")
        people = {"Truth": known / known.sum(), **people}
    top = max(float(shares.max()) for shares in people.values())
    panels = [_Panel(name, shares, PEOPLE, top or 1.0) for name, shares in people.items()]
    reports = _reports_as_received(grid, estimate)
    if reports is not None:
        panels.insert(len(panels) - 1, reports)
    if uncertainty is not None:
        width = cell_map("uncertainty.width", uncertainty.width, grid)
        level, method = f"{100 * uncertainty.level:g} %", uncertainty.method
        name = f"Width of the {level} intervals of single cells ({method})"
        panels.append(_Panel(name, width, WIDTH, float(width.max()) or 1.0))
    return panels


def _reports_as_received(grid: Grid, estimate: Estimate) -> _Panel | None:
    counts = estimate.counts
    side = estimate.counts.shape[0]
    margin, rest = divmod(side - grid.cells, 2)
    if counts.shape != (side, side) or rest or margin < 0:
        return None
    name = f"Reports as received (n = {estimate.n:,})"
    # A cell that no report can name is no cell, and not one with 0 reports.
    values = np.where(estimate.channel.support, counts, np.nan)
    return _Panel(name, values, REPORTS, float(counts.max()) or 1.0, margin)


def _extent(grid: Grid, margin: int) -> Extent:
    """Return the edges of the square with its margin, in units of the axes from its centre."""
    unit = METRES_PER_KM if grid.kind == "geographic" else 1.0
    y, x = (side / unit * (grid.cells / 2 + margin) for side in grid.cell_size)
    return -x, x, -y, y


def _draw(axes: Axes, panel: _Panel, grid: Grid) -> None:
    quantity = panel.quantity
    axes.imshow(
        np.ma.masked_invalid(panel.values),
        cmap=quantity.colors,
        norm=PowerNorm(0.5, 0, panel.top) if quantity.square_root else Normalize(0, panel.top),
        extent=_extent(grid, panel.margin),
        origin="lower",
        aspect="equal",
    )
    if panel.margin:
        west, east, south, north = _extent(grid, 0)
        axes.add_patch(
            Rectangle((west, south), east - west, north - south, fill=False, ec="white", lw=1.2)
        )
    axes.set_facecolor(NO_CELL)
    axes.set_title(panel.title, fontsize=11, parse_math=False)
    axes.tick_params(labelsize=9)
    for axis, side in zip((axes.yaxis, axes.xaxis), grid.cell_size, strict=True):
        ticks = max(2, round(7 * side / max(grid.cell_size)))
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
    # In the margin if its text fits there, or else in the square: not across its outline.
    in_margin = panel.margin > 0.15 * len(panel.values)
    area = _extent(grid, panel.margin if in_margin else 0)
    add_scale_bar(axes, area, "km" if grid.kind == "geographic" else "units")


def _add_colour_bar(axes: Axes, panel: _Panel, width: float) -> None:
    """Add the bar beside a map that is ``width`` inches wide."""
    quantity = panel.quantity
    place = axes.inset_axes((1 + BAR_GAP / width, 0, BAR_WIDTH / width, 1))
    bar = axes.figure.colorbar(axes.images[0], cax=place)
    bar.set_label(quantity.label, fontsize=9.5)
    bar.ax.tick_params(labelsize=9)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(quantity.tick_text(panel.top)))
    if quantity.square_root:
        bar.ax.yaxis.set_major_locator(FixedLocator(_square_root_ticks(panel.top)))
    elif not quantity.is_share:
        bar.ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))


def _label_axes(axes: Axes, grid: Grid, left: bool, bottom: bool) -> None:
    across = "km east of the centre"
    up = "km north of the centre"
    if grid.kind == "plane":
        across = "x from the centre (plane units)"
        up = "y from the centre (plane units)"
    if left:
        axes.set_ylabel(up, fontsize=10)
    if bottom:
        axes.set_xlabel(across, fontsize=10)


def _square_root_ticks(top: float) -> list[float]:
    """Return 0 and round numbers up to ``top`` whose square roots are about evenly spaced."""
    ticks = {round_number(top * (k / 6) ** 2) for k in range(1, 7)}
    return [0.0, *sorted(tick for tick in ticks if tick <= top)]
