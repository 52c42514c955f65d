"""Whether counts can have come from a channel at all.

The likelihood ratio (deviance) of the counts against the best-fitting density of the channel. At
the maximum of the likelihood it is no larger than against the true density. How large that one may
be is computed cell by cell, for expected counts of any size. So the p-value errs on the side of
no alarm, with two qualifications:

- The expected counts are those of the fit, not of the truth. Unlike Pearson's statistic, which
  counts a report where a hundredth of one was expected as a hundred, the deviance hardly changes.
- EM may stop short of the maximum. What the likelihood can still gain takes twice as much off
  the statistic, so twice an estimate of it is taken off before the p-value.

An alarm means that the reports were not drawn from this table: another epsilon or radius on the
devices, unrandomised or forged reports, or reports of several collections mixed.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln, xlogy

from ldpspatial.errors import InputError
from ldpspatial.estimation.em import expectation_maximisation
from ldpspatial.estimation.result import Estimate
from ldpspatial.estimation.stopping import LikelihoodGain
from ldpspatial.validate import instance, number_in

Array = NDArray[np.float64]
TIGHT_GAIN = 1e-2  # nats a step: what is still to come is then mostly below the statistic's noise
STEPS = 2_000
LEAST_REPORTS = 20  # two moments do not describe the deviance of two or three


@dataclass(frozen=True)
class GoodnessOfFit:
    """Outcome of the check.

    Attributes
    ----------
    statistic : float
        Deviance, 2 sum over output cells of c ln(c / expected).
    expected : float
        Its mean where the counts come from the channel: near the number of output cells.
    p_value : float
        Probability of so large a statistic where they do; errs on the large side.
        1 where there are fewer than 20 reports.
    residuals : array
        (counts - expected) / sqrt(expected) by output cell: where the misfit lies.
    """

    statistic: float
    expected: float
    p_value: float
    residuals: Array

    def is_plausible(self, false_alarm: float = 1e-4) -> bool:
        """Tell whether the counts can have come from the channel, at this rate of false alarms."""
        return self.p_value >= number_in("false_alarm", false_alarm, "(0, 1)")


def goodness_of_fit(estimate: Estimate) -> GoodnessOfFit:
    """Check whether the counts can have come from the channel under any density.

    The density is refined by EM from where the estimate stopped, with a user more in every cell.

    Parameters
    ----------
    estimate : Estimate

    Raises
    ------
    InputError
        The channel knows only the reports that came.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> goodness_of_fit(EM().fit(channel, counts)).is_plausible()
    True
    >>> forged = np.zeros(channel.support.shape)
    >>> forged[1, 1] = 10_000  # far more in one output cell than any map gives
    >>> goodness_of_fit(EM().fit(channel, forged)).is_plausible()
    False
    """
    instance("estimate", estimate, Estimate)
    channel = estimate.channel
    counts = estimate.counts
    if getattr(channel, "conditional", False):
        raise InputError(
            "goodness_of_fit needs a channel that knows all possible reports, got a "
            f"{type(channel).__name__}, which knows only those that came"
        )
    support = channel.support
    n = float(counts.sum())
    start = _nowhere_empty(estimate.density, n)
    fit = expectation_maximisation(channel, counts, LikelihoodGain(TIGHT_GAIN), STEPS, start=start)
    seen = counts[support]
    expected = n * channel.forward(fit.density)[support]
    residuals = np.zeros(support.shape)
    residuals[support] = (seen - expected) / np.sqrt(expected)
    present = seen > 0
    # The deviance's linear term, 2 sum (expected - c), is 0, as both sum to n.
    statistic = 2 * float(seen[present] @ np.log(seen[present] / expected[present]))
    mean, variance = _deviance_moments(expected)
    p_value = 1.0
    if variance > 0 and n >= LEAST_REPORTS:
        reached = statistic - 2 * _gain_to_come(fit.trace, estimate.iterations)
        # A gamma law with these moments: the chi-square law where all expected counts are large.
        p_value = float(gammaincc(mean**2 / variance, max(reached, 0.0) / (variance / mean)))
    return GoodnessOfFit(statistic, mean, p_value, residuals)


def _nowhere_empty(density: Array, n: float) -> Array:
    """Return the density with one user more in each cell.

    EM never fills a cell that is empty. Sparse estimates leave cells empty where people may be, and
    would stay below the maximum of the likelihood.
    """
    users = n * density + 1
    return np.asarray(users / users.sum())


def _gain_to_come(trace: list[float], steps: int) -> float:
    """Return about how many nats EM would still gain after its last step.

    EM's gain falls like 1 / k^2 before it falls geometrically (its likelihood is within
    O(1 / k) of the maximum), so the rest of the sum is about k times the last gain.
    """
    return (steps + len(trace) - 1) * max(trace[-1] - trace[-2], 0.0)


def _deviance_moments(expected: Array) -> tuple[float, float]:
    """Return mean and variance of the deviance of counts with these expectations.

    The counts are independent Poisson numbers given their sum. Their deviances are summed cell by
    cell, and what their joint dependence on the sum adds to the variance is taken off.
    """
    # Beyond the table the law is that of chi-square: mean 1, variance 2, no covariance.
    means, *moments = _cell_moments()
    place = np.log(np.clip(expected, means[0], means[-1]))
    mean, variance, covariance = (
        np.interp(place, np.log(means), moment).sum() for moment in moments
    )
    # Regression of the deviance on the sum, whose variance is that of a Poisson number: its mean.
    return float(mean), float(max(variance - covariance**2 / expected.sum(), 0.0))


@cache
def _cell_moments() -> tuple[Array, Array, Array, Array]:
    """Return a table by the mean of a Poisson count.

    The mean of the count, mean and variance of its deviance, and their covariance.
    """
    means = np.geomspace(1e-12, 300, 600)
    counts = np.arange(600.0)  # to 17 standard deviations above the largest mean
    # In what follows rows are means, columns are counts.
    law = means[:, None]
    mass = np.exp(xlogy(counts, law) - gammaln(counts + 1) - law)  # Poisson
    # xlogy takes 0 ln 0 as 0: a count of 0 has a deviance of twice the mean.
    deviance = 2 * (xlogy(counts, counts / means[:, None]) - counts + means[:, None])
    mean = (mass * deviance).sum(axis=1)
    variance = (mass * deviance**2).sum(axis=1) - mean**2
    covariance = (mass * deviance * counts).sum(axis=1) - mean * means
    return means, mean, variance, covariance
