"""What a request holds: the reports that can be stored, and for every other line the reason.

The same verdicts as ``Report.from_json`` and ``Report.check`` of the client, for many lines at a
time (docs/protocol.md, sections 5, 7 and 13).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection
from ldpspatial.collecting.records import OutputDomain, Records, records_of
from ldpspatial.collecting.report_texts import ReportTexts, read_texts
from ldpspatial.service.store import OPEN, Held

MALFORMED, FOREIGN, CLOSED = "malformed", "foreign", "closed"
UNKNOWN = 0  # the number under which refusals are counted that no collection of the store explains


@dataclass(frozen=True)
class Taking:
    """A collection that the service knows, and whether it takes reports."""

    number: int
    domain: OutputDomain
    is_open: bool

    @classmethod
    def of(cls, held: Held) -> "Taking":
        """Return what is needed of a collection to read its reports."""
        domain = OutputDomain(Collection.from_json(held.document))
        return cls(held.number, domain, held.state == OPEN)

    def now(self, held: Held) -> "Taking":
        """Return the same collection in the state of ``held``."""
        return replace(self, is_open=held.state == OPEN)


class Refusal(NamedTuple):
    """A line that will never count: its number from 1, the reason, and whose it would be."""

    line: int
    reason: str
    collection: int


@dataclass
class Upload:
    """What a request asks to store.

    Attributes
    ----------
    arrived : dict of int to (records, lines)
        By the number of a collection, and the numbers of the lines that they come from.
    refused : list of Refusal
    """

    arrived: dict[int, tuple[Records, list[int]]] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def lines(self) -> int:
        """Number of lines that are not blank."""
        return len(self.refused) + sum(len(records) for records, _ in self.arrived.values())


def line_count(body: bytes) -> int:
    """Return how many lines a body has, blank ones among them; the last may have no end."""
    return body.count(b"\n") + (not body.endswith(b"\n") and bool(body))


def read_body(body: bytes) -> ReportTexts:
    """Read lines of reports, the last one with or without a line feed."""
    return read_texts(body if body.endswith(b"\n") or not body else body + b"\n")


def sort_out(texts: ReportTexts, known: Mapping[bytes, Taking]) -> Upload:
    """Tell the reports that can be stored from those that are refused.

    Parameters
    ----------
    texts : ReportTexts
    known : mapping of bytes to Taking
        By digest, as ASCII.
    """
    upload = Upload()
    upload.refused += [Refusal(line, MALFORMED, UNKNOWN) for line in texts.malformed]
    named = set(texts.collections)
    if len(named) <= 1:
        for digest in named:
            _take(upload, texts, None, known.get(digest))
    else:
        for name, at in _places(texts.collections, known).items():
            _take(upload, texts, np.array(at), known.get(name))
    upload.refused.sort()
    return upload


def _places(names: Sequence[bytes], known: Mapping[bytes, Taking]) -> dict[bytes, list[int]]:
    """Return where each known collection is named, and under b"" where any other is."""
    places: dict[bytes, list[int]] = {}
    for k, name in enumerate(names):
        places.setdefault(name if name in known else b"", []).append(k)
    return places


def _take(
    upload: Upload, texts: ReportTexts, at: "NDArray[np.int64] | None", taking: Taking | None
) -> None:
    """Add the reports of one collection: those at these indices, or all."""
    lines = list(texts.lines) if at is None else [texts.lines[k] for k in at]
    if taking is None or not taking.is_open:
        number = UNKNOWN if taking is None else taking.number
        reason = FOREIGN if taking is None else CLOSED
        upload.refused += [Refusal(line, reason, number) for line in lines]
        return
    rows, cols = texts.rows, texts.cols
    if at is not None:
        rows, cols = rows[at], cols[at]
    good = taking.domain.holds(rows, cols)
    places = taking.domain.places(rows, cols)
    ids = texts.ids
    if at is not None:
        ids = np.frombuffer(ids, "V16")[at].tobytes()
    records = records_of(ids, places)
    if not good.all():
        bad = np.flatnonzero(~good)
        upload.refused += [Refusal(lines[k], FOREIGN, taking.number) for k in bad]
        records = records[good]
        lines = [lines[k] for k in np.flatnonzero(good)]
    if len(records):
        upload.arrived[taking.number] = records, lines
