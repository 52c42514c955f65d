"""How many people are in each of many regions: shares with intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.collecting.region_tables import RegionTable
from ldpspatial.errors import InputError
from ldpspatial.estimation.forgery.influence import RegionInfluence, influence
from ldpspatial.estimation.intervals import Interval
from ldpspatial.estimation.intervals.area import people_in_area
from ldpspatial.estimation.intervals.interval import Uncertainty, interval_of, share_of
from ldpspatial.estimation.intervals.levels import level_intervals
from ldpspatial.estimation.intervals.regions import (
    METHODS,
    ShareIntervals,
    check_weights,
    share_intervals,
)
from ldpspatial.estimation.intervals.trust import learned_trust
from ldpspatial.estimation.levels import LevelMap
from ldpspatial.estimation.result import Estimate
from ldpspatial.estimation.robust import honest_reports
from ldpspatial.places.regions import Region, check_regions, cut_cells
from ldpspatial.places.within import Within
from ldpspatial.validate import callback, instance, number_array, number_in, one_of

Array = NDArray[np.float64]

MOVED = ("reached_down", "reached_up", "proven_down", "proven_up")
FORGED = "[0.0001, 1)"  # shares of which proofs say more than nothing
ROUNDING = 1e-9  # a share outside its interval by no more than this counts as inside


@dataclass(frozen=True)
class RegionShare:
    """The people in a region.

    Attributes
    ----------
    region : Region
    share : Interval
        Of all people, or of those in an area, from 0 to 1.
    people : float
        Share times reports, but for those that were taken for forged; of an area, times those that
        it is estimated to hold.
    in_cut_cells : float
        How much of the share, from 0 to 1, is in cells that the region covers in part only
        (:func:`ldpspatial.places.regions.cut_cells`).
    wholly_inside, touched : float
        Share of all people in the cells that it covers wholly, and in those that it covers at all.
        Wherever in their cells people are, the map puts its share between the two.
    by_public_weights : float
        How much of the share, from 0 to 1, is in cut cells that public weights divide.
    forged : RegionInfluence or None
        What forgers make of the region's share of the map, where that was asked for.
    method : str
        Of this share: where that of the table is "posterior or fisher", one of both.
    """

    region: Region
    share: Interval
    people: float
    in_cut_cells: float
    wholly_inside: float
    touched: float
    by_public_weights: float = 0.0
    forged: RegionInfluence | None = None
    method: str = ""

    @property
    def moved(self) -> tuple[float, float, float, float] | None:
        """By how much forgers move the share: attacks down and up, then what is proved of all.

        It is that of the map's share, which is another number than the mean of samples, and no more
        than leaves this one in [0, 1].
        """
        if self.forged is None:
            return None
        found, share = self.forged, self.share.estimate
        ends = np.array([found.lower, found.upper, found.least, found.most])
        lower, upper, least, most = np.clip(ends - found.share, -share, 1 - share).tolist()
        return lower, upper, least, most

    @property
    def is_outside(self) -> bool:
        """Whether the share lies outside its interval (docs/ranges.md tells when it does)."""
        low = self.share.lower - ROUNDING
        high = self.share.upper + ROUNDING
        return not low <= self.share.estimate <= high


@dataclass(frozen=True)
class RegionShares(RegionTable):
    """The people in many regions.

    Attributes
    ----------
    n : int
        Reports, or the people who were counted.
    level : float
        Probability with which one interval covers the truth (each by itself, not all at once).
    method : str
        Of the intervals; "auto" is already resolved.
    rows : tuple of RegionShare
        One for each region, in the order given.
    of_all : float
        Share of all people in the area that shares are of: 1 for shares of all people.
    trust : float in [0, 1], optional
        How much the reports say that the public weights inside cells are right
        (:func:`ldpspatial.estimation.intervals.trust.learned_trust`); None without such weights.
    forged : float in (0, 1), optional
        Share of all reports that rows take for forged; None where that was not asked for.
    """

    n: int
    level: float
    method: str
    rows: tuple[RegionShare, ...]
    of_all: float = 1.0
    trust: float | None = None
    forged: float | None = None

    @property
    def regions(self) -> list[Region]:
        """The regions, in the order given."""
        return [row.region for row in self.rows]

    @property
    def numbers(self) -> dict[str, list[float]]:
        """Share, ends of its interval, people, what public weights did and what forgers can do."""
        numbers = {
            "share": [row.share.estimate for row in self.rows],
            "lower": [row.share.lower for row in self.rows],
            "upper": [row.share.upper for row in self.rows],
            "people": [row.people for row in self.rows],
        }
        if self.trust is not None:
            numbers["by_public_weights"] = [row.by_public_weights for row in self.rows]
            numbers["trust"] = [self.trust] * len(self.rows)
        moved = [row.moved for row in self.rows if row.moved is not None]
        if self.forged is not None:
            numbers["forged"] = [self.forged] * len(self.rows)
            numbers |= dict(zip(MOVED, map(list, zip(*moved, strict=True)), strict=True))
        return numbers

    @property
    def texts(self) -> dict[str, list[str]]:
        """Which method tells each."""
        return {"method": [row.method for row in self.rows]}

    @property
    def details(self) -> dict[str, list[float]]:
        """What is known of cut cells, and how much of a region is on the map."""
        return {
            "in_cut_cells": [row.in_cut_cells for row in self.rows],
            "wholly_inside": [row.wholly_inside for row in self.rows],
            "touched": [row.touched for row in self.rows],
            "on_map": [row.region.on_map for row in self.rows],
        }

    @property
    def members(self) -> dict[str, Any]:
        """Number of reports, level and method of the intervals."""
        return {"reports": self.n, "level": self.level, "method": self.method}


def region_shares(
    estimate: Estimate,
    regions: Sequence[Region],
    level: float = 0.95,
    method: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    area: ArrayLike | Sequence[Region] | None = None,
    within: Within | None = None,
    forged: float | None = None,
) -> RegionShares:
    """Return the share of the people in each region, with confidence intervals.

    What is common to all regions is computed once: for many of them this is faster than
    :func:`ldpspatial.estimation.intervals.regions.region_share` for each.

    Parameters
    ----------
    estimate : Estimate
    regions : sequence of Region
        At least one, as :func:`ldpspatial.files.regions.read_regions` returns them.
    level : float in (0, 1)
    method : {"auto", "posterior", "fisher", "scores"}
        As in :func:`ldpspatial.estimation.intervals.regions.region_share`.
    progress : callable (regions done, regions in all), optional
    area : (d, d) array in [0, 1] or sequence of Region, optional
        Share of each cell that an area covers, or the regions that it is made of, which do not
        overlap (:func:`ldpspatial.places.regions.united`): shares are then of the people in it, and
        by method posterior. Of a region that leaves it the part inside is told. Weights do not tell
        which part of a cell that both cut is in both: cut regions first
        (:func:`ldpspatial.places.regions.clipped`), or the smaller part counts as in both.
    within : Within, optional
        Public weights, by which cells that regions cut are divided: as much by them as the reports
        say that they are right, else by area. They must not come from these reports.
    forged : float in [0.0001, 1), optional
        Tell how far forgers of this share of all reports can move each region, too
        (:func:`ldpspatial.estimation.forgery.influence.influence`). It takes seconds a region.

    Raises
    ------
    InputError
        A bad argument; a channel or more cells than the method takes; too few reports for
        "fisher"; another method than posterior with an area, or hardly anybody in it; weights
        within the cells of another grid, or without shapely; an area and forgers, or another
        channel than a StampChannel with them.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> weights = np.zeros((5, 5))
    >>> weights[:, :2], weights[:, 2] = 1, 0.5  # the western half of the square
    >>> shares = region_shares(EM().fit(channel, counts), [Region("west", weights)])
    >>> (west,) = shares.rows
    >>> shares.method, round(west.share.estimate, 1), round(west.in_cut_cells, 1)
    ('posterior', 0.5, 0.2)
    """
    shape = instance("estimate", estimate, Estimate).density.shape
    check_regions(regions)
    callback("progress", progress)
    forgers = None
    if forged is not None:
        number_in("forged", forged, FORGED)
        if area is not None or estimate.of_all < 1:
            raise InputError("forged must be left out where shares are of an area")
        forgers = influence(estimate.channel, estimate.density, forged)  # type: ignore[arg-type]
    by_area = [check_weights(region.weights, shape) for region in regions]
    division = None if within is None else _Division(within, learned_trust(estimate, within))
    parts = by_area
    if division is not None:
        parts = [division.parts(region) for region in regions]
    if area is not None:
        if one_of("method", method, METHODS) not in ("auto", "posterior"):
            raise InputError(f"method must be posterior for shares of an area, got {method!r}")
        covered, held = _area(area, shape, division)
        estimate, _ = people_in_area(estimate, held)
        by_area = [part_of(covered, each) for each in by_area]
        parts = [part_of(held, each) for each in parts]
    intervals = share_intervals(estimate, level, method)
    people = honest_reports(estimate) * estimate.of_all
    rows = []
    for region, covered, held in zip(regions, by_area, parts, strict=True):
        row = _row(region, covered, held, intervals, people)
        if division is not None:
            known = division.known(region) & cut_cells(covered)
            row = replace(row, by_public_weights=_part_in(known, held * intervals.density))
        if forgers is not None:
            row = replace(row, forged=forgers.region(np.clip(held, 0, 1)))
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(regions))
    trust = None if division is None else division.trust
    return RegionShares(
        estimate.n, level, intervals.method, tuple(rows), estimate.of_all, trust, forged
    )


def level_region_shares(
    found: LevelMap,
    regions: Sequence[Region],
    level: float = 0.95,
    open_parts: str = "together",
) -> RegionShares:
    """Return the share of the people in each region of a map of noisy sums, with intervals.

    Parameters
    ----------
    found : LevelMap
        ``Released.levels`` of a distributed or central release.
    regions : sequence of Region
    level : float in (0, 1)
    open_parts : {"together", "apart", "learned"}
        Whether all that regions cut may lie on one side of the border, or each part by itself, or
        people there are as crowded as the sums say.

    Returns
    -------
    RegionShares
        By method "levels", "levels, parts apart" or "levels, parts learned"
        (:func:`ldpspatial.level_intervals`): about the people who were counted. ``n`` is how many
        they are, by the sums.

    Raises
    ------
    InputError
        A bad argument.
    """
    sure = level_intervals(found, level, open_parts)
    check_regions(regions)
    weights = [check_weights(region.weights, sure.density.shape) for region in regions]
    intervals = _LevelShares(sure)
    rows = [
        _row(region, each, each, intervals, found.people)
        for region, each in zip(regions, weights, strict=True)
    ]
    method = sure.of_regions or sure.method
    return RegionShares(max(round(found.people), 0), level, method, tuple(rows))


@dataclass(frozen=True)
class _LevelShares:
    """Intervals of a map of noisy sums, which allow for people in cut cells themselves."""

    sure: Uncertainty

    @property
    def density(self) -> Array:
        return self.sure.density

    def of(self, weights: Array, area: Array) -> Interval:
        del area  # the sums' intervals allow for people in cut cells themselves
        share = share_of(self.density, weights)
        return interval_of(share, *self.sure.bounds(weights), moved=self.sure.moved)

    def method_of(self, weights: Array) -> str:
        return self.sure.method_of(weights)


@dataclass(frozen=True)
class _Division:
    """How cut cells are divided: by public weights as far as these are trusted, else by area."""

    within: Within
    trust: float

    def parts(self, region: Region) -> Array:
        """Return (d, d), the part of each cell's people in a region."""
        public = self.within.parts(region)
        return np.asarray(region.weights + self.trust * (public - region.weights))

    def known(self, region: Region) -> NDArray[np.bool_]:
        """Return (d, d), where public weights say something of a region."""
        return self.within.known & (region.geometry is not None)


