"""Files of reports opened as one table of a database, out of core.

They are Parquet, CSV, or the texts of reports as lines, which are first copied to a temporary
Parquet file. Their columns are checked and read as one type; what is wrong with a file is said in
our words, for those of the database quote lines, which may hold positions.
"""

import gzip
import re
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ldpspatial.collecting.report_lines import SUFFIXES, BadLines, lines_to_parquet
from ldpspatial.errors import InputError
from ldpspatial.validate import file_path, shown

MEMORY_LIMIT = "256MB"  # DuckDB's share; the process stays below 500 MB at 10^8 reports
LONGEST_HEADER = 1 << 16  # bytes
WHOLE_NUMBERS = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
)

Source = str | Path | Sequence[str | Path]
Database = duckdb.DuckDBPyConnection
Relation = duckdb.DuckDBPyRelation
Columns = dict[str, str]  # type by name


@contextmanager
def opened_reports(paths: Source) -> Iterator[tuple[Database, Columns, BadLines, Path]]:
    """Open the files as the view ``reports``.

    Yields
    ------
    connection, columns, malformed lines, folder for temporary files
    """
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
            yield database, columns, bad_lines, Path(spill)
        except duckdb.Error as error:
            raise InputError(f"reports cannot be read: {_problem(error)}") from None


def _problem(error: duckdb.Error) -> str:
    """Say what is wrong with a file, in our words where lines are to blame."""
    # The first line alone: the next ones quote the file, which may hold positions.
    told = str(error).partition("\n")[0].rpartition("Error: ")[2]
    told = re.sub(r"""(["'])[^"']*/([^"'/]+)\1""", r"\2", told)  # a file's name without its folder
    line = re.search(r"Line: (\d+)", told)
    where = f"line {line[1]}" if line else "each line"
    if isinstance(error, duckdb.ConversionException):
        return f"row and col must be whole numbers in {where}"
    if line or "sniffing" in told:
        file = told.partition("file ")[2].rstrip(".")
        return (
            f"{where}{f' of {file}' if file else ''} must have the fields of the header, no others"
        )
    return told


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
        if not parquet:
            _check_header(file)
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


def _check_header(file: Path) -> None:
    """Refuse a column that is there twice: DuckDB renames the second one, whatever its case."""
    packed = file.name.lower().endswith(".gz")
    try:
        with gzip.open(file) if packed else file.open("rb") as stream:
            header = stream.readline(LONGEST_HEADER).decode("utf-8-sig", "replace")
    except (OSError, EOFError, zlib.error):
        return  # DuckDB says what is wrong with the file
    names = [re.sub(r"[\s\"']", "", name).lower() for name in re.split(r"[,;|\t]", header)]
    for column in (*_CONTENT, "collection"):
        if names.count(column) > 1:
            raise InputError(f"reports must have one column {column}, {file} has several")


def _columns(relation: Relation, parquet: bool, file: Path) -> Columns:
    """Check the columns of a file; return those that count, with the types to read them as."""
    held = dict(zip(relation.columns, map(str, relation.types), strict=True))
    names = {name.strip().lower() for name in held}
    if column := next((each for each in _TOTALS if each in names), None):
        raise InputError(
            f"reports must be a line for each report, but {file} has a column {column}, as maps "
            "and counts of cells have: give the reports that it was made of, or counts as "
            "ldpspatial count writes them (.json)"
        )
    for column in ("row", "col"):
        if column not in held:  # what is held instead is not repeated: it may be positions
            likeness = next((told for sign, told in _OTHERS.items() if sign in names), "")
            raise InputError(
                f"reports must have the columns row and col, {file} has no {column}{likeness}"
            )
    if not parquet:  # what DuckDB makes of the first lines need not fit the others
        held = {**dict.fromkeys(held, "VARCHAR"), "row": "DOUBLE", "col": "DOUBLE"}
    for column, (content, types) in _CONTENT.items():
        if parquet and column in held and held[column] not in types:
            kind = held[column].lower()
            raise InputError(f"column {column} must hold {content}, holds {kind} in {file}")
    kept = [column for column in (*_CONTENT, "collection") if column in held]
    return {c: "BIGINT" if held[c] in WHOLE_NUMBERS else held[c] for c in kept}


# Columns of maps and of counts, whose lines are cells with their row and column.
_TOTALS = ("density", "share", "people", "count", "counts", "reports", "n")
# By a column of theirs, what else may be given in the place of reports.
_OTHERS = {
    **dict.fromkeys(
        ("latitude", "longitude", "lat", "lon", "lng"),
        ": ldpspatial simulate plays a collection on positions",
    ),
    "south": ": ldpspatial ranges reads regions",
    "source_row": ": it holds a plan of ldpspatial distance",
    "release": ": it holds a comparison of ldpspatial compare",
}

_CONTENT = {
    "row": ("whole numbers", WHOLE_NUMBERS),
    "col": ("whole numbers", WHOLE_NUMBERS),
    "id": ("16 bytes or 32 hexadecimal digits", frozenset({"BLOB", "VARCHAR", "UUID"})),
}
