"""Estimate: the answer of every estimator, and the function that makes one from counts."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client_sdk.validate import is_number
from ldpspatial.channel import Channel
from ldpspatial.errors import InputError
from ldpspatial.estimation.em import Progress, expectation_maximisation
from ldpspatial.estimation.goodness import GoodnessOfFit, goodness_of_fit
from ldpspatial.estimation.regional import share_intervals
from ldpspatial.estimation.smoothing import Smoother, smoother
from ldpspatial.estimation.stopping import StoppingRule, stopping_rule
from ldpspatial.estimation.uncertainty import Interval, Uncertainty, bootstrap, fisher

Array = NDArray[np.float64]
MOST_REPORTS = 1 << 53  # beyond it float64 does not hold every whole number


@dataclass(frozen=True)
class Estimate:
    """A density with the path that led to it.

    Attributes
    ----------
    density : (d, d) array
        Non-negative, sums to 1; row 0 is the south, column 0 the west.
    log_likelihood : float
        Total log-likelihood of the counts in nats.
    iterations : int
        Steps taken.
    converged : bool
        True where the stopping rule was met, False where the iteration limit ended it.
    rule : str
        Name of the stopping rule.
    trace : tuple of float
        Log-likelihood at the start and after each step.
    channel : Channel
    counts : array
        Reports by output cell, shaped like ``channel.support``.
    """

    density: Array
    log_likelihood: float
    iterations: int
    converged: bool
    rule: str
    trace: tuple[float, ...] = field(repr=False)
    channel: Channel = field(repr=False)
    counts: Array = field(repr=False)

    smooth: Smoother | None = field(repr=False, default=None)
    stop: StoppingRule | None = field(repr=False, default=None)

    @property
    def n(self) -> int:
        """Number of reports."""
        return int(self.counts.sum())

    def uncertainty(
        self,
        level: float = 0.95,
        method: str = "fisher",
        rng: np.random.Generator | None = None,
        replicates: int = 100,
        progress: Callable[[int], None] | None = None,
    ) -> Uncertainty:
        """Return confidence intervals per cell and for any region.

        Parameters
        ----------
        level : float in (0, 1)
        method : {"fisher", "bootstrap"}
            "fisher" covers at its level for every density, up to 64 x 64 cells; "bootstrap"
            is narrower, works at any size and is too narrow at isolated peaks.
        rng : numpy.random.Generator
            Needed by "bootstrap" only.
        replicates : int >= 20
            Repetitions of "bootstrap".
        progress : callable (replicates done), optional

        Examples
        --------
        >>> import numpy as np
        >>> from client_sdk import response_table
        >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
        >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
        >>> west = np.zeros((5, 5), bool)
        >>> west[:, :2] = True
        >>> share = estimate(channel, counts).uncertainty().region(west)
        >>> share.lower < 0.4 < share.upper
        True
        """
        if not is_number(level) or not 0 < level < 1:
            raise InputError(f"level must lie between 0 and 1, got {level!r}")
        if method == "fisher":
            return fisher(self, level)
        if method != "bootstrap":
            raise InputError(f"method must be fisher or bootstrap, got {method!r}")
        if not isinstance(rng, np.random.Generator):
            raise InputError(
                f"rng must be a numpy Generator for method bootstrap, got {type(rng).__name__}"
            )
        replicates = _whole_number("replicates", replicates, 20)
        rule = self.stop or stopping_rule("scaled", self.channel)
        return bootstrap(self, level, rng, replicates, rule, self.smooth, progress)

    def share(
        self,
        region_weights: ArrayLike,
        level: float = 0.95,
        method: str = "auto",
        rng: np.random.Generator | None = None,
    ) -> Interval:
        """Return the share of the people in a region, with a confidence interval.

        Parameters
        ----------
        region_weights : (d, d) array in [0, 1]
            Share of each cell that the region covers, as :mod:`ldpspatial.regions` makes them;
            a bool array for whole cells.
        level : float in (0, 1)
        method : {"auto", "likelihood", "fisher", "bootstrap"}
            "likelihood": all shares that the likelihood-ratio test does not reject, with
            f >= 0; to 64 cells a side, narrower than "fisher" and right for all but maps of a
            few crowded cells. "fisher" and "bootstrap" as in :meth:`uncertainty`.
            "auto": fisher to 20 cells a side, likelihood to 32 and where fisher cannot,
            bootstrap beyond.
        rng : numpy.random.Generator
            Needed by "bootstrap" only.

        Returns
        -------
        Interval
            ``estimate`` is the share in this density. EM stops early, so on rare occasions
            it lies outside an interval that comes from the counts alone ("likelihood",
            "fisher"). The interval is then left as it is: widened, it would tell of the
            stopping rule, and the counts do speak against the estimate.

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
        >>> weights = np.zeros((5, 5))
        >>> weights[:, :2], weights[:, 2] = 1, 0.5  # the western half of the square
        >>> half = estimate(channel, counts).share(weights)
        >>> 0.45 < half.lower < 0.5 < half.upper < 0.55
        True
        """
        return share_intervals(self, level, method, rng).of(region_weights)

    def goodness_of_fit(self) -> GoodnessOfFit:
        """Check whether the counts can have come from this channel under any density."""
        return goodness_of_fit(self.channel, self.counts, self.density, self.iterations)


def estimate(
    channel: Channel,
    counts: ArrayLike,
    rule: "str | StoppingRule" = "scaled",
    smoothing: "str | Smoother | None" = None,
    max_iterations: int = 10_000,
    progress: Progress | None = None,
) -> Estimate:
    """Recover the density of positions from counts of reports by EM.

    Parameters
    ----------
    channel : Channel
        For a disk mechanism ``StampChannel(collection.table)``.
    counts : array of whole numbers >= 0
        Shaped like ``channel.support``, or the (N,) counts in the table's index order.
    rule : {"scaled", "likelihood", "published"} or StoppingRule
        "scaled" stops when a step gains less than 2e-4 d e^eps nats, d the side in cells;
        docs/estimation.md has the measurement that made it the default.
    smoothing : None, "binomial", "five-point" or a function, optional
        Smooth after each step (EMS).
    max_iterations : int >= 1
        An estimate that stops here says ``converged=False``.
    progress : callable (step, log-likelihood), optional

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        Counts of a wrong shape, negative, fractional or not finite, none at all, more than 2^53
        in all, or in a cell that the channel cannot report; another bad argument.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> estimate(channel, counts).density.trace() > 0.9
    True
    """
    checked = check_counts(channel, counts)
    max_iterations = _whole_number("max_iterations", max_iterations, 1)
    stop, smooth = stopping_rule(rule, channel), smoother(smoothing)
    fit = expectation_maximisation(
        channel, checked, stop, max_iterations, smooth, progress=progress
    )
    return Estimate(
        density=fit.density,
        log_likelihood=fit.trace[-1],
        iterations=len(fit.trace) - 1,
        converged=fit.converged,
        rule=stop.name,
        trace=tuple(fit.trace),
        channel=channel,
        counts=checked,
        smooth=smooth,
        stop=stop,
    )


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


def _whole_number(name: str, value: object, least: int) -> int:
    """Return ``value`` as an int; numpy integers are welcome."""
    rule = f"{name} must be a whole number from {least} on, got {value!r}"
    if isinstance(value, (bool, np.bool_)):
        raise InputError(rule)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(rule) from None
    if number < least:
        raise InputError(rule)
    return number


_COUNT_RULES: list[tuple[Callable[[Array], NDArray[np.bool_]], str]] = [
    (lambda v: ~np.isfinite(v), "finite"),
    (lambda v: v < 0, "0 or more"),
    (lambda v: v != np.round(v), "whole numbers"),
    (lambda v: v > MOST_REPORTS, f"at most {MOST_REPORTS}"),
]
