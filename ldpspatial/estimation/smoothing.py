"""Smoothing between EM steps (the S of EMS), by kernels that reflect at the edges.

Reflection keeps the mass in the square and a flat map flat.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.validate import number_array, one_of, positive

Array = NDArray[np.float64]
Smoother = Callable[[Array], Array]

# Outer product of the one-dimensional [1, 2, 1] / 4 of square wave (Li et al. 2020).
BINOMIAL = np.outer([1, 2, 1], [1, 2, 1]) / 16


def binomial(density: Array) -> Array:
    """Smooth a density with [1, 2, 1] / 4 along both axes.

    Parameters
    ----------
    density : (rows, columns) array of finite numbers

    Returns
    -------
    (rows, columns) array of the same sum

    Raises
    ------
    InputError
        The density is not such an array.

    Examples
    --------
    >>> binomial([[16.0, 0, 0]]).tolist()
    [[12.0, 4.0, 0.0]]
    """
    return _smooth(number_array("density", density, ("rows", "columns")), BINOMIAL)


def five_point(k: float) -> Smoother:
    """Return the smoother with weight 1/(4k+1) on the cell and k/(4k+1) on its four neighbours.

    Parameters
    ----------
    k : float > 0
        The larger, the smoother; 0.5 under the name "five-point".

    Returns
    -------
    callable (density) -> density, (rows, columns) arrays

    Raises
    ------
    InputError
        ``k`` is not a positive finite number.

    Examples
    --------
    >>> import numpy as np
    >>> five_point(1.0)(np.array([[0.0, 0, 0], [0, 5, 0], [0, 0, 0]])).round(12).tolist()
    [[0.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]
    """
    return _FivePoint(positive("k", k))


@dataclass(frozen=True)
class _FivePoint:
    """What :func:`five_point` returns: it prints as what it does, and goes to other processes."""

    k: float

    def __call__(self, density: Array) -> Array:
        side = 1 / (4 + 1 / self.k)  # k / (4k + 1), which a huge k would overflow
        kernel = np.array([[0, side, 0], [side, 1 - 4 * side, side], [0, side, 0]])
        return _smooth(density, kernel)


SMOOTHERS: dict[str, Smoother] = {"binomial": binomial, "five-point": five_point(0.5)}


def smoother(smoothing: "str | Smoother | None") -> Smoother | None:
    """Return the smoother of this name, the given one, or None."""
    if smoothing is None or any(smoothing is known for known in SMOOTHERS.values()):
        return smoothing  # type: ignore[return-value]
    if callable(smoothing):
        return _looked_at(smoothing)
    return SMOOTHERS[one_of("smoothing", smoothing, SMOOTHERS)]


def _looked_at(smooth: Smoother) -> Smoother:
    """Return a smoother of the caller's own, whose maps EM can go on with or that are refused."""

    def checked(density: Array) -> Array:
        field = "what smoothing returns"
        smoothed = number_array(field, smooth(density), density.shape, "[0, inf)")
        if not smoothed.any():
            raise InputError(f"{field} must hold a number above 0, got zeros only")
        return smoothed

    return checked


def _smooth(density: Array, kernel: Array) -> Array:
    # scipy's "reflect" repeats the edge cell and keeps the mass; its "mirror" does not.
    return scipy.ndimage.convolve(density, kernel, mode="reflect")  # type: ignore[no-any-return]
