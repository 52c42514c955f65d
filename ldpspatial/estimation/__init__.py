"""From counts of reports to a density, and how sure it is."""

from ldpspatial.estimation.estimate import Estimate, estimate
from ldpspatial.estimation.smoothing import binomial, five_point
from ldpspatial.estimation.stopping import LikelihoodGain, Published, StoppingRule

__all__ = [
    "Estimate",
    "LikelihoodGain",
    "Published",
    "StoppingRule",
    "binomial",
    "estimate",
    "five_point",
]
