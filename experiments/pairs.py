"""Releases beside each other on the same people: errors of a setting, and who is better."""

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from experiments.means import mean_and_half_width
from ldpspatial.errors import InputError

Array = NDArray[np.float64]
Verdict = Literal["lower", "level", "higher"]


def errors_of(table: pa.Table, release: str, metric: str, **setting: object) -> Array:
    """Return a metric of a release in one setting, repeat by repeat; W2 in cells.

    Parameters
    ----------
    table : pyarrow.Table
        As :func:`ldpspatial.compare` returns it.
    release : label
    metric : name in METRICS
    **setting
        Values of other columns, as ``epsilon=1.5, cells=15``.

    Raises
    ------
    InputError
        No such runs, or runs of several settings.
    """
    chosen = {"release": release, **setting}
    rows = table.select(list(dict.fromkeys([*chosen, "repeat", "cells", metric])))
    for column, value in chosen.items():
        rows = rows.filter(pc.equal(rows[column], value))
    order = np.argsort(rows["repeat"].to_numpy(), kind="stable")
    if len(order) == 0 or len(pc.unique(rows["repeat"])) < len(order):
        raise InputError(f"setting must name one run a repeat of {release!r}, got {setting}")
    found = rows[metric].to_numpy()[order]
    return np.asarray(found * rows["cells"].to_numpy()[order] if metric == "w2" else found)


def verdict(first: Array, second: Array) -> Verdict:
    """Tell whether the first errors are lower: the 95 % t interval of paired differences is.

    A single pair has no interval: it is level.

    Examples
    --------
    >>> verdict(np.array([1.0, 1.2, 1.1]), np.array([2.0, 2.3, 2.1]))
    'lower'
    """
    mean, half = mean_and_half_width(first - second)
    if not abs(mean) > half:
        return "level"
    return "lower" if mean < 0 else "higher"
