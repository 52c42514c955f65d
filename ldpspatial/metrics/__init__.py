"""How far one map is from another: the exact Wasserstein distance and cheaper company."""

import importlib
from typing import TYPE_CHECKING, Any

from ldpspatial.metrics.density import l1, mean_squared_error, total_variation
from ldpspatial.metrics.grid_costs import SeparableCost
from ldpspatial.metrics.transport import Transport, transport
from ldpspatial.metrics.wasserstein import wasserstein

if TYPE_CHECKING:
    from ldpspatial.metrics.sinkhorn import sinkhorn_divergence
    from ldpspatial.metrics.sliced import sliced_wasserstein

__all__ = [
    "SeparableCost",
    "Transport",
    "l1",
    "mean_squared_error",
    "sinkhorn_divergence",
    "sliced_wasserstein",
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
