"""Heat maps: what is drawn where, on which scale, and files that can be made again."""

import dataclasses
import math
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from client_sdk import Collection, Grid
from ldpspatial.channels.dense import MatrixChannel, ProductChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation import cell_intervals
from ldpspatial.plotting.heat_map import heat_map_figure, save_figure
from ldpspatial.plotting.scale_bar import scale_bar_length
from tests.support.results import (
    CITY,
    GRIDS,
    INTERVALS,
    RESULT,
    collection_on,
    estimate_for,
    population,
    result_with,
)

TRUTH = population(CITY.grid.cells)
SHARE = "share of people per cell"
WIDE = Collection.create("test", CITY.grid, 1.0, radius=5)  # a margin as wide as the square


def colour_bar(axes: Axes) -> Axes:
    (bar,) = axes.child_axes
    assert isinstance(bar, Axes)
    return bar


def scale_bar(axes: Axes) -> tuple[float, str]:
    """Return the drawn length in axis units and what is written above it."""
    (line,) = (line for line in axes.lines if line.get_label() == "scale bar")
    left, right = np.asarray(line.get_xdata(), float)
    (text,) = axes.texts
    return right - left, text.get_text()


def shown(axes: Axes) -> Any:
    """Return the drawn values as a masked array, south first."""
    (image,) = axes.images
    assert image.origin == "lower"
    return image.get_array()


@pytest.mark.parametrize(
    ("truth", "uncertainty", "titles", "rows", "columns"),
    [
        (None, None, ["Reports", "Estimate"], 1, 2),
        (TRUTH, None, ["Truth", "Reports", "Estimate"], 1, 3),
        (None, INTERVALS, ["Reports", "Estimate", "Width"], 1, 3),
        (TRUTH, INTERVALS, ["Truth", "Reports", "Estimate", "Width"], 2, 2),
    ],
)
def test_panels_follow_what_is_given(
    truth: Any, uncertainty: Any, titles: list[str], rows: int, columns: int
) -> None:
    figure = heat_map_figure(CITY.grid, RESULT, truth, uncertainty, title="A city")
    assert [axes.get_title().split()[0] for axes in figure.axes] == titles
    corners = [axes.get_position().p0.round(6) for axes in figure.axes]
    assert len({y for _, y in corners}) == rows
    assert len({x for x, _ in corners}) == columns
    assert figure.get_suptitle() == "A city"


def test_truth_and_estimate_stand_side_by_side() -> None:
    figure = heat_map_figure(CITY.grid, RESULT, TRUTH, INTERVALS)
    truth, reports, estimate, width = (axes.get_position() for axes in figure.axes)
    assert truth.y0 == pytest.approx(estimate.y0)
    assert truth.x1 < estimate.x0
    assert reports.y0 == pytest.approx(width.y0)
    assert reports.y1 < truth.y0


def test_values_are_drawn_from_the_south_west() -> None:
    figure = heat_map_figure(CITY.grid, RESULT, TRUTH, INTERVALS)
    truth, reports, estimate, width = map(shown, figure.axes)
    np.testing.assert_allclose(truth, TRUTH / TRUTH.sum())
    np.testing.assert_array_equal(estimate, RESULT.density)
    np.testing.assert_array_equal(width, INTERVALS.width)
    np.testing.assert_array_equal(reports.mask, ~RESULT.channel.support)
    np.testing.assert_array_equal(reports.compressed(), RESULT.counts[RESULT.channel.support])


def test_colour_scales_start_at_zero_and_people_share_one() -> None:
    figure = heat_map_figure(CITY.grid, RESULT, TRUTH, INTERVALS)
    truth, reports, estimate, width = (axes.images[0] for axes in figure.axes)
    top = max(RESULT.density.max(), TRUTH.max() / TRUTH.sum())
    assert truth.get_clim() == estimate.get_clim() == pytest.approx((0, top))
    assert reports.get_clim() == pytest.approx((0, RESULT.counts.max()))
    assert width.get_clim() == pytest.approx((0, INTERVALS.width.max()))
    for image in (truth, estimate):
        assert isinstance(image.norm, PowerNorm)
        assert image.norm.gamma == 0.5
        assert image.get_cmap().name == "magma"
    for image, name in ((reports, "viridis"), (width, "cividis")):
        quarter = np.array([image.get_clim()[1] / 4])
        assert image.norm(quarter) == pytest.approx(0.25)
        assert image.get_cmap().name == name


