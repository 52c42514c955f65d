"""Central differential privacy: a server that sees all data publishes a noisy map."""

from ldpspatial.release.central.central_levels import CentralLevels
from ldpspatial.release.central.grids.central_adaptive_grid import CentralAdaptiveGrid
from ldpspatial.release.central.grids.uniform_grid import UniformGrid
from ldpspatial.release.central.laplace import Laplace, LaplaceTop
from ldpspatial.release.central.sparse_emd import SparseEmd
from ldpspatial.release.central.trees.partition import LeastCostPartition
from ldpspatial.release.central.trees.privtree import PrivTree
from ldpspatial.release.central.trees.quadtree import CentralQuadtree
from ldpspatial.release.central.trees.wavelets import Wavelets

RELEASES = (
    *(CentralLevels, Laplace, LaplaceTop, SparseEmd),
    *(UniformGrid, CentralAdaptiveGrid, CentralQuadtree, PrivTree, LeastCostPartition, Wavelets),
)

__all__ = [
    "RELEASES",
    "CentralAdaptiveGrid",
    "CentralLevels",
    "CentralQuadtree",
    "Laplace",
    "LaplaceTop",
    "LeastCostPartition",
    "PrivTree",
    "SparseEmd",
    "UniformGrid",
    "Wavelets",
]
