"""From counts of reports to a density, and how sure it is."""

from ldpspatial.estimation.counts import check_counts
from ldpspatial.estimation.em import EM
from ldpspatial.estimation.estimate import estimate
from ldpspatial.estimation.field import Field
from ldpspatial.estimation.fit_check.best_power import best_power
from ldpspatial.estimation.fit_check.goodness import GoodnessOfFit, goodness_of_fit
from ldpspatial.estimation.forgery.influence import Influence, RegionInfluence, influence
from ldpspatial.estimation.intervals import cell_intervals, region_share, share_change
from ldpspatial.estimation.result import Estimate, Estimator
from ldpspatial.estimation.robust import Robust
from ldpspatial.estimation.smoothing import binomial, five_point
from ldpspatial.estimation.stopping import LikelihoodGain, Published, StoppingRule

__all__ = [
    "EM",
    "Estimate",
    "Estimator",
    "Field",
    "GoodnessOfFit",
    "Influence",
    "LikelihoodGain",
    "Published",
    "RegionInfluence",
    "Robust",
    "StoppingRule",
    "best_power",
    "binomial",
    "cell_intervals",
    "check_counts",
    "estimate",
    "five_point",
    "goodness_of_fit",
    "influence",
    "region_share",
    "share_change",
]
