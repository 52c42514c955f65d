"""Areas, range queries and profile-likelihood intervals the slow and obvious way."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2

Array = NDArray[np.float64]
Point = tuple[float, float]


def ring_area(ring: list[Point]) -> float:
    """Shoelace formula, without sign."""
    sides = zip(ring, ring[1:] + ring[:1], strict=True)
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in sides)) / 2


def clipped(ring: list[Point], axis: int, line: float, keep_above: bool) -> list[Point]:
    """Cut a ring along one line (Sutherland and Hodgman 1974)."""
    sign = 1 if keep_above else -1
    kept: list[Point] = []
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        here, there = sign * (a[axis] - line), sign * (b[axis] - line)
        if here >= 0:
            kept.append(a)
        if here * there < 0:
            part = here / (here - there)
            kept.append((a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1])))
    return kept


def cell_shares(rings: list[list[Point]], cells: int) -> Array:
    """Share of each unit cell in the first ring without the others, which are holes in it."""
    weights = np.zeros((cells, cells))
    for row in range(cells):
        for col in range(cells):
            for number, ring in enumerate(rings):
                part = ring
                for axis, low in ((0, row), (1, col)):
                    part = clipped(part, axis, low, True)
                    part = clipped(part, axis, low + 1, False)
                weights[row, col] += ring_area(part) if number == 0 else -ring_area(part)
    return weights


def range_error(truth: Array, density: Array, rectangles: NDArray[np.int64]) -> float:
    """Mean absolute error of the shares in rectangles, cell by cell."""
    errors = []
    for south, west, north, east in rectangles:
        error = 0.0
        for row in range(south, north):
            for col in range(west, east):
                error += density[row, col] - truth[row, col]
        errors.append(abs(error))
    return float(np.mean(errors))


def profile_interval(
    matrix: Array, counts: Array, weights: Array, level: float
) -> tuple[float, float]:
    """Smallest and largest weights.f among densities that the likelihood ratio does not reject."""
    seen = counts > 0
    law, reports = matrix[seen], counts[seen]
    size = law.shape[1]
    simplex = {"type": "eq", "fun": lambda f: f.sum() - 1, "jac": lambda f: np.ones(size)}

    def likelihood(f: Array) -> float:
        return float(reports @ np.log(law @ np.maximum(f, 0)))

    def slope(f: Array) -> Array:
        return np.asarray((reports / (law @ np.maximum(f, 0))) @ law)

    options = {"ftol": 1e-13, "maxiter": 2000}
    flat = np.full(size, 1 / size)
    n = reports.sum()
    best = minimize(
        lambda f: -likelihood(f) / n, flat, jac=lambda f: -slope(f) / n, bounds=[(0, 1)] * size,
        constraints=[simplex], method="SLSQP", options=options,
    )  # fmt: skip
    least = -n * best.fun - chi2.ppf(level, 1) / 2
    likely = {"type": "ineq", "fun": lambda f: likelihood(f) - least, "jac": slope}
    ends = []
    for sign in (1, -1):
        # From some way inside: at the maximum itself the constraint has no slope to go by.
        for inside in (0.02, 0.1, 0.3):
            start = (1 - inside) * best.x + inside * flat
            found = minimize(
                lambda f, s=sign: s * weights @ f, start, jac=lambda f, s=sign: s * weights,
                bounds=[(0, 1)] * size, constraints=[simplex, likely], method="SLSQP",
                options=options,
            )  # fmt: skip
            if likelihood(found.x) > least - 1e-6:
                ends.append(float(weights @ found.x))
    return min(ends), max(ends)
