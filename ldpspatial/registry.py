"""All releases by name, and a table of what each promises."""

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from types import MappingProxyType

from ldpspatial.central import Laplace, LaplaceTop, SparseEmd
from ldpspatial.distributed import (
    AdaptiveGrid,
    AdaptiveHierarchical,
    CountMin,
    CountMinMinimum,
    CountMinOracle,
    Flat,
    Hierarchical,
    HierarchicalOracle,
    NonPrivateBestLevel,
    NonPrivateTree,
    SpatialDecomposition,
    SpatialDecompositionLeaves,
    SpatialDecompositionOracle,
)
from ldpspatial.errors import InputError
from ldpspatial.local import (
    Ahead,
    Dam,
    DamNs,
    DamPoints,
    DamTrajectory,
    Disk,
    Hdg,
    Hio,
    Huem,
    KRr,
    LdpTrace,
    Mdsw,
    MdswJoint,
    Olh,
    Oue,
    PivotTrace,
    PlanarLaplace,
    Rhombus,
    SemGeoI,
    SubsetSelection,
)
from ldpspatial.non_private import NonPrivate
from ldpspatial.release import Release


def releases() -> Mapping[str, Release]:
    """Return every release with its default parameters, by name, grouped by trust model.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import Grid
    >>> rng = np.random.default_rng(1)
    >>> everybody = rng.normal(4, 1, (1000, 2))
    >>> dam = releases()["dam"]
    >>> dam.run(everybody, Grid.plane(0, 0, 8, 8), epsilon=2.0, rng=rng).density.shape
    (8, 8)
    >>> str(dam.claim(2.0))
    "local differential privacy, epsilon 2, per user, one user's data replaced by any other"
    """
    known: tuple[Release, ...] = (
        *(Dam(), DamNs(), Huem(), Disk(), Rhombus(), KRr(), Oue(), Olh(), SubsetSelection()),
        *(Mdsw(), MdswJoint(), Hio(), Hdg(), Ahead(), SemGeoI(), PlanarLaplace()),
        *(LdpTrace(), PivotTrace(), DamTrajectory(), DamPoints()),
        *(Flat(), Hierarchical(), CountMin(), CountMinMinimum(), AdaptiveGrid()),
        *(SpatialDecomposition(), SpatialDecompositionLeaves(), AdaptiveHierarchical()),
        *(Laplace(), LaplaceTop(), SparseEmd()),
        *(NonPrivate(), NonPrivateBestLevel(), NonPrivateTree()),
        *(HierarchicalOracle(), CountMinOracle(), SpatialDecompositionOracle()),
    )
    return MappingProxyType({release.name: release for release in known})


def find_releases(wanted: "Iterable[str | Release] | Mapping[str, Release]") -> dict[str, Release]:
    """Return releases by label: names are looked up, a mapping gives labels of its own.

    Raises
    ------
    InputError
        A name that no release has, the same label twice, or nothing at all.
    """
    if isinstance(wanted, str):
        wanted = [wanted]
    known = releases()
    if not isinstance(wanted, Iterable):
        raise InputError(f"releases must be names or releases, got {wanted!r}")
    pairs = wanted.items() if isinstance(wanted, Mapping) else ((_name(w), w) for w in wanted)
    found: dict[str, Release] = {}
    for label, given in pairs:
        if not isinstance(label, str):
            raise InputError(f"releases must be names or releases, got {label!r}")
        if label in found:
            raise InputError(f"releases must have different labels, got {label!r} twice")
        if isinstance(given, Release):
            if not is_dataclass(given):  # its printed form tells one setting from another
                raise InputError(f"releases must be dataclasses, got {type(given).__name__}")
            found[label] = given
        elif given in known:
            found[label] = known[given]
        else:
            raise InputError(f"releases must be of {', '.join(known)}, got {given!r}")
    if not found:
        raise InputError("releases must name at least one release")
    return found


def _name(wanted: "str | Release") -> str:
    return wanted.name if isinstance(wanted, Release) else wanted
