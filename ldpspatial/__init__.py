"""The server side of ldpspatial: from reports to a map, and how far off it is.

The device side is the package ``client_sdk``. What is named here is imported when it is first asked
for: who needs a distance only need not load what reads Parquet files and draws figures.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpspatial.channel import Channel, StampChannel
    from ldpspatial.counting import ReportCounts, count_reports
    from ldpspatial.errors import InputError, LdpSpatialError, SolverError
    from ldpspatial.estimation import Estimate, estimate
    from ldpspatial.files.points import Points, read_points
    from ldpspatial.metrics import (
        SeparableCost,
        Transport,
        sinkhorn_divergence,
        sliced_wasserstein,
        transport,
        wasserstein,
    )
    from ldpspatial.simulation import Simulation, count_cells, simulate

__version__ = "0.1.0"

_HOMES = {
    "channel": ("Channel", "StampChannel"),
    "counting": ("ReportCounts", "count_reports"),
    "errors": ("InputError", "LdpSpatialError", "SolverError"),
    "estimation": ("Estimate", "estimate"),
    "files.points": ("Points", "read_points"),
    "metrics": (
        "SeparableCost",
        "Transport",
        "sinkhorn_divergence",
        "sliced_wasserstein",
        "transport",
        "wasserstein",
    ),
    "simulation": ("Simulation", "count_cells", "simulate"),
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module, once."""
    for module, names in _HOMES.items():
        if name in names:
            found = getattr(importlib.import_module(f"ldpspatial.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'ldpspatial' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted({*globals(), *__all__})


__all__ = [
    "Channel",
    "Estimate",
    "InputError",
    "LdpSpatialError",
    "Points",
    "ReportCounts",
    "SeparableCost",
    "Simulation",
    "SolverError",
    "StampChannel",
    "Transport",
    "count_cells",
    "count_reports",
    "estimate",
    "read_points",
    "simulate",
    "sinkhorn_divergence",
    "sliced_wasserstein",
    "transport",
    "wasserstein",
]
