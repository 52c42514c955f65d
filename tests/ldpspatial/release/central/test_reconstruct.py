"""The reconstruction against linear programs: over all cells, and with a variable per node."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.places.quadtree import Quadtree
from ldpspatial.release.central.quantise import MASS
from ldpspatial.release.central.reconstruct import MeasuredLevel, reconstruct
from tests.support import naive_central as naive

Ints = NDArray[np.int64]

SHAPES = [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (5, 3), (7, 7), (3, 16), (1, 13)]


def measured(
    shape: tuple[int, int], first: int, keep: int, rng: np.random.Generator, noise: int = MASS
) -> list[MeasuredLevel]:
    """Levels as the algorithm meets them: sums of a sparse map with noise, the largest followed."""
    dense = MASS * rng.integers(0, 6, shape) * (rng.random(shape) < 0.3)
    tree = Quadtree(shape)
    levels: list[MeasuredLevel] = []
    nodes = tree.numbers(first)
    for level in range(first, tree.depth + 1):
        if levels:
            nodes = tree.numbers_below(level, nodes[levels[-1].chosen])
        sums = np.array([dense[tree.cells_below(level, node)].sum() for node in nodes.tolist()])
        noisy = (sums + rng.integers(-noise, noise + 1, len(sums))).astype(np.int64)
        chosen = np.zeros(len(nodes), bool)
        chosen[np.argsort(-noisy)[: len(nodes) if level == first else keep]] = True
        levels.append(MeasuredLevel(level, nodes, noisy, chosen))
    return levels


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("first", "keep"), [(0, 1), (0, 3), (1, 5), (2, 20)])
def test_the_minimum_is_that_of_both_linear_programs_and_the_map_attains_it(
    shape: tuple[int, int], first: int, keep: int
) -> None:
    tree = Quadtree(shape)
    first = min(first, tree.depth)
    rng = np.random.default_rng(sum(shape) + keep)
    for noise in (0, MASS, 10 * MASS):
        levels = measured(shape, first, keep, rng, noise)
        found = reconstruct(tree, levels)
        targets, left_out = naive.programme(tree, levels)
        exact = pytest.approx(found.objective, rel=1e-9, abs=1e-9)
        assert naive.objective(found.masses, targets, first) == exact
        assert naive.least_objective(shape, targets, first) == exact
        small = naive.least_objective_small(tree.depth, targets, left_out, first)
        assert small[0] == exact
        assert small[1] == found.variables
        assert (found.masses >= 0).all()


def test_no_map_near_by_is_better_and_the_comparison_would_show_it() -> None:
    rng = np.random.default_rng(3)
    shape = 8, 8
    levels = measured(shape, 1, 6, rng)
    found = reconstruct(Quadtree(shape), levels)
    targets, _ = naive.programme(Quadtree(shape), levels)
    costs = [
        naive.objective(np.maximum(found.masses + step, 0), targets, 1)
        for step in rng.normal(scale=0.05, size=(100, *shape))
    ]
    assert min(costs) > found.objective + 1e-3


def level(number: int, nodes: list[int], noisy: list[int], chosen: list[int]) -> MeasuredLevel:
    in_s = np.isin(nodes, chosen)
    return MeasuredLevel(number, np.array(nodes), MASS * np.array(noisy), in_s)


def test_a_programme_small_enough_for_paper() -> None:
    """Two levels of a 2 x 2 map; 10 users in all say the four, 8 the two cells that were followed.

    The sum of all weighs 1 and a cell 1/2, so all 10 are placed. What the cells do not ask for, 2,
    costs 1/2 each wherever it goes, and goes to all four cells.
    """
    levels = [level(0, [0], [10], [0]), level(1, [0, 1, 2, 3], [6, -1, 2, 1], [0, 2])]
    found = reconstruct(Quadtree((2, 2)), levels)
    assert found.masses.tolist() == [[6.5, 0.5], [2.5, 0.5]]
    assert (found.objective, found.variables) == (1.0, 4)


def test_what_cannot_all_be_had_is_shared_in_proportion() -> None:
    levels = [level(0, [0], [4], [0]), level(1, [0, 1, 2, 3], [6, 2, 0, -3], [0, 1, 2, 3])]
    found = reconstruct(Quadtree((2, 2)), levels)
    assert found.masses.tolist() == [[3.0, 1.0], [0.0, 0.0]]
    assert found.objective == (3 + 1 + 3) / 2


def test_a_node_left_out_gets_mass_only_where_nothing_else_asks_for_it() -> None:
    """On a 5 x 3 map the block of the root has 15 cells: nothing goes beyond the map."""
    nodes = Quadtree((5, 3)).numbers(1).tolist()
    assert nodes == [0, 2]
    levels = [
        level(0, [0], [15], [0]), level(1, nodes, [0, 0], [0]),
        level(2, [0, 1, 2, 3], [0] * 4, [0]), level(3, [0, 1, 2, 3], [0] * 4, [0]),
    ]  # fmt: skip
    assert reconstruct(Quadtree((5, 3)), levels).masses == pytest.approx(np.ones((5, 3)))


def test_coarse_sums_weigh_more_than_all_finer_ones() -> None:
    """The first level's positive sums are the masses, whatever is below."""
    rng = np.random.default_rng(4)
    for shape in ((8, 8), (11, 6)):
        tree, levels = Quadtree(shape), measured(shape, 1, 5, rng, 5 * MASS)
        masses = reconstruct(tree, levels).masses
        for node, noisy in zip(levels[0].nodes.tolist(), levels[0].noisy.tolist(), strict=True):
            assert masses[tree.cells_below(1, node)].sum() == pytest.approx(max(noisy, 0) / MASS)


def test_without_noise_a_sparse_map_comes_back() -> None:
    rng = np.random.default_rng(5)
    dense = np.zeros((32, 32))
    dense.ravel()[rng.choice(1024, 12, replace=False)] = rng.integers(1, 9, 12)
    tree = Quadtree((32, 32))
    levels: list[MeasuredLevel] = []
    nodes = tree.numbers(2)
    for i in range(2, 6):
        if levels:
            nodes = tree.numbers_below(i, nodes[levels[-1].chosen])
        sums = np.array([int(dense[tree.cells_below(i, node)].sum()) for node in nodes.tolist()])
        chosen = np.zeros(len(nodes), bool)
        chosen[np.argsort(-sums)[:20]] = True
        levels.append(MeasuredLevel(i, nodes, MASS * sums, chosen))
    found = reconstruct(tree, levels)
    assert np.abs(found.masses - dense).max() < 1e-12
    assert found.objective == 0


def test_no_positive_sum_at_the_top_is_no_mass() -> None:
    levels = [level(0, [0], [-2], [0]), level(1, [0, 1, 2, 3], [6, -1, 2, 1], [0, 2])]
    found = reconstruct(Quadtree((2, 2)), levels)
    assert not found.masses.any()
    assert found.objective == 2 + (6 + 2) / 2
