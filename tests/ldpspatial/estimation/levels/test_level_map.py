"""Maps of noisy sums: least squares against a dense twin, shares that stay shares."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.estimation.levels.level_map import _at_first
from ldpspatial.estimation.levels.shares import nearest_shares
from ldpspatial.places.quadtree import Quadtree
from tests.support.dense_levels import parts_and_covariance

Array = NDArray[np.float64]


def sums(truth: Array, tree: Quadtree, level: int, nodes: NDArray[np.int64]) -> Array:
    return np.array([truth[tree.cells_below(level, node)].sum() for node in nodes.tolist()])


def grown(
    truth: Array, seed: int, public: bool = False, noisy: bool = True, leaves: bool = False
) -> tuple[Quadtree, list[NoisyLevel]]:
    """Return levels in which some nodes are divided and some are not, one not measured.

    With ``leaves``, sums were taken of those that are not divided alone.
    """
    rng = np.random.default_rng(seed)
    tree = Quadtree((truth.shape[0], truth.shape[1]))
    nodes = tree.numbers(0)
    levels = []
    for level in range(tree.depth + 1):
        variance = 0.0 if level == 0 and public else float(rng.uniform(1, 9)) * noisy
        right = sums(truth, tree, level, nodes)
        if level == 1 and tree.depth > 1:
            levels.append(NoisyLevel.unmeasured(level, nodes))
        else:
            noise = rng.laplace(0, np.sqrt(variance / 2), len(nodes)) if variance else 0.0
            levels.append(NoisyLevel(level, nodes, right + noise, max(variance, 1e-6 * noisy)))
        if level < tree.depth:
            kept = nodes if level < 2 else nodes[rng.random(len(nodes)) < 0.6]
            is_leaf = ~np.isin(nodes, kept)
            if leaves and level > 1 and is_leaf.any():
                taken = np.where(is_leaf, levels[-1].sums, 1e9)  # the others are of no meaning
                levels[-1] = replace(levels[-1], sums=taken, measured=is_leaf)
            if not len(kept):
                break
            nodes = tree.numbers_below(level + 1, kept)
    return tree, levels


@pytest.mark.parametrize("shape", [(8, 8), (5, 7), (1, 6), (3, 3), (16, 4)])
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("leaves", [False, True])
def test_sums_are_those_of_dense_least_squares(
    shape: tuple[int, int], public: bool, leaves: bool
) -> None:
    """The root by the recursion is the sum of all parts by one matrix; so is every branch."""
    rng = np.random.default_rng(3)
    truth = rng.poisson(rng.gamma(0.3, 60, shape)).astype(np.float64)
    tree, levels = grown(truth, 5, public, leaves=leaves)
    found = combined(tree, levels)
    _, people, covariance = parts_and_covariance(tree, levels)
    assert found.people == pytest.approx(people.sum(), rel=1e-6)
    variance = covariance.sum()
    assert found.variances[0][0] == pytest.approx(variance, rel=1e-6, abs=1e-6)


def test_where_a_part_is_counted_variances_grow_with_the_people() -> None:
    """The first map weighs a level's nodes alike; its people make the variances of the second."""
    rng = np.random.default_rng(3)
    truth = rng.poisson(rng.gamma(0.3, 60, (5, 7))).astype(np.float64)
    tree, whole = grown(truth, 5)
    levels = [replace(level, per_person=0.1 * (level.level + 1)) for level in whole]
    own = [level.variance + level.per_person * max(level.sums.mean(), 0.0) for level in levels]
    first = combined(
        tree, [replace(level, variance=v) for level, v in zip(whole, own, strict=True)]
    )
    people = first.density * first.people
    own_by_node = [
        level.variance + level.per_person * (sums(people, tree, level.level, level.nodes) + 1)
        for level in levels
    ]
    found = combined(tree, levels)
    _, least, covariance = parts_and_covariance(tree, levels, own_by_node)
    assert found.people == pytest.approx(least.sum(), rel=1e-6)
    assert found.variances[0][0] == pytest.approx(covariance.sum(), rel=1e-6)


