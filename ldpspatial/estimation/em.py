"""Expectation-maximisation for a density behind a channel, and EMS, its smoothed form.

With counts c over output cells, g = M f and n = sum c, one step is f <- f M^T(c / g) / n. It
never lowers the log-likelihood sum c ln g, keeps f >= 0 and its sum 1, and starts from the
uniform density (Du et al. 2024, section VI-B; Li et al. 2020, section 5.5).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client_sdk.kernels import compiled
from ldpspatial.channel import Channel
from ldpspatial.estimation.smoothing import Smoother
from ldpspatial.estimation.stopping import StoppingRule

Array = NDArray[np.float64]
Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class Fit:
    """Where an EM run ended: the density, the log-likelihood after each step, and why."""

    density: Array
    trace: list[float]  # entry 0 is the start, entry k the state after step k
    converged: bool


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

    With a ``sparsity`` above 0 the step goes to the posterior maximum under a Dirichlet prior of
    exponents 1 - sparsity, which empties cells that the reports do not call for.
    """

    def __init__(
        self,
        channel: Channel,
        counts: Array,
        smooth: Smoother | None = None,
        start: Array | None = None,
        sparsity: float = 0.0,
    ):
        size = channel.input_shape[0] * channel.input_shape[1]
        self.density = np.full(channel.input_shape, 1 / size) if start is None else start
        self._channel, self._smooth, self._sparsity = channel, smooth, sparsity
        self._seen = np.flatnonzero(counts)
        self._reports = counts.ravel()[self._seen].astype(np.float64)
        self._ratio = np.zeros(counts.shape)
        self.predicted = channel.forward(self.density)
        self._look()

    def step(self) -> None:
        """Take one step."""
        users = self.density * self._channel.adjoint(self._ratio)  # expected, by cell
        if self._sparsity:
            self._settle(np.maximum(users - self._sparsity, 0))
        # All stay where nobody would be left who could have sent some report.
        if not self._sparsity or self.predicted.ravel()[self._seen].min() <= 0:
            self._settle(users if self._smooth is None else self._smooth(users))
        self._look()

    def _settle(self, users: Array) -> None:
        self.density = users / users.sum()
        self.predicted = self._channel.forward(self.density)

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
