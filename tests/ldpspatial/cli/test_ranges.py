"""``ldpspatial ranges``: shares of regions from the files of a simulation."""

import csv
import json
import os
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from client_sdk import Grid
from ldpspatial.cli import main
from ldpspatial.collecting.results import read_estimate
from ldpspatial.errors import InputError
from ldpspatial.estimation import EM, Field, cell_intervals, region_share
from ldpspatial.files.regions import read_area, read_regions
from ldpspatial.places.regions import polygon, rectangle
from tests.support.command_line import refusal, run, succeed, write_people
from tests.support.files import write_file

HEADER = "name,south,west,north,east\n"
CENTRE = "centre,-2,-2,2,2\n"
TRIANGLE = [[-4.0, -4.0], [4.0, -4.0], [0.0, 3.0], [-4.0, -4.0]]  # x, y


def feature(geometry: Any, name: object = "triangle") -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": {"name": name}}


def document(*features: dict[str, Any]) -> str:
    return json.dumps({"type": "FeatureCollection", "features": list(features)})


GEOJSON = document(feature({"type": "Polygon", "coordinates": [TRIANGLE]}))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("played") / "r"
    setting = ("--map", "normal", "--people", 2_000, "--cells", 6, "--epsilon", 3)
    result = run("simulate", *setting, "--intervals", "none", "--estimator", "em", "--out", out)
    assert result.exit_code == 0
    return out


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_estimate_of_the_files_is_the_one_that_was_written(played: Path) -> None:
    collection, found = read_estimate(played)
    with np.load(played / "estimate.npz") as held:
        np.testing.assert_array_equal(found.density, held["density"])
        np.testing.assert_array_equal(found.counts, held["counts"])
        assert (found.n, found.rule) == (held["n"], held["rule"]) == (2_000, "scaled")
        assert collection.digest == held["digest"]
        assert found.log_likelihood == held["log_likelihood"] == found.trace[-1]
    assert found.estimator == EM("scaled")


def test_an_estimate_by_field_is_read_as_it_was_written(tmp_path: Path) -> None:
    setting = ("--map", "normal", "--people", 500, "--cells", 5, "--epsilon", 3, "--radius", 1)
    way = ("--rule", "field", "--intervals", "none", "--out", tmp_path / "r")
    assert run("simulate", *setting, *way).exit_code == 0
    _, found = read_estimate(tmp_path / "r")
    with np.load(tmp_path / "r" / "estimate.npz") as held:
        assert (found.estimator, found.facts["verdict"]) == (Field(), held["verdict"])
        assert found.facts["spread"] == held["spread"]
    regions = write_file(tmp_path, "regions.csv", HEADER + CENTRE)
    for method in ("auto", "fisher"):
        succeed("ranges", tmp_path / "r", regions, "--method", method)


def test_rectangles_of_a_table(played: Path, tmp_path: Path) -> None:
    corner = '"north, east",0,0,9,9\n,-9,-9,9,9\n'
    regions = write_file(tmp_path, "regions.csv", HEADER + CENTRE + corner)
    out = tmp_path / "shares.csv"
    result = succeed("ranges", played, regions, "--csv", out, "--level", 0.9)
    collection, found = read_estimate(played)
    rows = rows_of(out)
    assert [row["name"] for row in rows] == ["centre", "north, east", "region 3"]
    for row, sides in zip(rows, ((-2, -2, 2, 2), (0, 0, 9, 9), (-9, -9, 9, 9)), strict=True):
        share = region_share(found, rectangle(collection.grid, *sides), 0.9)
        numbers = [float(row[key]) for key in ("share", "lower", "upper", "people")]
        expected = [share.estimate, share.lower, share.upper, share.estimate * 2_000]
        np.testing.assert_allclose(numbers, expected, rtol=1e-12)
    assert result.stdout.startswith("90 % intervals by fisher, 2000 reports\n")
    assert f"{float(rows[0]['share']):.2%}" in result.stdout
    assert "100.00%  100.00%  100.00%    2000" in result.stdout


