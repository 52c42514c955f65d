"""JSON lines of reports, as devices send them, copied to Parquet in bounded memory.

A line is the text of one report. Devices send the canonical text with spaces after it, so that all
reports are equally long: a regular expression reads these, many at a time. Every other line goes
through the client's own strict reader, one by one, so that both ways give the same verdicts.
"""

import binascii
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from client_sdk import CollectionError, Report
from client_sdk.shared import LONGEST_REPORT, REPORT_SCHEMA
from ldpspatial.errors import InputError

SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
BLOCK = 1 << 17  # bytes read at a time; larger blocks leave the processor's cache
ROWS = 1 << 17  # reports a row group of the Parquet file: what DuckDB scans best
# A line longer than this holds more than LONGEST_REPORT code points, whatever they are, or is not
# UTF-8, with or without the carriage return before its end.
TOO_LONG = 4 * LONGEST_REPORT + 2

COLUMNS = pa.schema(
    {"row": pa.int32(), "col": pa.int32(), "id": pa.binary(16), "collection": pa.string()}
)

_BLANK = b" \t\r"
# Six digits: no grid has larger numbers, and the strict reader knows where they end.
_NUMBER = rb"(0|-?[1-9][0-9]{0,5})"
# Every match is one line. The first four groups are empty unless the text is canonical and its
# white space leaves it within LONGEST_REPORT; else the fifth is the line.
_LINE = re.compile(
    rb'\{"col":%b,"collection":"([0-9a-f]{64})","id":"([0-9a-f]{32})","row":%b,"schema":"%b"\}'
    rb"[ \t\r]{0,800}\n|([^\n]*)\n" % (_NUMBER, _NUMBER, re.escape(REPORT_SCHEMA.encode()))
)

Found = tuple[bytes, bytes, bytes, bytes, bytes]  # col, collection, id, row, line


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
                reports, bad = _parse(lines)
                if bad and not malformed:
                    first = f"line {read + bad[0]} of {file}"
                malformed += len(bad)
                read += 0 if malformed else lines.count(b"\n")  # only the first bad line is told
                waiting.append(reports)
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


def _parse(lines: bytes) -> tuple[pa.RecordBatch, list[int]]:
    """Return the reports in whole lines, and the malformed lines by their numbers from 1."""
    found: list[Found] = _LINE.findall(lines)
    reports = [match for match in found if match[2]]
    malformed = []
    for number in [k for k, match in enumerate(found) if not match[2]]:
        text = found[number][4].removesuffix(b"\r")
        if len(text) <= LONGEST_REPORT and not text.strip(_BLANK):
            continue
        try:
            reports.append(_strict(text))
        except (CollectionError, UnicodeDecodeError):
            malformed.append(number + 1)
    return _batch(reports), malformed


def _strict(text: bytes) -> Found:
    """Read one text as the client reads a report."""
    report = Report.from_json(text.decode())
    collection = report.collection.encode()
    name = report.id.encode()
    return b"%d" % report.col, collection, name, b"%d" % report.row, b""


def _batch(reports: list[Found]) -> pa.RecordBatch:
    n = len(reports)
    cols, collections, ids, rows, _ = zip(*reports, strict=True) if n else [()] * 5
    raw = pa.py_buffer(binascii.unhexlify(b"".join(ids)))
    columns = [
        pa.array(np.fromiter(map(int, rows), np.int32, n)),
        pa.array(np.fromiter(map(int, cols), np.int32, n)),
        pa.Array.from_buffers(pa.binary(16), n, [None, raw]),
        pa.array(collections, pa.string()),
    ]
    return pa.record_batch(columns, schema=COLUMNS)
