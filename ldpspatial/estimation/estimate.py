"""Estimate: the answer of every estimator, and the function that makes one from counts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client_sdk.validate import is_number
from ldpspatial.channel import Channel
from ldpspatial.errors import InputError
from ldpspatial.estimation.counts import check_counts, whole_number
from ldpspatial.estimation.em import Progress, expectation_maximisation
from ldpspatial.estimation.goodness import GoodnessOfFit, goodness_of_fit
from ldpspatial.estimation.kernel_channel import ALL
from ldpspatial.estimation.regional import share_intervals
from ldpspatial.estimation.sieve import cross_validate, fit_sieve
from ldpspatial.estimation.smoothing import SMOOTHERS, Smoother, smoother
from ldpspatial.estimation.stopping import (
    CROSS_VALIDATED,
    StoppingRule,
    stopping_rule,
)
from ldpspatial.estimation.uncertainty import Interval, Uncertainty, bootstrap, fisher

Array = NDArray[np.float64]


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
        True where the stopping rule was met, False where the iteration limit ended it or, by
        cross-validation, one of the fits that were compared.
    rule : str
        Name of the stopping rule.
    trace : tuple of float
        Log-likelihood at the start and after each step. It falls nowhere in plain EM; sparsity
        and smoothing may lower it.
    channel : Channel
    counts : array
        Reports by output cell, shaped like ``channel.support``.
    width : float
        Standard deviation in cells of the kernels that make up the density, after
        cross-validation; 0 for cells themselves, infinite for kernels of all widths at once.
    sparsity : float
        Users that each kernel had to explain there, on maps with ten users a cell and more; fewer
        in proportion on others. With 0 no kernel had to.
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
    width: float = 0.0
    sparsity: float = 0.0

    @property
    def kernel_width(self) -> float | str:
        """``width`` for files and tables, which have no infinity: "all" in place of it."""
        return "all" if self.width == ALL else self.width

    @property
    def smoothing(self) -> str:
        """Name of the smoother, "none" without one, "custom" for a function without a name."""
        if self.smooth is None:
            return "none"
        return next((name for name, known in SMOOTHERS.items() if known is self.smooth), "custom")

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
        replicates = whole_number("replicates", replicates, 20)
        return bootstrap(self, level, rng, replicates, progress)

    def again(self, counts: Array, max_iterations: int) -> Array:
        """Return the density that other counts of the same channel give, found in the same way.

        After cross-validation with the same width, sparsity and number of steps.
        """
        if self.rule == CROSS_VALIDATED:
            return fit_sieve(
                self.channel, counts, self.width, self.iterations - 1, self.sparsity
            ).density
        stop = self.stop or stopping_rule("scaled", self.channel)
        return expectation_maximisation(
            self.channel, counts, stop, max_iterations, self.smooth
        ).density

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
        method : {"auto", "likelihood", "fisher", "bootstrap", "scores"}
            "likelihood": all shares that the likelihood-ratio test does not reject, with
            f >= 0; to 64 cells a side, narrower than "fisher" and right for all but maps of a
            few crowded cells. "fisher" and "bootstrap" as in :meth:`uncertainty`.
            "scores": for reports that are sets (OUE, OLH, subset selection) and no others, the
            mean of what each tells alone, -+ z standard errors; right for every map and side.
            "fisher" and "likelihood" are refused there, and "bootstrap" covers too seldom.
            "auto": scores for sets; else fisher to 20 cells a side, likelihood to 32 and where
            fisher cannot, bootstrap beyond.
        rng : numpy.random.Generator
            Needed by "bootstrap" only.

        Returns
        -------
        Interval
            ``estimate`` is the share in this density. It may lie outside an interval that comes
            from the reports alone ("likelihood", "fisher", "scores"), and often does so where
            nearly all people crowd into a few cells: no cell holds fewer than 0 people, so
            that noise in the empty ones adds up at the cost of the crowded, and EM stops early.
            The interval is left as it is; that of "fisher" is right there (docs/ranges.md).

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
    rule : {"scaled", "likelihood", "published", "cross-validated"} or StoppingRule
        "scaled" stops when a step gains less than 2e-4 d e^eps nats, d the side in cells;
        docs/estimation.md has the measurement that made it the default. "cross-validated" finds
        the smoothness of the map and the number of steps by predicting left-out reports
        (:mod:`ldpspatial.estimation.sieve`): maps are far better, mostly by a third in W2, for
        some hundred to some thousand times the work.
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
    max_iterations = whole_number("max_iterations", max_iterations, 1)
    smooth, width, sparsity, stop = smoother(smoothing), 0.0, 0.0, None
    if isinstance(rule, str) and rule == CROSS_VALIDATED:
        if smooth is not None:
            raise InputError(
                f"smoothing must be left out (None) with rule {rule}, which finds its own, "
                f"got {smoothing!r}"
            )
        choice = cross_validate(channel, checked, max_iterations)
        width, sparsity = choice.width, choice.sparsity
        fit = fit_sieve(channel, checked, width, choice.steps, sparsity, progress)
        fit = replace(fit, converged=not choice.is_cut)
    else:
        stop = stopping_rule(rule, channel)
        fit = expectation_maximisation(
            channel, checked, stop, max_iterations, smooth, progress=progress
        )
    return Estimate(
        density=fit.density,
        log_likelihood=fit.trace[-1],
        iterations=len(fit.trace) - 1,
        converged=fit.converged,
        rule=stop.name if stop else CROSS_VALIDATED,
        trace=tuple(fit.trace),
        channel=channel,
        counts=checked,
        smooth=smooth,
        stop=stop,
        width=width,
        sparsity=sparsity,
    )
