"""Intervals from the inverse Fisher information: for every density, and wide.

EM's bias is left out of account altogether. The interval surrounds the efficient unbiased linear
estimate, whose covariance is Cov = ((M^T diag(1/g) M)^-1 - f f^T) / n. It covers at its level for
every density, and is the wider one, because it does not use f >= 0. (z / n)^2 is added to every
variance, so that a share of which no report was seen may be as large as in Wilson's interval,
z^2 / n.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ldpspatial.channels.protocol import Channel, is_conditional, operators
from ldpspatial.errors import InputError
from ldpspatial.estimation.field import Field
from ldpspatial.estimation.field.posterior import Posterior
from ldpspatial.estimation.intervals.interval import (
    Uncertainty,
    cut_to_shares,
    scaled_bounds,
    standard_errors,
)
from ldpspatial.estimation.result import Estimate
from ldpspatial.estimation.robust import Cleaned

Array = NDArray[np.float64]
# Beyond it the interval of a cell is wider than what any cell holds (docs/estimation.md).
INFORMATIVE_CELLS = 20
FISHER_CELLS = 64  # the information matrix has d^4 entries: 134 MB at 64, and some copies
LEAST_CONDITION = 1e-12  # below it the inverse has fewer than four digits
POSTERIOR = ("method", "posterior")  # what to use where this one cannot tell


def informative(estimate: Estimate, level: float) -> Uncertainty | None:
    """Return the intervals where they are informative.

    They are so up to 20 cells a side, where the counts determine every cell.
    """
    if is_conditional(estimate.channel) or max(estimate.channel.input_shape) > INFORMATIVE_CELLS:
        return None
    if is_of_others(estimate):
        return None
    try:
        return reports_alone(estimate, possible_cells(estimate)).at(level)
    except InputError:  # the counts do not determine every cell
        return None


def is_of_others(estimate: Estimate) -> bool:
    """Return whether an estimate is not of all people whose reports were counted.

    They are those in an area, or some were taken out as forged, or are outside of where people can
    be, as it was told.
    """
    told = estimate.details
    if estimate.of_all < 1 or (isinstance(told, Cleaned) and told.taken_out > 0):
        return True
    return isinstance(told, Posterior) and told.outside > 0


def possible_cells(estimate: Estimate) -> NDArray[np.bool_] | None:
    """Return the cells where people can be by the estimator's support; None: all of them."""
    known = estimate.estimator
    if isinstance(known, Field) and known.support is not None:
        return np.asarray(known.support) > 0
    return None


def fisher(estimate: Estimate, level: float) -> Uncertainty:
    """Return intervals from the inverse Fisher information at the estimate."""
    return reports_alone(estimate).at(level)


@dataclass(frozen=True, eq=False)
class ReportsAlone:
    """What the reports tell by themselves: the same for every level.

    Attributes
    ----------
    estimate : Estimate
    inside : (d, d) bool array or None
        The cells where people can be; None: all of them.
    inverse : (d * d, d * d) array
        That of the information that one report has, 0 outside.
    unbiased, variance : (d, d) arrays
        The efficient unbiased linear estimate of the cells, and its variances.
    """

    estimate: Estimate
    inside: NDArray[np.bool_] | None
    inverse: Array
    unbiased: Array
    variance: Array

    def at(self, level: float) -> Uncertainty:
        """Return the intervals at a level."""
        z = standard_errors(level)
        least = (z / self.estimate.n) ** 2
        open_ = self.variance
        if open_.size > 1:  # a single cell is the whole map
            open_ = open_ + least
        lower, upper = cut_to_shares(self.unbiased, z * np.sqrt(open_))
        if self.inside is not None:
            upper[~self.inside] = 0.0

        def of_unit(unit: Array) -> tuple[float, float]:
            if self.inside is not None:  # who is where is known of nobody and of everybody
                within = unit[self.inside]
                if within.min() == within.max():
                    return float(within.min()), float(within.max())
            middle = np.float64((unit * self.unbiased).sum())
            reach = z * float(np.sqrt(self.variance_of(unit) + least))
            low, high = cut_to_shares(middle, reach)
            return float(low), float(high)

        bounds = partial(scaled_bounds, of_unit=of_unit)
        return Uncertainty(level, "fisher", lower, upper, self.estimate.density, bounds)

    def open_at(self, level: float) -> float:
        """Return the summed widths of cells: not cut, nor widened where n is small."""
        return 2 * standard_errors(level) * float(np.sqrt(self.variance).sum())

    def variance_of(self, weights: Array) -> float:
        """Return that of the share of a region with (d, d) weights of the cells."""
        flat = weights.ravel()
        share = float((weights * self.estimate.density).sum())
        # inverse @ 1 = f, since M^T 1 = 1, so inverse - f f^T is >= 0 but for rounding.
        return max(float(flat @ self.inverse @ flat) - share**2, 0.0) / self.estimate.n


