"""All releases by name, and a table of what each promises."""

import warnings
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
    ``ldpspatial.releases``, a :class:`Release` or a class that needs no arguments. One that cannot
    be loaded is left out, and one with a name of ours; a warning names it.

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
    found = _ours()
    for name in outside_names(ENTRY_POINTS, found):
        try:
            if release := _from_outside(name):
                found[name] = release
        except InputError as error:  # the package of one release must not take away all others
            warnings.warn(f"the release {name!r} is left out: {error}", stacklevel=2)
    return MappingProxyType(found)


def release_names() -> list[str]:
    """Return the names of all releases, those of other packages last; none of these is loaded."""
    ours = _ours()
    return [*ours, *outside_names(ENTRY_POINTS, ours)]


def _ours() -> dict[str, Release]:
    kinds: tuple[type[Release], ...] = (
        *local.RELEASES,
        *distributed.RELEASES,
        *central.RELEASES,
        NonPrivate,
        *distributed.WITHOUT_PRIVACY,
    )
    return {kind.name: kind() for kind in kinds}


def _from_outside(name: str) -> Release | None:
    return outside(ENTRY_POINTS, "release", name, Release)  # type: ignore[type-abstract]


def find_releases(wanted: "Iterable[str | Release] | Mapping[str, Release]") -> dict[str, Release]:
    """Return releases by label: names are looked up, a mapping gives labels of its own.

    A name may be ``module:Name``, of a release that nobody registered. Of other packages, only
    what is asked for is loaded.

    Raises
    ------
    InputError
        A name that no release has, the same label twice, or nothing at all.
    """
    if isinstance(wanted, str):
        wanted = [wanted]
    ours = _ours()
    names = [*ours, *outside_names(ENTRY_POINTS, ours)]
    if not isinstance(wanted, Iterable):
        raise InputError(f"releases must be names or releases, got {wanted!r}")
    pairs = wanted.items() if isinstance(wanted, Mapping) else ((_name(w), w) for w in wanted)
    found: dict[str, Release] = {}
    for label, given in pairs:
        if not isinstance(label, str):
            raise InputError(f"releases must be names or releases, got {label!r}")
        if label in found:
            raise InputError(f"releases must have different labels, got {label!r} twice")
        found[label] = _release(given, ours, names)
    if not found:
        raise InputError("releases must name at least one release")
    return found


def _name(wanted: "str | Release") -> str:
    return wanted.name if isinstance(wanted, Release) else wanted


def _release(given: "str | Release", ours: Mapping[str, Release], names: Iterable[str]) -> Release:
    """Return a release that is given itself, by its name, or as ``module:Name``."""
    release = given if isinstance(given, Release) else None
    if isinstance(given, str):
        release = ours.get(given) or _from_outside(given)
    if release is None:
        raise InputError(f"releases must be of {', '.join(names)}, or module:Name, got {given!r}")
    if not is_dataclass(release):  # its printed form tells one setting from another
        raise InputError(f"releases must be dataclasses, got {type(release).__name__}")
    return release
