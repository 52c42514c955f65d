"""Slow, obvious twins of ldpspatial.planning.rehearsal: people one by one, transport as an LP."""

from math import sqrt

import numpy as np
from scipy.optimize import linprog


def people_on_grid(points: np.ndarray, d: int) -> tuple[np.ndarray, float, float]:
    """Return truth, resolution and drift of points in the unit square, lengths in its sides."""
    groups: dict[tuple[int, int], list[np.ndarray]] = {}
    for point in points:
        cell = tuple(min(int(z * d), d - 1) for z in point)
        groups.setdefault(cell, []).append(point - (np.array(cell) + 0.5) / d)  # type: ignore[arg-type]
    truth, spread, common = np.zeros((d, d)), 0.0, 0.0
    for cell, offsets in groups.items():
        truth[cell] = len(offsets) / len(points)
        spread += sum(float(o @ o) for o in offsets) / len(points)
        mean = np.mean(offsets, axis=0)
        common += truth[cell] * float(mean @ mean)
    return truth, sqrt(spread), sqrt(common)


def w2_to_cell_map(points: np.ndarray, density: np.ndarray) -> float:
    """Return W2 between equal masses at points of the unit square and a map on cell centres."""
    n, d = len(points), len(density)
    centers = (np.array([(r, c) for r in range(d) for c in range(d)]) + 0.5) / d
    cost = ((points[:, None] - centers[None]) ** 2).sum(axis=2)
    sent = np.kron(np.eye(n), np.ones((1, d * d)))
    received = np.kron(np.ones((1, n)), np.eye(d * d))
    masses = np.concatenate([np.full(n, 1 / n), density.ravel()])
    # One constraint too many: the totals are equal.
    solved = linprog(
        cost.ravel(), A_eq=np.vstack([sent, received])[:-1], b_eq=masses[:-1], method="highs"
    )
    assert solved.success
    return sqrt(max(float(solved.fun), 0.0))