def reports_alone(estimate: Estimate, inside: NDArray[np.bool_] | None = None) -> ReportsAlone:
    """Return what the reports tell at the estimate.

    ``inside``: the (d, d) cells where people can be; all of them by default.
    """
    channel = estimate.channel
    n = estimate.n
    shape = channel.input_shape
    support = channel.support
    forward, adjoint = operators(channel)  # unchecked: a precision may be infinite, see below
    if is_conditional(channel):
        raise InputError(
            "method must not be fisher where the channel knows only the reports that came: ask "
            "for shares of regions, which have method scores"
        )
    if estimate.of_all < 1:
        raise InputError(
            "method must be posterior for a map of the people in an area, which the counts of all "
            f"reports do not tell alone, got 'fisher' for a map of {estimate.of_all:.3g} of them"
        )
    if max(shape) > FISHER_CELLS:
        raise InputError(
            f"method fisher takes at most {FISHER_CELLS} cells a side, got {max(shape)}: "
            "use {remedy}",
            remedy=POSTERIOR,
        )
    # Where a prediction underflows, _inverse refuses what comes of it.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        law = np.where(support, forward(estimate.density), 1)
        precision = np.where(support, 1 / law, 0)
        information = _information(channel, precision)
    inverse = _inverse_within(information, inside)
    # (M^T W M)^-1 M^T W c / n with W = diag(1/g). It is unbiased, as c / n has mean M f.
    unbiased = (inverse @ adjoint(precision * estimate.counts / n).ravel()).reshape(shape)
    # f is the EM density here too, whose information was inverted: only then is no variance
    # negative. The unbiased one may leave [0, 1], and its square exceed the inverse's diagonal.
    variance = (np.diag(inverse).reshape(shape) - estimate.density**2) / n
    return ReportsAlone(estimate, inside, inverse, unbiased, np.maximum(variance, 0.0))


def _information(channel: Channel, precision: Array) -> Array:
    """Return M^T diag(precision) M, column by column through the channel."""
    size = channel.input_shape[0] * channel.input_shape[1]
    information = np.empty((size, size))
    unit = np.zeros(channel.input_shape)
    forward, adjoint = operators(channel)
    for k in range(size):
        unit.flat[k] = 1
        # Column k of a symmetric matrix, which is its row k.
        information[k] = adjoint(precision * forward(unit)).ravel()
        unit.flat[k] = 0
    # FFTs round the two triangles differently, and Cholesky reads only one of them.
    return np.asarray((information + information.T) / 2)


def _inverse_within(information: Array, inside: NDArray[np.bool_] | None) -> Array:
    """Return the inverse among the cells where people can be, and 0 elsewhere."""
    if inside is None:
        return _inverse(information)
    kept = np.flatnonzero(inside)
    found = np.zeros_like(information)
    found[np.ix_(kept, kept)] = _inverse(information[np.ix_(kept, kept)])
    return found


def _inverse(information: Array) -> Array:
    """Return the inverse of a symmetric matrix that must be far enough from singular."""
    try:
        factor = linalg.cho_factor(information, lower=True)[0]
    except (linalg.LinAlgError, ValueError):  # ValueError: entries that are not finite
        condition = 0.0
    else:
        norm1 = np.abs(information).sum(axis=0).max()
        # The reciprocal of the condition number. Above its diagonal the factor holds rubbish.
        condition, _ = linalg.lapack.dpocon(factor, norm1, uplo="L")
    if condition < LEAST_CONDITION:
        raise InputError(
            "the counts do not determine every cell at this epsilon: use fewer cells, or {remedy}",
            remedy=POSTERIOR,
        )
    half, _ = linalg.lapack.dpotri(factor, lower=1)  # a third of the time of solving for columns
    half = np.tril(half)
    return np.asarray(half + np.tril(half, -1).T)