def test_polygons_of_a_document(played: Path, tmp_path: Path) -> None:
    regions = write_file(tmp_path, "regions.geojson", GEOJSON)
    out = tmp_path / "shares.geojson"
    succeed("ranges", played / "estimate.npz", regions, "--geojson", out, "--method", "fisher")
    written = json.loads(out.read_text())
    assert written["type"] == "FeatureCollection"
    assert (written["level"], written["method"]) == (0.95, "fisher")
    assert (written["reports"], written["plane"]) == (2_000, True)
    (only,) = written["features"]
    assert only["geometry"] == {"type": "Polygon", "coordinates": [TRIANGLE]}
    collection, found = read_estimate(played)
    corners = [(y, x) for x, y in TRIANGLE[:-1]]
    share = region_share(found, polygon(collection.grid, corners), method="fisher")
    assert only["properties"] == {
        "name": "triangle", "share": share.estimate, "lower": share.lower, "upper": share.upper,
        "people": share.estimate * 2_000, "method": "fisher", "on_map": 1.0,
        **{name: only["properties"][name] for name in ("in_cut_cells", "wholly_inside", "touched")},
    }  # fmt: skip
    inside, touched = (only["properties"][name] for name in ("wholly_inside", "touched"))
    assert 0 < inside < share.estimate < touched < 1
    again = tmp_path / "again.geojson"  # what is written can be read
    succeed("ranges", played, out, "--geojson", again, "--method", "fisher")
    assert again.read_bytes() == out.read_bytes()


def test_rectangles_become_polygons_with_longitude_first(played: Path, tmp_path: Path) -> None:
    regions = write_file(tmp_path, "r.tsv", "east\tname\twest\tnorth\tsouth\n3\ta\t-1\t2\t0\n")
    out = tmp_path / "shares.geojson"
    succeed("ranges", played, regions, "--geojson", out)
    (only,) = json.loads(out.read_text())["features"]
    assert only["geometry"]["coordinates"] == [[[-1, 0], [3, 0], [3, 2], [-1, 2], [-1, 0]]]


def test_nothing_is_written_that_was_not_asked_for(played: Path, tmp_path: Path) -> None:
    regions = write_file(tmp_path, "regions.csv", HEADER + CENTRE)
    result = succeed("ranges", played, regions, "--method", "fisher")
    assert result.stdout.startswith("95 % intervals by fisher")
    assert list(tmp_path.iterdir()) == [regions]


