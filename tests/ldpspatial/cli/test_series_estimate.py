"""``ldpspatial series estimate``, and ``ranges --since`` of what it wrote."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk import Collection, Series
from ldpspatial import Field, StampChannel, share_change
from ldpspatial.channels.playing import draw_reports
from ldpspatial.cli.output import RESULTS, SERIES_RESULTS
from ldpspatial.collecting.report_files import write_reports
from ldpspatial.collecting.results import read_estimate, write_npz
from ldpspatial.collecting.window_counts import count_windows
from ldpspatial.estimation.field import estimator
from ldpspatial.places.regions import rectangle
from tests.support.command_line import refusal, run, succeed
from tests.support.files import write_file

D = 5
USED = (1, 2, 4)
REGIONS = "name,south,west,north,east\nnorth,52.025,13,52.05,13.05\ncut,52,13,52.033,13.021\n"
NEW = ("--bounds", "52,13,0.05", "--cells", D, "--epsilon", 3.5, "--radius", 1)
WHEN = ("--start", "2027-01-18T00:00Z", "--every", "1d", "--windows", 12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series of twelve windows, of which three have reports: people move north."""
    place = tmp_path_factory.mktemp("series")
    succeed("series", "new", "a dozen", *NEW, *WHEN, "--out", place / "series.json")
    series = read(place)
    rng = np.random.default_rng(1)
    for k in USED:
        collection = series.collection(k)
        rows = np.clip(rng.normal(k, 1, 800), 0, D - 1).astype(int)
        cols = rng.integers(0, D, 800)
        reports = draw_reports(collection.table, rows, cols, rng)
        ids = rng.integers(0, 256, (800, 16)).astype(np.uint8)
        write_reports(place / f"{k}.parquet", collection, *reports, ids)
    write_file(place, "regions.csv", REGIONS)
    return place


def read(place: Path) -> Series:
    return Series.from_json((place / "series.json").read_text(encoding="utf-8"))


def reports_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


@pytest.fixture(scope="module")
def mapped(folder: Path) -> tuple[Path, str]:
    out = folder / "maps"
    result = succeed("series", "estimate", folder / "series.json", *reports_of(folder),
                     "--out", out)  # fmt: skip
    return out, result.stdout


def summary_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


def test_each_window_has_the_files_of_an_estimate(folder: Path, mapped: tuple[Path, str]) -> None:
    out, _ = mapped
    names = [f"window-{k:02d}" for k in USED]
    assert sorted(p.name for p in out.iterdir()) == sorted([*SERIES_RESULTS, *names])
    series = read(folder)
    assert (out / "series.json").read_text() == series.to_json()
    for k, name in zip(USED, names, strict=True):
        held = {p.name for p in (out / name).iterdir()}
        assert held == set(RESULTS) - {"reports.parquet"}
        document = (out / name / "collection.json").read_text(encoding="utf-8")
        assert Collection.from_json(document) == series.collection(k)
        assert summary_of(out / name)["n"] == 800


def test_windows_are_those_of_one_fit_in_python(folder: Path, mapped: tuple[Path, str]) -> None:
    out, _ = mapped
    series = read(folder)
    counted = count_windows(reports_of(folder), series)
    counts = [each.counts for each in counted.windows.values()]
    found = Field().fit_windows(StampChannel(series.template.table), counts)
    files = [read_estimate(out / f"window-{k:02d}")[1] for k in USED]
    for window, file in zip(found, files, strict=True):
        np.testing.assert_array_equal(window.density, file.density)
        assert window.details == file.details
    assert len({file.facts["fit"] for file in files}) == 1
    assert files[0].facts["windows"] == 3


def test_the_summary_tells_of_windows_gaps_and_likeness(mapped: tuple[Path, str]) -> None:
    out, text = mapped
    summary = summary_of(out)
    assert [each["window"] for each in summary["windows"]] == list(USED)
    assert [each["folder"] for each in summary["windows"]] == [f"window-{k:02d}" for k in USED]
    assert (summary["gaps"], summary["too_few"], summary["rejected"]) == ([3], {}, {})
    assert summary["n"] == 2_400
    assert -1 <= summary["estimator"]["correlation"] <= 1
    assert "2400 reports, each 3.5-LDP" in text
    assert "2027-01-21 00:00:00 UTC      800" in text
    assert "gaps             3\n" in text
    assert f"alike            correlation {summary['estimator']['correlation']:.2f} of one" in text
    with (out / "windows.csv").open(encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream))
    assert [(row["window"], row["reports"]) for row in table] == [(str(k), "800") for k in USED]


