"""``ldpspatial series``: new documents, what they say, and the collections of their windows."""

from pathlib import Path

import pytest

from client_sdk import Collection, Grid, Series
from ldpspatial import count_reports
from ldpspatial.release.local.disks.disk_radius import FOR_USERS, disk_squared_radius
from tests.support.command_line import refusal, succeed

SQUARE = ("--center", "52.52,13.405", "--side-km", 20)
NEW = (*SQUARE, "--cells", 15, "--epsilon", 3.5)
WHEN = ("--start", "2027-01-18T00:00+01:00", "--every", "1d", "--windows", 7)
GRID = Grid.from_center(52.52, 13.405, 20_000, 15)
START = 1_800_226_800


def series(**more: int) -> Series:
    squared = disk_squared_radius(15, 3.5, FOR_USERS)
    times = {"first_start": START, "window_seconds": 86_400, "windows": 7}
    return Series.create(
        "a week", GRID, 3.5, mechanism="disk", squared_radius=squared, **times, **more
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "week.json"
    succeed("series", "new", "a week", *NEW, *WHEN, "--out", path)
    return path


def test_a_new_document_is_that_of_its_parameters(tmp_path: Path, path: Path) -> None:
    assert path.read_bytes() == series().to_json().encode()
    out = tmp_path / "more.json"
    text = succeed("series", "new", "a week", *NEW, *WHEN, "--answers", 2, "--out", out).stdout
    assert out.read_bytes() == series(answers=2).to_json().encode()
    assert f"{series(answers=2).digest}\n" in text
    assert "3.5-LDP per report (local), 7 per device and series" in text
    assert "7 of 86400 s each, of which a device answers 2" in text
    assert "2027-01-17 23:00:00 UTC to 2027-01-24 23:00:00 UTC" in text
    assert "15 x 15 cells of 1333 x 1333 m" in text
    assert text.endswith(f"Written to {out}\n")


def test_what_is_shown_is_what_was_written(path: Path) -> None:
    assert series().digest in succeed("series", "show", path).stdout


def test_the_collection_of_a_window_counts_its_reports(tmp_path: Path, path: Path) -> None:
    out = tmp_path / "wednesday.json"
    text = succeed("series", "window", path, 3, "--out", out).stdout
    assert "opens" in text
    assert "2027-01-19 23:00:00 UTC" in text
    collection = Collection.from_json(out.read_text(encoding="utf-8"))
    assert collection == series().collection(3)
    reports = tmp_path / "reports.jsonl"
    lines = [
        f'{{"col":0,"collection":"{series().collection(k).digest}","id":"{k:032x}",'
        '"row":0,"schema":"ldpspatial/report/1"}'
        for k in (2, 3)
    ]
    reports.write_text("\n".join(lines))
    counted = count_reports(reports, collection, on_invalid="drop")
    assert (counted.n, sum(counted.rejected.values())) == (1, 1)


@pytest.mark.parametrize(
    ("start", "seconds"),
    [
        ("2027-01-17T23:00Z", START), ("2027-01-17T23:00:00+00:00", START),
        ("2027-01-17 18:30-04:30", START),
    ],
)  # fmt: skip
def test_a_moment_has_an_offset(tmp_path: Path, start: str, seconds: int) -> None:
    out = tmp_path / "week.json"
    succeed("series", "new", "a week", *NEW, *WHEN, "--start", start, "--out", out)
    assert Series.from_json(out.read_text(encoding="utf-8")).first_start == seconds


@pytest.mark.parametrize(
    ("length", "seconds"), [("90s", 90), ("30min", 1800), ("6h", 21_600), ("2d", 172_800)]
)
def test_a_length_has_a_unit(tmp_path: Path, length: str, seconds: int) -> None:
    out = tmp_path / "week.json"
    succeed("series", "new", "a week", *NEW, *WHEN, "--every", length, "--out", out)
    assert Series.from_json(out.read_text(encoding="utf-8")).window_seconds == seconds


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--start", "2027-01-18T00:00"), "with an offset from UTC"),
        (("--start", "tomorrow"), "with an offset from UTC"),
        (("--start", "2027-01-18T00:00:00.5Z"), "in whole seconds"),
        (("--start", "1960-01-01T00:00Z"), "'--start': must not lie before 1970 in UTC"),
        (("--every", "7"), "must be a whole number with s, min, h or d"),
        (("--every", "0s"), "Invalid value for '--every': must be 1 to 1000000000 seconds, got"),
        (("--every", "99999d"), "must be 1 to 1000000000 seconds, got '99999d'"),
        (("--every", "1.5h"), "must be a whole number with"),
        (("--windows", 0), "windows must be a whole number from 1 to 100000, got 0"),
        (("--answers", 8), "answers must be at most windows = 7, got 8"),
        (("--epsilon", 0), "--epsilon must be a number from 0.000001"),
    ],
)
def test_bad_options_are_named(tmp_path: Path, change: tuple[object, ...], message: str) -> None:
    out = tmp_path / "week.json"
    assert message in refusal("series", "new", "a week", *NEW, *WHEN, *change, "--out", out)
    assert not out.exists()


def test_nothing_is_written_over(path: Path) -> None:
    before = path.read_bytes()
    assert "must be a new file" in refusal("series", "new", "b", *NEW, *WHEN, "--out", path)
    assert "must be a new file" in refusal("series", "window", path, 1, "--out", path)
    assert path.read_bytes() == before


def test_bad_documents_and_windows_are_named(tmp_path: Path, path: Path) -> None:
    out = tmp_path / "window.json"
    for window in (0, 8):
        told = refusal("series", "window", path, window, "--out", out)
        assert f"WINDOW must be a whole number from 1 to 7, got {window}" in told
    (tmp_path / "collection.json").write_text(series().collection(1).to_json())
    assert "schema must be 'ldpspatial/series/1'" in refusal(
        "series", "show", tmp_path / "collection.json"
    )
    assert f"SERIES {str(tmp_path / 'none.json')!r} cannot be read" in refusal(
        "series", "show", tmp_path / "none.json"
    )
    assert not out.exists()
