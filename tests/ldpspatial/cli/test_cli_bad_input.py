"""Bad input: one line of error that names field, rule and value, and nothing written."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk import Collection, Grid
from tests.support.command_line import people, refusal, succeed, write_people
from tests.support.files import write_file

GOOD = {"--cells": "5", "--epsilon": "2", "--radius": "1"}
SQUARE = ("--center", "48,11", "--side-km", "4")


def simulate(out: Path, *arguments: object, **changes: str) -> str:
    """Return the error of a simulation, which must leave no trace in the folder of ``out``."""
    before = sorted(os.listdir(out.parent))
    options = GOOD | {f"--{name}": value for name, value in changes.items()}
    flat = [text for pair in options.items() for text in pair]
    error = refusal("simulate", *arguments, *flat, "--out", out)
    assert sorted(os.listdir(out.parent)) == before
    return error


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    return write_people(tmp_path / "visits.csv")


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("epsilon", "0", "--epsilon must be a number from 0.000001 to 20, got 0.0"),
        ("epsilon", "-1", "--epsilon must be a number from 0.000001 to 20, got -1.0"),
        ("epsilon", "nan", "--epsilon must be a number from 0.000001 to 20, got nan"),
        ("epsilon", "1e3", "--epsilon must be a number from 0.000001 to 20, got 1000.0"),
        ("epsilon", "high", "Invalid value for '--epsilon': 'high' is not a valid float."),
        ("cells", "0", "Invalid value for '--cells': 0 is not in the range 1<=x<=4096."),
        ("cells", "-3", "Invalid value for '--cells': -3 is not in the range 1<=x<=4096."),
        ("cells", "1.5", "Invalid value for '--cells': '1.5' is not a valid integer range."),
        ("cells", "100000", "Invalid value for '--cells': 100000 is not in the range 1<=x<=4096."),
        ("radius", "-1", "--radius must be a whole number from 0 to 10, got -1"),
        ("radius", "11", "--radius must be a whole number from 0 to 10, got 11"),
        ("radius", "1.5", "Invalid value for '--radius': '1.5' is not a valid integer."),
    ],
)
def test_bad_parameters(option: str, value: str, rule: str, visits: Path, tmp_path: Path) -> None:
    assert simulate(tmp_path / "r", visits, *SQUARE, **{option: value}) == rule


@pytest.mark.parametrize(
    ("square", "rule"),
    [
        (
            ("--bounds", "1,2,3", "--plane", "1,2,3"),
            "Give one of --bounds and --plane.",
        ),
        (("--center", "48,11"), "--center and --side-km go together."),
        (("--side-km", "4"), "--center and --side-km go together."),
        (
            ("--center", "48", "--side-km", "4"),
            "Invalid value for '--center': must be 2 numbers LAT,LON without spaces, got '48'",
        ),
        (
            ("--bounds", "1,2,x"),
            "Invalid value for '--bounds': must be 3 numbers SOUTH,WEST,SIDE without spaces, "
            "got '1,2,x'",
        ),
        (
            ("--center", "nan,11", "--side-km", "4"),
            "--center and --side-km: lat must be finite, got nan",
        ),
        (
            ("--center", "48,11", "--side-km", "-4"),
            "Invalid value for '--side-km': -4.0 is not in the range 0<x<=20000.",
        ),
        (
            ("--center", "48,11", "--side-km", "nan"),
            "Invalid value for '--side-km': nan is not a finite number.",
        ),
        (
            ("--bounds", "48,11,-1"),
            "Invalid value for '--bounds': SIDE must be above 0 and at most 180, got -1",
        ),
        (
            ("--bounds", "48,11,nan"),
            "Invalid value for '--bounds': SIDE must be above 0 and at most 180, got nan",
        ),
        (("--bounds", "91,0,1"), "south must be a latitude from -90 to 90 degrees, got 91.0"),
        (("--plane", "0,0,-1"), "side must be above 0 and at most 200000000, got -1.0"),
    ],
)
def test_bad_squares(square: tuple[str, ...], rule: str, visits: Path, tmp_path: Path) -> None:
    assert simulate(tmp_path / "r", visits, *square) == rule


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((), "Give a file of POINTS, or --map with --people."),
        (("visits.csv", "--map", "normal"), "Give a file of POINTS, or --map with --people."),
        (
            ("visits.csv", "--people", 5),
            "--people goes with --map; a file of POINTS brings its own.",
        ),
        (("--map", "normal"), "--map needs --people, and brings its own square."),
        (("--map", "normal", "--people", 5, *SQUARE), "--map needs --people, and brings its own"),
        (
            ("--map", "normal", "--people", 5, "--lat", "y"),
            "--lat and --lon name columns of a file",
        ),
        (("--map", "normal", "--people", 0), "'--people': 0 is not in the range 1<=x<=10000000"),
        (("--map", "moon", "--people", 5), "'moon' is not one of 'mnormal', 'normal', 'szipf'"),
    ],
)
def test_options_that_contradict_each_other(
    arguments: tuple[object, ...], rule: str, visits: Path, tmp_path: Path
) -> None:
    known = [visits if argument == "visits.csv" else argument for argument in arguments]
    assert rule in simulate(tmp_path / "r", *known)


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("v.csv", "a,b\n1,2\n", "--lat must name a column here.* 'v.csv' has the columns a, b"),
        ("v.csv", "lat,b\n1,2\n", "--lon must name a column here.* 'v.csv' has the columns lat, b"),
        (
            "v.csv",
            "lat,lon\n48.567,11.567\nhere,11\n",
            r"'lat' must hold numbers.*\(first: row 2\)",
        ),
        ("v.csv", "", "POINTS must name a file with content, but 'v.csv' is empty"),
        ("v.csv", "lat,lon\n", "POINTS must hold rows, but 'v.csv' has only a header"),
        (
            "v.csv",
            "lat,lon\n48.567,11.567\nNaN,11.567\n",
            r"'lat' and 'lon' must be filled in every row: 1 of 2 rows \(first: row 2\) is empty; "
            "repair them, or leave them out with --on-missing drop",
        ),
        ("v.csv", "lat,lon\nNaN,11.567\n", "must be filled in every row"),
        ("v.csv", "48.567,11.567\n48.667,11.667\n", "--lat must name a column here.*names missing"),
        ("v.csv", "lat,lon\n1048.567,11.567\n", "'lat' must be a latitude from -90 to 90.*--plane"),
        ("v.csv", "lat,lon\n89.567,11.567\n", "positions must fit into a square.*give --center"),
        ("v.csv", "lat,lon\n8.567,-175.567\n8.567,175.567\n", "positions must fit into a square"),
        ("v.csv", "lat,lon\n48.567,11.567,1.567\n48.567,11.567\n", "must have|must hold|must name"),
        ("v.parquet", "no parquet", "POINTS must be a Parquet file, but 'v.parquet' is not one"),
        ("v.xlsx", "lat,lon\n48.567,11.567\n", "POINTS must end in one of .csv, .*, got 'v.xlsx'"),
        ("v.csv.gz", "lat,lon\n", "POINTS must hold rows, but 'v.csv.gz' has only a header"),
    ],
)
def test_files_that_hold_no_positions(name: str, content: str, rule: str, tmp_path: Path) -> None:
    error = simulate(tmp_path / "r", write_file(tmp_path, name, content))
    assert re.search(rule, error), error
    told = error.replace(str(tmp_path), "")
    assert "67" not in told  # as every coordinate above ends


@pytest.mark.parametrize("seed", range(5))
def test_binary_files_in_place_of_text(seed: int, tmp_path: Path) -> None:
    content = np.random.default_rng(seed).bytes(5000)
    error = simulate(tmp_path / "r", write_file(tmp_path, "v.csv", content))
    assert error.startswith(("--lat must name", "POINTS must "))


def test_a_folder_or_nothing_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name, what in (("folder.csv", "is a folder"), ("none.csv", "does not exist")):
        error = simulate(tmp_path / "r", tmp_path / name)
        assert error == f"POINTS must name a file, got {str(tmp_path / name)!r}, which {what}"


def test_a_column_that_does_not_exist(visits: Path, tmp_path: Path) -> None:
    error = simulate(tmp_path / "r", visits, "--lat", "Breite")
    assert "--lat must name one column, got 'Breite': no column has this name" in error
    assert "note, lat, lon" in error
    error = simulate(tmp_path / "r", visits, "--lat", "lat", "--lon", "lat")
    assert error.startswith("POINTS ")
    assert error.endswith(": lat and lon must name two columns, got 'lat' for both")


def test_a_million_people_elsewhere_and_swapped_coordinates(tmp_path: Path) -> None:
    file = write_file(tmp_path, "far.csv", "lat,lon\n" + "20.123456,30.654321\n" * 1_000_000)
    rule = "positions must lie in the square, but all {} lie outside: check the square, and that "
    error = simulate(tmp_path / "r", file, *SQUARE)
    assert error == rule.format(1_000_000) + "latitude and longitude are not swapped"
    swapped = write_people(tmp_path / "swapped.csv", ("lon", "lat"))
    assert simulate(tmp_path / "r", swapped, *SQUARE).startswith(rule.format(300))


def test_no_error_repeats_a_position_whatever_is_wrong_with_a_row(tmp_path: Path) -> None:
    rows = [f"{lat},{lon}" for lat, lon in people(50).tolist()]
    digits = {number[3:] for row in rows for number in row.split(",")}
    for damage in ("{}x,{}", "{},{},", '"{},{}', "{};{}", "9{},{}", "{},inf"):
        lines = [*rows[:-1], damage.format(*rows[-1].split(","))]
        file = write_file(tmp_path, "v.csv", "lat,lon\n" + "\n".join(lines) + "\n")
        error = simulate(tmp_path / "r", file, *SQUARE)
        assert not [d for d in digits if d in error], error


GOOD_DOCUMENT = Collection.create("c", Grid.plane(0, 0, 1, 15), 3.5).to_json()


def altered(**changes: Any) -> bytes:
    """Return the good document with changes; those of "center" go to the centre's weight."""
    document = json.loads(GOOD_DOCUMENT)
    document["weights"][0][0] += changes.pop("center", 0)
    document["total_weight"] += changes.pop("total", 0)
    return json.dumps(document | changes).encode()


