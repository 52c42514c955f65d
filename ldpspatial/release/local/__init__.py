"""Local differential privacy: nobody but the device sees a position."""

from ldpspatial.release.local.coordinates.mdsw import Mdsw, MdswJoint
from ldpspatial.release.local.coordinates.square_wave import SquareWave
from ldpspatial.release.local.disk_and_sets import DiskAndSets
from ldpspatial.release.local.disks.dam import PAPER_DISKS, Dam, DamNs, Huem
from ldpspatial.release.local.disks.disk import Disk
from ldpspatial.release.local.disks.randomized_response import KRr
from ldpspatial.release.local.disks.rhombus import Rhombus
from ldpspatial.release.local.geo.planar_laplace import PlanarLaplace
from ldpspatial.release.local.geo.sem_geo_i import SemGeoI
from ldpspatial.release.local.local_release import LocalRelease
from ldpspatial.release.local.matched import Matched
from ldpspatial.release.local.recommended import Recommended
from ldpspatial.release.local.sets.difference_sets import DifferenceSets
from ldpspatial.release.local.sets.local_hashing import Olh
from ldpspatial.release.local.sets.subset_selection import SubsetSelection
from ldpspatial.release.local.sets.unary import Oue
from ldpspatial.release.local.trajectories.dam_trajectory import DamPoints, DamTrajectory
from ldpspatial.release.local.trajectories.ldptrace import LdpTrace
from ldpspatial.release.local.trajectories.pivottrace import PivotTrace
from ldpspatial.release.local.trees.ahead import Ahead
from ldpspatial.release.local.trees.hdg import Hdg
from ldpspatial.release.local.trees.hio import Hio

RELEASES = (
    Recommended,
    *PAPER_DISKS,
    Disk,
    Rhombus,
    KRr,
    Oue,
    Olh,
    SubsetSelection,
    DifferenceSets,
    Mdsw,
    MdswJoint,
    Hio,
    Hdg,
    Ahead,
    SemGeoI,
    PlanarLaplace,
    LdpTrace,
    PivotTrace,
    DamTrajectory,
    DamPoints,
)

__all__ = [
    "RELEASES",
    "Ahead",
    "Dam",
    "DamNs",
    "DamPoints",
    "DamTrajectory",
    "DifferenceSets",
    "Disk",
    "DiskAndSets",
    "Hdg",
    "Hio",
    "Huem",
    "KRr",
    "LdpTrace",
    "LocalRelease",
    "Matched",
    "Mdsw",
    "MdswJoint",
    "Olh",
    "Oue",
    "PivotTrace",
    "PlanarLaplace",
    "Recommended",
    "Rhombus",
    "SemGeoI",
    "SquareWave",
    "SubsetSelection",
]
