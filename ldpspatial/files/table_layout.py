"""Where the columns of a CSV, TSV or Parquet file are, found from its name and its first rows.

Messages list column names, never what a cell holds: a cell may hold a position.
"""

import csv
import gzip
import os
import re
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ldpspatial.errors import InputError
from ldpspatial.validate import file_path, instance

TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
SHOWN_NAMES = 40  # of the columns that an error message lists


@dataclass(frozen=True)
class Layout:
    """Where the columns of a file are.

    Attributes
    ----------
    path : Path
    names : tuple of str
        Column names in file order; duplicates and empty names are kept.
    delimiter : str or None
        Between the fields of a text file; None for Parquet.
    quoted : bool
        Whether double quotes may enclose a field.
    header_lines : int
        Lines of text before the first row.
    """

    path: Path
    names: tuple[str, ...]
    delimiter: str | None
    quoted: bool = True
    header_lines: int = 0


def table_layout(path: str | os.PathLike[str], plain_row: bool = False) -> Layout:
    """Return the layout of a table with column names: CSV, TSV (each also gzipped) or Parquet.

    A CSV file whose header holds no comma is read with semicolons, or else tabs, between fields.
    With `plain_row` a text file may also be a single row of numbers, which then are its names.

    Raises
    ------
    InputError
        The file is missing, empty, without rows, unreadable or of an unknown extension.
    """
    file = _existing(path)
    name = file.name.lower()
    if name.endswith(PARQUET_SUFFIXES):
        try:
            return Layout(file, tuple(pq.ParquetFile(file).schema_arrow.names), None)
        except (pa.ArrowException, OSError):
            raise InputError(f"path must be a Parquet file, but {file.name!r} is not one") from None
    if not name.endswith(TEXT_SUFFIXES):
        known = ", ".join(TEXT_SUFFIXES + PARQUET_SUFFIXES)
        raise InputError(f"path must end in one of {known}, got {file.name!r}")
    return _text_layout(file, "\t" if name.endswith((".tsv", ".tsv.gz")) else None, plain_row)


def headless_layout(path: str | os.PathLike[str], names: tuple[str, ...]) -> Layout:
    """Return the layout of a tab-separated text file without header and without quoting.

    Raises
    ------
    InputError
        The file is missing, empty or its first row has another number of fields than ``names``.
    """
    file = _existing(path)
    (first, _), *_ = _opening_rows(file, "\t", quoted=False)
    if len(first) != len(names):
        raise InputError(
            f"path must hold {len(names)} tab-separated fields a row ({', '.join(names)}), "
            f"but row 1 of {file.name!r} has {len(first)}"
        )
    return Layout(file, names, "\t", quoted=False)


def find_column(layout: Layout, field: str, wanted: str) -> int:
    """Return the position of a column: by its exact name, else ignoring case and outer spaces.

    Raises
    ------
    InputError
        There is no such column, or there are several.
    """
    wanted = instance(field, wanted, str)
    exact = [i for i, name in enumerate(layout.names) if name == wanted]
    matches = exact or [i for i, name in enumerate(layout.names) if fold(name) == fold(wanted)]
    if len(matches) == 1:
        return matches[0]
    found = f"{len(matches)} columns have this name" if matches else "no column has this name"
    raise InputError(f"{field} must name one column, got {wanted!r}: {found}; {listed(layout)}")


def fold(name: str) -> str:
    """Return a column name as it is compared: without outer spaces, in one case."""
    return name.strip().casefold()


def listed(layout: Layout) -> str:
    """Return the columns of a file for an error message, hiding names that look like data.

    A file without header has its first row in the place of the names, and that row may be
    somebody's position.
    """
    shown = [name if name.strip() else "(no name)" for name in layout.names]
    data = [
        bool(re.search(r"\d[.,]\d|[\x00-\x1f\x7f-\x9f]", n)) or not re.search(r"[^\W\d]", n)
        for n in shown
    ]
    shown = ["(hidden)" if hide else name for name, hide in zip(shown, data, strict=True)]
    more = f" and {len(shown) - SHOWN_NAMES} more" if len(shown) > SHOWN_NAMES else ""
    hint = "; is the line with the column names missing?" if any(data) else ""
    return f"{layout.path.name!r} has the columns {', '.join(shown[:SHOWN_NAMES])}{more}{hint}"


def is_gzip(file: Path) -> bool:
    """Tell whether a file is compressed with gzip, by its name."""
    return file.name.lower().endswith(".gz")


def is_number(text: str) -> bool:
    """Tell whether a field of a text file is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def existing_file(path: str | os.PathLike[str], field: str = "path") -> Path:
    """Return the path of a file, which messages call by the name of a parameter.

    Raises
    ------
    InputError
        There is no such file, or only a folder or a device of that name.
    """
    file = file_path(field, path)
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "is not a regular file"
        what = what if file.exists() else "does not exist"
        raise InputError(f"{field} must name a file, got {str(file)!r}, which {what}")
    return file


def _existing(path: str | os.PathLike[str]) -> Path:
    file = existing_file(path)
    if file.stat().st_size == 0:
        raise InputError(f"path must name a file with content, but {file.name!r} is empty")
    return file


def _text_layout(file: Path, delimiter: str | None, plain_row: bool) -> Layout:
    if delimiter is None:
        (header, _), *_ = _opening_rows(file, ",")
        delimiter = ","
        if len(header) == 1:
            delimiter = next((mark for mark in ";\t" if mark in header[0]), ",")
    (header, lines), *rest = _opening_rows(file, delimiter)
    if not rest and not (plain_row and all(map(is_number, header))):
        raise InputError(f"path must hold rows, but {file.name!r} has only a header")
    first = rest[0][0] if rest else header
    # Some publishers end every row, or only the header, with spare delimiters.
    spare = header[len(first) :] + first[len(header) :]
    width = len(header) if any(map(str.strip, spare)) else len(first)
    names = (header + [""] * width)[:width]
    return Layout(file, tuple(names), delimiter, header_lines=lines)


def _opening_rows(file: Path, delimiter: str, quoted: bool = True) -> list[tuple[list[str], int]]:
    """Return the first two rows that are not blank, each with the lines read up to its end."""
    opener = gzip.open if is_gzip(file) else open
    try:
        with opener(file, "rt", encoding="utf-8-sig", errors="replace", newline="") as text:
            reader = csv.reader(
                text,
                delimiter=delimiter,
                quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            )
            rows = list(islice(((row, reader.line_num) for row in reader if row), 2))
    except (OSError, EOFError, zlib.error, csv.Error):
        rows = [(["\0"], 0)]
    if not rows:
        raise InputError(f"path must name a file with content, but {file.name!r} is empty")
    if any("\0" in cell for cell in rows[0][0]):  # two bytes a character, or no text at all
        gzipped = "gzipped " if is_gzip(file) else ""
        raise InputError(
            f"path must be a table in {gzipped}UTF-8 text, but {file.name!r} cannot be read as "
            "one: look for damage, another encoding or a double quote that is never closed"
        )
    return rows
