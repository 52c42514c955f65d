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
    n = counts.sum()
    size = channel.input_shape[0] * channel.input_shape[1]
    density = np.full(channel.input_shape, 1 / size) if start is None else start
    seen = np.flatnonzero(counts)
    reports = counts.ravel()[seen].astype(np.float64)
    ratio = np.zeros(counts.shape)
    predicted = channel.forward(density)
    trace = [_compare(seen, reports, predicted.ravel(), ratio.ravel())]
    for step in range(1, max_iterations + 1):
        density = density * channel.adjoint(ratio) / n
        if smooth is not None:
            density = smooth(density)
        density /= density.sum()  # 1 up to rounding, which thousands of steps would add up
        before, predicted = predicted, channel.forward(density)
        trace.append(_compare(seen, reports, predicted.ravel(), ratio.ravel()))
        if progress is not None:
            progress(step, trace[-1])
        if rule.done(trace[-1] - trace[-2], before, predicted):
            return Fit(density, trace, converged=True)
    return Fit(density, trace, converged=False)


@compiled
def _compare(seen, reports, predicted, ratio):  # type: ignore[no-untyped-def]
    """Set ratio to counts / predicted where there are reports; return the log-likelihood."""
    total = 0.0
    for k in range(seen.size):
        total += reports[k] * np.log(predicted[seen[k]])
        ratio[seen[k]] = reports[k] / predicted[seen[k]]
    return total
