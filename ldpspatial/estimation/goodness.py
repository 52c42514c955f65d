"""Whether counts can have come from a channel at all.

Pearson's statistic of the counts against the best-fitting density of the channel. At the
maximum of the likelihood the fit is at least as close as the true density's, whose statistic
has known moments, so the p-value errs on the side of no alarm. An alarm means that the reports
were not drawn from this table: another epsilon or radius on the devices, unrandomised or forged
reports, or reports of several collections mixed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gamma

from ldpspatial.channel import Channel
from ldpspatial.estimation.em import expectation_maximisation
from ldpspatial.estimation.stopping import LikelihoodGain

Array = NDArray[np.float64]
TIGHT_GAIN = 1e-2  # nats a step: what EM still has to gain is then far below the statistic's noise
STEPS = 2_000


@dataclass(frozen=True)
class GoodnessOfFit:
    """Outcome of the check.

    Attributes
    ----------
    statistic : float
        Pearson's sum over output cells of (counts - expected)^2 / expected.
    expected : float
        Its mean N - 1 where the counts come from the channel.
    p_value : float
        Probability of so large a statistic where they do; rather too large than too small.
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


def goodness_of_fit(channel: Channel, counts: Array, start: Array) -> GoodnessOfFit:
    """Refine ``start`` towards the maximum of the likelihood and compare with the counts."""
    fit = expectation_maximisation(channel, counts, LikelihoodGain(TIGHT_GAIN), STEPS, start=start)
    support = channel.support
    n = counts.sum()
    law = channel.forward(fit.density)
    expected = n * law[support]
    residuals = np.zeros(support.shape)
    residuals[support] = (counts[support] - expected) / np.sqrt(expected)
    statistic = float((residuals**2).sum())
    cells = expected.size
    mean = cells - 1.0
    # Moments of Pearson's statistic in a multinomial of n draws (Haldane 1937), exact at any n.
    variance = 2 * mean + float((1 / law[support]).sum() - cells**2 - 2 * cells + 2) / n
    # A gamma law with these moments: the chi-square law where all expected counts are large.
    p_value = 1.0
    if mean > 0:
        p_value = float(gamma.sf(statistic, mean**2 / variance, scale=variance / mean))
    return GoodnessOfFit(statistic, mean, p_value, residuals)
