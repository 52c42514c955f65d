"""``ldpspatial series simulate``: reports of each window, and the truth beside them."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from client_sdk import Series
from ldpspatial import count_reports
from ldpspatial.collecting.series_simulation import MOVED, people_of_series
from tests.support.command_line import refusal, succeed, write_people
from tests.support.files import write_file

FALSE_ALARM = 1e-6
WHEN = ("--start", "2027-01-18T00:00Z", "--every", "1d", "--windows", 3)


def made(folder: Path, *more: object) -> tuple[Path, Series]:
    path = folder / "series.json"
    square = ("--bounds", "47.95,10.95,0.1", "--cells", 8, "--epsilon", 3.5)
    succeed("series", "new", "three days", *square, *WHEN, *more, "--out", path)
    return path, Series.from_json(path.read_text(encoding="utf-8"))


def truth_of(out: Path) -> dict[int, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    found = {k: np.zeros((8, 8)) for k in range(1, 4)}
    with (out / "truth.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            found[int(row["window"])][int(row["row"]), int(row["col"])] = float(row["share"])
    return found


def test_reports_are_those_of_their_windows_beside_the_truth(tmp_path: Path) -> None:
    path, series = made(tmp_path)
    text = succeed("series", "simulate", path, "--people", 3_000, "--out", tmp_path / "r").stdout
    truth = truth_of(tmp_path / "r")
    total = 0
    for k in range(1, 4):
        collection = series.collection(k)
        counted = count_reports(tmp_path / "r" / f"reports-{k}.parquet", collection)
        assert truth[k].sum() == pytest.approx(1)
        assert f" {counted.n} " in text
        total += counted.n
    assert total == 3_000


def test_people_move_to_the_mirror_image_window_by_window(tmp_path: Path) -> None:
    """Of the people east of the middle, half of the difference moves west by the last window."""
    _, series = made(tmp_path)
    n = 30_000
    windows = list(people_of_series(series, n, np.random.default_rng(1)))
    middle = 10.95 + 0.05
    west = [float((each[:, 1] < middle).mean()) for each in windows]
    expected = (1 - MOVED) * west[0] + MOVED * (1 - west[0])
    spread = binom.isf(FALSE_ALARM, n // 3, 0.5) / (n // 3) - 0.5  # the widest of such shares
    assert west[2] == pytest.approx(expected, abs=2 * spread)
    assert abs(west[0] - 0.5) > 0.05, "else there would be no change to see"


@pytest.mark.parametrize("answers", [1, 2, 3])
def test_everybody_answers_as_many_windows_as_a_device(tmp_path: Path, answers: int) -> None:
    _, series = made(tmp_path, "--answers", answers)
    sizes = [len(each) for each in people_of_series(series, 900, np.random.default_rng(1))]
    assert sum(sizes) == 900 * answers
    bounds = binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], 900, answers / 3)
    assert all(bounds[0] <= size <= bounds[1] for size in sizes)


def test_files_of_positions_are_windows_in_their_order(tmp_path: Path) -> None:
    path, series = made(tmp_path)
    people = write_people(tmp_path / "visits.csv")
    some = write_file(tmp_path, "some.csv", "lat,lon\n48.0,11.0\n48.0,11.0\n0,0\n")
    out = tmp_path / "r"
    given = ("series", "simulate", path)
    text = succeed(*given, people, some, "--out", out).stdout
    assert sorted(p.name for p in out.iterdir()) == [
        "reports-1.parquet", "reports-2.parquet", "truth.csv",
    ]  # fmt: skip
    assert count_reports(out / "reports-2.parquet", series.collection(2)).n == 2
    assert text.splitlines()[3].split()[-2:] == ["2", "1"]
    assert truth_of(out)[2].max() == 1
    many = [write_file(tmp_path, f"{k}.csv", "lat,lon\n48,11\n") for k in range(4)]
    told = refusal(*given, *many, "--out", tmp_path / "x")
    assert "POINTS must be at most a file for each of the 3 windows, got 4" in told
    told = refusal(*given, people, "--out", out)
    assert told == f"--out must be a new or empty folder, got {out}"  # which nothing here replaces
