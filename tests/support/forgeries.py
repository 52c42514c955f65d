"""Slow twins of what is said of forged reports: fits by plain EM, proofs by linear programs."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]


def fitted(matrix: Array, law: Array, steps: int = 4_000) -> Array:
    """Return the maximum likelihood fit of a law of reports, by plain EM."""
    density = np.full(matrix.shape[1], 1 / matrix.shape[1])
    for _ in range(steps):
        density = density * (matrix.T @ (law / (matrix @ density)))
    return density / density.sum()


def least_share(matrix: Array, weights: Array, law: Array, share: float, rounds: int) -> float:
    """Return the least weights.f of the set that is proved to hold all fits, by linear programs.

    The set is M^T((r + k w)^2 / M f) <= 1, which cuts describe.

    r and r + k are the roots of what is sent of an output cell if no forger sends it, and if all
    do. Of x^2 / y a tangent plane, which lies below, is 2 (x / y at it) x - (x / y at it)^2 y.
    """
    outputs, cells = matrix.shape
    root = np.sqrt((1 - share) * law)
    added = np.sqrt(root**2 + share) - root
    above: list[Array] = []
    limits: list[Array] = []
    slopes = (root + added / outputs) / law
    sums = np.zeros((2, cells + outputs))
    sums[0, :cells] = sums[1, cells:] = 1
    for _ in range(rounds):
        steep = matrix.T * slopes
        above.append(np.hstack([-(steep * slopes) @ matrix, 2 * steep * added]))
        limits.append(1 - 2 * steep @ root)
        found = linprog(
            np.append(weights, np.zeros(outputs)),
            A_ub=np.vstack(above),
            b_ub=np.concatenate(limits),
            A_eq=sums,
            b_eq=np.ones(2),
        )
        predicted = matrix @ found.x[:cells]
        sent = root + added * found.x[cells:]
        slopes = sent / predicted
        if (matrix.T @ (sent * slopes)).max() <= 1 + 1e-5:
            break
    return float(found.fun)
