"""Areas, range queries and profile-likelihood intervals the slow and obvious way."""

import numpy as np
from numpy.typing import NDArray

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
