import doctest
import importlib
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ldpspatial import metrics
from ldpspatial.metrics import mean_absolute_percentage_error as mape
from ldpspatial.metrics import mean_arctangent_percentage_error as maape
from ldpspatial.metrics import symmetric_absolute_percentage_error as smape
from tests.support import naive_heatmap as naive

FloatArray: TypeAlias = npt.NDArray[np.float64]
Metric: TypeAlias = Callable[[Any, Any], float]
EVERY: list[Metric] = [mape, smape, maape]

small_maps = arrays(np.int64, (3, 4), elements=st.integers(0, 9)).filter(lambda x: x.sum() > 0)


def test_the_metrics_are_public() -> None:
    assert all(metric.__name__ in metrics.__all__ for metric in EVERY)


def test_known_values() -> None:
    # Relative errors 1/2, 1 and 1; where the truth is 0, 3 of the least positive truth.
    p, q = [[4, 2], [1, 0]], [[2, 0], [2, 3]]
    assert mape(p, q) == pytest.approx((1 / 2 + 1 + 1 + 3) / 4, rel=1e-15)
    assert smape(p, q) == pytest.approx((2 / 3 + 2 + 2 / 3 + 2) / 4, rel=1e-15)
    angles = math.atan(1 / 2) + math.pi / 4 + math.pi / 4 + math.pi / 2
    assert maape(p, q) == pytest.approx(angles / 4, rel=1e-15)


@settings(max_examples=60)
@given(small_maps, small_maps)
def test_every_error_is_its_definition(p: FloatArray, q: FloatArray) -> None:
    p, q = p / p.sum(), q / q.sum()
    assert mape(p, q) == pytest.approx(naive.mape(p, q), rel=1e-13, abs=1e-14)
    assert smape(p, q) == pytest.approx(naive.smape(p, q), rel=1e-13, abs=1e-14)
    assert maape(p, q) == pytest.approx(naive.maape(p, q), rel=1e-13, abs=1e-14)
    assert smape(p, q) == smape(q, p)
    assert 0 <= smape(p, q) <= 2
    assert 0 <= maape(p, q) <= math.pi / 2
    assert maape(p, q) <= mape(p, q) or (p == 0).any()
    for metric in EVERY:
        assert metric(p, p) == 0.0
        assert metric(p * 10, q * 10) == pytest.approx(metric(p, q), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("metric", EVERY)
def test_cells_are_compared_in_place(metric: Metric) -> None:
    rng = np.random.default_rng(1)
    p, q = rng.random((2, 5, 7))
    q *= p.sum() / q.sum()
    order = rng.permutation(p.size)
    both = p.ravel()[order].reshape(7, 5), q.ravel()[order].reshape(7, 5)
    assert metric(*both) == pytest.approx(metric(p, q), rel=1e-12)
    assert metric(p, p.ravel()[order].reshape(p.shape)) > 0.2


def test_the_truth_comes_first() -> None:
    p, q = [[1, 3]], [[3, 1]]
    assert mape(p, q) == pytest.approx((2 + 2 / 3) / 2, rel=1e-15)
    assert mape(p, [[2, 2]]) != mape([[2, 2]], p)
    assert maape(p, [[4, 0]]) != maape([[4, 0]], p)


def test_cells_that_are_empty_in_both_maps_count_0() -> None:
    p, q = [[4, 0, 0, 0]], [[2, 2, 0, 0]]
    assert mape(p, q) == (0.5 + 0.5) / 4
    assert smape(p, q) == pytest.approx((2 / 3 + 2) / 4, rel=1e-15)
    assert maape(p, q) == pytest.approx((math.atan(0.5) + math.pi / 2) / 4, rel=1e-15)


def test_the_least_masses_of_float64() -> None:
    p, q = [[1.0, 5e-324, 0]], [[1.0, 0, 5e-324]]
    assert mape(p, q) == pytest.approx(2 / 3)
    assert smape(p, q) == pytest.approx(4 / 3)
    assert maape(p, q) == pytest.approx((math.pi / 4 + math.pi / 2) / 3)
    beyond = [[1.0, 1.0]], [[2.0, 1e-320]]
    assert mape(*beyond) == pytest.approx(1)
    assert mape(*beyond[::-1]) == math.inf
    assert maape(*beyond[::-1]) == pytest.approx((math.atan(0.5) + math.pi / 2) / 2)


def test_the_examples_run() -> None:
    module = importlib.import_module("ldpspatial.metrics.percentage")
    assert doctest.testmod(module).failed == 0
