"""Local differential privacy: nobody but the device sees a position."""

from ldpspatial.local.ahead import Ahead
from ldpspatial.local.dam import Dam, DamNs, Huem
from ldpspatial.local.dam_trajectory import DamPoints, DamTrajectory
from ldpspatial.local.disk import Disk
from ldpspatial.local.hdg import Hdg
from ldpspatial.local.hio import Hio
from ldpspatial.local.ldptrace import LdpTrace
from ldpspatial.local.local_hashing import Olh
from ldpspatial.local.local_release import LocalRelease
from ldpspatial.local.matched import Matched
from ldpspatial.local.mdsw import Mdsw, MdswJoint
from ldpspatial.local.pivottrace import PivotTrace
from ldpspatial.local.planar_laplace import PlanarLaplace
from ldpspatial.local.randomized_response import KRr
from ldpspatial.local.rhombus import Rhombus
from ldpspatial.local.sem_geo_i import SemGeoI
from ldpspatial.local.square_wave import SquareWave
from ldpspatial.local.subset_selection import SubsetSelection
from ldpspatial.local.unary import Oue

__all__ = [
    "Ahead",
    "Dam",
    "DamNs",
    "DamPoints",
    "DamTrajectory",
    "Disk",
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
    "Rhombus",
    "SemGeoI",
    "SquareWave",
    "SubsetSelection",
]
