"""Wide areas get back what their sums say they lack, and nothing where that is noise."""

import numpy as np
import pytest

from ldpspatial.estimation.levels.balanced import BELOW, SURE, balanced
from ldpspatial.places.quadtree import Quadtree


def test_noise_alone_moves_next_to_nobody() -> None:
    """Of four sums of noise, chance makes the squares 1.5 times as large in a fifth of all runs.

    P(chi squared of 4 > 6) = .199: 40 of 200 runs are expected, and above 70 has a chance of 2e-7.
    """
    rng = np.random.default_rng(1)
    nodes = np.arange(4**4)
    told = np.full(len(nodes), 20.0)
    noise = np.full(len(nodes), 2.0)
    moved = 0
    for _ in range(200):
        found = balanced(told, told + rng.laplace(size=len(nodes)), noise, nodes, 4)
        moved += found is not told
    assert moved <= 70


def test_what_a_quarter_lacks_is_given_back_by_the_rule() -> None:
    """One quarter has 64 people more than it was told: squares of 4096 + 3 (64 / 3)^2."""
    nodes = np.arange(4**4)
    told = np.full(len(nodes), 3.0)
    sums = told + np.where(nodes < 64, 1.0, -1 / 3)
    gain = 1 - SURE * 256 / (64**2 + 64**2 / 3)
    found = balanced(told, sums, np.ones(len(nodes)), nodes, 4).reshape(4, 64).sum(axis=1)
    assert found == pytest.approx(192 + gain * 64 * np.array([1, -1 / 3, -1 / 3, -1 / 3]))


def test_empty_nodes_stay_empty_where_areas_have_too_many() -> None:
    """People are taken from nodes that have some, and given to all nodes of an area."""
    rng = np.random.default_rng(2)
    nodes = np.arange(4**5)
    told = rng.poisson(0.5, len(nodes)) * 10.0
    sums = told + np.where(nodes < 512, -2.0, 2.0)
    found = balanced(told, sums, np.full(len(nodes), 0.1), nodes, 5)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(told.sum())
    assert (found[:512][told[:512] == 0] == 0).all()
    areas = found.reshape(-1, 4**BELOW).sum(axis=1)
    assert areas == pytest.approx(sums.reshape(-1, 4**BELOW).sum(axis=1), rel=0.02)


@pytest.mark.parametrize("shape", [(9, 8), (40, 40), (5, 70)])
@pytest.mark.parametrize("value", [-1e12, 0.0, 1e-9, 1e12])
def test_any_sums_give_people(shape: tuple[int, int], value: float) -> None:
    """On maps whose nodes have not four children each as well, without a warning."""
    tree = Quadtree(shape, even=True)
    nodes = tree.numbers(tree.depth)
    told = np.arange(float(len(nodes)))
    for noise in (0.0, 1e9):
        sums = np.where(nodes % 3 == 0, value, told)
        found = balanced(told, sums, np.full(len(nodes), noise), nodes, tree.depth)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(told.sum())


def test_few_levels_stay_as_told() -> None:
    told = np.ones(4**BELOW)
    assert balanced(told, 9 * told, told, np.arange(len(told)), BELOW) is told
