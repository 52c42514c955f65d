"""The quadtree against cells taken one by one, on maps that are full squares and that are not."""

import numpy as np
import pytest

from ldpspatial.release.central.pyramid import Pyramid, Quadtree
from tests.support import naive_central as naive

SHAPES = [(1, 1), (1, 2), (2, 2), (4, 4), (8, 8), (5, 3), (3, 8), (1, 7), (9, 2)]

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def place(tree: Quadtree, level: int, node: int) -> naive.Node:
    rows, columns = tree.block(level, node)
    return level, rows.start >> (tree.levels - level), columns.start >> (tree.levels - level)


@every_shape
def test_nodes_are_those_that_hold_a_cell(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    assert tree.levels == naive.depth(shape)
    for level in range(tree.levels + 1):
        nodes = tree.nodes(level)
        assert [place(tree, level, node) for node in nodes.tolist()] == naive.nodes(level, shape)
        assert (np.diff(nodes) > 0).all()


@every_shape
def test_children_are_the_nodes_below(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    for level in range(1, tree.levels + 1):
        parents = tree.nodes(level - 1)
        assert tree.children(level, parents[::-1]).tolist() == tree.nodes(level).tolist()
        for parent in parents:
            _, row, column = place(tree, level - 1, int(parent))
            assert [
                place(tree, level, node)
                for node in tree.children(level, np.array([parent])).tolist()
            ] == [n for n in naive.nodes(level, shape) if (n[1] >> 1, n[2] >> 1) == (row, column)]


@every_shape
def test_blocks_of_a_level_divide_the_map(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    for level in range(tree.levels + 1):
        covered = np.zeros(shape, int)
        for node in tree.nodes(level).tolist():
            block = covered[tree.block(level, node)]
            assert block.size == len(naive.cells_of(place(tree, level, node), shape))
            block += 1
        assert (covered == 1).all()


@every_shape
def test_sums_are_those_of_the_cells(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    dense = rng.integers(0, 2**40, shape) * rng.integers(0, 2, shape)
    cells = np.flatnonzero(dense)
    tree = Quadtree(shape)
    pyramid = Pyramid(tree, cells, dense.ravel()[cells])
    for level in range(tree.levels + 1):
        sums = pyramid.sums(level, tree.nodes(level)).tolist()
        assert sums == [naive.node_sum(dense, node) for node in naive.nodes(level, shape)]


def test_a_leaf_is_its_cell() -> None:
    tree = Quadtree((300, 200))
    cells = np.random.default_rng(2).integers(0, 300 * 200, 100)
    for cell, leaf in zip(cells.tolist(), tree.leaves(cells).tolist(), strict=True):
        rows, columns = tree.block(tree.levels, leaf)
        assert (rows.start, columns.start) == divmod(cell, 200)
        assert (rows.stop, columns.stop) == (rows.start + 1, columns.start + 1)


def test_nothing_dense_is_made_of_a_large_map() -> None:
    """2^31 x 2^31 cells, of which two hold something."""
    side = 2**31
    tree = Quadtree((side, side))
    pyramid = Pyramid(tree, np.array([5, side * side - 1]), np.array([2, 3]))
    assert tree.levels == 31
    assert pyramid.sums(1, tree.nodes(1)).tolist() == [2, 0, 0, 3]
    assert pyramid.sums(31, np.array([side * side - 1])).tolist() == [3]
