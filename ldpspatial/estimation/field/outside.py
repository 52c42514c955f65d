"""Whether counts speak against a support: do they need people where it has none.

EM fits the counts within the support, then goes on twice from there for as many steps: within it,
and with the other cells let in. What these gain is what they are needed for. Chance gains, too: by
Wilks' theorem half of a chi-squared number with a degree of freedom for each thing let in that
reports can tell. That is taken for one in each r^2 + 1 cells, r the radius of the disk: in 60
collections from five cities, each within its own cells, chance gained at most two thirds of the
mean of such a number. So an alarm errs on the side of none, and a support that leaves out few
people, or places that the reports hardly tell from others, passes.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.reach import disk_radius
from ldpspatial.estimation.em import Iteration

Array = NDArray[np.float64]

STEPS = 60  # within the support, and as many again
LET_IN = 0.02  # share of the map that other cells start from
FALSE_ALARM = 1e-6


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
    within = Iteration(channel, counts, start=inside / np.count_nonzero(inside))
    _walk(within)
    start = np.where(inside, (1 - LET_IN) * within.density, LET_IN / np.count_nonzero(~inside))
    free = Iteration(channel, counts, start=start)
    _walk(within)
    _walk(free)
    gain = free.log_likelihood - within.log_likelihood
    told_apart = max(np.count_nonzero(~inside) / (disk_radius(channel) ** 2 + 1), 1.0)
    by_chance = float(scipy.stats.chi2.isf(FALSE_ALARM, told_apart)) / 2
    # Where a report can come from no cell of the support, no density there explains it at all.
    return max(gain - by_chance, 0.0) if np.isfinite(gain) else float(counts.sum())


def _walk(run: Iteration) -> None:
    for _ in range(STEPS):
        run.step()
