"""Channel: the linear operator from densities to distributions of reports.

Estimation knows channels and counts, never mechanisms.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.errors import InputError
from ldpspatial.validate import number_array

Array = NDArray[np.float64]
Operator = Callable[[Array], Array]
Of = TypeVar("Of")  # a channel

MATRIX_LIMIT = 1 << 27  # entries; 1 GiB


@runtime_checkable
class Channel(Protocol):
    """What estimation needs to know of a mechanism."""

    @property
    def input_shape(self) -> tuple[int, int]:
        """Shape of a density."""

    @property
    def support(self) -> NDArray[np.bool_]:
        """Mask of the output cells; its shape is that of counts."""

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, which sets the scale of the default stopping rule."""

    def forward(self, density: Array) -> Array:
        """Return the distribution of reports under a density."""

    def adjoint(self, ratio: Array) -> Array:
        """Return M^T ratio, shaped like a density."""


def is_conditional(channel: object) -> bool:
    """Tell whether a channel's outputs are the reports that came, not all that there are."""
    return bool(getattr(channel, "conditional", False))


def on_density(forward: Callable[[Of, Array], Array]) -> Callable[[Of, ArrayLike], Array]:
    """Check what a channel's ``forward`` is given: finite numbers, shaped like a density.

    Loops, which make their arguments themselves, get behind the check by :func:`operators`.
    """

    @wraps(forward)
    def checked(channel: Any, density: ArrayLike) -> Array:
        given = number_array("density", density, channel.input_shape)
        return forward(channel, np.ascontiguousarray(given))

    checked.unchecked = forward  # type: ignore[attr-defined]
    return checked


def on_ratio(adjoint: Callable[[Of, Array], Array]) -> Callable[[Of, ArrayLike], Array]:
    """Check what a channel's ``adjoint`` is given: numbers shaped like counts, finite on support.

    Elsewhere they count as 0: counts / forward(density) is 0 / 0 there.
    """

    @wraps(adjoint)
    def checked(channel: Any, ratio: ArrayLike) -> Array:
        support = channel.support
        given = number_array("ratio", ratio, support.shape, where=support)
        return adjoint(channel, np.ascontiguousarray(given))

    checked.unchecked = adjoint  # type: ignore[attr-defined]
    return checked


def operators(channel: Channel) -> tuple[Operator, Operator]:
    """Return a channel's ``forward`` and ``adjoint`` for loops that make the arguments themselves.

    On a small map the checks of this package's channels cost as much as the step of EM that they
    are part of. What a channel of another package returns is looked at instead: compiled loops
    index it, and would read beyond a smaller array.
    """
    return (
        _operator(channel, "forward", channel.support.shape),
        _operator(channel, "adjoint", tuple(channel.input_shape)),
    )


def _operator(channel: Channel, name: str, shape: tuple[int, ...]) -> Operator:
    method = getattr(channel, name)
    # An override in another package's subclass has no such attribute, and so is not passed by.
    unchecked = getattr(method, "unchecked", None)
    if unchecked is not None:
        return partial(unchecked, channel)

    def looked_at(values: Array) -> Array:
        rule = f"{name} of the channel must return numbers of shape {shape}"
        answer = method(values)
        try:
            found = np.asarray(answer)
        except ValueError:  # rows of different lengths
            raise InputError(f"{rule}, all of one shape") from None
        if found.shape != shape or found.dtype.kind not in "iuf":
            raise InputError(f"{rule}, got {found.dtype} of shape {found.shape}")
        return found.astype(np.float64, copy=False)

    return looked_at
