"""Releases to compare, with their parameters, from a file: JSON, which every language writes."""

import json
import os
from collections.abc import Mapping
from typing import Any

from ldpspatial.errors import InputError
from ldpspatial.release.parameters import split
from ldpspatial.release.registry import MADE, find_releases, releases, with_values
from ldpspatial.release.release import Release
from ldpspatial.validate import file_path, shown

NAME, LABEL = "release", "label"
LONGEST = 100  # characters of a label, beside which a table still has room for numbers


def read_releases(path: str | os.PathLike[str]) -> dict[str, Release]:
    """Return the releases of a file by label.

    Parameters
    ----------
    path : path of a JSON file
        A list. Each entry is a text, a release as ``compare`` takes it, or an object: ``release``
        is its name, ``label`` what tables call it, and every other field a parameter. ::

            ["recommended",
             "sparse-emd:keep=200",
             {"release": "adaptive-hierarchical", "calibration": 1, "label": "adaptive, c = 1"}]

    Raises
    ------
    InputError
        The file cannot be read, is no such list, names no release or one twice, or a parameter
        breaks its rule.
    """
    file = file_path("releases", path)
    try:
        entries = json.loads(file.read_bytes(), object_pairs_hook=_object)
    except OSError as error:
        raise InputError(f"releases file {file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"releases file {file} must be JSON: {error}") from None
    if not isinstance(entries, list) or not entries:
        got = "an empty one" if entries == [] else shown(entries)
        raise InputError(f"releases file {file} must hold a list of releases, got {got}")
    found: dict[str, Release] = {}
    usual: list[str] = []  # labels that nobody chose
    for number, entry in enumerate(entries, 1):
        try:
            label, release = _entry(entry)
        except InputError as error:
            raise InputError(f"entry {number} of {file}: {error}") from None
        if label in found:
            raise InputError(
                f"entry {number} of {file} must have another label, got {label!r} again"
            )
        if _is_usual(entry):
            once = [other for other in usual if found[other] == release]
            if once:
                raise InputError(
                    f"entry {number} of {file} must be another release, but {once[0]!r} and "
                    f"{label!r} are one"
                )
            usual.append(label)
        found[label] = release
    return found


def _is_usual(entry: object) -> bool:
    """Tell whether an entry has no label of its own, by which it may name a release again."""
    return isinstance(entry, str) or (isinstance(entry, Mapping) and LABEL not in entry)


def _entry(entry: object) -> tuple[str, Release]:
    if isinstance(entry, str):
        ((label, release),) = find_releases([entry]).items()
        return label, release
    if not isinstance(entry, Mapping) or not isinstance(entry.get(NAME), str):
        raise InputError(f"a release must be a text or an object with {NAME!r}, got {shown(entry)}")
    name, written = split(entry[NAME])
    given = [(key, value) for key, value in entry.items() if key not in (NAME, LABEL)]
    own, release = with_values(name, [*written, *given])
    label = entry.get(LABEL, own)
    if not isinstance(label, str) or not label:
        raise InputError(f"{LABEL} must be a text, got {shown(label)}")
    if not label.isprintable() or label != label.strip() or len(label) > LONGEST:
        raise InputError(
            f"{LABEL} must be at most {LONGEST} characters of one line of a table, with no blank "
            f"at either end, got {shown(label)}"
        )
    if label != own and _stands_for_another(label, release):
        raise InputError(f"{LABEL} must not be what another release is called, got {label!r}")
    return label, release


def _stands_for_another(label: str, release: Release) -> bool:
    """Tell whether a label is the text of a release of ours, and not of this one."""
    head, _, rest = label.partition(":")
    if head in MADE:
        return "=" in rest  # what it is made of may be a module's, and none is loaded for a label
    if head not in releases():
        return False
    try:
        return with_values(*split(label))[1] != release
    except InputError:  # words after the name of a release, say
        return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose fields all differ: of two with one name JSON would keep the last."""
    held = dict(pairs)
    if len(held) < len(pairs):
        raise ValueError(
            f"an object has a field twice, among {', '.join(name for name, _ in pairs)}"
        )
    return held
