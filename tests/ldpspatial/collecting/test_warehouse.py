"""Counting in DuckDB and Spark, through Ibis: what count_reports and the slow way say."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client_sdk import Collection, Grid, Report, kernels
from ldpspatial import InputError, ReportCounts, count_reports
from ldpspatial.collecting import counting
from ldpspatial.collecting.warehouse import count_table
from tests.support import naive_counting
from tests.support.spark import missing, start_spark

# Ibis and Spark warn of themselves: of what pandas 4 will change, of sockets that they leave open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

COLLECTION = Collection.create("here", Grid.plane(0, 0, 1, 6), 2.0)
OTHER = Collection.create("there", COLLECTION.grid, 2.0)
FAR = 3_000_000_000  # a row that 32 bits do not hold
ID = pa.binary(16)

Open = Callable[[Path], Any]  # a folder of Parquet files as an ibis table


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if why := missing():
        pytest.skip(why)
    session = start_spark(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(params=["duckdb", "spark"])
def opened(request: pytest.FixtureRequest) -> Open:
    ibis = pytest.importorskip("ibis")
    if request.param == "duckdb":
        connection = ibis.duckdb.connect()
        return lambda folder: connection.read_parquet(str(folder / "*.parquet"))
    connection = ibis.pyspark.connect(request.getfixturevalue("spark"))
    return lambda folder: connection.read_parquet(str(folder))


def planted(n: int = 4000) -> pa.Table:
    """Return reports of all kinds, in random order, ids as 16 bytes."""
    rng = np.random.default_rng(3)
    rows, cols = kernels.draw_many(COLLECTION.table, *rng.integers(0, 6, (2, n)), rng.bytes)
    ids = rng.bytes(16 * n)
    names = [ids[16 * k : 16 * (k + 1)] for k in range(n)]
    sent = list(zip(names, rows.tolist(), cols.tolist(), [COLLECTION.digest] * n, strict=True))
    again = [sent[k] for k in rng.integers(0, n // 2, n // 4)]  # some three times and more
    moved = [(name, -row, col, digest) for name, row, col, digest in sent[: n // 10]]
    moved += [(name, row + 900, col, digest) for name, row, col, digest in sent[: n // 20]]
    # Ids of another collection are its own, with repeats and conflicts of their own.
    foreign = [(name, row, col, OTHER.digest) for name, row, col, _ in sent[n // 3 : n // 2]]
    foreign += foreign[:99] + [
        (name, row + 1, col, digest) for name, row, col, digest in foreign[:50]
    ]
    outside = [
        (rng.bytes(16), row, col, COLLECTION.digest) for row in (-40, FAR) for col in (0, 77)
    ]
    outside += outside[:1]
    reports = sent + again + moved + foreign + outside
    shuffled = [reports[k] for k in rng.permutation(len(reports))]
    columns = zip(("id", "row", "col", "collection"), zip(*shuffled, strict=True), strict=True)
    return pa.table({name: pa.array(held, ID if name == "id" else None) for name, held in columns})


def written(folder: Path, table: pa.Table, files: int = 3) -> Path:
    folder.mkdir(exist_ok=True)
    size = -(-len(table) // files)
    for k in range(files):
        pq.write_table(table.slice(k * size, size), folder / f"{k}.parquet")
    return folder


def in_hexadecimal(table: pa.Table) -> pa.Table:
    """Return the reports with ids as digits, some of them in upper case."""
    names = [name.as_py().hex() for name in table["id"]]
    digits = [name.upper() if k % 3 == 0 else name for k, name in enumerate(names)]
    return table.set_column(0, "id", pa.array(digits))


def assert_equal(found: ReportCounts, expected: ReportCounts) -> None:
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert found.counts.dtype == expected.counts.dtype
    assert found.rejected == expected.rejected
    assert (found.repeated, found.ids_checked) == (expected.repeated, expected.ids_checked)


@pytest.mark.parametrize("form", ["bytes", "digits", "no ids", "no collection", "wide", "cells"])
def test_a_table_counts_what_its_files_count(opened: Open, tmp_path: Path, form: str) -> None:
    table = planted()
    if form == "digits":
        table = in_hexadecimal(table)
    elif form == "wide":
        table = table.append_column("when", pa.array([0.5] * len(table)))
    table = table.drop_columns(
        {"no ids": ["id"], "no collection": ["collection"], "cells": ["id", "collection"]}.get(
            form, []
        )
    )
    folder = written(tmp_path / "reports", table)
    expected = count_reports(sorted(folder.iterdir()), COLLECTION, "drop")
    assert expected.n > 1000
    assert (expected.repeated > 800) == ("id" in table.column_names)
    assert (expected.rejected.get(counting.CONFLICTING, 0) > 400) == ("id" in table.column_names)
    assert_equal(count_table(opened(folder), COLLECTION, "drop"), expected)


def test_a_table_counts_what_the_slow_way_counts(opened: Open, tmp_path: Path) -> None:
    table = planted()
    folder = written(tmp_path / "reports", table)
    found = count_table(opened(folder), COLLECTION, "drop")
    reports = [  # the slow way takes no cell beyond those of a report
        Report(each["collection"], each["id"].hex(), min(each["row"], 1 << 20), each["col"])
        for each in table.to_pylist()
    ]
    counts, rejected, repeated = naive_counting.count(reports, COLLECTION)
    radius = COLLECTION.table.radius
    assert {
        (r - radius, c - radius): n for (r, c), n in np.ndenumerate(found.counts) if n
    } == counts
    words = {counting.CONFLICTING: "id", counting.FOREIGN: "collection", counting.OUTSIDE: "cell"}
    assert {words[reason]: n for reason, n in found.rejected.items()} == rejected
    assert found.repeated == repeated


def test_what_is_null_or_of_another_length_counts_as_in_files(opened: Open, tmp_path: Path) -> None:
    table = pa.table({
        "id": [None, None, None, "a" * 32, "a" * 32, "short", "SHORT", "", "b" * 32, "c" * 32, "d"],
        "row": [0, 0, 99, None, None, 1, 1, 2, 3, None, 0],
        "col": [0, 0, 0, 1, 1, 1, 1, 2, 3, 0, 0],
        "collection": [COLLECTION.digest, None, OTHER.digest, *[COLLECTION.digest] * 5, None,
                       OTHER.digest, ""],
    })  # fmt: skip
    folder = written(tmp_path / "reports", table, files=1)
    found = count_table(opened(folder), COLLECTION, "drop")
    assert_equal(found, count_reports(folder / "0.parquet", COLLECTION, "drop"))
    assert found.n == 3
    assert found.repeated == 2
    assert found.rejected == {counting.FOREIGN: 2, counting.OUTSIDE: 1, counting.UNNAMED: 3}


def test_every_cell_near_the_domain_is_judged_as_in_files(opened: Open, tmp_path: Path) -> None:
    """Each with the id of a report inside, so that a wrong verdict would be a conflict."""
    far = COLLECTION.table.cells + 2 * COLLECTION.table.radius
    cells = [(row, col) for row in range(-far, far) for col in range(-far, far)]
    cells += [(-(2**63), 0), (0, 2**63 - 1)]
    ids = [k.to_bytes(16, "big") for k in range(len(cells))]
    rows, cols = zip(*cells, *[(0, 0)] * len(cells), strict=True)
    reports = pa.table({"id": pa.array(ids * 2, ID), "row": rows, "col": cols})
    folder = written(tmp_path / "reports", reports)
    found = count_table(opened(folder), COLLECTION, "drop")
    assert_equal(found, count_reports(sorted(folder.iterdir()), COLLECTION, "drop"))
    inside = COLLECTION.table.output_size
    assert found.n == len(cells) - inside + 1  # (0, 0) came again, and was no conflict
    assert found.rejected == {
        counting.OUTSIDE: len(cells) - inside,
        counting.CONFLICTING: 2 * (inside - 1),
    }


def test_bad_reports_are_refused_unless_they_are_dropped(opened: Open, tmp_path: Path) -> None:
    folder = written(tmp_path / "reports", planted())
    with pytest.raises(InputError) as theirs:
        count_reports(sorted(folder.iterdir()), COLLECTION)
    with pytest.raises(InputError) as ours:
        count_table(opened(folder), COLLECTION)
    assert str(ours.value) == str(theirs.value)
    third = Collection.create("nowhere", COLLECTION.grid, 2.0)
    with pytest.raises(InputError, match="must hold at least one good report, got none"):
        count_table(opened(folder), third, "drop")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"lat": [1.5], "col": [0]}, "must have the columns row and col, it has no row"),
        ({"row": [0]}, "must have the columns row and col, it has no col"),
        ({"row": [0.5], "col": [0]}, "column row of the table must hold whole numbers, holds"),
        ({"row": [0], "col": ["0"]}, "column col of the table must hold whole numbers, holds"),
        ({"row": [0], "col": [0], "id": [7]}, "column id of the table must hold 16 bytes or 32"),
        ({"row": [0], "col": [0], "collection": [7]}, "column collection of the table must hold"),
    ],
)
def test_a_table_of_other_columns_is_refused(
    opened: Open, tmp_path: Path, columns: dict[str, list[object]], message: str
) -> None:
    folder = written(tmp_path / "reports", pa.table(columns), files=1)
    with pytest.raises(InputError, match=message):
        count_table(opened(folder), COLLECTION)


def test_what_the_engine_says_is_not_repeated(opened: Open, tmp_path: Path) -> None:
    folder = written(tmp_path / "reports", pa.table({"row": [0], "col": [0], "at": ["48.137 N"]}))
    table = opened(folder)
    with pytest.raises(InputError, match="table must be readable, but its engine raised") as told:
        count_table(table.mutate(row=table["at"].cast("int64")), COLLECTION)
    assert "48.137" not in str(told.value)
    assert told.value.__suppress_context__


def test_numbers_beyond_64_bits_lie_outside(tmp_path: Path) -> None:
    ibis = pytest.importorskip("ibis")
    huge = pa.array([2**63 + 1, 2**63 + 2, 1], pa.uint64())
    folder = written(tmp_path / "r", pa.table({"row": huge, "col": [0, 0, 1]}), files=1)
    table = ibis.duckdb.connect().read_parquet(str(folder / "0.parquet"))
    expected = count_reports(folder / "0.parquet", COLLECTION, "drop")
    assert expected.rejected == {counting.OUTSIDE: 2}
    assert_equal(count_table(table, COLLECTION, "drop"), expected)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ibis", None)
    with pytest.raises(InputError, match=r"needs ibis-framework: install ldpspatial\[spark\]"):
        count_table(None, COLLECTION)  # type: ignore[arg-type]
