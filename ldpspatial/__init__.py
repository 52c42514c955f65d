"""The server side of ldpspatial: from reports to a map, and how far off it is.

The device side is the package ``client_sdk``.
"""

from ldpspatial.channel import Channel, StampChannel
from ldpspatial.counting import ReportCounts, count_reports
from ldpspatial.errors import InputError, LdpSpatialError, SolverError
from ldpspatial.estimation import Estimate, estimate
from ldpspatial.files.points import Points, read_points
from ldpspatial.metrics import sinkhorn_divergence, sliced_wasserstein, wasserstein
from ldpspatial.simulation import Simulation, count_cells, simulate

__version__ = "0.1.0"

__all__ = [
    "Channel",
    "Estimate",
    "InputError",
    "LdpSpatialError",
    "Points",
    "ReportCounts",
    "Simulation",
    "SolverError",
    "StampChannel",
    "count_cells",
    "count_reports",
    "estimate",
    "read_points",
    "simulate",
    "sinkhorn_divergence",
    "sliced_wasserstein",
    "wasserstein",
]
