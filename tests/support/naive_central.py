"""Slow and obvious twins of discrete Laplace noise and the central releases."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from ldpspatial.places.quadtree import Quadtree
from ldpspatial.release.central.quantise import MASS
from ldpspatial.release.central.reconstruct import MeasuredLevel

Array: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Entropy: TypeAlias = Callable[[int], bytes]
Node: TypeAlias = tuple[int, int, int]  # level, row, column
Targets: TypeAlias = dict[Node, Fraction]  # of the chosen nodes


# Discrete Laplace noise


def below(bound: int, entropy: Entropy) -> int:
    bits = (bound - 1).bit_length()
    while True:
        u = int.from_bytes(entropy((bits + 7) // 8), "big") % (1 << bits)
        if u < bound:
            return u


def exponential_coin(u: int, t: int, entropy: Entropy) -> bool:
    """Heads with probability exp(-u / t)."""
    k = 1
    while below(k, entropy) == 0 and below(t, entropy) < u:
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: Fraction, entropy: Entropy) -> int:
    t, s = scale.numerator, scale.denominator
    while True:
        u = below(t, entropy)
        if not exponential_coin(u, t, entropy):
            continue
        v = 0
        while exponential_coin(1, 1, entropy):
            v += 1
        size = (u + t * v) // s
        negative = below(2, entropy) == 1
        if not (negative and size == 0):
            return -size if negative else size


# Sums


def units(visits: Iterable[int], mass: int) -> list[int]:
    """Shares of one user's visits as whole units, by largest remainder."""
    counts = list(visits)
    exact = [Fraction(mass * count, sum(counts)) for count in counts]
    rounded = [int(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (rounded[i] - exact[i], i))
    for i in by_remainder[: mass - sum(rounded)]:
        rounded[i] += 1
    return rounded


def depth(shape: tuple[int, int]) -> int:
    levels = 0
    while 2**levels < max(shape):
        levels += 1
    return levels


def cells_of(node: Node, shape: tuple[int, int]) -> list[tuple[int, int]]:
    """Cells of the map in a node of its quadtree."""
    level, row, column = node
    shift = depth(shape) - level
    return [
        (r, c)
        for r in range(shape[0])
        for c in range(shape[1])
        if (r >> shift, c >> shift) == (row, column)
    ]


def nodes(level: int, shape: tuple[int, int]) -> list[Node]:
    """Nodes of a level that hold a cell, in Z order."""
    shift = depth(shape) - level
    places = {(r >> shift, c >> shift) for r in range(shape[0]) for c in range(shape[1])}
    return [(level, *place) for place in sorted(places, key=lambda place: z_order(*place))]


def z_order(row: int, column: int) -> int:
    return int(
        "0" + "".join(a + b for a, b in zip(f"{row:016b}", f"{column:016b}", strict=True)), 2
    )


def node_sum(dense: Ints, node: Node) -> int:
    return sum(int(dense[cell]) for cell in cells_of(node, dense.shape))


def beam(dense: Ints, first: int, keep: int) -> list[tuple[list[Node], list[int], list[bool]]]:
    """Nodes looked at, their sums and which are followed, level by level, without noise."""
    found, followed = [], set(nodes(first - 1, dense.shape)) if first else {(-1, 0, 0)}
    for level in range(first, depth(dense.shape) + 1):
        looked_at = [
            (i, r, c) for i, r, c in nodes(level, dense.shape)
            if (i - 1, r >> 1, c >> 1) in followed
        ]  # fmt: skip
        sums = [node_sum(dense, node) for node in looked_at]
        best = sorted(range(len(sums)), key=lambda k: (-sums[k], k))[:keep]
        followed = {looked_at[k] for k in best}
        found.append((looked_at, sums, [node in followed for node in looked_at]))
    return found


# Reconstruction


def objective(masses: Array, targets: Targets, first: int) -> float:
    """What a map costs: all nodes of all levels, one by one."""
    rows, columns = masses.shape
    cost = 0.0
    for level in range(first, depth((rows, columns)) + 1):
        for node in nodes(level, (rows, columns)):
            inside = sum(float(masses[cell]) for cell in cells_of(node, (rows, columns)))
            cost += abs(float(targets.get(node, 0)) - inside) / (1 << level)
    return cost


def least_objective(shape: tuple[int, int], targets: Targets, first: int) -> float:
    """The linear program over all cells: P explicit, each absolute value split in two."""
    every = [n for level in range(first, depth(shape) + 1) for n in nodes(level, shape)]
    pyramid = np.zeros((len(every), shape[0] * shape[1]))
    for i, node in enumerate(every):
        for r, c in cells_of(node, shape):
            pyramid[i, r * shape[1] + c] = 2.0 ** -node[0]
    wanted = np.array([2.0 ** -node[0] * float(targets.get(node, 0)) for node in every])
    return _least(sparse.csc_array(pyramid), wanted, np.zeros(pyramid.shape[1]))


def least_objective_small(
    levels: int, targets: Targets, left_out: list[Node], first: int
) -> tuple[float, int]:
    """The program with a variable per chosen leaf and per node left out; and their number."""
    leaves = [node for node in targets if node[0] == levels]
    variables = [*leaves, *left_out]
    costs = [0.0] * len(leaves) + [2.0 ** (1 - i) - 2.0**-levels for i, _, _ in left_out]
    pyramid = np.zeros((len(targets), len(variables)))
    for i, (level, row, column) in enumerate(targets):
        for j, (deeper, r, c) in enumerate(variables):
            shift = deeper - level
            if shift >= 0 and (r >> shift, c >> shift) == (row, column):
                pyramid[i, j] = 2.0**-level
    wanted = np.array([2.0 ** -node[0] * float(target) for node, target in targets.items()])
    return _least(sparse.csc_array(pyramid), wanted, np.array(costs)), len(variables)


def programme(tree: Quadtree, levels: Sequence[MeasuredLevel]) -> tuple[Targets, list[Node]]:
    """Chosen nodes with their noisy sums in users, and nodes left out."""
    targets: Targets = {}
    left_out: list[Node] = []
    for at in levels:
        shift = tree.depth - at.level
        for number, noisy, chosen in zip(
            at.nodes.tolist(), at.noisy.tolist(), at.chosen, strict=True
        ):
            rows, columns = tree.cells_below(at.level, number)
            node = at.level, rows.start >> shift, columns.start >> shift
            if chosen:
                targets[node] = Fraction(noisy, MASS)
            else:
                left_out.append(node)
    return targets, left_out


def _least(pyramid: sparse.csc_array, wanted: Array, costs: Array) -> float:
    ones = sparse.eye(len(wanted), format="csc")
    found = linprog(
        np.concatenate([costs, np.ones(2 * len(wanted))]),
        A_eq=sparse.hstack([pyramid, ones, -ones], format="csc"),
        b_eq=wanted,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    return float(found.fun)
