"""What the nodes around a node say of it: their own sums alone, and by how large nodes are."""

import numpy as np
import pytest

from ldpspatial.estimation.levels import NoisyLevel
from ldpspatial.estimation.levels.law_of_counts import posterior
from ldpspatial.estimation.levels.neighbours import (
    HALF,
    NEAR,
    SPREAD,
    around,
    foretold,
    foretold_by_law,
)
from ldpspatial.places.quadtree import Quadtree


def test_people_around_are_means_of_the_others() -> None:
    tree = Quadtree((8, 8))
    nodes = tree.numbers(3)
    people = np.zeros((8, 8))
    people[4, 4] = 8.0
    level = NoisyLevel(3, nodes, np.zeros(64), 1.0)
    found = np.zeros((8, 8))
    found.ravel()[tree.positions(3, nodes)] = around(tree, level, tree.pooled(3, nodes, people))
    assert found[4, 4] == pytest.approx(0)
    assert found[3, 5] == pytest.approx(8 / 8 + 8 / 80)
    assert found[0, 4] == pytest.approx(8 / 80)


def test_what_is_foretold_is_the_weighted_mean_of_the_others() -> None:
    """Of a slow sum over all pairs of nodes, also along edges; none is foretold less than none."""
    tree = Quadtree((8, 8))
    nodes = tree.numbers(3)
    sums = np.random.default_rng(1).normal(3, 4, 64)
    found = foretold(tree, NoisyLevel(3, nodes, sums, 1.0), sums)
    rows, columns = np.divmod(tree.positions(3, nodes), 8)
    for i in range(64):
        north, east = rows - rows[i], columns - columns[i]
        anywhere = np.ones(64, bool)
        halves = [(HALF, each) for each in (north < 0, north > 0, east < 0, east > 0)]
        ways = [*((side, anywhere) for side in NEAR), *halves]
        for k, (side, which) in enumerate(ways):
            near = (np.maximum(np.abs(north), np.abs(east)) <= side // 2) & which
            weights = np.exp(-(north**2 + east**2) / (2 * (SPREAD * side) ** 2)) * near
            weights[i] = 0
            mean = weights @ sums / weights.sum() if weights.any() else 0.0
            assert found[i, k] == pytest.approx(max(mean, 0.0))


def test_along_a_shore_one_side_tells_how_many_there_are() -> None:
    tree = Quadtree((16, 16))
    nodes = tree.numbers(4)
    land = np.zeros((16, 16))
    land[:, 7:] = 9.0
    sums = tree.pooled(4, nodes, land)
    found = foretold(tree, NoisyLevel(4, nodes, sums, 1.0), sums)
    sides = found[:, len(NEAR) :]
    nearest = np.abs(sides - sums[:, np.newaxis]).min(axis=1)
    assert nearest == pytest.approx(0)
    assert np.abs(found[:, 0] - sums).max() > 2


def test_a_node_foretells_nothing_of_itself() -> None:
    tree = Quadtree((16, 16))
    nodes = tree.numbers(4)
    sums = np.random.default_rng(2).normal(3, 4, 256)
    other = sums.copy()
    other[77] += 100
    one, two = (foretold(tree, NoisyLevel(4, nodes, each, 1.0), each) for each in (sums, other))
    assert two[77] == pytest.approx(one[77])
    assert (np.abs(two - one) > 1e-6).sum() > 8


def test_larger_nodes_are_foretold_more() -> None:
    """On 10 x 7 cells nodes hold one, two or four cells: of a map of even cells as many people."""
    tree = Quadtree((10, 7), even=True)
    nodes = tree.numbers(3)
    people = tree.pooled(3, nodes, np.full((10, 7), 6.0))
    assert len(set(people.tolist())) > 1
    found = foretold(tree, NoisyLevel(3, nodes, people, 1.0), people)[:, : len(NEAR)]
    assert found == pytest.approx(np.repeat(people[:, np.newaxis], len(NEAR), axis=1))


def test_nothing_is_foretold_without_neighbours() -> None:
    tree = Quadtree((4, 4))
    level = NoisyLevel(0, tree.numbers(0), np.array([9.0]), 1.0)
    assert foretold(tree, level, level.sums).tolist() == [[0.0] * 7]


def test_the_law_of_what_is_foretold_knows_the_noise_of_the_neighbours() -> None:
    """Of a slow sum over the weights of a node in the middle: that of most nodes."""
    tree = Quadtree((32, 32))
    nodes = tree.numbers(5)
    sums = np.random.default_rng(3).normal(6, 5, 1024)
    level = NoisyLevel(5, nodes, sums, 20.0, per_person=0.5)
    noise = 20.0 + 0.5 * np.maximum(sums, 0.0)
    found = foretold_by_law(tree, level, sums)
    rows, columns = np.divmod(tree.positions(5, nodes), 32)
    for k, side in enumerate(NEAR):
        told, variances = np.empty(1024), np.empty(1024)
        for i in range(1024):
            off = rows - rows[i], columns - columns[i]
            near = np.maximum(*np.abs(off)) <= side // 2
            weights = near * np.exp(-(off[0] ** 2 + off[1] ** 2) / (2 * (SPREAD * side) ** 2))
            weights[i] = 0
            told[i] = weights @ sums / weights.sum()
            variances[i] = weights**2 @ noise / weights.sum() ** 2
        law = posterior(told, float(np.median(variances)), excess=0.0)
        assert found[:, k] == pytest.approx(law.mean)


def test_crowds_stay_where_noise_is_far_below_them() -> None:
    """What is foretold is far above its noise, and is taken as it is."""
    tree = Quadtree((16, 16))
    sums = np.random.default_rng(4).normal(5000, 1, 256)
    level = NoisyLevel(4, tree.numbers(4), sums, 1.0)
    found, told = foretold_by_law(tree, level, sums), foretold(tree, level, sums)
    assert found == pytest.approx(told, rel=1e-3, abs=0.01)


@pytest.mark.parametrize("shape", [(1, 256), (256, 1), (2, 128)])
def test_on_narrow_maps_nobody_is_foretold_where_there_are_no_neighbours(
    shape: tuple[int, int],
) -> None:
    tree = Quadtree(shape)
    nodes = tree.numbers(tree.depth)
    sums = np.random.default_rng(5).normal(30, 3, len(nodes))
    found = foretold_by_law(tree, NoisyLevel(tree.depth, nodes, sums, 9.0), sums)
    beside = foretold(tree, NoisyLevel(tree.depth, nodes, sums, 9.0), sums) > 0
    assert np.isfinite(found).all()
    assert (found[~beside] == 0).all()
    assert np.abs(found[beside] - 30).max() < 6
