"""Intervals of how much the share of a region changed from one estimate to another.

Where both estimates come from one joint fit, their k-th samples are one draw: the differences of
such pairs are samples of the change, in which everything cancels that both windows have in common.
Estimates of separate fits are independent, and each sample of one is paired with each of the other.
Peaks and edges that a smooth field misses are missed in both windows, and their errors may have
either sign in a difference. So quantiles of the differences in a single cell are drawn away from
their mean, by a factor between the two of a share (:mod:`.posterior`) up and down; those of many
cells need none.

What no report tells of a window, mostly stays the same in the next one: streets and houses stay.
From where people are inside of cells of 15 to 64 a side, in eight cities that change from window to
window, the correlation was .4 to 1.0 by city, .8 in the mean (``python -m experiments
window-changes`` has the cities). So what is a variance of a share, a^2 in one window and b^2 in the
other, is one of a^2 + b^2 - 1.6 a b of the change: of the people of cells that a region cuts,
w (1 - w) / 3 times the squares of their shares, and of those of patches (:mod:`.patches`). A crowd
that reports do not show (:mod:`.crowds`) is there in both windows but for a fifth of it, which
moves the upper end of the change if it is the later one's, and the lower end if it is the earlier
one's.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.reach import disk_radius
from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.area import people_in_area
from ldpspatial.estimation.intervals.crowds import Crowds
from ldpspatial.estimation.intervals.interval import WITHIN, Interval, standard_errors
from ldpspatial.estimation.intervals.patches import RADIUS, Patches
from ldpspatial.estimation.intervals.posterior import effective_cells, read_at, samples_of
from ldpspatial.estimation.intervals.regions import check_weights
from ldpspatial.estimation.result import Estimate
from ldpspatial.validate import instance, number_in

Array = NDArray[np.float64]

CELL = 1.6  # stretch of the interval of a single cell, to either side; that of many has none
STAYING = 0.8  # correlation of where people are within a cell or patch, from window to window


@dataclass(frozen=True, eq=False)
class Window:
    """What is known of the shares in one of two windows.

    Attributes
    ----------
    samples : (S, d, d) array
    people : (d, d) array
        Their mean, whose sums over a region are its shares.
    patches : Patches
    crowds : Crowds
    """

    samples: Array
    people: Array
    patches: Patches
    crowds: Crowds

    @classmethod
    def seen(cls, samples: Array, channel: Channel) -> "Window":
        """Return what samples say of reports that came through a channel."""
        people = samples.mean(0)
        patches = Patches(people, RADIUS * disk_radius(channel))
        return cls(samples, people, patches, Crowds(samples))

    def shares(self, weights: Array) -> Array:
        """Return the (S,) shares of a region."""
        return np.asarray(self.samples.reshape(len(self.samples), -1) @ weights.ravel())


@dataclass(frozen=True)
class ChangeIntervals:
    """The intervals of the change in any region.

    Attributes
    ----------
    level : float
    together : bool
        Whether both estimates come from one fit, and samples were paired.
    earlier, later : Window
    """

    level: float
    together: bool
    earlier: Window
    later: Window

    def of(self, weights: ArrayLike) -> Interval:
        """Return the change of the share in a region with these weights of the cells."""
        checked = check_weights(weights, self.later.people.shape)
        before, after = self.earlier.shares(checked), self.later.shares(checked)
        differences = after - before if self.together else np.subtract.outer(after, before).ravel()
        change = float(differences.mean())
        read, farther = read_at(self.level)
        low, high = np.quantile(differences, [(1 - read) / 2, (1 + read) / 2])
        least, most = float(checked.min()), float(checked.max())
        span = most - least  # what all people together can move a share by
        unit = (checked - least) / span if span > 0 else checked
        stretch, below, above = self._of_unit(unit, read)
        # Where nearly all samples are alike a quantile may lie beyond the mean.
        lower = change - farther * stretch * max(change - float(low), 0.0)
        upper = change + farther * stretch * max(float(high) - change, 0.0)
        still = standard_errors(self.level) * self._still(checked, unit, span)
        middle = (lower + upper) / 2
        half = float(np.hypot(upper - middle, still))
        lower, upper = (
            middle - half - farther * span * below,
            middle + half + farther * span * above,
        )
        return Interval(*map(float, np.clip([change, lower, upper], -span, span)))

    def _of_unit(self, unit: Array, level: float) -> tuple[float, float, float]:
        """Return how far quantiles are stretched, by the effective cells, and ends moved."""
        people = (self.earlier.people + self.later.people) / 2
        inside, outside = effective_cells(unit * people), effective_cells((1 - unit) * people)
        # What is known of a region is known of all that is not in it.
        is_turned = outside < inside
        if is_turned:
            unit = 1 - unit
        stretch = 1 + (CELL - 1) / min(inside, outside)
        if np.count_nonzero(unit) <= 1:
            return stretch, 0.0, 0.0
        below, above = (
            (1 - STAYING) * window.crowds.reach(window.shares(unit), level)
            for window in (self.earlier, self.later)
        )
        return (stretch, above, below) if is_turned else (stretch, below, above)

    def _still(self, weights: Array, unit: Array, span: float) -> float:
        """Return the standard deviation of a change by where people are in cut cells and patches.

        Those cells are cut by the region, whatever all cells have in common.
        """
        cells = _moved(self.earlier.people, self.later.people)
        within = float((WITHIN * weights * (1 - weights) * cells).sum())
        before, after = (each.patches.variance(unit) for each in (self.earlier, self.later))
        return float(np.sqrt(within + span**2 * _moved(np.sqrt(before), np.sqrt(after))))


def _moved(before: Any, after: Any) -> Any:
    """Return the variance of a difference, from standard deviations of what mostly stays."""
    return before**2 + after**2 - 2 * STAYING * before * after


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
    windows = [
        Window.seen(each, estimate.channel)
        for each, estimate in zip(samples, (before, after), strict=True)
    ]
    return ChangeIntervals(level, together, *windows)


def _of_one_fit(earlier: Estimate, later: Estimate) -> bool:
    """Return whether the k-th samples of two estimates are one draw."""
    fit = earlier.facts.get("fit", "")
    if not fit or fit != later.facts.get("fit"):
        return False
    if earlier.samples is None or later.samples is None:
        return False
    return len(earlier.samples) == len(later.samples)  # else somebody left some out
