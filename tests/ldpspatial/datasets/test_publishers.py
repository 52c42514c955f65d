"""Readers of the publishers' formats, on small files written the way the publishers write."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpspatial.datasets import (
    READERS,
    read_chicago_crimes,
    read_foursquare_tsmc2014,
    read_nyc_taxi,
    read_snap_checkins,
)
from ldpspatial.errors import InputError
from tests.support.files import write_file

CHICAGO_HEADER = (
    "ID,Case Number,Date,Block,IUCR,Primary Type,Description,Location Description,Arrest,Domestic,"
    "Beat,District,Ward,Community Area,FBI Code,X Coordinate,Y Coordinate,Year,Updated On,"
    "Latitude,Longitude,Location\n"
)
CHICAGO_ROW = (
    '1,AB1,01/02/2020 03:04:05 PM,000XX N STATE ST,0820,THEFT,"$500, OR LESS",STREET,false,false,'
    "0111,001,42,32,06,{x},{y},2020,01/09/2020 03:45:09 PM,{lat},{lon},{place}\n"
)
GREEN_HEADER = (
    "VendorID,lpep_pickup_datetime,Lpep_dropoff_datetime,Store_and_fwd_flag,RateCodeID,"
    "Pickup_longitude,Pickup_latitude,Dropoff_longitude,Dropoff_latitude,Passenger_count,"
    "Trip_distance,Fare_amount,Extra,MTA_tax,Tip_amount,Tolls_amount,Ehail_fee,Total_amount,"
    "Payment_type,Trip_type "
)
GREEN_ROW = "2,2014-01-01 00:00:00,2014-01-01 00:10:00,N,1,{},1,1.5,7,0.5,0.5,0,0,,8,2,"


def chicago_row(lat: str, lon: str, x: str = "1176352", y: str = "1900927") -> str:
    place = f'"({lat}, {lon})"' if lat else ""
    return CHICAGO_ROW.format(lat=lat, lon=lon, x=x, y=y, place=place)


def test_chicago_export_is_read_and_rows_without_position_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "Crimes.csv"
    rows = [
        chicago_row("41.883500187", "-87.627876698"),
        chicago_row("", "", "", ""),
        chicago_row("36.619446395", "-91.686565684", "0", "0"),  # origin of the state's plane
        chicago_row("41.75", "-87.5"),
    ]
    path.write_text(CHICAGO_HEADER + "".join(rows))
    points = read_chicago_crimes(path)
    assert points.coordinates.tolist() == [[41.883500187, -87.627876698], [41.75, -87.5]]
    assert points.users is None
    assert points.dropped == 2


@pytest.mark.parametrize("end", ["pickup", "dropoff"])
@pytest.mark.parametrize("spare", ["", ",", ",,"])
def test_green_taxi_files_with_spare_commas_and_a_blank_line(
    tmp_path: Path, end: str, spare: str
) -> None:
    path = tmp_path / "green_tripdata_2014-01.csv"
    trips = [
        "-73.96,40.81,-73.98,40.67",
        "0,0,-73.98,40.67",
        "-73.95,40.8,0,0",
        "-73.25,40.5,-73.5,40.75",
    ]
    lines = [GREEN_HEADER, "", *(GREEN_ROW.format(trip) + spare for trip in trips)]
    path.write_bytes("\r\n".join(lines).encode() + b"\r\n")
    points = read_nyc_taxi(path, end)
    expected = {
        "pickup": [[40.81, -73.96], [40.8, -73.95], [40.5, -73.25]],
        "dropoff": [[40.67, -73.98], [40.67, -73.98], [40.75, -73.5]],
    }
    assert points.coordinates.tolist() == expected[end]
    assert points.dropped == 1


YELLOW_HEADERS = {
    2009: (
        "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Passenger_Count,Trip_Distance,"
        "Start_Lon,Start_Lat,Rate_Code,store_and_forward,End_Lon,End_Lat,Payment_Type"
    ),
    2014: (
        "vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance,"
        " pickup_longitude, pickup_latitude, rate_code, store_and_fwd_flag, dropoff_longitude,"
        " dropoff_latitude, payment_type"
    ),
    2016: (
        "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,"
        "pickup_longitude,pickup_latitude,RatecodeID,store_and_fwd_flag,dropoff_longitude,"
        "dropoff_latitude,payment_type"
    ),
}


@pytest.mark.parametrize("year", YELLOW_HEADERS)
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_yellow_taxi_files_of_all_years(tmp_path: Path, year: int, kind: str) -> None:
    path = tmp_path / f"yellow_tripdata_{year}-01.{kind}"
    rows = [
        ["CMT", "t", "t", 1, 2.5, -73.75, 40.25, 1, "N", -73.5, 40.5, "CSH"],
        ["CMT", "t", "t", 1, 2.5, -73.75, 0.0, 1, "N", 0.0, 40.5, "CSH"],
        ["CMT", "t", "t", 1, 2.5, -735.25, 40.25, 1, "N", -73.5, 3210.5, "CSH"],
        ["CMT", "t", "t", 1, 2.5, None, None, 1, "N", None, None, "CSH"],
    ]
    header = YELLOW_HEADERS[year]
    if kind == "parquet":
        names = [name.strip() for name in header.split(",")]
        columns = zip(*rows, strict=True)
        pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)
    else:
        cells = ("" if cell is None else str(cell) for row in rows for cell in row)
        text = "\n".join([header, *(",".join(line) for line in zip(*[cells] * 12, strict=True))])
        write_file(tmp_path, path.name, text)
    for end, expected in (("pickup", [40.25, -73.75]), ("dropoff", [40.5, -73.5])):
        points = read_nyc_taxi(path, end)
        assert points.coordinates.tolist() == [expected]
        assert points.dropped == 3


def test_broken_taxi_rows_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "yellow_tripdata_2010-02.csv"
    good = "CMT,t,t,1,2.5,-73.75,40.25,1,N,-73.5,40.5,CSH"
    shifted = "CMT,t,t,1,2.5,N,40.25,1,N,-73.5,40.5,CSH"
    path.write_text("\n".join([YELLOW_HEADERS[2016], good, good + ",9,9", "CMT,t", shifted, good]))
    points = read_nyc_taxi(path)
    assert points.coordinates.tolist() == [[40.25, -73.75]] * 2
    assert points.dropped == 3


def test_taxi_files_with_zones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "green_tripdata_2016-07.csv"
    path.write_text("VendorID,lpep_pickup_datetime,PULocationID,DOLocationID\n2,t,74,42,,\n")
    with pytest.raises(InputError, match=r"holds taxi zones \(PULocationID\).*since July 2016"):
        read_nyc_taxi(path)
    with pytest.raises(InputError, match="end must be one of pickup, dropoff, got 'middle'"):
        read_nyc_taxi(path, "middle")


@pytest.mark.parametrize("name", ["loc-gowalla_totalCheckins.txt", "loc-brightkite.txt.gz"])
def test_snap_checkins_with_their_gaps(tmp_path: Path, name: str) -> None:
    lines = [
        "58186\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847",
        '3\t2010-10-18T22:17:43Z\t-30.25\t97.75\t"odd',
        "3\t2010-10-18T22:17:43Z\t0.0\t0.0\t00000000000000000000000000000000",
        "7\t\t\t\t",
        "7",
        "3\t2010-10-18T22:17:43Z\t0.0\t12.5\tequator",
        "3\t2010-10-18T22:17:43Z\t405.5\t12.5\tnowhere",
        "58186\t2010-10-17T22:17:43Z\t1.5\t2.5\t9",
    ]
    points = read_snap_checkins(write_file(tmp_path, name, "\n".join(lines) + "\n"))
    expected = [[30.2359091167, -97.7951395833], [-30.25, 97.75], [0, 12.5], [1.5, 2.5]]
    assert points.coordinates.tolist() == expected
    assert points.users is not None
    assert points.users.tolist() == [0, 1, 1, 0]
    assert points.dropped == 4


def test_foursquare_checkins_in_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "dataset_TSMC2014_NYC.txt"
    row = "{}\t49bbd6c0f964a520f4531fe3\t4bf58dd8d48988d127951735\t{}\t{}\t{}\t-240\t{}"
    time = "Tue Apr 03 18:00:09 +0000 2012"
    lines = [
        row.format(470, "Arts & Crafts Store", 40.719810375488535, -74.00258103213994, time),
        row.format(979, "Café", 40.5, -74.25, time),
        row.format(470, 'Say "cheese', 40.75, -73.5, time),
    ]
    path.write_bytes("\n".join(lines).encode("latin-1") + b"\n")
    points = read_foursquare_tsmc2014(path)
    expected = [[40.719810375488535, -74.00258103213994], [40.5, -74.25], [40.75, -73.5]]
    assert points.coordinates.tolist() == expected
    assert points.users is not None
    assert points.users.dtype == np.int64
    assert points.users.tolist() == [0, 1, 0]
    assert points.dropped == 0


def test_registry_names_all_readers() -> None:
    assert dict(READERS) == {
        "chicago-crimes": read_chicago_crimes,
        "nyc-taxi": read_nyc_taxi,
        "snap": read_snap_checkins,
        "foursquare": read_foursquare_tsmc2014,
    }


@pytest.mark.parametrize("name", READERS)
def test_files_of_another_format_are_refused(tmp_path: Path, name: str) -> None:
    missing, other, empty = (tmp_path / file for file in ("a.csv", "b.csv", "c.csv"))
    other.write_text("41.8781,-87.6298\n41.8781,-87.6298\n")
    empty.touch()
    with pytest.raises(InputError, match="does not exist"):
        READERS[name](missing)
    with pytest.raises(InputError, match="is empty"):
        READERS[name](empty)
    with pytest.raises(InputError, match=r"must name one column|must hold") as caught:
        READERS[name](other)
    assert "8781" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chicago-crimes", CHICAGO_HEADER + chicago_row("", "")),
        ("nyc-taxi", GREEN_HEADER + "\n" + GREEN_ROW.format("0,0,0,0") + "\n"),
        ("snap", "7\t\t\t\t\n3\tt\t0\t0\tx\n"),
        ("foursquare", "7\tv\tc\tn\t\t\t0\tt\n"),
    ],
)
def test_files_without_any_position_are_refused(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=r"none of the \d rows of 'a.csv' does"):
        READERS[name](path)
