"""Whether nodes hold whole people, and what noisy sums then say of how many.

Where everybody has one position nodes hold whole people; of who has several each holds a part.
Nobody says which it is. But sums with little noise lie about whole numbers, or they do not.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_NOISE = 0.5  # variance, in people, above which sums hardly tell
# Nodes that may be empty are not asked: these are whole, whatever others are. Elsewhere noise alone
# seldom lifts a sum so far. Between 0 and 1.5 people parts of them speak first.
BEYOND, LIFTED = 1.5, 8.0  # people, or scales of the noise if these are less
SURE = 5.0  # nats by which whole people must be likelier than fractions of any size
IN_PART = 0.2  # of all nodes, of those that hold people in part: whole must be likelier than this
REACH = 12  # whole numbers to either side that a sum may be of


def are_whole(sums: Array, variance: float) -> bool:
    """Return whether noisy sums say that all nodes hold whole people.

    Parameters
    ----------
    sums : (m,) array
        With Laplace's noise of this variance.
    variance : float > 0

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noise, people = rng.laplace(0, 0.1, 1000), rng.integers(2, 1000, 1000)
    >>> are_whole(people + noise, 0.02), are_whole(people / 3 + noise, 0.02)
    (True, False)
    """
    if not 0 < variance < MOST_NOISE:
        return False
    scale = np.sqrt(variance / 2)
    held = sums[sums > min(BEYOND, LIFTED * scale)]
    aside = np.abs(held - np.rint(held))
    # Laplace's density about all whole numbers, over that of sums about any number; as logarithms.
    near = np.logaddexp(-aside / scale, (aside - 1) / scale)
    near -= np.log(2 * scale * -np.expm1(-1 / scale))
    mixed = np.logaddexp(near + np.log1p(-IN_PART), np.log(IN_PART))
    return float(near.sum()) >= max(SURE, float(mixed.sum()))


def nearest_whole(sums: Array, variance: float) -> tuple[Array, Array, Array]:
    """Return mean, median and variance of whole numbers of which all are as likely beforehand.

    Parameters
    ----------
    sums : (m,) array
        With Laplace's noise of this variance.
    variance : float > 0

    Examples
    --------
    >>> mean, median, doubt = nearest_whole(np.array([7.0, 7.4]), 0.02)
    >>> mean.round(2).tolist(), median.tolist(), doubt.round(2).tolist()
    ([7.0, 7.12], [7.0, 7.0], [0.0, 0.11])
    """
    scale = np.sqrt(variance / 2)
    nearest = np.rint(sums)
    off = sums - nearest
    steps = np.arange(-REACH, REACH + 1)
    likely = np.exp((np.abs(off)[:, np.newaxis] - np.abs(off[:, np.newaxis] - steps)) / scale)
    likely /= likely.sum(1, keepdims=True)
    moved = likely @ steps
    return nearest + moved, nearest, np.maximum(likely @ steps**2 - moved**2, 0.0)
