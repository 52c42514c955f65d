"""How sure an estimate is: intervals for cells and for any region.

Three methods, with different promises (docs/estimation.md has the measured coverage):

- **fisher**: EM's bias is left out of account altogether. The interval surrounds the efficient
  unbiased linear estimate, whose covariance is the inverse Fisher information,
  Cov = ((M^T diag(1/g) M)^-1 - f f^T) / n. It covers at its level for every density, and is
  the wider one, because it does not use f >= 0. (z / n)^2 is added to every variance, so that
  a share of which no report was seen may be as large as in Wilson's interval, z^2 / n.
- **bootstrap**: counts are drawn again from the estimate and estimated again. The interval is
  estimate +- z times the spread. It sees EM's variance and not its bias: right for smooth maps,
  too narrow at isolated peaks.
- **posterior**: quantiles of maps that the estimator drew from a posterior
  (:class:`ldpspatial.estimation.field.Field`). They are as right as its prior; they leave out
  where within a cell, or a block of cells, people are.

A channel may know only the reports that came, as far as their likelihoods go: its attribute
``conditional`` is then True. The law of all reports cannot be had from it. So "fisher", which
needs it, refuses, and "bootstrap" draws again from the reports that came (Efron 1979). Shares of
regions come from scores there (:mod:`ldpspatial.estimation.intervals.scores`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import ndtri

from ldpspatial.channels.protocol import Channel, operators
from ldpspatial.errors import InputError
from ldpspatial.estimation.result import Estimate
from ldpspatial.validate import (
    callback,
    check_generator,
    instance,
    number_in,
    one_of,
    whole_number,
)

Array = NDArray[np.float64]
# Beyond it the fisher interval of a cell is wider than what any cell holds (docs/estimation.md).
INFORMATIVE_CELLS = 20
BOOTSTRAP = ("method", "bootstrap")  # what to use where the others cannot tell
FISHER_CELLS = 64  # the information matrix has d^4 entries: 134 MB at 64, and some copies
LEAST_CONDITION = 1e-12  # below it the inverse has fewer than four digits


@dataclass(frozen=True)
class Interval:
    """A share of the population with its confidence interval, all in [0, 1]."""

    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Uncertainty:
    """Pointwise confidence intervals of an estimate.

    Attributes
    ----------
    level : float
        Probability with which one interval covers the truth (each by itself, not all at once).
    method : {"fisher", "bootstrap", "posterior"}
    lower, upper : (d, d) arrays in [0, 1]
        Interval of each cell.
    """

    level: float
    method: str
    lower: Array
    upper: Array
    _of_unit: Callable[[Array], tuple[float, float]]  # weights from 0 to 1 -> lower, upper
    _density: Array

    @property
    def width(self) -> Array:
        """(d, d) array, upper minus lower."""
        return self.upper - self.lower

    def region(self, mask: ArrayLike) -> Interval:
        """Return the share of people in a region with its interval.

        Parameters
        ----------
        mask : (d, d) bool array
            True for the cells of the region.

        Returns
        -------
        Interval
            ``estimate`` is the EM estimate. With "fisher" the interval surrounds the unbiased
            estimate instead. It may exclude the EM estimate, and often does where nearly all
            people crowd into a few cells
            (:func:`ldpspatial.estimation.intervals.regions.region_share`).
        """
        try:
            cells = np.asarray(mask)
        except ValueError:  # rows of different lengths
            raise InputError("mask must be a bool array, of one shape") from None
        if cells.dtype != bool or cells.shape != self.lower.shape:
            raise InputError(
                f"mask must be a bool array of shape {self.lower.shape}, "
                f"got {cells.dtype} of shape {cells.shape}"
            )
        weights = cells.astype(np.float64)
        return Interval(share_of(self._density, weights), *self.bounds(weights))

    def bounds(self, weights: Array) -> tuple[float, float]:
        """Return lower and upper bound of the share in a region with these weights of the cells."""
        return scaled_bounds(weights, self._of_unit)


def cell_intervals(
    estimate: Estimate,
    level: float = 0.95,
    method: str = "fisher",
    rng: np.random.Generator | None = None,
    replicates: int = 100,
    progress: Callable[[int], None] | None = None,
) -> Uncertainty:
    """Return confidence intervals per cell and for any region.

    Parameters
    ----------
    estimate : Estimate
    level : float in (0, 1)
    method : {"auto", "fisher", "bootstrap", "posterior"}
        "fisher" covers at its level for every density, up to 64 x 64 cells; "bootstrap"
        is narrower, works at any size and is too narrow at isolated peaks; "posterior" takes
        the samples of rule field, and no other has any. "auto": posterior where there are samples,
        else fisher to 20 cells a side where the counts determine every cell, otherwise bootstrap.
    rng : numpy.random.Generator
        Needed by "bootstrap" only.
    replicates : int >= 20
        Repetitions of "bootstrap".
    progress : callable (replicates done), optional

    Raises
    ------
    InputError
        A bad argument; more cells than the method takes; too few reports for "fisher".

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> west = np.zeros((5, 5), bool)
    >>> west[:, :2] = True
    >>> share = cell_intervals(EM().fit(channel, counts)).region(west)
    >>> share.lower < 0.4 < share.upper
    True
    """
    instance("estimate", estimate, Estimate)
    level = number_in("level", level, "(0, 1)")
    one_of("method", method, ("auto", "fisher", "bootstrap", "posterior"))
    callback("progress", progress)
    if method == "posterior" or (method == "auto" and estimate.samples is not None):
        return posterior(estimate, level)
    if method == "auto" and (found := informative_fisher(estimate, level)):
        return found
    if method == "fisher":
        return fisher(estimate, level)
    generator = check_generator(rng, " for method bootstrap")
    return bootstrap(
        estimate, level, generator, whole_number("replicates", replicates, 20), progress
    )


def informative_fisher(estimate: Estimate, level: float) -> Uncertainty | None:
    """Return the fisher intervals where they are informative: what "auto" takes first.

    They do so up to 20 cells a side, where the counts determine every cell.
    """
    if is_conditional(estimate.channel) or max(estimate.channel.input_shape) > INFORMATIVE_CELLS:
        return None
    try:
        return fisher(estimate, level)
    except InputError:  # the counts do not determine every cell
        return None


def fisher(estimate: Estimate, level: float) -> Uncertainty:
    """Return intervals from the inverse Fisher information at the estimate."""
    channel = estimate.channel
    n = estimate.n
    shape = channel.input_shape
    support = channel.support
    forward, adjoint = operators(channel)  # unchecked: a precision may be infinite, see below
    if is_conditional(channel):
        raise InputError(
            "method must be bootstrap where the channel knows only the reports that came, "
            "got 'fisher'"
        )
    if max(shape) > FISHER_CELLS:
        raise InputError(
            f"method fisher takes at most {FISHER_CELLS} cells a side, got {max(shape)}: "
            "use {remedy}",
            remedy=BOOTSTRAP,
        )
    # Where a prediction underflows, _inverse refuses what comes of it.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        law = np.where(support, forward(estimate.density), 1)
        precision = np.where(support, 1 / law, 0)
        information = _information(channel, precision)
    inverse = _inverse(information)
    # (M^T W M)^-1 M^T W c / n with W = diag(1/g). It is unbiased, as c / n has mean M f.
    unbiased = (inverse @ adjoint(precision * estimate.counts / n).ravel()).reshape(shape)
    # f is the EM density here too, whose information was inverted: only then is no variance
    # negative. The unbiased one may leave [0, 1], and its square exceed the inverse's diagonal.
    variance = (np.diag(inverse).reshape(shape) - estimate.density**2) / n
    least = (standard_errors(level) / n) ** 2

    def of_weights(weights: Array) -> tuple[float, float]:
        flat = weights.ravel()
        share = float((weights * estimate.density).sum())
        # inverse @ 1 = f, since M^T 1 = 1, so inverse - f f^T is >= 0 but for rounding.
        spread = max(float(flat @ inverse @ flat) - share**2, 0.0) / n
        return float((weights * unbiased).sum()), float(np.sqrt(spread + least))

    if unbiased.size > 1:  # a single cell is the whole map
        variance += least
    return _pointwise(estimate, level, "fisher", unbiased, variance, of_weights)


def bootstrap(
    estimate: Estimate,
    level: float,
    rng: np.random.Generator,
    replicates: int,
    progress: Callable[[int], None] | None = None,
) -> Uncertainty:
    """Return intervals from the spread of estimates of counts drawn from the estimate."""
    channel = estimate.channel
    n = estimate.n
    support = channel.support
    resampled = is_conditional(channel)
    law = (estimate.counts if resampled else channel.forward(estimate.density))[support]
    law = law / law.sum()
    densities = []
    limit = max(2 * estimate.iterations, 100)
    for k in range(replicates):
        counts = np.zeros(support.shape)
        counts[support] = rng.multinomial(n, law)
        densities.append(estimate.again(counts, limit))
        if progress is not None:
            progress(k + 1)
    sample = np.array(densities)

    def of_weights(weights: Array) -> tuple[float, float]:
        center = float((weights * estimate.density).sum())
        return center, float((sample * weights).sum(axis=(1, 2)).std(ddof=1))

    variance = sample.var(axis=0, ddof=1)
    return _pointwise(estimate, level, "bootstrap", estimate.density, variance, of_weights)


def posterior(estimate: Estimate, level: float) -> Uncertainty:
    """Return intervals from the samples that the estimator drew."""
    samples = estimate.samples
    if samples is None:
        raise InputError(
            f"method posterior needs samples, and rule {estimate.rule} draws none: estimate with "
            "rule field"
        )
    ends = (1 - level) / 2, (1 + level) / 2
    flat = samples.reshape(len(samples), -1)

    def of_unit(unit: Array) -> tuple[float, float]:
        lower, upper = np.quantile(flat @ unit.ravel(), ends)
        return float(lower), float(upper)

    lower, upper = np.clip(np.quantile(samples, ends, axis=0), 0.0, 1.0)
    return Uncertainty(level, "posterior", lower, upper, of_unit, estimate.density)


def is_conditional(channel: Channel) -> bool:
    """Tell whether the channel's outputs are the reports that came, not all that there are."""
    return bool(getattr(channel, "conditional", False))


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


