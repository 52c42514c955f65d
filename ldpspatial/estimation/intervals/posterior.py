"""Intervals from the samples of a field: quantiles, drawn out by what its prior gets wrong.

No prior is right for every city. Real ones have peaks of single cells, and edges, that a smooth
field takes for less than they are, so the bare quantiles hold the truth too seldom. Their distances
from the mean are therefore stretched: by 1.2 for a region of many cells; for a single cell by 2
upwards, where a peak may be, and not at all downwards; in between by the effective number of cells,
(sum w f)^2 / sum (w f)^2, of the region or of all that is not in it, where that is fewer. The three
numbers were found on six squares of two cities and hold on five others (docs/estimation.md has
both). They are no theorem: a map unlike all of these, such as
one with everybody in a few cells, may lie outside more often.
"""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.estimation.field import Field
from ldpspatial.estimation.intervals.interval import (
    Uncertainty,
    is_conditional,
    standard_errors,
)
from ldpspatial.estimation.result import Estimate

Array = NDArray[np.float64]
MOST_LEVEL = 0.95  # beyond it samples are too few: distances grow as those of a normal law
STRETCH = 1.2  # of an interval of many cells, to either side
CELL_UP, CELL_DOWN = 2.0, 1.0  # of a single cell


def samples_of(estimate: Estimate) -> Array:
    """Return (S, d, d) samples: those of the estimate, or of a field from its counts.

    Raises
    ------
    InputError
        There are none, and the field does not take the channel, or nobody measured its intervals
        there.
    """
    if estimate.samples is not None:
        return estimate.samples
    if is_conditional(estimate.channel):
        raise InputError(
            "method must not be posterior where the channel knows only the reports that came: ask "
            "for shares of regions, which have method scores"
        )
    return np.asarray(Field().fit(estimate.channel, estimate.counts).samples)


def posterior(estimate: Estimate, level: float) -> Uncertainty:
    """Return intervals from samples; errors are those of :func:`samples_of`."""
    samples = samples_of(estimate)
    mean = samples.mean(0)
    flat = samples.reshape(len(samples), -1)
    read = min(level, MOST_LEVEL)
    ends = (1 - read) / 2, (1 + read) / 2
    farther = standard_errors(level) / standard_errors(read)

    def of_unit(unit: Array) -> tuple[float, float]:
        inside = effective_cells(unit * mean)
        outside = effective_cells((1 - unit) * mean)
        if outside < inside:  # what is known of a peak is known of all that is not in it
            lower, upper = of_unit(1 - unit)
            return 1 - upper, 1 - lower
        low, high = np.quantile(flat @ unit.ravel(), ends)
        share = np.float64((unit * mean).sum())
        lower, upper = map(float, _stretched(share, low, high, inside, farther))
        return lower, upper

    low, high = np.quantile(samples, ends, axis=0)
    lower, upper = _stretched(mean, low, high, 1.0, farther)
    return Uncertainty(level, "posterior", lower, upper, mean, of_unit)


def effective_cells(people: Array) -> float:
    """Return of how many cells, all alike, the people could be; at least 1."""
    squares = float((people**2).sum())
    return max(float(people.sum()) ** 2 / squares, 1.0) if squares > 0 else 1.0


def _stretched(
    mean: Array | np.float64, low: Array, high: Array, cells: float, farther: float
) -> tuple[Array, Array]:
    """Return the ends of shares of so many cells, drawn away from their mean."""
    down = farther * (STRETCH + (CELL_DOWN - STRETCH) / cells)
    up = farther * (STRETCH + (CELL_UP - STRETCH) / cells)
    # A quantile may lie beyond the mean where nearly all samples are alike: it stays.
    lower = np.minimum(low, mean - down * (mean - low))
    upper = np.maximum(high, mean + up * (high - mean))
    # Samples are of whole users, and nearly all may have none where the mean is above 0.
    upper = np.maximum(upper, mean)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