def test_colour_bars_name_unit_and_scale() -> None:
    figure = heat_map_figure(CITY.grid, RESULT, TRUTH, INTERVALS)
    labels = [colour_bar(axes).get_ylabel() for axes in figure.axes]
    root = f"{SHARE} (square-root scale)"
    assert labels == [root, "reports per cell", root, "share of people in a cell by itself"]
    assert figure.axes[1].get_title() == f"Reports as received (n = {RESULT.n:,})"
    assert figure.axes[3].get_title() == "Width of the 90 % intervals of single cells (fisher)"


@pytest.mark.parametrize(
    ("top", "texts"),
    [
        (0.19, ["0 %", "0.5 %", "2 %", "5 %", "10 %"]),
        (0.001, ["0 %", "0.002 %", "0.01 %", "0.02 %", "0.05 %", "0.1 %"]),
        (0.00019, ["0 ppm", "5 ppm", "20 ppm", "50 ppm", "100 ppm"]),
    ],
)
def test_ticks_of_the_square_root_scale_are_round(top: float, texts: list[str]) -> None:
    full = int(1 / top)  # cells; one more holds what is left
    side = int(np.ceil(np.sqrt(full + 1)))
    density = np.zeros((side, side))
    density.flat[: full + 1] = [*[top] * full, 1 - full * top]
    grid = Grid.plane(0, 0, side, side)
    figure = heat_map_figure(grid, result_with(density, grid))
    figure.draw_without_rendering()
    labels = colour_bar(figure.axes[1]).get_yticklabels()
    assert [label.get_text() for label in labels] == texts


def test_ticks_of_counts_are_whole() -> None:
    counts = np.where(RESULT.channel.support, 2.0, 0)
    figure = heat_map_figure(CITY.grid, dataclasses.replace(RESULT, counts=counts))
    figure.draw_without_rendering()
    labels = colour_bar(figure.axes[0]).get_yticklabels()
    assert [label.get_text() for label in labels] == ["0", "1", "2"]


def test_axes_are_kilometres_from_the_centre() -> None:
    figure = heat_map_figure(CITY.grid, RESULT, TRUTH)
    truth, reports, _ = figure.axes
    side = 12.0
    assert truth.images[0].get_extent() == pytest.approx([-side / 2, side / 2] * 2, abs=1e-4)
    # One cell of margin on all sides.
    wide = side / 2 + side / 7
    assert reports.images[0].get_extent() == pytest.approx([-wide, wide] * 2, abs=1e-4)
    assert truth.get_xlabel() == reports.get_xlabel() == "km east of the centre"
    assert truth.get_ylabel() == "km north of the centre"


def test_axes_of_a_plane_grid_are_plane_units_from_the_centre() -> None:
    grid = GRIDS["plane"]
    result = estimate_for(collection_on(grid))
    _, estimate = heat_map_figure(grid, result).axes
    assert estimate.images[0].get_extent() == pytest.approx([-4.725, 4.725] * 2)
    assert estimate.get_xlabel() == "x from the centre (plane units)"
    length, text = scale_bar(estimate)
    assert length == pytest.approx(2)
    assert text == "2 units"


def test_the_square_is_outlined_in_its_margin() -> None:
    reports, estimate = heat_map_figure(CITY.grid, RESULT).axes
    (outline,) = (patch for patch in reports.patches if isinstance(patch, Rectangle))
    assert outline.get_bbox().bounds == pytest.approx((-6, -6, 12, 12), abs=1e-4)
    assert not outline.get_fill()
    assert not estimate.patches


def test_cells_keep_their_proportions_on_the_ground() -> None:
    grid = GRIDS["tall in metres"]
    figure = heat_map_figure(grid, estimate_for(collection_on(grid)))
    figure.draw_without_rendering()
    height, width = grid.cell_size
    for axes in figure.axes:
        box = axes.get_window_extent()
        assert box.height / box.width == pytest.approx(height / width, rel=1e-6)


@pytest.mark.parametrize(
    ("width", "length"),
    [(5, 1), (6.9, 1), (7.2, 2), (10, 2), (15.5, 2), (16, 5), (25, 5), (35, 5), (36, 10),
     (50, 10), (0.05, 0.01), (0.7, 0.1), (12_000, 2000)],
)  # fmt: skip
def test_scale_bars_have_the_round_length_nearest_to_a_fifth(width: float, length: float) -> None:
    assert scale_bar_length(width) == length


