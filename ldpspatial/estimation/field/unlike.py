"""Whether the reports of a window speak against what all windows together make of it.

One memory is learned for all windows. Where two large ones are alike, a small one between them that
is not is taken for their like: its few reports weigh less than how much the large ones resemble
each other. So they are asked by themselves, with a split likelihood ratio (Wasserman, Ramdas and
Balakrishnan 2020): EM makes a map of half of the reports, and the likelihood of the other half
under the mean of that map and the one from all windows is held against that under the latter alone.
If that one is true the ratio is 1 in the mean, so it is r or more once in r times at most; and more
rarely if the map was fitted to these reports.

A false alarm makes a window's map and intervals those of its own reports, and no worse. What is not
noticed is a window of which half of the reports does not tell what is different to the other half:
of 200 beside millions, for example, or a fifth of the windows of some thousand of which half of the
people are elsewhere. Its intervals are then those of its neighbours' people.
"""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.stacks import LEAST
from ldpspatial.estimation.em import EM

Array = NDArray[np.float64]

# At most: of 3,000 windows whose people were those of the map 10 were taken for unlike it.
FALSE_ALARM = 0.05


def is_unlike(channel: Channel, counts: Array, density: Array, rng: np.random.Generator) -> bool:
    """Return whether counts speak against a map.

    Parameters
    ----------
    channel : Channel
    counts : array
        Checked.
    density : (d, d) array
    rng : numpy Generator
        Divides the reports.
    """
    first = rng.binomial(counts.astype(np.int64), 0.5).astype(np.float64)
    if not first.any():
        return False
    second = counts - first
    own = EM().fit(channel, first).density
    seen = second > 0
    joint = np.maximum(channel.forward(density)[seen], LEAST)
    mean = (channel.forward(own)[seen] + joint) / 2
    return bool(second[seen] @ np.log(mean / joint) > -np.log(FALSE_ALARM))