def _inverse(information: Array) -> Array:
    """Return the inverse of a symmetric matrix that must be far enough from singular."""
    try:
        factor, lower = linalg.cho_factor(information, lower=True)
    except (linalg.LinAlgError, ValueError):  # ValueError: entries that are not finite
        condition = 0.0
    else:
        norm1 = np.abs(information).sum(axis=0).max()
        # The reciprocal of the condition number. Above its diagonal the factor holds rubbish.
        condition, _ = linalg.lapack.dpocon(factor, norm1, uplo="L")
    if condition < LEAST_CONDITION:
        raise InputError(
            "the counts do not determine every cell at this epsilon: use fewer cells, or {remedy}",
            remedy=BOOTSTRAP,
        )
    return np.asarray(linalg.cho_solve((factor, lower), np.eye(len(information))))


def _pointwise(
    estimate: Estimate,
    level: float,
    method: str,
    center: Array,
    variance: Array,
    of_weights: Callable[[Array], tuple[float, float]],
) -> Uncertainty:
    reach = standard_errors(level) * np.sqrt(np.maximum(variance, 0))  # negative by rounding
    lower, upper = cut_to_shares(center, reach)

    def of_unit(unit: Array) -> tuple[float, float]:
        middle, error = of_weights(unit)
        low, high = cut_to_shares(np.float64(middle), standard_errors(level) * error)
        return float(low), float(high)

    return Uncertainty(level, method, lower, upper, of_unit, estimate.density)


