"""Intervals of shares from scores, an unbiased estimate of the share from each report alone.

A channel may know only the reports that came, as far as their likelihoods go: its attribute
``conditional`` is then True, and the law of all reports cannot be had from it. But it knows what
its reports tell on average. Scores of different people are independent, so their mean has the
share as expectation and their spread over sqrt(n) as standard error, for every density: nothing of
EM, and no law of all reports, is needed.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.interval import cut_to_shares, scaled_bounds, standard_errors

Array = NDArray[np.float64]


@runtime_checkable
class Scored(Protocol):
    """A channel whose reports have scores."""

    @property
    def score_step(self) -> float:
        """By how much one more cell of a region in a report raises its score."""

    def scores(self, weights: Array) -> Array:
        """Return an unbiased share of a region from each report, shaped like counts."""


def score_bounds(
    channel: Channel, counts: Array, level: float
) -> Callable[[Array], tuple[float, float]]:
    """Return the function from weights of cells to the mean score -+ z standard errors.

    It is cut to what the weights allow. From one report, nothing else is known. As in "fisher" a
    term stands beside the variance, (z / n)^2 in units of a step: it keeps an interval open where
    no report holds a cell of the region.
    """
    if not isinstance(channel, Scored):
        raise InputError(f"method scores needs reports that are sets, got {type(channel).__name__}")
    n = float(counts.sum())
    reach = standard_errors(level)
    step = channel.score_step

    def of_unit(unit: Array) -> tuple[float, float]:
        if n < 2:  # nobody to compare with
            return 0.0, 1.0
        scores = channel.scores(unit)
        center = float((counts * scores).sum()) / n
        variance = float((counts * (scores - center) ** 2).sum()) / (n - 1) / n
        # `reach` is z: without any variance the interval still goes z^2 / n steps to either side.
        error = np.sqrt(variance + (reach * step / n) ** 2)
        lower, upper = cut_to_shares(np.float64(center), reach * error)
        return float(lower), float(upper)

    return lambda weights: scaled_bounds(weights, of_unit)
