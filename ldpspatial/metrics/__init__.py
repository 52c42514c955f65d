"""How far one map is from another: the exact Wasserstein distance and cheaper measures."""

import importlib
from typing import TYPE_CHECKING, Any

from ldpspatial.metrics.density import l1, mean_squared_error, total_variation
from ldpspatial.metrics.exact.grid_costs import SeparableCost
from ldpspatial.metrics.heatmap import (
    block_sums,
    earth_movers_distance,
    heat_map,
    kl_divergence,
    pearson,
    similarity,
)
from ldpspatial.metrics.percentage import (
    mean_absolute_percentage_error,
    mean_arctangent_percentage_error,
    symmetric_absolute_percentage_error,
)
from ldpspatial.metrics.transport import Transport, transport
from ldpspatial.metrics.wasserstein import wasserstein

if TYPE_CHECKING:
    from ldpspatial.metrics.sinkhorn import sinkhorn_divergence
    from ldpspatial.metrics.sliced import sliced_wasserstein

__all__ = [
    "SeparableCost",
    "Transport",
    "block_sums",
    "earth_movers_distance",
    "heat_map",
    "kl_divergence",
    "l1",
    "mean_absolute_percentage_error",
    "mean_arctangent_percentage_error",
    "mean_squared_error",
    "pearson",
    "similarity",
    "sinkhorn_divergence",
    "sliced_wasserstein",
    "symmetric_absolute_percentage_error",
    "total_variation",
    "transport",
    "wasserstein",
]


def __getattr__(name: str) -> Any:
    """Import what needs POT when it is first asked for."""
    if name == "sinkhorn_divergence":
        return importlib.import_module("ldpspatial.metrics.sinkhorn").sinkhorn_divergence
    if name == "sliced_wasserstein":
        return importlib.import_module("ldpspatial.metrics.sliced").sliced_wasserstein
    raise AttributeError(f"module 'ldpspatial.metrics' has no attribute {name!r}")
