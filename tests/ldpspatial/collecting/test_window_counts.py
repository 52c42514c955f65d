"""Reports of a series by window: as counting each window alone would have it, in one reading."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from client_sdk import Collection, Grid, Series
from ldpspatial import InputError, count_reports
from ldpspatial.collecting import opened_reports
from ldpspatial.collecting.counting import CONFLICTING, FOREIGN, MALFORMED, OUTSIDE, UNNAMED
from ldpspatial.collecting.partial_counts import write_counts
from ldpspatial.collecting.report_files import write_reports
from ldpspatial.collecting.window_counts import count_windows
from tests.support.files import write_file

GRID = Grid.plane(0, 0, 8, 5)
TIMES = {"first_start": 1_800_000_000, "window_seconds": 86_400, "windows": 7}
WEEK = Series.create("a week", GRID, 3.5, **TIMES)
OTHER = Collection.create("another one", GRID, 3.5)
USED = (1, 2, 5)


def line(window: int | None, number: int, row: int = 0) -> str:
    digest = (OTHER if window is None else WEEK.collection(window)).digest
    return (
        f'{{"col":0,"collection":"{digest}","id":"{number:032x}","row":{row},'
        '"schema":"ldpspatial/report/1"}'
    )


def written(folder: Path, window: int, n: int, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, 5, (2, n))
    path = folder / f"window-{window}-{seed}.parquet"
    write_reports(path, WEEK.collection(window), rows, cols, ids(n, rng))
    return path


def ids(n: int, rng: np.random.Generator) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return rng.integers(0, 256, (n, 16)).astype(np.uint8)


def test_each_window_is_counted_as_if_alone(tmp_path: Path) -> None:
    files = [written(tmp_path, k, 500, k) for k in USED]
    found = count_windows(files, WEEK)
    assert list(found.windows) == list(USED)
    assert (found.n, found.rejected) == (1_500, {})
    for k, file in zip(USED, files, strict=True):
        alone = count_reports(file, WEEK.collection(k))
        np.testing.assert_array_equal(found.windows[k].counts, alone.counts)
        assert found.windows[k].facts == alone.facts


def test_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "reports.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(line(1 + k % 7, k) for k in range(70)).encode()))
    read = []
    copy = opened_reports.lines_to_parquet
    monkeypatch.setattr(
        opened_reports, "lines_to_parquet", lambda files, at: read.append(files) or copy(files, at)
    )
    assert {k: each.n for k, each in count_windows([path], WEEK).windows.items()} == dict.fromkeys(
        range(1, 8), 10
    )
    assert read == [[path]]


def test_what_is_left_out_is_told_by_window_and_reason(tmp_path: Path) -> None:
    lines = [
        *(line(2, 1), line(2, 1)),  # sent again
        *(line(2, 2), line(2, 2, row=1)),  # two reports under one id
        *(line(3, 2), line(3, 3, row=99)),  # an id of another window is another id
        *(line(None, 4), line(None, 4), "no report"),
        line(4, 5, row=99),
    ]
    path = write_file(tmp_path, "reports.jsonl", "\n".join(lines))
    found = count_windows([path], WEEK, "drop")
    assert {k: each.n for k, each in found.windows.items()} == {2: 1, 3: 1, 4: 0}
    assert found.windows[2].rejected == {CONFLICTING: 2}
    assert found.windows[2].repeated == 1
    assert found.windows[3].rejected == found.windows[4].rejected == {OUTSIDE: 1}
    assert found.rejected == {MALFORMED: 1, FOREIGN: 1}
    with pytest.raises(InputError) as refused:
        count_windows([path], WEEK)
    for problem in (f"1 {MALFORMED}", f"1 {FOREIGN}", f"2 {OUTSIDE}", f"2 {CONFLICTING}"):
        assert problem in str(refused.value)


def test_only_the_windows_that_are_asked_for_count(tmp_path: Path) -> None:
    files = [written(tmp_path, k, 100, k) for k in USED]
    found = count_windows(files, WEEK, windows=range(2, 5))
    assert ({k: each.n for k, each in found.windows.items()}, found.rejected) == ({2: 100}, {})
    with pytest.raises(InputError, match="at least one good report of a window, got none"):
        count_windows(files, WEEK, windows=range(3, 5))


def test_counts_of_windows_add_up_with_reports(tmp_path: Path) -> None:
    first, again, last = (written(tmp_path, k, 50, seed) for k, seed in ((2, 1), (2, 2), (6, 3)))
    part = tmp_path / "part.json"
    write_counts(part, WEEK.collection(2), count_reports(first, WEEK.collection(2)))
    found = count_windows([part, again, last], WEEK)
    assert {k: each.n for k, each in found.windows.items()} == {2: 100, 6: 50}
    assert count_windows([part], WEEK).n == 50
    foreign = tmp_path / "foreign.json"
    write_counts(foreign, OTHER, count_reports(one_of(tmp_path, OTHER), OTHER))
    with pytest.raises(InputError, match=r"counts must be those of a window of series .*foreign"):
        count_windows([part, foreign], WEEK, "drop")


def one_of(folder: Path, collection: Collection) -> Path:
    path = folder / "one.csv"
    write_reports(path, collection, [0], [0], np.zeros((1, 16), np.uint8))
    return path


def test_csv_without_ids_counts_and_says_so(tmp_path: Path) -> None:
    digests = [WEEK.collection(k).digest for k in (1, 1, 3)] + [""]
    rows = "".join(f"0,0,{digest}\n" for digest in digests)
    path = write_file(tmp_path, "reports.csv", f"row,col,collection\n{rows}")
    found = count_windows([path], WEEK, "drop")
    assert {k: (each.n, each.ids_checked) for k, each in found.windows.items()} == {
        1: (2, False), 3: (1, False),
    }  # fmt: skip
    assert found.rejected == {FOREIGN: 1}, "a report that names nothing is of no window"


def test_reports_without_an_id_among_others_are_those_of_their_window(tmp_path: Path) -> None:
    digest = WEEK.collection(1).digest
    rows = f"0,0,{1:032x},{digest}\n0,0,,{digest}\n"
    path = write_file(tmp_path, "reports.csv", f"row,col,id,collection\n{rows}")
    found = count_windows([path], WEEK, "drop").windows[1]
    assert (found.n, found.rejected) == (1, {UNNAMED: 1})


def test_reports_that_name_no_collection_are_refused(tmp_path: Path) -> None:
    path = write_file(tmp_path, "reports.csv", "row,col\n0,0\n")
    with pytest.raises(InputError, match="must have the column collection"):
        count_windows([path], WEEK, "drop")


def test_a_file_given_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 1, 5, 1)
    with pytest.raises(InputError, match="given twice"):
        count_windows([path, path], WEEK)


def test_counts_of_a_window_that_was_not_asked_for_are_left_aside(tmp_path: Path) -> None:
    part = tmp_path / "part.json"
    first, second = (written(tmp_path, k, 50, k) for k in (1, 2))
    write_counts(part, WEEK.collection(1), count_reports(first, WEEK.collection(1)))
    found = count_windows([part, second], WEEK, windows=range(2, 3))
    assert {k: each.n for k, each in found.windows.items()} == {2: 50}


def test_a_window_beyond_the_last_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="windows must lie within 1 to 7, got 7 to 8"):
        count_windows([written(tmp_path, 7, 5, 1)], WEEK, windows=range(7, 9))