def _area(
    area: ArrayLike | Sequence[Region], shape: tuple[int, ...], division: _Division | None
) -> tuple[Array, Array]:
    """Return which part of each cell an area covers, and which part of its people is in it."""
    if not (isinstance(area, Sequence) and any(isinstance(each, Region) for each in area)):
        covered = number_array("area", area, shape, "[0, 1]", bools=True)
        return covered, covered
    regions = check_regions(area)
    weights = [number_array("area", each.weights, shape, "[0, 1]", bools=True) for each in regions]
    covered = np.minimum(np.sum(weights, axis=0), 1.0)
    if division is None:
        return covered, covered
    parts = [division.parts(each) for each in regions]
    return covered, np.minimum(np.sum(parts, axis=0), 1.0)


def _row(
    region: Region,
    covered: Array,
    held: Array,
    intervals: ShareIntervals | _LevelShares,
    people: float,
) -> RegionShare:
    """Return what is told of a region that covers, and holds of the people, parts of cells."""
    density = intervals.density
    share = intervals.of(held, covered)
    cut = cut_cells(covered)
    part = _part_in(cut, held * density)
    whole = min(float(density[(covered > 0.5) & ~cut].sum()), 1.0)  # others are slivers
    touched = min(whole + float(density[cut].sum()), 1.0)
    return RegionShare(
        region, share, share.estimate * people, part, whole, touched,
        method=intervals.method_of(held),
    )  # fmt: skip


def part_of(area: ArrayLike, covered: Array) -> Array:
    """Return which part of each cell's part of an area a region covers; both were checked."""
    whole = np.asarray(area, np.float64)
    both = np.minimum(whole, covered)
    return np.divide(both, whole, out=np.zeros_like(both), where=whole > 0)


def _part_in(mask: NDArray[np.bool_], people: Array) -> float:
    everyone = float(people.sum())
    return float(people[mask].sum()) / everyone if everyone else 0.0
