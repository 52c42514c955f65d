"""Slow, obvious twins of the quadtrees and grids of the local family."""

from collections.abc import Callable
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from ldpspatial.privacy.local_privacy import cell_distances
from ldpspatial.release.local.trees.halving_tree import HalvingTree

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Rectangle = tuple[int, int, int, int]


def cells_of(rectangle: Rectangle) -> set[tuple[int, int]]:
    """Return the cells of (first row, end row, first column, end column)."""
    top, bottom, left, right = rectangle
    return set(product(range(top, bottom), range(left, right)))


def children_of(rectangle: Rectangle) -> list[Rectangle]:
    """Halve rows and columns, the first half the larger; a single one is not cut."""
    top, bottom, left, right = rectangle

    def parts(first: int, end: int) -> list[tuple[int, int]]:
        if end - first == 1:
            return [(first, end)]
        middle = first + -(-(end - first) // 2)
        return [(first, middle), (middle, end)]

    return [(*rows, *columns) for rows in parts(top, bottom) for columns in parts(left, right)]


def least_squares(tree: HalvingTree, values: Array, variances: Array) -> Array:
    """Fit leaf values to all nodes but the root by weighted least squares, their total being 1."""
    at = [cells_of(tuple(bounds)) for bounds in tree.bounds.tolist()]
    inside = np.array([[float(at[leaf] <= node) for leaf in tree.leaves] for node in at])
    # A repeated rectangle is in no other leaf, so "subset" names the leaves below a node.
    weights = 1 / variances[1:]
    normal = inside[1:].T @ (weights[:, None] * inside[1:])
    right = inside[1:].T @ (weights * values[1:])
    ones = np.ones((1, len(tree.leaves)))
    system = np.block([[normal, ones.T], [ones, np.zeros((1, 1))]])
    return np.asarray(inside @ np.linalg.solve(system, np.append(right, 1.0))[:-1])


def norm_sub(values: Array, mass: float) -> Array:
    """Subtract from the positive values what they have too much, again and again."""
    kept = np.array(values, np.float64)
    positive = np.ones(len(kept), bool)
    while True:
        kept[positive] += (mass - kept[positive].sum()) / positive.sum()
        if (kept[positive] >= 0).all():
            return kept
        positive &= kept > 0
        kept[~positive] = 0.0


def non_negative(tree: HalvingTree, estimates: Array) -> Array:
    """Norm-Sub the children of one node after another, from the root down."""
    masses = np.zeros(len(estimates))
    masses[0] = 1.0
    for node in range(len(estimates)):
        children = [k for k in range(1, len(estimates)) if tree.parents[k] == node]
        if children and masses[node] > 0:
            masses[children] = norm_sub(estimates[children], masses[node])
    return masses


def grow(
    side: int, rounds: int, share: Callable[[int, Rectangle], float], variance: float
) -> dict[Rectangle, float]:
    """Return AHEAD's leaves and the mean of their frequencies; every round has one variance."""
    leaves: dict[Rectangle, list[float]] = {(0, side, 0, side): []}
    fresh = [(0, side, 0, side)]
    for number in range(rounds):
        wanted = [
            leaf
            for leaf in fresh
            if number == 0 or (len(cells_of(leaf)) > 1 and leaves[leaf][0] > sqrt(5 * variance))
        ]
        fresh = [child for leaf in wanted for child in children_of(leaf)]
        for leaf in wanted:
            del leaves[leaf]
        leaves.update({child: [] for child in fresh})
        for leaf, estimates in leaves.items():
            estimates.append(share(number, leaf))
    return {leaf: float(np.mean(estimates)) for leaf, estimates in leaves.items()}


def agreed_sums(line: Array, both: Array, above: Ints) -> Array:
    """Return the sums over coarse ranges that minimise the weighted squared change, total 1."""
    coarse = len(both)
    sums = np.array([line[above == k].sum() for k in range(coarse)])
    terms = np.array([float((above == k).sum()) for k in range(coarse)])

    def change(agreed: Array) -> float:
        # Shared evenly, a difference of a sum of k terms changes their squares by diff^2 / k.
        return float(
            ((agreed - sums) ** 2 / terms).sum() + ((agreed - both.sum(1)) ** 2).sum() / coarse
        )

    total = {"type": "eq", "fun": lambda agreed: agreed.sum() - 1}
    start = np.full(coarse, 1 / coarse)
    found = optimize.minimize(change, start, constraints=total, options={"ftol": 1e-15})
    return np.asarray(found.x)


def response_matrix(
    side: int, grids: list[tuple[Ints, Array]], tolerance: float
) -> tuple[Array, int]:
    """Weighted update on the map's own cells: grids are (part of each cell, frequencies)."""
    matrix = np.full(side * side, 1 / side**2)
    change, iterations = 1.0, 0
    while change >= tolerance and iterations < 100:
        before, iterations = matrix.copy(), iterations + 1
        for part, frequencies in grids:
            for k, frequency in enumerate(frequencies):
                mass = matrix[part == k].sum()
                if mass > 0:
                    matrix[part == k] *= frequency / mass
            matrix /= matrix.sum()
        change = np.abs(matrix - before).sum()
    return matrix.reshape(side, side), iterations


def set_channel(part: Ints, own: float, other: float) -> Array:
    """Return the (sets, cells) probabilities of all sets of parts; set k holds the bits of k."""
    parts = int(part.max()) + 1
    member = (np.arange(2**parts)[:, None] >> np.arange(parts)) & 1
    columns = []
    for k in range(parts):
        probability = np.full(parts, other)
        probability[k] = own
        columns.append(np.where(member, probability, 1 - probability).prod(axis=1))
    return np.stack(columns, axis=1)[:, part]


def hashing_channel(part: Ints, keep: float, buckets: int) -> Array:
    """Return the (functions and hashes, cells) probabilities of OLH with all functions."""
    parts = int(part.max()) + 1
    rows = []
    for function in product(range(buckets), repeat=parts):
        for reported in range(buckets):
            same = np.array(function)[part] == reported
            rows.append(np.where(same, keep, (1 - keep) / (buckets - 1)) / buckets**parts)
    return np.array(rows)


def privacy_of(channel: Array, side: int) -> float:
    """Return local privacy by summing over all reports and pairs of cells."""
    joint = channel / side**2
    total = 0.0
    for row in joint:
        if row.sum() > 0:
            total += row @ cell_distances((side, side)) @ row / row.sum()
    return float(total)


def k_rr_projected(truth: Array, n: int, epsilon: float, rng: np.random.Generator) -> Array:
    """Project the frequencies of n k-RR reports of cells: what trees compete with."""
    cells = truth.size
    keep, other = (np.exp(e) / (np.exp(epsilon) + cells - 1) for e in (epsilon, 0.0))
    counts = rng.multinomial(n, other + (keep - other) * truth.ravel())
    return norm_sub((counts / n - other) / (keep - other), 1.0).reshape(truth.shape)


def rectangle_error(found: Array, truth: Array, rng: np.random.Generator) -> float:
    """Return the mean absolute error of 200 random rectangles of half the side."""
    half = len(truth) // 2
    corners = rng.integers(0, len(truth) - half + 1, (200, 2))
    differences = found - truth
    errors = [abs(differences[r : r + half, c : c + half].sum()) for r, c in corners]
    return float(np.mean(errors))
