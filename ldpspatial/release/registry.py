"""All releases by name, and a table of what each promises."""

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from types import MappingProxyType

from ldpspatial.errors import InputError
from ldpspatial.release import central, distributed, local
from ldpspatial.release.non_private import NonPrivate
from ldpspatial.release.release import Release
from ldpspatial.validate import outside, outside_names

ENTRY_POINTS = "ldpspatial.releases"


def releases() -> Mapping[str, Release]:
    """Return every release with its default parameters, by name, grouped by trust model.

    Those of other packages come last: what they registered as entry points of the group
    ``ldpspatial.releases``, a :class:`Release` or a class that needs no arguments.

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
    kinds: tuple[type[Release], ...] = (
        *local.RELEASES,
        *distributed.RELEASES,
        *central.RELEASES,
        NonPrivate,
        *distributed.WITHOUT_PRIVACY,
    )
    known = [kind() for kind in kinds]
    found = {release.name: release for release in known}
    for name in sorted(outside_names(ENTRY_POINTS) - found.keys()):
        if release := outside(ENTRY_POINTS, "release", name, Release):  # type: ignore[type-abstract]
            found[name] = release
    return MappingProxyType(found)


def find_releases(wanted: "Iterable[str | Release] | Mapping[str, Release]") -> dict[str, Release]:
    """Return releases by label: names are looked up, a mapping gives labels of its own.

    A name may be ``module:Name``, of a release that nobody registered.

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
        found[label] = _release(given, known)
    if not found:
        raise InputError("releases must name at least one release")
    return found


def _name(wanted: "str | Release") -> str:
    return wanted.name if isinstance(wanted, Release) else wanted


def _release(given: "str | Release", known: Mapping[str, Release]) -> Release:
    """Return a release that is given itself, by its name, or as ``module:Name``."""
    release = given if isinstance(given, Release) else None
    if isinstance(given, str):
        release = known.get(given) or outside(ENTRY_POINTS, "release", given, Release)  # type: ignore[type-abstract]
    if release is None:
        raise InputError(f"releases must be of {', '.join(known)}, or module:Name, got {given!r}")
    if not is_dataclass(release):  # its printed form tells one setting from another
        raise InputError(f"releases must be dataclasses, got {type(release).__name__}")
    return release
