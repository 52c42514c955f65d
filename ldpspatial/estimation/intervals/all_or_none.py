"""A sum of a few amounts, each of which is there in full or not at all, and its quantiles.

The law of a few such amounts is far from normal, and with up to eight of them all of its values can
be written down: 2^8. Noise on top of that is normal, or what a reach makes of it.
"""

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST = 8  # amounts of which all 2^8 sums are reckoned with


def sums_of(amounts: Array, chances: Array) -> tuple[Array, Array]:
    """Return all sums of amounts that are there with these chances, over the sum of all of them.

    Parameters
    ----------
    amounts, chances : (m,) arrays
        At most 8, positive and in [0, 1].

    Returns
    -------
    sums, probabilities : (2^m,) arrays

    Examples
    --------
    >>> sums, probabilities = sums_of(np.array([3.0, 1.0]), np.array([0.5, 0.1]))
    >>> sums.tolist(), probabilities.round(2).tolist()
    ([0.0, 0.75, 0.25, 1.0], [0.45, 0.45, 0.05, 0.05])
    """
    there = (np.arange(2 ** len(amounts))[:, np.newaxis] >> np.arange(len(amounts))) & 1
    probabilities = np.where(there == 1, chances, 1 - chances).prod(1)
    return there @ amounts / amounts.sum(), probabilities


def share_beyond(
    error: Callable[[float], tuple[Array, float]], probabilities: Array, chance: float, side: int
) -> float:
    """Return the share in [0, 1] beyond which the truth lies with this chance.

    Parameters
    ----------
    error : callable
        ``error(share)`` returns by sum how far the estimate lies above a share, and the standard
        deviation of what it may be off by.
    probabilities : (k,) array
        Of the sums.
    chance : float
    side : {-1, 1}
        Whether the truth is below the share or above it.
    """

    def more_than_asked(share: float) -> float:
        above, deviation = error(share)
        if deviation > 0:
            beyond = scipy.special.ndtr(side * above / deviation)
        else:
            beyond = (side * above > 0).astype(np.float64)
        return float(probabilities @ beyond) - chance

    here, there = (0.0, 1.0) if side > 0 else (1.0, 0.0)
    if more_than_asked(here) <= 0:
        return here
    if more_than_asked(there) >= 0:
        return there
    return float(scipy.optimize.brentq(more_than_asked, 0.0, 1.0, xtol=1e-12))
