"""Intervals of how much the share of a region changed from one estimate to another.

Where both estimates come from one joint fit, their k-th samples are one draw: the differences of
such pairs are samples of the change, in which everything cancels that both windows have in common.
Estimates of separate fits are independent, and each sample of one is paired with each of the other.
Quantiles of the differences are drawn away from their mean, as those of a share are
(:mod:`.posterior`), and for the same reason. Peaks and edges that a smooth field misses are missed
in both windows, and their errors may have either sign in a difference: the factor for single cells
is the same up and down, between the two of a share.

Where a region cuts a cell, people may be in either part of it, but mostly in the same one in both
windows: streets and houses stay. From where they are inside of cells of 15 to 64 a side, in eight
cities that change from window to window, the correlation was .4 to 1.0 by city, .8 in the mean
(``python -m experiments window-changes`` has the cities). So each cut cell adds the variance
w (1 - w) / 3 times a^2 + b^2 - 1.6 a b for its shares a and b in the two windows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.area import people_in_area
from ldpspatial.estimation.intervals.interval import WITHIN, Interval, standard_errors
from ldpspatial.estimation.intervals.posterior import MOST_LEVEL, effective_cells, samples_of
from ldpspatial.estimation.intervals.regions import check_weights
from ldpspatial.estimation.result import Estimate
from ldpspatial.validate import instance, number_in

Array = NDArray[np.float64]

STRETCH = 1.2  # of an interval of many cells, to either side
CELL = 1.6  # of a single cell
STAYING = 0.8  # correlation of where people are within a cell, from one window to another


@dataclass(frozen=True)
class ChangeIntervals:
    """The intervals of the change in any region.

    Attributes
    ----------
    level : float
    together : bool
        Whether both estimates come from one fit, and samples were paired.
    earlier, later : (d, d) arrays
        Means of the samples, whose sums over a region are its shares.
    """

    level: float
    together: bool
    earlier: Array
    later: Array
    _earlier_samples: Array
    _later_samples: Array

    def of(self, weights: ArrayLike) -> Interval:
        """Return the change of the share in a region with these weights of the cells."""
        checked = check_weights(weights, self.later.shape)
        before = self._earlier_samples @ checked.ravel()
        after = self._later_samples @ checked.ravel()
        differences = after - before if self.together else np.subtract.outer(after, before).ravel()
        read = min(self.level, MOST_LEVEL)
        low, high = np.quantile(differences, [(1 - read) / 2, (1 + read) / 2])
        change = float(differences.mean())
        reach = self._stretch(checked) * standard_errors(self.level) / standard_errors(read)
        lower = min(float(low), change - reach * (change - float(low)))
        upper = max(float(high), change + reach * (float(high) - change))
        within = standard_errors(self.level) * self._within(checked)
        middle = (lower + upper) / 2
        half = float(np.hypot(upper - middle, within))
        most = float(checked.max() - checked.min())  # what all people together can move a share by
        ends = np.clip([change, middle - half, middle + half], -most, most)
        return Interval(*map(float, ends))

    def _stretch(self, weights: Array) -> float:
        """Return how far quantiles are drawn away from the mean, by the effective cells."""
        people = (self.earlier + self.later) / 2
        low, high = float(weights.min()), float(weights.max())
        unit = (weights - low) / (high - low) if high > low else weights
        # What is known of a region is known of all that is not in it.
        cells = min(effective_cells(unit * people), effective_cells((1 - unit) * people))
        return STRETCH + (CELL - STRETCH) / cells

    def _within(self, weights: Array) -> float:
        """Return the standard deviation of a change by where people are within cut cells."""
        moved = self.earlier**2 + self.later**2 - 2 * STAYING * self.earlier * self.later
        return float(np.sqrt((WITHIN * weights * (1 - weights) * moved).sum()))


def share_change(
    earlier: Estimate, later: Estimate, region_weights: ArrayLike, level: float = 0.95
) -> Interval:
    """Return how much the share of a region changed, later minus earlier, with an interval.

    Parameters
    ----------
    earlier, later : Estimate
        Of one grid and of different reports. Windows that ``Field().fit_windows`` estimated
        together have narrower intervals than those of separate fits. Where one has no samples, a
        field is fitted to its counts.
    region_weights : (d, d) array in [0, 1]
        Share of each cell that the region covers, as in :func:`region_share`.
    level : float in (0, 1)

    Returns
    -------
    Interval
        All in [-1, 1]; ``estimate`` is the mean over the samples.

    Raises
    ------
    InputError
        A bad argument; maps of different shapes; two estimates of the same counts that are not of
        one fit; a channel that the field does not take.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> days = [np.eye(5) / 5, np.eye(5)[::-1] / 5]
    >>> counts = [np.round(1e4 * channel.forward(day)) for day in days]
    >>> monday, tuesday = Field().fit_windows(channel, counts)
    >>> corner = np.zeros((5, 5))
    >>> corner[:2, :2] = 1
    >>> change = share_change(monday, tuesday, corner)
    >>> change.lower < -0.4 < change.upper < 0
    True
    """
    shape = instance("later", later, Estimate).density.shape
    instance("earlier", earlier, Estimate)
    weights = check_weights(region_weights, shape)  # before what may take seconds
    return change_intervals(earlier, later, level).of(weights)


def change_intervals(
    earlier: Estimate, later: Estimate, level: float, area: ArrayLike | None = None
) -> ChangeIntervals:
    """Compute what is common to all regions.

    Arguments and errors are those of :func:`share_change`. With an area, shares are of the people
    in it (:mod:`.area`), and weights of regions must be of its part of each cell.
    """
    before = instance("earlier", earlier, Estimate)
    after = instance("later", later, Estimate)
    level = number_in("level", level, "(0, 1)")
    if before.density.shape != after.density.shape:
        raise InputError(
            f"earlier must have the shape {after.density.shape} of later, "
            f"got {before.density.shape}"
        )
    if (before.of_all < 1) != (after.of_all < 1):
        raise InputError(
            "earlier and later must both be of all people, or both of those in an area "
            f"(of_all), got {before.of_all:g} and {after.of_all:g}"
        )
    together = _of_one_fit(before, after)
    samples_differ = together and bool(np.any(before.samples != after.samples))
    if np.array_equal(before.counts, after.counts) and not samples_differ:
        raise InputError("earlier must be of other reports than later, got the same counts")
    samples = [samples_of(each) for each in (before, after)]
    if area is not None:
        inside = [people_in_area(each, area)[0].samples for each in (before, after)]
        cut = [np.asarray(each) for each in inside]
        # Samples with nobody in the area are left out, and the k-th is no longer the k-th.
        together &= [len(each) for each in cut] == [len(each) for each in samples]
        samples = cut
    flat = [each.reshape(len(each), -1) for each in samples]
    means = [each.mean(0) for each in samples]
    return ChangeIntervals(level, together, *means, *flat)


def _of_one_fit(earlier: Estimate, later: Estimate) -> bool:
    """Return whether the k-th samples of two estimates are one draw."""
    fit = earlier.facts.get("fit", "")
    same = bool(fit) and fit == later.facts.get("fit")
    return same and earlier.samples is not None and later.samples is not None
