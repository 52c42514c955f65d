"""The quadtree against cells taken one by one, on maps that are full squares and that are not."""

import numpy as np
import pytest

from ldpspatial.errors import InputError
from ldpspatial.places.quadtree import (
    ROOT,
    Quadtree,
    is_prefix,
    node_of,
    prefix_of,
    quadrants,
)
from tests.support import naive_central as naive

SHAPES = [(1, 1), (1, 2), (2, 2), (4, 4), (8, 8), (5, 3), (3, 8), (1, 7), (9, 2)]

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def place(tree: Quadtree, level: int, node: int) -> naive.Node:
    rows, columns = tree.cells_below(level, node)
    return level, rows.start >> (tree.depth - level), columns.start >> (tree.depth - level)


@every_shape
def test_nodes_are_those_that_hold_a_cell(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    assert tree.depth == naive.depth(shape)
    for level in range(tree.depth + 1):
        nodes = tree.numbers(level)
        assert [place(tree, level, node) for node in nodes.tolist()] == naive.nodes(level, shape)
        assert (np.diff(nodes) > 0).all()


@every_shape
def test_children_are_the_nodes_below(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    for level in range(1, tree.depth + 1):
        parents = tree.numbers(level - 1)
        assert tree.numbers_below(level, parents[::-1]).tolist() == tree.numbers(level).tolist()
        for parent in parents:
            _, row, column = place(tree, level - 1, int(parent))
            assert [
                place(tree, level, node)
                for node in tree.numbers_below(level, np.array([parent])).tolist()
            ] == [n for n in naive.nodes(level, shape) if (n[1] >> 1, n[2] >> 1) == (row, column)]


@every_shape
def test_blocks_of_a_level_divide_the_map(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    for level in range(tree.depth + 1):
        covered = np.zeros(shape, int)
        for node in tree.numbers(level).tolist():
            block = covered[tree.cells_below(level, node)]
            assert block.size == len(naive.cells_of(place(tree, level, node), shape))
            block += 1
        assert (covered == 1).all()


def test_a_leaf_is_its_cell() -> None:
    tree = Quadtree((300, 200))
    cells = np.random.default_rng(2).integers(0, 300 * 200, 100)
    for cell, leaf in zip(cells.tolist(), tree.leaf_numbers(cells).tolist(), strict=True):
        rows, columns = tree.cells_below(tree.depth, leaf)
        assert (rows.start, columns.start) == divmod(cell, 200)
        assert (rows.stop, columns.stop) == (rows.start + 1, columns.start + 1)


@every_shape
def test_a_node_is_held_if_it_has_a_cell(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    for level in range(tree.depth + 2):
        known = set(naive.nodes(level, shape)) if level <= tree.depth else set()
        around = range(-1, 2**level + 1)
        assert {(level, r, c) for r in around for c in around if tree.holds((level, r, c))} == known
    assert not tree.holds((-1, 0, 0))


@every_shape
def test_number_prefix_and_place_name_the_same_node(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    for level in range(1, tree.depth + 1):
        for number in tree.numbers(level).tolist():
            node = place(tree, level, number)
            assert int(prefix_of(node), 4) == number
            assert node_of(prefix_of(node)) == node
            assert node in quadrants((level - 1, node[1] // 2, node[2] // 2))


@every_shape
def test_areas_and_index_count_the_cells_of_each_node(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    for level in range(tree.depth + 1):
        index = tree.index(np.arange(shape[0] * shape[1]), level)
        areas = tree.areas(level)
        assert areas.shape == tree.sides(level)
        assert np.bincount(index, minlength=areas.size).tolist() == areas.ravel().tolist()


def test_children_outside_of_the_map_do_not_exist() -> None:
    assert Quadtree((3, 3)).children((1, 1, 1)) == ((2, 2, 2),)
    assert Quadtree((4, 4)).children(ROOT) == quadrants(ROOT)


def test_what_is_no_prefix_is_told() -> None:
    assert all(map(is_prefix, ["", "0123", "3" * 14]))
    assert not any(map(is_prefix, ["4", "3" * 15, 12, None]))


def test_bad_shapes_and_levels_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"shape must be two whole numbers from 1 on, .* got \(0, 3\)"
    ):
        Quadtree((0, 3))
    for level in (-1, 3):
        with pytest.raises(InputError, match="level must be a whole number from 0 to 2, got"):
            Quadtree((4, 4)).block(level)


# --- even trees


def ranges(side: int, span: int, level: int) -> dict[int, list[int]]:
    """Return the cells of each node along an axis, one cell at a time."""
    found: dict[int, list[int]] = {}
    for cell in range(side):
        found.setdefault(cell * 2**level // span, []).append(cell)
    return found


@every_shape
@pytest.mark.parametrize("even", [False, True])
def test_all_levels_are_pooled_as_each_by_itself(shape: tuple[int, int], even: bool) -> None:
    tree = Quadtree(shape, even=even)
    values = np.random.default_rng(4).random(shape)
    for over in (np.add, np.minimum, np.maximum):
        grids = tree.pooled_levels(values, over)
        assert len(grids) == tree.depth + 1
        for level, grid in enumerate(grids):
            nodes = tree.numbers(level)
            alone = tree.pooled(level, nodes, values, over)
            assert grid.ravel()[tree.positions(level, nodes)] == pytest.approx(alone, rel=1e-12)


@every_shape
def test_even_trees_cut_the_map_into_nodes_of_like_sides(shape: tuple[int, int]) -> None:
    tree, span = Quadtree(shape, even=True), max(shape)
    assert tree.depth == Quadtree(shape).depth
    cells = np.arange(shape[0] * shape[1])
    values = np.random.default_rng(3).random(shape)
    for level in range(tree.depth + 1):
        rows, columns = (ranges(side, span, level) for side in shape)
        nodes = tree.numbers(level)
        expected = {(r, c): (rows[r], columns[c]) for r in rows for c in columns}
        found = {node_of(digits(int(node), level))[1:]: node for node in nodes}
        assert found.keys() == expected.keys()
        assert tree.sides(level) == (len(rows), len(columns))
        around = range(-1, 2**level + 1)
        assert {(r, c) for r in around for c in around if tree.holds((level, r, c))} == set(found)
        areas = tree.areas(level).ravel()[tree.positions(level, nodes)]
        sums = tree.pooled(level, nodes, values)
        map_ = tree.spread(level, nodes, sums / areas)
        for place, (of_rows, of_columns) in expected.items():
            at = int(np.flatnonzero(nodes == found[place])[0])
            inside = tree.cells_below(level, int(found[place]))
            assert [list(range(s.start, s.stop)) for s in inside] == [of_rows, of_columns]
            assert areas[at] == len(of_rows) * len(of_columns)
            assert sums[at] == pytest.approx(values[inside].sum())
            assert map_[inside] == pytest.approx(sums[at] / areas[at])
        index = tree.index(cells, level)
        leaves = tree.leaf_numbers(cells) >> 2 * (tree.depth - level)
        assert (nodes[np.argsort(tree.positions(level, nodes))][index] == leaves).all()
        if level:
            assert tree.numbers_below(level, tree.numbers(level - 1)).tolist() == nodes.tolist()
        longest = max(len(each) for axis in (rows, columns) for each in axis.values())
        assert longest <= -(-span // 2**level)


def digits(number: int, level: int) -> str:
    return "".join(str(number >> 2 * place & 3) for place in range(level - 1, -1, -1))


@pytest.mark.parametrize("side", [1, 2, 4, 16])
def test_even_trees_of_powers_of_two_are_the_others(side: int) -> None:
    even, other = Quadtree((side, side), even=True), Quadtree((side, side))
    cells = np.arange(side * side)
    assert (even.leaf_numbers(cells) == other.leaf_numbers(cells)).all()
    for level in range(other.depth + 1):
        assert (even.areas(level) == other.areas(level)).all()
        assert (even.index(cells, level) == other.index(cells, level)).all()
