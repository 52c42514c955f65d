import doctest
import importlib
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import pearsonr

from ldpspatial import metrics
from ldpspatial.metrics import (
    block_sums,
    earth_movers_distance,
    heat_map,
    kl_divergence,
    pearson,
    similarity,
    total_variation,
    wasserstein,
)
from tests.support import naive_heatmap as naive
from tests.support import naive_metrics

FloatArray: TypeAlias = npt.NDArray[np.float64]
Metric: TypeAlias = Callable[[Any, Any], float]
EVERY: list[Metric] = [similarity, pearson, kl_divergence, earth_movers_distance]

quick = settings(max_examples=40)
small_maps = arrays(np.int64, (3, 4), elements=st.integers(0, 9)).filter(lambda x: x.sum() > 0)


def random_map(shape: tuple[int, int], seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    p = rng.random(shape) * (rng.random(shape) < 0.5)
    p[0, 0] += 0.1
    density: FloatArray = p / p.sum()
    return density


def test_the_metrics_are_public() -> None:
    for name in ("earth_movers_distance", "heat_map", "kl_divergence", "pearson", "similarity"):
        assert name in metrics.__all__
        assert callable(getattr(metrics, name))


# The filter


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (6, 1), (5, 5), (4, 9)])
@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 4.0, 30.0])
def test_the_filter_is_its_definition(shape: tuple[int, int], sigma: float) -> None:
    p = random_map(shape, 1)
    np.testing.assert_allclose(heat_map(p, sigma), naive.heat_map(p, sigma), rtol=1e-13, atol=1e-16)


def test_a_corner_spreads_by_the_kernel_over_the_grid_alone() -> None:
    k = math.exp(-1 / 2)  # one cell off at sigma = 1
    axis = np.array([1, k, k**4]) / (1 + k + k**4)
    corner = np.zeros((3, 3))
    corner[0, 2] = 8
    np.testing.assert_allclose(heat_map(corner, 1.0), 8 * np.outer(axis, axis[::-1]), rtol=1e-14)


@quick
@given(small_maps, st.floats(0, 50))
def test_mass_is_conserved_and_stays_positive(p: FloatArray, sigma: float) -> None:
    seen = heat_map(p, sigma)
    assert seen.shape == p.shape
    assert seen.min() >= 0
    assert seen.sum() == pytest.approx(p.sum(), rel=1e-14)


@quick
@given(small_maps, small_maps, st.floats(0.1, 5))
def test_the_filter_is_linear_and_turns_with_the_map(
    p: FloatArray, q: FloatArray, sigma: float
) -> None:
    together = heat_map(p, sigma) + 3 * heat_map(q, sigma)
    np.testing.assert_allclose(heat_map(p + 3 * q, sigma), together, rtol=1e-12)
    np.testing.assert_allclose(heat_map(p[::-1], sigma), heat_map(p, sigma)[::-1], rtol=1e-12)
    np.testing.assert_allclose(heat_map(p.T, sigma), heat_map(p, sigma).T, rtol=1e-12)


def test_sigma_0_returns_the_map_and_a_tiny_one_nearly_does() -> None:
    p = random_map((4, 6), 2)
    unchanged = heat_map(p, 0)
    assert np.array_equal(unchanged, p)
    unchanged[0, 0] = 7  # a copy
    assert p[0, 0] != 7
    for sigma in (5e-324, 1e-200, 1e-3):
        assert np.array_equal(heat_map(p, sigma), p)


def test_an_endless_sigma_spreads_over_the_whole_grid() -> None:
    for sigma in (1e9, 1e308):
        np.testing.assert_allclose(heat_map(random_map((3, 5), 3), sigma), 1 / 15, rtol=1e-12)


def test_nothing_is_cut_off_far_away() -> None:
    p = np.zeros((1, 40))
    p[0, 0] = 1
    seen = heat_map(p, 3.0)  # 13 standard deviations off
    total = sum(math.exp(-(j**2) / 18) for j in range(40))
    assert seen[0, 39] == pytest.approx(math.exp(-(39**2) / 18) / total, rel=1e-12)


def test_a_large_map_that_is_no_square() -> None:
    p = np.zeros((1024, 600))
    p[1000, 10], p[5, 300] = 3, 1
    seen = heat_map(p, 8.0)
    assert seen.sum() == pytest.approx(4, rel=1e-13)
    axis = np.exp(-((np.arange(600) - 10.0) ** 2) / 128)
    np.testing.assert_allclose(seen[1000] / seen[1000, 10], axis, rtol=1e-9, atol=1e-30)


# The metrics


def test_known_values() -> None:
    p, q = [[1, 3], [0, 0]], [[0, 2], [2, 0]]
    assert similarity(p, q) == 0.5
    # Deviations from the mean: (0, 2, -1, -1) and (-1, 1, 1, -1).
    assert pearson(p, q) == pytest.approx(2 / math.sqrt(6 * 4), rel=1e-15)
    empty = 0.25 * math.log(0.25 / 2.2e-16) + 0.75 * math.log(1.5)
    assert kl_divergence(p, q) == pytest.approx(empty, rel=1e-14)
    # A quarter moves from each upper cell to the lower left one: 1/2, and 1/2 + 1/2.
    assert earth_movers_distance(p, q) == pytest.approx(0.25 * 0.5 + 0.25 * 1.0, rel=1e-14)


