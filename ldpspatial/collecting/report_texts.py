"""The texts of reports, a line each, read many at a time with the verdicts of the client.

Devices send the canonical text with spaces after it, so that all reports are equally long: a
regular expression reads these. Every other line goes through the client's own strict reader, one
by one, so that both ways give the same verdicts.
"""

import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client_sdk import CollectionError, Report
from client_sdk.shared import LONGEST_REPORT, REPORT_SCHEMA

# A line longer than this holds more than LONGEST_REPORT code points, whatever they are, or is not
# UTF-8, with or without the carriage return before its end.
TOO_LONG = 4 * LONGEST_REPORT + 2

_BLANK = b" \t\r"
# Six digits: no grid has larger numbers, and the strict reader knows where they end.
_NUMBER = rb"(0|-?[1-9][0-9]{0,5})"
# Every match is one line. The first four groups are empty unless the text is canonical and its
# white space leaves it within LONGEST_REPORT; else the fifth is the line.
_LINE = re.compile(
    rb'\{"col":%b,"collection":"([0-9a-f]{64})","id":"([0-9a-f]{32})","row":%b,"schema":"%b"\}'
    rb"[ \t\r]{0,800}\n|([^\n]*)\n" % (_NUMBER, _NUMBER, re.escape(REPORT_SCHEMA.encode()))
)

_Found = tuple[bytes, bytes, bytes, bytes, bytes]  # col, collection, id, row, line


@dataclass(frozen=True)
class ReportTexts:
    """What well-formed texts hold, whatever collection they name, and which lines are malformed.

    Attributes
    ----------
    rows, cols : (n,) int64 arrays
    ids : bytes
        16 bytes each, one after the other.
    collections : sequence of bytes
        The digests, as ASCII.
    lines : sequence of int
        Numbers of their lines, from 1, ascending but for lines that are not canonical, which
        come last.
    malformed : list of int
        Lines that ``Report.from_json`` refuses or that are not UTF-8, ascending.
    """

    rows: NDArray[np.int64]
    cols: NDArray[np.int64]
    ids: bytes
    collections: Sequence[bytes]
    lines: Sequence[int]
    malformed: list[int]

    def __len__(self) -> int:
        return len(self.rows)


def read_texts(lines: bytes) -> ReportTexts:
    """Read whole lines, each the text of one report.

    Lines end with a line feed, perhaps after a carriage return. Blank lines of at most 1024
    characters are neither reports nor malformed.

    Parameters
    ----------
    lines : bytes
        Ends with a line feed, or is empty.
    """
    found: list[_Found] = _LINE.findall(lines)
    others = [k for k, match in enumerate(found) if not match[2]]
    if not others:
        return _texts(found, range(1, len(found) + 1), [])
    reports = [match for match in found if match[2]]
    numbers = [k for k, match in enumerate(found, 1) if match[2]]
    malformed = []
    for k in others:
        text = found[k][4].removesuffix(b"\r")
        if len(text) <= LONGEST_REPORT and not text.strip(_BLANK):
            continue
        try:
            reports.append(_strict(text))
            numbers.append(k + 1)
        except (CollectionError, UnicodeDecodeError):
            malformed.append(k + 1)
    return _texts(reports, numbers, malformed)


def _strict(text: bytes) -> _Found:
    """Read one text as the client reads a report."""
    report = Report.from_json(text.decode())
    collection = report.collection.encode()
    name = report.id.encode()
    return b"%d" % report.col, collection, name, b"%d" % report.row, b""


def _texts(reports: list[_Found], numbers: Sequence[int], malformed: list[int]) -> ReportTexts:
    n = len(reports)
    cols, collections, ids, rows, _ = zip(*reports, strict=True) if n else [()] * 5
    return ReportTexts(
        rows=np.fromiter(map(int, rows), np.int64, n),
        cols=np.fromiter(map(int, cols), np.int64, n),
        ids=binascii.unhexlify(b"".join(ids)),
        collections=collections,
        lines=numbers,
        malformed=malformed,
    )
