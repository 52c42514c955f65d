"""read_points: every way of writing the same points gives the same points."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client_sdk.grid import PLANE_LIMIT
from ldpspatial.errors import InputError
from ldpspatial.files.points import read_points
from ldpspatial.places.points import Points
from tests.support.files import write_file

EXPECTED = [[48.125, 11.5], [-33.75, -70.25]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "lat,lon\n48.125,11.5\n-33.75,-70.25\n"),
        ("a.csv", "lat,lon\n48.125,11.5\n-33.75,-70.25"),
        ("a.csv.gz", "lat,lon\n48.125,11.5\n-33.75,-70.25\n"),
        ("A.CSV.GZ".lower(), "lat,lon\n48.125,11.5\n-33.75,-70.25\n"),
        ("a.CSV", "lat,lon\n48.125,11.5\n-33.75,-70.25\n"),
        ("a.tsv", "lat\tlon\n48.125\t11.5\n-33.75\t-70.25\n"),
        ("a.tsv.gz", "lat\tlon\n48.125\t11.5\n-33.75\t-70.25\n"),
        ("a.csv", "lat;lon\n48.125;11.5\n-33.75;-70.25\n"),
        ("a.csv", "lat\tlon\n48.125\t11.5\n-33.75\t-70.25\n"),
        ("a.csv", "\ufefflat,lon\r\n48.125,11.5\r\n-33.75,-70.25\r\n"),
        ("a.csv", "lat,lon\r48.125,11.5\r-33.75,-70.25\r"),
        ("a.csv", '"lat","lon"\n"48.125","11.5"\n"-33.75","-70.25"\n'),
        ("a.csv", '"lat";"lon"\n"48.125";"11.5"\n"-33.75";"-70.25"\n'),
        ("a.csv", " lat , lon\n 48.125 , 11.5\n-33.75, -70.25\n"),
        ("a.csv", "\n\nlat,lon\n\n48.125,11.5\n\n-33.75,-70.25\n\n"),
        ("a.csv", "LAT,Lon,note\n48.125,11.5,a\n-33.75,-70.25,b\n"),
        ("a.csv", 'note,lon,lat\n"a, ""b""\nc",11.5,48.125\n,-70.25,-33.75\n'),
        ("a.csv", '"two\nlines",lon,lat\nx,11.5,48.125\ny,-70.25,-33.75\n'),
        ("a.csv", "lat,lon,lat lon,lat lon\n48.125,11.5,1,2\n-33.75,-70.25,3,4\n"),
        ("a.csv", "lat,lon\n48.125,11.5,\n-33.75,-70.25,\n"),
        ("a.csv", "lat,lon,,\n48.125,11.5\n-33.75,-70.25\n"),
        ("a.csv", "lat,lon\n+48.125,1.15e1\n-3375e-2,-70.25\n"),
        ("a.csv", b"caf\xe9,lat,lon\n\xe9,48.125,11.5\n\xe9,-33.75,-70.25\n"),
    ],
)
def test_text_tables_of_every_dialect_give_the_same_points(
    tmp_path: Path, name: str, content: str | bytes
) -> None:
    points = read_points(write_file(tmp_path, name, content))
    assert points.coordinates.tolist() == EXPECTED
    assert points.coordinates.dtype == np.float64
    assert points.users is None
    assert points.dropped == 0
    assert len(points) == 2


@pytest.mark.parametrize(
    ("lat", "lon"),
    [
        ("lat", "lon"),
        ("Latitude", "Longitude"),
        ("y", "x"),
        ("LAT", "LNG"),
        ("latitude", "long"),
        ("Pickup_latitude", " pickup_longitude"),
        ("start_lat", "start_lng"),
    ],
)
def test_common_column_names_are_found_without_being_named(
    tmp_path: Path, lat: str, lon: str
) -> None:
    path = write_file(
        tmp_path, "a.csv", f"id,{lon},{lat},drop_lat\n7,11.5,48.125,1\n8,-70.25,-33.75,2\n"
    )
    assert read_points(path).coordinates.tolist() == EXPECTED


def test_named_columns_go_before_the_usual_ones(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", "lat,lon,Lat,north,east\n1,2,3,48.125,11.5\n")
    assert read_points(path, "north", "east").coordinates.tolist() == EXPECTED[:1]
    assert read_points(path, lat="lat").coordinates.tolist() == [[1, 2]]
    assert read_points(path, lat="Lat").coordinates.tolist() == [[3, 2]]


@pytest.mark.parametrize(
    "kind",
    [
        pa.float64(),
        pa.float32(),
        pa.string(),
        pa.large_string(),
        pa.dictionary(pa.int8(), pa.utf8()),
    ],
)
def test_parquet_columns_of_numbers_or_their_text_are_read(
    tmp_path: Path, kind: pa.DataType
) -> None:
    columns = np.array(EXPECTED).T
    text = kind not in (pa.float64(), pa.float32())
    cells = [[repr(v) if text else v for v in column.tolist()] for column in columns]
    path = tmp_path / "a.parquet"
    table = pa.table({"lat": pa.array(cells[0]).cast(kind), "lon": pa.array(cells[1]).cast(kind)})
    pq.write_table(table, path)
    assert read_points(path).coordinates.tolist() == EXPECTED


def test_parquet_integers_decimals_and_missing_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.pq"
    pq.write_table(pa.table({"y": [4, None, 6], "x": [Decimal("1.25"), Decimal(2), None]}), path)
    with pytest.raises(InputError, match=r"2 of 3 rows.*first: row 2"):
        read_points(path)
    points = read_points(path, on_missing="drop")
    assert points.coordinates.tolist() == [[4, 1.25]]
    assert points.dropped == 2


def test_only_the_wanted_columns_of_a_parquet_file_are_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"lat": [1.0], "lon": [2.0], "lat.lon": [3.0], "other": [[4, 5]]})
    pq.write_table(table, path)
    assert read_points(path).coordinates.tolist() == [[1, 2]]
    assert read_points(path, lat="lat.lon").coordinates.tolist() == [[3, 2]]


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(
        st.tuples(st.floats(-90, 90), st.floats(-180, 180), st.integers(0, 4)), min_size=1
    ),
    suffix=st.sampled_from(["csv", "tsv.gz", "parquet"]),
)
def test_written_points_come_back_bit_for_bit(
    tmp_path: Path, rows: list[tuple[float, float, int]], suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        lat, lon, user = zip(*rows, strict=True)
        pq.write_table(pa.table({"lat": lat, "lon": lon, "user": user}), path)
    else:
        mark = "," if suffix == "csv" else "\t"
        lines = [mark.join(("lat", "lon", "user")), *(mark.join(map(repr, row)) for row in rows)]
        write_file(tmp_path, path.name, "\n".join(lines))
    points = read_points(path, user="user")
    assert np.array_equal(points.coordinates, [row[:2] for row in rows])
    first_seen = list(dict.fromkeys(row[2] for row in rows))
    assert points.users is not None
    assert points.users.tolist() == [first_seen.index(row[2]) for row in rows]


@pytest.mark.parametrize("labels", [["b", "a", "b", "ü"], ["7", "1", "7", "007"], [7, 1, 7, 3]])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_users_get_codes_in_the_order_of_their_first_row(
    tmp_path: Path, labels: list[object], suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.table({"lat": [1.0] * 4, "lon": [2.0] * 4, "who": labels}), path)
    else:
        write_file(tmp_path, path.name, "lat,lon,who\n" + "".join(f"1,2,{who}\n" for who in labels))
    points = read_points(path, user="who")
    assert points.users is not None
    assert points.users.dtype == np.int64
    assert points.users.tolist() == [0, 1, 0, 2]


def test_codes_agree_across_the_chunks_of_a_long_file(tmp_path: Path) -> None:
    users = np.arange(150_000) % 977
    path = write_file(
        tmp_path, "a.csv", "lat,lon,user\n" + "".join(f"1.5,2.5,u{u}\n" for u in users)
    )
    points = read_points(path, user="user")
    assert points.users is not None
    assert np.array_equal(points.users, users)


def test_users_without_any_position_get_no_code(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", "user,lat,lon\nghost,,\nann,1,2\nbob,3,4\n,5,6\nann,7,8\n")
    points = read_points(path, user="user", on_missing="drop")
    assert points.users is not None
    assert points.users.tolist() == [0, 1, 0]
    assert points.coordinates.tolist() == [[1, 2], [3, 4], [7, 8]]
    assert points.dropped == 2


@pytest.mark.parametrize(
    "empty", ["", '""', "NA", "NaN", "nan", "null", "NULL", "None", r"\N", "  "]
)
def test_missing_cells_are_refused_or_dropped(tmp_path: Path, empty: str) -> None:
    path = write_file(tmp_path, "a.csv", f"lat,lon\n1,2\n3,{empty}\n5,6\n{empty},8\n")
    with pytest.raises(InputError, match=r"'lat' and 'lon' must be filled .* 2 of 4 .* row 2"):
        read_points(path)
    points = read_points(path, on_missing="drop")
    assert points.coordinates.tolist() == [[1, 2], [5, 6]]
    assert points.dropped == 2


def test_a_missing_user_counts_as_missing(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", "lat,lon,user\n1,2,a\n3,4,\n")
    with pytest.raises(InputError, match=r"'lat' and 'lon' and 'user' must be filled .*row 2"):
        read_points(path, user="user")
    assert read_points(path).coordinates.tolist() == [[1, 2], [3, 4]]


def test_plane_coordinates_are_not_held_to_the_globe(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", "x,y\n4468503.5,5333251.25\n")
    points = read_points(path, plane=True)
    assert points.coordinates.tolist() == [[5333251.25, 4468503.5]]
    with pytest.raises(InputError, match="latitude from -90 to 90"):
        read_points(path)
    with pytest.raises(InputError, match=r"'y' must be a y from -\S+ to \S+: 1 of 1"):
        read_points(write_file(tmp_path, "b.csv", f"x,y\n0,{2 * PLANE_LIMIT}\n"), plane=True)


def test_points_print_how_many_they_are_and_never_where() -> None:
    points = Points(np.array([[41.5, -87.5], [41.6, -87.6]]), np.array([0, 0]), dropped=3)
    assert repr(points) == "Points(2 positions, 1 users, 3 rows dropped)"
    assert str(Points(points.coordinates)) == "Points(2 positions, 0 rows dropped)"


def test_a_user_that_is_no_number_counts_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"lat": [1.0] * 3, "lon": [2.0] * 3, "who": [4.0, np.nan, 4.0]}), path)
    with pytest.raises(InputError, match=r"'who' must be filled .* 1 of 3 .*row 2"):
        read_points(path, user="who")
    points = read_points(path, user="who", on_missing="drop")
    assert points.users is not None
    assert (points.users.tolist(), points.dropped) == ([0, 0], 1)


@pytest.mark.parametrize("empty", ["n/a", "N/A", "#N/A", " null "])
def test_missing_cells_of_text_in_parquet_are_missing(tmp_path: Path, empty: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"lat": ["1", "3"], "lon": ["2", empty]}), path)
    assert read_points(path, on_missing="drop").dropped == 1
