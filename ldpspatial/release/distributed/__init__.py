"""Distributed differential privacy: a server sees noisy sums over many clients, nothing else."""

from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.many_locations import ManyLocations
from ldpspatial.release.distributed.adaptive.non_private_tree import NonPrivateTree
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import OneLocation, Round
from ldpspatial.release.distributed.adaptive.side_data import ProportionMap, SideData
from ldpspatial.release.distributed.levels.adaptive_grid import AdaptiveGrid
from ldpspatial.release.distributed.levels.distributed_levels import DistributedLevels
from ldpspatial.release.distributed.levels.flat import Flat
from ldpspatial.release.distributed.levels.hierarchical import (
    Hierarchical,
    HierarchicalOracle,
    NonPrivateBestLevel,
)
from ldpspatial.release.distributed.levels.sketch import CountMin, CountMinMinimum, CountMinOracle
from ldpspatial.release.distributed.levels.sparse_emd_sums import SparseEmdSums
from ldpspatial.release.distributed.levels.spatial_decomposition import (
    SpatialDecomposition,
    SpatialDecompositionLeaves,
    SpatialDecompositionOracle,
)
from ldpspatial.release.distributed.levels.two_servers import TwoServers
from ldpspatial.release.distributed.noise.noise_share import NoiseShare, client_vector
from ldpspatial.release.distributed.sums.client_cohort import ClientCohort
from ldpspatial.release.distributed.sums.client_sum import sum_clients
from ldpspatial.release.distributed.sums.cohort import REALISTIC, Cohort, NoisySum
from ldpspatial.release.distributed.sums.secure_sum import ModularSum, SecureSum, SecureSums
from ldpspatial.release.distributed.sums.two_servers.batch import Batch, SharedBatch

RELEASES = (
    DistributedLevels,
    TwoServers,
    Flat,
    Hierarchical,
    CountMin,
    CountMinMinimum,
    AdaptiveGrid,
    SpatialDecomposition,
    SpatialDecompositionLeaves,
    SparseEmdSums,
    AdaptiveHierarchical,
)
WITHOUT_PRIVACY = (  # what the others are measured against
    NonPrivateBestLevel,
    NonPrivateTree,
    HierarchicalOracle,
    CountMinOracle,
    SpatialDecompositionOracle,
)

__all__ = [
    "REALISTIC",
    "RELEASES",
    "WITHOUT_PRIVACY",
    "AdaptiveGrid",
    "AdaptiveHierarchical",
    "Batch",
    "ClientCohort",
    "Cohort",
    "CountMin",
    "CountMinMinimum",
    "CountMinOracle",
    "DistributedLevels",
    "Flat",
    "Hierarchical",
    "HierarchicalOracle",
    "ManyLocations",
    "ModularSum",
    "NoiseShare",
    "NoisySum",
    "NonPrivateBestLevel",
    "NonPrivateTree",
    "OneLocation",
    "PrefixTree",
    "ProportionMap",
    "Round",
    "SecureSum",
    "SecureSums",
    "SharedBatch",
    "SideData",
    "SparseEmdSums",
    "SpatialDecomposition",
    "SpatialDecompositionLeaves",
    "SpatialDecompositionOracle",
    "TwoServers",
    "client_vector",
    "sum_clients",
]
