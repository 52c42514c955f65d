"""The figure of a plan: what is drawn where, in which unit, and what the caption owns up to."""

import re
import subprocess
import sys
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import FuncNorm
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from ldpspatial.errors import InputError
from ldpspatial.metrics import transport
from ldpspatial.plotting.flow_arrows import WIDEST, lengthened, lengthening
from ldpspatial.plotting.transport_plot import length_text, plot_transport, share_text

RNG = np.random.default_rng(3)


def noise(*shape: int) -> Any:
    return RNG.multinomial(10**5, np.full(np.prod(shape), 1 / np.prod(shape))).reshape(shape)


def figure_of(p: Any, q: Any, order: int = 2, cell: Any = 1.0, **options: Any) -> Figure:
    ground = options.pop("ground", "euclidean")
    return plot_transport(p, q, transport(p, q, order, ground, cell), **options)


def arrows(axes: Axes) -> list[tuple[list[float], list[float]]]:
    """Return start and end (x, y) of the arrows, the widest first."""
    found = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    return [tuple(np.round(end, 9).tolist() for end in arrow._posA_posB) for arrow in found]  # type: ignore[attr-defined]


def caption(figure: Figure) -> str:
    (text,) = (text for text in figure.texts if text is not figure._suptitle)  # type: ignore[attr-defined]
    return re.sub(r"\s+", " ", text.get_text())


def test_the_difference_is_drawn_from_the_south_west_around_zero() -> None:
    p, q = noise(5, 7), noise(5, 7)
    panel = figure_of(p, q).axes[0]
    (image,) = panel.images
    assert image.origin == "lower"
    np.testing.assert_allclose(image.get_array(), (q - p) / 1e5, atol=1e-15)
    top = abs(q - p).max() / 1e5
    assert image.get_clim() == pytest.approx((-top, top))
    assert isinstance(image.norm, FuncNorm)
    places = image.norm(np.array([-top, -top / 4, 0, top / 4, top]))
    np.testing.assert_allclose(places, [0, 0.25, 0.5, 0.75, 1], atol=1e-12)
    blue, _, red = image.get_cmap()([0.0, 0.5, 1.0])
    assert blue[2] > blue[0]
    assert red[0] > red[2]


def test_arrows_lead_from_source_to_target_and_mass_that_stays_has_none() -> None:
    p, q = np.zeros((2, 6, 8))
    p[1, 2], p[4, 0] = 3, 1
    q[5, 7], q[4, 0] = 3, 1
    for order in (1, 2):
        figure = figure_of(p, q, order)
        assert arrows(figure.axes[0]) == [([2, 1], [7, 5])]
        assert "moves 75 % of the mass. The arrows show all of it." in caption(figure)
        value = (0.75 * 41 ** (order / 2)) ** (1 / order)
        assert figure.axes[0].get_title() == f"W{order} = {value:.4g} cells"


def test_wide_arrows_carry_much_and_lie_below() -> None:
    p = np.zeros((9, 9))
    q = p.copy()
    p[:, 0] = 1, 0, 0, 0, 16, 0, 0, 0, 64
    q[:, 5] = p[:, 0]
    panel, _, key = figure_of(p, q).axes
    assert [start[1] for start, _ in arrows(panel)] == [8, 4, 0]
    tails = [float(patch.get_arrowstyle().tail_width) for patch in panel.patches]
    assert tails == pytest.approx([WIDEST, WIDEST / 2, WIDEST / 8])
    # Round masses, drawn as the map draws them.
    texts = [text.get_text() for text in key.texts]
    assert texts == ["mass of an arrow:", "2 %", "20 %", "100 %"]
    widths = [float(patch.get_arrowstyle().tail_width) for patch in key.patches]
    shares = np.array([0.02, 0.2, 1.0]) * 81 / 64
    assert widths == pytest.approx(WIDEST * np.sqrt(shares))


def test_equal_maps_have_no_arrows() -> None:
    figure = figure_of(noise(4, 4) * 0 + 1, np.ones((4, 4)), title="Equal")
    assert not arrows(figure.axes[0])
    assert caption(figure) == "Nothing has to move: the maps are equal."
    assert figure.axes[0].get_title() == "W2 = 0 cells"
    figure.draw_without_rendering()


def test_the_caption_owns_up_to_what_is_not_drawn() -> None:
    p, q = noise(40, 40), noise(40, 40)
    figure = figure_of(p, q, arrows=25)
    text = caption(figure)
    assert len(arrows(figure.axes[0])) == 25
    shares = re.search(r"The 25 arrows show ([\d.]+) % of that and ([\d.]+) % of W2²", text)
    assert shares
    assert 0 < float(shares[1]) < 60
    assert 0 < float(shares[2]) < 60
    assert "summed up by blocks of 2 x 2 cells and larger ones" in text


def test_no_more_arrows_than_it_takes() -> None:
    p, q = noise(12, 12), noise(12, 12)
    figure = figure_of(p, q, order=1)
    number, cost = re.findall(r"The (\d+) arrows .* ([\d.]+) % of W1", caption(figure))[0]
    assert int(number) == len(arrows(figure.axes[0])) < 150
    assert 90 <= float(cost) < 92
    assert "blocks" not in caption(figure)


def test_no_arrows_if_none_are_wanted() -> None:
    figure = figure_of(noise(6, 6), noise(6, 6), arrows=0)
    assert not figure.axes[0].patches
    assert "The 0 arrows show 0 % of that" in caption(figure)


