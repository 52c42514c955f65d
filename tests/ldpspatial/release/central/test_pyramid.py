"""Sums in the nodes of a quadtree, against cells taken one by one."""

import numpy as np
import pytest

from ldpspatial.places.quadtree import Quadtree
from ldpspatial.release.central.pyramid import Pyramid
from tests.support import naive_central as naive

SHAPES = [(1, 1), (1, 2), (2, 2), (4, 4), (8, 8), (5, 3), (3, 8), (1, 7), (9, 2)]

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


@every_shape
def test_sums_are_those_of_the_cells(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    dense = rng.integers(0, 2**40, shape) * rng.integers(0, 2, shape)
    cells = np.flatnonzero(dense)
    tree = Quadtree(shape)
    pyramid = Pyramid(tree, cells, dense.ravel()[cells])
    for level in range(tree.depth + 1):
        sums = pyramid.sums(level, tree.numbers(level)).tolist()
        assert sums == [naive.node_sum(dense, node) for node in naive.nodes(level, shape)]


def test_nothing_dense_is_made_of_a_large_map() -> None:
    """2^31 x 2^31 cells, of which two hold something."""
    side = 2**31
    tree = Quadtree((side, side))
    pyramid = Pyramid(tree, np.array([5, side * side - 1]), np.array([2, 3]))
    assert tree.depth == 31
    assert pyramid.sums(1, tree.numbers(1)).tolist() == [2, 0, 0, 3]
    assert pyramid.sums(31, np.array([side * side - 1])).tolist() == [3]
