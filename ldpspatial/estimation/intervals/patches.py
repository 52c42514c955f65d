"""What no report tells: where people are within a patch of cells, a quarter of the disk wide.

A field takes a map for smooth below the scale that reports can tell. Cities are not: half of the
people of a patch may be in one house. Of a patch of which a region holds the part W of the expected
people, it holds anything from none to all of them; as within a single cell
(:mod:`.regions`), that is taken for a variance W (1 - W) / 3 of its share. Patches are windows
around each cell, and each counts as much as people are expected in its middle:

    variance = 1/3 sum_c f_c (A_c (1 - A_c / B_c) - w_c (1 - w_c) f_c),  A = K (w f),  B = K f,

f the map, w the region's weights, K the sum over a window. What is within single cells, the last
term, is counted there.

The radius of a window is a quarter of that of the disk, as its area says. It was found on six
squares of two cities, and holds on five others (docs/experiments/region-intervals.md). Where one
report tells cells apart, as randomised response does, a patch is a cell.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.intervals.interval import WITHIN
from ldpspatial.estimation.window_sums import window_sums

Array = NDArray[np.float64]

RADIUS = 0.25  # of a window, in radii of the disk
LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Patches:
    """The people of a map in windows around its cells.

    Attributes
    ----------
    people : (d, d) array
        Expected shares of the cells.
    radius : float
        Of a window, in cells.
    """

    people: Array
    radius: float

    def variance(self, weights: Array) -> float:
        """Return that of the share of a region with (d, d) weights in [0, 1], between cells."""
        held = self._sums(weights * self.people, self._window)
        open_ = held * (1 - held / np.maximum(self._around, LEAST))
        open_ -= weights * (1 - weights) * self.people
        return WITHIN * max(float((self.people * open_).sum()), 0.0)

    def of_cells(self) -> Array:
        """Return (d, d) variances of the shares of single cells."""
        around = np.maximum(self._around, LEAST)
        alone = self.people**2 * self._sums(self.people / around, self._window**2)
        open_ = self.people * self._around - alone
        return np.asarray(WITHIN * np.maximum(open_, 0.0))

    @cached_property
    def _around(self) -> Array:
        return self._sums(self.people, self._window)

    @cached_property
    def _window(self) -> Array:
        """Cells within the radius, those on its rim in part."""
        reach = ceil(self.radius)
        offsets = np.arange(-reach, reach + 1)
        window = np.clip(self.radius + 0.5 - np.hypot(offsets[:, None], offsets), 0.0, 1.0)
        window[reach, reach] = 1.0
        return np.asarray(window)

    @staticmethod
    def _sums(values: Array, window: Array) -> Array:
        """Return the sums of (d, d) values over the window around each cell."""
        return np.maximum(window_sums(values, window), 0.0)  # rounding alone goes below
