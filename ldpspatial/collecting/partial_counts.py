"""Counts written to a file, read again, and added: reports counted in several places.

The file is JSON: the digest of the collection, so that counts of different collections are never
added; what was left out; and a list of [row, col, number] for every output cell that was named. It
holds no id: a report that stands in two parts counts in both.
"""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from client_sdk import Collection
from ldpspatial.collecting.counting import ReportCounts, count_reports
from ldpspatial.errors import InputError
from ldpspatial.files.atomic import replacing
from ldpspatial.files.table_layout import existing_file
from ldpspatial.validate import file_path, instance, shown

SUFFIX = ".json"
SCHEMA = "ldpspatial/counts/1"
LARGEST = 1 << 53  # of all reports together; an estimate takes no more
FIELDS = ("schema", "collection", "rejected", "repeated", "ids_checked", "cells")


def write_counts(
    path: str | os.PathLike[str], collection: Collection, counted: ReportCounts
) -> None:
    """Write counts as JSON.

    Raises
    ------
    InputError
        The counts are not of this collection's output domain, or hold no report or more than
        2^53, or the file cannot be written.
    """
    instance("collection", collection, Collection)
    instance("counted", counted, ReportCounts)
    radius = collection.table.radius
    side = collection.table.cells + 2 * radius
    if counted.counts.shape != (side, side):
        raise InputError(
            f"counted.counts must have the shape {(side, side)} of the collection's output domain, "
            f"got {counted.counts.shape}"
        )
    _check_total([counted.counts], "counted.counts")
    rows, cols = np.nonzero(counted.counts)
    numbers = counted.counts[rows, cols]
    document = {
        "schema": SCHEMA,
        "collection": collection.digest,
        "rejected": counted.rejected,
        "repeated": counted.repeated,
        "ids_checked": counted.ids_checked,
        "cells": np.column_stack([rows - radius, cols - radius, numbers]).tolist(),
    }
    with replacing(path) as stream:
        stream.write(json.dumps(document).encode())


def read_counts(path: str | os.PathLike[str], collection: Collection) -> ReportCounts:
    """Read counts of a collection.

    Raises
    ------
    InputError
        The file is missing or holds no counts, or those of another collection, or of no report or
        more than 2^53.
    """
    instance("collection", collection, Collection)
    return _counts("path", path, collection)


def _counts(field: str, path: str | os.PathLike[str], collection: Collection) -> ReportCounts:
    """Return the counts in a file, which messages call by the name of a parameter."""
    found = _document(field, path)
    if found["collection"] != collection.digest:
        raise InputError(
            f"counts must be those of collection {collection.digest[:12]}..., "
            f"{path} holds those of another one"
        )
    return ReportCounts(
        counts=_array(found["cells"], collection, path),
        rejected={str(reason): _number(n, path) for reason, n in _dict(found["rejected"], path)},
        repeated=_number(found["repeated"], path),
        ids_checked=found["ids_checked"] is True,
    )


def collection_of(path: str | os.PathLike[str]) -> str:
    """Return the digest of the collection whose counts a file holds.

    Raises
    ------
    InputError
        The file is missing or holds no counts.
    """
    return str(_document("path", path)["collection"])


def add_counts(parts: Sequence[ReportCounts]) -> ReportCounts:
    """Add counts of one collection; ids were checked where they were in every part.

    Raises
    ------
    InputError
        There is none, or their shapes differ, or they hold no report or more than 2^53.
    """
    if not isinstance(parts, (list, tuple)):
        raise InputError(f"parts must be a list of ReportCounts, got {shown(parts)}")
    for part in parts:
        instance("parts", part, ReportCounts)
    if len({part.counts.shape for part in parts}) != 1:
        raise InputError("parts must be counts of one collection, at least one")
    _check_total([part.counts for part in parts], "parts")
    rejected: Counter[str] = Counter()
    for part in parts:
        rejected.update(part.rejected)
    return ReportCounts(
        counts=np.sum([part.counts for part in parts], axis=0, dtype=np.int64),
        rejected=dict(rejected),
        repeated=sum(part.repeated for part in parts),
        ids_checked=all(part.ids_checked for part in parts),
    )


