from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ldpspatial import metrics
from ldpspatial.metrics import l1, mean_squared_error, total_variation

FloatArray: TypeAlias = npt.NDArray[np.float64]
Metric: TypeAlias = Callable[[Any, Any], float]
EVERY: list[Metric] = [mean_squared_error, l1, total_variation]


def test_the_public_names() -> None:
    assert metrics.__all__ == [
        "SeparableCost",
        "Transport",
        "block_sums",
        "earth_movers_distance",
        "heat_map",
        "kl_divergence",
        "l1",
        "mean_absolute_percentage_error",
        "mean_arctangent_percentage_error",
        "mean_squared_error",
        "pearson",
        "similarity",
        "sinkhorn_divergence",
        "sliced_wasserstein",
        "symmetric_absolute_percentage_error",
        "total_variation",
        "transport",
        "wasserstein",
    ]
    assert all(callable(getattr(metrics, name)) for name in metrics.__all__)


def test_known_values() -> None:
    p, q = [[1, 3], [0, 0]], [[0, 2], [2, 0]]  # quarters: differences 1, 1, -2, 0
    assert mean_squared_error(p, q) == pytest.approx((1 + 1 + 4) / 16 / 4, rel=1e-15)
    assert l1(p, q) == pytest.approx(1.0, rel=1e-15)
    assert total_variation(p, q) == pytest.approx(0.5, rel=1e-15)


def test_bounds_are_attained_by_two_points() -> None:
    p, q = np.zeros((2, 5)), np.zeros((2, 5))
    p[0, 0] = q[1, 1] = 7.0
    assert (mean_squared_error(p, q), l1(p, q), total_variation(p, q)) == (0.2, 2.0, 1.0)


small_maps = arrays(np.int64, (3, 4), elements=st.integers(0, 9)).filter(lambda x: x.sum() > 0)


@settings(max_examples=60)
@given(small_maps, small_maps)
def test_agrees_with_the_sum_over_cells_and_is_symmetric(p: FloatArray, q: FloatArray) -> None:
    p, q = p / p.sum(), q / q.sum()
    cells = [(float(p[cell]), float(q[cell])) for cell in np.ndindex(p.shape)]
    squares = sum((x - y) ** 2 for x, y in cells) / len(cells)
    assert mean_squared_error(p, q) == pytest.approx(squares, abs=1e-15)
    assert l1(p, q) == pytest.approx(sum(abs(x - y) for x, y in cells), abs=1e-14)
    largest_set = sum(x - y for x, y in cells if x > y)
    assert total_variation(p, q) == pytest.approx(largest_set, abs=1e-14)
    for metric in EVERY:
        assert metric(p, q) == metric(q, p)


@pytest.mark.parametrize("metric", EVERY)
def test_equal_maps_are_0_apart_and_shuffled_ones_are_not(metric: Metric) -> None:
    p = np.arange(12.0).reshape(3, 4)
    assert metric(p, p) == 0.0
    assert metric(p, p[::-1, ::-1]) > 0.01


@pytest.mark.parametrize("metric", EVERY)
def test_totals_are_normalised(metric: Metric) -> None:
    p, q = np.array([[1.0, 3.0]]), np.array([[2.0, 2.0]])
    assert metric(p * 10, q * 10) == pytest.approx(metric(p, q), rel=1e-14)
    assert metric(p, q * (1 + 5e-7)) == pytest.approx(metric(p, q), rel=1e-14)
