"""What counts and whole numbers must be before anything is estimated from them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.errors import InputError

Array = NDArray[np.float64]
MOST_REPORTS = 1 << 53  # beyond it float64 does not hold every whole number


def check_counts(channel: Channel, counts: ArrayLike) -> Array:
    """Return counts as an array of its own, shaped like the channel's output."""
    support = channel.support
    try:
        given = np.asarray(counts)
    except ValueError:  # rows of different lengths
        raise InputError("counts must be an array of numbers") from None
    if given.dtype.kind not in "biuf":
        raise InputError(f"counts must be an array of numbers, got {given.dtype}")
    values = given.astype(np.float64)
    if values.shape == (int(support.sum()),):
        spread = np.zeros(support.shape)
        spread[support] = values
        values = spread
    if values.shape != support.shape:
        raise InputError(
            f"counts must have shape {support.shape} or ({int(support.sum())},), got {values.shape}"
        )
    for broken, rule in _COUNT_RULES:
        if (bad := broken(values)).any():
            raise InputError(f"counts must be {rule}, got {values[bad][0]}")
    if values[~support].any():
        raise InputError("counts must be 0 outside the output domain: these reports are forged")
    if not 0 < values.sum() <= MOST_REPORTS:
        raise InputError(f"counts must hold 1 to {MOST_REPORTS} reports, got {values.sum():.17g}")
    return values


_COUNT_RULES: list[tuple[Callable[[Array], NDArray[np.bool_]], str]] = [
    (lambda v: ~np.isfinite(v), "finite"),
    (lambda v: v < 0, "0 or more"),
    (lambda v: v != np.round(v), "whole numbers"),
    (lambda v: v > MOST_REPORTS, f"at most {MOST_REPORTS}"),
]