def count_files(
    paths: Sequence[str | os.PathLike[str]], collection: Collection, on_invalid: str = "error"
) -> ReportCounts:
    """Return the counts of files of reports, and of counts (.json), together.

    Parameters
    ----------
    paths : sequence of paths
        All different. The files of reports among them are of one kind, as ``count_reports`` takes
        them.
    collection : Collection
    on_invalid : {"error", "drop"}
        As of ``count_reports``.

    Raises
    ------
    InputError
        A file breaks a rule.
    """
    files = report_paths(paths)
    parts = [_counts("reports", file, collection) for file in filter(holds_counts, files)]
    reports = [file for file in files if not holds_counts(file)]
    if reports or not parts:
        parts.append(count_reports(reports, collection, on_invalid))
    return add_counts(parts)


def report_paths(paths: object) -> list[Path]:
    """Return the files of reports and counts in a list, each given once."""
    if not isinstance(paths, (list, tuple)):
        raise InputError(f"reports must be a list of paths, got {shown(paths)}")
    files = [file_path("reports", path) for path in paths]
    places = Counter(os.path.realpath(file) for file in files)
    if again := [file for file in files if places[os.path.realpath(file)] > 1]:
        raise InputError(f"reports must be different files, but {again[0]} is given twice")
    return files


def holds_counts(file: Path) -> bool:
    """Tell whether a file holds counts and not reports, by its name."""
    return file.suffix.lower() == SUFFIX


def _document(field: str, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields of a file of counts, of which the schema is checked."""
    file = existing_file(path, field)
    try:
        document = json.loads(file.read_bytes())
        found = {field: document[field] for field in FIELDS}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{field} must be counts that ldpspatial count wrote where a file ends in {SUFFIX}, "
            f"got {str(path)!r}"
        ) from None
    if found["schema"] != SCHEMA:
        raise InputError(f"schema must be {SCHEMA!r} in {path}, got {shown(found['schema'])}")
    return found


def _array(cells: object, collection: Collection, path: object) -> Any:
    """Return the array of counts from a list of [row, col, number]."""
    table = collection.table
    side = table.cells + 2 * table.radius
    # Not yet 64 bits, which the numbers of a file that was changed may exceed together.
    counts = np.zeros((side, side))
    given: set[tuple[int, int]] = set()
    for cell in cells if isinstance(cells, list) else [None]:
        if not isinstance(cell, list) or len(cell) != 3 or any(type(n) is not int for n in cell):
            raise InputError(f"cells must be a list of [row, col, number] in {path}")
        row, col, number = cell
        if not table.is_output(row, col):
            raise InputError(f"cells must lie in the output domain, and {path} holds another one")
        at = row + table.radius, col + table.radius
        if at in given:
            raise InputError(f"cells must each stand once in {path}, got [{row}, {col}] again")
        given.add(at)
        counts[at] = _number(number, path)
    _check_total([counts], f"cells of {path}")
    return counts.astype(np.int64)


def _check_total(parts: Sequence[Any], field: str) -> None:
    """Refuse counts of no report, as those of files of reports are, and of more than any holds."""
    total = sum(float(np.sum(counts, dtype=np.float64)) for counts in parts)
    if not 0 < total <= LARGEST:
        raise InputError(f"{field} must count 1 to {LARGEST} reports in all, got {total:.17g}")


def _dict(value: object, path: object) -> Any:
    if not isinstance(value, dict):
        raise InputError(f"rejected must be an object of numbers in {path}")
    return value.items()


def _number(value: object, path: object) -> int:
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise InputError(
            f"numbers must be whole and from 0 to {LARGEST} in {path}, got {shown(value)}"
        )
    return value