def test_a_method_that_cannot_names_the_option(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldpspatial.estimation.intervals.fisher.FISHER_CELLS", 5)
    regions = write_file(tmp_path, "regions.csv", HEADER + CENTRE)
    assert "use --method posterior" in refusal("ranges", played, regions, "--method", "fisher")


def test_the_example_of_the_help_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = main.get_command(click.Context(main), "ranges").help  # type: ignore[attr-defined]
    assert (
        "      name,south,west,north,east\n      centre,-1,-1,1,1\n      north,0,-9,9,9\n" in text
    )
    assert "ldpspatial ranges result regions.csv --csv shares.csv --geojson shares.geojson" in text
    setting = ("--map", "normal", "--people", 500, "--cells", 5, "--epsilon", 3.5)
    run("simulate", *setting, "--intervals", "none", "--out", "result")
    write_file(tmp_path, "regions.csv", HEADER + "centre,-1,-1,1,1\nnorth,0,-9,9,9\n")
    files = ("--csv", "shares.csv", "--geojson", "shares.geojson")
    result = succeed("ranges", "result", "regions.csv", *files)
    assert result.stdout.endswith("Written to shares.csv\nWritten to shares.geojson\n")


def test_forgers_are_told_of_each_region(played: Path, tmp_path: Path) -> None:
    file = write_file(tmp_path, "r.csv", HEADER + CENTRE)
    shown = succeed("ranges", played, file, "--forged", 0.02, "--csv", tmp_path / "shares.csv")
    head, line = (each.split() for each in shown.stdout.splitlines()[1:3])
    assert head[-5:] == ["2", "%", "forged", "at", "most"]
    (row,) = rows_of(tmp_path / "shares.csv")
    names = ("reached_down", "reached_up", "proven_down", "proven_up")
    moved = [f"{100 * float(row[name]):+.2f}" for name in names]
    assert [line[-6], line[-4], line[-3], line[-1]] == moved
    assert "If 2 % of all reports are forged, attacks that were tried move shares" in shown.stdout
    for more in (("--of", file), ("--since", played)):
        error = refusal("ranges", played, file, "--forged", 0.02, *more)
        assert error == "--forged takes neither --since nor --of."
    for share in (1, 1e-5):  # of so few proofs say nothing, and take minutes
        assert "--forged" in refusal("ranges", played, file, "--forged", share)


@pytest.mark.parametrize("several", ["", "farther,91,91,92,92\n"])
def test_a_file_of_regions_that_all_lie_outside_is_answered(
    several: str, played: Path, tmp_path: Path
) -> None:
    file = write_file(tmp_path, "r.csv", HEADER + "far,90,90,91,91\n" + several)
    shown = succeed("ranges", played, file, "--csv", tmp_path / "shares.csv").stdout
    rows = rows_of(tmp_path / "shares.csv")
    assert f"Regions that leave the map: {len(rows)} of {len(rows)}, {len(rows)} of them " in shown
    for row in rows:
        assert float(row["on_map"]) == 0
        assert {row[name] for name in ("share", "lower", "upper", "people", "touched")} == {""}


@pytest.mark.parametrize(
    ("grid", "regions", "fault"),
    [
        (Grid.from_center(48, 11, 9000, 6), "a,10.98,47.99,11.02,48.01\n", "exchanged"),
        (Grid.plane(5e6, 4e5, 9000, 6), "a,47.9,10.9,48.1,11.1\n", "are they in degrees?"),
        (Grid.plane(5e6, 4e5, 9000, 6), "a,401000,5001000,402000,5002000\n", "exchanged"),
        (Grid.plane(5e6, 4e5, 9000, 6), "a,47.9,10.9,48.1,11.1\nb,5e6,4e5,5001000,401000\n", ""),
        (Grid.from_center(48, 11, 9000, 6), "a,50,11,51,12\n", ""),
    ],
)
def test_regions_outside_for_a_likely_reason_are_warned_of(
    grid: Grid, regions: str, fault: str, tmp_path: Path
) -> None:
    file = write_file(tmp_path, "r.csv", HEADER + regions)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_regions(file, grid)
    told = [str(each.message) for each in caught]
    if not fault:
        assert not told
        return
    (warning,) = told
    assert warning.startswith("all regions of 'r.csv' lie outside of the map's square: ")
    assert fault in warning
    with pytest.raises(InputError, match=f"^path must hold a region that overlaps.*{fault[:8]}"):
        read_area(file, grid)


def test_a_warning_of_regions_outside_reaches_the_user(tmp_path: Path) -> None:
    people = write_people(tmp_path / "people.csv")
    where = ("--center", "48.0,11.0", "--side-km", 6, "--cells", 5, "--epsilon", 3)
    way = ("--intervals", "none", "--estimator", "em", "--out", tmp_path / "r")
    assert run("simulate", people, *where, *way).exit_code == 0
    file = write_file(tmp_path, "r.csv", HEADER + "a,10.99,47.99,11.01,48.01\n")
    result = run("ranges", tmp_path / "r", file)
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: all regions of 'r.csv' lie outside")


@pytest.mark.parametrize("east", [-179.95, 180.05])
def test_a_polygon_that_goes_round_the_globe_the_other_way_is_warned_of(
    east: float, tmp_path: Path
) -> None:
    corners = [[179.95, -0.1], [east, -0.1], [east, 0.1], [179.95, 0.1], [179.95, -0.1]]
    feature = {
        "type": "Feature",
        "properties": {"name": "bay"},
        "geometry": {"type": "Polygon", "coordinates": [corners]},
    }
    text = json.dumps({"type": "FeatureCollection", "features": [feature]})
    file = write_file(tmp_path, "r.geojson", text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_regions(file, Grid.from_center(0, 180, 50_000, 8))
    told = [str(each.message) for each in caught]
    rule = "a polygon across the antimeridian runs on past 180, or comes in two parts"
    wrong = [f"region 'bay' of 'r.geojson' is 359.9 degrees wide: {rule}"]
    assert told == (wrong if east < 0 else [])


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("home", ["geometry", "properties"])
def test_numbers_that_are_not_finite_are_refused_wherever_they_stand(
    number: str, home: str, played: Path, tmp_path: Path
) -> None:
    text = GEOJSON.replace(f'"{home}": {{', f'"{home}": {{"extra": {number}, ')
    file = write_file(tmp_path, "r.geojson", text)
    error = refusal("ranges", played, file, "--geojson", tmp_path / "shares.geojson")
    assert error == f"REGIONS must hold finite numbers, got {number!r} in 'r.geojson'"
    assert list(tmp_path.iterdir()) == [file]


def test_a_name_that_utf8_cannot_hold_is_written_all_the_same(played: Path, tmp_path: Path) -> None:
    file = write_file(tmp_path, "r.geojson", GEOJSON.replace("triangle", r"half \ud800"))
    succeed("ranges", played, file, "--csv", tmp_path / "shares.csv")
    assert rows_of(tmp_path / "shares.csv")[0]["name"] == "half ?"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("r.csv", HEADER, "regions.csv"),
        (
            "r.csv",
            "name,south,west,north\na,1,2,3\n",
            "columns name, south, west, north, east once",
        ),
        ("r.csv", HEADER + "a,2,0,1,3\n", "row 1 of 'r.csv': south must lie below north"),
        (
            "r.csv",
            HEADER + CENTRE + "a,0,x,1,3\n",
            "row 2 of 'r.csv': west must be a number, got 'x'",
        ),
        ("r.csv", HEADER + "a,,0,1,3\n", "row 1 of 'r.csv': south must be a number, got an empty"),
        ("r.csv", HEADER + "a, ,0,x,3\n", "row 1 of 'r.csv': south must be a number, got an empty"),
        ("r.csv", HEADER + "a,0,0,1,N/A\n", "row 1 of 'r.csv': east must be a number, got 'N/A'"),
        ("r.csv", HEADER + "a,0,0,1,nan\n", "row 1 of 'r.csv': east must be a number, got 'nan'"),
        ("r.csv", HEADER + "a,0,0,1,inf\n", "row 1 of 'r.csv': east must be a number in"),
        ("r.csv", HEADER + CENTRE + "a,1,2\n", "5 fields in every row, but row 2"),
        ("r.txt", HEADER + CENTRE, "REGIONS must end in"),
        ("r.geojson", "{}", "REGIONS must be a GeoJSON FeatureCollection"),
        ("r.geojson", "[1]", "REGIONS must be a GeoJSON FeatureCollection"),
        ("r.geojson", "not json", "REGIONS must be a GeoJSON FeatureCollection"),
        ("r.geojson", document(), "at least one region"),
        ("r.json", document(feature(None)), "feature 1 of 'r.json': geometry must be"),
        ("r.json", document(feature({"type": "Point", "coordinates": [0, 0]})), "type 'Point'"),
    ],
)
def test_files_without_regions_are_refused(
    name: str, content: str, words: str, played: Path, tmp_path: Path
) -> None:
    file = write_file(tmp_path, name, content)
    error = refusal("ranges", played, file, "--csv", tmp_path / "shares.csv")
    assert words.replace("regions.csv", "at least one") in error or "rows" in error
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_files_without_an_estimate_are_refused(played: Path, tmp_path: Path) -> None:
    regions = write_file(tmp_path, "regions.csv", HEADER + CENTRE)
    other = tmp_path / "other.npz"
    np.savez(other, density=np.ones((2, 2)))
    broken = tmp_path / "broken.npz"
    broken.write_bytes((played / "estimate.npz").read_bytes()[:300])
    array = tmp_path / "array.npy"
    np.save(array, np.ones((2, 2)))
    for path in (other, broken, array, regions):
        assert "ESTIMATE must be an estimate.npz" in refusal("ranges", path, regions)
    assert "none.npz" in refusal("ranges", tmp_path / "none.npz", regions)
    assert "estimate.npz" in refusal("ranges", tmp_path, regions)


