"""Smoothing between EM steps: the kernels of their definitions, reflected at the edges."""

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import StampChannel, estimate
from ldpspatial.estimation import binomial, five_point
from ldpspatial.estimation.smoothing import SMOOTHERS
from tests.support import naive_channel

Array = NDArray[np.float64]
BINOMIAL = np.outer([1, 2, 1], [1, 2, 1]) / 16
FIVE_POINT = np.array([[0, 1, 0], [1, 2, 1], [0, 1, 0]]) / 6  # k = 1/2


KERNELS = [(binomial, BINOMIAL), (SMOOTHERS["five-point"], FIVE_POINT)]
for _k in (0.01, 3.0, 1e308, 1e-308):
    _side = 1 / (4 + 1 / _k)
    _cross = np.array([[0, _side, 0], [_side, 1 - 4 * _side, _side], [0, _side, 0]])
    KERNELS.append((five_point(_k), _cross))


@pytest.mark.parametrize(("smooth", "kernel"), KERNELS)
@pytest.mark.parametrize("cells", [1, 2, 3, 8])
def test_smoothing_reflects_at_the_edges(smooth: object, kernel: Array, cells: int) -> None:
    assert callable(smooth)
    density = np.random.default_rng(1).dirichlet(np.full(cells**2, 0.2)).reshape(cells, cells)
    found = smooth(density)
    assert found.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(found, naive_channel.smoothed(density, kernel), atol=1e-15)
    flat = np.full((cells, cells), 1 / cells**2)
    np.testing.assert_allclose(smooth(flat), flat, rtol=1e-14)


def test_five_point_has_the_weights_of_its_definition() -> None:
    dot = np.zeros((3, 3))
    dot[1, 1] = 1
    expected = np.array([[0, 2, 0], [2, 1, 2], [0, 2, 0]]) / 9
    np.testing.assert_allclose(five_point(2)(dot), expected)
    np.testing.assert_allclose(binomial(dot), BINOMIAL)


def test_any_function_smooths() -> None:
    channel = StampChannel(response_table("dam", 3.5, 5))
    counts = np.arange(channel.table.output_size)
    flat = estimate(channel, counts, smoothing=lambda f: np.full(f.shape, f.mean()))
    assert flat.density == pytest.approx(np.full((5, 5), 1 / 25))
    same = estimate(channel, counts, smoothing=lambda f: f)
    np.testing.assert_array_equal(same.density, estimate(channel, counts, "em").density)
