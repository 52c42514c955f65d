"""Whether the reports of a window speak against what all windows together make of it.

One memory is learned for all windows. Where two large ones are alike, a small one between them that
is not is taken for their like: its few reports weigh less than how much the large ones resemble
each other. So they are asked by themselves, with a score test (Rao 1948): does their log-likelihood
rise along the widest waves of the map's logarithm? If the map is true, the squared slopes over the
information of the reports sum to a chi-squared number, and to less if the map was fitted to them.

A false alarm makes a window's map and intervals those of its own reports. What is not noticed is a
window of so few reports that these hardly tell two maps apart: of 200 beside millions, for example.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.estimation.field.stacks import LEAST, Stack

Array = NDArray[np.float64]

WAVES = 3  # along each side, the mean among them
FALSE_ALARM = 1e-3


def is_unlike(
    channel: Channel, operators: Stack, counts: Array, density: Array,
    false_alarm: float = FALSE_ALARM,
) -> bool:  # fmt: skip
    """Return whether counts speak against a map.

    Parameters
    ----------
    channel : Channel
    operators : Stack
        The same channel.
    counts : array
        Checked.
    density : (d, d) array
    false_alarm : float in (0, 1)
        How often reports of this very map are said to.
    """
    fine = operators.by_cell(channel)
    counted = fine.counted(counts)
    cells = len(density)
    along = np.cos(np.pi * np.outer(np.arange(WAVES), (np.arange(cells) + 0.5) / cells))
    waves = np.einsum("ai,bj->abij", along, along).reshape(-1, cells, cells)[1:]
    means = np.einsum("kij,ij->k", waves, density)
    steps = (waves - means[:, None, None]) * density
    reports = np.maximum(fine.forward(density[None])[0], LEAST)[fine.support]
    moved = fine.forward(steps)[:, fine.support]
    slopes = moved @ (counted[fine.support] / reports)
    information = counted.sum() * (moved / reports) @ moved.T
    # Waves of which reports tell nothing, as on a map of one cell, have no slope either.
    told, _, rank, _ = np.linalg.lstsq(information, slopes, rcond=1e-9)
    return bool(rank and slopes @ told > scipy.stats.chi2.isf(false_alarm, rank))
