"""A sum of some amounts, each of which is there in full or not at all, and its quantiles.

The law of some such amounts is far from normal, and where they are much alike it lies on few
numbers. So it is reckoned on a fine grid, one amount after the other. Noise on top of that is
normal, or what a reach makes of it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST = 64  # amounts whose law is reckoned with: that of more is near enough to normal
STEPS = 8192  # that the sum of all amounts is divided into
ROUNDED = 1e-9  # of the sum of all: what floats and the search for a quantile may be off by


class Sums(NamedTuple):
    """The law of a sum, over the sum of all amounts.

    Attributes
    ----------
    values, probabilities : (k,) arrays
    off : float
        How far a value may be off at most.
    """

    values: Array
    probabilities: Array
    off: float


def sums_of(amounts: Array, chances: Array) -> Sums:
    """Return the law of the sum of amounts that are there with these chances, each by itself.

    Parameters
    ----------
    amounts, chances : (m,) arrays
        Positive, and in [0, 1].

    Examples
    --------
    >>> law = sums_of(np.array([3.0, 1.0]), np.array([0.5, 0.1]))
    >>> law.values.tolist(), law.probabilities.round(2).tolist()
    ([0.0, 0.25, 0.75, 1.0], [0.45, 0.05, 0.45, 0.05])
    """
    exact = amounts / amounts.sum() * STEPS
    steps = np.rint(exact).astype(np.int64)
    law = np.zeros(int(steps.sum()) + 1)
    law[0] = 1.0
    for step, chance in zip(steps, chances, strict=True):
        there = np.concatenate([np.zeros(step), law[: law.size - step]])
        law = (1 - chance) * law + chance * there
    values = np.flatnonzero(law)
    off = float(np.abs(steps - exact).sum()) / STEPS + ROUNDED
    return Sums(values / STEPS, law[values], off)


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
