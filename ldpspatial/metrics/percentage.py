"""Relative errors of a density, cell by cell: kept for comparison with published tables.

They weigh an empty street as much as the main square, so they are ruled by cells with little mass.
As fractions: 1 is 100 %. The truth comes first; none of them is symmetric but the one so called.

References
----------
Sadat Tabataba et al., A framework for evaluating epidemic forecasts, BMC Infectious Diseases 17,
2017. Bagdasaryan et al., Towards Sparse Federated Analytics: Location Heatmaps under Distributed
Differential Privacy with Secure Aggregation, PoPETs 2022(4), appendix A.1.
"""

import numpy as np
import numpy.typing as npt

from ldpspatial.metrics._maps import normalised_pair


def mean_absolute_percentage_error(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return MAPE: the mean over cells of |p - q| / p of the normalised maps, >= 0.

    Where the truth is 0, its smallest positive value takes its place as divisor (Bagdasaryan
    et al., appendix A.1).

    Parameters
    ----------
    p, q : array_like, shape (rows, columns)
        Truth and estimate: masses >= 0 with totals that are positive and equal up to 1e-6
        relative; each map is divided by its own total.

    Raises
    ------
    InputError
        A map breaks these rules.

    Examples
    --------
    >>> mean_absolute_percentage_error([[2, 2, 0]], [[1, 2, 1]])  # (1/2 + 0 + 1/2) / 3
    0.3333333333333333
    """
    truth, estimate = normalised_pair(p, q)
    below = np.where(truth > 0, truth, truth[truth > 0].min())
    with np.errstate(over="ignore"):  # beside a mass at the edge of float64 an error is infinite
        return float(np.mean(np.abs(truth - estimate) / below))


def symmetric_absolute_percentage_error(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return sMAPE: the mean over cells of |p - q| / ((p + q) / 2), in [0, 2].

    A cell that is empty in both maps counts 0. Parameters and errors are those of
    `mean_absolute_percentage_error`.

    Examples
    --------
    >>> symmetric_absolute_percentage_error([[1, 0, 0]], [[0, 1, 0]])  # (2 + 2 + 0) / 3
    1.3333333333333333
    """
    truth, estimate = normalised_pair(p, q)
    both = truth + estimate
    difference = np.abs(truth - estimate)
    # Halves are taken last: in the denominator the least masses would underflow.
    return float(2 * np.mean(np.divide(difference, both, out=difference, where=both > 0)))


def mean_arctangent_percentage_error(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return MAAPE: the mean over cells of arctan(|p - q| / p), in [0, pi / 2].

    pi / 2 where only the truth is 0, and 0 where both are. Parameters and errors are those of
    `mean_absolute_percentage_error`.

    Examples
    --------
    >>> mean_arctangent_percentage_error([[1, 0]], [[0, 1]]) == (np.pi / 4 + np.pi / 2) / 2
    True
    """
    truth, estimate = normalised_pair(p, q)
    # arctan2 divides nothing: it has a value where the truth is 0, and where both are.
    return float(np.mean(np.arctan2(np.abs(truth - estimate), truth)))