FAULTS = {
    "a weight": (altered(center=1), "total_weight must be .*: the document was altered"),
    "a weight and the total": (altered(center=1, total=1), r"weights\[0\]\[0\] .* not epsilon-LDP"),
    "truncated": (GOOD_DOCUMENT[:300].encode(), "the collection document is not valid JSON"),
    "empty": (b"", "the collection document is not valid JSON"),
    "not UTF-8": (GOOD_DOCUMENT.encode("utf-16"), "COLLECTION .* cannot be read: not UTF-8"),
    "a list": (b"[]", "the collection document must be a JSON object"),
    "another schema": (
        altered(schema="x/9"),
        "schema must be 'ldpspatial/collection/1', got 'x/9'",
    ),
    "a smaller claim": (altered(micro_epsilon=3_400_000), r"weights\[0\]\[0\] .* not epsilon-LDP"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_documents(fault: str, tmp_path: Path) -> None:
    content, rule = FAULTS[fault]
    document = tmp_path / "collection.json"
    document.write_bytes(content)
    reports = write_file(tmp_path, "reports.csv", "row,col\n1,1\n")
    for arguments in (
        ("collection", "show", document),
        ("audit", document),
        ("estimate", document, reports, "--out", tmp_path / "r"),
    ):
        error = refusal(*arguments)
        assert re.search(rule, error), error
    assert sorted(os.listdir(tmp_path)) == ["collection.json", "reports.csv"]


def test_a_folder_in_place_of_a_document(tmp_path: Path) -> None:
    error = refusal("collection", "show", tmp_path)
    assert error == f"COLLECTION {str(tmp_path)!r} cannot be read: Is a directory"


def test_a_good_command_after_all_this(visits: Path, tmp_path: Path) -> None:
    good = [text for pair in GOOD.items() for text in pair]
    succeed("simulate", visits, *SQUARE, *good, "--out", tmp_path / "r")
