"""Intervals for the share of people in a region, given as weights of the cells.

Three methods: "posterior" (:mod:`.posterior`), "fisher" (:mod:`.fisher`), and "scores"
(:mod:`.scores`) for reports that are sets.

No report tells where in a cell its people are. Of a cell of which a region covers the part w, it
holds the part w of the people if these are spread evenly, and anything from none to all of them
otherwise. What that adds to an interval is the variance w (1 - w) / 3 of a share of its people for
each cell, as if for half of a cell every share were equally likely. On eight real maps, with 10 to
128 cells a side and 40 polygons each, intervals of this width alone held .93 to 1.0 of the true
shares.

That is of regions laid without regard to where in a cell people are. A region of part of a cell is
mostly laid where people are, around a station or a block, and may hold all of the cell's. So one of
half of a cell's area or less reaches from what its whole cells hold at least to what all that it
touches hold at most, and larger ones go part of that way, (area / half a cell)^-2. The same holds
of all but such a region.

Public weights inside cells may divide a cell otherwise, into w where area gives a. They may be
wrong where no report can tell. So what area leaves open stays open, around the moved middle: the
term is (a (1 - a) + (w - a)^2) / 3. With venues that lie half a cell off, 20 cells a side, five
cities and 500 polygons, w (1 - w) / 3 held .93 (.81 in one city), this one .96 (.90).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import is_conditional
from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.alone import narrowest
from ldpspatial.estimation.intervals.fisher import fisher
from ldpspatial.estimation.intervals.interval import (
    WITHIN,
    Bounds,
    Interval,
    interval_of,
    share_of,
    standard_errors,
)
from ldpspatial.estimation.intervals.posterior import posterior
from ldpspatial.estimation.intervals.scores import score_bounds
from ldpspatial.estimation.result import Estimate
from ldpspatial.places.regions import cut_cells
from ldpspatial.validate import instance, number_array, number_in, one_of

Array = NDArray[np.float64]

COUNT_METHODS = ("auto", "posterior", "fisher")  # of reports that can be counted
METHODS = (*COUNT_METHODS, "scores")
SMALL = 0.5  # cells of a region that may hold all people of a cell that it cuts, or none
LARGE = 5.0  # and of one that is told as if it were laid without regard to where people are


@dataclass(frozen=True)
class ShareIntervals:
    """The intervals of any region by one method, "auto" already resolved.

    Attributes
    ----------
    method : str
    level : float
    density : (d, d) array
        Whose sum over a region is its share: the mean of the samples with "posterior", and where
        "auto" chose between it and "fisher".
    moved : bool
        Whether a share that would lie outside of its interval is moved to the nearest end of it.
    """

    method: str
    level: float
    density: Array
    _bounds: Bounds
    moved: bool = False
    _method_of: Callable[[Array], str] | None = None

    def method_of(self, weights: ArrayLike) -> str:
        """Return which method tells a region: one of both where "auto" chose for each."""
        checked = check_weights(weights, self.density.shape)
        return self.method if self._method_of is None else self._method_of(checked)

    def of(self, weights: ArrayLike, area: ArrayLike | None = None) -> Interval:
        """Return the share in a region with these weights of the cells, and its interval.

        Parameters
        ----------
        weights : (d, d) array in [0, 1]
            Part of each cell's people in the region.
        area : (d, d) array in [0, 1], optional
            Part of each cell's area in it, where the weights are others.
        """
        checked = check_weights(weights, self.density.shape)
        covered = checked if area is None else check_weights(area, self.density.shape)
        lower, upper = self._bounds(checked)
        reach = standard_errors(self.level) * self._within(checked, covered)
        if reach > 0:
            middle = (lower + upper) / 2
            reach = float(np.hypot(upper - middle, reach))
            # What is wholly in and what is out limits a share wherever people are in cut cells.
            lower = max(middle - reach, 0.0)
            upper = min(middle + reach, 1.0)
            lower, upper = self._with_all_of_cells(lower, upper, covered)
        return interval_of(share_of(self.density, checked), lower, upper, self.moved)

    def _with_all_of_cells(self, lower: float, upper: float, area: Array) -> tuple[float, float]:
        """Return ends between which the people of cut cells may all be, or none, if it is small."""
        small = float(min(area.sum(), (1 - area).sum()))
        if small >= LARGE:
            return lower, upper
        part = (SMALL / max(small, SMALL)) ** 2
        cut = cut_cells(area)
        whole = (area > 0.5) & ~cut  # others are slivers
        least, _ = self._bounds(whole.astype(np.float64))
        _, most = self._bounds((whole | cut).astype(np.float64))
        return lower - part * max(lower - least, 0.0), upper + part * max(most - upper, 0.0)

    def _within(self, weights: Array, area: Array) -> float:
        """Return the standard deviation of a share by where people are within cut cells."""
        square = WITHIN * (area * (1 - area) + (weights - area) ** 2)
        return float(np.sqrt((square * self.density**2).sum()))


def region_share(
    estimate: Estimate,
    region_weights: ArrayLike,
    level: float = 0.95,
    method: str = "auto",
) -> Interval:
    """Return the share of the people in a region, with a confidence interval.

    Parameters
    ----------
    estimate : Estimate
    region_weights : (d, d) array in [0, 1]
        Share of each cell that the region covers, as :mod:`ldpspatial.places.regions` makes
        them; a bool array for whole cells.
    level : float in (0, 1)
    method : {"auto", "posterior", "fisher", "scores"}
        "posterior": from samples of a field, those of the estimate or of one that is fitted to its
        counts. "fisher": right for every density, and wide; to 64 cells a side.
        "scores": for reports that are sets (OUE, OLH, subset selection) and no others, the
        mean of what each tells alone, -+ z standard errors; right for every map and side.
        "auto": scores for sets, else posterior, but fisher where reports alone tell about as much
        or contradict it (:mod:`.alone`).

    Returns
    -------
    Interval
        With "posterior" and "auto", ``estimate`` is the mean over the samples, the share with the
        least expected squared error; with others it is the share in the estimate's density. With
        "fisher" it may lie outside the interval, as it often does where nearly all people crowd
        into a few cells: the interval comes from the reports alone, and is right there
        (docs/ranges.md). Where "auto" takes that interval, such a share is its nearest end.

    Raises
    ------
    InputError
        A bad argument; a channel or more cells than the method takes; too few reports for "fisher".

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> weights = np.zeros((5, 5))
    >>> weights[:, :2], weights[:, 2] = 1, 0.5  # the western half of the square
    >>> half = region_share(EM().fit(channel, counts), weights)
    >>> 0.3 < half.lower < 0.5 < half.upper < 0.7
    True
    """
    shape = instance("estimate", estimate, Estimate).density.shape
    weights = check_weights(region_weights, shape)  # before what may take seconds
    return share_intervals(estimate, level, method).of(weights)


def share_intervals(estimate: Estimate, level: float, method: str) -> ShareIntervals:
    """Compute what is common to all regions.

    Arguments and errors are those of :func:`region_share`.
    """
    instance("estimate", estimate, Estimate)
    level = number_in("level", level, "(0, 1)")
    one_of("method", method, METHODS)
    sets = is_conditional(estimate.channel)
    if method == "scores" or (method == "auto" and sets):
        bounds = score_bounds(estimate.channel, estimate.counts, level)
        return ShareIntervals("scores", level, estimate.density, bounds)
    if sets:
        raise InputError(
            "method must be scores where the channel knows only the reports that came, "
            f"got {method!r}"
        )
    by_method = {"auto": narrowest, "posterior": posterior, "fisher": fisher}
    found = by_method[method](estimate, level)
    told_by = found.of_regions or found.method
    return ShareIntervals(told_by, level, found.density, found.bounds, found.moved, found.method_of)


def check_weights(weights: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return the weights of a region as float64, or refuse invalid ones."""
    return number_array("region_weights", weights, shape, "[0, 1]", bools=True)
