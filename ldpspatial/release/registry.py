"""All releases by name, and a table of what each promises."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from types import MappingProxyType

from ldpspatial.errors import InputError
from ldpspatial.extensions import extension, extension_names
from ldpspatial.release import central, distributed, local
from ldpspatial.release.local import DiskAndSets, Matched
from ldpspatial.release.non_private import NonPrivate
from ldpspatial.release.parameters import Parameter, Text, label_of, split, with_parameters
from ldpspatial.release.release import Release
from ldpspatial.validate import shown

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
    for name in extension_names(ENTRY_POINTS, found):
        try:
            if release := _extension(name):
                found[name] = release
        except InputError as error:  # the package of one release must not take away all others
            warnings.warn(f"the release {name!r} is left out: {error}", stacklevel=2)
    return MappingProxyType(found)


def release_names() -> list[str]:
    """Return the names of all releases, those of other packages last; none of these is loaded."""
    ours = _ours()
    return [*ours, *extension_names(ENTRY_POINTS, ours)]


def _ours() -> dict[str, Release]:
    kinds: tuple[type[Release], ...] = (
        *local.RELEASES,
        *distributed.RELEASES,
        *central.RELEASES,
        NonPrivate,
        *distributed.WITHOUT_PRIVACY,
    )
    return {kind.name: kind() for kind in kinds}


def _extension(name: str) -> Release | None:
    return extension(ENTRY_POINTS, "release", name, Release)  # type: ignore[type-abstract]


def find_releases(wanted: "Iterable[str | Release] | Mapping[str, Release]") -> dict[str, Release]:
    """Return releases by label: names are looked up, a mapping gives labels of its own.

    A name may be ``module:Name``, of a release that nobody registered, and be followed by
    parameters: ``sparse-emd:keep=200``. The label then tells those that are not the usual ones, by
    the names that they were given, as it does of a release that is given itself. Of other packages,
    only what is asked for is loaded. ``matched:inner=sem-geo-i,to=dam,cells=15`` is a release at
    the local privacy of another one (:class:`ldpspatial.release.local.Matched`).

    Raises
    ------
    InputError
        A name that no release has, a parameter that it has not or whose value breaks its rule, the
        same label twice, one release by two names of its parameters, or nothing at all.
    """
    if isinstance(wanted, str):
        wanted = [wanted]
    if not isinstance(wanted, Iterable):
        raise InputError(f"releases must be names or releases, got {wanted!r}")
    pairs = wanted.items() if isinstance(wanted, Mapping) else ((None, each) for each in wanted)
    found: dict[str, Release] = {}
    for own, given in pairs:
        for each in (own or "", given):
            if not isinstance(each, (str, Release)):
                raise InputError(f"releases must be names or releases, got {each!r}")
        if isinstance(given, Release):
            label, release = label_of(given), _dataclass(given)
        else:
            label, release = with_values(*split(given))
        label = own or label
        if label in found:
            raise InputError(f"releases must have different labels, got {label!r} twice")
        if again := [each for each, held in found.items() if not own and held == release]:
            raise InputError(f"releases must differ, but {again[0]!r} and {label!r} are one")
        found[label] = release
    if not found:
        raise InputError("releases must name at least one release")
    return found


def with_values(name: str, values: Sequence[tuple[str, object]]) -> tuple[str, Release]:
    """Return the label of a release, and the release by its name with other values of parameters.

    Errors are those of :func:`find_releases`.
    """
    if name in MADE:
        return MADE[name](values)
    ours = _ours()
    known = [*ours, *extension_names(ENTRY_POINTS, ours), *MADE]  # of ours it warns
    before, colon, rest = name.partition(":")
    if colon and before in ours:
        raise InputError(f"release {before}: parameters must be name=value, got {rest!r}")
    usual = ours.get(name) or _extension(name)
    if usual is None:
        raise InputError(f"releases must be of {', '.join(known)}, or module:Name, got {name!r}")
    release = with_parameters(_dataclass(usual), name, values) if values else _dataclass(usual)
    return label_of(release, name, usual, [asked for asked, _ in values]), release


def _disk_and_sets(values: Sequence[tuple[str, object]]) -> tuple[str, Release]:
    """Return a disk with sets, whose share and radius are given, and its label.

    It is none of :func:`releases`: those numbers are of one grid, epsilon and number of users.
    """
    name = DiskAndSets.name
    needed = ("share", "squared_radius")
    if missing := [field for field in needed if field not in [asked for asked, _ in values]]:
        raise InputError(
            f"release {name}: {' and '.join(missing)} must be given, as in "
            f"{name}:share=0.1,squared_radius=135"
        )
    found = with_parameters(DiskAndSets(share=1.0, squared_radius=0), name, values)
    return label_of(found), found


def _matched(values: Sequence[tuple[str, object]]) -> tuple[str, Release]:
    """Return a release matched to another, all three of its parameters given, and its label.

    It is none of :func:`releases`: what it claims is what the release inside claims.
    """
    rules = {"inner": str, "to": str, "cells": int}
    given: dict[str, object] = {}
    try:
        for asked, value in values:
            if asked not in rules:
                raise InputError(
                    f"parameters must be of {', '.join(rules)}, got {shown(asked)}; what is inside "
                    "may have one parameter here, and any number in a file of releases"
                )
            if asked in given:
                raise InputError(f"{asked} must be given once, got it twice")
            parameter = Parameter(asked, None, "", (rules[asked],), (), False)
            given[asked] = (
                parameter.read(value.text) if isinstance(value, Text) else parameter.taken(value)
            )
        if missing := [field for field in rules if field not in given]:
            raise InputError(
                f"{' and '.join(missing)} must be given, as in "
                f"{Matched.name}:inner=sem-geo-i,to=dam,cells=15"
            )
        inner, to = (next(iter(find_releases([str(given[f])]).values())) for f in ("inner", "to"))
        found = Matched(inner, to, given["cells"])  # type: ignore[arg-type]  # it checks them
    except InputError as error:
        raise InputError(f"release {Matched.name}: {error}") from None
    return found.label, found


# By name, what is made of parameters that have no defaults; none of :func:`releases`.
MADE: Mapping[str, Callable[[Sequence[tuple[str, object]]], tuple[str, Release]]] = {
    Matched.name: _matched,
    DiskAndSets.name: _disk_and_sets,
}


def _dataclass(release: Release) -> Release:
    if not is_dataclass(release):  # its printed form tells one setting from another
        raise InputError(f"releases must be dataclasses, got {type(release).__name__}")
    return release
