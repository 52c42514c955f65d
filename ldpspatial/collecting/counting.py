"""From files of reports to counts, out of core.

A file of reports is Parquet or CSV with the columns ``row`` and ``col`` and, where they are
kept, ``id`` (16 bytes, or 32 hexadecimal digits) and ``collection`` (the digest); or it holds the
texts of reports as lines, which are first copied to a temporary Parquet file. Counting
reads it once and holds one number per output cell. Looking for repeated ids takes further looks
at the id column alone, one slice of the ids at a time, so that memory stays bounded.
"""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection
from ldpspatial.collecting.report_lines import SUFFIXES, BadLines, lines_to_parquet
from ldpspatial.errors import InputError
from ldpspatial.validate import file_path, instance, one_of, shown

MEMORY_LIMIT = "256MB"  # DuckDB's share; the process stays below 500 MB at 10^8 reports
SLICE = 2_000_000  # ids grouped at a time; more would spill to disk at this memory limit
WHOLE_NUMBERS = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
)

MALFORMED = "are malformed"
FOREIGN = "name another collection"
OUTSIDE = "name a cell outside the output domain"
CONFLICTING = "share an id with a different report"
UNNAMED = "hold no id where others do"

Source = str | Path | Sequence[str | Path]
Database = duckdb.DuckDBPyConnection
Relation = duckdb.DuckDBPyRelation
Columns = dict[str, str]  # type by name
Group = tuple[int | None, int | None, bool, int]  # row, col, names another collection, reports


@dataclass(frozen=True)
class ReportCounts:
    """Reports by output cell.

    Attributes
    ----------
    counts : (d + 2b, d + 2b) int64 array
        Entry [row + b, col + b], the shape that ``StampChannel(collection.table)`` expects.
    rejected : dict of str to int
        Reports left out as bad, by reason; empty where all were good.
    repeated : int
        Copies left out: of reports with the same id, collection, row and col one counts (or is
        rejected, once). 0 where the files hold no ids. Every report is counted, rejected or
        repeated.
    ids_checked : bool
        False where the files hold no ids, so that a report sent twice counts twice.
    """

    counts: NDArray[np.int64]
    rejected: dict[str, int]
    repeated: int
    ids_checked: bool

    @property
    def n(self) -> int:
        """Number of reports counted."""
        return int(self.counts.sum())


def count_reports(paths: Source, collection: Collection, on_invalid: str = "error") -> ReportCounts:
    """Count the reports of one collection, each once.

    A device sends a report again until it knows that it has arrived, so identical copies (the same
    id, collection, row and col) are not an error: one of them counts.

    Parameters
    ----------
    paths : path or paths
        All of one kind: .parquet files; .csv and .csv.gz files; or .jsonl and .ndjson files, also
        gzipped (.jsonl.gz, .ndjson.gz), with the text of one report a line as devices send it,
        perhaps followed by white space. Lines take up about 20 bytes per report in the folder for
        temporary files.
    collection : Collection
        What the reports must belong to.
    on_invalid : {"error", "drop"}
        "error" refuses the files if one report is bad; "drop" leaves bad reports out and
        counts them by reason. Reports of the collection that share an id and differ are all bad,
        and so are those without an id in files that have ids.

    Raises
    ------
    InputError
        A file is missing, unreadable, given twice, lacks a column or has other columns than the
        first; no report; or, with "error", reports that are malformed, name another collection,
        lie outside the output domain, share an id with a different one or lack an id.
    """
    instance("collection", collection, Collection)
    one_of("on_invalid", on_invalid, ("error", "drop"))
    with _reports(paths) as (database, columns, bad_lines):
        groups = _groups(database, collection, "reports")
        repeated, conflicting = 0, 0
        slices = sum(group[-1] for group in groups) // SLICE + 1
        nameless = "SELECT count(*) FROM reports WHERE id IS NULL"
        unnamed = database.execute(nameless).fetchall()[0][0] if "id" in columns else 0
        if unnamed or ("id" in columns and _repeats_an_id(database, slices)):
            groups, repeated, conflicting = _unique_groups(database, collection, slices)
    counts, misplaced = _tally(groups, collection)
    reasons = {MALFORMED: bad_lines.number, **misplaced, CONFLICTING: conflicting, UNNAMED: unnamed}
    rejected = {reason: n for reason, n in reasons.items() if n}
    if rejected and on_invalid == "error":
        where = {MALFORMED: f" (first: {bad_lines.first})"}
        problems = "; ".join(f"{n} {why}{where.get(why, '')}" for why, n in rejected.items())
        raise InputError(
            f"reports must all be good, but {problems} "
            "({remedy} leaves them out and counts them)",
            remedy=("on_invalid", "drop"),
        )
    if not counts.any():
        raise InputError("reports must hold at least one good report, got none")
    return ReportCounts(counts, rejected, repeated, "id" in columns)


