"""JSON lines of reports, as devices send them, copied to Parquet in bounded memory."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldpspatial.collecting.report_texts import TOO_LONG, ReportTexts, read_texts
from ldpspatial.errors import InputError

SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
BLOCK = 1 << 17  # bytes read at a time; larger blocks leave the processor's cache
ROWS = 1 << 17  # reports a row group of the Parquet file: what DuckDB scans best
COLUMNS = pa.schema(
    {"row": pa.int32(), "col": pa.int32(), "id": pa.binary(16), "collection": pa.string()}
)


@dataclass(frozen=True)
class BadLines:
    """How many lines are malformed, and where the first of them stands."""

    number: int = 0
    first: str = ""


def lines_to_parquet(files: Sequence[Path], target: Path) -> BadLines:
    """Copy the reports of JSON lines to a Parquet file; return which lines are malformed.

    Lines end with a line feed, perhaps after a carriage return; the last one may go without.
    Blank lines of at most 1024 characters are neither reports nor malformed.

    Parameters
    ----------
    files : sequence of Path
        Files of lines, gzipped where the name ends in .gz.
    target : Path
        Is written, about 20 bytes per report. Columns ``row`` and ``col`` (int32), ``id`` (16
        bytes) and ``collection`` (text), one row per well-formed report, whatever it names.

    Returns
    -------
    BadLines
        Lines that ``Report.from_json`` refuses or that are not UTF-8.

    Raises
    ------
    InputError
        A file cannot be opened, or is not the whole of a gzip file.
    """
    malformed = 0
    first = ""
    waiting = []
    with pq.ParquetWriter(target, COLUMNS, use_dictionary=["row", "col", "collection"]) as writer:
        for file in files:
            read = 0
            for lines in _lines(file):
                texts = read_texts(lines)
                if texts.malformed and not malformed:
                    first = f"line {read + texts.malformed[0]} of {file}"
                malformed += len(texts.malformed)
                read += 0 if malformed else lines.count(b"\n")  # only the first bad line is told
                waiting.append(_batch(texts))
                if sum(map(len, waiting)) >= ROWS:
                    writer.write_table(pa.Table.from_batches(waiting))
                    waiting.clear()
        writer.write_table(pa.Table.from_batches(waiting, COLUMNS))
    return BadLines(malformed, first)


def _lines(file: Path) -> Iterator[bytes]:
    """Yield whole lines, many at a time, each with its line feed."""
    rest = b""
    try:
        with _open(file) as stream:
            while block := stream.read(BLOCK):
                lines, end, rest = (rest + block).rpartition(b"\n")
                if end:
                    yield lines + end
                # A line that is too long stays too long when it is cut, and so malformed.
                rest = rest[:TOO_LONG]
    except (EOFError, zlib.error, gzip.BadGzipFile):  # their texts may quote the file
        raise InputError(f"reports cannot be read: {file} is not a gzip file or cut off") from None
    except OSError as error:
        raise InputError(f"reports cannot be read: {error.strerror} ({file})") from None
    if rest:
        yield rest + b"\n"


def _open(file: Path) -> BinaryIO:
    if file.name.lower().endswith(".gz"):
        return cast("BinaryIO", gzip.open(file))
    return file.open("rb")


def _batch(texts: ReportTexts) -> pa.RecordBatch:
    n = len(texts)
    columns = [
        pa.array(texts.rows.astype(np.int32)),
        pa.array(texts.cols.astype(np.int32)),
        pa.Array.from_buffers(pa.binary(16), n, [None, pa.py_buffer(texts.ids)]),
        pa.array(texts.collections, pa.string()),
    ]
    return pa.record_batch(columns, schema=COLUMNS)
