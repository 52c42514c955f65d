"""Releases of trajectories, slow and obvious: paths, laws of single draws, whole reports."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import atan2, ceil, exp, floor, hypot, pi

import numpy as np

from ldpspatial.places.users import Trails

Cell = tuple[int, int]


def trails(*users: list[int]) -> Trails:
    """Return trajectories given as lists of cells."""
    starts = np.cumsum([0, *(len(user) for user in users)])
    return Trails(starts.astype(np.int64), np.array([c for user in users for c in user], np.int64))


def king_path(cells: list[int], side: int, most: int) -> list[int]:
    """Return the cells of a trajectory with straight lines of king's moves between visits."""
    path = [cells[0]]
    for before, after in pairwise(cells):
        (r, c), (to_r, to_c) = divmod(before, side), divmod(after, side)
        steps = max(abs(to_r - r), abs(to_c - c), 1)
        for step in range(1, steps + 1):
            row = floor(r + Fraction(step * (to_r - r), steps) + Fraction(1, 2))
            column = floor(c + Fraction(step * (to_c - c), steps) + Fraction(1, 2))
            path.append(row * side + column)
    return path[:most]


def moves(side: int) -> list[tuple[int, int]]:
    """Return all pairs of cells that touch, the same cell twice included, in row order."""
    cells = range(side * side)
    return [
        (a, b)
        for a in cells
        for b in cells
        if abs(a // side - b // side) <= 1 and abs(a % side - b % side) <= 1
    ]


def randomised_response(size: int, epsilon: float) -> list[list[float]]:
    """Return the matrix of k-RR, [value][report]."""
    total = exp(epsilon) + size - 1
    return [[(exp(epsilon) if x == y else 1) / total for y in range(size)] for x in range(size)]


@cache
def nearness(cell: Cell, candidates: tuple[Cell, ...], epsilon: float) -> dict[Cell, float]:
    """Return the law of the exponential mechanism, the score the negative distance."""
    most = max(_distance(a, b) for a in candidates for b in candidates)
    weights = [exp(-epsilon * _distance(y, cell) / (2 * most)) if most else 1 for y in candidates]
    return {y: w / sum(weights) for y, w in zip(candidates, weights, strict=True)}


def sector(cell: Cell, pivot: Cell, sectors: int) -> int:
    """Return in which of the sectors around a pivot a cell lies."""
    turns = atan2(cell[0] - pivot[0], cell[1] - pivot[1]) / (2 * pi)
    return floor(round(turns * sectors + 0.5, 9)) % sectors


def block(centre: Cell, radius: int, side: int) -> tuple[Cell, ...]:
    """Return the cells of a region."""
    near = [range(max(x - radius, 0), min(x + radius, side - 1) + 1) for x in centre]
    return tuple(product(*near))


def region_law(points: list[Cell], sizes: list[int], side: int, epsilon: float) -> dict:
    """Return the law of (centre, index of the radius)."""
    everywhere = tuple(product(range(side), repeat=2))
    mean = tuple(round(Fraction(sum(p[axis] for p in points), len(points))) for axis in (0, 1))
    law = {}
    for centre, chance in nearness(mean, everywhere, epsilon / 2).items():
        far = max(abs(x - y) for point in points for x, y in zip(point, centre, strict=True))
        true = next(k for k, size in enumerate(sizes) if size >= far)
        for size, heard in enumerate(randomised_response(len(sizes), epsilon / 2)[true]):
            law[centre, size] = chance * heard
    return law


def pair_law(
    points: list[Cell], first: int, cells: tuple[Cell, ...], sectors: int, shares: list[float]
) -> dict[tuple[Cell, int, Cell], float]:
    """Return the law of (pivot, sector, target) in a copy of a trajectory of two points."""
    pivot_at, target_at = points[first], points[1 - first]
    law = {}
    for pivot, chance in nearness(pivot_at, cells, shares[0]).items():
        responses = randomised_response(sectors, shares[1])[sector(target_at, pivot, sectors)]
        for heard, response in enumerate(responses):
            towards = tuple(y for y in cells if y == pivot or sector(y, pivot, sectors) == heard)
            for target, last in nearness(target_at, towards or cells, shares[2]).items():
                law[pivot, heard, target] = chance * response * last
    return law


def pairs_of_cells(side: int) -> Iterator[list[Cell]]:
    """Yield all trajectories of two points."""
    for pair in product(product(range(side), repeat=2), repeat=2):
        yield list(pair)


def public_radii(side: int) -> list[int]:
    """Return the radii of regions: an eighth, a quarter and half of the side, and all of it."""
    return sorted({ceil(side / 8), ceil(side / 4), ceil(side / 2), max(side - 1, 1)})


def _distance(a: Cell, b: Cell) -> float:
    return hypot(a[0] - b[0], a[1] - b[1])
