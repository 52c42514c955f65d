"""Sums over a disk around every cell, by sums of runs within rows.

A row of a disk is a run of cells, and a longer run is a shorter one and a cell at either end. So
rows that lie in equally long runs are added first, and then, from the longest runs to the shortest,
the two cells at the ends of each. For a disk that is two additions for each unit of its radius, in
place of Fourier transforms of the whole map; and nothing cancels out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpspatial.compiled import compiled

Array = NDArray[Any]  # of float64, or of float32

ROUNDING = 1e-14  # of the largest weight: what is less comes from how a stamp was made
AT_ONCE = 1024  # numbers: that many of each array are in the nearest cache


@dataclass(frozen=True)
class DiskSums:
    """Weights of the cells around a cell, as runs.

    Attributes
    ----------
    radius : int
    first : (radius + 2,) array of int
        Of the terms of each half-length of a run, in order.
    rows : (terms,) array of int
        How far from the middle row of the stamp: the runs of two rows, but for the middle one.
    weights : (terms,) array
    """

    radius: int
    first: NDArray[np.int64]
    rows: NDArray[np.int64]
    weights: Array

    @classmethod
    def of(cls, stamp: Array) -> "DiskSums":
        """Return a (2 r + 1, 2 r + 1) stamp that is its own mirror image both ways, as runs."""
        radius = len(stamp) // 2
        quarter = np.pad(stamp[radius:, radius:], ((0, 0), (0, 1)))
        steps = (quarter[:, :-1] - quarter[:, 1:]).T
        halves, rows = np.nonzero(np.abs(steps) > ROUNDING * np.abs(stamp).max())
        weights = steps[halves, rows] * np.where(rows == 0, 0.5, 1.0)
        return cls(radius, np.searchsorted(halves, np.arange(radius + 2)), rows, weights)

    @property
    def additions(self) -> int:
        """How many pairs of numbers are added for each sum."""
        return len(self.rows) + self.radius

    def spread(self, values: Array) -> Array:
        """Return (S, d + 2 r, d + 2 r) sums around all cells that (S, d, d) values reach."""
        margin = 2 * self.radius
        line = values.shape[1] + 2 * margin
        padded = np.zeros((len(values), line, line), values.dtype)
        padded[:, margin : line - margin, margin : line - margin] = values
        return self.gathered(padded)

    def gathered(self, values: Array) -> Array:
        """Return (S, d, d) sums around the inner cells of (S, d + 2 r, d + 2 r) values."""
        side = values.shape[1] - 2 * self.radius
        found = np.empty((len(values), side, side), values.dtype)
        weights = self.weights.astype(values.dtype)
        _add_runs(np.ascontiguousarray(values), self.first, self.rows, weights, AT_ONCE, found)
        return found


@compiled
def _add_runs(values, first, rows, weights, at_once, found):  # type: ignore[no-untyped-def]
    """Sum over the disk, some rows at once, which lie one after the other."""
    number, line, _ = values.shape
    out = found.shape[1]
    radius = len(first) - 2
    most = max(1, at_once // line) * line
    added = np.empty(most + 2 * radius, values.dtype)
    sums = np.empty(most, values.dtype)
    one = values.dtype.type(1)
    for s in range(number):
        flat = values[s].ravel()
        for start in range(0, out * line, most):
            width = min(most, out * line - start)
            middle = start + radius * line
            _empty(added)
            _empty(sums)
            for half in range(radius, -1, -1):
                for term in range(first[half], first[half + 1]):
                    above, below = middle - rows[term] * line, middle + rows[term] * line
                    _add_both(added, flat[above:], flat[below:], weights[term], width)
                if half > 0:
                    _add_both(sums, added[radius - half :], added[radius + half :], one, width)
            for i in range(width // line):
                for j in range(out):
                    total = sums[i * line + j] + added[radius + i * line + j]
                    found[s, start // line + i, j] = total


@compiled
def _empty(values):  # type: ignore[no-untyped-def]
    for k in range(len(values)):
        values[k] = 0


@compiled
def _add_both(to, first, second, weight, number):  # type: ignore[no-untyped-def]
    for k in range(number):  # nothing but k in brackets: else it is not vectorised
        to[k] += weight * (first[k] + second[k])
