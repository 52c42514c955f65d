"""How far one map is from another: the exact Wasserstein distance and cheaper company."""

from ldpspatial.metrics.density import l1, mean_squared_error, total_variation
from ldpspatial.metrics.sinkhorn import sinkhorn_divergence
from ldpspatial.metrics.sliced import sliced_wasserstein
from ldpspatial.metrics.wasserstein import wasserstein

__all__ = [
    "l1",
    "mean_squared_error",
    "sinkhorn_divergence",
    "sliced_wasserstein",
    "total_variation",
    "wasserstein",
]
