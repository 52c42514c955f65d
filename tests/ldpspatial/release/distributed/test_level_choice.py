"""The choice of a level: its estimate is unbiased, its error honest, its outcome near the best."""

from math import exp, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.distributed.levels.hierarchical import Hierarchical, HierarchicalOracle
from ldpspatial.release.distributed.levels.level_choice import (
    NoisyCounts,
    best_level,
    product_with_mean,
    promising_level,
)
from ldpspatial.release.distributed.levels.map_levels import Levels
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support import naive_levels as naive
from tests.support.cohorts import Silent

Array = NDArray[np.float64]


def variance(decay: float, shares: float) -> float:
    return shares * 2 * exp(-decay) / (1 - exp(-decay)) ** 2


@pytest.mark.parametrize("shares", [1.0, 0.6, 2.5])
@pytest.mark.parametrize("decay", [0.4, 1.5])
@pytest.mark.parametrize("mean", [0.0, 0.3, 4.0])
def test_product_with_mean_is_unbiased(shares: float, decay: float, mean: float) -> None:
    """By summing over the joint law of people and noise."""
    most, people = 120, np.arange(40)
    noise, law = np.arange(-most, most + 1), naive.noise_law(decay, shares, most)
    counts = (people[:, None] + noise).astype(float)
    joint = naive.poisson_law(mean, 39)[:, None] * law
    products = product_with_mean(counts, decay, sqrt(variance(decay, shares)))
    expected = mean * (joint * np.maximum(counts, 0)).sum()
    assert (joint * products).sum() == pytest.approx(expected, abs=1e-9)
    # Without the correction for noise, or with a person compared with itself, it would show.
    if shares == 1.0:
        assert (joint * counts * np.maximum(counts, 0)).sum() > expected + 0.1


def test_product_without_noise_is_that_of_cross_validation() -> None:
    counts = np.array([0.0, 1.0, 2.0, 7.0])
    assert product_with_mean(counts, 0.0, 0.0).tolist() == [0, 0, 2, 42]


def noisy(
    truth: Array, people: int, decay: float, rng: np.random.Generator, shares: int = 1
) -> NoisyCounts:
    """People drawn from a map, counted on every level with discrete Laplace noise."""
    levels = Levels(truth.shape)
    cells = rng.choice(truth.size, people, p=truth.ravel())
    total = np.bincount(levels.index_all(cells).ravel(), minlength=levels.length)
    for _ in range(shares):
        total = total + rng.geometric(1 - exp(-decay), total.size)
        total = total - rng.geometric(1 - exp(-decay), total.size)
    deviation = sqrt(variance(decay, shares))
    each = levels.depth
    return NoisyCounts(
        levels, (people,) * each, 1.0, levels.split(total), (decay,) * each, (deviation,) * each
    )


def town(shape: tuple[int, int], width: float) -> Array:
    """A bump and a little everywhere."""
    rows, columns = (np.arange(side) / side - 0.4 for side in shape)
    density = np.exp(-(rows[:, None] ** 2 + columns**2) / (2 * width**2)) + 0.02
    found: Array = density / density.sum()
    return found


def test_squared_error_is_that_of_the_twin() -> None:
    rng = np.random.default_rng(1)
    found = noisy(town((5, 7), 0.2), 400, 0.5, rng)
    for level in range(1, found.levels.depth + 1):
        counts = found.counts(level)
        products = product_with_mean(counts, 0.5, found.deviations[0])
        expected = naive.squared_error(counts, products, (5, 7), level, 400)
        assert found.squared_error(level)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shares", [1, 3])
