"""How sure an estimate is: intervals of cells and of regions."""

from ldpspatial.estimation.intervals.cells import cell_intervals
from ldpspatial.estimation.intervals.changes import share_change
from ldpspatial.estimation.intervals.interval import Interval, Uncertainty
from ldpspatial.estimation.intervals.regions import ShareIntervals, region_share, share_intervals

__all__ = [
    "Interval",
    "ShareIntervals",
    "Uncertainty",
    "cell_intervals",
    "region_share",
    "share_change",
    "share_intervals",
]
