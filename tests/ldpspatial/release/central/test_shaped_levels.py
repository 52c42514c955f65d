"""Counts of the leaves of a shape: what they spend, and what their levels say."""

import numpy as np
import pytest

from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS, unit_sums
from ldpspatial.release.central.shaped_levels import FOR_SHAPE, counted_leaves
from tests.ldpspatial.release.test_total import form, inputs


def crowd(shape: tuple[int, int], people: int = 2000) -> UserCells:
    """Everybody within a sixteenth of the map, around its south-west corner."""
    rng = np.random.default_rng(1)
    row, column = (rng.integers(0, side // 4, people) for side in shape)
    return cells_by_user(np.arange(people), row * shape[1] + column, shape)


def levels_of(users: UserCells, seed: int, epsilon: float = 1.0) -> list[NoisyLevel]:
    tree = Quadtree(users.shape, even=True)
    whole = NoisyLevel(0, np.array([0]), np.array([float(len(users))]), 4.0)
    source = np.random.default_rng(seed).bytes
    pyramid = Pyramid(tree, *unit_sums(users))
    return counted_leaves(pyramid, whole, 4, round(epsilon * 1e6), source)


@pytest.mark.parametrize("shape", [(64, 64), (33, 50)])
def test_leaves_cover_the_map_and_are_small_where_people_are(shape: tuple[int, int]) -> None:
    users = crowd(shape)
    tree = Quadtree(shape, even=True)
    covered = np.zeros(shape, int)
    levels = levels_of(users, 1)
    sizes = np.zeros(shape)
    for level in levels[1:]:
        if np.isinf(level.variance):
            continue
        leaves = level.nodes if level.measured is None else level.nodes[level.measured]
        covered += tree.spread(level.level, leaves, np.ones(len(leaves))).astype(int)
        sizes += tree.spread(level.level, leaves, np.full(len(leaves), float(level.level)))
    assert (covered == 1).all()
    inside = sizes[: shape[0] // 4, : shape[1] // 4].mean()
    assert inside > sizes[shape[0] // 2 :].mean() + 1


def test_sums_of_leaves_have_the_noise_of_what_the_shape_leaves() -> None:
    """Over 60 runs, some 2,000 leaves: the variance is within 5 standard errors."""
    users = crowd((64, 64))
    tree = Quadtree((64, 64), even=True)
    pyramid = Pyramid(tree, *unit_sums(users))
    scaled = []
    for seed in range(60):
        for level in levels_of(users, seed)[1:]:
            if np.isfinite(level.variance):
                right = pyramid.sums(level.level, level.nodes) / MASS
                errors = (level.sums - right)[level.measured]
                scaled.extend(errors / np.sqrt(level.variance))
                expected = noise_deviation(1 - 1 / FOR_SHAPE, 1) ** 2
                assert level.variance == pytest.approx(expected, rel=0.1)
    square = np.square(scaled)
    assert abs(square.mean() - 1) < 5 * np.sqrt(5 / len(square))  # Laplace's fourth moment is 6


def test_a_map_of_leaves_keeps_the_people_and_empty_places_empty() -> None:
    users = crowd((64, 64))
    found = combined(Quadtree((64, 64), even=True), levels_of(users, 3))
    assert found.people == pytest.approx(2000, abs=60)
    assert found.density[:16, :16].sum() > 0.97


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 3.9])
def test_nothing_but_the_map_depends_on_what_users_hold(epsilon: float) -> None:
    """300 people of 8 x 8 cells at epsilon 1 have a shape, whatever they hold."""
    forms = {
        str(form(CentralLevels(), users, epsilon))
        for shape_users in (inputs((8, 8), n) for n in (0, 1, 300, 301))
        for users in shape_users
    }
    assert len(forms) == 1


def test_without_epsilon_for_a_shape_the_first_level_is_counted() -> None:
    tree = Quadtree((64, 64), even=True)
    users = crowd((64, 64))
    whole = NoisyLevel(0, np.array([0]), np.array([2000.0]), 4.0)
    source = np.random.default_rng(1).bytes
    pyramid = Pyramid(tree, *unit_sums(users))
    for of_grid, numbers in ((2, [1, 0, 16]), (4, [1, 0, 16]), (5, [1, 0, 0, 64])):
        levels = counted_leaves(pyramid, whole, of_grid, FOR_SHAPE - 1, source)
        assert [level.number for level in levels] == numbers  # two levels above that of a grid
