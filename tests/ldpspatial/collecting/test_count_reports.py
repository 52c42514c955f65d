"""Counting reports from files: the good ones all, the bad ones by reason."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from client_sdk import Collection, Grid, kernels
from ldpspatial import InputError, count_cells, count_reports
from ldpspatial.collecting import counting, repeated_ids
from ldpspatial.collecting.report_files import write_reports

COLLECTION = Collection.create("test", Grid.plane(0, 0, 1, 5), 3.5)
OTHER = Collection.create("another", Grid.plane(0, 0, 1, 5), 3.5)
N = 500


def reports(seed: int = 0, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows, cols = kernels.draw_many(COLLECTION.table, *rng.integers(0, 5, (2, n)), rng.bytes)
    return rows, cols, rng.integers(0, 256, (n, 16), np.uint8)


def table(rows: list[int], cols: list[int], **columns: list[object]) -> pa.Table:
    return pa.table({"row": rows, "col": cols, **columns})


def write(table: pa.Table, path: Path) -> Path:
    writer = pq.write_table if path.suffix == ".parquet" else pa_csv.write_csv
    writer(table, path)
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_what_was_written_is_counted(tmp_path: Path, suffix: str) -> None:
    rows, cols, ids = reports()
    write_reports(tmp_path / f"r{suffix}", COLLECTION, rows, cols, ids)
    counted = count_reports(tmp_path / f"r{suffix}", COLLECTION)
    assert np.array_equal(counted.counts, count_cells(COLLECTION, rows, cols))
    assert (counted.n, counted.rejected, counted.ids_checked) == (N, {}, True)


def test_several_files_add_up_and_plain_columns_are_enough(tmp_path: Path) -> None:
    files = [write(table([0, 1], [2, 2]), tmp_path / f"{k}.parquet") for k in range(3)]
    counted = count_reports(files, COLLECTION)
    assert (counted.n, counted.ids_checked) == (6, False)


@pytest.mark.parametrize("limit", [10**6, 50])
def test_bad_reports_are_refused_or_left_out_by_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(repeated_ids, "HELD", limit)  # 50: most ids lie in files
    rows, cols, ids = reports()
    write_reports(tmp_path / "good.parquet", COLLECTION, rows, cols, ids)
    extra = reports(1, 5)
    write_reports(tmp_path / "again.parquet", COLLECTION, rows[:7], cols[:7], ids[:7])
    write_reports(tmp_path / "foreign.parquet", OTHER, *extra)
    files = [tmp_path / f"{name}.parquet" for name in ("good", "again", "foreign")]
    with pytest.raises(InputError, match=r"must all be good, but 5 name another collection \("):
        count_reports(files, COLLECTION)
    counted = count_reports(files, COLLECTION, on_invalid="drop")
    assert (counted.n, counted.rejected, counted.repeated) == (N, {counting.FOREIGN: 5}, 7)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_report_that_came_again_counts_once_without_being_told_to(
    tmp_path: Path, suffix: str
) -> None:
    rows, cols, ids = reports()
    for name, part in (("first", slice(None)), ("again", slice(9)), ("and again", slice(5, 8))):
        write_reports(tmp_path / f"{name}{suffix}", COLLECTION, rows[part], cols[part], ids[part])
    counted = count_reports(list(tmp_path.iterdir()), COLLECTION)
    assert np.array_equal(counted.counts, count_cells(COLLECTION, rows, cols))
    assert (counted.n, counted.rejected, counted.repeated) == (N, {}, 12)


def test_without_ids_nothing_is_a_repeat(tmp_path: Path) -> None:
    counted = count_reports(write(table([0, 0], [0, 0]), tmp_path / "r.csv"), COLLECTION)
    assert (counted.n, counted.repeated, counted.ids_checked) == (2, 0, False)


def test_an_id_with_two_contents_counts_for_neither(tmp_path: Path) -> None:
    ids = ["a" * 32, "A" * 32, "b" * 32]  # the case of the digits makes no difference
    file = write(table([0, 1, 2], [0, 0, 0], id=ids), tmp_path / "r.csv")
    with pytest.raises(InputError, match="2 share an id with a different report"):
        count_reports(file, COLLECTION)
    counted = count_reports(file, COLLECTION, on_invalid="drop")
    assert counted.n == 1
    assert counted.rejected == {counting.CONFLICTING: 2}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_what_lies_outside_contradicts_no_report(tmp_path: Path, suffix: str) -> None:
    """As where a service refuses it at once."""
    ids = ["a" * 32, "a" * 32, "a" * 32, "b" * 32, "b" * 32, "c" * 32, "c" * 32]
    cells = [0, 99, 99, 1, 2, 88, 99]
    file = write(table(cells, [0] * 7, id=ids), tmp_path / f"r{suffix}")
    counted = count_reports(file, COLLECTION, on_invalid="drop")
    assert (counted.n, counted.repeated) == (1, 1)
    assert counted.rejected == {counting.OUTSIDE: 3, counting.CONFLICTING: 2}


def test_cells_outside_the_output_domain(tmp_path: Path) -> None:
    file = write(table([0, 99, None], [0, 0, 0]), tmp_path / "r.parquet")
    with pytest.raises(InputError, match="2 name a cell outside the output domain"):
        count_reports(file, COLLECTION)
    assert count_reports(file, COLLECTION, on_invalid="drop").rejected == {counting.OUTSIDE: 2}


def test_a_file_name_is_no_pattern(tmp_path: Path) -> None:
    write(table([0], [0]), tmp_path / "day1.parquet")
    own = write(table([1, 1], [1, 1]), tmp_path / "day[1].parquet")
    quoted = write(table([1], [1]), tmp_path / "it's *.parquet")
    assert count_reports([own, quoted], COLLECTION).n == 3


def test_a_fraction_late_in_a_csv_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("row,col\n" + "0,0\n" * 30_000 + "2.5,0\n")
    with pytest.raises(InputError, match="whole numbers"):
        count_reports(file, COLLECTION)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.parquet", None, "found none"),
        ("r.txt", "row,col\n0,0\n", "must be .parquet files"),
        ("empty.csv", "", "empty"),
        ("header.csv", "row,col\n", "at least one good report"),
        ("columns.csv", "a,b\n1,2\n", "columns row and col"),
        ("text.csv", "row,col\nx,0\n", "whole number|must hold"),
        ("damaged.parquet", "PAR1 no parquet at all", "cannot be read"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        count_reports(tmp_path / name, COLLECTION)


def test_nothing_is_left_behind_or_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(table([0], [0]), tmp_path / "r.parquet")
    count_reports("r.parquet", COLLECTION)
    assert os.listdir(tmp_path) == ["r.parquet"]
    assert capfd.readouterr().out == ""
