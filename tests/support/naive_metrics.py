"""Distances between maps straight from their definitions: the obvious twins of ldpspatial.metrics.

Nothing of ldpspatial is used. Maps are small arrays of total 1; a cell is (row, column), its centre
(row * height, column * width).
"""

import itertools
import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

FloatArray: TypeAlias = npt.NDArray[np.float64]
Sides: TypeAlias = tuple[float, float]


def distance(x: tuple[int, ...], y: tuple[int, ...], ground: str, sides: Sides) -> float:
    rows, columns = abs(x[0] - y[0]) * sides[0], abs(x[1] - y[1]) * sides[1]
    return rows + columns if ground == "cityblock" else math.sqrt(rows**2 + columns**2)


def wasserstein(
    p: FloatArray,
    q: FloatArray,
    order: int,
    ground: str = "euclidean",
    sides: Sides = (1.0, 1.0),
) -> float:
    """The linear program over all pairs of cells, empty ones included, solved by HiGHS."""
    cells = list(itertools.product(range(p.shape[0]), range(p.shape[1])))
    cost = [distance(x, y, ground, sides) ** order for x in cells for y in cells]
    size = len(cells)
    marginals = np.vstack(
        [np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))]
    )
    # One of the constraints follows from the others: without it rounding cannot contradict.
    solution = linprog(
        cost,
        A_eq=marginals[:-1],
        b_eq=np.concatenate([p.ravel(), q.ravel()])[:-1],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return float(max(solution.fun, 0.0) ** (1 / order))


def line_distance(x: FloatArray, a: FloatArray, y: FloatArray, b: FloatArray, order: int) -> float:
    """W_order between weighted points on a line: carry mass from left to right."""
    if order == 1:
        return float(wasserstein_distance(x, y, a, b))
    sources, targets = sorted(zip(x, a, strict=True)), sorted(zip(y, b, strict=True))
    cost, i, j = 0.0, 0, 0
    left, right = sources[0][1], targets[0][1]
    while True:
        mass = min(left, right)
        cost += mass * abs(sources[i][0] - targets[j][0]) ** order
        left, right = left - mass, right - mass
        if left <= right:
            i += 1
            if i == len(sources):
                break
            left = sources[i][1]
        else:
            j += 1
            if j == len(targets):
                break
            right = targets[j][1]
    return float(cost ** (1 / order))


def sliced_wasserstein(
    p: FloatArray,
    q: FloatArray,
    order: int,
    directions: int,
    sides: Sides = (1.0, 1.0),
) -> float:
    total = 0.0
    for k in range(directions):
        angle = math.pi * k / directions
        line = np.array(
            [
                row * sides[0] * math.cos(angle) + column * sides[1] * math.sin(angle)
                for row in range(p.shape[0])
                for column in range(p.shape[1])
            ]
        )
        total += line_distance(line, p.ravel(), line, q.ravel(), order) ** order
    return float((total / directions) ** (1 / order))


def regularised_cost(
    p: FloatArray,
    q: FloatArray,
    regularisation: float,
    order: int,
    sides: Sides = (1.0, 1.0),
    iterations: int = 3000,
) -> float:
    """The primal value, KL term included, of the coupling that plain Sinkhorn scaling finds."""
    cells = list(itertools.product(range(p.shape[0]), range(p.shape[1])))
    cost = np.array([[distance(x, y, "euclidean", sides) ** order for y in cells] for x in cells])
    a, b = p.ravel(), q.ravel()
    kernel = np.exp(-cost / regularisation)
    left, right = np.ones(len(a)), np.ones(len(b))
    for _ in range(iterations):
        left = a / (kernel @ right)
        right = b / (kernel.T @ left)
    plan = left[:, None] * kernel * right[None, :]
    entropy = sum(
        mass * math.log(mass / (a[i] * b[j])) for (i, j), mass in np.ndenumerate(plan) if mass > 0
    )
    return float((plan * cost).sum() + regularisation * entropy)


def sinkhorn_divergence(
    p: FloatArray,
    q: FloatArray,
    regularisation: float,
    order: int,
    sides: Sides = (1.0, 1.0),
) -> float:
    def cost(x: FloatArray, y: FloatArray) -> float:
        return regularised_cost(x, y, regularisation, order, sides)

    divergence = cost(p, q) - (cost(p, p) + cost(q, q)) / 2
    return float(max(divergence, 0.0) ** (1 / order))
