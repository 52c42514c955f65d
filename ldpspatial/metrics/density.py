"""Differences of two densities cell by cell: blind to how far the mass is off.

Cells are compared in place, never as sorted or flattened values: a shuffled map differs. Two maps
without a common cell are equally far apart here however near they lie; for that, see `wasserstein`.
"""

import numpy as np
import numpy.typing as npt

from ldpspatial.metrics._maps import normalised_pair


def mean_squared_error(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return the mean over cells of (p - q)^2 of the normalised maps, in [0, 2 / cells].

    Parameters
    ----------
    p, q : array_like, shape (rows, columns)
        Masses >= 0 with totals that are positive and equal up to 1e-6 relative; each map is
        divided by its own total.

    Raises
    ------
    InputError
        A map breaks these rules.

    Examples
    --------
    >>> mean_squared_error([[1, 0]], [[0, 1]])
    1.0
    """
    first, second = normalised_pair(p, q)
    return float(np.mean((first - second) ** 2))


def l1(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return the sum over cells of |p - q| of the normalised maps, in [0, 2].

    Parameters and errors are those of `mean_squared_error`.

    Examples
    --------
    >>> l1([[1, 0]], [[0, 1]])
    2.0
    """
    first, second = normalised_pair(p, q)
    return float(np.abs(first - second).sum())


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return half the L1 distance, in [0, 1]: the largest difference in mass of any set of cells.

    Parameters and errors are those of `mean_squared_error`.

    Examples
    --------
    >>> total_variation([[1, 0]], [[0, 1]])
    1.0
    """
    return l1(p, q) / 2
