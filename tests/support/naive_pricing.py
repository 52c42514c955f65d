"""Pricing of all arcs between the cells of a grid, one dense matrix of costs at a time."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ABSENT = np.iinfo(np.int64).min


def cost_matrix(cost: Ints, shape: tuple[int, ...]) -> Ints:
    """Return the (n, n) costs between all n cells, in the order of rows, from a table (R, C)."""
    rows, columns = (index.ravel() for index in np.indices(shape))
    down, right = (abs(index[:, None] - index[None, :]) for index in (rows, columns))
    matrix: Ints = cost[down, right]
    return matrix


def least_reduced(value: Ints, cost: Ints) -> Ints:
    """Return the least cost - value over all targets (R, C), at every cell, source or not."""
    targets = value.ravel() != ABSENT
    reduced = cost_matrix(cost, value.shape)[:, targets] - value.ravel()[targets]
    least: Ints = reduced.min(axis=1).reshape(value.shape)
    return least


def best_of(value: Ints, limit: Ints, cost: Ints) -> Ints:
    """Return the least of the limit and of cost - value (R, C), ABSENT where there is no source."""
    return np.where(limit == ABSENT, ABSENT, np.minimum(limit, least_reduced(value, cost)))
