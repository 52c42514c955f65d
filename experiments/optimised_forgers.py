"""Forgeries that are optimised against a map, and the fits that they aim at; dense and slow."""

import numpy as np
import ot
from numpy.typing import NDArray
from scipy.optimize import linprog

from ldpspatial import StampChannel
from ldpspatial.estimation.influence import most_likely

Array = NDArray[np.float64]

SETTLING = 600  # steps of SQUAREM


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
        slope = _slope(matrix, law + share * forged, moved, weights)
        corner = np.eye(len(forged))[slope.argmax()]
        tries = [(1 - step) * forged + step * corner for step in (1.0, 0.3, 0.05)]
        best = max(tries, key=lambda sent: reached(sent)[0])
        if reached(best)[0] <= value:
            break
        forged = best
        value, moved = reached(forged)
    return forged


def swayed(
    channel: StampChannel,
    density: Array,
    share: float,
    weights: Array,
    forged: Array,
    rounds: int = 30,
) -> tuple[Array, Array]:
    """Return a forgery whose fit has a larger share of a region, and the fit, by steepest ascent.

    Each step moves a part of what is sent to the output cell that adds most to weights.f.
    """
    matrix = channel.matrix()
    law = (1 - share) * (matrix @ density)

    def reached(sent: Array, near: Array) -> Array:
        counts = np.zeros(channel.output_shape)
        counts[channel.support] = law + share * sent
        start = 0.9 * near + 0.1 / near.size  # EM fills no cell that is empty
        fit = most_likely(channel, counts, start.reshape(channel.input_shape), SETTLING)
        return np.asarray(fit.ravel() / fit.sum())

    moved = reached(forged, density)
    for _ in range(rounds):
        slope = _slope(matrix, law + share * forged, moved, weights)
        corner = np.eye(len(forged))[slope.argmax()]
        for step in (1.0, 0.5, 0.2, 0.07, 0.02):
            sent = (1 - step) * forged + step * corner
            there = reached(sent, moved)
            if weights @ there > weights @ moved + 1e-6:
                break
        else:
            break
        forged, moved = sent, there
    return forged, moved


def _slope(matrix: Array, law: Array, moved: Array, weights: Array) -> Array:
    """Return what reports of each output cell add to weights.f at a fit, up to scale."""
    kept = moved > 1e-9
    part = matrix[:, kept]
    predicted = matrix @ moved
    curvature = part.T @ (part * (law / predicted**2)[:, None])
    ridge = 1e-9 * np.trace(curvature) / kept.sum()
    wanted = weights[kept] - weights @ moved
    return np.asarray(
        part @ np.linalg.solve(curvature + ridge * np.eye(kept.sum()), wanted) / predicted
    )