@pytest.mark.parametrize("shape", [(8, 8), (5, 7), (1, 1), (1, 6), (64, 64)])
def test_exact_sums_give_the_exact_map(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    truth = rng.poisson(rng.gamma(0.3, 60, shape)).astype(np.float64) + 1
    tree = Quadtree(shape)
    levels = [
        NoisyLevel(level, tree.numbers(level), sums(truth, tree, level, tree.numbers(level)), 1e-12)
        for level in range(tree.depth + 1)
    ]
    density = combined(tree, levels).density
    assert density == pytest.approx(truth / truth.sum(), abs=1e-9)


def test_what_was_not_divided_is_spread_by_area() -> None:
    tree = Quadtree((3, 5))
    found = combined(tree, [NoisyLevel(0, np.array([0]), np.array([30.0]), 4.0)])
    assert found.density == pytest.approx(np.full((3, 5), 1 / 15))


@pytest.mark.parametrize("total", [-5.0, 0.0])
def test_nobody_is_a_map_as_well(total: float) -> None:
    tree = Quadtree((4, 4))
    whole = NoisyLevel(0, np.array([0]), np.array([total]), 1.0)
    quarters = NoisyLevel(1, np.arange(4), np.array([-9.0, 2.0, 1.0, 1.0]), 1e6)
    density = combined(tree, [whole, quarters]).density
    assert density.min() >= 0
    assert density.sum() == pytest.approx(1)


def test_noise_does_not_add_up_where_nobody_is() -> None:
    """Everybody in one cell of 64 x 64: cutting negative cells would put a sixth elsewhere."""
    tree = Quadtree((64, 64))
    truth = np.zeros((64, 64))
    truth[40, 9] = 5000
    rng = np.random.default_rng(6)
    levels = []
    for level in range(7):
        nodes = tree.numbers(level)
        right = sums(truth, tree, level, nodes)
        levels.append(NoisyLevel(level, nodes, right + rng.laplace(0, 1, len(nodes)), 2.0))
    cut = np.maximum(levels[-1].sums, 0)
    assert cut.max() / cut.sum() < 0.8
    assert combined(tree, levels).density[40, 9] > 0.98


def test_uniform_maps_stay_uniform() -> None:
    """Shares of a uniform map are learned to be uniform: nearer to it than what was measured.

    Of 40 maps L1 is .02 to .31 of that of the sums, .14 in the mean: of eight, more than .23 has a
    chance of about .001.
    """
    tree = Quadtree((32, 32))
    parts = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        levels = []
        for level in range(6):
            nodes = tree.numbers(level)
            people = np.full(len(nodes), 10.0 * 1024 / len(nodes))
            levels.append(NoisyLevel(level, nodes, people + rng.laplace(0, 7, len(nodes)), 98.0))
        density = combined(tree, levels).density
        cut = np.maximum(levels[-1].sums, 0)
        off = [np.abs(each - 1 / 1024).sum() for each in (density.ravel(), cut / cut.sum())]
        parts.append(off[0] / off[1])
    assert np.mean(parts) < 0.23


@settings(max_examples=60)
@given(st.lists(st.floats(-50, 50), min_size=4, max_size=4), st.floats(0, 80), st.integers(1, 15))
def test_nearest_shares_are_the_nearest(wanted: list[float], people: float, held: int) -> None:
    """Against bisection on the level that is taken off, the slow twin."""
    exists = np.array([bool(held >> k & 1) for k in range(4)])
    values = np.array(wanted)
    low, high = values.min() - people - 1, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(values - middle, 0)[exists].sum() > people:
            low = middle
        else:
            high = middle
    near = np.where(exists, np.maximum(values - high, 0), 0)
    found = nearest_shares(values[None], np.array([people]), exists[None])[0]
    assert found == pytest.approx(near, abs=1e-6)
    assert found.min() >= 0


def test_people_fewer_than_the_last_digit_of_what_is_wanted_are_kept() -> None:
    """As where the noise is a million times as many as all people."""
    wanted = np.array([[3e7, -1e6, 3e7, -3e6], [1e9, 1.0, 1.0, 1.0]])
    exists = np.array([[True] * 4, [False, True, True, True]])
    found = nearest_shares(wanted, np.array([1e-9, 0.0]), exists)
    assert found.sum(1).tolist() == [1e-9, 0.0]
    assert found.min() >= 0
    assert found[0, 1] == 0


def level(number: int, nodes: list[int], total: float = 5.0) -> NoisyLevel:
    return NoisyLevel(number, np.array(nodes), np.full(len(nodes), total), 1.0)


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        ([], "levels must be 0, 1"),
        ([level(1, [0, 1, 2, 3])], "levels must be 0, 1"),
        ([level(0, [0]), level(2, [0, 1, 2, 3])], "levels must be 0, 1"),
        ([level(0, [0]), level(1, [0, 1, 2])], "nodes of level 1 must be all children"),
        (
            [level(0, [0]), level(1, [0, 1, 2, 3]), level(2, [0, 1, 2, 4])],
            "nodes of level 2 must be all children",
        ),
        ([NoisyLevel.unmeasured(0, np.array([0]))], "one of which sums were taken"),
        ([3], "each of levels must be a NoisyLevel"),
    ],
)
def test_levels_that_are_no_tree_are_refused(levels: list[NoisyLevel], told: str) -> None:
    with pytest.raises(InputError, match=told):
        combined(Quadtree((4, 4)), levels)


