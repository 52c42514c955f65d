"""Local privacy: how far from the truth an observer's guess of one person is, in cells.

An observer sees a report, knows the mechanism and a prior of where people are, and guesses a cell
from the posterior. Local privacy is the mean distance between guess and truth (Shokri et al., S&P
2011; Du et al. 2024, equations 15 and 16). It is not a promise: it depends on the prior; a report
may give more away than the mean says. Its use is to read on one axis what eps-LDP and
geo-indistinguishability leave to an observer, two notions whose epsilons cannot be compared.
"""

from collections.abc import Callable
from math import exp, log
from typing import Protocol, runtime_checkable

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ldpspatial.errors import InputError
from ldpspatial.validate import finite_number, function, instance, map_shape, number_array, positive

Array = NDArray[np.float64]


@runtime_checkable
class DenseChannel(Protocol):
    """A channel that can give its matrix."""

    @property
    def input_shape(self) -> tuple[int, int]:
        """Shape of a density."""

    def matrix(self) -> Array:
        """Return the (outputs, cells) matrix of probabilities."""


def cell_distances(shape: tuple[int, int]) -> Array:
    """Return the Euclidean distances of all pairs of cells, in cells; cells in row order."""
    at = np.indices(map_shape("shape", shape)).reshape(2, -1)
    down, across = (axis[:, None] - axis[None, :] for axis in at)
    return np.asarray(np.hypot(down, across), np.float64)


def local_privacy(channel: DenseChannel, prior: ArrayLike | None = None) -> float:
    """Return the mean distance between a person's cell and a guess from the posterior, in cells.

    Parameters
    ----------
    channel : channel with a ``matrix()``
    prior : array shaped like a density, optional
        What the observer knows before; uniform by default.

    Raises
    ------
    InputError
        A prior that is not a density on the channel's cells.

    Examples
    --------
    >>> from client_sdk import response_table
    >>> from ldpspatial.channels.disk import StampChannel
    >>> round(local_privacy(StampChannel(response_table("dam", 3.5, 5))), 4)
    1.5823
    """
    matrix = instance("channel", channel, DenseChannel).matrix()  # type: ignore[type-abstract]
    cells = channel.input_shape[0] * channel.input_shape[1]
    known = np.full(cells, 1 / cells) if prior is None else _density(prior, channel.input_shape)
    joint = matrix * known  # outputs x cells
    seen = joint.sum(axis=1)
    # A report of probability 0 has no posterior, and adds nothing.
    joint = joint[seen > 0]
    seen = seen[seen > 0]
    distances = cell_distances(channel.input_shape)
    # Truth and guess are both from the posterior joint / seen, and the report has probability seen:
    # of the three factors one 1 / seen is left. joint @ distances is (outputs, cells).
    return float((np.einsum("yx,yx->y", joint @ distances, joint) / seen).sum())


def calibrate(privacy: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return the epsilon in [low, high] at which a falling ``privacy`` meets the target.

    Brent's method on the logarithm of epsilon, to a relative 1e-14.

    Parameters
    ----------
    privacy : callable (epsilon) -> local privacy
        Continuous and falling. Where it jumps over the target, the answer is where it jumps: see
        :class:`ldpspatial.release.local.matched.Matched`.
    target : float
    low, high : float
        0 < low < high.

    Raises
    ------
    InputError
        The target is not between the privacy at ``high`` and that at ``low``, bad bounds, or
        ``privacy`` returns no finite number.

    Examples
    --------
    >>> round(calibrate(lambda epsilon: 1 / epsilon, 0.5, 0.1, 10), 6)
    2.0
    """
    function("privacy", privacy)
    target = finite_number("target", target)
    low = positive("low", low)
    high = positive("high", high)
    if not low < high:
        raise InputError(f"low must be below high, got {low} and {high}")

    def at(epsilon: float) -> float:
        return finite_number("what privacy returns", privacy(epsilon))

    most = at(low)
    least = at(high)
    if not least <= target <= most:
        raise InputError(
            f"target must lie in [{least:.9g}, {most:.9g}], the local privacy at epsilon "
            f"{high:g} and {low:g}, got {target:.9g}"
        )
    bottom = log(low)
    top = log(high)

    def epsilon(x: float) -> float:
        return {bottom: low, top: high}.get(x, exp(x))  # the bounds to the last digit

    return epsilon(
        scipy.optimize.brentq(lambda x: at(epsilon(x)) - target, bottom, top, xtol=1e-14)
    )


def _density(prior: ArrayLike, shape: tuple[int, int]) -> Array:
    given = number_array("prior", prior, shape, "[0, inf)", bools=True)
    if not given.any():
        raise InputError("prior must hold a number above 0, got zeros only")
    return np.asarray(given.ravel() / given.sum())