def test_what_is_told_of_the_samples_of_one_window(folder: Path, tmp_path: Path) -> None:
    """That its field is like the next one's is not: there is none."""
    given = ("series", "estimate", folder / "series.json", folder / "2.parquet")
    text = succeed(*given, "--estimator", "map-alone", "--out", tmp_path / "out").stdout
    assert "samples          MAP: the map alone, whose chains are not judged; no samples" in text
    assert "alike" not in text


def test_windows_unlike_the_others_or_beyond_the_support_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows 1 and 4 are alike; 2 is taken for unlike; nobody of 3 can be where they are."""
    monkeypatch.setattr(estimator, "is_unlike", lambda _, counts, *__: counts.sum() < 1_000)
    succeed("series", "new", "a dozen", *NEW, *WHEN, "--out", tmp_path / "series.json")
    series = read(tmp_path)
    rng = np.random.default_rng(2)
    windows = ((1, 5_000, 0, 2), (2, 100, 2, 2), (3, 9_000, 4, 1), (4, 5_000, 0, 2))
    for k, number, first, width in windows:
        collection = series.collection(k)
        rows, cols = rng.integers(0, D, number), rng.integers(first, first + width, number)
        reports = draw_reports(collection.table, rows, cols, rng)
        ids = rng.integers(0, 256, (number, 16)).astype(np.uint8)
        write_reports(tmp_path / f"{k}.parquet", collection, *reports, ids)
    land = write_file(tmp_path, "land.csv", "name,south,west,north,east\nland,52,13,52.05,13.04\n")
    out = tmp_path / "maps"
    result = run("series", "estimate", tmp_path / "series.json", *reports_of(tmp_path),
                 "--support", land, "--out", out)  # fmt: skip
    assert result.exit_code == 0
    assert "Warning: window 2: its reports speak against" in result.stderr
    assert "Warning: window 3: support leaves out people" in result.stderr
    assert "fitted alone     2, 3: see the warnings for why\n" in result.stdout
    assert "samples          3: UNTRUSTED: the support leaves out people; inter" in result.stdout
    summary = summary_of(out)
    assert [each["fitted_together"] for each in summary["windows"]] == [2, 1, 1, 2]
    assert [each["outside"] > 0 for each in summary["windows"]] == [False, False, True, False]
    assert (
        f"alike            correlation {summary['estimator']['correlation']:.2f}" in result.stdout
    )
    assert summary["estimator"]["correlation"] < 1
    with (out / "windows.csv").open(encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream))
    assert [row["fitted_together"] for row in table] == ["2", "1", "1", "2"]
    assert table[2]["verdict"] == "untrusted"


def test_what_is_said_of_all_is_said_of_windows_that_the_support_holds(tmp_path: Path) -> None:
    """Though more of them are of people beyond it."""
    succeed("series", "new", "a dozen", *NEW, *WHEN, "--out", tmp_path / "series.json")
    series = read(tmp_path)
    rng = np.random.default_rng(3)
    for k, first in ((1, 4), (2, 0), (3, 4), (4, 4)):
        collection = series.collection(k)
        rows, cols = rng.integers(0, D, 5_000), rng.integers(first, first + 1, 5_000)
        reports = draw_reports(collection.table, rows, cols, rng)
        ids = rng.integers(0, 256, (5_000, 16)).astype(np.uint8)
        write_reports(tmp_path / f"{k}.parquet", collection, *reports, ids)
    land = write_file(tmp_path, "land.csv", "name,south,west,north,east\nland,52,13,52.05,13.04\n")
    result = run("series", "estimate", tmp_path / "series.json", *reports_of(tmp_path),
                 "--support", land, "--out", tmp_path / "maps")  # fmt: skip
    assert result.exit_code == 0
    assert "Warning: window 2: the other windows are fitted apart from it" in result.stderr
    assert "fitted alone     2: see the warnings for why\n" in result.stdout
    assert "alike" not in result.stdout
    summary = summary_of(tmp_path / "maps")
    assert [each["fitted_together"] for each in summary["windows"]] == [3, 1, 3, 3]
    assert summary["estimator"]["windows"] == 1
    assert summary["estimator"]["verdict"] != "untrusted"


def test_windows_that_are_too_few_or_not_asked_for_have_no_map(folder: Path) -> None:
    out = folder / "some"
    few = write_file(folder, "few.csv", "row,col,id,collection\n" + "".join(
        f"0,0,{k:032x},{read(folder).collection(3).digest}\n" for k in range(5)
    ))  # fmt: skip
    part = folder / "few.json"
    succeed("series", "window", folder / "series.json", 3, "--out", folder / "third.json")
    succeed("count", folder / "third.json", few, "--out", part)
    way = ("--windows", "2-4", "--minimum", 6, "--estimator", "em", "--out", out)
    given = ("series", "estimate", folder / "series.json", *reports_of(folder), part)
    result = succeed(*given, *way)
    assert "too few reports  3 (5)\n" in result.stdout
    assert sorted(p.name for p in out.glob("window-*")) == ["window-02", "window-04"]
    assert (summary_of(out)["gaps"], summary_of(out)["too_few"]) == ([3], {"3": 5})
    told = refusal("series", "estimate", folder / "series.json", part, "--minimum", 6,
                   "--out", folder / "no")  # fmt: skip
    assert "minimum must be at most the reports of some window, got 6" in told
    assert not (folder / "no").exists()


def test_side_information_is_that_of_every_window(folder: Path, tmp_path: Path) -> None:
    land = write_file(tmp_path, "land.csv", "name,south,west,north,east\nland,52,13,52.03,13.05\n")
    out = tmp_path / "out"
    given = ("series", "estimate", folder / "series.json", *reports_of(folder)[:2], "--out", out)
    result = run(*given, "--support", land, "--intervals", "none")
    assert result.exit_code == 0
    assert "Warning: window 2: support leaves out people" in result.stderr  # they move out of it
    for k in USED[:2]:
        _, found = read_estimate(out / f"window-{k:02d}")
        assert found.density[3:].sum() == 0
        assert found.facts["possible"] == 3 * D


def test_an_estimate_of_the_same_reports_is_no_prior(
    folder: Path, mapped: tuple[Path, str], tmp_path: Path
) -> None:
    given = ("series", "estimate", folder / "series.json", *reports_of(folder)[:2])
    way = ("--estimator", "map-alone", "--intervals", "none", "--out", tmp_path / "out", "--prior")
    for kept in ("window-02/estimate.npz", "window-01/estimate.csv"):
        told = refusal(*given, *way, mapped[0] / kept)
        assert "prior must not be made of the reports that are estimated" in told
    succeed(*given, *way, mapped[0] / "window-04" / "estimate.npz")


def test_the_folder_of_a_series_is_told_from_that_of_a_window(
    folder: Path, mapped: tuple[Path, str]
) -> None:
    told = refusal("ranges", mapped[0], folder / "regions.csv")
    assert "must be the folder of one window of a series, such as" in told
    assert told.rstrip().endswith("which holds 3")


def test_a_result_of_another_window_is_not_replaced(folder: Path, mapped: tuple[Path, str]) -> None:
    way = (mapped[0] / "window-01", folder / "regions.csv", "--overwrite")
    for kept in ("window-02/estimate.csv", "window-01/estimate.csv", "windows.csv"):
        before = (mapped[0] / kept).read_bytes()
        told = refusal("ranges", *way, "--csv", mapped[0] / kept)
        assert "--csv must not replace an input or a result" in told
        assert (mapped[0] / kept).read_bytes() == before


def test_an_earlier_result_is_replaced_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    way = ("--estimator", "em", "--intervals", "none", "--out", out)
    estimate = ("series", "estimate", folder / "series.json")
    succeed(*estimate, *reports_of(folder), *way)
    (out / "window-01" / "note.txt").write_text("mine")
    (out / "notes").mkdir()
    assert "must be a new or empty folder" in refusal(*estimate, folder / "2.parquet", *way)
    succeed(*estimate, folder / "2.parquet", *way, "--overwrite")
    assert [p.name for p in (out / "window-01").iterdir()] == ["note.txt"]
    assert sorted(p.name for p in out.iterdir()) == sorted(
        [*SERIES_RESULTS, "notes", "window-01", "window-02"]
    )
    kept = out / "window-02" / "reports.parquet"
    kept.write_bytes((folder / "2.parquet").read_bytes())
    assert "must not hold an input" in refusal(*estimate, kept, *way, "--overwrite")


def test_reports_of_another_collection_are_refused_or_dropped(folder: Path, tmp_path: Path) -> None:
    other = Collection.create("other", read(folder).template.grid, 3.5)
    write_reports(tmp_path / "o.parquet", other, [0], [0], np.zeros((1, 16), np.uint8))
    given = ("series", "estimate", folder / "series.json", *reports_of(folder),
             tmp_path / "o.parquet", "--estimator", "em", "--out", tmp_path / "out")  # fmt: skip
    told = refusal(*given)
    assert "1 name another collection" in told
    assert "(--on-invalid drop leaves them out and counts them)" in told
    assert "of no window     1 name another" in succeed(*given, "--on-invalid", "drop").stdout


@pytest.mark.parametrize("windows", ["0", "3-", "x", "4-3", "-3", "11-13"])
def test_bad_windows_are_refused(folder: Path, tmp_path: Path, windows: str) -> None:
    told = refusal("series", "estimate", folder / "series.json", *reports_of(folder),
                   "--windows", windows, "--out", tmp_path / "out")  # fmt: skip
    assert "--windows" in told
    if windows == "11-13":
        assert told == "--windows must lie within 1 to 12, got 11 to 13"


def test_more_windows_than_a_field_takes_are_refused_with_what_to_do(tmp_path: Path) -> None:
    many = (*WHEN[:-1], 101)
    succeed("series", "new", "many", *NEW, *many, "--out", tmp_path / "many.json")
    series = Series.from_json((tmp_path / "many.json").read_text(encoding="utf-8"))
    rows = "".join(f"0,0,{series.collection(k).digest}\n" for k in range(1, 102))
    reports = write_file(tmp_path, "reports.csv", f"row,col,collection\n{rows}")
    given = ("series", "estimate", tmp_path / "many.json", reports, "--out", tmp_path / "out")
    told = refusal(*given)
    assert "windows must be at most 100 to be estimated together, and 101 have reports" in told
    assert "(--windows 1-100 takes a part of them)" in told


def test_changes_are_those_of_python(
    folder: Path, mapped: tuple[Path, str], tmp_path: Path
) -> None:
    out, _ = mapped
    table, drawn = tmp_path / "changes.csv", tmp_path / "changes.geojson"
    later, earlier = out / "window-04", out / "window-01"
    result = succeed("ranges", later, folder / "regions.csv", "--since", earlier, "--csv", table,
                     "--geojson", drawn, "--level", 0.9)  # fmt: skip
    collection, after = read_estimate(later)
    _, before = read_estimate(earlier)
    weights = rectangle(collection.grid, 52, 13, 52.033, 13.021)
    change = share_change(before, after, weights, 0.9)
    with table.open(encoding="utf-8", newline="") as stream:
        north, cut = csv.DictReader(stream)
    assert cut["name"] == "cut"
    for column, value in (
        ("change", change.estimate), ("lower", change.lower), ("upper", change.upper),
    ):  # fmt: skip
        assert float(cut[column]) == pytest.approx(value)
    assert float(cut["share"]) - float(cut["share_before"]) == pytest.approx(change.estimate)
    document = json.loads(drawn.read_text())
    assert document["method"] == "windows of one fit"
    assert document["features"][1]["properties"]["upper"] == pytest.approx(change.upper)
    assert f"{100 * float(north['change']):+.2f}" in result.stdout
    assert "90 % intervals of changes, windows of one fit, 800 and 800 reports" in result.stdout


def test_estimates_of_separate_fits_are_compared_as_such(
    folder: Path, mapped: tuple[Path, str], tmp_path: Path
) -> None:
    out, _ = mapped
    for k in (1, 4):
        window = tmp_path / f"{k}.json"
        succeed("series", "window", folder / "series.json", k, "--out", window)
        succeed("estimate", window, folder / f"{k}.parquet", "--out", tmp_path / f"map-{k}")
    alone = [tmp_path / "map-4", tmp_path / "map-1"]
    text = succeed("ranges", alone[0], folder / "regions.csv", "--since", alone[1]).stdout
    assert "separate fits" in text
    mixed = succeed("ranges", alone[0], folder / "regions.csv", "--since", out / "window-01")
    assert "separate fits" in mixed.stdout
    corner = "name,south,west,north,east\ncorner,52.001,13.001,52.002,13.002\n"
    small = write_file(tmp_path, "small.csv", corner)
    told = succeed("ranges", alone[0], small, "--since", alone[1]).stdout
    assert "Regions of less than 5 cells: 1 of 1. All people of a cell may have come" in told


def test_an_area_leaves_out_the_rest(folder: Path, mapped: tuple[Path, str]) -> None:
    out, _ = mapped
    area = write_file(folder, "area.csv", "name,south,west,north,east\na,52,13,52.05,13.025\n")
    given = ("ranges", out / "window-04", folder / "regions.csv", "--since", out / "window-02")
    text = succeed(*given, "--of", area).stdout
    assert succeed(*given).stdout != text
    assert "outside of the area" not in text
    area = write_file(folder, "small.csv", "name,south,west,north,east\na,52,13,52.001,13.001\n")
    text = succeed(*given, "--of", area).stdout
    assert re.search(r"lie outside of the area: [1-9] of", text)


def test_what_cannot_be_compared_is_refused(
    folder: Path, mapped: tuple[Path, str], tmp_path: Path
) -> None:
    out, _ = mapped
    given = ("ranges", out / "window-04", folder / "regions.csv", "--since")
    told = refusal(*given, out / "window-04")
    assert told.startswith("--since ")
    assert told.endswith(": must be of other reports than later, got the same counts")
    assert "--since needs --method posterior" in refusal(
        *given, out / "window-01", "--method", "fisher"
    )
    assert "--since must be an estimate.npz" in refusal(*given, folder / "regions.csv")
    wider = Collection.create("wider", read(folder).template.grid, 3.5, radius=2)
    channel = StampChannel(wider.table)
    assert wider.table.radius != read(folder).template.table.radius
    found = Field().fit(channel, np.where(channel.support, 9.0, 0.0))
    write_npz(tmp_path / "estimate.npz", wider, found)
    assert "separate fits" in succeed(*given, tmp_path / "estimate.npz").stdout
    succeed("series", "new", "b", "--bounds", "52,13,0.06", *NEW[2:], *WHEN, "--out",
            tmp_path / "b.json")  # fmt: skip
    elsewhere = Series.from_json((tmp_path / "b.json").read_text(encoding="utf-8")).collection(1)
    moved = StampChannel(elsewhere.table)
    write_npz(tmp_path / "b.npz", elsewhere, Field().fit(moved, np.where(moved.support, 9.0, 0.0)))
    assert "--since must be an estimate of the same grid" in refusal(*given, tmp_path / "b.npz")


def test_a_file_of_before_opens_and_counts_as_a_fit_of_its_own(
    folder: Path, mapped: tuple[Path, str], tmp_path: Path
) -> None:
    out, _ = mapped
    for k in (1, 4):
        with np.load(out / f"window-{k:02d}" / "estimate.npz") as held:
            kept = {name: held[name] for name in held.files if name != "fit"}
        np.savez(tmp_path / f"{k}.npz", **kept)
    given = ("ranges", tmp_path / "4.npz", folder / "regions.csv", "--since", tmp_path / "1.npz")
    assert "separate fits" in succeed(*given).stdout