@pytest.mark.parametrize(
    ("nodes", "values", "variance", "told"),
    [
        ([1, 0], [1, 1], 1.0, "must ascend"),
        ([0, 0], [1, 1], 1.0, "must ascend"),
        ([0, 4], [1, 1], 1.0, "nodes must lie in"),
        ([0, 1], [1], 1.0, "one a node"),
        ([0], [np.nan], 1.0, "sums must hold"),
        ([0], [1], -1.0, "variance must lie in"),
        ([0], [1], np.nan, "variance must lie in"),
    ],
)
def test_bad_levels_are_refused(
    nodes: list[int], values: list[float], variance: float, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        NoisyLevel(1, np.array(nodes), np.array(values, float), variance)


@pytest.mark.parametrize("per_person", [-0.1, np.inf, np.nan])
def test_bad_parts_of_people_are_refused(per_person: float) -> None:
    with pytest.raises(InputError, match="per_person must be a number in"):
        NoisyLevel(0, np.array([0]), np.array([1.0]), 1.0, per_person)
    with pytest.raises(InputError, match="step must be a number in"):
        NoisyLevel(0, np.array([0]), np.array([1.0]), 1.0, step=per_person)


@pytest.mark.parametrize("mask", [[True], [1, 0], [False, False]])
def test_a_mask_of_sums_is_one_for_each_node_and_not_empty(mask: list[bool]) -> None:
    with pytest.raises(InputError, match="measured must be a bool for each node, one of them true"):
        NoisyLevel(1, np.array([0, 1]), np.ones(2), 1.0, measured=np.array(mask))


def test_leaves_are_told_by_the_law_of_their_counts() -> None:
    """Half of 256 leaves hold nobody, half hold 30: noise of 8 leaves both nearer to the truth.

    The error of noisy counts without negatives is taken of the same noise.
    """
    rng = np.random.default_rng(2)
    tree = Quadtree((16, 16))
    truth = rng.permutation(np.repeat([0.0, 30.0], 128))
    noisy = truth + rng.laplace(0, 4, 256)
    levels = [NoisyLevel(0, np.array([0]), np.array([truth.sum()]), 1.0)]
    levels += [NoisyLevel.unmeasured(level, tree.numbers(level)) for level in (1, 2, 3)]
    levels.append(NoisyLevel(4, tree.numbers(4), noisy, 32.0, measured=np.ones(256, bool)))
    found = combined(tree, levels).density.ravel()[tree.positions(4, tree.numbers(4))]
    plain = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
    share = truth / truth.sum()
    assert np.abs(found - share).sum() < 0.7 * np.abs(plain - share).sum()


def test_sums_that_were_not_taken_tell_nothing_and_are_not_counted() -> None:
    sums, two = np.array([8.0, 8.0, 0, 0]), np.arange(4) < 2
    level = NoisyLevel(1, np.arange(4), sums, 1.0, per_person=1.0, measured=two)
    assert _at_first(level).tolist() == [9.0, 9.0, np.inf, np.inf]
    assert level.number == 2
