import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import wasserstein_distance

from ldpspatial.metrics import sliced_wasserstein, wasserstein
from tests.support import naive_metrics

FloatArray: TypeAlias = npt.NDArray[np.float64]


def random_map(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    masses = rng.random(shape) * (rng.random(shape) < 0.6)
    masses[0, 0] += 0.1
    density: FloatArray = masses / masses.sum()
    return density


def upper_constant(order: int, directions: int) -> float:
    """SW <= constant * W."""
    if order == 2:
        return 1 / math.sqrt(2)
    return 1 / (directions * math.sin(math.pi / (2 * directions)))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("directions", [2, 7, 64])
@pytest.mark.parametrize("sides", [(1.0, 1.0), (3.0, 0.5)])
def test_equals_the_mean_over_lines_one_by_one(
    order: int, directions: int, sides: tuple[float, float]
) -> None:
    rng = np.random.default_rng([order, directions])
    for _ in range(5):
        p, q = random_map(rng, (4, 5)), random_map(rng, (4, 5))
        expected = naive_metrics.sliced_wasserstein(p, q, order, directions, sides)
        got = sliced_wasserstein(p, q, order, directions, sides)
        assert got == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("directions", [2, 3, 8, 64])
@pytest.mark.parametrize(("down", "right"), [(3, 0), (0, 2), (3, 2), (1, 4)])
def test_a_shifted_map_scores_its_shift_over_root_2_for_order_2(
    directions: int, down: int, right: int
) -> None:
    p, q = np.zeros((9, 9)), np.zeros((9, 9))
    p[:5, :5] = q[down : down + 5, right : right + 5] = random_map(np.random.default_rng(1), (5, 5))
    expected = math.hypot(down, right) / math.sqrt(2)
    assert sliced_wasserstein(p, q, 2, directions) == pytest.approx(expected, rel=1e-12)


def test_the_constant_of_order_1_is_attained_and_tends_to_2_over_pi() -> None:
    p, q = [[1, 0, 0, 0]], [[0, 0, 0, 1]]
    # Lines at 0 and 90 degrees see all or nothing, lines turned by half a step see the most.
    assert sliced_wasserstein(p, q, 1, 2) == pytest.approx(3 / 2)
    diagonal = sliced_wasserstein(np.eye(2)[:, :1] * [[1, 0]], [[0, 0], [0, 1]], 1, 2)
    assert diagonal == pytest.approx(math.sqrt(2) * upper_constant(1, 2))
    assert sliced_wasserstein(p, q, 1, 4096) == pytest.approx(3 * 2 / math.pi, rel=1e-6)


small_maps = arrays(np.int64, (3, 4), elements=st.integers(0, 9)).filter(lambda x: x.sum() > 0)


@settings(max_examples=80)
@given(small_maps, small_maps, st.sampled_from([1, 2]), st.sampled_from([2, 5, 16]))
def test_is_a_symmetric_lower_bound_of_the_exact_distance(
    p: FloatArray, q: FloatArray, order: int, directions: int
) -> None:
    p, q = p / p.sum(), q / q.sum()
    sliced = sliced_wasserstein(p, q, order, directions)
    bound = upper_constant(order, directions) * wasserstein(p, q, order)
    assert sliced <= bound * (1 + 1e-9) + 1e-12
    assert sliced_wasserstein(q, p, order, directions) == pytest.approx(sliced, abs=1e-12)


def test_is_deterministic_and_scales_with_the_cell() -> None:
    rng = np.random.default_rng(2)
    p, q = random_map(rng, (6, 6)), random_map(rng, (6, 6))
    in_cells = sliced_wasserstein(p, q)
    assert sliced_wasserstein(p, q) == in_cells
    for cell in (1e-200, 0.2, 250):
        assert sliced_wasserstein(p, q, cell=cell) == pytest.approx(cell * in_cells, rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_equal_maps_are_exactly_0_apart_and_shuffled_ones_are_not(order: int) -> None:
    rng = np.random.default_rng(3)
    p = random_map(rng, (6, 6))
    assert sliced_wasserstein(p, p.copy(), order) == 0.0
    shuffled = rng.permutation(p.ravel()).reshape(p.shape)
    assert wasserstein_distance(p.ravel(), shuffled.ravel()) == 0.0
    assert sliced_wasserstein(p, shuffled, order) > 0.05


def test_takes_maps_that_the_exact_distance_refuses() -> None:
    p, q = np.ones((150, 150)), np.ones((150, 150))
    p[:, 75:] = q[:, :75] = 0
    assert sliced_wasserstein(p, q, directions=4) == pytest.approx(75 / math.sqrt(2), rel=1e-12)


def test_tiny_masses_do_no_harm() -> None:
    p, q = np.array([[1.0, 1e-18, 1e-310]]), np.array([[1e-18, 0.0, 1.0]])
    assert sliced_wasserstein(p, q) == pytest.approx(math.sqrt(2), rel=1e-12)
