"""Files of reports, read back with the readers that others would use."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from client_sdk import Collection
from ldpspatial.collecting import report_files
from ldpspatial.collecting.counting import count_reports
from ldpspatial.collecting.report_files import write_reports
from ldpspatial.errors import InputError
from tests.support.results import CITY


def reports(n: int, seed: int = 1) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
    """Return n reports spread evenly over the output domain of CITY."""
    rng = np.random.default_rng(seed)
    cells = np.array(list(CITY.table.output_cells()))
    chosen = cells[rng.integers(0, len(cells), n)]
    return chosen[:, 0], chosen[:, 1], rng.integers(0, 256, (n, 16), dtype=np.uint8)


def test_parquet_reports_read_back_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_files, "ROW_GROUP", 400)
    rows, cols, ids = reports(1000)
    write_reports(tmp_path / "reports.parquet", CITY, rows, cols, ids)
    file = pq.ParquetFile(tmp_path / "reports.parquet")
    groups = [file.metadata.row_group(k) for k in range(file.num_row_groups)]
    assert [group.num_rows for group in groups] == [400, 400, 200]
    assert {groups[0].column(k).compression for k in range(4)} == {"ZSTD"}
    table = file.read()
    kinds = {"id": pa.binary(16), "row": pa.int32(), "col": pa.int32()}
    for name, kind in kinds.items():
        assert table.schema.field(name).type == kind
    assert pa.types.is_dictionary(table.schema.field("collection").type)
    assert table.column("id").to_pylist() == [bytes(key) for key in ids]
    np.testing.assert_array_equal(table.column("row"), rows)
    np.testing.assert_array_equal(table.column("col"), cols)
    assert set(table.column("collection").to_pylist()) == {CITY.digest}


def test_csv_reports_read_back_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_files, "ROW_GROUP", 400)
    rows, cols, ids = reports(1000)
    write_reports(tmp_path / "reports.csv", CITY, rows, cols, ids)
    table = pa_csv.read_csv(tmp_path / "reports.csv")
    assert table.column_names == ["id", "row", "col", "collection"]
    assert table.column("id").to_pylist() == [bytes(key).hex() for key in ids]
    np.testing.assert_array_equal(table.column("row"), rows)
    np.testing.assert_array_equal(table.column("col"), cols)
    assert set(table.column("collection").to_pylist()) == {CITY.digest}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_written_reports_can_be_counted(tmp_path: Path, suffix: str) -> None:
    rows, cols, ids = reports(1000)
    write_reports(tmp_path / f"reports{suffix}", CITY, rows, cols, ids)
    counted = count_reports(tmp_path / f"reports{suffix}", CITY)
    b = CITY.table.radius
    expected = np.zeros_like(counted.counts)
    np.add.at(expected, (rows + b, cols + b), 1)
    np.testing.assert_array_equal(counted.counts, expected)
    assert counted.ids_checked
    assert not counted.rejected


@pytest.mark.parametrize("radius", [0, 1, 3, 9])
@pytest.mark.filterwarnings("ignore::client_sdk.DesignWarning")
def test_reports_outside_the_output_domain_are_refused(tmp_path: Path, radius: int) -> None:
    collection = Collection.create("test", CITY.grid, 3.5, radius=radius)
    table = collection.table
    reach = range(-radius - 3, table.cells + radius + 3)
    cells = [(row, col) for row in reach for col in reach]
    rows, cols = np.array(cells).T
    ids = np.zeros((len(cells), 16), np.uint8)
    inside = np.array([table.is_output(row, col) for row, col in cells])
    with pytest.raises(InputError, match=f"but {(~inside).sum()} of {len(cells)} do not"):
        write_reports(tmp_path / "reports.csv", collection, rows, cols, ids)
    write_reports(
        tmp_path / "reports.csv", collection, rows[inside], cols[inside], ids[: inside.sum()]
    )
    for k in np.flatnonzero(~inside):
        with pytest.raises(InputError, match="but 1 of 1 do not"):
            write_reports(
                tmp_path / "reports.csv", collection, rows[k : k + 1], cols[k : k + 1], ids[:1]
            )


def test_reports_of_a_wrong_form_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    rows, cols, ids = reports(3)
    with pytest.raises(InputError, match=r"path must end in \.parquet or \.csv"):
        write_reports(tmp_path / "reports.json", CITY, rows, cols, ids)
    with pytest.raises(InputError, match=r"rows must be .* whole numbers .*, got float64"):
        write_reports(path, CITY, rows / 2, cols, ids)
    with pytest.raises(InputError, match="rows and cols must have one length, got 3 and 2"):
        write_reports(path, CITY, rows, cols[:2], ids)
    with pytest.raises(InputError, match="rows must hold at least one report"):
        write_reports(path, CITY, rows[:0], cols[:0], ids[:0])
    for wrong in (ids[:2], ids[:, :15], ids.astype(np.int64)):
        with pytest.raises(InputError, match=r"ids must be a uint8 array of shape \(3, 16\)"):
            write_reports(path, CITY, rows, cols, wrong)
    assert not list(tmp_path.iterdir())


def test_a_writer_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reports.parquet"
    rows, cols, ids = reports(3)
    write_reports(path, CITY, rows, cols, ids)
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(pa, "record_batch", fail)
    with pytest.raises(MemoryError):
        write_reports(path, CITY, rows, cols, ids)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["reports.parquet"]
