"""The server side of ldpspatial: from reports to a map, and how far off it is.

The device side is the package ``client_sdk``. What is named here is imported when it is first asked
for: who needs a distance only need not load what reads Parquet files and draws figures.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpspatial.channel import Channel, StampChannel
    from ldpspatial.comparison import compare
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
    from ldpspatial.recommendation import recommended
    from ldpspatial.registry import releases
    from ldpspatial.release import PrivacyClaim, Release, Released
    from ldpspatial.simulation import Simulation, count_cells, simulate
    from ldpspatial.users import UserCells, user_cells

__version__ = "0.1.0"

_HOMES = {
    "channel": ("Channel", "StampChannel"),
    "comparison": ("compare",),
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
    "recommendation": ("recommended",),
    "registry": ("releases",),
    "release": ("PrivacyClaim", "Release", "Released"),
    "simulation": ("Simulation", "count_cells", "simulate"),
    "users": ("UserCells", "user_cells"),
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module, or a module of the package, once."""
    for module, names in _HOMES.items():
        if name in names:
            found = getattr(importlib.import_module(f"ldpspatial.{module}"), name)
            globals()[name] = found
            return found
    try:
        if not name.startswith("_"):
            return importlib.import_module(f"ldpspatial.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"ldpspatial.{name}":  # it is there, and lacks something itself
            raise
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
    "PrivacyClaim",
    "Release",
    "Released",
    "ReportCounts",
    "SeparableCost",
    "Simulation",
    "SolverError",
    "StampChannel",
    "Transport",
    "UserCells",
    "compare",
    "count_cells",
    "count_reports",
    "estimate",
    "read_points",
    "recommended",
    "releases",
    "simulate",
    "sinkhorn_divergence",
    "sliced_wasserstein",
    "transport",
    "user_cells",
    "wasserstein",
]
