"""Forgeries that are optimised against a map, and the fits that they aim at; dense and slow."""

import numpy as np
import ot
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]


def fitted(matrix: Array, law: Array, steps: int = 4_000) -> Array:
    """Return the maximum likelihood fit of a law of reports, by plain EM."""
    density = np.full(matrix.shape[1], 1 / matrix.shape[1])
    for _ in range(steps):
        density = density * (matrix.T @ (law / (matrix @ density)))
    return density / density.sum()


def costs(side: int) -> Array:
    """Return squared distances of all pairs of cells."""
    places = np.stack(np.divmod(np.arange(side * side), side), 1)
    return ((places[:, None] - places) ** 2).sum(-1).astype(float)


def prices(density: Array, moved: Array, cost: Array) -> Array:
    """Return what a unit of mass adds to squared W2, by cell where it is added."""
    values = ot.emd(density, moved / moved.sum(), cost, log=True)[1]["u"]
    return np.asarray((cost - values[:, None])[density > 0].min(0))


def fitting(matrix: Array, density: Array, share: float, rounds: int = 6) -> list[Array]:
    """Return forgeries that the model fits exactly, by alternating maximisation.

    Given the prices of cells the best such map is a linear program; its transport gives new prices.
    It starts from squared distances to the corners, and from chance.
    """
    law = matrix @ density
    side = round(len(density) ** 0.5)
    cost = costs(side)
    rng = np.random.default_rng(1)
    starts = [cost[0], cost[-1], rng.standard_normal(len(density))]
    found = []
    for start in starts:
        weights = start
        for _ in range(rounds):
            best = linprog(
                -weights,
                A_ub=-matrix,
                b_ub=-(1 - share) * law,
                A_eq=np.ones((1, len(density))),
                b_eq=[1],
            ).x.clip(0)
            weights = prices(density, best, cost)
        forged = np.maximum(matrix @ (best / best.sum()) - (1 - share) * law, 0)
        found.append(forged / forged.sum())
    return found


def climbed(matrix: Array, density: Array, share: float, forged: Array, rounds: int = 5) -> Array:
    """Return a forgery improved by moving reports to the output cell of steepest ascent."""
    law = (1 - share) * (matrix @ density)
    cost = costs(round(len(density) ** 0.5))

    def reached(sent: Array) -> tuple[float, Array]:
        moved = fitted(matrix, law + share * sent, 1_500)
        return float(ot.emd2(density, moved / moved.sum(), cost)), moved

    value, moved = reached(forged)
    for _ in range(rounds):
        weights = prices(density, moved, cost)
        kept = moved > 1e-9
        part = matrix[:, kept]
        predicted = matrix @ moved
        seen = (law + share * forged) / predicted**2
        curvature = part.T @ (part * seen[:, None])
        ridge = 1e-9 * np.trace(curvature) / kept.sum()
        wanted = weights[kept] - weights @ moved
        slope = part @ np.linalg.solve(curvature + ridge * np.eye(kept.sum()), wanted) / predicted
        corner = np.eye(len(forged))[slope.argmax()]
        tries = [(1 - step) * forged + step * corner for step in (1.0, 0.3, 0.05)]
        best = max(tries, key=lambda sent: reached(sent)[0])
        if reached(best)[0] <= value:
            break
        forged = best
        value, moved = reached(forged)
    return forged
