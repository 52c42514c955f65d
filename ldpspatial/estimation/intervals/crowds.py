"""Crowds that few reports do not show: how much farther up a share may lie than samples say.

Where reports tell little, a field keeps to a flat map. On average over regions laid anywhere that
is right. But regions are mostly laid where people are, around a station or over a town, and of such
a region it is known that somebody is in it. What one person tells depends on how lumpy the map may
still be. If shares have a Dirichlet law of concentration s, that of a region with the expected
share m is Beta(m s, (1 - m) s), and once one person was found in it Beta(m s + 1, (1 - m) s). By
how much the second quantile is above the first, the upper end is moved. Where much is known s is
large, and one person more is nothing.

The lumpiness of a law is 1 / (s + 1), the variance of a share over m (1 - m). Two are added:

- that of the region itself among the samples;
- that of the sixteenths of the map together, sum of variances over 1 - sum m^2. A field takes what
  is small for smooth. An airport is not, and holds in one place what a sixteenth may hold.

Single cells are left out: how far up they may reach is counted by patches (:mod:`.posterior`).
There is no number to choose. The form was: that the two are added, and that one person is found. It
was settled on six squares of two cities and six made towns (docs/experiments/region-intervals.md).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

PARTS = 4  # of a side: sixteenths
MOST = 0.999  # lumpiness: all people in one place, but which one is not known
LEAST = 1e-300
KNOWN = 1e-12  # lumpiness that rounding makes; one person more moves a share by no more than this


@dataclass(frozen=True, eq=False)
class Crowds:
    """What a map may hold in one place, as far as a field's samples leave it open.

    Attributes
    ----------
    samples : (S, d, d) array
        Shares of the cells.
    """

    samples: Array

    def reach(self, shares: Array, level: float) -> float:
        """Return how much farther up a region's share may lie, if one person was found in it.

        Parameters
        ----------
        shares : (S,) array
            The region's share in each of the samples.
        level : float in (0, 1)
            Of an interval to both sides.

        Returns
        -------
        float in [0, 1]
        """
        mean = float(shares.mean())
        either = mean * (1 - mean)
        if not either > 0:  # nobody or everybody, in each sample
            return 0.0
        lumpiness = float(shares.var()) / either + self.lumpiness
        if not lumpiness > KNOWN:
            return 0.0
        concentration = 1 / min(lumpiness, MOST) - 1
        inside, outside = mean * concentration, (1 - mean) * concentration
        found = np.array([0.0, 1.0])
        without, with_one = special.betaincinv(inside + found, outside, (1 + level) / 2)
        return float(with_one - without)

    @cached_property
    def lumpiness(self) -> float:
        """1 / (s + 1) of the Dirichlet law of the sixteenths of the map."""
        sums = self.samples
        for axis in (1, 2):
            cells = sums.shape[axis]
            sums = np.add.reduceat(sums, np.unique(np.arange(PARTS) * cells // PARTS), axis=axis)
        apart = 1 - float((sums.mean(0) ** 2).sum())
        return float(sums.var(0).sum()) / max(apart, LEAST)
