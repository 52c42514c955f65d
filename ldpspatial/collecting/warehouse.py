"""Counts the reports in a table of a warehouse, where they lie (the extra ``spark``).

The query goes through Ibis, so it runs in DuckDB, in Spark, or in another engine that Ibis knows;
what comes back is a row for each output cell, not a report. The rule is that of
:mod:`ldpspatial.collecting.counting`: a report that came again counts once, and an id with two
contents counts for neither.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from client_sdk import Collection
from ldpspatial.collecting.counting import (
    CONFLICTING,
    FOREIGN,
    NOWHERE,
    OUTSIDE,
    UNNAMED,
    ReportCounts,
    Tally,
)
from ldpspatial.errors import InputError
from ldpspatial.validate import instance, one_of

if TYPE_CHECKING:
    from ibis.expr.types import Table

GOOD = "good"


def count_table(table: "Table", collection: Collection, on_invalid: str = "error") -> ReportCounts:
    """Count the reports of one collection in a table, each once.

    The result equals that of ``count_reports`` on a Parquet file of the same rows.

    Parameters
    ----------
    table : ibis Table
        Of a connection: ``ibis.duckdb.connect().read_parquet(path)`` or
        ``ibis.pyspark.connect(session).table(name)``. Its columns ``row`` and ``col`` hold whole
        numbers; ``id``, where there is one, 16 bytes or 32 hexadecimal digits; ``collection``,
        where there is one, the digest. Other columns are not read.
    collection : Collection
        What the reports must belong to.
    on_invalid : {"error", "drop"}
        As of ``count_reports``.

    Raises
    ------
    InputError
        Ibis is missing; the table lacks a column, or one is of another type, or the engine cannot
        read it; no good report; or, with "error", a bad one.

    Examples
    --------
    >>> import ibis
    >>> import pyarrow as pa
    >>> from client_sdk import Collection, Grid
    >>> collection = Collection.create("park", Grid.plane(0, 0, 8, 5), epsilon=3.5)
    >>> rows = {"id": ["a" * 32, "a" * 32, "b" * 32], "row": [2, 2, 0], "col": [3, 3, 1]}
    >>> found = count_table(ibis.memtable(pa.table(rows)), collection)
    >>> found.n, found.repeated
    (2, 1)
    """
    ibis = _ibis()
    instance("table", table, ibis.Table)
    instance("collection", collection, Collection)
    one_of("on_invalid", on_invalid, ("error", "drop"))
    _check_columns(table)
    has_ids = "id" in table.columns
    reports = _reports(ibis, table, collection)
    contents = _contents_of_ids(ibis, reports) if has_ids else reports
    found = _rows(_by_cell(ibis, contents))

    tally = Tally(collection)
    is_good = found["verdict"] == GOOD
    rows = found["row"][is_good]
    cols = found["col"][is_good]
    tally.add(rows, cols, np.zeros(len(rows), bool), found["number"][is_good])
    for reason, number in zip(found["verdict"][~is_good], found["number"][~is_good], strict=True):
        tally.rejected[reason] += int(number)
    tally.repeated = int(found["repeated"].sum())
    return tally.result(on_invalid, has_ids)


def _ibis() -> Any:
    try:
        import ibis  # noqa: PLC0415 (it is optional)
    except ImportError as error:
        raise InputError(
            "counting in a warehouse needs ibis-framework: install ldpspatial[spark]"
        ) from error
    return ibis


def _check_columns(table: Any) -> None:
    kinds = dict(table.schema().items())
    for column in ("row", "col"):
        if column not in kinds:  # what is held instead is not repeated: it may be positions
            raise InputError(f"table must have the columns row and col, it has no {column}")
        _check_kind(column, kinds[column].is_integer(), "whole numbers", kinds[column])
    if "id" in kinds:
        kind = kinds["id"]
        is_id = kind.is_binary() or kind.is_string() or kind.is_uuid()
        _check_kind("id", is_id, "16 bytes or 32 hexadecimal digits", kind)
    if "collection" in kinds:
        kind = kinds["collection"]
        _check_kind("collection", kind.is_string(), "digests as text", kind)


def _check_kind(column: str, is_right: bool, content: str, kind: object) -> None:
    if not is_right:
        raise InputError(f"column {column} of the table must hold {content}, holds {kind}")


def _reports(ibis: Any, table: Any, collection: Collection) -> Any:
    """Return the reports with the columns that a verdict is based on."""
    digest = collection.digest
    columns = {name: _whole(table[name]) for name in ("row", "col")}
    columns["is_foreign"] = ibis.literal(False)
    columns["owner"] = ibis.literal(digest)
    if "collection" in table.columns:
        columns["owner"] = table["collection"].fill_null(digest)
        columns["is_foreign"] = columns["owner"] != digest
    if "id" in table.columns:  # hexadecimal digits may be of either case
        column = table["id"]
        columns["id"] = column.lower() if column.type().is_string() else column
    known = {"is_unnamed": False, "is_conflicting": False, "number": 1, "repeated": 0}
    reports = table.select(**columns, **{name: ibis.literal(held) for name, held in known.items()})
    is_outside = ~reports.is_foreign & ~_is_output(ibis, reports.row, reports.col, collection)
    return reports.mutate(is_outside=is_outside)


def _whole(column: Any) -> Any:
    """Return whole numbers of 64 bits; what is none, or larger, lies outside every domain."""
    is_large = column.type().is_unsigned_integer() and column.type().nbytes == 8
    return (column.try_cast("int64") if is_large else column.cast("int64")).fill_null(NOWHERE)


def _is_output(ibis: Any, row: Any, col: Any, collection: Collection) -> Any:
    """Tell which cells a report may name, as ``ResponseTable.is_output`` does."""
    table = collection.table
    low = -table.radius
    high = table.cells + table.radius - 1
    is_near = row.between(low, high) & col.between(low, high)
    # Of what is far, the negative or the place among the half widths might not be there.
    near_row, near_col = is_near.ifelse(row, 0), is_near.ifelse(col, 0)
    rows_off, cols_off = (
        ibis.greatest(-near, near - (table.cells - 1), 0) for near in (near_row, near_col)
    )
    half_widths = ibis.array(list(table.half_widths))
    return is_near & (cols_off <= half_widths[rows_off.cast("int32")])  # Spark takes no larger one


def _contents_of_ids(ibis: Any, reports: Any) -> Any:
    """Return a row for each id of each collection: what its reports say, and how many they are.

    Ids of another collection are its own: an id of ours that looks like one is not the same. So
    are those of reports outside the domain, which contradict none inside.
    """
    name = ["owner", "is_foreign", "is_outside", "id"]
    contents = reports.group_by([*name, "row", "col"]).agg(copies=ibis._.count())
    ids = contents.group_by(name).agg(
        different=ibis._.count(),
        copies=ibis._.copies.sum(),
        row=ibis._.row.min(),
        col=ibis._.col.min(),
    )
    # All reports without an id stand in one row; each of them is left out by itself.
    is_unnamed = ids.id.isnull()
    number = is_unnamed.ifelse(ids.copies, ids.different)
    return ids.mutate(
        is_unnamed=is_unnamed,
        is_conflicting=ids.different > 1,
        number=number,
        repeated=ids.copies - number,
    )


def _by_cell(ibis: Any, contents: Any) -> Any:
    """Return how many reports have each verdict, and the good ones by cell.

    The cells of all others are one, or forged ones would make as many rows as reports.
    """
    verdict = ibis.cases(
        (contents.is_unnamed, UNNAMED),
        (contents.is_outside, OUTSIDE),
        (contents.is_conflicting, CONFLICTING),
        (contents.is_foreign, FOREIGN),
        else_=GOOD,
    )
    judged = contents.mutate(verdict=verdict)
    is_good = judged.verdict == GOOD
    return (
        judged.mutate(row=is_good.ifelse(judged.row, 0), col=is_good.ifelse(judged.col, 0))
        .group_by(["verdict", "row", "col"])
        .agg(number=ibis._.number.sum(), repeated=ibis._.repeated.sum())
    )


def _rows(query: Any) -> dict[str, Any]:
    """Return the columns that a query finds, whole numbers as int64 arrays."""
    try:
        found = query.to_pyarrow()
    except Exception as error:  # each engine has errors of its own
        # Its text is not repeated: it may quote what the table holds, and so positions.
        raise InputError(
            f"table must be readable, but its engine raised {type(error).__name__}: "
            "see that the table can be read without ldpspatial"
        ) from None
    whole = {
        name: found.column(name).to_numpy().astype(np.int64)
        for name in ("row", "col", "number", "repeated")
    }
    return {**whole, "verdict": np.array(found.column("verdict").to_pylist(), object)}
