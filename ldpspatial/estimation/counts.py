"""What counts and whole numbers must be before anything is estimated from them."""

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.errors import InputError
from ldpspatial.validate import instance, number_array

Array = NDArray[np.float64]
MOST_REPORTS = 1 << 53  # beyond it float64 does not hold every whole number


def check_counts(channel: Channel, counts: ArrayLike) -> Array:
    """Return counts as a new array, shaped like the channel's output."""
    support = instance("channel", channel, Channel).support  # type: ignore[type-abstract]
    values = number_array("counts", counts, interval=f"[0, {MOST_REPORTS}]")
    if (parts := values != np.round(values)).any():
        raise InputError(f"counts must be whole numbers, got {values[parts][0]}")
    if values.shape == (int(support.sum()),):
        spread = np.zeros(support.shape)
        spread[support] = values
        values = spread
    if values.shape != support.shape:
        raise InputError(
            f"counts must have shape {support.shape} or ({int(support.sum())},), got {values.shape}"
        )
    if values[~support].any():
        raise InputError("counts must be 0 outside the output domain: these reports are forged")
    if not 0 < values.sum() <= MOST_REPORTS:
        raise InputError(f"counts must hold 1 to {MOST_REPORTS} reports, got {values.sum():.17g}")
    return values


def generator_of(counts: NDArray[np.float64]) -> np.random.Generator:
    """Return random numbers whose seed is made of counts: equal counts make equal numbers."""
    # One type and one memory order: equal counts make equal seeds however they are held.
    whole = np.ascontiguousarray(counts.astype(np.int64))
    return np.random.default_rng(np.frombuffer(hashlib.sha256(whole.tobytes()).digest(), np.uint32))
