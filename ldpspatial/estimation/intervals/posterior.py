"""Intervals from the samples of a field: quantiles, drawn out by what its prior gets wrong.

No prior is right for every city. Real ones have peaks of single cells, and edges, that a smooth
field takes for less than they are, so the bare quantiles hold the truth too seldom. Their distances
from the mean are therefore stretched by 1.1, and beside them stands what no report tells: where
people are within a patch (:mod:`.patches`). Upwards its standard deviation counts 3 times for a
single cell, where a peak may be, and 1.5 times for many; in between by the effective number of
cells, (sum w f)^2 / sum (w f)^2, of the region or of all that is not in it, where that is fewer.
The numbers were found on six squares of two cities, the 3 with a look at five others, and hold on
these (docs/experiments/region-intervals.md). They are no theorem: a map unlike all of these, such
as one with everybody in a few cells, may lie outside more often.

Of regions of more than one cell the upper end is moved by what a crowd may be that few reports do
not show (:mod:`.crowds`).
"""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import is_conditional
from ldpspatial.channels.reach import disk_radius
from ldpspatial.errors import InputError, InputWarning
from ldpspatial.estimation.field import Field
from ldpspatial.estimation.field.posterior import UNTRUSTED
from ldpspatial.estimation.intervals.crowds import Crowds
from ldpspatial.estimation.intervals.interval import (
    Uncertainty,
    scaled_bounds,
    share_of,
    standard_errors,
)
from ldpspatial.estimation.intervals.patches import RADIUS, Patches
from ldpspatial.estimation.result import Estimate

Array = NDArray[np.float64]
MOST_LEVEL = 0.95  # beyond it samples are too few: distances grow as those of a normal law
STRETCH = 1.1  # of the samples' quantiles, to either side
MORE_THAN_A_CELL = 0.1  # cells beyond a region's first, from which it is one of several
MANY_UP, CELL_UP = 1.5, 3.0  # of what patches leave open, upwards: of many cells, and of one


def samples_of(estimate: Estimate) -> Array:
    """Return (S, d, d) samples: those of the estimate, or of a field from its counts.

    Raises
    ------
    InputError
        There are none, and the field does not take the channel, or nobody measured its intervals
        there.

    Warns
    -----
    InputWarning
        The field of the samples, the estimate's own or one that was fitted, is not to be trusted.
    """
    if estimate.samples is not None:
        _warn_of(estimate)
        return estimate.samples
    if is_conditional(estimate.channel):
        raise InputError(
            "method must not be posterior where the channel knows only the reports that came: ask "
            "for shares of regions, which have method scores"
        )
    known = estimate.estimator if isinstance(estimate.estimator, Field) else Field()
    found = replace(known, map_alone=False).fit(estimate.channel, estimate.counts)
    _warn_of(found)
    return np.asarray(found.samples)


def _warn_of(field: Estimate) -> None:
    if field.facts.get("verdict") == UNTRUSTED:
        is_beyond = float(field.facts.get("outside", 0)) > 0
        why = "its support leaves out people" if is_beyond else "its chains did not agree"
        warnings.warn(
            f"the field whose samples intervals are made of is not to be trusted: {why}, and "
            "intervals may be too narrow",
            InputWarning,
            stacklevel=3,
        )


def posterior(estimate: Estimate, level: float, crowded: bool = True) -> Uncertainty:
    """Return intervals from samples; errors are those of :func:`samples_of`.

    ``crowded``: whether those of regions reach as far up as a crowd may that no report shows.
    """
    samples = samples_of(estimate)
    mean = samples.mean(0)
    flat = samples.reshape(len(samples), -1)
    read, farther = read_at(level)
    ends = (1 - read) / 2, (1 + read) / 2
    errors = standard_errors(level)
    patches = Patches(mean, RADIUS * disk_radius(estimate.channel))
    crowds = Crowds(samples)

    def of_unit(unit: Array) -> tuple[float, float]:
        inside = effective_cells(unit * mean)
        outside = effective_cells((1 - unit) * mean)
        if outside < inside:  # what is known of a peak is known of all that is not in it
            lower, upper = of_unit(1 - unit)
            return 1 - upper, 1 - lower
        share = np.float64(share_of(mean, unit))
        shares = flat @ unit.ravel()
        reach = farther * (np.quantile(shares, ends) - share)
        open_ = errors * float(np.sqrt(patches.variance(unit)))
        drawn = _drawn_out(share, reach[0], reach[1], open_, inside)
        lower, upper = float(drawn[0]), float(drawn[1])
        # A cell's interval is the same as a region's, which files round to a little more than it.
        more = min(float(unit.sum() - unit.max()) / MORE_THAN_A_CELL, 1.0)
        if crowded and more > 0:
            upper = min(upper + more * farther * crowds.reach(shares, read), 1.0)
        return lower, upper

    reach = farther * (np.quantile(samples, ends, axis=0) - mean)
    of_cells = errors * np.sqrt(patches.of_cells())
    lower, upper = _drawn_out(mean, reach[0], reach[1], of_cells, 1.0)
    return Uncertainty(
        level, "posterior", lower, upper, mean, partial(scaled_bounds, of_unit=of_unit)
    )


def read_at(level: float) -> tuple[float, float]:
    """Return the level at which quantiles are read, and how much farther away the ends are."""
    if level <= MOST_LEVEL:
        return level, 1.0
    return MOST_LEVEL, standard_errors(level) / standard_errors(MOST_LEVEL)


def effective_cells(people: Array) -> float:
    """Return of how many cells, all alike, the people could be; at least 1."""
    squares = float((people**2).sum())
    return max(float(people.sum()) ** 2 / squares, 1.0) if squares > 0 else 1.0


def _drawn_out(
    mean: Array | np.float64, low: Array, high: Array, open_: Array | float, cells: float
) -> tuple[Array, Array]:
    """Return the ends of shares of so many cells, from quantiles less their mean."""
    # Where nearly all samples are alike a quantile may lie beyond the mean.
    down = np.hypot(STRETCH * np.maximum(-low, 0.0), open_)
    more = MANY_UP + (CELL_UP - MANY_UP) / cells
    up = np.hypot(STRETCH * np.maximum(high, 0.0), more * open_)
    return np.clip(mean - down, 0.0, 1.0), np.clip(mean + up, 0.0, 1.0)
