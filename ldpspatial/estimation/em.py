"""Expectation-maximisation for a density behind a channel, and EMS, its smoothed form.

With counts c over output cells, g = M f and n = sum c, one step is f <- f M^T(c / g) / n. It
never lowers the log-likelihood sum c ln g, keeps f >= 0 and its sum 1, and starts from the
uniform density (Du et al. 2024, section VI-B; Li et al. 2020, section 5.5).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import Channel, operators
from ldpspatial.compiled import compiled
from ldpspatial.estimation.counts import check_counts
from ldpspatial.estimation.result import Estimate, Estimator, Progress
from ldpspatial.estimation.smoothing import SMOOTHERS, Smoother, smoother
from ldpspatial.estimation.stopping import (
    StoppingRule,
    check_stop,
    stopping_rule,
)
from ldpspatial.validate import callback, whole_number

Array = NDArray[np.float64]

QUICK = "em"  # what one asks for who wants no more than EM
SCALED = "scaled"


@dataclass(frozen=True)
class Smoothing:
    """What EM records of an estimate besides its path.

    Attributes
    ----------
    smoothing : str
        Name of the smoother, "none" without one, "custom" for a function without a name.
    """

    smoothing: str


@dataclass(frozen=True)
class EM(Estimator):
    """Expectation-maximisation, stopped before it fits noise; smoothed, it is EMS.

    Attributes
    ----------
    stop : {"scaled", "likelihood", "published"} or StoppingRule
        "scaled" stops when a step gains less than 2e-4 d e^eps nats, d the side in cells;
        docs/experiments/estimators.md has the measurement that made it the default.
    smoothing : None, "binomial", "five-point" or a function, optional
        Smooth after each step.
    max_iterations : int >= 1
        An estimate that stops here says ``converged=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> bool(EM(stop="likelihood").fit(channel, counts).density.trace() > 0.9)
    True
    """

    stop: "str | StoppingRule" = SCALED
    smoothing: "str | Smoother | None" = None
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        check_stop(self.stop)
        smoother(self.smoothing)
        limit = whole_number("max_iterations", self.max_iterations, 1)
        object.__setattr__(self, "max_iterations", limit)

    @property
    def name(self) -> str:
        """Name of the stopping rule."""
        return self.stop if isinstance(self.stop, str) else self.stop.name

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Return "em", or "ems" where it smooths."""
        return "em" if self.smoothing is None else "ems"

    def fit(
        self, channel: Channel, counts: ArrayLike, progress: Progress | None = None
    ) -> Estimate:
        """Iterate until the rule is met; see :meth:`Estimator.fit`."""
        checked = check_counts(channel, counts)
        stop = stopping_rule(self.stop, channel)
        smooth = smoother(self.smoothing)
        callback("progress", progress)
        fit = expectation_maximisation(
            channel, checked, stop, self.max_iterations, smooth, progress=progress
        )
        return fit.estimate(channel, checked, self, Smoothing(_name_of(smooth)))

    @classmethod
    def named(cls, name: str, smoothing: "str | Smoother | None", max_iterations: int) -> Estimator:
        """Return EM with the stopping rule of this name; see :meth:`Estimator.named`.

        "em" is the one that it has by itself.
        """
        return cls(SCALED if name == QUICK else name, smoothing, max_iterations)

    @classmethod
    def restored(cls, name: str, facts: Mapping[str, Any]) -> tuple[Estimator, Any] | None:
        """Return EM with a smoothing that has a name; None for any other."""
        smoothing = str(facts.get("smoothing", "none"))  # older files do not say
        if smoothing not in ("none", *SMOOTHERS):
            return None
        # What did not converge ended at its limit; of what did, the limit does not matter.
        ended = facts.get("converged", True)
        limit = cls.max_iterations if ended else int(facts["iterations"])
        return cls(name, None if smoothing == "none" else smoothing, limit), Smoothing(smoothing)


def _name_of(smooth: Smoother | None) -> str:
    if smooth is None:
        return "none"
    return next((name for name, known in SMOOTHERS.items() if known is smooth), "custom")


@dataclass(frozen=True)
class Fit:
    """Where an EM run ended: the density, the log-likelihood after each step, and why."""

    density: Array
    trace: list[float]  # entry 0 is the start, entry k the state after step k
    converged: bool

    def estimate(
        self, channel: Channel, counts: Array, estimator: Estimator, details: Any
    ) -> Estimate:
        """Return it as the estimate that an estimator has found."""
        return Estimate(
            self.density,
            self.trace[-1],
            len(self.trace) - 1,
            self.converged,
            tuple(self.trace),
            channel,
            counts,
            estimator,
            details,
        )


def expectation_maximisation(
    channel: Channel,
    counts: Array,
    rule: StoppingRule,
    max_iterations: int,
    smooth: Smoother | None = None,
    start: Array | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Iterate until the rule says so or the limit is reached.

    ``counts`` is shaped like the channel's output and zero outside its support; the caller
    has checked it. ``start`` defaults to the uniform density.
    """
    run = Iteration(channel, counts, smooth, start)
    trace = [run.log_likelihood]
    for step in range(1, max_iterations + 1):
        before = run.predicted
        run.step()
        trace.append(run.log_likelihood)
        if progress is not None:
            progress(step, trace[-1])
        if rule.done(trace[-1] - trace[-2], before, run.predicted):
            return Fit(run.density, trace, converged=True)
    return Fit(run.density, trace, converged=False)


class Iteration:
    """EM at one of its steps.

    Attributes
    ----------
    density : array shaped like the channel's input
    predicted : array shaped like counts
        The distribution of reports under it.
    log_likelihood : float
        Of the counts, in nats.
    """

    def __init__(
        self,
        channel: Channel,
        counts: Array,
        smooth: Smoother | None = None,
        start: Array | None = None,
    ):
        size = channel.input_shape[0] * channel.input_shape[1]
        self.density = np.full(channel.input_shape, 1 / size) if start is None else start
        self._forward, self._adjoint = operators(channel)
        self._smooth = smooth
        # Where no report came c ln g and c / g count as 0, also at g = 0: those are never visited.
        self._seen = np.flatnonzero(counts)
        self._reports = counts.ravel()[self._seen].astype(np.float64)
        self._ratio = np.zeros(counts.shape)
        self.predicted = self._forward(self.density)
        self._look()

    def step(self) -> None:
        """Take one step."""
        # E step. The sum is n: sum f M^T(c / g) = sum (M f) c / g.
        users = self.density * self._adjoint(self._ratio)  # expected, by cell
        if self._smooth is not None:
            users = self._smooth(users)
        self.density = users / users.sum()  # a smoother of one's own may change the sum
        self.predicted = self._forward(self.density)
        self._look()

    def _look(self) -> None:
        self.log_likelihood: float = _compare(
            self._seen, self._reports, self.predicted.ravel(), self._ratio.ravel()
        )


@compiled
def _compare(seen, reports, predicted, ratio):  # type: ignore[no-untyped-def]
    """Set ratio to counts / predicted where there are reports; return the log-likelihood."""
    total = 0.0
    for k in range(seen.size):
        total += reports[k] * np.log(predicted[seen[k]])
        ratio[seen[k]] = reports[k] / predicted[seen[k]]
    return total
