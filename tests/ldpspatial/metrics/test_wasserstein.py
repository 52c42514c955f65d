import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import wasserstein_distance

from ldpspatial.metrics import l1, wasserstein
from ldpspatial.metrics._maps import equal_up_to_rounding
from tests.support import naive_metrics

FloatArray: TypeAlias = npt.NDArray[np.float64]

EVERY_METRIC = [(1, "euclidean"), (1, "cityblock"), (2, "euclidean"), (2, "cityblock")]
every_metric = pytest.mark.parametrize(("order", "ground"), EVERY_METRIC)


def random_map(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> FloatArray:
    """A map of total 1: dense, with empty cells, with masses far apart, or nearly a point."""
    masses = rng.random(shape)
    if kind == "holes":
        masses *= rng.random(shape) < 0.5
    elif kind == "ratios":
        masses *= 10.0 ** rng.uniform(-9, 0, shape)
    elif kind == "point":
        masses *= 1e-18
    masses[tuple(rng.integers(0, shape))] += 1.0
    density: FloatArray = masses / masses.sum()
    return density


def point(shape: tuple[int, ...], row: int, column: int) -> FloatArray:
    masses = np.zeros(shape)
    masses[row, column] = 1.0
    return masses


@every_metric
@pytest.mark.parametrize("sides", [(1.0, 1.0), (2.5, 0.75)])
def test_equals_the_linear_program_on_random_maps(
    order: int, ground: str, sides: tuple[float, float]
) -> None:
    rng = np.random.default_rng([order, len(ground), int(sides[0] * 4)])
    for kind in ["dense", "holes", "ratios", "point"] * 15:
        shape = tuple(rng.integers(1, 6, 2))
        p, q = random_map(rng, shape, kind), random_map(rng, shape, "holes")
        expected = naive_metrics.wasserstein(p, q, order, ground, sides)
        got = wasserstein(p, q, order, ground, sides)
        assert got**order == pytest.approx(expected**order, rel=1e-9, abs=1e-14)


@every_metric
def test_equals_the_linear_program_on_a_larger_map(order: int, ground: str) -> None:
    rng = np.random.default_rng(8)
    p, q = random_map(rng, (8, 9), "holes"), random_map(rng, (8, 9), "dense")
    expected = naive_metrics.wasserstein(p, q, order, ground)
    assert wasserstein(p, q, order, ground) == pytest.approx(expected, rel=1e-9)


@every_metric
def test_point_masses_are_apart_by_the_ground_distance(order: int, ground: str) -> None:
    apart = {"euclidean": 5.0, "cityblock": 7.0}[ground]
    p, q = point((4, 6), 0, 1), point((4, 6), 3, 5)
    assert wasserstein(p, q, order, ground) == pytest.approx(apart, rel=1e-15)
    assert wasserstein(p, q, order, ground, cell=0.5) == pytest.approx(apart / 2, rel=1e-15)


@every_metric
def test_from_one_cell_every_mass_travels_its_own_distance(order: int, ground: str) -> None:
    rng = np.random.default_rng(3)
    q = random_map(rng, (5, 4), "ratios")
    cost = sum(
        mass * naive_metrics.distance((2, 1), cell, ground, (1.0, 1.0)) ** order
        for cell, mass in np.ndenumerate(q)
    )
    p = point((5, 4), 2, 1)
    assert wasserstein(p, q, order, ground) == pytest.approx(cost ** (1 / order), rel=1e-14)
    assert wasserstein(q, p, order, ground) == pytest.approx(cost ** (1 / order), rel=1e-14)


@every_metric
def test_a_shifted_map_is_apart_by_the_shift(order: int, ground: str) -> None:
    rng = np.random.default_rng(4)
    p, q = np.zeros((12, 11)), np.zeros((12, 11))
    p[:8, :7] = q[3:11, 4:11] = random_map(rng, (8, 7), "dense")
    apart = {"euclidean": 5.0, "cityblock": 7.0}[ground]
    assert wasserstein(p, q, order, ground) == pytest.approx(apart, rel=1e-12)


@pytest.mark.parametrize("shape", [(1, 40), (40, 1)])
@pytest.mark.parametrize("order", [1, 2])
def test_one_row_or_column_is_the_distance_on_a_line(shape: tuple[int, ...], order: int) -> None:
    rng = np.random.default_rng(5)
    p, q = random_map(rng, shape, "holes"), random_map(rng, shape, "dense")
    places: FloatArray = np.arange(40.0) * 0.25
    expected = naive_metrics.line_distance(places, p.ravel(), places, q.ravel(), order)
    assert wasserstein(p, q, order, cell=0.25) == pytest.approx(expected, rel=1e-10)
    if order == 1:
        by_scipy = wasserstein_distance(places, places, p.ravel(), q.ravel())
        assert wasserstein(p, q, order, cell=0.25) == pytest.approx(by_scipy, rel=1e-10)


@every_metric
def test_scales_with_the_cell(order: int, ground: str) -> None:
    rng = np.random.default_rng(6)
    p, q = random_map(rng, (6, 5), "dense"), random_map(rng, (6, 5), "holes")
    in_cells = wasserstein(p, q, order, ground)
    for cell in (1e-200, 1e-9, 0.2, 3, 1e4):
        in_units = wasserstein(p, q, order, ground, cell)
        assert in_units == pytest.approx(cell * in_cells, rel=1e-12)
        assert wasserstein(p, q, order, ground, (cell, cell)) == in_units


@every_metric
def test_a_side_along_which_nothing_differs_does_not_matter(order: int, ground: str) -> None:
    rng = np.random.default_rng(7)
    p, q = random_map(rng, (1, 9), "dense"), random_map(rng, (1, 9), "dense")
    expected = 3 * wasserstein(p, q, order, ground)
    assert wasserstein(p, q, order, ground, (1e9, 3.0)) == pytest.approx(expected, rel=1e-12)
    assert wasserstein(p, q, order, ground, (1e-9, 3.0)) == pytest.approx(expected, rel=1e-12)


def test_height_belongs_to_rows_and_width_to_columns() -> None:
    corner = point((2, 2), 0, 0)
    assert wasserstein(corner, point((2, 2), 1, 0), cell=(10.0, 3.0)) == 10.0
    assert wasserstein(corner, point((2, 2), 0, 1), cell=(10.0, 3.0)) == 3.0


@every_metric
def test_equal_maps_are_exactly_0_apart(order: int, ground: str) -> None:
    counts = np.random.default_rng(9).integers(0, 50, (9, 9))
    assert wasserstein(counts, counts.copy(), order, ground) == 0.0
    density = counts / counts.sum()
    assert wasserstein(density, density, order, ground) == 0.0
    # The same map after other roundings.
    assert wasserstein(density, density * 3 / 3, order, ground) == 0.0
    assert wasserstein(counts, density * counts.sum(), order, ground) == 0.0
    assert wasserstein([[7]], [[7]], order, ground) == 0.0


@every_metric
@pytest.mark.parametrize(("places", "equal"), [(7, True), (9, False), (40, False)])
def test_up_to_8_places_a_difference_is_taken_for_rounding(
    places: int, equal: bool, order: int, ground: str
) -> None:
    # Half of what the one cell has more, the other lacks once the totals are divided out.
    p, q = np.array([[1.0, 1.0]]), np.array([[1.0 + 2 * places * 2.0**-52, 1.0]])
    assert (wasserstein(p, q, order, ground) == 0.0) == equal
    assert equal_up_to_rounding(p / p.sum(), q / q.sum()) == equal


def test_for_order_2_mass_passes_through_a_cell_that_both_maps_fill() -> None:
    # Left to middle and middle to right (1/2 + 1/2) is cheaper than left to right (4/2).
    p, q = np.array([[0.5, 0.5, 0.0]]), np.array([[0.0, 0.5, 0.5]])
    assert wasserstein(p, q, order=2) == pytest.approx(1.0, rel=1e-15)
    assert wasserstein(p, q, order=1) == pytest.approx(1.0, rel=1e-15)


def test_common_mass_does_not_blur_a_small_difference_of_order_1() -> None:
    p = np.full((10, 10), 1.0)
    q = p.copy()
    q[0, 0] -= 2.0**-40
    q[0, 3] += 2.0**-40
    assert wasserstein(p, q, order=1) == pytest.approx(3 * 2.0**-40 / 100, rel=1e-6)


@every_metric
def test_tiny_masses_change_nothing_but_their_share(order: int, ground: str) -> None:
    rng = np.random.default_rng(10)
    p, q = random_map(rng, (6, 6), "holes"), random_map(rng, (6, 6), "holes")
    blurred = wasserstein(p + 1e-18, q + 1e-18 * rng.random((6, 6)), order, ground)
    assert blurred == pytest.approx(wasserstein(p, q, order, ground), rel=1e-12)
    subnormal = wasserstein(p + 1e-310, q, order, ground)
    assert subnormal == pytest.approx(wasserstein(p, q, order, ground), rel=1e-12)


@every_metric
def test_a_shuffled_map_is_not_the_same_map(order: int, ground: str) -> None:
    # Comparing sorted or flattened pixel values would score 0 here.
    rng = np.random.default_rng(11)
    p = random_map(rng, (6, 6), "dense")
    shuffled = rng.permutation(p.ravel()).reshape(p.shape)
    assert wasserstein_distance(p.ravel(), shuffled.ravel()) == 0.0
    assert wasserstein(p, shuffled, order, ground) > 0.1


def test_is_not_the_distance_between_pixel_values() -> None:
    near, far = point((1, 9), 0, 1), point((1, 9), 0, 8)
    origin = point((1, 9), 0, 0)
    assert wasserstein(origin, near) == 1.0
    assert wasserstein(origin, far) == 8.0
    assert l1(origin, near) == l1(origin, far)


def test_totals_may_be_anything_positive_up_to_a_relative_millionth() -> None:
    p, q = np.array([[3.0, 1.0]]), np.array([[1.0, 3.0]])
    for scale in (1, 1e-300, 1e300, 2**20):
        assert wasserstein(p * scale, q * scale, order=1) == pytest.approx(0.5, rel=1e-15)
    assert wasserstein(p, q * (1 + 9e-7), order=1) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_takes_every_real_type_and_leaves_its_arguments_alone(dtype: Any) -> None:
    p, q = np.array([[1, 0, 0]], dtype), np.array([[0, 0, 1]], dtype)
    p.flags.writeable = q.flags.writeable = False
    assert wasserstein(p, q) == 2.0
    assert isinstance(wasserstein(p, q), float)


small_maps = arrays(np.int64, (3, 4), elements=st.integers(0, 9)).filter(lambda x: x.sum() > 0)
metrics = st.sampled_from(EVERY_METRIC)


def density(counts: FloatArray) -> FloatArray:
    normalised: FloatArray = counts / counts.sum()
    return normalised


@settings(max_examples=60)
@given(small_maps, small_maps, metrics)
def test_is_symmetric(p: FloatArray, q: FloatArray, metric: tuple[int, str]) -> None:
    p, q = density(p), density(q)
    assert wasserstein(p, q, *metric) == pytest.approx(wasserstein(q, p, *metric), rel=1e-9)


@settings(max_examples=60)
@given(small_maps, small_maps, small_maps, metrics)
def test_obeys_the_triangle_inequality(
    p: FloatArray, q: FloatArray, r: FloatArray, metric: tuple[int, str]
) -> None:
    p, q, r = density(p), density(q), density(r)
    detour = wasserstein(p, r, *metric) + wasserstein(r, q, *metric)
    assert wasserstein(p, q, *metric) <= detour * (1 + 1e-9) + 1e-12


@settings(max_examples=60)
@given(small_maps, small_maps, metrics, st.integers(0, 3), st.integers(0, 3))
def test_moving_turning_or_mirroring_both_maps_changes_nothing(
    p: FloatArray, q: FloatArray, metric: tuple[int, str], down: int, right: int
) -> None:
    p, q = density(p), density(q)
    apart = pytest.approx(wasserstein(p, q, *metric), rel=1e-9)
    frame = ((down, 3 - down), (right, 3 - right))
    assert wasserstein(np.pad(p, frame), np.pad(q, frame), *metric) == apart
    assert wasserstein(p.T, q.T, *metric) == apart
    assert wasserstein(p[::-1], q[::-1], *metric) == apart


@settings(max_examples=60)
@given(small_maps, small_maps)
def test_orders_and_grounds_are_ordered(p: FloatArray, q: FloatArray) -> None:
    p, q = density(p), density(q)
    w1, w1_cityblock, w2, w2_cityblock = (wasserstein(p, q, *metric) for metric in EVERY_METRIC)
    slack = 1 + 1e-9
    assert w1 <= w2 * slack
    assert w2 <= w2_cityblock * slack <= math.sqrt(2) * w2 * slack**2
    assert w1 <= w1_cityblock * slack <= math.sqrt(2) * w1 * slack**2
    assert (w2 > 0) == (not np.array_equal(p, q))
