"""From files of reports to counts, out of core.

A file of reports is Parquet or CSV with the columns ``row`` and ``col`` and, where they are
kept, ``id`` (16 bytes, or 32 hexadecimal digits) and ``collection`` (the digest); or it holds the
texts of reports as lines (:mod:`ldpspatial.collecting.opened_reports`). Counting reads it once and
holds one number per output cell, and a hash of each id in temporary files
(:mod:`ldpspatial.collecting.repeated_ids`). Only where two hashes are equal it reads the reports
again, and compares those that share one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from client_sdk import Collection
from ldpspatial.collecting.opened_reports import (
    Columns,
    Database,
    Relation,
    Source,
    opened_reports,
)
from ldpspatial.collecting.records import OutputDomain, beside, hashes, new_key, same_id
from ldpspatial.collecting.repeated_ids import Parts, member, repeated
from ldpspatial.collecting.report_lines import BadLines
from ldpspatial.errors import InputError
from ldpspatial.validate import instance, one_of

BATCH = 1 << 18  # reports that are looked at together
NOWHERE = -(1 << 62)  # a row or column of no grid

MALFORMED = "are malformed"
FOREIGN = "name another collection"
OUTSIDE = "name a cell outside the output domain, or hold no row or col"
CONFLICTING = "share an id with a different report"
UNNAMED = "hold no id where others do"

# A report in full: its id, or a hash of it where it has another length; its cell; whether it names
# another collection, whose ids are its own.
FULL = np.dtype([("id", np.uint32, 4), ("row", "<i8"), ("col", "<i8"), ("is_foreign", "?")])
Full = NDArray[np.void]  # of FULL


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

    @property
    def facts(self) -> dict[str, Any]:
        """What a summary says of them beside their number."""
        return {
            "rejected": self.rejected,
            "repeated": self.repeated,
            "ids_checked": self.ids_checked,
        }


def count_reports(paths: Source, collection: Collection, on_invalid: str = "error") -> ReportCounts:
    r"""Count the reports of one collection, each once.

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
        counts them by reason. Reports of the collection that lie in its output domain, share an
        id and differ are all bad, and so are those without an id in files that have ids.

    Raises
    ------
    InputError
        A file is missing, unreadable, given twice, lacks a column, has it twice or has other
        columns than the first; no report; or, with "error", reports that are malformed, name
        another collection, lie outside the output domain, share an id with a different one or
        lack an id.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from client_sdk import Collection, Grid
    >>> collection = Collection.create("park", Grid.plane(0, 0, 8, 5), epsilon=3.5)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "reports.csv"
    >>> _ = file.write_text("row,col\n2,3\n2,3\n99,0\n")
    >>> found = count_reports(file, collection, on_invalid="drop")
    >>> int(found.counts.sum()), sum(found.rejected.values())
    (2, 1)
    """
    instance("collection", collection, Collection)
    one_of("on_invalid", on_invalid, ("error", "drop"))
    with opened_reports(paths) as (database, columns, bad_lines, spill):
        tally = tallied(database, columns, collection, spill)
    return tally.result(on_invalid, "id" in columns, bad_lines)


def tallied(database: Database, columns: Columns, collection: Collection, spill: Path) -> "Tally":
    """Count the view ``reports``, which has these columns, with temporary files in ``spill``."""
    tally = Tally(collection)
    if "id" in columns:
        _count_each_id_once(tally, database, collection, columns["id"], spill)
    else:
        for rows, cols, is_foreign, numbers in _groups(database, collection):
            tally.add(rows, cols, is_foreign, numbers)
    return tally


def _sixteen_bytes(kind: str) -> str:
    """Return SQL for the 16 bytes of an id; one of another length stands for itself by a hash."""
    hashed = "unhex(left(sha256(id), 32))"
    if kind == "BLOB":
        own = f"CASE WHEN octet_length(id) = 16 THEN id ELSE {hashed} END"
    elif kind == "UUID":
        own = "unhex(replace(id::VARCHAR, '-', ''))"
    else:
        own = f"CASE WHEN regexp_full_match(id, '[0-9a-f]{{32}}') THEN unhex(id) ELSE {hashed} END"
    # Ids of another collection are its own: an id of ours that looks like one is not the same.
    others = f"unhex(left(sha256(collection || hex({own})), 32))"
    return f"CASE WHEN is_foreign THEN {others} ELSE {own} END"


@dataclass(frozen=True)
class _Batch:
    """Some reports, column by column."""

    rows: NDArray[np.int64]
    cols: NDArray[np.int64]
    is_foreign: NDArray[np.bool_]
    ids: NDArray[np.uint32]  # (n, 4): 16 bytes each
    unnamed: int  # reports without an id where others have one; they are not in the columns

    def full(self, chosen: NDArray[np.bool_]) -> Full:
        """Return the chosen reports in full."""
        found = np.empty(int(chosen.sum()), FULL)
        columns: tuple[NDArray[Any], ...] = (self.ids, self.rows, self.cols, self.is_foreign)
        for name, column in zip(FULL.names or (), columns, strict=True):
            found[name] = column[chosen]
        return found


# A cell that is no whole number lies outside every domain.
_CELL = f"coalesce(row, {NOWHERE}) AS row, coalesce(col, {NOWHERE}) AS col, is_foreign"
_REPORTS = "(SELECT *, coalesce(collection <> $1, false) AS is_foreign FROM reports)"


def _groups(database: Database, collection: Collection) -> Iterator[tuple[Any, ...]]:
    """Yield rows, cols, whether they are foreign, and numbers of reports, of each content once.

    DuckDB does that several times quicker than it hands out the reports. Cells beyond the domain
    are one, or forged ones would make as many groups as reports.
    """
    table = collection.table
    low, high = -table.radius, table.cells + table.radius - 1
    inside = f"row BETWEEN {low:d} AND {high:d} AND col BETWEEN {low:d} AND {high:d}"
    query = (
        f"SELECT {_CELL}, count(*) AS number FROM (SELECT is_foreign, CASE WHEN {inside} "
        f"THEN row END AS row, CASE WHEN {inside} THEN col END AS col FROM {_REPORTS}) GROUP BY ALL"
    )
    for held in _streamed(database.sql(query, params=[collection.digest])):
        yield tuple(held.column(k).to_numpy(zero_copy_only=False) for k in range(4))


def _batches(database: Database, collection: Collection, id_type: str) -> Iterator[_Batch]:
    """Yield all reports with their ids."""
    query = f"SELECT {_CELL}, {_sixteen_bytes(id_type)} AS key FROM {_REPORTS}"
    for held in _streamed(database.sql(query, params=[collection.digest])):
        unnamed = held.column(3).null_count
        table = held.filter(held.column(3).is_valid()) if unnamed else held
        rows, cols = (table.column(k).to_numpy(zero_copy_only=False) for k in range(2))
        is_foreign = table.column(2).to_numpy(zero_copy_only=False)
        yield _Batch(rows, cols, is_foreign, _words(table.column(3)), unnamed)


def _streamed(found: Relation) -> Iterator[pa.RecordBatch]:
    """Yield what a query finds, batch by batch; errors in the middle are those of DuckDB."""
    name = "to_arrow_reader" if hasattr(found, "to_arrow_reader") else "fetch_arrow_reader"
    reader = getattr(found, name)(BATCH)  # DuckDB has renamed it
    while True:
        try:
            held = reader.read_next_batch()
        except StopIteration:
            return
        except (OSError, pa.ArrowException) as error:  # how Arrow tells those of DuckDB
            is_conversion = str(error).startswith("Conversion Error")
            kind = duckdb.ConversionException if is_conversion else duckdb.Error
            raise kind(str(error)) from None
        yield held


def _words(ids: Any) -> NDArray[np.uint32]:
    """Return the four words of each id in an Arrow array of 16 bytes each."""
    offset_bytes = 4 if ids.type == pa.binary() else 8
    offsets = np.frombuffer(ids.buffers()[1], f"<i{offset_bytes}")[ids.offset :][: len(ids) + 1]
    held = np.frombuffer(ids.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return held.view(np.uint32).reshape(-1, 4)


class Tally:
    """Reports by output cell, and those that are left out by reason."""

    def __init__(self, collection: Collection):
        self._domain = OutputDomain(collection)
        self._counts = np.zeros(self._domain.side**2, np.int64)
        self.rejected = dict.fromkeys((FOREIGN, OUTSIDE, CONFLICTING, UNNAMED), 0)
        self.repeated = 0

    def add(
        self,
        rows: NDArray[np.int64],
        cols: NDArray[np.int64],
        is_foreign: NDArray[np.bool_],
        times: NDArray[np.int64] | int = 1,
    ) -> None:
        """Count reports, each so many times; with -1 they are taken back."""
        numbers = np.broadcast_to(np.asarray(times, np.int64), rows.shape)
        is_outside = self._is_outside(rows, cols, is_foreign)
        is_good = ~is_foreign & ~is_outside
        self.rejected[FOREIGN] += int(numbers[is_foreign].sum())
        self.rejected[OUTSIDE] += int(numbers[is_outside].sum())
        places = self._domain.places(rows[is_good], cols[is_good])
        np.add.at(self._counts, places, numbers[is_good])

    def resolve(self, reports: Full) -> None:
        """Count each id of reports, all of which were counted before, once.

        What lies outside the domain is no report, so it contradicts none.
        """
        self.add(reports["row"], reports["col"], reports["is_foreign"], times=-1)
        ids = reports["id"]
        order = np.lexsort(
            (reports["col"], reports["row"], ids[:, 3], ids[:, 2], ids[:, 1], ids[:, 0])
        )
        ordered = reports[order]
        same = same_id(ordered) & (ordered["row"][1:] == ordered["row"][:-1])
        same &= ordered["col"][1:] == ordered["col"][:-1]
        is_first = np.ones(len(ordered), bool)
        is_first[1:] = ~same
        self.repeated += int(same.sum())
        once = ordered[is_first]
        is_outside = self._is_outside(once["row"], once["col"], once["is_foreign"])
        self.rejected[OUTSIDE] += int(is_outside.sum())
        different = once[~is_outside]
        is_good = ~beside(same_id(different), len(different))
        self.rejected[CONFLICTING] += int((~is_good).sum())
        kept = different[is_good]
        self.add(kept["row"], kept["col"], kept["is_foreign"])

    def _is_outside(
        self, rows: NDArray[np.int64], cols: NDArray[np.int64], is_foreign: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Tell which reports of the collection name a cell outside its output domain."""
        return ~is_foreign & ~self._domain.holds(rows, cols)

    def result(
        self, on_invalid: str, ids_checked: bool, bad_lines: BadLines | None = None
    ) -> ReportCounts:
        """Return what was counted.

        Raises
        ------
        InputError
            There is no good report; or a bad one, and ``on_invalid`` is "error".
        """
        lines = bad_lines or BadLines()
        found = self.counted(ids_checked, lines.number)
        if on_invalid == "error":
            refuse_bad(found.rejected, lines)
        if not found.n:
            raise InputError("reports must hold at least one good report, got none")
        return found

    def counted(self, ids_checked: bool, malformed: int = 0) -> ReportCounts:
        """Return what was counted, be it nothing, and what was not."""
        reasons = {MALFORMED: malformed, **self.rejected}
        rejected = {reason: n for reason, n in reasons.items() if n}
        counts = self._counts.reshape(self._domain.side, self._domain.side)
        return ReportCounts(counts, rejected, self.repeated, ids_checked)


