"""How much the shares of many regions changed from one estimate to another, with intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from ldpspatial.collecting.region_shares import part_of
from ldpspatial.collecting.region_tables import RegionTable
from ldpspatial.estimation.intervals import Interval
from ldpspatial.estimation.intervals.changes import change_intervals
from ldpspatial.estimation.intervals.interval import share_of
from ldpspatial.estimation.intervals.regions import check_weights
from ldpspatial.estimation.result import Estimate
from ldpspatial.places.regions import Region, check_regions
from ldpspatial.validate import callback, instance

TOGETHER, APART = "windows of one fit", "separate fits"


@dataclass(frozen=True)
class RegionChange:
    """How much the share of a region changed.

    Attributes
    ----------
    region : Region
    change : Interval
        Later minus earlier share, of all people or of those in an area, from -1 to 1.
    share, share_before : float
        The later and the earlier one.
    """

    region: Region
    change: Interval
    share: float
    share_before: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out that nothing changed."""
        return self.change.lower > 0 or self.change.upper < 0


@dataclass(frozen=True)
class RegionChanges(RegionTable):
    """How much the shares of many regions changed.

    Attributes
    ----------
    n, n_before : int
        Reports of the later and of the earlier estimate.
    level : float
        Probability with which one interval covers the truth (each by itself, not all at once).
    together : bool
        Whether both estimates come from one fit, so that their samples were paired.
    rows : tuple of RegionChange
        One for each region, in the order given.
    """

    n: int
    n_before: int
    level: float
    together: bool
    rows: tuple[RegionChange, ...]

    @property
    def method(self) -> str:
        """Where the two estimates come from."""
        return TOGETHER if self.together else APART

    @property
    def regions(self) -> list[Region]:
        """The regions, in the order given."""
        return [row.region for row in self.rows]

    @property
    def numbers(self) -> dict[str, list[float]]:
        """Change, ends of its interval, and both shares."""
        return {
            "change": [row.change.estimate for row in self.rows],
            "lower": [row.change.lower for row in self.rows],
            "upper": [row.change.upper for row in self.rows],
            "share": [row.share for row in self.rows],
            "share_before": [row.share_before for row in self.rows],
        }

    @property
    def details(self) -> dict[str, list[float]]:
        """How much of a region is on the map."""
        return {"on_map": [row.region.on_map for row in self.rows]}

    @property
    def members(self) -> dict[str, Any]:
        """Numbers of reports, level of the intervals, and where the estimates come from."""
        return {
            "reports": self.n,
            "reports_before": self.n_before,
            "level": self.level,
            "method": self.method,
        }


def region_changes(
    earlier: Estimate,
    later: Estimate,
    regions: Sequence[Region],
    level: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
    area: ArrayLike | None = None,
) -> RegionChanges:
    """Return how much the share of each region changed, later minus earlier, with intervals.

    Parameters
    ----------
    earlier, later : Estimate
        As in :func:`ldpspatial.estimation.intervals.changes.share_change`.
    regions : sequence of Region
        At least one, as :func:`ldpspatial.files.regions.read_regions` returns them.
    level : float in (0, 1)
    progress : callable (regions done, regions in all), optional
    area : (d, d) array in [0, 1], optional
        Shares are of the people in it, as in
        :func:`ldpspatial.collecting.region_shares.region_shares`.

    Raises
    ------
    InputError
        A bad argument; maps of different shapes; the same counts twice; hardly anybody in the area.

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
    >>> changes = region_changes(monday, tuesday, [Region("corner", corner)])
    >>> changes.method, round(changes.rows[0].change.estimate, 1), changes.rows[0].is_sure
    ('windows of one fit', -0.4, True)
    """
    shape = instance("later", later, Estimate).density.shape
    instance("earlier", earlier, Estimate)
    check_regions(regions)
    callback("progress", progress)
    weights = [check_weights(region.weights, shape) for region in regions]
    intervals = change_intervals(earlier, later, level, area)
    if area is not None:
        weights = [part_of(area, covered) for covered in weights]
    rows = []
    for region, covered in zip(regions, weights, strict=True):
        shares = [
            share_of(each, covered) for each in (intervals.later.people, intervals.earlier.people)
        ]
        rows.append(RegionChange(region, intervals.of(covered), *shares))
        if progress is not None:
            progress(len(rows), len(regions))
    return RegionChanges(later.n, earlier.n, level, intervals.together, tuple(rows))
