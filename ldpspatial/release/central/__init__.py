"""Central differential privacy: a server that sees all data publishes a noisy map."""

from ldpspatial.release.central.central_levels import CentralLevels
from ldpspatial.release.central.laplace import Laplace, LaplaceTop
from ldpspatial.release.central.sparse_emd import SparseEmd

RELEASES = (CentralLevels, Laplace, LaplaceTop, SparseEmd)

__all__ = ["RELEASES", "CentralLevels", "Laplace", "LaplaceTop", "SparseEmd"]
