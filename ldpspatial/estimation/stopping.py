"""When EM stops. More EM is not better: it overfits, so the rule is part of the estimator.

docs/estimation.md records the measurement behind the default.
"""

from dataclasses import dataclass
from math import exp
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channel import Channel
from ldpspatial.errors import InputError

Array = NDArray[np.float64]


class StoppingRule(Protocol):
    """Looks at one step after another and says when the last one was the last."""

    @property
    def name(self) -> str:
        """How results call the rule."""

    def done(self, gain: float, before: Array, after: Array) -> bool:
        """Tell whether to stop.

        Parameters
        ----------
        gain : float
            Growth of the total log-likelihood in nats in this step.
        before, after : arrays
            Predicted distribution of reports before and after it; 0 outside the output domain.
        """


@dataclass(frozen=True)
class LikelihoodGain:
    """Stop when a step gains less than ``tolerance`` nats of total log-likelihood.

    Li et al. (SIGMOD 2020, section 5.5) take 1e-3 e^eps.
    """

    tolerance: float
    name: str = "likelihood"

    def done(self, gain: float, before: Array, after: Array) -> bool:
        """Compare the gain; a falling likelihood (with smoothing) stops too."""
        return gain < self.tolerance


@dataclass(frozen=True)
class Published:
    """The rule of the published DAM code: the unweighted sum of ln g moves by less than 1e-6.

    Kept to reproduce its figures. The sum ignores the counts and is not monotone, so the size
    of the change is compared: its sign would stop the iteration at its second step.
    """

    tolerance: float = 1e-6
    name: str = "published"

    def done(self, gain: float, before: Array, after: Array) -> bool:
        """Compare the change of the unweighted sum over the output domain."""
        domain = after > 0
        change = np.log(after[domain]).sum() - np.log(before[domain]).sum()
        return bool(abs(change) < self.tolerance)


RULES = ("likelihood", "published")


def stopping_rule(rule: "str | StoppingRule", channel: Channel) -> StoppingRule:
    """Return the rule of this name for a channel, or the rule itself."""
    if rule == "likelihood":
        return LikelihoodGain(1e-3 * exp(channel.epsilon))
    if rule == "published":
        return Published()
    if isinstance(rule, str):
        raise InputError(f"rule must be one of {', '.join(RULES)} or a StoppingRule, got {rule!r}")
    return rule
