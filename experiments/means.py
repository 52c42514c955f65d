"""Means with their intervals, and ranges of whole numbers, as text."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ldpspatial.comparison import curves


def mean_and_half_width(values: ArrayLike) -> tuple[float, float]:
    """Return a mean and half of its 95 % interval by Student's t; NaN of a single value."""
    return curves.mean_and_half_width(np.asarray(values, dtype=np.float64).ravel())


def shown(values: ArrayLike, digits: int = 2) -> str:
    """Return "mean ± half width", without the latter where there is one value only.

    Examples
    --------
    >>> shown([1.0, 1.2, 1.4]), shown([3.0])
    ('1.20 ± 0.50', '3.00')
    """
    mean, half = mean_and_half_width(values)
    text = f"{mean:,.{digits}f}"
    return text if np.isnan(half) else f"{text} ± {half:,.{digits}f}"


def range_of(values: Iterable[float]) -> str:
    """Return the least and the most of some numbers, as "0.12 to 3.40"."""
    each = list(values)
    return f"{min(each):.2f} to {max(each):.2f}"


def span(values: ArrayLike) -> str:
    """Return the least and the most of whole numbers, as "334-340", or the only one."""
    given = np.asarray(values)
    least = int(given.min())
    most = int(given.max())
    return f"{least:,}" if least == most else f"{least:,}-{most:,}"
