"""Whether counts speak against a support: do they need people where it has none.

The most likely map within the support is held against the most likely one of all. What the latter
gains is what the other cells are needed for. Both are at their limits (:mod:`.limit_fits`): steps
of EM are far from there where reports are many, and what is left to gain within the support looks
like people outside it.

Chance gains, too: by Wilks' theorem half of a chi-squared number with a degree of freedom for each
thing let in that reports can tell. These are a part of the r^2 + 1 cells' disks, r the radius, that
fit in where nobody can be, more where the border is long, and a few in any case. The three numbers
are such that of 2,160 collections from five cities, each within its own support, chance gained more
than they say as often as it should, once in a thousand times. An alarm is then as rare as one in a
million, and a support that leaves out few people, or places that the reports hardly tell from
others, passes.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel, operators
from ldpspatial.channels.reach import disk_radius
from ldpspatial.estimation.limit_fits import LimitFits

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

LET_IN = 0.02  # share of the map that other cells start from
WIDE = 128  # cells a side above which a product with the channel is slow
SETTLED = 0.5, 5.0  # nats that a fit may be off its limit, about; and on wide maps
SOLVING = 25, 12  # conjugate gradients a step, with which it comes so near
FALSE_ALARM = 1e-6
BY_DISK, BY_BORDER, ANYWHERE = 0.65, 0.3, 5.0  # degrees of freedom


def gain_of_outside(channel: Channel, counts: Array, support: Array | None) -> float:
    """Return the nats that people outside a support explain beyond chance; 0 where they do not.

    Parameters
    ----------
    channel : Channel
    counts : array
        Checked.
    support : (d, d) array in [0, 1] or None
    """
    if support is None or (support > 0).all():
        return 0.0
    inside = support > 0
    reports = float(counts.sum())
    even = inside / np.count_nonzero(inside)
    seen = counts > 0
    if not seen.any():
        return 0.0
    forward, adjoint = operators(channel)
    if not (forward(even)[seen] > 0).all():
        return reports  # a report can come from no cell of the support: nothing there explains it
    is_wide = max(channel.input_shape) > WIDE
    law, settled, solving = counts / reports, SETTLED[is_wide] / reports, SOLVING[is_wide]
    within = LimitFits(channel, inside, solving).fit(law, even, settled)
    predicted = forward(within)
    chance = _by_chance(inside, disk_radius(channel))
    # The likelihood is concave in the map: no map is farther above this one than its slope says.
    slope = adjoint(np.divide(law, predicted, out=np.zeros(law.shape), where=seen)) - 1
    if reports * float(slope.max()) <= chance:
        return 0.0
    off = reports * float((within * np.abs(slope)).sum())  # 0 at the limit, else more than is left
    start = np.where(inside, (1 - LET_IN) * within, LET_IN / np.count_nonzero(~inside))
    free = forward(LimitFits(channel, solving=solving).fit(law, start, settled))
    gain = float(counts[seen] @ np.log(free[seen] / predicted[seen]))
    return max(gain - off - chance, 0.0)


def _by_chance(inside: Bools, radius: float) -> float:
    """Return the nats that cells which nobody is in gain once in a million times."""
    pairs = (inside[1:] != inside[:-1]), (inside[:, 1:] != inside[:, :-1])
    border = sum(np.count_nonzero(each) for each in pairs)
    freedom = BY_DISK * np.count_nonzero(~inside) / (radius**2 + 1)
    freedom += BY_BORDER * border / (radius + 1) + ANYWHERE
    return float(scipy.stats.chi2.isf(FALSE_ALARM, freedom)) / 2