def standard_errors(level: float) -> float:
    """Return how many standard errors an interval of this level reaches to either side."""
    # The lower tail: (1 + level) / 2 rounds to 1 near level 1, which would give infinity.
    return -float(ndtri((1 - level) / 2))


def cut_to_shares(center: Array | np.float64, reach: Array | float) -> tuple[Array, Array]:
    """Cut intervals to [0, 1], never to nothing.

    An unbiased estimate may be negative. Its interval then starts at 0 and reaches as far as if
    the estimate were 0, so that a cell never looks certain because of a negative number.
    """
    lower = np.clip(np.minimum(center, 1) - reach, 0, 1)
    upper = np.clip(np.maximum(center, 0) + reach, 0, 1)
    return np.asarray(lower), np.asarray(upper)


def scaled_bounds(
    weights: Array, of_unit: Callable[[Array], tuple[float, float]]
) -> tuple[float, float]:
    """Return the bounds of a share by a method for weights that reach from 0 to 1.

    What a method adds, and where it cuts, is a share of all people. Weights from low to high
    hold low of everybody at least and high at most: they are scaled, and the bounds scaled back,
    which leaves the weights of whole cells as they are.
    """
    low = float(weights.min())
    high = float(weights.max())
    if low == high:  # nowhere, or everywhere
        return low, high
    ends = of_unit((weights - low) / (high - low))
    # Written so, an end of 0 is exactly low and one of 1 exactly high.
    lower, upper = (float(np.clip(low * (1 - end) + high * end, low, high)) for end in ends)
    return lower, upper


def share_of(density: Array, weights: Array) -> float:
    """Return the share in a region, kept from leaving what the weights allow by rounding."""
    return float(np.clip((weights * density).sum(), weights.min(), weights.max()))
