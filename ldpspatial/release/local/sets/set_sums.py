"""Sums over sets of values, and over the sets that hold a value, in one pass."""

import numpy as np

from ldpspatial.compiled import compiled


@compiled
def sum_over_sets(starts, cells, density):  # type: ignore[no-untyped-def]
    """Return the sum of the density over each set."""
    sums = np.empty(starts.size - 1)
    for i in range(sums.size):
        first = starts[i]
        end = starts[i + 1]
        a = b = c = d = 0.0  # four sums: additions that need not wait for one another
        for k in range(first, end - 3, 4):
            a += density[cells[k]]
            b += density[cells[k + 1]]
            c += density[cells[k + 2]]
            d += density[cells[k + 3]]
        for k in range(end - (end - first) % 4, end):
            a += density[cells[k]]
        sums[i] = (a + b) + (c + d)
    return sums


@compiled
def add_to_sets(starts, cells, ratio, size):  # type: ignore[no-untyped-def]
    """Return for each of the values the sum of the ratio over the sets that hold it."""
    sums = np.zeros(size)
    for i in range(ratio.size):
        for k in range(starts[i], starts[i + 1]):
            sums[cells[k]] += ratio[i]
    return sums