def test_outputs_are_checked_before_any_work(played: Path, tmp_path: Path) -> None:
    regions = write_file(tmp_path, "regions.csv", HEADER + CENTRE)
    before = regions.read_bytes()
    (folder := tmp_path / "folder.csv").mkdir()
    (device := tmp_path / "device.csv").symlink_to(os.devnull)
    for option, path, words in (
        ("--csv", tmp_path / "a.txt", "--csv must end in .csv"),
        ("--geojson", tmp_path / "a.csv", "--geojson must end in .geojson"),
        ("--csv", tmp_path / "none" / "a.csv", "--csv must lie in a folder that exists"),
        ("--csv", regions, "--csv must not replace an input"),
        ("--csv", played / "estimate.csv", "--csv must not replace an input or a result"),
        ("--csv", folder, "--csv must name a file"),
        ("--csv", device, "which is no regular file"),
    ):
        for overwrite in ((), ("--overwrite",)):
            assert words in refusal("ranges", played, regions, option, path, *overwrite)
    assert regions.read_bytes() == before


def test_results_of_the_earlier_estimate_are_left_alone(played: Path, tmp_path: Path) -> None:
    regions = write_file(tmp_path, "regions.csv", HEADER + CENTRE)
    window = shutil.copytree(played, tmp_path / "week" / "window-1")
    write_file(tmp_path / "week", "summary.json", "{}")
    since = ("--since", window / "estimate.npz", "--overwrite")
    for result in (window / "estimate.csv", tmp_path / "week" / "windows.csv"):
        told = refusal("ranges", played, regions, *since, "--csv", result)
        assert "--csv must not replace an input or a result" in told


