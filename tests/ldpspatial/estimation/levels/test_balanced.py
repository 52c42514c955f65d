"""Wide areas get back what their sums say they lack, and nothing where that is noise."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.estimation.levels.balanced import BELOW, balanced, chance_of_less
from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]


def by_level(tree: Quadtree, sums: Array, variance: float) -> tuple[list[Array], list[Array]]:
    """Return sums of all nodes of each level and their variances, from those of the finest one."""
    nodes = tree.numbers(tree.depth)
    parents = [nodes >> 2 * (tree.depth - level) for level in range(tree.depth + 1)]
    places = [np.searchsorted(tree.numbers(level), each) for level, each in enumerate(parents)]
    every = np.full(len(nodes), variance)
    return tuple([np.bincount(at, of) for at in places] for of in (sums, every))  # type: ignore[return-value]


def balanced_alone(told: Array, sums: Array, noise: float, side: int) -> Array:
    """Balance people of the cells of a square by sums of these alone: noise of each, no doubt."""
    tree = Quadtree((side, side))
    nodes = tree.numbers(tree.depth)
    return balanced(told, noise * len(nodes), 0.0, nodes, *by_level(tree, sums, noise))


def test_noise_alone_moves_next_to_nobody() -> None:
    """Of four sums of noise, chance makes the squares too large in one of twenty runs.

    10 of 200 runs are expected, and above 30 has a chance of 1e-8.
    """
    rng = np.random.default_rng(1)
    told = np.full(4**4, 20.0)
    moved = 0
    for _ in range(200):
        found = balanced_alone(told, told + rng.laplace(size=len(told)), 2.0, 16)
        moved += found is not told
    assert moved <= 30


def test_what_a_quarter_lacks_is_given_back_by_the_rule() -> None:
    """One quarter has 64 people more than it was told: squares of 4096 + 3 (64 / 3)^2."""
    nodes = np.arange(4**4)
    told = np.full(len(nodes), 3.0)
    sums = told + np.where(nodes < 64, 1.0, -1 / 3)
    gain = 1 - 9.4877 / 4 * 256 / (64**2 + 64**2 / 3)  # chi squared of 4 above it: one in twenty
    found = balanced_alone(told, sums, 1.0, 16).reshape(4, 64).sum(axis=1)
    assert found == pytest.approx(192 + gain * 64 * np.array([1, -1 / 3, -1 / 3, -1 / 3]))


def test_empty_nodes_stay_empty_where_areas_have_too_many() -> None:
    """People are taken from nodes that have some, and given to all nodes of an area."""
    rng = np.random.default_rng(2)
    nodes = np.arange(4**5)
    told = rng.poisson(0.5, len(nodes)) * 10.0
    sums = told + np.where(nodes < 512, -2.0, 2.0)
    found = balanced_alone(told, sums, 0.1, 32)
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
        known = by_level(tree, sums, max(noise, 1e-9))
        found = balanced(told, noise * len(nodes), noise, nodes, *known)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(told.sum())


def test_few_levels_stay_as_told() -> None:
    told = np.ones(4**BELOW)
    assert balanced_alone(told, 9 * told, 1.0, 2**BELOW) is told


@pytest.mark.parametrize("own", [0.0, 1.0, 16.0, 1e9])
def test_areas_that_were_asked_give_what_brings_them_nearest(own: float) -> None:
    """The gain is that of least squares where the law of counts is true, and no area is left out.

    Counts are normal with variance 4 around 20 and so are sums around counts with variance 4: the
    posterior has its mean halfway and variance 2. Sixteen areas of 16 nodes have sums of their own
    with variance ``own`` a node. Over 400 maps the squared errors of areas come out within a tenth
    of those of the best gain for each area, 2 (1 - cov^2 / var): standard errors are .02.
    """
    rng = np.random.default_rng(4)
    tree = Quadtree((32, 32))
    nodes = tree.numbers(5)
    of_area = nodes >> 2 * BELOW
    size = 4**BELOW
    weight = 1 / (1 + 4 / own) if own else 0.0  # of the sums below in least squares of an area
    errors = []
    for _ in range(400):
        people = 20 + 2 * rng.normal(size=len(nodes))
        sums = people + 2 * rng.normal(size=len(nodes))
        told = (sums + 20) / 2
        told *= people.sum() / told.sum()
        areas = np.bincount(of_area, people) + np.sqrt(own * size) * rng.normal(size=16)
        least = weight * np.bincount(of_area, sums) + (1 - weight) * areas
        known, variances = by_level(tree, sums, 4.0)
        known[2], variances[2] = least, weight * variances[2]
        known[1], variances[1] = (of[2].reshape(4, 4).sum(axis=1) for of in (known, variances))
        found = balanced(told, 4.0 * len(nodes), 2.0 * len(nodes), nodes, known, variances)
        errors.append(np.bincount(of_area, found - people) ** 2 / size)
    # Of what is left open (2 a node), the part that the area's own sum tells of it.
    best = 2 - 2 * 2 / (2 + own)
    assert np.mean(errors) == pytest.approx(15 / 16 * best, rel=0.1, abs=0.1)


def chances_of_what_is_right(people: Array, per_person: float, seed: int) -> Array:
    """Return chances of 400 maps whose people a normal law with deviation 3 tells about 9.

    The first node of each area holds 1000, and is told by its sum alone.
    """
    rng = np.random.default_rng(seed)
    nodes = np.arange(4**5)
    crowded = nodes % 16 == 0
    noise = 400.0 + per_person * np.where(crowded, 1000.0, 9.0)
    part = np.where(crowded, 1.0, people / (people + noise))  # of the sums, in posterior means
    doubt = np.where(crowded, noise, part * noise)
    found = []
    for _ in range(400):
        truth = np.where(crowded, 1000.0, 9 + np.sqrt(people) * rng.normal(size=len(nodes)))
        sums = truth + np.sqrt(noise) * rng.normal(size=len(nodes))
        told = np.where(crowded, sums, 9 + part * (sums - 9))
        found.append(chance_of_less(told, noise, doubt, nodes, sums))
    return np.sort(found)


@pytest.mark.parametrize("people", [0.0, 9.0, 900.0])
@pytest.mark.parametrize("per_person", [0.0, 1.0])
def test_chances_of_what_is_right_are_even(people: float, per_person: float) -> None:
    """Of 400 maps a Kolmogorov-Smirnov distance above .14 has a chance of 1e-6.

    Crowds that are told by their sums, with much noise of their own, change nothing.
    """
    chances = chances_of_what_is_right(np.full(4**5, people), per_person, 5)
    assert np.abs(chances - (np.arange(400) + 0.5) / 400).max() < 0.14


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_that_half_of_the_noise_was_told_is_seen(part: float) -> None:
    """Areas lack half of what noise makes of them, or nothing: seen in each of 50 maps."""
    rng = np.random.default_rng(6)
    nodes = np.arange(4**5)
    known = np.full(len(nodes), 400.0), np.zeros(len(nodes)), nodes
    for _ in range(50):
        noise = 20.0 * rng.normal(size=len(nodes))
        assert chance_of_less(9 + part * noise, *known, 9 + noise) < 0.001


def test_what_lacks_much_or_has_no_noise_was_not_told_noise() -> None:
    nodes = np.arange(4**5)
    sums = np.where(nodes < 512, 30.0, 0.0)
    none = np.zeros(len(nodes))
    assert chance_of_less(np.full(len(nodes), 15.0), none + 100, none, nodes, sums) > 0.999
    assert chance_of_less(sums, none, none, nodes, sums) == 1