@contextmanager
def _reports(paths: Source) -> Iterator[tuple[Database, Columns, BadLines]]:
    """Open the files as the view ``reports``; yield connection, columns and malformed lines."""
    files = _files(paths)
    kind = _kind(files)
    with tempfile.TemporaryDirectory() as spill, duckdb.connect() as database:
        database.execute("SET temp_directory = $1", [spill])
        database.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        database.execute("SET preserve_insertion_order = false")
        database.execute("SET enable_progress_bar = false")  # it would go to standard output
        bad_lines = BadLines()
        if kind == "lines":
            copy = Path(spill, "reports.parquet")
            bad_lines = lines_to_parquet(files, copy)
            files = [copy]
        try:
            relation, columns = _read(database, files, kind != "csv")
            relation.create_view("reports")
            yield database, columns, bad_lines
        except duckdb.Error as error:
            # The first line alone: the next ones quote the file, which may hold positions.
            problem = str(error).partition("\n")[0]
            if isinstance(error, duckdb.ConversionException):
                problem = f"row and col must be whole numbers, {problem}"
            raise InputError(f"reports cannot be read: {problem}") from None


def _files(paths: Source) -> list[Path]:
    several = [paths] if isinstance(paths, (str, Path)) else paths
    try:
        files = [file_path("reports", path) for path in several]
    except TypeError:
        raise InputError(f"reports must be a path or paths, got {shown(paths)}") from None
    for file in files:
        if not file.is_file():
            raise InputError(f"reports must be a file, found none at {file}")
        if file.stat().st_size == 0 and not file.name.lower().endswith(SUFFIXES):
            raise InputError(f"reports must be a file with content, but {file} is empty")
    if len({file.resolve() for file in files}) < len(files):
        raise InputError("reports must be different files, but one is given twice")
    return files


def _read(database: Database, files: list[Path], parquet: bool) -> tuple[Relation, Columns]:
    """Return the reports, row and col as BIGINT, and the columns that the files hold."""
    names = [_literal(file) for file in files]
    # File by file first: of several, DuckDB takes the columns of the first, leaves out what only
    # others hold, and rounds fractions where the first holds whole numbers.
    first: Columns = {}
    for file, name in zip(files, names, strict=True):
        columns = _columns(_scan(database, [name], parquet, {}), parquet, file)
        first = first or columns
        if columns != first:
            raise InputError(
                "reports must have the same columns in all files, "
                f"found {first} in {files[0]} and {columns} in {file}"
            )
    whole = _WHOLE_PARQUET if parquet else _WHOLE_CSV
    fields = [whole.format(column=column) for column in ("row", "col")]
    fields += ["collection" if "collection" in first else "NULL::VARCHAR AS collection"]
    if "id" in first:  # hexadecimal digits may be of either case
        fields += ["lower(id) AS id" if first["id"] == "VARCHAR" else "id"]
    # Of several CSV files DuckDB drops, without a word, those with other line ends than the first.
    parts = [names] if parquet else [[name] for name in names]
    scans = [_scan(database, part, parquet, first).project(", ".join(fields)) for part in parts]
    return _union(scans), first


def _union(parts: list[Relation]) -> Relation:
    """Return all rows of all parts, as a balanced tree: DuckDB limits the depth of a query."""
    half = len(parts) // 2
    return _union(parts[:half]).union(_union(parts[half:])) if half else parts[0]


# Numbers that BIGINT does not hold become NULL: no cell.
_WHOLE_PARQUET = 'TRY_CAST("{column}" AS BIGINT) AS "{column}"'
# CSV is read as DOUBLE, because reading it as BIGINT would round fractions without a word.
_WHOLE_CSV = (
    'CASE WHEN "{column}" IS NULL THEN NULL '
    'WHEN "{column}" = trunc("{column}") THEN TRY_CAST("{column}" AS BIGINT) '
    "ELSE error('column {column} must hold whole numbers') END AS \"{column}\""
)


def _kind(files: list[Path]) -> str:
    """Return the kind of all the files: a key of ``_KINDS``."""
    names = [file.name.lower() for file in files]
    for kind, suffixes in _KINDS.items():
        if names and all(name.endswith(suffixes) for name in names):
            return kind
    raise InputError(
        "reports must be .parquet files, or .csv and .csv.gz files, or .jsonl and .ndjson files "
        "(also with .gz), all of one kind and at least one, "
        f"got {', '.join(file.name for file in files) or 'none'}"
    )


