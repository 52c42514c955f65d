"""Shares of single cells: noisy ones, of reports that are sets, brought to an expected map.

Sets tell of each cell x = f + noise, with the same variance for all cells, and of a neighbourhood
next to nothing: a smooth map g, of reports that do tell it, is what is expected there. What remains
open is by which factor u = f / g a cell differs from it. Most are near 1, some cells are empty, and
a few, a stop where everybody waits, have any factor up to that of a cell which holds everybody.
Under this prior each cell gets its posterior mean, which has the least expected squared error. The
mean of u is 1, as both maps sum to 1, so that where sets tell nothing the expected map remains.

The law of u is a mixture of normals whose means are spaced evenly in log u and whose deviations are
half of that space, so that no mean is a place where estimates are caught. How far cells differ from
what is expected, how many are crowded and how many empty depends on the place: eighteen laws are
weighed by how likely each makes all shares. To learn a law freely, by EM, was no better: of one
cell that noise has lifted it makes a crowd. The numbers were set on six squares of Chicago and New
York and four made towns.
"""

from itertools import product
from math import log

import numpy as np
from numpy.typing import NDArray

from ldpspatial.release.local.sets.set_reports import on_simplex

Array = NDArray[np.float64]
Law = tuple[Array, Array]  # factors of what is expected; their weights, in several laws a row each

FACTORS = 40  # means of normals
LEAST = 0.05  # the smallest factor but 0
SPREADS = (0.25, 0.5, 0.9)  # deviations of log u
CROWDED = (0.0005, 0.05)  # shares of cells with any factor above 1, in proportion to 1 / u
EMPTY = (0.02, 0.1, 0.4)  # shares of empty cells
HALVINGS = 80
AT_ONCE = 1 << 16  # cells, so that arrays stay small


def posterior_shares(shares: Array, variances: tuple[float, float], expected: Array) -> Array:
    """Return the density that noisy shares make of an expected one.

    Parameters
    ----------
    shares : array of float
        Unbiased shares of the cells; any shape. Their sum is off by noise, or 1.
    variances : pair of float >= 0, the first above 0
        Of a share whose truth is near 0, and of one near 1.
    expected : array of float > 0, shaped like ``shares``
        A density.

    Returns
    -------
    float64 array shaped like ``shares``
        At least 0, and sums to 1.

    Examples
    --------
    >>> expected = np.array([0.4, 0.3, 0.2, 0.1])
    >>> told = np.array([0.1, 0.1, 0.1, 0.7])
    >>> posterior_shares(told, (1e-6, 1e-6), expected).round(2)
    array([0.1, 0.1, 0.1, 0.7])
    >>> posterior_shares(told, (100.0, 100.0), expected).round(1)
    array([0.4, 0.3, 0.2, 0.1])
    """
    most = 1 / float(expected.min())
    laws = [_law(most, *kind) for kind in product(SPREADS, CROWDED, EMPTY)]
    weights = np.array([each for _, each in laws])
    means, evidence = _under(shares, variances, expected, (laws[0][0], weights))
    chances = np.exp(evidence - evidence.max())
    return on_simplex((means @ (chances / chances.sum())).reshape(shares.shape))


def _under(
    shares: Array, variances: tuple[float, float], expected: Array, laws: Law
) -> tuple[Array, Array]:
    """Return (m, laws) posterior means under laws of factors, and their log-evidence in nats."""
    told, here = shares.ravel(), expected.ravel()
    count = len(laws[1])
    means, evidence = np.empty((told.size, count)), np.zeros(count)
    for start in range(0, told.size, AT_ONCE):
        at = slice(start, start + AT_ONCE)
        means[at], more = _means(told[at], variances, here[at], laws)
        evidence += more
    return means, evidence


def _means(
    told: Array, variances: tuple[float, float], expected: Array, laws: Law
) -> tuple[Array, Array]:
    """Return the posterior means of some cells, and the log-evidence of their shares."""
    factors, weights = laws
    noisy = told[:, np.newaxis]
    means = np.minimum(expected[:, np.newaxis] * factors, 1.0)
    step = log(factors[-1] / factors[-2])
    spread = (means * step / 2) ** 2
    near_0, near_1 = variances
    total = near_0 + means * (near_1 - near_0) + spread
    logs = -0.5 * ((noisy - means) ** 2 / total + np.log(total))
    highest = logs.max(axis=1, keepdims=True)
    chances = np.exp(logs - highest)
    # Laws differ in their weights alone, and no weight is so small that such a sum is 0.
    sums = chances @ weights.T
    # Under one normal a share is drawn towards its mean.
    each = means + spread / total * (noisy - means)
    evidence = highest.sum() + np.log(sums).sum(axis=0)
    return (chances * each) @ weights.T / sums, evidence


def _law(most: float, spread: float, crowded: float, empty: float) -> Law:
    """Return factors, from 0 to that of a cell which holds everybody, and their weights."""
    factors = np.geomspace(LEAST, max(most, 2.0), FACTORS)
    usual = np.exp(-0.5 * ((np.log(factors) + spread**2 / 2) / spread) ** 2)
    crowds = np.where(factors > 1, 1 / factors, 0.0)
    weights = (1 - crowded - empty) * usual / usual.sum() + crowded * crowds / crowds.sum()
    factors = np.append(0.0, factors)
    return factors, _of_mean_one(np.append(empty, weights), factors)


def _of_mean_one(weights: Array, factors: Array) -> Array:
    """Return the law closest to these weights, in relative entropy to them, whose mean is 1.

    Its weights are w / (1 + l (u - 1)), l the multiplier of the mean.
    """
    excess = factors - 1
    low, high = -1 / excess.max(), 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if (weights * excess / (1 + middle * excess)).sum() > 0:
            low = middle
        else:
            high = middle
    found = weights / (1 + (low + high) / 2 * excess)
    return np.asarray(found / found.sum())
