"""Chosen columns of a table file as numbers and labels.

Messages name columns, row numbers and counts. They never repeat what a cell holds, because a cell
may hold a position: that is why the errors of the parser, which quote the offending text, are
replaced here and not chained.

Rows are counted from 1 after the header; blank lines do not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.files.table_layout import Layout, is_gzip

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "\\n"})  # lower case


@dataclass(frozen=True)
class Columns:
    """Columns as read: Arrow arrays of one length, and the rows that had to be left out.

    Attributes
    ----------
    arrays : list of pyarrow.ChunkedArray
    ragged : int
        Rows left out because their number of fields is not that of the other rows.
    first_ragged : int
        Number of the first such row, 0 when there is none.
    """

    arrays: list[Any]
    ragged: int = 0
    first_ragged: int = 0

    def check_whole(self, layout: Layout) -> None:
        """Refuse rows of another number of fields than the others."""
        if self.ragged:
            raise InputError(
                f"path must have {len(layout.names)} fields in every row, but {self.ragged} rows "
                f"of {layout.path.name!r} have more or fewer (first: row {self.first_ragged})"
            )


def read_columns(layout: Layout, numeric: Sequence[int], labels: Sequence[int] = ()) -> Columns:
    """Read the columns at the positions ``numeric``, then those at ``labels``, and no others.

    Raises
    ------
    InputError
        The file cannot be read to its end.
    """
    try:
        if layout.delimiter is None:
            names = [layout.names[i] for i in (*numeric, *labels)]
            table = pq.ParquetFile(layout.path).read(columns=names)
            return Columns([table.column(name) for name in names])
        try:
            return _text_columns(layout, numeric, labels, pa.float64())
        except pa.ArrowInvalid:  # a cell is not a number: take the cells as they are
            return _text_columns(layout, numeric, labels, pa.binary())
    except (pa.ArrowException, OSError):
        raise InputError(
            f"path must be a complete table, but {layout.path.name!r} cannot be read to its end: "
            "look for a cut-off download or a double quote that is never closed"
        ) from None


def as_numbers(array: Any, field: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a column as float64, NaN where there is no number, and which cells hold text.

    Empty cells are NaN and not text.

    Raises
    ------
    InputError
        The column is of a type without numbers (a date, a list, ...).
    """
    array = _plain(array)
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = pc.cast(array, pa.float64(), safe=False)
        values = np.full(len(numbers), np.nan)
        values[_in_numpy(pc.is_valid(numbers))] = _in_numpy(pc.drop_null(numbers))
        return values, np.zeros(len(values), dtype=np.bool_)
    if not _is_text(kind):
        raise InputError(f"{field} must be a column of numbers, got one of type {kind}")
    parsed = [_number(cell) for chunk in array.chunks for cell in chunk.to_pylist()]
    text = np.array([number is None for number in parsed], dtype=np.bool_)
    return np.array(parsed, dtype=np.float64), text  # None becomes NaN


def is_missing(array: Any) -> NDArray[np.bool_]:
    """Return which cells of a column of labels are empty."""
    array = _plain(array)
    missing = pc.is_null(array, nan_is_null=True)
    if _is_text(array.type):
        missing = pc.or_(missing, pc.equal(pc.fill_null(pc.binary_length(array), 0), 0))
    return _in_numpy(missing)


def as_codes(array: Any, field: str) -> NDArray[np.int64]:
    """Return a code for every cell: 0, 1, ... in the order in which the values first appear.

    Raises
    ------
    InputError
        The column holds lists or records.
    """
    array = _plain(array)
    if pa.types.is_nested(array.type):
        raise InputError(f"{field} must be a column of labels, got one of type {array.type}")
    encoded = array.dictionary_encode(null_encoding="encode").unify_dictionaries()
    indices = pa.chunked_array([chunk.indices for chunk in encoded.chunks], pa.int32())
    return _in_numpy(indices).astype(np.int64)


def _text_columns(
    layout: Layout, numeric: Sequence[int], labels: Sequence[int], number: Any
) -> Columns:
    ragged: list[int] = []

    def leave_out(row: Any) -> str:
        ragged.append(row.number)
        return "skip"

    wanted = [str(i) for i in (*numeric, *labels)]  # positions as names: theirs may repeat
    types = {str(i): number for i in numeric} | {str(i): pa.binary() for i in labels}
    with pa.input_stream(
        str(layout.path), compression="gzip" if is_gzip(layout.path) else None
    ) as stream:
        table = pa_csv.read_csv(
            stream,
            # One thread: only then does the parser number the rows that it leaves out.
            pa_csv.ReadOptions(
                use_threads=False,
                skip_rows=layout.header_lines,
                column_names=[str(i) for i in range(len(layout.names))],
            ),
            pa_csv.ParseOptions(
                delimiter=layout.delimiter,
                quote_char='"' if layout.quoted else False,
                newlines_in_values=layout.quoted,
                invalid_row_handler=leave_out,
            ),
            pa_csv.ConvertOptions(include_columns=wanted, column_types=types),
        )
    first = ragged[0] - layout.header_lines if ragged else 0
    return Columns([table.column(name) for name in wanted], len(ragged), first)


def _plain(array: Any) -> Any:
    """Return a column with its dictionary, if it has one, written out."""
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def _in_numpy(array: Any) -> NDArray[Any]:
    """Return a column of numbers or truth values without gaps as an array.

    ``to_numpy`` would do, but imports pandas wherever it is installed: a quarter of a second.
    """
    if pa.types.is_boolean(array.type):
        return _in_numpy(pc.cast(array, pa.uint8())).astype(np.bool_)
    empty = np.empty(0, dtype=array.type.to_pandas_dtype())
    return np.concatenate([empty, *(np.from_dlpack(chunk) for chunk in array.chunks)])


def _is_text(kind: Any) -> bool:
    t = pa.types
    return any(
        test(kind) for test in (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary)
    )


def _number(cell: str | bytes | None) -> float | None:
    """Return the number in a cell, NaN for an empty one and None for text."""
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", errors="replace")
    word = "" if cell is None else cell.strip()
    if word.lower() in MISSING:
        return float("nan")
    try:
        return None if "_" in word else float(word)  # Python reads 4_1 as 41
    except ValueError:
        return None
