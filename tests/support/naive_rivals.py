"""Slow and obvious twins of the central rivals: cells one by one, with noise that is given.

``noise`` yields numbers in the order in which the releases draw them. Masses are whole units.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import ceil, log, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests.support.naive_central import Node, cells_of, depth, node_sum, nodes

Array: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Cell: TypeAlias = tuple[int, int]
Region: TypeAlias = list[Cell]


def even_map(regions: Sequence[Region], masses: Sequence[float], shape: tuple[int, int]) -> Array:
    """Masses over their cells, negatives as zero, in all 1; uniform where there is no mass."""
    found = np.zeros(shape)
    for region, mass in zip(regions, masses, strict=True):
        for cell in region:
            found[cell] = max(float(mass), 0.0) / len(region)
    return found / found.sum() if found.any() else np.full(shape, 1 / found.size)


def nearest_map(masses: Array) -> Array:
    """The shift by bisection that keeps the sum when what falls below zero is zero."""
    total = float(masses.sum())
    if total <= 0:
        return np.full(masses.shape, 1 / masses.size)
    low, high = 0.0, float(masses.max())
    for _ in range(200):
        middle = (low + high) / 2
        if sum(max(mass - middle, 0.0) for mass in masses.ravel().tolist()) > total:
            low = middle
        else:
            high = middle
    return np.maximum(masses - low, 0) / np.maximum(masses - low, 0).sum()


# Grids


def rectangles(cells: Region, parts: int) -> list[Region]:
    """Cells of a rectangle in parts x parts rectangles, row by row from the south-west."""
    rows, columns = ([cell[axis] for cell in cells] for axis in (0, 1))
    south, west = min(rows), min(columns)
    height, width = max(rows) - south + 1, max(columns) - west + 1
    found: dict[Cell, Region] = {}
    for row, column in sorted(cells):
        down = (row - south) * min(parts, height) // height
        across = (column - west) * min(parts, width) // width
        found.setdefault((down, across), []).append((row, column))
    return [found[place] for place in sorted(found)]


def every_cell(shape: tuple[int, int]) -> Region:
    return [(row, column) for row in range(shape[0]) for column in range(shape[1])]


def mass_in(dense: Ints, region: Region) -> int:
    return sum(int(dense[cell]) for cell in region)


def uniform_grid(dense: Ints, parts: int, noise: Iterator[int]) -> Array:
    regions = rectangles(every_cell(dense.shape), parts)
    masses = [mass_in(dense, region) + next(noise) for region in regions]
    return even_map(regions, masses, dense.shape)


def adaptive_grid(
    dense: Ints, parts: int, cuts: Callable[[int], int], share: float, noise: Iterator[int]
) -> Array:
    """The share is what a part's noise has of the variance of a block's, both rounds together."""
    blocks = rectangles(every_cell(dense.shape), parts)
    coarse = [mass_in(dense, block) + next(noise) for block in blocks]
    inner = [rectangles(block, cuts(mass)) for block, mass in zip(blocks, coarse, strict=True)]
    regions: list[Region] = []
    masses: list[float] = []
    for block_mass, parts_of in zip(coarse, inner, strict=True):
        fine = [mass_in(dense, part) + next(noise) for part in parts_of]
        # The mean of two numbers of the same people, by inverse variances; the sum has k of these.
        of_block, of_sum = 1 - share, len(fine) * share
        mean = (block_mass / of_block + sum(fine) / of_sum) / (1 / of_block + 1 / of_sum)
        masses += [mass + (mean - sum(fine)) / len(fine) for mass in fine]
        regions += parts_of
    return even_map(regions, masses, dense.shape)


# Trees


def quadtree(dense: Ints, variances: Sequence[float], noise: Iterator[int]) -> Array:
    """Weighted least squares by a dense matrix: a row for each sum, a column for each leaf."""
    last = len(variances) - 1
    leaves = nodes(last, dense.shape)
    rows, wanted = [], []
    for level, variance in enumerate(variances):
        for node in nodes(level, dense.shape):
            below = [float(_holds(node, leaf)) for leaf in leaves]
            rows.append(np.array(below) / sqrt(variance))
            wanted.append((node_sum(dense, node) + next(noise)) / sqrt(variance))
    masses = np.linalg.lstsq(np.array(rows), np.array(wanted))[0]
    return even_map([cells_of(leaf, dense.shape) for leaf in leaves], masses.tolist(), dense.shape)


def _holds(node: Node, leaf: Node) -> bool:
    shift = leaf[0] - node[0]
    return (leaf[1] >> shift, leaf[2] >> shift) == node[1:]


def quadrants(node: Node, shape: tuple[int, int]) -> list[Node]:
    return [other for other in nodes(node[0] + 1, shape) if _holds(node, other)]


def privtree(dense: Ints, step: int, noise: Iterator[int]) -> list[Node]:
    """Leaves, level by level: nodes are divided whose biased count with noise is above zero."""
    leaves: list[Node] = []
    level = nodes(0, dense.shape)
    while level:
        below: list[Node] = []
        for node in level:
            biased = max(node_sum(dense, node) - node[0] * step, -step)
            if node[0] < depth(dense.shape) and biased + next(noise) > 0:
                below += quadrants(node, dense.shape)
            else:
                leaves.append(node)
        level = below
    return leaves


def more_than(bound: int, scale: float) -> float:
    """ln P(X > bound) for discrete Laplace X: of a tail, or of what a tail leaves."""
    a = 2.718281828459045 ** (-1 / scale)
    if bound >= 0:
        return -(bound + 1) / scale - log(1 + a)
    return float(np.log1p(-(a ** (-bound)) / (1 + a)))


def privtree_loss(
    before: Ints,
    after: Ints,
    scale: float,
    step: int,
    node: Node = (0, 0, 0),
    first: int = 0,
    threshold: int = 0,
) -> tuple[float, float]:
    """The most and the least of ln(P(tree | after) / P(tree | before)) over all trees of a node.

    All nodes of level ``first`` are looked at, and the threshold is taken from all counts.
    P(X <= -b) = P(X > b - 1), by symmetry.
    """
    if node[0] == depth(before.shape):
        return 0.0, 0.0
    below = [
        privtree_loss(before, after, scale, step, other, first, threshold)
        for other in quadrants(node, before.shape)
    ]
    if node[0] < first:
        return sum(most for most, _ in below), sum(least for _, least in below)
    bias = threshold + (node[0] - first) * step
    biased = [max(node_sum(s, node) - bias, -step) for s in (before, after)]
    leaf = more_than(biased[1] - 1, scale) - more_than(biased[0] - 1, scale)
    split = more_than(-biased[1], scale) - more_than(-biased[0], scale)
    most = max(leaf, split + sum(most for most, _ in below))
    least = min(leaf, split + sum(least for _, least in below))
    return most, least


# Partition


def above_mean(values: Sequence[int]) -> int:
    mean = Fraction(sum(values), len(values))
    return int(sum((value - mean for value in values if value > mean), Fraction(0)))


def partitions(node: Node, shape: tuple[int, int]) -> Iterator[list[Node]]:
    """Every way to cover a node by nodes: itself, or those of its quadrants."""
    yield [node]
    ways: list[list[Node]] = [[]]
    if node[0] < depth(shape):
        for other in quadrants(node, shape):
            ways = [[*way, *more] for way in ways for more in partitions(other, shape)]
        yield from ways


# Wavelets


def haar_rows(size: int) -> list[list[int]]:
    """The sum, then for each dyadic interval its first half less its second, coarse to fine."""
    rows = [[1] * size]
    length = size
    while length > 1:
        half = length // 2
        for start in range(0, size, length):
            row = [0] * size
            row[start : start + half] = [1] * half
            row[start + half : start + length] = [-1] * half
            rows.append(row)
        length = half
    return rows


def tensor_rows(rows: int, columns: int) -> Ints:
    """All products of a row pattern and a column pattern, over the cells of a map."""
    return np.array([np.outer(a, b).ravel() for a in haar_rows(rows) for b in haar_rows(columns)])


def square_rows(side: int) -> Ints:
    """The sum, then three patterns of signs in each square of a quadtree, coarse to fine."""
    rows = [np.ones((side, side), np.int64)]
    length = side
    while length > 1:
        half = length // 2
        for signs in (((1, 1), (-1, -1)), ((1, -1), (1, -1)), ((1, -1), (-1, 1))):
            for south in range(0, side, length):
                for west in range(0, side, length):
                    row = np.zeros((side, side), np.int64)
                    for down in range(length):
                        for across in range(length):
                            sign = signs[down // half][across // half]
                            row[south + down, west + across] = sign
                    rows.append(row)
        length = half
    return np.array([row.ravel() for row in rows])


def cuts_of(people: float, epsilon: float, c: float) -> int:
    return max(1, ceil(sqrt(max(people, 0.0) * epsilon / c)))