@pytest.mark.parametrize(
    ("south", "km"), [(-0.5, 20), (40.0, 20), (52.0, 10), (60.0, 10), (-76.0, 5), (84.0, 2)]
)
def test_the_scale_bar_is_true_at_the_latitude_of_the_centre(south: float, km: int) -> None:
    grid = Grid.from_bounds(south, 10.0, 1.0, 7)
    estimate = heat_map_figure(grid, estimate_for(collection_on(grid))).axes[1]
    drawn, text = scale_bar(estimate)
    assert text == f"{km} km"
    # The length of as many degrees on a sphere, to within the flattening of the earth.
    west, east, _, _ = estimate.images[0].get_extent()
    degrees = drawn / (east - west) * 1.0
    on_sphere = 6371.0 * math.radians(degrees) * math.cos(math.radians(south + 0.5))
    assert on_sphere == pytest.approx(km, rel=0.006)
    assert drawn == pytest.approx(km, rel=1e-9)


@pytest.mark.parametrize("name", ["city", "tall in metres", "one cell"])
@pytest.mark.parametrize("intervals", [False, True])
def test_nothing_overlaps(name: str, intervals: bool) -> None:
    grid = GRIDS[name]
    result = estimate_for(collection_on(grid))
    people = population(grid.cells)
    uncertainty = cell_intervals(result) if intervals else None
    figure = heat_map_figure(grid, result, people, uncertainty, title="A title")
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    boxes.append(figure.texts[0].get_window_extent())
    assert len(boxes) == 4 + intervals
    for one, other in combinations(boxes, 2):
        assert one is not None
        assert other is not None
        assert not one.overlaps(other)


@pytest.mark.parametrize("collection", [CITY, WIDE])
def test_the_scale_bar_lies_in_the_square_or_in_a_margin_that_has_room(
    collection: Collection,
) -> None:
    figure = heat_map_figure(collection.grid, estimate_for(collection))
    figure.draw_without_rendering()
    reports, _ = figure.axes
    text = reports.texts[0].get_window_extent().transformed(reports.transData.inverted())
    inside = np.abs(text.extents).max() < 6
    below = text.y1 < -6
    assert inside != below
    assert below == (collection is WIDE)


def test_reports_that_are_no_map_of_cells_are_left_out() -> None:
    axis = np.full((8, 7), 1 / 8)
    odd = ProductChannel(axis, axis, 1.0)  # no margin all around makes 8 x 8 of 7 x 7 cells
    flat = MatrixChannel(np.full((49, 49), 1 / 49), (7, 7))
    for channel in (odd, flat):
        counts = np.ones(channel.support.shape)
        result = dataclasses.replace(RESULT, channel=channel, counts=counts)
        assert len(heat_map_figure(CITY.grid, result).axes) == 1


def test_a_truth_of_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="truth must hold at least one person"):
        heat_map_figure(CITY.grid, RESULT, 0 * TRUTH)


@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("PDF", b"%PDF-"), ("svg", b"<?xml")]
)
def test_saved_figures_can_be_made_again_to_the_byte(
    tmp_path: Path, suffix: str, magic: bytes
) -> None:
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        save_figure(heat_map_figure(CITY.grid, RESULT, TRUTH, title="A city"), file, dpi=50)
    content = files[0].read_bytes()
    assert content.startswith(magic)
    assert content == files[1].read_bytes()
    assert b"Date" not in content
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in files}


def test_saving_a_figure_twice_gives_the_same_file(tmp_path: Path) -> None:
    figure = heat_map_figure(CITY.grid, RESULT, TRUTH, INTERVALS, title="A city")
    for name in ("a.png", "b.png"):
        save_figure(figure, tmp_path / name, dpi=50)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_figures_cannot_be_saved_as_anything_else(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path must end in \.png, \.pdf or \.svg, got 'map\.jpg'"):
        save_figure(Figure(), tmp_path / "map.jpg")
    with pytest.raises(InputError, match="dpi must be a whole number from 1 on, got 0"):
        save_figure(Figure(), tmp_path / "map.png", dpi=0)
    assert not list(tmp_path.iterdir())


def test_pyplot_is_never_imported() -> None:
    code = "import sys, ldpspatial.plotting.heat_map; print('matplotlib.pyplot' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout.strip() == b"False"