_KINDS = {"parquet": (".parquet",), "csv": (".csv", ".csv.gz"), "lines": SUFFIXES}


def _literal(file: Path) -> str:
    """Return the path as a pattern that matches this file alone."""
    return re.sub(r"([*?[])", r"[\1]", str(file.absolute()))


def _scan(database: Database, names: list[str], parquet: bool, types: Columns) -> Relation:
    # A folder called row=3 must not be read as a column.
    if parquet:
        return database.read_parquet(names, union_by_name=True, hive_partitioning=False)
    packed = "gzip" if names[0].lower().endswith(".gz") else "none"
    options = {"header": True, "hive_partitioning": False, "compression": packed}
    return database.from_csv_auto(names, dtype=types or None, **options)  # type: ignore[arg-type]


def _columns(relation: Relation, parquet: bool, file: Path) -> Columns:
    """Check the columns of a file; return those that count, with the types to read them as."""
    held = dict(zip(relation.columns, map(str, relation.types), strict=True))
    for column in ("row", "col"):
        if column not in held:  # what is held instead is not repeated: it may be positions
            raise InputError(f"reports must have the columns row and col, {file} has no {column}")
    if not parquet:  # what DuckDB makes of the first lines need not fit the others
        held = {**dict.fromkeys(held, "VARCHAR"), "row": "DOUBLE", "col": "DOUBLE"}
    for column, (content, types) in _CONTENT.items():
        if parquet and column in held and held[column] not in types:
            kind = held[column].lower()
            raise InputError(f"column {column} must hold {content}, holds {kind} in {file}")
    kept = [column for column in (*_CONTENT, "collection") if column in held]
    return {c: "BIGINT" if held[c] in WHOLE_NUMBERS else held[c] for c in kept}


_CONTENT = {
    "row": ("whole numbers", WHOLE_NUMBERS),
    "col": ("whole numbers", WHOLE_NUMBERS),
    "id": ("16 bytes or 32 hexadecimal digits", frozenset({"BLOB", "VARCHAR", "UUID"})),
}


def _groups(database: Database, collection: Collection, source: str) -> list[Group]:
    """Return the number of reports of every distinct content, cells outside the domain as one."""
    table = collection.table
    low = -table.radius
    high = table.cells + table.radius - 1
    # Forged cells would otherwise make as many groups as reports, and memory would not be bounded.
    inside = f"row BETWEEN {low:d} AND {high:d} AND col BETWEEN {low:d} AND {high:d}"
    return database.execute(
        f"SELECT CASE WHEN {inside} THEN row END, CASE WHEN {inside} THEN col END, "
        f"coalesce(collection <> $1, false), count(*) FROM {source} GROUP BY ALL",
        [collection.digest],
    ).fetchall()


def _repeats_an_id(database: Database, slices: int) -> bool:
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
    database: Database, collection: Collection, slices: int
) -> tuple[list[Group], int, int]:
    """Return the groups of one report an id, and how many are copies and how many conflict."""
    groups: list[Group] = []
    copies, conflicting = 0, 0
    for k in range(slices):
        database.execute(
            "CREATE OR REPLACE TEMP TABLE contents AS "
            # All reports of an id are alike where the least and the largest are.
            "SELECT min(r) AS r, count(*) AS n, min(r) IS NOT DISTINCT FROM max(r) AS same "
            "FROM (SELECT id, {'row': row, 'col': col, 'collection': collection} AS r, "
            "CASE WHEN collection <> $1 THEN collection END AS other "  # whose ids are its own
            f"FROM reports WHERE id IS NOT NULL AND {_in_slice(k, slices)}) GROUP BY id, other",
            [collection.digest],
        )
        groups += _groups(database, collection, "(SELECT unnest(r) FROM contents WHERE same)")
        totals = "SELECT sum(n - 1) FILTER (same), sum(n) FILTER (NOT same) FROM contents"
        ((again, differing),) = database.execute(totals).fetchall()
        copies += int(again or 0)
        conflicting += int(differing or 0)
    return groups, copies, conflicting


def _tally(groups: list[Group], collection: Collection) -> tuple[NDArray[np.int64], dict[str, int]]:
    table = collection.table
    side = table.cells + 2 * table.radius
    counts = np.zeros((side, side), np.int64)
    rejected = {FOREIGN: 0, OUTSIDE: 0}
    for row, col, foreign, number in groups:
        if foreign:
            rejected[FOREIGN] += number
        elif row is None or col is None or not table.is_output(row, col):
            rejected[OUTSIDE] += number
        else:
            counts[row + table.radius, col + table.radius] += number
    return counts, rejected
