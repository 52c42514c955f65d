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


def parts_within(
    people: Array, covered: Array, sides: tuple[float, float, float, float], cells: int
) -> Array:
    """Part of each cell's people in a rectangle, place by place; a place is a finer cell.

    The area of a cell counts for one place more, and alone where there is no other.
    """
    finer = len(people) // cells
    south, west, north, east = sides
    parts = covered.copy()
    for row in range(cells):
        for col in range(cells):
            total = squares = inside = 0.0
            for i in range(row * finer, (row + 1) * finer):
                for j in range(col * finer, (col + 1) * finer):
                    y, x = (i + 0.5) / finer, (j + 0.5) / finer
                    total += people[i, j]
                    squares += people[i, j] ** 2
                    if south < y < north and west < x < east:
                        inside += people[i, j]
            if total > 0:
                places = total * total / squares
                parts[row, col] = (places * inside / total + covered[row, col]) / (places + 1)
    whole = (covered == 0) | (covered == 1)
    parts[whole] = covered[whole]
    return parts