@quick
@given(small_maps, small_maps)
def test_every_metric_is_its_definition(p: FloatArray, q: FloatArray) -> None:
    p, q = p / p.sum(), q / q.sum()
    assert similarity(p, q) == pytest.approx(naive.similarity(p, q), abs=1e-14)
    assert similarity(p, q) == pytest.approx(1 - total_variation(p, q), abs=1e-14)
    assert kl_divergence(p, q) == pytest.approx(naive.kl_divergence(p, q), rel=1e-12, abs=1e-13)
    assume(np.ptp(p) > 0 and np.ptp(q) > 0)
    assert pearson(p, q) == pytest.approx(naive.pearson(p, q), abs=1e-13)
    assert pearson(p, q) == pytest.approx(pearsonr(p.ravel(), q.ravel()).statistic, abs=1e-13)


@quick
@given(small_maps, small_maps)
def test_symmetry_bounds_and_totals(p: FloatArray, q: FloatArray) -> None:
    p, q = p / p.sum(), q / q.sum()
    assert similarity(p, q) == similarity(q, p)
    assert 0 <= similarity(p, q) <= 1 + 1e-15
    assert 0 <= earth_movers_distance(p, q) <= 2
    assert kl_divergence(p, q) >= -1e-12  # Gibbs
    if not math.isnan(pearson(p, q)):
        assert pearson(p, q) == pytest.approx(pearson(q, p), abs=1e-15)
        assert -1 <= pearson(p, q) <= 1
    for metric in EVERY:
        assert metric(p * 10, q * 10) == pytest.approx(metric(p, q), rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("metric", EVERY)
def test_moving_both_maps_alike_changes_nothing_and_shuffling_one_does(metric: Metric) -> None:
    p, q = random_map((6, 8), 4), random_map((6, 8), 5)
    for turn in (lambda x: x[::-1], lambda x: x[:, ::-1], np.transpose):
        assert metric(turn(p), turn(q)) == pytest.approx(metric(p, q), rel=1e-9)
    shuffled = np.random.default_rng(6).permutation(p.ravel()).reshape(p.shape)
    assert abs(metric(p, shuffled) - metric(p, p)) > 0.02


def test_a_map_and_itself() -> None:
    p = random_map((9, 5), 7)
    assert similarity(p, p) == pytest.approx(1, abs=1e-14)
    assert pearson(p, p) == pytest.approx(1, abs=1e-14)
    assert abs(kl_divergence(p, p)) < 45 * 3e-16
    assert earth_movers_distance(p, p) == 0.0


def test_the_truth_comes_first_in_the_divergence() -> None:
    everywhere, somewhere = [[1, 1]], [[2, 0]]
    assert kl_divergence(everywhere, somewhere) > 15  # half the truth has no estimate
    assert kl_divergence(somewhere, everywhere) == pytest.approx(math.log(2), rel=1e-14)


@pytest.mark.parametrize("constant", [[[1, 1, 1]], [[7, 7, 7]], [[0.1, 0.1 + 1e-17, 0.1]]])
def test_a_constant_map_has_no_correlation(constant: Any) -> None:
    p = np.array(constant, float)
    other = p.sum() * np.array([[0.2, 0.3, 0.5]])
    assert math.isnan(pearson(p, other))
    assert math.isnan(pearson(other, p))
    rounded = p * (1 + np.array([[0, 1, -1]]) * np.finfo(float).eps)
    assert math.isnan(pearson(rounded, other))


def test_correlation_of_a_nearly_constant_map_and_of_extreme_masses() -> None:
    p, q = np.array([[1, 1, 1 + 1e-6]]), np.array([[1, 1, 4.0]])
    assert pearson(p / p.sum(), q / q.sum()) == pytest.approx(1, abs=1e-9)
    far = np.array([[1e-300, 1e300, 1e-310]])
    assert pearson(far, far) == pytest.approx(1, abs=1e-14)
    assert math.isnan(pearson([[5]], [[5]]))


# The earth mover's distance


@quick
@given(small_maps, small_maps)
def test_emd_is_the_linear_program_with_cells_of_the_longer_side(
    p: FloatArray, q: FloatArray
) -> None:
    p, q = p / p.sum(), q / q.sum()
    expected = naive_metrics.wasserstein(p, q, 1, "cityblock", (0.25, 0.25))
    assert earth_movers_distance(p, q) == pytest.approx(expected, abs=1e-9)
    assert earth_movers_distance(p.T, q.T) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shape", [(6, 6), (6, 12), (12, 6)])
@pytest.mark.parametrize("blocks", [1, 2, 3, 6])
def test_blocks_are_sums_between_their_centres(shape: tuple[int, int], blocks: int) -> None:
    p, q = random_map(shape, 8), random_map(shape, 9)
    high, wide = shape[0] / blocks / max(shape), shape[1] / blocks / max(shape)
    sums = naive.block_sums(p, blocks), naive.block_sums(q, blocks)
    np.testing.assert_allclose(block_sums(p, blocks), sums[0], rtol=1e-13)
    expected = wasserstein(*sums, order=1, ground="cityblock", cell=(high, wide))
    assert earth_movers_distance(p, q, blocks) == pytest.approx(expected, abs=1e-12)
    assert abs(earth_movers_distance(p, q, blocks) - earth_movers_distance(p, q)) < high + wide


def test_blocks_of_one_cell_are_the_map() -> None:
    p, q = random_map((6, 6), 10), random_map((6, 6), 11)
    exact = earth_movers_distance(p, q)
    assert earth_movers_distance(p, q, np.int64(6)) == pytest.approx(exact, rel=1e-12)


def test_the_examples_run() -> None:
    module = importlib.import_module("ldpspatial.metrics.heatmap")
    assert doctest.testmod(module).failed == 0


def test_of_a_map_and_itself_the_divergence_is_never_below_zero() -> None:
    rng = np.random.default_rng(1)
    assert all(kl_divergence(p, p) >= 0 for p in rng.random((200, 8, 8)))
