"""Quadtrees on maps of any side, constrained inference and non-negativity on them."""

import numpy as np
import pytest
from scipy import stats

from ldpspatial.errors import InputError
from ldpspatial.privacy.local_privacy import cell_distances
from ldpspatial.release.local.local_release import check_side
from ldpspatial.release.local.trees.halving_tree import (
    HalvingTree,
    assign_groups,
    consistent,
    full_depth,
    full_tree,
    levels_privacy,
    non_negative,
    partition_privacy,
    ranges,
    root,
)
from tests.support import naive_local_trees as naive
from tests.support.naive_local_sets import exchangeable_privacy


def uneven_tree(side: int = 7) -> HalvingTree:
    """A tree with leaves on every level, and nodes of four children, two and none."""
    tree = root(side).grown(np.array([0]))
    tree = tree.grown(np.array([1, 4]))
    return tree.grown(np.arange(*tree.starts[2:4])[[0, 1, 5]])


TREES = [full_tree(side, full_depth(side)) for side in (2, 3, 4, 5, 6)] + [uneven_tree()]
every_tree = pytest.mark.parametrize("tree", TREES, ids=lambda tree: f"{tree.side}-{tree.starts}")


def child_sums(tree: HalvingTree, values: np.ndarray) -> np.ndarray:
    """What each inner node's children hold; a leaf's own value."""
    sums = np.bincount(tree.parents[1:], values[1:], minlength=len(values))
    return np.where(tree.child_counts > 0, sums, values)


def test_known_halvings() -> None:
    assert [full_depth(side) for side in (1, 2, 3, 4, 5, 8, 9, 1024)] == [0, 1, 2, 2, 3, 3, 4, 10]
    assert ranges(5, 1).tolist() == [[0, 3], [3, 5]]
    assert ranges(5, 2).tolist() == [[0, 2], [2, 3], [3, 4], [4, 5]]
    assert ranges(5, 3).tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    tree = full_tree(3, 2)
    assert tree.starts == (0, 1, 5, 14)
    assert tree.child_counts[:5].tolist() == [4, 4, 2, 2, 1]
    assert root(1).leaves.tolist() == [0]


@pytest.mark.parametrize("side", [1, 2, 3, 5, 8, 10, 13])
def test_every_level_halves_the_one_above_and_covers_the_map(side: int) -> None:
    tree = full_tree(side, full_depth(side))
    for level in range(tree.depth + 1):
        nodes = range(*tree.starts[level : level + 2])
        cells = [naive.cells_of(tuple(tree.bounds[node].tolist())) for node in nodes]
        assert sum(map(len, cells)) == len(set().union(*cells)) == side * side
        expected = np.empty((side, side), int)
        for number, inside in enumerate(cells):
            for cell in inside:
                expected[cell] = number
        assert (tree.partition(level) == expected.ravel()).all()
        if level:
            assert len(nodes) == len(ranges(side, level)) ** 2
    assert (
        tree.bounds[tree.level(tree.depth)][:, 1::2] - 1 == tree.bounds[tree.leaves][:, ::2]
    ).all()
    for node in np.flatnonzero(tree.child_counts):
        children = tree.bounds[1:][tree.parents[1:] == node].tolist()
        assert [tuple(c) for c in children] == naive.children_of(tuple(tree.bounds[node].tolist()))


def test_leaves_spread_evenly() -> None:
    tree = uneven_tree()
    masses = np.random.default_rng(1).random(len(tree.parents))
    density = tree.spread(masses)
    for leaf in tree.leaves:
        cells = naive.cells_of(tuple(tree.bounds[leaf].tolist()))
        assert {density[cell] for cell in cells} == {masses[leaf] / len(cells)}
    assert density.sum() == pytest.approx(masses[tree.leaves].sum())


def test_a_level_without_nodes_changes_nothing() -> None:
    tree = full_tree(4, 1)
    longer = tree.grown(np.array([], np.int64))
    assert longer.leaves.tolist() == tree.leaves.tolist()
    values, variances = np.array([1, 0.5, 0.5, 0.5, -0.3]), np.array([0, 1.0, 1, 1, 1])
    found = consistent(longer, values, variances)
    assert (found == consistent(tree, values, variances)).all()
    assert (non_negative(longer, found) == non_negative(tree, found)).all()


@every_tree
def test_constrained_inference_is_least_squares(tree: HalvingTree) -> None:
    rng = np.random.default_rng(len(tree.parents))
    values, variances = rng.normal(0, 1, len(tree.parents)), rng.uniform(0.1, 9, len(tree.parents))
    values[0], variances[0] = 1, 0
    given = values.copy(), variances.copy()
    found = consistent(tree, values, variances)
    assert found == pytest.approx(naive.least_squares(tree, values, variances), abs=1e-9)
    assert child_sums(tree, found) == pytest.approx(found, abs=1e-12)
    assert found[0] == 1
    assert (values == given[0]).all()
    assert (variances == given[1]).all()


