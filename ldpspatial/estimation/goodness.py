"""Whether counts can have come from a channel at all.

Pearson's statistic of the counts against the best-fitting density of the channel. At the
maximum of the likelihood the fit is at least as close as the true density's, whose statistic
has known moments, so the p-value errs on the side of no alarm. Two things could spoil that:

- A report in a cell that expects a hundredth of one counts as a hundred. So cells that expect
  few are taken together with their neighbours.
- EM may stop short of the maximum. What the likelihood can still gain takes twice as much off
  the statistic, so twice an estimate of it is taken off before the p-value.

An alarm means that the reports were not drawn from this table: another epsilon or radius on the
devices, unrandomised or forged reports, or reports of several collections mixed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gamma

from ldpspatial.channel import Channel
from ldpspatial.estimation.em import expectation_maximisation
from ldpspatial.estimation.stopping import LikelihoodGain

Array = NDArray[np.float64]
TIGHT_GAIN = 1e-2  # nats a step: what is still to come is then mostly below the statistic's noise
STEPS = 2_000
# At 20 reports a term the third moment of the statistic is that of the gamma law within 8 %.
LEAST_EXPECTED = 20.0


@dataclass(frozen=True)
class GoodnessOfFit:
    """Outcome of the check.

    Attributes
    ----------
    statistic : float
        Pearson's sum of (counts - expected)^2 / expected over groups of output cells: a cell
        that expects 20 reports is a group by itself, others join their neighbours.
    expected : float
        Its mean, the number of groups - 1, where the counts come from the channel.
    p_value : float
        Probability of so large a statistic where they do; rather too large than too small.
        1 where the reports are too few to tell.
    residuals : array
        (counts - expected) / sqrt(expected) by output cell: where the misfit lies.
    """

    statistic: float
    expected: float
    p_value: float
    residuals: Array

    def is_plausible(self, false_alarm: float = 1e-4) -> bool:
        """Tell whether the counts can have come from the channel, at this rate of false alarms."""
        return self.p_value >= false_alarm


def goodness_of_fit(channel: Channel, counts: Array, start: Array, steps: int) -> GoodnessOfFit:
    """Refine ``start``, found in ``steps`` EM steps, and compare its reports with the counts."""
    fit = expectation_maximisation(channel, counts, LikelihoodGain(TIGHT_GAIN), STEPS, start=start)
    support = channel.support
    n, seen = float(counts.sum()), counts[support]
    expected = n * channel.forward(fit.density)[support]
    residuals = np.zeros(support.shape)
    residuals[support] = (seen - expected) / np.sqrt(expected)
    groups = _groups(expected)
    law = np.bincount(groups, expected) / n
    statistic = float(((np.bincount(groups, seen) - n * law) ** 2 / (n * law)).sum())
    mean, variance = _pearson_moments(law, n)
    # A gamma law with these moments: the chi-square law where all expected counts are large.
    p_value = 1.0
    if mean > 0:
        reached = statistic - 2 * _gain_to_come(fit.trace, steps)
        p_value = float(gamma.sf(reached, mean**2 / variance, scale=variance / mean))
    return GoodnessOfFit(statistic, mean, p_value, residuals)


def _gain_to_come(trace: list[float], steps: int) -> float:
    """Return about how many nats EM would still gain after its last step.

    EM's gain falls like 1 / k^2 before it falls geometrically (its likelihood is within
    O(1 / k) of the maximum), so the rest of the sum is about k times the last gain.
    """
    return (steps + len(trace) - 1) * max(trace[-1] - trace[-2], 0.0)


def _pearson_moments(law: Array, n: float) -> tuple[float, float]:
    """Return mean and variance of Pearson's statistic of n draws (Haldane 1937), exact at any n.

    Parameters
    ----------
    law : (k,) array
        Probabilities above 0 that sum to 1.
    n : number of draws
    """
    k = law.size
    return k - 1.0, 2.0 * (k - 1) + float((1 / law).sum() - k**2 - 2 * k + 2) / n


def _groups(expected: Array) -> NDArray[np.int64]:
    """Return each cell's group: runs of cells in index order that expect enough together.

    Neighbours, never cells that expect alike: the fit expects little where few reports fell, so
    groups formed by expectation would gather the cells of the largest misfit.
    """
    groups = np.empty(expected.size, np.int64)
    group, held = 0, 0.0
    for cell, number in enumerate(expected.tolist()):
        groups[cell] = group
        held += number
        if held >= LEAST_EXPECTED:
            group, held = group + 1, 0.0
    # What is left over is too little for a group of its own.
    return np.minimum(groups, max(group - 1, 0))
