"""Users' distributions as whole numbers: what is summed up before noise is added.

A user's mass of 1 becomes MASS units. Rounding looks at that user alone, so one user more or less
changes the sum by MASS units and no more, in the cells and in any partition of them.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ldpspatial.places.users import UserCells, counts_within

Ints = NDArray[np.int64]

MASS = 1 << 20  # units of one user: the sensitivity of every sum
MOST_VISITS = 1 << 42  # of one user, in full: times MASS they fit 64 bits


def contributions(users: UserCells) -> sparse.csr_array:
    """Return each user's units by cell: shares of visits rounded by largest remainder.

    A user's units add up to MASS exactly. Shares are rounded down, and the units left over go one
    each to the cells where most was cut off, the first cells of equals. Where a user has more
    than 2^42 visits, the last binary digits of the counts are dropped first, which depends on this
    user alone, too.

    Returns
    -------
    sparse CSR array of int64, shaped like ``users.visits``

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> contributions(cells_by_user(["ann"] * 3, [0, 1, 1], (1, 2))).toarray().tolist()
    [[349525, 699051]]
    """
    visits = users.visits
    counts = counts_within(visits, MOST_VISITS)
    who = np.repeat(np.arange(len(users)), np.diff(visits.indptr))
    totals = _per_user(who, counts, len(users))
    # No more than 2^42 * 2^20 = 2^62. Whole numbers, so a user's units never exceed MASS.
    units, cut_off = np.divmod(counts * MASS, totals[who].astype(np.int64))
    left_over = MASS - _per_user(who, units, len(users))
    order = np.lexsort((visits.indices, -cut_off, who))  # the last key counts first: by user
    rank = np.arange(len(order)) - visits.indptr[who[order]]
    # A user has more cells than units left over, as each cell was cut by less than one unit.
    units[order[rank < left_over[who[order]]]] += 1
    return sparse.csr_array((units, visits.indices, visits.indptr), shape=visits.shape)


def _per_user(who: Ints, values: Ints, users: int) -> NDArray[np.float64]:
    """Return sums by user, in floats: exact below 2^53."""
    return np.bincount(who, weights=values, minlength=users).astype(np.float64)


def unit_sums(users: UserCells) -> tuple[Ints, Ints]:
    """Return the sum of all users' contributions: the cells that hold any, ascending, and units."""
    parts = contributions(users)
    cells, entry = np.unique(parts.indices, return_inverse=True)
    units = np.zeros(len(cells), np.int64)
    np.add.at(units, entry, parts.data)
    return cells.astype(np.int64), units