def test_constrained_inference_of_one_level_shares_what_is_missing_evenly() -> None:
    found = consistent(
        full_tree(2, 1), np.array([1, 0.4, 0.3, 0.2, -0.3]), np.array([0, 2, 2, 2, 2])
    )
    assert found == pytest.approx([1, 0.5, 0.4, 0.3, -0.2])


@every_tree
def test_what_agrees_is_left_as_it_is(tree: HalvingTree) -> None:
    rng = np.random.default_rng(3)
    values = np.zeros(len(tree.parents))
    values[tree.leaves] = rng.dirichlet(np.ones(len(tree.leaves)))
    for level in range(tree.depth, 0, -1):
        nodes = tree.level(level)
        values[: nodes.start] += np.bincount(
            tree.parents[nodes], values[nodes], minlength=nodes.start
        )
    variances = np.append(0, rng.uniform(1, 2, len(values) - 1))
    assert consistent(tree, values, variances) == pytest.approx(values, abs=1e-12)
    assert non_negative(tree, values) == pytest.approx(values, abs=1e-12)


@every_tree
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e9])
def test_non_negativity_is_norm_sub_in_each_family(tree: HalvingTree, scale: float) -> None:
    estimates = np.random.default_rng(5).normal(0.1, 1, len(tree.parents)) * scale
    masses = non_negative(tree, estimates)
    # At 1e9 the twin's differences of large numbers keep nine digits less.
    assert masses == pytest.approx(naive.non_negative(tree, estimates), abs=1e-14 * max(scale, 1e2))
    assert child_sums(tree, masses) == pytest.approx(masses, abs=1e-12)
    assert masses.min() >= 0
    assert masses[0] == 1


def test_groups_are_even_and_every_user_is_as_often_in_each() -> None:
    rng = np.random.default_rng(7)
    for users, groups in ((10, 3), (2, 5), (1, 1), (0, 2)):
        sizes = np.bincount(assign_groups(users, groups, rng), minlength=groups)
        assert sizes.sum() == users
        assert np.ptp(sizes) <= 1
    drawn = np.array([assign_groups(9, 3, rng) for _ in range(3000)])
    for user in range(9):  # chi-square at 1e-6 in all
        assert stats.chisquare(np.bincount(drawn[:, user])).pvalue > 1e-6 / 9
    # The same test tells users who are dealt out in turn.
    assert stats.chisquare(np.bincount(np.arange(9)[:1].repeat(3000), minlength=3)).pvalue < 1e-6


@pytest.mark.parametrize(("side", "level"), [(2, 1), (3, 1), (3, 2), (5, 1), (4, 1)])
@pytest.mark.parametrize(("own", "other"), [(0.5, 0.1), (0.5, 1e-9), (0.3, 0.299999), (0.9, 0.5)])
def test_local_privacy_is_the_sum_over_all_reports(
    side: int, level: int, own: float, other: float
) -> None:
    part = full_tree(side, level).partition(level)
    expected = naive.privacy_of(naive.set_channel(part, own, other), side)
    assert partition_privacy(side, [part], own, other) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("own", "other"), [(0.5, 0.1), (0.5, 3e-9), (0.50000025, 0.5)])
def test_local_privacy_of_equal_parts_is_that_of_exchangeable_sets(
    own: float, other: float
) -> None:
    cells = 36
    sizes = np.convolve([1 - own, own], stats.binom.pmf(np.arange(cells), cells - 1, other))
    epsilon = np.log(own * (1 - other) / other / (1 - own))
    expected = exchangeable_privacy(cell_distances((6, 6)), epsilon, sizes)
    found = partition_privacy(6, [np.arange(cells)], own, other)
    assert found == pytest.approx(expected, rel=1e-9)


def test_local_privacy_is_the_mean_over_levels() -> None:
    tree = full_tree(5, 3)
    each = [partition_privacy(5, [tree.partition(k)], 0.5, 0.2) for k in (1, 2, 3)]
    assert levels_privacy(5, 0.5, 0.2) == pytest.approx(np.mean(each))
    assert levels_privacy(1, 0.5, 0.2) == 0


@pytest.mark.parametrize("side", [0, -1, 2.5, "3", True, 108])
def test_sides_that_are_none_or_too_long_for_a_matrix(side: object) -> None:
    with pytest.raises(InputError, match="cells must be"):
        check_side(side)  # type: ignore[arg-type]
