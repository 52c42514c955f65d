"""Whether counts speak against a support: do they need people where it has none.

The most likely map within the support is held against the most likely one of all. What the latter
gains is what the other cells are needed for. Both are at their limits (:mod:`..limit_fits`): steps
of EM are far from there where reports are many, and what is left to gain within the support looks
like people outside it.

Chance gains, too: by Wilks' theorem half of a chi-squared number with a degree of freedom for each
thing let in that reports can tell. These are a part of the r^2 + 1 cells' disks, r the radius, that
fit in where nobody can be, more where the border is long, and a few in any case. That is enough
where people crowd, as in cities. Where they are even, or the support is of scattered cells, chance
gains more. So a gain that is not many times as large is held against what collections gain whose
people are all within the support, as EM has them there: the chi-squared number of their mean. A
support that leaves out few people, or places that reports hardly tell from others, passes.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from ldpspatial.channels.protocol import Channel, operators
from ldpspatial.channels.reach import disk_radius
from ldpspatial.estimation.counts import generator_of
from ldpspatial.estimation.em import Iteration
from ldpspatial.estimation.limit_fits import LimitFits

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

LET_IN = 0.02  # share of the map that other cells start from
WIDE = 128  # cells a side above which a product with the channel is slow
SETTLED = 0.5, 5.0  # nats that a fit may be off its limit, about; and on wide maps
SOLVING = 25, 12  # conjugate gradients a step, with which it comes so near
FALSE_ALARM = 1e-6
BY_DISK, BY_BORDER, ANYWHERE = 0.65, 0.3, 5.0  # degrees of freedom
CERTAIN = 8.0  # times what chance gains in cities; the most within a support was about three times
PLAYED = 6  # collections
STEPS = 60  # of EM, for the people of these


def gain_of_outside(channel: Channel, counts: Array, support: Array | None) -> float:
    """Return the nats that people outside a support explain beyond chance; 0 where they do not.

    Parameters
    ----------
    channel : Channel
    counts : array
        Checked.
    support : (d, d) array in [0, 1] or None
    """
    if support is None or (support > 0).all() or not counts.any():
        return 0.0
    inside = support > 0
    even = inside / np.count_nonzero(inside)
    forward, _ = operators(channel)
    if not (forward(even)[counts > 0] > 0).all():
        # A report can come from no cell of the support: nothing there explains it.
        return float(counts.sum())
    chance = _by_chance(_freedom(inside, disk_radius(channel)))
    gain = _gain(channel, counts, inside, chance)
    if chance < gain < CERTAIN * chance:
        within = Iteration(channel, counts, start=even)
        for _ in range(STEPS):
            within.step()
        law = within.predicted[channel.support]
        rng = generator_of(counts)
        gains = []
        for _ in range(PLAYED):
            played = np.zeros(counts.shape)
            played[channel.support] = rng.multinomial(int(counts.sum()), law / law.sum())
            gains.append(_gain(channel, played, inside))
        most = float(np.mean(gains) + 2 * np.std(gains, ddof=1) / np.sqrt(PLAYED))
        chance = max(chance, _by_chance(2 * most))
    return max(gain - chance, 0.0)


def _gain(channel: Channel, counts: Array, inside: Bools, least: float = 0.0) -> float:
    """Return what the most likely map gains over that within the support, 0 if not ``least``."""
    forward, adjoint = operators(channel)
    is_wide = max(channel.input_shape) > WIDE
    reports, seen = float(counts.sum()), counts > 0
    law, settled, solving = counts / reports, SETTLED[is_wide] / reports, SOLVING[is_wide]
    even = inside / np.count_nonzero(inside)
    within = LimitFits(channel, inside, solving).fit(law, even, settled)
    predicted = forward(within)
    # The likelihood is concave in the map: no map is farther above this one than its slope says.
    slope = adjoint(np.divide(law, predicted, out=np.zeros(law.shape), where=seen)) - 1
    if reports * float(slope.max()) <= least:
        return 0.0
    off = reports * float((within * np.abs(slope)).sum())  # 0 at the limit, else more than is left
    start = np.where(inside, (1 - LET_IN) * within, LET_IN / np.count_nonzero(~inside))
    free = forward(LimitFits(channel, solving=solving).fit(law, start, settled))
    return float(counts[seen] @ np.log(free[seen] / predicted[seen])) - off


def _freedom(inside: Bools, radius: float) -> float:
    """Return the degrees of freedom of cells that nobody is in, where people crowd elsewhere."""
    pairs = (inside[1:] != inside[:-1]), (inside[:, 1:] != inside[:, :-1])
    border = sum(np.count_nonzero(each) for each in pairs)
    by_disk = BY_DISK * np.count_nonzero(~inside) / (radius**2 + 1)
    return by_disk + BY_BORDER * border / (radius + 1) + ANYWHERE


def _by_chance(freedom: float) -> float:
    """Return the nats that chance gains once in a million times."""
    return float(chdtri(max(freedom, 1.0), FALSE_ALARM)) / 2
