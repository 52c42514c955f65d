"""Files of reports as they come: all of them read, or refused, and nothing else touched."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from ldpspatial import InputError, count_reports
from ldpspatial.collecting import repeated_ids
from tests.support.report_files import COLLECTION, counted, csv, parquet, refusal


@pytest.mark.parametrize("name", ["a'b [1] *.parquet", "what?.csv", "[a-z].csv.gz", "é ü.csv"])
def test_a_name_means_one_file(tmp_path: Path, name: str) -> None:
    text = "row,col\n4,4\n"
    for other in ("a'b 1 z.parquet", "a'b [1] z.parquet"):
        parquet(tmp_path / other, row=[4], col=[4])
    for other in ("whatx.csv", "b.csv.gz"):
        csv(tmp_path / other, text)
    for folder in (tmp_path, tmp_path / "[2026] *"):
        if name.endswith(".parquet"):
            file = parquet(folder / name, row=[1], col=[2])
        else:
            file = csv(folder / name, "row,col\n1,2\n")
        assert counted(file) == {(1, 2): 1}


def test_a_path_relative_to_the_working_directory_and_one_that_looks_remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv(tmp_path / "s3:" / "bucket" / "r.csv", "row,col\n1,2\n")
    csv(tmp_path / "~" / "r.csv", "row,col\n1,2\n")
    assert count_reports("s3://bucket/r.csv", COLLECTION).n == 1
    assert count_reports(Path("~/r.csv"), COLLECTION).n == 1


def test_folders_are_not_read_as_columns(tmp_path: Path) -> None:
    # Hive's way to store columns: DuckDB would take row, collection and id from the path.
    here = tmp_path / "row=4" / "collection=other" / "id=1"
    assert counted(csv(here / "r.csv", "row,col\n1,2\n1,2\n")) == {(1, 2): 2}
    assert counted(parquet(here / "r.parquet", row=[1, 1], col=[2, 2])) == {(1, 2): 2}
    assert not count_reports(here / "r.parquet", COLLECTION).ids_checked


def test_files_may_differ_in_the_order_and_size_of_their_columns(tmp_path: Path) -> None:
    ids = ["0" * 31 + str(k) for k in range(9)]
    first = parquet(tmp_path / "1.parquet", row=pa.array([-2], "int8"), col=[0], id=ids[:1])
    second = parquet(tmp_path / "2.parquet", id=ids[1:2], note=["x"], col=[3], row=[1])
    assert counted(first, second) == counted(second, first) == {(-2, 0): 1, (1, 3): 1}
    one = csv(tmp_path / "1.csv", f"row,col,id\n1,3,{ids[2]}\n")
    two = csv(tmp_path / "2.csv", f"col,note,row,id\n0,x,4,{ids[3]}\n")
    assert counted(one, two) == counted(two, one) == {(1, 3): 1, (4, 0): 1}


def test_csv_files_of_different_make_are_all_read(tmp_path: Path) -> None:
    # DuckDB takes the dialect of the first for all and drops files with other line ends.
    texts = ["row,col\n0,0\n", "row,col\r\n0,1\r\n", "col;row\r2;0", '\ufeff"row","col"\n"0","3"']
    texts.append("row\tcol\n\n0\t4\n\n")
    files = [csv(tmp_path / f"{k}.csv{k % 2 * '.gz'}", text) for k, text in enumerate(texts)]
    expected = {(0, k): 1 for k in range(5)}
    assert counted(*files) == counted(*files[::-1]) == expected


def test_hundreds_of_files_add_up(tmp_path: Path) -> None:
    files = [csv(tmp_path / f"{k}.csv", "row,col\n0,0\n") for k in range(300)]
    assert counted(*files) == {(0, 0): 300}
    files = [parquet(tmp_path / f"{k}.parquet", row=[0], col=[0]) for k in range(300)]
    assert counted(*files) == {(0, 0): 300}


@pytest.mark.parametrize("more", [{"id": ["0" * 32]}, {"collection": ["other"]}])
def test_files_with_other_columns_than_the_first_are_refused(
    tmp_path: Path, more: dict[str, list[str]]
) -> None:
    # DuckDB would leave out what only later files hold: the ids, or that reports are foreign.
    name, (value,) = next(iter(more.items()))
    plain = parquet(tmp_path / "1.parquet", row=[0], col=[0])
    named = parquet(tmp_path / "2.parquet", row=[0], col=[0], **more)
    for files in ((plain, named), (named, plain)):
        message = refusal(*files)
        assert "reports must have the same columns in all files" in message
        assert name in message
    plain = csv(tmp_path / "1.csv", "row,col\n0,0\n")
    named = csv(tmp_path / "2.csv", f"row,col,{name}\n0,0,{value}\n")
    for files in ((plain, named), (named, plain)):
        assert "reports must have the same columns in all files" in refusal(*files)


def test_ids_of_two_kinds_are_refused(tmp_path: Path) -> None:
    text = parquet(tmp_path / "1.parquet", row=[0], col=[0], id=["0" * 32])
    raw = parquet(tmp_path / "2.parquet", row=[0], col=[0], id=[bytes(16)])
    assert "'id': 'VARCHAR'" in refusal(text, raw)


def big_file(path: Path, n: int) -> tuple[Path, NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    cells = np.array(COLLECTION.table.output_cells())[
        rng.integers(0, COLLECTION.table.output_size, n)
    ]
    ids = [rng.bytes(16) for _ in range(n)]
    return parquet(path, row=cells[:, 0], col=cells[:, 1], id=ids), cells


def test_slices_together_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, cells = big_file(tmp_path / "r.parquet", 2_000)
    copy = pq.read_table(file).slice(100, 50)
    pq.write_table(copy, tmp_path / "copy.parquet")
    monkeypatch.setattr(repeated_ids, "HELD", 300)
    result = count_reports([file, tmp_path / "copy.parquet"], COLLECTION)
    assert (result.n, result.rejected, result.repeated) == (2_000, {}, 50)
    for (row, col), number in zip(*np.unique(cells, axis=0, return_counts=True), strict=True):
        assert result.counts[row + 2, col + 2] == number


def test_a_damaged_file_is_refused_or_counted_but_nothing_else_happens(tmp_path: Path) -> None:
    file, _ = big_file(tmp_path / "r.parquet", 300)
    data = file.read_bytes()
    rng = np.random.default_rng(2)
    refused = 0
    for k in range(60):
        broken = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            broken[place] ^= 1 << int(rng.integers(8))
        path = tmp_path / f"{k}.parquet"
        path.write_bytes(broken if k % 2 else data[: int(rng.integers(1, len(data)))])
        try:
            count_reports(path, COLLECTION, on_invalid="drop")
        except InputError:
            refused += 1
    assert refused >= 30


def test_nothing_is_left_where_files_are_spilled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    file, _ = big_file(tmp_path / "r.parquet", 100)
    count_reports(file, COLLECTION)
    refusal(csv(tmp_path / "r.csv", "row,col\nx,1\n"))
    assert list(spill.iterdir()) == []


def test_files_that_cannot_be_reports_are_refused(tmp_path: Path) -> None:
    good = csv(tmp_path / "good.csv", "row,col\n0,0\n")
    (tmp_path / "folder.parquet").mkdir()
    assert "reports must be a file, found none at" in refusal(tmp_path / "folder.parquet")
    assert "one is given twice" in refusal(good, tmp_path / "." / "good.csv")
    both = refusal(good, parquet(tmp_path / "r.parquet", row=[0], col=[0]))
    assert "reports must be .parquet files, or .csv and .csv.gz files" in both
    assert "got none" in refusal()
    assert "at least one good report" in refusal(
        parquet(tmp_path / "0.parquet", row=pa.array([], "int8"), col=pa.array([], "int8"))
    )
    assert "has no row" in refusal(parquet(tmp_path / "1.parquet", ROW=[0], col=[0]))
    assert "is empty" in refusal(csv(tmp_path / "0.csv", ""))
    (tmp_path / "bad.csv.gz").write_text("row,col\n0,0\n")
    assert "cannot be read" in refusal(tmp_path / "bad.csv.gz")
    with pytest.raises(InputError, match="reports must be a path or paths, got None"):
        count_reports(None, COLLECTION)  # type: ignore[arg-type]
