"""Whether nodes hold whole people, and what noisy sums then say of how many.

Where everybody has one position nodes hold whole people; of who has several each holds a part.
Nobody says which it is. But sums with little noise lie about whole numbers, or they do not: what
they are beyond the whole number below is a point on a circle, and noise spreads it.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_NOISE = 0.2  # variance, in people, above which whole numbers are hardly nearer in L1
EMPTY = 1.5  # people; nodes with fewer may be empty, which is whole whatever others are
SURE = 5.0  # nats
FRACTIONS = 24  # of a law: among them halves, thirds, quarters, sixths and eighths
EM_ROUNDS = 100
POINTS = 960  # of the circle that sums are rounded to: far nearer than noise of a release throws
LEAST = 1e-3  # scale of the noise, in people; less is taken for so much
REACH = 12  # whole numbers to either side that a sum may be of


def are_whole(sums: Array, variance: float) -> bool:
    """Return whether noisy sums say that all nodes hold whole people.

    Where people are, whole numbers are by e^5 likelier than fractions spread evenly. And of all
    nodes, empty ones among them, no law of fractions is by e^5 likelier than whole numbers: if some
    nodes hold thirds, as many as tell, it is.

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
    scale = max(float(np.sqrt(variance / 2)), LEAST)
    beyond = sums - np.floor(sums)
    if _near(beyond[sums > EMPTY], scale).sum() < SURE:
        return False
    return _gain_of_fractions(beyond, scale) <= SURE


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


def _near(beyond: Array, scale: float) -> Array:
    """Return the logarithm of the density of sums about whole numbers, 0 that of any fraction.

    ``beyond`` is what a sum has beyond a whole number, in [0, 1]: Laplace's noise on a circle.
    """
    found = np.logaddexp(-beyond / scale, (beyond - 1) / scale)
    return np.asarray(found - np.log(2 * scale * -np.expm1(-1 / scale)))


def _gain_of_fractions(beyond: Array, scale: float) -> float:
    """Return by how many nats the likeliest law of fractions explains sums better than 0 alone.

    By expectation maximisation, from a law that is half of it 0: it stops short of the likeliest.
    """
    number = np.bincount(np.rint(beyond * POINTS).astype(np.int64) % POINTS, minlength=POINTS)
    points = np.arange(POINTS) / POINTS
    fractions = np.arange(FRACTIONS) / FRACTIONS
    nats = _near((points[:, np.newaxis] - fractions) % 1.0, scale)
    most = nats.max(1, keepdims=True)
    likely = np.exp(nats - most)
    law = np.full(FRACTIONS, 0.5 / (FRACTIONS - 1))
    law[0] = 0.5
    for _ in range(EM_ROUNDS):
        law *= likely.T @ (number / (likely @ law)) / number.sum()
    better = np.log(likely @ law) + most[:, 0] - nats[:, 0]
    return float(number @ better)
