"""The server side of ldpspatial: from reports to a map, and how far off it is.

The device side is the package ``client_sdk``. What is named here is imported when it is first asked
for: who needs a distance only need not load what reads Parquet files and draws figures.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpspatial.channels.disk import StampChannel
    from ldpspatial.channels.protocol import Channel
    from ldpspatial.collecting.counting import ReportCounts, count_reports
    from ldpspatial.collecting.simulation import Simulation, count_cells, simulate
    from ldpspatial.comparison import compare
    from ldpspatial.errors import InputError, LdpSpatialError, SolverError
    from ldpspatial.estimation import (
        EM,
        Estimate,
        Estimator,
        Field,
        cell_intervals,
        estimate,
        goodness_of_fit,
        influence,
        region_share,
        share_change,
    )
    from ldpspatial.estimation.intervals.area import people_in_area
    from ldpspatial.estimation.intervals.levels import level_intervals
    from ldpspatial.files.points import read_points
    from ldpspatial.metrics import (
        SeparableCost,
        Transport,
        sinkhorn_divergence,
        sliced_wasserstein,
        transport,
        wasserstein,
    )
    from ldpspatial.places.points import Points
    from ldpspatial.places.users import UserCells, user_cells
    from ldpspatial.planning.recommendation import recommended, recommended_collection
    from ldpspatial.privacy.claims import PrivacyClaim
    from ldpspatial.release.registry import releases
    from ldpspatial.release.release import Release, Released

__version__ = "0.1.0"

_HOMES = {
    "channels.disk": ("StampChannel",),
    "channels.protocol": ("Channel",),
    "comparison": ("compare",),
    "collecting.counting": ("ReportCounts", "count_reports"),
    "errors": ("InputError", "LdpSpatialError", "SolverError"),
    "estimation": (
        "EM",
        "Estimate",
        "Estimator",
        "Field",
        "cell_intervals",
        "estimate",
        "goodness_of_fit",
        "influence",
        "region_share",
        "share_change",
    ),
    "estimation.intervals.area": ("people_in_area",),
    "estimation.intervals.levels": ("level_intervals",),
    "files.points": ("read_points",),
    "places.points": ("Points",),
    "metrics": (
        "SeparableCost",
        "Transport",
        "sinkhorn_divergence",
        "sliced_wasserstein",
        "transport",
        "wasserstein",
    ),
    "planning.recommendation": ("recommended", "recommended_collection"),
    "release.registry": ("releases",),
    "release.release": ("Release", "Released"),
    "privacy.claims": ("PrivacyClaim",),
    "collecting.simulation": ("Simulation", "count_cells", "simulate"),
    "places.users": ("UserCells", "user_cells"),
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
    "EM",
    "Channel",
    "Estimate",
    "Estimator",
    "Field",
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
    "cell_intervals",
    "compare",
    "count_cells",
    "count_reports",
    "estimate",
    "goodness_of_fit",
    "influence",
    "level_intervals",
    "people_in_area",
    "read_points",
    "recommended",
    "recommended_collection",
    "region_share",
    "releases",
    "share_change",
    "simulate",
    "sinkhorn_divergence",
    "sliced_wasserstein",
    "transport",
    "user_cells",
    "wasserstein",
]
