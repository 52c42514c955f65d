"""read_points: every way of getting it wrong is named, and no message repeats a coordinate."""

import gzip
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpspatial.errors import InputError
from ldpspatial.files.points import read_points
from tests.support.files import write_file

PRIVATE = "41.8781"  # the position that no message may repeat


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("lat,lon\n", "only a header"),
        ("lat,lon", "only a header"),
        ("lat,lon\n\n\n", "only a header"),
        (f"lat,name\n{PRIVATE},a\n", r"lon must name a column here: no column .* lat, name"),
        (f"lat,latitude,lon\n{PRIVATE},1,2\n", "lat must name a column here: several columns"),
        (f"lat,lat,lon\n{PRIVATE},1,2\n", "lat must name a column here: several columns"),
        (
            f"{PRIVATE},-87.6298\n{PRIVATE},2\n",
            r"\(hidden\), \(hidden\); is the line with the column",
        ),
        (f"a,,lon\n1,{PRIVATE},2\n", r"columns a, \(no name\), lon$"),
        (f"{PRIVATE} -87.6298\n{PRIVATE} 2\n", r"columns \(hidden\)"),
        (f"41,8781;-87,6298\n{PRIVATE} 2\n", r"columns \(hidden\)"),
        (f"POINT({PRIVATE} 3)\n{PRIVATE}\n", r"columns \(hidden\)"),
        (
            f"lat,lon\n1,2\n{PRIVATE}N,2\nx{PRIVATE},2\n",
            r"'lat' must hold numbers.* 2 of 3 .*row 2",
        ),
        (f"lat,lon\n1,2\n3,4_{PRIVATE}\n", r"'lon' must hold numbers.* 1 of 2 .*row 2\) is text"),
        (f'lat;lon\n"41,8781";2\n{PRIVATE};2\n', r"with a decimal point: 1 of 2 .*row 1"),
        (f"lat,lon\n{PRIVATE},2\n{PRIVATE}\n3,4\n", r"2 fields in every row, but 1 rows .*row 2\)"),
        (f"lat,lon\n{PRIVATE},2\n{PRIVATE},2,9\n{PRIVATE}\n", r"but 2 rows .*first: row 2\)"),
        (f"lat,lon\n{PRIVATE},2,9\n", r"but 1 rows .*first: row 1\)"),
        (f"lat,lon\n{PRIVATE},inf\n1,-Infinity\n", r"'lon' must be finite: 2 of 2 .*row 1"),
        (f"lat,lon\n{PRIVATE},1\n1e400,2\n", r"'lat' must be finite: 1 of 2 .*row 2"),
        (
            f"lat,lon\n{PRIVATE},1\n\n9{PRIVATE},1\n",
            r"latitude from -90 to 90: 1 of 2 .*row 2.*swapped",
        ),
        (f"lat,lon\n{PRIVATE},36{PRIVATE}\n", r"longitude from -360 to 360: 1 of 1"),
        (f'lat,lon\n1,"{PRIVATE}\n{PRIVATE},2\n', r"'lon' must hold numbers.* 1 of 1"),
        (f'lat,lon\n1,"{PRIVATE}\n' + f"{PRIVATE},2\n" * 150_000, "a double quote that is never"),
        (f'lat,lon\n1,2\n1,"{PRIVATE}\n' + f"{PRIVATE},2\n" * 400_000, "a double quote that is"),
        (f"lat,lon\n{PRIVATE},2\n".encode("utf-16"), "must be a table in UTF-8 text"),
        (f"lat,lon\n{PRIVATE},\n,2\n", "must be filled in every row"),
    ],
)
def test_bad_tables_are_named_without_repeating_a_coordinate(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    path = write_file(tmp_path, "a.csv", content)
    with pytest.raises(InputError, match=message) as caught:
        read_points(path)
    error: BaseException | None = caught.value
    while error is not None:  # what a crash report would print, the causes included
        assert "8781" not in str(error)
        error = None if error.__suppress_context__ else error.__context__


def test_all_rows_missing_leaves_no_positions(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", "lat,lon\n1,\n,2\n")
    with pytest.raises(InputError, match="all 2 rows have an empty cell"):
        read_points(path, on_missing="drop")


def test_row_numbers_of_a_long_file_are_those_of_the_file(tmp_path: Path) -> None:
    rows = ["1.25,2.5"] * 200_000  # several blocks of the parser
    for at, wrong in ((170_000, "1"), (160_000, "x,1"), (150_000, "1,")):
        path = write_file(tmp_path, "a.csv", "\n".join(["lat,lon", *rows[:at], wrong, *rows[at:]]))
        with pytest.raises(InputError, match=rf"first: row {at + 1}\)"):
            read_points(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", "which does not exist"),
        ("folder.csv", "which is a folder"),
        ("a.xlsx", r"must end in one of \.csv, .*\.pq, got 'a.xlsx'"),
        ("a.csv.zip", "must end in one of"),
        ("a.txt", "must end in one of"),
        ("damaged.csv.gz", "must be a table in gzipped UTF-8 text"),
        ("cut.csv.gz", "cannot be read to its end"),
        ("damaged.parquet", "must be a Parquet file"),
        ("empty.parquet", "is empty"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    for file in ("a.xlsx", "a.csv.zip", "a.txt", "damaged.csv.gz", "damaged.parquet"):
        (tmp_path / file).write_bytes(b"lat,lon\n1,2\n")
    rows = "".join(f"{i},{i}\n" for i in np.random.default_rng(3).random(50_000))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(f"lat,lon\n{rows}".encode())[:-5000])
    (tmp_path / "empty.parquet").touch()
    with pytest.raises(InputError, match=message):
        read_points(tmp_path / name)


def test_a_parquet_file_cut_in_its_data_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"lat": np.random.default_rng(4).random(10_000), "lon": [1.0] * 10_000})
    pq.write_table(table, path, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:4000] = bytes(3996)
    path.write_bytes(data)
    with pytest.raises(InputError, match="cannot be read to its end"):
        read_points(path)


def test_bad_columns_and_parameters_are_named(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", "lat,lon,Twin,twin \n1,2,3,4\n")
    with pytest.raises(InputError, match=r"lat must name one column, got 'north'.*lat, lon, Twin"):
        read_points(path, lat="north")
    with pytest.raises(InputError, match=r"user must name one column, got 'who'"):
        read_points(path, user="who")
    with pytest.raises(InputError, match=r"got 'TWIN': 2 columns have this name"):
        read_points(path, lat="TWIN")
    with pytest.raises(InputError, match=r"lat and lon must name two columns, got 'lon' for both"):
        read_points(path, lat="lon")
    with pytest.raises(InputError, match=r"on_missing must be one of error, drop, got 'skip'"):
        read_points(path, on_missing="skip")


def test_parquet_columns_of_other_kinds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {"lat": [date(2020, 1, 2)], "lon": [1.0], "list": [[1.0]], "flag": [True]}
    pq.write_table(pa.table(columns), path)
    for name in ("lat", "list", "flag"):
        with pytest.raises(InputError, match=f"'{name}' must be a column of numbers, got one of"):
            read_points(path, lat=name)
    pq.write_table(pa.table({"lat": [1.0], "lon": [2.0], "list": [["a"]]}), path)
    with pytest.raises(InputError, match="user must be a column of labels"):
        read_points(path, user="list")


def test_an_empty_parquet_table_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"lat": pa.array([], pa.float64()), "lon": pa.array([], pa.null())}), path
    )
    with pytest.raises(InputError, match="must hold rows"):
        read_points(path)


def test_whole_numbers_beyond_those_of_floats_are_outside_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"lat": [1, 2**60 + 8781], "lon": [2.0, 3.0]}), path)
    with pytest.raises(InputError, match=r"latitude from -90 to 90: 1 of 2 .*row 2") as caught:
        read_points(path)
    assert str(2**60 + 8781) not in str(caught.value)
