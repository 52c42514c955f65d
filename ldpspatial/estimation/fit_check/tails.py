"""Upper tails of the sums that the check of the fit looks at. Arrays only, nothing is checked."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

NORMAL_DRAWS = 4_000  # of a joint normal law, for its largest entry
HARDLY_SKEW = 1e-4


def gamma_tail(statistic: float, mean: float, variance: float) -> float:
    """Return the probability of more than ``statistic`` under the gamma law with these moments."""
    if not variance > 0:
        return 1.0
    return float(special.gammaincc(mean**2 / variance, max(statistic, 0.0) * mean / variance))


def upper_tail(deviations: Array, skewness: Array) -> Array:
    """Return the probability of more, in standard deviations, under laws with this skewness.

    The law is Pearson's of the third kind, a gamma law that is moved and, for negative skewness,
    mirrored: sums of multinomial counts have this shape before they are normal.
    """
    shape = 4 / np.maximum(np.abs(skewness), HARDLY_SKEW) ** 2
    right = special.gammaincc(shape, np.maximum(shape + deviations * np.sqrt(shape), 0.0))
    left = special.gammainc(shape, np.maximum(shape - deviations * np.sqrt(shape), 0.0))
    skew = np.where(skewness > 0, right, left)
    normal = special.ndtr(-deviations)
    return np.asarray(np.where(np.abs(skewness) > HARDLY_SKEW, skew, normal))


def least_of_many(p_values: Array, covariance: Array) -> float:
    """Return the p-value of the smallest of many, for sums that are jointly normal.

    As many independent sums are put in their place as give the smallest p-value the same mean
    logarithm; the random numbers that find how many are always the same ones.
    """
    values, vectors = np.linalg.eigh(covariance)
    spread = np.sqrt(np.diag(covariance))[:, None]
    factor = vectors * np.sqrt(np.maximum(values, 0)) / spread
    normal = np.random.default_rng(0).standard_normal((NORMAL_DRAWS, len(values)))
    largest = (normal @ factor.T).max(axis=1)
    number = -1 / special.log_ndtr(largest).mean()
    return float(-np.expm1(number * np.log1p(-min(float(p_values.min()), 1 - 1e-16))))
