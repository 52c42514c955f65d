"""Unbiased shares of values, from how many reports support each: one formula for all reports."""

import numpy as np
from numpy.typing import ArrayLike

from ldpspatial.release.local.sets.set_reports import Array, check_users


def unbiased_shares(counts: ArrayLike, n: int, other: float, lift: float) -> Array:
    """Return unbiased shares of the values; they may be negative.

    Parameters
    ----------
    counts : array of int
        How many reports support each value; any shape.
    n : int >= 1
        Number of users who reported.
    other : float in [0, 1)
        q, with which a report supports a given value that its user does not hold.
    lift : float > 0
        p - q, where a report supports the value of its user with probability p.

    Returns
    -------
    float64 array shaped like ``counts``
        (c / n - q) / (p - q).

    Raises
    ------
    InputError
        No user reported.
    """
    check_users(n)
    return np.asarray((np.asarray(counts, np.float64) / n - other) / lift)


def share_variance(n: int, other: float, lift: float) -> float:
    """Return the variance q (1 - q) / (n (p - q)^2) of one such share whose truth is near 0.

    Arguments and errors are those of :func:`unbiased_shares`.
    """
    check_users(n)
    return other * (1 - other) / (n * lift**2)
