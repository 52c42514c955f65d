"""Distributed differential privacy: a server sees noisy sums over many clients, nothing else."""

from ldpspatial.distributed.adaptive import AdaptiveHierarchical
from ldpspatial.distributed.adaptive_grid import AdaptiveGrid
from ldpspatial.distributed.client_cohort import ClientCohort
from ldpspatial.distributed.client_sum import sum_clients
from ldpspatial.distributed.cohort import Cohort, NoisySum
from ldpspatial.distributed.flat import Flat
from ldpspatial.distributed.hierarchical import (
    Hierarchical,
    HierarchicalOracle,
    NonPrivateBestLevel,
)
from ldpspatial.distributed.many_locations import ManyLocations
from ldpspatial.distributed.noise_share import NoiseShare, client_vector
from ldpspatial.distributed.non_private_tree import NonPrivateTree
from ldpspatial.distributed.prefix_tree import PrefixTree
from ldpspatial.distributed.rounds import OneLocation, Round
from ldpspatial.distributed.secure_sum import ModularSum, SecureSum, SecureSums
from ldpspatial.distributed.side_data import ProportionMap, SideData
from ldpspatial.distributed.sketch import CountMin, CountMinMinimum, CountMinOracle
from ldpspatial.distributed.spatial_decomposition import (
    SpatialDecomposition,
    SpatialDecompositionLeaves,
    SpatialDecompositionOracle,
)

__all__ = [
    "AdaptiveGrid",
    "AdaptiveHierarchical",
    "ClientCohort",
    "Cohort",
    "CountMin",
    "CountMinMinimum",
    "CountMinOracle",
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
    "SideData",
    "SpatialDecomposition",
    "SpatialDecompositionLeaves",
    "SpatialDecompositionOracle",
    "client_vector",
    "sum_clients",
]
