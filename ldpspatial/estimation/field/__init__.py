"""A Bayesian field as the estimator: map, samples of the posterior, and a verdict on both."""

from ldpspatial.estimation.field.estimator import Field
from ldpspatial.estimation.field.posterior import Posterior

__all__ = ["Field", "Posterior"]
