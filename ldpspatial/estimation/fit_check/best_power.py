"""What any check of the fit could notice: an upper bound on the power of all tests.

Reports of which a share a was forged follow h = (1 - a) M f + a q. A test must not alarm more
often than stated for any density, so not for the one whose reports M f* come closest to h either.
Between these two laws the best test is that of the likelihood ratio (Neyman and Pearson 1933), so
no test of the counts has more power against h than that one. For a small share its power is that
of a normal variable that is moved by the root of n a^2 ||(q - M f') / sqrt(M f)||^2, the least over
all f' that leave no cell with fewer than no people.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ldpspatial.channels.protocol import Channel
from ldpspatial.errors import InputError
from ldpspatial.estimation.counts import MOST_REPORTS
from ldpspatial.estimation.em import expectation_maximisation
from ldpspatial.estimation.stopping import LikelihoodGain
from ldpspatial.validate import density_array, instance, number_in, whole_number

Array = NDArray[np.float64]

GAIN = 1e-4  # nats a step, at which the search for the closest density stops
STEPS = 1_000
FILL = 0.01  # users that the search begins with in each cell, as EM never fills an empty one


def best_power(
    channel: Channel,
    density: ArrayLike,
    forged: ArrayLike,
    share: float,
    n: int,
    false_alarm: float = 0.05,
) -> float:
    """Return the most power that any test can have against a share of forged reports.

    It holds for every test whose false alarms are no more frequent than stated, whatever the
    density. It may be out of reach: the best test here knows the density and what is forged.

    Parameters
    ----------
    channel : Channel
    density : (d, d) array
        Where those are who report honestly. Sums to 1.
    forged : array
        How forged reports are distributed over output cells; shaped like ``channel.support``, 0
        outside of it. Sums to 1.
    share : float in [0, 1]
        Of all reports.
    n : int >= 1
        All reports.
    false_alarm : float in (0, 1)

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> from ldpspatial.estimation import best_power
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> density = np.eye(5) / 5
    >>> forged = np.pad(density, channel.table.radius)  # reports that were not randomised
    >>> [round(best_power(channel, density, forged, share, 10_000), 2) for share in (0, 0.02, 0.2)]
    [0.05, 0.99, 1.0]
    """
    support = instance("channel", channel, Channel).support  # type: ignore[type-abstract]
    honest = channel.forward(density_array("density", density, tuple(channel.input_shape)))
    shape = density_array("forged", forged, support.shape)
    if shape[~support].any():
        raise InputError("forged must be 0 outside the output domain of the channel")
    a = number_in("share", share, "[0, 1]")
    number = whole_number("n", n, 1, MOST_REPORTS)
    alarms = number_in("false_alarm", false_alarm, "(0, 1)")
    law = (1 - a) * honest + a * shape
    law /= law.sum()
    start = np.asarray(density, np.float64) + FILL / number
    closest = expectation_maximisation(
        channel, number * law, LikelihoodGain(GAIN), STEPS, start=start / start.sum()
    ).density
    null = channel.forward(closest)
    return _power_of_ratio(law[support], null[support] / null.sum(), number, alarms)


def _power_of_ratio(law: Array, null: Array, n: int, false_alarm: float) -> float:
    """Return the power of the likelihood ratio of two laws of n reports, by normal laws."""
    seen = law > 0
    if (null[seen] <= 0).any():
        return 1.0
    ratio = np.log(law[seen] / null[seen])
    # Where the alternative never reports, a null report is proof against it: left out as unlikely.
    mean = n * (law[seen] @ ratio), n * (null[seen] @ ratio)
    spread = tuple(
        np.sqrt(max(n * (each[seen] @ ratio**2) - at**2 / n, 0.0))
        for each, at in zip((law, null), mean, strict=True)
    )
    if spread[1] == 0:
        return false_alarm
    threshold = mean[1] - special.ndtri(false_alarm) * spread[1]
    return float(special.ndtr((mean[0] - threshold) / spread[0]))
