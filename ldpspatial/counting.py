"""From files of reports to counts, out of core.

A file of reports is Parquet (or CSV) with the columns ``row`` and ``col`` and, where they are
kept, ``id`` (16 bytes, or 32 hexadecimal digits) and ``collection`` (the digest). Counting
reads it once and holds one number per output cell. Looking for repeated ids takes further looks
at the id column alone, one slice of the ids at a time, so that memory stays bounded.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection
from ldpspatial.errors import InputError

MEMORY_LIMIT = "256MB"  # DuckDB's share; the process stays below 500 MB at 10^8 reports
SLICE = 2_000_000  # ids grouped at a time; more would spill to disk at this memory limit
WHOLE_NUMBERS = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
)

FOREIGN = "name another collection"
OUTSIDE = "name a cell outside the output domain"
REPEATED = "repeat an id that was counted"
CONFLICTING = "share an id with a different report"

Source = str | Path | Sequence[str | Path]
Group = tuple[int | None, int | None, str | None, int]  # row, col, collection, reports


@dataclass(frozen=True)
class ReportCounts:
    """Reports by output cell.

    Attributes
    ----------
    counts : (d + 2b, d + 2b) int64 array
        Entry [row + b, col + b], the shape that ``StampChannel(collection.table)`` expects.
    rejected : dict of str to int
        Reports left out, by reason; empty where all were good.
    ids_checked : bool
        False where the files hold no ids, so that a report sent twice counts twice.
    """

    counts: NDArray[np.int64]
    rejected: dict[str, int]
    ids_checked: bool

    @property
    def n(self) -> int:
        """Number of reports counted."""
        return int(self.counts.sum())


def count_reports(paths: Source, collection: Collection, on_invalid: str = "error") -> ReportCounts:
    """Count the reports of one collection.

    Parameters
    ----------
    paths : path or paths of .parquet, or of .csv and .csv.gz files
    collection : Collection
        What the reports must belong to.
    on_invalid : {"error", "drop"}
        "error" refuses the files if one report is bad; "drop" leaves bad reports out and
        counts them by reason. Of identical copies one counts; reports that share an id and
        differ are all left out.

    Raises
    ------
    InputError
        A file is missing, unreadable or lacks a column; no report; or, with "error", reports
        that name another collection, lie outside the output domain or repeat an id.
    """
    if on_invalid not in ("error", "drop"):
        raise InputError(f"on_invalid must be error or drop, got {on_invalid!r}")
    with _reports(paths) as (database, columns):
        groups = _groups(database)
        repeated: dict[str, int] = {}
        slices = sum(group[-1] for group in groups) // SLICE + 1
        if "id" in columns and _repeats_an_id(database, slices):
            groups, repeated = _unique_groups(database, slices)
    counts, misplaced = _tally(groups, collection)
    rejected = {reason: n for reason, n in {**misplaced, **repeated}.items() if n}
    if rejected and on_invalid == "error":
        problems = "; ".join(f"{n} {reason}" for reason, n in rejected.items())
        raise InputError(
            f"reports must all be good, but {problems} "
            "(on_invalid='drop' leaves them out and counts them)"
        )
    if not counts.any():
        raise InputError("reports must hold at least one good report, got none")
    return ReportCounts(counts, rejected, "id" in columns)


@contextmanager
def _reports(paths: Source) -> Iterator[tuple[duckdb.DuckDBPyConnection, set[str]]]:
    """Open the files as the view ``reports``; yield the connection and the column names."""
    files = [Path(p) for p in ([paths] if isinstance(paths, (str, Path)) else paths)]
    for file in files:
        if not file.is_file():
            raise InputError(f"reports must be a file, found none at {file}")
    with tempfile.TemporaryDirectory() as spill, duckdb.connect() as database:
        database.execute("SET temp_directory = $1", [spill])
        database.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        database.execute("SET preserve_insertion_order = false")
        try:
            relation = _read(database, files)
            types = dict(zip(relation.columns, map(str, relation.types), strict=True))
            _check_columns(types)
            if "collection" not in types:
                relation = relation.select("*, NULL::VARCHAR AS collection")
            relation.create_view("reports")
            yield database, set(types)
        except duckdb.Error as error:
            raise InputError(f"reports cannot be read: {str(error).splitlines()[0]}") from None


def _read(database: duckdb.DuckDBPyConnection, files: list[Path]) -> duckdb.DuckDBPyRelation:
    names = [str(file) for file in files]
    if names and all(name.lower().endswith(".parquet") for name in names):
        return database.read_parquet(names)
    if names and all(name.lower().endswith((".csv", ".csv.gz")) for name in names):
        return database.from_csv_auto(names, header=True)  # type: ignore[arg-type]
    raise InputError(
        "reports must be .parquet files, or .csv and .csv.gz files, and at least one, "
        f"got {', '.join(file.name for file in files) or 'none'}"
    )


def _check_columns(types: dict[str, str]) -> None:
    for column in ("row", "col"):
        if column not in types:
            found = ", ".join(types)
            raise InputError(f"reports must have the columns row and col, found {found}")
        if types[column] not in WHOLE_NUMBERS:
            held = types[column].lower()
            raise InputError(f"column {column} must hold whole numbers, holds {held}")


def _groups(database: duckdb.DuckDBPyConnection) -> list[Group]:
    """Return the number of reports of every distinct content."""
    return database.execute(
        "SELECT row, col, collection, count(*) FROM reports GROUP BY ALL"
    ).fetchall()


def _repeats_an_id(database: duckdb.DuckDBPyConnection, slices: int) -> bool:
    """Tell whether two ids may be equal; equal 64-bit hashes of different ids cost time only."""
    for k in range(slices):
        twice = (
            f"SELECT 1 FROM (SELECT hash(id) AS h FROM reports WHERE {_in_slice(k, slices)}) "
            "GROUP BY h HAVING count(*) > 1 LIMIT 1"
        )
        if database.execute(twice).fetchone():
            return True
    return False


def _in_slice(k: int, slices: int) -> str:
    # Written out: with the two numbers as parameters DuckDB takes 25 times as long.
    return f"hash(id) % {slices:d} = {k:d}"


def _unique_groups(
    database: duckdb.DuckDBPyConnection, slices: int
) -> tuple[list[Group], dict[str, int]]:
    """Return the groups of one report an id, and how many others there were."""
    groups: list[Group] = []
    surplus = {REPEATED: 0, CONFLICTING: 0}
    for k in range(slices):
        database.execute(
            "CREATE OR REPLACE TEMP TABLE contents AS "
            "SELECT min(r) AS r, count(*) AS n, min(r) = max(r) AS same "
            "FROM (SELECT id, {'row': row, 'col': col, 'collection': collection} AS r "
            f"FROM reports WHERE {_in_slice(k, slices)}) GROUP BY id"
        )
        groups += database.execute(
            "SELECT r.row, r.col, r.collection, count(*) FROM contents WHERE same GROUP BY ALL"
        ).fetchall()
        totals = database.execute(
            "SELECT sum(n - 1) FILTER (same), sum(n) FILTER (NOT same) FROM contents"
        ).fetchone()
        for reason, number in zip(surplus, totals or (0, 0), strict=True):
            surplus[reason] += int(number or 0)
    return groups, surplus


def _tally(groups: list[Group], collection: Collection) -> tuple[NDArray[np.int64], dict[str, int]]:
    table, digest = collection.table, collection.digest
    side = table.cells + 2 * table.radius
    counts = np.zeros((side, side), np.int64)
    rejected = {FOREIGN: 0, OUTSIDE: 0}
    for row, col, named, number in groups:
        if named is not None and named != digest:
            rejected[FOREIGN] += number
        elif row is None or col is None or not table.is_output(row, col):
            rejected[OUTSIDE] += number
        else:
            counts[row + table.radius, col + table.radius] += number
    return counts, rejected
