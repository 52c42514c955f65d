"""The least share of a region over the fits that forgeries can lead to, by linear programs."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]


def least_share(matrix: Array, weights: Array, law: Array, slack: float, rounds: int) -> float:
    """Return the least weights.f over M^T(law / M f) <= slack, by linear programs of its cuts."""
    size = matrix.shape[1]
    above: list[Array] = []
    limits: list[Array] = []
    predicted = law
    for _ in range(rounds):
        ratio = law / predicted
        # The constraint is convex in f, so its tangent holds for all f that fulfil it.
        above.append(-(matrix.T * (ratio / predicted)) @ matrix)
        limits.append(slack - 2 * matrix.T @ ratio)
        found = linprog(
            weights,
            A_ub=np.vstack(above),
            b_ub=np.concatenate(limits),
            A_eq=np.ones((1, size)),
            b_eq=[1],
        )
        predicted = matrix @ found.x
        if (matrix.T @ (law / predicted)).max() <= slack * (1 + 1e-5):
            break
    return float(found.fun)