def test_squared_error_is_right_on_average_and_its_error_no_smaller_than_it_is(shares: int) -> None:
    """300 runs: means agree within 5 standard errors (false alarm 6e-7 a level)."""
    rng, truth = np.random.default_rng(2), town((12, 16), 0.15)
    estimates, errors, actual = [], [], []
    for _ in range(300):
        found = noisy(truth, 2000, 0.25, rng, shares)
        numbers = range(1, found.levels.depth + 1)
        both = [found.squared_error(level) for level in numbers]
        estimates.append([estimate for estimate, _ in both])
        errors.append([error for _, error in both])
        densities = [found.levels.density(found.counts(level), level) for level in numbers]
        actual.append([np.square(d - truth).sum() - np.square(truth).sum() for d in densities])
    difference = np.array(estimates) - np.array(actual)
    allowed = 5 * difference.std(axis=0) / sqrt(300)
    # The sum of the counts is taken as known: good to a hundredth of the error's range.
    assert (np.abs(difference.mean(axis=0)) < allowed + 0.01 * np.ptp(actual)).all()
    ratio = difference.std(axis=0) / np.mean(errors, axis=0)
    assert (ratio < 1.1).all()
    assert (ratio > 0.1).all()


@pytest.mark.parametrize(
    ("width", "people", "decay"), [(0.05, 3000, 0.2), (0.2, 3000, 0.2), (0.1, 20_000, 0.1)]
)
def test_the_chosen_level_is_near_the_best_on_average(
    width: float, people: int, decay: float
) -> None:
    rng, truth = np.random.default_rng(3), town((64, 48), width)
    chosen, best, finest = [], [], []
    for _ in range(20):
        found = noisy(truth, people, decay, rng)

        def error(level: int, found: NoisyCounts = found) -> float:
            counts = found.counts(level) if level else np.zeros((1, 1))
            return float(np.square(found.levels.density(counts, level) - truth).sum())

        chosen.append(error(promising_level(found)))
        best.append(error(best_level(found, truth)))
        finest.append(error(found.levels.depth))
    assert best == [min(error) for error in zip(best, chosen, finest, strict=True)]
    assert np.mean(chosen) < 1.25 * np.mean(best)
    assert np.mean(finest) > 2 * np.mean(best)


def test_a_crowd_too_small_to_see_gives_the_uniform_map() -> None:
    rng = np.random.default_rng(4)
    levels = [promising_level(noisy(town((32, 32), 0.1), 5, 0.05, rng)) for _ in range(50)]
    assert np.mean(np.array(levels) == 0) > 0.9


def test_nobody_seen_gives_the_uniform_map() -> None:
    levels = Levels((4, 4))
    maps = levels.split(np.full(levels.length, 9))
    assert promising_level(NoisyCounts(levels, (0, 0), 1.0, maps, (1, 1), (0, 0))) == 0


def chessboard(side: int, users: int) -> UserCells:
    """People on every other cell only: no level but the finest shows anything."""
    rows, columns = np.indices((side, side))
    cells = np.flatnonzero((rows + columns) % 2 == 0)
    return cells_by_user(range(users), np.resize(cells, users), (side, side))


def test_fine_structure_is_found_where_coarse_levels_show_nothing() -> None:
    """A choice that goes on only while things improve would stop at the first level."""
    people, rng = chessboard(8, 20_000), np.random.default_rng(5)
    assert {Hierarchical().release(people, 1.0, rng).facts["level"] for _ in range(10)} == {3}


def test_the_oracle_looks_at_the_truth_it_is_given() -> None:
    people, rng = chessboard(8, 200), np.random.default_rng(6)
    fine = HierarchicalOracle(Silent()).release(people, 1.0, rng)
    assert (fine.facts["level"], fine.density.tolist()) == (3, people.density.tolist())
    coarse = HierarchicalOracle(Silent(), truth=np.ones((8, 8))).release(people, 1.0, rng)
    assert coarse.facts["level"] == 1
    assert coarse.claim.model == "none"


@pytest.mark.parametrize("truth", [np.ones((2, 3)), np.ones((8, 9))])
def test_a_truth_of_another_map_is_refused(truth: Array) -> None:
    oracle = HierarchicalOracle(Cohort(), truth)
    with pytest.raises(InputError, match=r"truth must be an array of numbers of shape \(8, 8\)"):
        oracle.release(chessboard(8, 64), 1.0, np.random.default_rng(7))