def refuse_bad(rejected: Mapping[str, int], bad_lines: BadLines) -> None:
    """Raise InputError where reports were left out, with their number by reason."""
    if not rejected:
        return
    where = {MALFORMED: f" (first: {bad_lines.first})"}
    problems = "; ".join(f"{n} {why}{where.get(why, '')}" for why, n in rejected.items())
    raise InputError(
        f"reports must all be good, but {problems} ({{remedy}} leaves them out and counts them)",
        remedy=("on_invalid", "drop"),
    )


def _count_each_id_once(
    tally: Tally, database: Database, collection: Collection, id_type: str, spill: Path
) -> None:
    """Count all reports, then look at those again whose ids may be repeated."""
    key = new_key()
    (spill / "hashes").mkdir()
    hashed = Parts(spill / "hashes", np.dtype(np.uint64))
    for batch in _batches(database, collection, id_type):
        tally.add(batch.rows, batch.cols, batch.is_foreign)
        tally.rejected[UNNAMED] += batch.unnamed
        named = hashes(batch.ids, key)
        hashed.add(named, named)
    suspects = repeated(hashed)
    if not len(suspects):
        return
    (spill / "reports").mkdir()
    reports = Parts(spill / "reports", FULL)
    is_suspect = member(suspects)
    for batch in _batches(database, collection, id_type):
        named = hashes(batch.ids, key)
        chosen = is_suspect(named)
        reports.add(named[chosen], batch.full(chosen))
    for part in reports:
        tally.resolve(part)
