"""When EM stops. More EM is not better: it overfits, so the rule is part of the estimator.

docs/experiments/estimators.md records the measurement behind the default.
"""

from dataclasses import dataclass
from math import exp, inf, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.errors import InputError
from ldpspatial.validate import instance, number_in, shown

Array = NDArray[np.float64]


class StoppingRule(Protocol):
    """Looks at each step in turn and says when to stop.

    Attributes
    ----------
    name : str
        How results call the rule.
    """

    @property
    def name(self) -> str:
        """How results call the rule."""

    def done(self, gain: float, before: Array, after: Array) -> bool:
        """Tell whether to stop.

        Parameters
        ----------
        gain : float
            Growth of the total log-likelihood in nats in this step.
        before, after : arrays shaped like counts
            Predicted distribution of reports before and after it; 0 outside the output domain.
        """


@dataclass(frozen=True)
class LikelihoodGain:
    """Stop when a step gains less than ``tolerance`` nats of total log-likelihood.

    Li et al. (SIGMOD 2020, section 5.5) take 1e-3 e^eps, whatever the grid ("likelihood"). On
    finer grids EM overfits sooner; 2e-4 e^eps times the side d in cells ("scaled", the same at
    d = 5) is closer to the best stop on every grid that was measured.

    Attributes
    ----------
    tolerance : float >= 0
        In nats, of all reports together.
    name : str
        How results call the rule.

    Raises
    ------
    InputError
        A field breaks its rule.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> early, late = (EM(LikelihoodGain(nats)).fit(channel, counts) for nats in (10.0, 0.1))
    >>> early.iterations < late.iterations
    True
    """

    tolerance: float
    name: str = "likelihood"

    def __post_init__(self) -> None:
        number_in("tolerance", self.tolerance, "[0, inf)")
        instance("name", self.name, str)

    def done(self, gain: float, before: Array, after: Array) -> bool:
        """Compare the gain; a falling likelihood (with smoothing) stops too."""
        return gain < self.tolerance


@dataclass(frozen=True)
class Published:
    """The rule of the published DAM code: the unweighted sum of ln g moves by less than 1e-6.

    Kept to reproduce its figures. The sum ignores the counts and is not monotone, so the size
    of the change is compared: its sign would stop the iteration at its second step.

    Attributes
    ----------
    tolerance : float >= 0
        Of the sum of ln g over the output domain, g the predicted distribution of reports.
    name : str
        How results call the rule.

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    tolerance: float = 1e-6
    name: str = "published"

    def __post_init__(self) -> None:
        number_in("tolerance", self.tolerance, "[0, inf)")
        instance("name", self.name, str)

    def done(self, gain: float, before: Array, after: Array) -> bool:
        """Compare the change of the unweighted sum over the output domain."""
        domain = after > 0
        change = np.log(after[domain]).sum() - np.log(before[domain]).sum()
        return bool(abs(change) < self.tolerance)


STOPPING_RULES = ("scaled", "likelihood", "published")

# A step gains at most epsilon nats a report, of at most 2^53 reports. From here on that is always
# less than the tolerance, the first step is the last, and a larger power, which may be beyond all
# floats, changes nothing.
MOST_EXPONENT = 600.0


def is_stopping_rule(rule: object) -> bool:
    """Tell whether something is a rule, and not the name of one."""
    return not isinstance(rule, (str, type)) and hasattr(rule, "done") and hasattr(rule, "name")


def check_stop(rule: object) -> None:
    """Refuse what is neither a rule nor the name of one."""
    if not is_stopping_rule(rule) and not (isinstance(rule, str) and rule in STOPPING_RULES):
        known = ", ".join(STOPPING_RULES)
        raise InputError(f"stop must be one of {known} or a StoppingRule, got {shown(rule)}")


def stopping_rule(rule: "str | StoppingRule", channel: Channel) -> StoppingRule:
    """Return the rule of this name for a channel, or the rule itself."""
    check_stop(rule)
    if not isinstance(rule, str):
        return rule
    if rule == "scaled":
        rows, cols = channel.input_shape
        # Of a map that is not square, d is the side of a square with as many cells.
        return LikelihoodGain(2e-4 * sqrt(rows * cols) * _power(channel), "scaled")
    if rule == "likelihood":
        return LikelihoodGain(1e-3 * _power(channel))
    return Published()


def _power(channel: Channel) -> float:
    """Return e^eps, or a number that stops EM at the same step."""
    if channel.epsilon == inf:
        raise InputError(
            "rule must be a LikelihoodGain or 'published' where epsilon is infinite: where some "
            "reports are impossible it says nothing about the noise of the others"
        )
    return exp(min(channel.epsilon, MOST_EXPONENT))
