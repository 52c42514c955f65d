"""``ldpspatial estimate``: from the files of a collection to its map."""

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from client_sdk import Collection, Report
from ldpspatial import StampChannel
from ldpspatial import estimate as recover
from ldpspatial.cli.output import RESULTS
from ldpspatial.collecting import counting
from ldpspatial.collecting.verdicts import fit_verdict
from ldpspatial.estimation.field.posterior import Posterior
from tests.support.command_line import refusal, run, succeed, write_people
from tests.support.files import write_file


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("played")
    file = write_people(folder / "visits.csv")
    succeed("simulate", file, "--cells", 5, "--epsilon", 2, "--radius", 1, "--out", folder / "r")
    return folder / "r"


def arrays(folder: Path) -> dict[str, Any]:
    with np.load(folder / "estimate.npz", allow_pickle=False) as npz:
        return dict(npz)


def summary_of(out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return document


def reports_as(path: Path, reports: Path, change: dict[str, Any]) -> Path:
    """Write the reports again with some columns changed."""
    columns = pq.read_table(reports).to_pydict()
    for name, values in change.items():
        columns[name][: len(values)] = values
    pq.write_table(pa.table(columns), path)
    return path


def test_an_estimate_waits_for_none_of_the_slowest_libraries(played: Path, tmp_path: Path) -> None:
    """scipy.stats and scipy.signal take as long to load as a map of few cells to estimate."""
    given = ["estimate", played / "collection.json", played / "reports.parquet", "--out"]
    code = """
import sys
from ldpspatial.cli.main import main
main(sys.argv[1:], standalone_mode=False)
assert not {"scipy.stats", "scipy.signal"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, *given, tmp_path / "map"], check=True)


def test_the_files_of_a_simulation_give_its_map_again(played: Path, tmp_path: Path) -> None:
    out = tmp_path / "map"
    result = succeed(
        "estimate", played / "collection.json", played / "reports.parquet", "--out", out
    )
    assert sorted(p.name for p in out.iterdir()) == sorted(set(RESULTS) - {"reports.parquet"})
    before, after = arrays(played), arrays(out)
    assert before.keys() == after.keys()
    for name, values in before.items():
        np.testing.assert_array_equal(values, after[name], err_msg=name)
    for name in ("collection.json", "estimate.csv", "estimate.geojson"):
        assert (out / name).read_bytes() == (played / name).read_bytes()
    first, second = summary_of(played), summary_of(out)
    assert {name: first[name] for name in ("collection", "n", "fit", "estimator")} == {
        name: second[name] for name in ("collection", "n", "fit", "estimator")
    }
    assert (second["rejected"], second["repeated"], second["ids_checked"]) == ({}, 0, True)
    assert result.stdout.startswith("300 reports, each 2-LDP\n")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (("row", "col", "density"), "density"),
        (("row", "col", "latitude", "longitude", "Share"), "share"),
        (("row", "col", "people"), "people"),
        (("row", "col", "count"), "count"),
        (("id", "row", "col", "n"), "n"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_maps_and_counts_are_not_taken_for_reports(
    columns: tuple[str, ...], told: str, suffix: str, played: Path, tmp_path: Path
) -> None:
    table = pa.table({name: [1, 2] for name in columns})
    file = tmp_path / f"other.{suffix}"
    write = pq.write_table if suffix == "parquet" else pa_csv.write_csv
    write(table, file)
    out = tmp_path / "map"
    for drop in ((), ("--on-invalid", "drop")):
        error = refusal("estimate", played / "collection.json", file, *drop, "--out", out)
        assert error.startswith(f"REPORTS must be a line for each report, but {file} has a column ")
        assert f"has a column {told}, as maps and counts of cells have: give " in error
    assert not out.exists()


def test_the_estimate_beside_the_reports_is_not_taken_for_them(
    played: Path, tmp_path: Path
) -> None:
    error = refusal(
        *("estimate", played / "collection.json", played / "estimate.csv"), "--out", tmp_path / "m"
    )
    assert "estimate.csv has a column density, as maps" in error


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("lat,lon\n48,11\n", ": ldpspatial simulate plays a collection on positions"),
        ("name,south,west,north,east\na,1,1,2,2\n", ": ldpspatial ranges reads regions"),
        ("source_row,source_col,mass\n1,1,1\n", ": it holds a plan of ldpspatial distance"),
        ("release,epsilon,w2\ndam,1,2\n", ": it holds a comparison of ldpspatial compare"),
        ("a,b\n1,2\n", ""),
    ],
)
def test_what_else_a_file_may_be_is_told(
    text: str, remedy: str, played: Path, tmp_path: Path
) -> None:
    file = write_file(tmp_path, "other.csv", text)
    error = refusal("estimate", played / "collection.json", file, "--out", tmp_path / "map")
    assert error == f"REPORTS must have the columns row and col, {file} has no row{remedy}"


def test_a_summary_is_named_where_another_file_belongs(played: Path, tmp_path: Path) -> None:
    summary, out = played / "summary.json", ("--out", tmp_path / "map")
    reports = played / "reports.parquet"
    error = refusal("estimate", summary, reports, *out)
    assert error.startswith(f"COLLECTION {str(summary)!r}: ")
    error = refusal("estimate", played / "collection.json", summary, *out)
    rule = "counts that ldpspatial count wrote where a file ends in .json"
    assert error == f"REPORTS must be {rule}, got {str(summary)!r}"
    for option in ("--support", "--prior"):
        error = refusal("estimate", played / "collection.json", reports, option, summary, *out)
        assert error == f"{option} must be a GeoJSON FeatureCollection, but 'summary.json' is not"


def test_reports_may_come_as_text_in_parts_and_without_ids(played: Path, tmp_path: Path) -> None:
    columns = pq.read_table(played / "reports.parquet").to_pydict()
    lines = [f"{row},{col}\n" for row, col in zip(columns["row"], columns["col"], strict=True)]
    parts = [
        write_file(tmp_path, "a.csv", "row,col\n" + "".join(lines[:100])),
        write_file(tmp_path, "b.csv.gz", "row,col\n" + "".join(lines[100:])),
    ]
    out = tmp_path / "map"
    result = succeed("estimate", played / "collection.json", *parts, "--out", out)
    np.testing.assert_array_equal(arrays(out)["density"], arrays(played)["density"])
    assert summary_of(out)["ids_checked"] is False
    assert "not looked for: no ids" in result.stdout


def test_the_ways_to_estimate_are_options(played: Path, tmp_path: Path) -> None:
    inputs = played / "collection.json", played / "reports.parquet"
    ways = ("--rule", "published", "--smoothing", "binomial", "--intervals", "none")
    succeed("estimate", *inputs, *ways, "--out", tmp_path / "map")
    found = arrays(tmp_path / "map")
    estimator = summary_of(tmp_path / "map")["estimator"]
    assert (estimator["rule"], estimator["smoothing"]) == ("published", "binomial")
    assert "lower" not in found
    assert not np.array_equal(found["density"], arrays(played)["density"])


def test_the_same_reports_give_the_same_posterior_intervals(played: Path, tmp_path: Path) -> None:
    inputs = "estimate", played / "collection.json", played / "reports.parquet"
    for name in ("one", "two"):
        succeed(*inputs, "--intervals", "posterior", "--out", tmp_path / name)
    one, two = arrays(tmp_path / "one"), arrays(tmp_path / "two")
    assert str(one["method"]) == "posterior"
    for bound in ("lower", "upper"):
        np.testing.assert_array_equal(one[bound], two[bound])


def test_what_the_field_found_is_in_summary_and_file(played: Path, tmp_path: Path) -> None:
    inputs = "estimate", played / "collection.json", played / "reports.parquet"
    way = ("--rule", "field", "--intervals", "none", "--out", tmp_path / "map")
    for rule in ("field", "robust", "map-alone"):
        assert f"smoothing must be left out (None) with rule {rule}," in refusal(
            *inputs, "--rule", rule, "--smoothing", "binomial", "--out", tmp_path / "map"
        )
    succeed(*inputs, *way)
    estimator, found = summary_of(tmp_path / "map")["estimator"], arrays(tmp_path / "map")
    channel = StampChannel(Collection.from_json((played / "collection.json").read_text()).table)
    expected = recover(channel, arrays(played)["counts"], "field")
    assert estimator["rule"] == found["rule"] == "field"
    for name, value in expected.facts.items():
        assert estimator[name] == found[name] == value, name
    assert estimator["iterations"] == found["iterations"] == expected.iterations
    np.testing.assert_array_equal(found["density"], expected.density)


def test_a_quick_look_says_nothing_of_a_posterior(played: Path, tmp_path: Path) -> None:
    inputs = "estimate", played / "collection.json", played / "reports.parquet"
    succeed(*inputs, "--rule", "em", "--intervals", "none", "--out", tmp_path / "map")
    other = summary_of(tmp_path / "map")["estimator"]
    told = {each.name for each in fields(Posterior)}
    assert not told & (other.keys() | arrays(tmp_path / "map").keys())
    assert other["smoothing"] == "none"


@pytest.mark.parametrize(
    ("change", "reason", "number"),
    [
        ({"collection": ["0" * 64] * 3}, counting.FOREIGN, 3),
        ({"row": [6, -2], "col": [0, 0]}, counting.OUTSIDE, 2),
        ({"id": [b"x" * 16] * 2, "row": [0, 1]}, counting.CONFLICTING, 2),
    ],
    ids=["foreign", "outside", "conflicting"],
)
def test_bad_reports_are_refused_or_left_out_and_counted_by_reason(
    change: dict[str, Any], reason: str, number: int, played: Path, tmp_path: Path
) -> None:
    bad = reports_as(tmp_path / "bad.parquet", played / "reports.parquet", change)
    arguments = ("estimate", played / "collection.json", bad, "--out", tmp_path / "map")
    problem = f"{number} {reason}"
    error = refusal(*arguments)
    assert problem in error
    assert "--on-invalid drop" in error
    assert [p.name for p in tmp_path.iterdir()] == ["bad.parquet"]
    result = succeed(*arguments, "--on-invalid", "drop")
    found = summary_of(tmp_path / "map")
    assert found["rejected"] == {reason: number}
    assert found["n"] == 300 - number
    assert problem in result.stdout


def test_a_report_that_came_again_counts_once(played: Path, tmp_path: Path) -> None:
    table = pq.read_table(played / "reports.parquet")
    pq.write_table(table.slice(200), tmp_path / "again.parquet")
    inputs = "estimate", played / "collection.json", played / "reports.parquet"
    result = succeed(*inputs, tmp_path / "again.parquet", "--out", tmp_path / "map")
    np.testing.assert_array_equal(arrays(tmp_path / "map")["counts"], arrays(played)["counts"])
    summary = summary_of(tmp_path / "map")
    assert (summary["n"], summary["rejected"], summary["repeated"]) == (300, {}, 100)
    assert "100 not counted again" in result.stdout


def test_the_texts_that_devices_sent_are_lines_and_count_once_however_often_they_came(
    played: Path, tmp_path: Path
) -> None:
    digest = Collection.from_json((played / "collection.json").read_text()).digest
    columns = pq.read_table(played / "reports.parquet").to_pydict()
    reports = [
        Report(digest, name.hex(), row, col).to_json().ljust(192)
        for name, row, col in zip(*(columns[c] for c in ("id", "row", "col")), strict=True)
    ]
    parts = [
        write_file(tmp_path, "a.jsonl", "\n".join(reports[:200])),
        write_file(tmp_path, "b.ndjson.gz", "\r\n".join(reports[100:])),
    ]
    inputs = "estimate", played / "collection.json", *parts
    result = succeed(*inputs, "--out", tmp_path / "map")
    np.testing.assert_array_equal(arrays(tmp_path / "map")["counts"], arrays(played)["counts"])
    summary = summary_of(tmp_path / "map")
    assert (summary["n"], summary["rejected"], summary["repeated"]) == (300, {}, 100)
    assert "100 not counted again" in result.stdout

    parts[0].write_text("\n".join([*reports[:200], "567"]))
    message = refusal(*inputs, "--out", tmp_path / "m")
    assert re.search(
        r"1 are malformed \(first: line 201 of .*\) \(--on-invalid drop leaves", message
    )
    assert "567" not in refusal(*inputs, "--out", tmp_path / "m")
    succeed(*inputs, "--on-invalid", "drop", "--out", tmp_path / "m")
    summary = summary_of(tmp_path / "m")
    assert (summary["n"], summary["rejected"]) == (300, {counting.MALFORMED: 1})


def test_reports_that_no_population_can_have_sent_are_called_out(
    played: Path, tmp_path: Path
) -> None:
    # Two corners of the margin far apart: no density predicts these alone.
    file = write_file(tmp_path, "forged.csv", "row,col\n" + "-1,0\n5,4\n" * 500)
    result = run("estimate", played / "collection.json", file, "--out", tmp_path / "map")
    assert result.exit_code == 0
    assert "THE COUNTS DO NOT FIT THIS COLLECTION" in result.stdout
    fit = summary_of(tmp_path / "map")["fit"]
    assert fit["plausible"] is False
    assert fit["misfit"]


def test_a_verdict_names_what_counts_look_like() -> None:
    fit = {"p_value": 1e-9, "plausible": False, "misfit": "the margin", "interval": [0.02, 0.06]}
    assert fit_verdict({"fit": fit}).endswith("; most like the margin, 2.0% to 6.0% of all")
    unnamed = fit_verdict({"fit": fit | {"interval": None}})
    assert unnamed.endswith("forged or mixed reports")
    assert fit_verdict({"fit": fit | {"p_value": 0.5, "plausible": True}}).endswith("(p = 0.5)")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("r.csv", "a,b\n1,2\n", "REPORTS columns row col"),
        ("r.csv", "row,col\nhere,2\n", "row"),
        ("r.csv", "row,col\n", "REPORTS"),
        ("r.csv", "48.567,11.567\n48.567,11.567\n", "REPORTS columns row col"),
        ("r.parquet", "no parquet", "reports"),
        ("r.txt", "row,col\n1,1\n", "REPORTS must be .parquet .csv r.txt"),
    ],
)
def test_files_that_hold_no_reports_are_refused(
    name: str, content: str, words: str, played: Path, tmp_path: Path
) -> None:
    file = write_file(tmp_path, name, content)
    error = refusal("estimate", played / "collection.json", file, "--out", tmp_path / "map")
    assert [word for word in words.split() if word not in error] == []
    # They may be positions, given by mistake.
    assert "567" not in error.replace(str(tmp_path), "")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_reports_must_be_files_that_exist(played: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "none.parquet", tmp_path):
        error = refusal("estimate", played / "collection.json", path, "--out", tmp_path / "map")
        assert error.startswith("REPORTS must be")
        assert str(path) in error
    assert not any(tmp_path.iterdir())