def test_an_earlier_file_is_replaced_on_request_alone(played: Path, tmp_path: Path) -> None:
    regions = write_file(tmp_path, "regions.csv", HEADER + CENTRE)
    table, drawn = write_file(tmp_path, "a.csv", "mine"), tmp_path / "a.geojson"
    asked = ("ranges", played, regions, "--geojson", drawn, "--csv", table)
    told = refusal(*asked)
    assert told == f"--csv must be a new file, got {str(table)!r} (--overwrite replaces it)"
    assert (table.read_text(), drawn.exists()) == ("mine", False)
    succeed(*asked, "--overwrite")
    assert rows_of(table)[0]["name"] == "centre"


def test_a_map_in_degrees_takes_regions_in_degrees(tmp_path: Path) -> None:
    setting = ("--center", "48,11", "--side-km", 10, "--cells", 5, "--epsilon", 3, "--radius", 1)
    rng = np.random.default_rng(1)
    places = np.round(rng.normal((48.0, 11.0), 0.01, (400, 2)), 6)
    lines = "".join(f"{lat},{lon}\n" for lat, lon in places)
    points = write_file(tmp_path, "p.csv", "lat,lon\n" + lines)
    out = ("--intervals", "none", "--out", tmp_path / "r")
    assert run("simulate", points, *setting, *out).exit_code == 0
    corners = [[10.9, 48.0], [11.1, 48.0], [11.1, 48.1], [10.9, 48.1], [10.9, 48.0]]
    geometry = {"type": "Polygon", "coordinates": [corners]}
    regions = write_file(tmp_path, "north.geojson", document(feature(geometry, None)))
    shares = tmp_path / "shares.geojson"
    level = 0.999999999  # devices draw from the operating system: a false alarm in 10^9
    succeed("ranges", tmp_path / "r", regions, "--geojson", shares, "--level", level)
    written = json.loads(shares.read_text())
    assert "plane" not in written
    properties = written["features"][0]["properties"]
    assert properties["name"] == "region 1"
    assert properties["lower"] < (places[:, 0] > 48).mean() < properties["upper"]
    collection, found = read_estimate(tmp_path / "r")
    assert collection.grid == Grid.from_center(48, 11, 10_000, 5)
    density = cell_intervals(found, method="posterior").density
    north = density[3:].sum() + density[2].sum() / 2
    assert properties["share"] == pytest.approx(north, abs=1e-5)


def test_shares_of_an_area_leave_the_rest_out(played: Path, tmp_path: Path) -> None:
    regions = write_file(tmp_path, "r.csv", HEADER + CENTRE + "north,0,-9,9,9\n")
    area = write_file(tmp_path, "area.csv", HEADER + "town,-3,-3,3,3\n")
    table = tmp_path / "shares.csv"
    printed = succeed("ranges", played, regions, "--of", area, "--csv", table).stdout
    assert re.search(r"2000 reports, \d+\.\d% of them from the area$", printed.splitlines()[0])
    centre, _ = rows_of(table)
    assert 0 < float(centre["lower"]) < float(centre["share"]) < float(centre["upper"]) <= 1
    assert "outside of the area" not in printed
    west = write_file(tmp_path, "west.csv", HEADER + CENTRE + "west,-4,-4.5,4,-4\n")
    printed = succeed("ranges", played, west, "--of", area).stdout
    assert "Regions on the map that lie outside of the area: 1 of 2" in printed
    alone = tmp_path / "alone.csv"
    succeed("ranges", played, regions, "--csv", alone)
    everyone = [float(row["share"]) for row in rows_of(alone)]
    assert float(centre["share"]) > everyone[0]
    empty = write_file(tmp_path, "empty.csv", HEADER)
    assert refusal("ranges", played, regions, "--of", empty).startswith("--of must hold rows")
    # Both sides of a line through cells: nobody counts for both.
    sides = "in,-3,0.3,3,0.7\nout,-3,0.7,3,9\nboth,-3,0.3,3,9\n"
    cut = write_file(tmp_path, "cut.csv", HEADER + sides)
    half = write_file(tmp_path, "half.csv", HEADER + "half,-9,-9,9,0.7\n")
    parts = tmp_path / "parts.csv"
    printed = succeed("ranges", played, cut, "--of", half, "--csv", parts).stdout
    assert "Regions on the map that lie outside of the area: 1 of 3" in printed
    within, out, both = rows_of(parts)
    assert [float(out[column]) for column in ("share", "lower", "upper", "touched")] == [0] * 4
    assert 0 < float(within["share"]) == pytest.approx(float(both["share"]))
    rule = "--method must be posterior for shares of an area, got 'fisher'"
    assert refusal("ranges", played, regions, "--of", area, "--method", "fisher") == rule