def test_arrows_too_short_to_see_are_drawn_longer_and_stay_on_the_map() -> None:
    p, q = np.zeros((2, 200, 200))
    p[100, 50], q[101, 50] = 1, 1
    p[199, 20], q[199, 19] = 1, 1
    figure = figure_of(p, q)
    assert arrows(figure.axes[0]) == [([50, 100], [50, 110]), ([20, 199], [10, 199])]
    assert "Arrows are drawn 10 times too long, so that they can be seen." in caption(figure)
    p[100, 50], q[101, 50], p[198, 50], q[199, 50] = 0, 0, 0.5, 0.5
    p[0, 0] = q[0, 0] = 0.5
    assert arrows(figure_of(p, q).axes[0])[1] == ([50, 189.5], [50, 199.5])


def test_one_long_arrow_keeps_all_from_growing_too_long() -> None:
    area = (0.0, 100.0, 0.0, 100.0)
    start, mass = np.zeros((2, 2)), np.array([1.0, 1e-6])
    for far, factor in ((1, 10), (20, 2), (40, 1)):
        assert lengthening(start, np.array([[0, 1.0], [far, 0]]), mass, area, 150.0) == factor
    assert lengthening(start[:0], start[:0], mass[:0], area, 150.0) == 1
    ends = lengthened(np.array([[0.0, 98.0]]), np.array([[0.0, 99.0]]), 5, area)
    np.testing.assert_array_equal(ends, [[[0, 95]], [[0, 100]]])


@pytest.mark.parametrize(
    ("unit", "cell", "extent", "labels", "title"),
    [
        ("cells", 1.0, (-0.5, 5.5, -0.5, 3.5), ("column (west to east)", "row (south to north)"),
         r"W1 = [\d.]+ cells"),
        ("m", (500.0, 250.0), (-0.75, 0.75, -1, 1),
         ("km east of the centre", "km north of the centre"), r"W1 = [\d.]+ m"),
        ("plane units", 0.5, (-1.5, 1.5, -1, 1),
         ("x from the centre (plane units)", "y from the centre (plane units)"),
         r"W1 = [\d.]+ plane units"),
    ],
)  # fmt: skip
def test_axes_and_title_are_in_the_unit(
    unit: str, cell: Any, extent: Any, labels: tuple[str, str], title: str
) -> None:
    panel = figure_of(noise(4, 6), noise(4, 6), 1, cell, unit=unit).axes[0]
    assert panel.images[0].get_extent() == pytest.approx(extent)
    assert (panel.get_xlabel(), panel.get_ylabel()) == labels
    assert re.fullmatch(title, panel.get_title())


def test_arrows_are_in_the_unit_too() -> None:
    p, q = np.zeros((2, 4, 6))
    p[0, 0] = q[3, 5] = 1
    figure = figure_of(p, q, cell=(500.0, 250.0), unit="m")
    assert arrows(figure.axes[0]) == [([-0.625, -0.75], [0.625, 0.75])]


def test_the_title_names_the_ground_and_long_distances_have_no_exponent() -> None:
    p, q = np.zeros((2, 4, 6))
    p[0, 0] = q[3, 5] = 1
    panel = figure_of(p, q, 1, 1000.0, ground="cityblock", unit="m").axes[0]
    assert panel.get_title() == "W1 (city block) = 8,000 m"
    assert [length_text(x) for x in (0.0, 0.123456, 99.996, 999.9, 12345.6)] == [
        *("0", "0.1235", "100", "999.9", "12,346")
    ]
    assert [share_text(x) for x in (0.0, 1.0, 0.1234, 1e-4, 2.5e-5)] == [
        *("0 %", "100 %", "12.3 %", "0.01 %", "25 ppm")
    ]


@pytest.mark.parametrize("shape", [(15, 15), (64, 64), (5, 60), (60, 5), (1, 30), (30, 1), (1, 1)])
@pytest.mark.parametrize("unit", ["cells", "m"])
def test_nothing_overlaps_and_cells_keep_their_proportions(
    shape: tuple[int, int], unit: str
) -> None:
    p, q = noise(*shape), noise(*shape)
    figure = figure_of(p, q, cell=(1.0, 1.5) if unit == "m" else 1.0, unit=unit, title="A title")
    figure.draw_without_rendering()
    panel = figure.axes[0]
    box = panel.get_window_extent()
    ratio = shape[0] / shape[1] / (1.5 if unit == "m" else 1.0)
    assert box.height / box.width == pytest.approx(ratio, rel=1e-6)
    # A title or label may be wider than a thin map and stand above or below its colour bar.
    parts = [panel.title, panel.xaxis.label, panel.yaxis.label, *figure.texts]
    boxes = [box, *(part.get_window_extent() for part in parts)]
    boxes += [axes.get_tightbbox() for axes in figure.axes[1:]]
    for one, other in combinations(boxes, 2):
        assert one is not None
        assert other is not None
        assert not one.overlaps(other)


def test_what_does_not_fit_is_refused() -> None:
    p, q = noise(4, 6), noise(4, 6)
    plan = transport(p, q)
    for first, second in ((q, p), (p, p), (p.T, q.T), (p[:, :5], q[:, :5] * p.sum())):
        with pytest.raises(InputError):
            plot_transport(first, second, plan)
    with pytest.raises(InputError, match="plan must carry p to q"):
        plot_transport(p, p[::-1], plan)
    with pytest.raises(InputError, match=r"plan must be one of maps of shape \(1, 1\)"):
        plot_transport([[1]], [[1]], plan)


def test_pyplot_is_never_imported() -> None:
    code = (
        "import sys, ldpspatial.plotting.transport_plot; print('matplotlib.pyplot' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout.strip() == b"False"
