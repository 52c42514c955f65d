"""What Figures 9 and 13 compare, by the labels of the tables."""

from functools import cache

from client_sdk import response_table
from experiments.papers.dam.settings import Setting
from experiments.uniform import Uniform
from ldpspatial.release.local import Dam, DamNs, Huem, KRr, Matched, Mdsw, SemGeoI
from ldpspatial.release.release import Release

OURS = "DAM, our stop"
DAM = "DAM"
DAM_NS = "DAM-NS"
HUEM = "HUEM"
MDSW = "MDSW"
MDSW_PLAIN = "MDSW, unsmoothed"
SEM, SEM_EM = "SEM-Geo-I", "SEM-Geo-I, EM"
K_RR = "k-RR"
UNIFORM = "uniform map"
ESTIMATORS = {
    OURS: "EM, rule `scaled`",
    DAM: "EM, rule `published`",
    DAM_NS: "EM, rule `published`",
    HUEM: "EM, rule `published`",
    MDSW: "EMS of each coordinate, whole cells smoothed, rule `scaled`; product",
    MDSW_PLAIN: "EM of each coordinate, rule `scaled`; product",
    SEM: "inverse of the hit matrix, cut at 0 (the paper's)",
    SEM_EM: "EM, stopped as planar Laplace's is; where k = 1",
    K_RR: "EM, rule `scaled`",
    UNIFORM: "none: nobody is asked",
}
PAPERS = (DAM, DAM_NS, HUEM, MDSW, SEM)  # as the paper runs them
GEO = (SEM, SEM_EM)  # all others are eps-LDP


def titled(label: str) -> str:
    """Return how tables and figures name a mechanism: with its notion where that is not eps-LDP.

    Labels are how stored runs are found, so they stay as they are.
    """
    return f"{label} (geo-indistinguishability)" if label in GEO else label


def releases(setting: Setting) -> dict[str, Release]:
    """Return the releases of a setting by label."""
    sem = Matched(SemGeoI(), Dam(), setting.cells)
    found: dict[str, Release] = {
        OURS: Dam(rule="scaled"),
        DAM: Dam(rule="published"),
        DAM_NS: DamNs(rule="published"),
        HUEM: Huem(rule="published"),
        MDSW: Mdsw(rule="scaled", fine=False),
        MDSW_PLAIN: Mdsw(smoothing=False, rule="scaled"),
        SEM: sem,
    }
    if sets_of_one_cell(setting):
        found[SEM_EM] = Matched(SemGeoI(estimator="em"), Dam(), setting.cells)
    return {**found, K_RR: KRr(rule="scaled"), UNIFORM: Uniform()}


@cache
def sets_of_one_cell(setting: Setting) -> bool:
    """Tell whether matched SEM-Geo-I reports single cells, so that EM can decode it."""
    match = Matched(SemGeoI(), Dam(), setting.cells).match(setting.epsilon)
    return match.inner == SemGeoI(size=1)


@cache
def as_dam(label: str, setting: Setting) -> bool:
    """Tell whether a mechanism's reports follow the very law of DAM's in this setting.

    HUEM's do at radius 1 and 0, those of DAM-NS and of k-RR at radius 0.
    """
    names = {DAM: "dam", OURS: "dam", DAM_NS: "dam-ns", HUEM: "huem"}
    if label not in (*names, K_RR):
        return False
    dam = response_table("dam", setting.epsilon, setting.cells)
    if label == K_RR:
        return dam.radius == 0
    other = response_table(names[label], setting.epsilon, setting.cells)
    return (dam.base_weight, dam.octant) == (other.base_weight, other.octant)
