"""How probable it is that a device sends given reports in PivotTrace: the exact law of all of them.

An observer knows mechanism, public numbers and reports, and asks which of two trajectories they are
of. Nothing here draws; domains are found from the reports, as a server would find them.
"""

import numpy as np

from ldpspatial.compiled import compiled
from ldpspatial.release.local.trajectories.pivot_reports import (
    block_around,
    block_cells,
    cells_towards,
    middle,
    nearness,
    reach,
    sector,
)


@compiled
def log_chances(points, sent, sizes, side, sectors, around, copies):  # type: ignore[no-untyped-def]
    """Return the log-probability of each user's reports, had the trajectory these points.

    Parameters
    ----------
    points : (K, 2) int64 array
    sent : (centres, sizes, noisy, heard)
        Of n users, as :meth:`PivotTrace.reports` returns them.
    sizes : array
        The public radii.
    side, sectors : int
    around, copies : arrays
        As :meth:`PivotTrace.weights` returns them.

    Returns
    -------
    (n,) array
    """
    centres, chosen, noisy, heard = sent
    everywhere = block_cells(np.array([0, side - 1, 0, side - 1]))
    found = np.empty(len(centres))
    row, column = middle(points)
    for user in range(found.size):
        centre = centres[user]
        size = chosen[user]
        log = _log_cell(row, column, everywhere, around[0], centre)
        log += _log_value(reach(points, centre, sizes), sizes.size, around[1], size)
        block = block_around(centre, sizes[size], side)
        for first in range(2):
            log += _log_copy(
                points, first, block, sectors, copies[first], noisy[user, first], heard[user, first]
            )
        found[user] = log
    return found


@compiled
def _log_copy(points, first, block, sectors, weights, noisy, heard):  # type: ignore[no-untyped-def]
    """Return the log-probability of one copy."""
    last = points.shape[0] - 1
    cells = block_cells(block)
    log = 0.0
    for j in range(first, last + 1, 2):
        log += _log_cell(points[j, 0], points[j, 1], cells, weights[0], noisy[j])
    for j in range(1 - first, last + 1, 2):
        row, column = points[j]
        low, beyond = max(j - 1, 0), min(j + 1, last)
        pivots = np.empty((beyond - low, 2), np.int64)
        for pair in range(low, beyond):
            pivot = noisy[pair if pair < j else pair + 1]
            pivots[pair - low] = pivot
            seen = sector(row, column, pivot[0], pivot[1], sectors)
            log += _log_value(seen, sectors, weights[1], heard[pair])
        candidates = cells_towards(cells, pivots, heard[low:beyond], sectors)
        log += _log_cell(row, column, candidates, weights[2], noisy[j])
    return log


@compiled
def _log_cell(row, column, candidates, weights, cell):  # type: ignore[no-untyped-def]
    each = nearness(row, column, candidates, weights)
    for k in range(each.size):
        if candidates[k, 0] == cell[0] and candidates[k, 1] == cell[1]:
            return np.log(each[k] / each.sum())
    return -np.inf


@compiled
def _log_value(value, size, weights, said):  # type: ignore[no-untyped-def]
    base, top = weights
    return np.log((top if said == value else base) / (top + (size - 1) * base))
