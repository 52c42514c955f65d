"""A number that tells two kinds of outputs apart, learned from examples of either.

As the classifier of Bichsel et al. (DP-Sniper, 2021): what rises with the ratio of the two kinds'
probabilities gives the events that lose most. Here it is a sum of one term for each column of
numbers, free to take any form: columns are cut into bins of about as many examples each, with bins
of their own for numbers that repeat and for what is missing, and the terms of the bins are fitted
by logistic regression. For sums with independent noise that is the form of the ratio itself.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

BINS = 16
PENALTY = 2.0  # on squares of terms: a bin with few examples says little
MOST_STEPS = 60


@dataclass(frozen=True, eq=False)
class Telling:
    """A sum of terms, one for the bin of each column.

    Attributes
    ----------
    edges : list of (k,) arrays
        Of each column's bins, ascending; a number that equals an edge has a bin of its own.
    terms : list of (2 k + 2,) arrays
        Of each bin, the last one for what is missing (NaN).
    """

    edges: list[Array]
    terms: list[Array]

    def __call__(self, numbers: Array) -> Array:
        """Return the sum for each row: the larger, the more like the first kind."""
        total = np.zeros(len(numbers))
        for column, edges, terms in zip(numbers.T, self.edges, self.terms, strict=True):
            total += terms[_bins(column, edges)]
        return total


def learned(first: Array, second: Array) -> Telling:
    """Return the sum that tells rows of the first kind from rows of the second best.

    Parameters
    ----------
    first, second : (n, columns), (m, columns) arrays
        NaN for what is missing.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> here, there = rng.laplace(1, 1, (2000, 1)), rng.laplace(0, 1, (2000, 1))
    >>> far, middle, low = learned(here, there)(np.array([[9.0], [0.5], [-9.0]]))
    >>> bool(far > middle > low), bool(abs(far - 1) < 0.5)  # where the ratio's logarithm is 1
    (True, True)
    """
    rows = np.concatenate([first, second])
    edges = [_edges(column) for column in rows.T]
    bins = [_bins(column, cut) for column, cut in zip(rows.T, edges, strict=True)]
    sizes = [2 * len(cut) + 2 for cut in edges]
    starts = np.cumsum([0, *sizes])
    places = np.stack([start + each for start, each in zip(starts[:-1], bins, strict=True)], axis=1)
    ends = np.arange(0, places.size + 1, rows.shape[1])
    design = sparse.csr_array(
        (np.ones(places.size), places.ravel(), ends), shape=(len(rows), int(starts[-1]))
    )
    sign = np.concatenate([np.ones(len(first)), -np.ones(len(second))])
    weight = np.concatenate(
        [np.full(len(first), 1 / len(first)), np.full(len(second), 1 / len(second))]
    )
    weight *= len(rows) / 2

    def loss(terms: Array) -> tuple[float, Array]:
        margin = sign * (design @ terms)
        value = weight @ np.logaddexp(0, -margin) + PENALTY * terms @ terms / 2
        slope = -(design.T @ (weight * sign * scipy.special.expit(-margin))) + PENALTY * terms
        return float(value), slope

    found = scipy.optimize.minimize(
        loss,
        np.zeros(int(starts[-1])),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS},
    )
    return Telling(edges, np.split(found.x, starts[1:-1]))


def _edges(column: Array) -> Array:
    """Return numbers at even ranks, each once."""
    seen = np.sort(column[~np.isnan(column)])
    ranks = np.linspace(0, len(seen) - 1, BINS + 1)[1:-1].round().astype(int)
    edges: Array = np.unique(seen[ranks]) if len(seen) else seen
    return edges


def _bins(column: Array, edges: Array) -> Ints:
    """Return the bin of each number: between edges, or at one."""
    below = np.searchsorted(edges, column, "left") + np.searchsorted(edges, column, "right")
    bins: Ints = np.where(np.isnan(column), 2 * len(edges) + 1, below)
    return bins
