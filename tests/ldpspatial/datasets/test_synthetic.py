"""The synthetic maps against their laws; every bound has a false-alarm probability below 1e-6."""

import numpy as np
import pytest
from scipy.stats import kstest

from client_sdk.grid import Grid
from ldpspatial.datasets import (
    CITY_CENTER,
    CITY_SIDE_M,
    city,
    multi_normal,
    normal,
    skew_zipf,
    synthetic_maps,
)

N = 100_000
NAMES = ["normal", "szipf", "mnormal"]


def six_sigma_agrees(samples: np.ndarray, expected: float) -> bool:
    """Compare a mean with its expectation: two-sided false alarm 2e-9 for each use."""
    return bool(abs(samples.mean() - expected) < 6 * samples.std() / np.sqrt(len(samples)))


def check_moments(points: np.ndarray, mean: list[float], covariance: list[list[float]]) -> None:
    centred = points - mean
    for i in range(2):
        assert six_sigma_agrees(points[:, i], mean[i])
        for j in range(2):
            assert six_sigma_agrees(centred[:, i] * centred[:, j], covariance[i][j])


def test_registry_holds_the_boxes_of_the_paper() -> None:
    maps = synthetic_maps()
    assert list(maps) == NAMES
    assert {name: (m.name, m.y0, m.x0, m.side) for name, m in maps.items()} == {
        "normal": ("normal", -4.44, -4.87, 9.45),
        "szipf": ("szipf", 0.0, 0.0, 1.0),
        "mnormal": ("mnormal", -4.25, -4.32, 10.76),
    }
    assert [m.draw for m in maps.values()] == [normal, skew_zipf, multi_normal]


@pytest.mark.parametrize("name", NAMES)
def test_all_points_lie_in_the_box_and_the_seed_decides_them(name: str) -> None:
    law = synthetic_maps()[name]
    points = law.draw(N, np.random.default_rng(1))
    assert points.shape == (N, 2)
    assert points.dtype == np.float64
    offset = points - (law.y0, law.x0)
    assert offset.min() >= 0
    assert offset.max() < law.side
    assert np.array_equal(points, law.draw(N, np.random.default_rng(1)))
    assert not np.array_equal(points, law.draw(N, np.random.default_rng(2)))


def test_normal_has_its_moments() -> None:
    points = normal(N, np.random.default_rng(3))
    check_moments(points, [0, 0], [[1, 0.5], [0.5, 1]])
    # Beyond two moments: both margins are normal. The box cuts off less than 8e-6 of the mass.
    for margin in points.T:
        assert kstest(margin, "norm").pvalue > 1e-6


def test_multi_normal_has_the_moments_of_its_mixture() -> None:
    points = multi_normal(N, np.random.default_rng(4))
    # Spread of the centres (0, 0), (1, 2), (2, 0) plus unit variances; mean covariance 0.1.
    check_moments(points, [1, 2 / 3], [[5 / 3, 0.1], [0.1, 17 / 9]])


@pytest.mark.parametrize(
    ("cloud", "center", "covariance"), [(0, [0, 0], 0.5), (1, [1, 2], 0.0), (2, [2, 0], -0.2)]
)
def test_multi_normal_is_three_clouds_that_take_turns(
    cloud: int, center: list[float], covariance: float
) -> None:
    points = multi_normal(N, np.random.default_rng(5))[cloud::3]
    assert abs(len(points) - N / 3) < 1
    check_moments(points, center, [[1, covariance], [covariance, 1]])


def test_skew_zipf_has_its_distribution_function_and_independent_coordinates() -> None:
    points = skew_zipf(N, np.random.default_rng(6))
    for margin in points.T:
        assert kstest(margin, lambda t: np.log2(1 + t)).pvalue > 1e-6
    mean = 1 / np.log(2) - 1
    variance = 1.5 / np.log(2) - 1 / np.log(2) ** 2
    check_moments(points, [mean, mean], [[variance, 0], [0, variance]])
    # A power check: the same test tells this law from the uniform one at once.
    assert kstest(points[:, 0], "uniform").pvalue < 1e-6


def test_points_outside_the_box_are_drawn_again() -> None:
    outside_first = _OutsideFirst(np.random.PCG64(7))
    points = normal(50, outside_first)
    assert outside_first.calls == 2
    assert np.abs(points).max() < 5.01


class _OutsideFirst(np.random.Generator):
    """A generator whose first normals all lie far outside any box."""

    def __init__(self, bits: np.random.PCG64) -> None:
        super().__init__(bits)
        self.calls = 0

    def standard_normal(self, shape: tuple[int, int]) -> np.ndarray:  # type: ignore[override]
        self.calls += 1
        return np.full(shape, 99.0) if self.calls == 1 else self.normal(size=shape).clip(-2, 2)


def test_city_lies_in_its_square_and_the_seed_decides_it() -> None:
    people = city(N, np.random.default_rng(8))
    assert people.shape == (N, 2)
    assert np.array_equal(people, city(N, np.random.default_rng(8)))
    grid = Grid.from_center(*CITY_CENTER, CITY_SIDE_M, 30)
    south_west = np.array([grid.south, grid.west]) / 1e7
    extent = np.array([grid.height, grid.width]) / 1e7
    offset = (people - south_west) / extent
    assert offset.min() > -1e-6
    assert offset.max() < 1 + 1e-6


def test_city_has_a_dense_centre_an_empty_lake_and_a_river() -> None:
    people = city(N, np.random.default_rng(9))
    metres = (people - CITY_CENTER) * (111_178.0, 74_625.0)  # per degree at 48 N, WGS 84

    def share(north: float, east: float, radius: float) -> float:
        return float((np.hypot(*(metres - (north, east)).T) < radius).mean())

    assert share(0, 0, 600) > 0.1  # old town, on 1/127 of the square
    assert share(-4350, 4450, 600) > 0.04  # satellite town
    assert share(3500, 800, 300) > 0.005  # road to the north
    assert share(2100, 2300, 800) == 0  # lake
    for north in (-3000, 0, 3000):  # river
        assert share(north, -900 + 650 * np.sin(north / 1900), 150) == 0


@pytest.mark.parametrize("draw", [normal, skew_zipf, multi_normal, city])
def test_a_single_point_can_be_drawn(draw: object) -> None:
    assert draw(1, np.random.default_rng(0)).shape == (1, 2)  # type: ignore[operator]
