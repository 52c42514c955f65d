"""Range queries: the quick sums against slow ones, the draw of rectangles, the metric."""

import numpy as np
import pytest

from client_sdk import Grid
from ldpspatial import compare
from ldpspatial.comparison import METRICS
from ldpspatial.comparison.range_queries import (
    QUERIES,
    random_rectangles,
    range_error,
    standard_range_error,
)
from ldpspatial.comparison.scores import DEFAULT_METRICS, score
from ldpspatial.errors import InputError
from ldpspatial.release.non_private import NonPrivate
from tests.support import naive_regions


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 7), (12, 12)])
def test_prefix_sums_are_slow_sums(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    truth, density = rng.dirichlet(np.ones(shape[0] * shape[1]), 2).reshape(2, *shape)
    rectangles = random_rectangles(shape, 50, rng)
    expected = naive_regions.range_error(truth, density, rectangles)
    assert range_error(truth, density, rectangles) == pytest.approx(expected, abs=1e-14)
    assert range_error(7 * truth, 7 * density, rectangles) == pytest.approx(expected, abs=1e-14)


def test_rectangles_lie_inside_with_the_sizes_asked_for_anywhere() -> None:
    rectangles = random_rectangles((16, 40), 20_000, np.random.default_rng(2))
    south, west, north, east = rectangles.T
    assert (set(south), set(north)) == (set(range(15)), set(range(2, 17)))
    assert (west.min(), east.max()) == (0, 40)
    heights, counts = np.unique(north - south, return_counts=True)
    assert heights.tolist() == list(range(2, 9))
    # 6 standard deviations and more: 1e-6 for all seven.
    assert abs(counts - 20_000 / 7).max() < 6 * np.sqrt(20_000 / 7)
    assert set(east - west) == set(range(5, 21))
    whole = random_rectangles((3, 3), 5, np.random.default_rng(2), shares=(1, 1))
    assert whole.tolist() == [[0, 0, 3, 3]] * 5


def test_known_errors() -> None:
    truth, density = np.zeros((8, 8)), np.zeros((8, 8))
    truth[0, 0] = density[7, 7] = 1
    corners = np.array([[0, 0, 4, 4], [4, 4, 8, 8], [0, 4, 4, 8], [0, 0, 8, 8]])
    assert range_error(truth, density, corners) == 0.5
    assert range_error(truth, truth, corners) == 0


def test_all_releases_answer_the_same_queries() -> None:
    rng = np.random.default_rng(3)
    truth, density = rng.dirichlet(np.ones(100), 2).reshape(2, 10, 10)
    rectangles = random_rectangles((10, 10), QUERIES, np.random.default_rng([10, 10]))
    expected = naive_regions.range_error(truth, density, rectangles)
    assert standard_range_error(truth, density) == pytest.approx(expected)
    assert score(truth, density, ["range"]) == {"range": pytest.approx(expected)}
    assert METRICS["range"].label == "mean absolute error of 200 random rectangles"


def test_the_metric_is_there_by_name_and_not_by_default() -> None:
    people = np.random.default_rng(1).normal(4, 1, (50, 2))
    setting = people, Grid.plane(0, 0, 8, 8), [1.0]
    assert "range" in METRICS
    assert "range" not in DEFAULT_METRICS
    releases = {"exact": NonPrivate()}
    table = compare(*setting, releases, 1, np.random.default_rng(1), metrics=["range"])
    assert table["range"].to_pylist() == [0.0]
    assert table["w2"].to_pylist() == [None]
    table = compare(*setting, releases, 1, np.random.default_rng(1))
    assert table["range"].to_pylist() == [None]
    assert table["w2"].to_pylist() == [0.0]
    table = compare(*setting, ["dam"], 2, np.random.default_rng(1), metrics=["range"])
    assert all(0 < error < 0.5 for error in table["range"].to_pylist())


@pytest.mark.parametrize(
    "rectangles",
    [[[0, 0, 3, 2]], [[-1, 0, 1, 1]], [[0, 0, 0, 1]], [[0, 1, 1, 1]], [[0, 0, 1, 1.5]], [], [[1]]],
)
def test_rectangles_that_are_none_are_refused(rectangles: list[list[float]]) -> None:
    flat = np.full((2, 2), 0.25)
    with pytest.raises(InputError, match="rectangles must"):
        range_error(flat, flat, np.array(rectangles))
