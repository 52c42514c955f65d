"""A budget over windows, and the risk of staying: the commands on few devices, and their docs."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from client_sdk import response_table
from experiments.places import places
from experiments.sources import CHICAGO, CHICAGO_SQUARE, NEW_YORK, NEW_YORK_SQUARE
from experiments.studies import series as module
from experiments.studies import still_device as risk_module
from experiments.studies.series import (
    ANSWERS,
    CELLS,
    LOSS,
    WINDOWS,
    play_series,
    series,
    windows_answered,
)
from experiments.studies.still_device import still_device
from experiments.tables import DOCS

MAPS = ("normal", "szipf", "mnormal", "chicago", "new york")


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "docs"
    (folder / "experiments").mkdir(parents=True)
    for name, page in (("series", "experiments/windows.md"), ("still-device", "privacy.md")):
        (folder / page).write_text(f"before\n<!-- {name} -->\n<!-- /{name} -->\nafter\n")
    monkeypatch.setattr(module, "DOCS", folder)
    monkeypatch.setattr(risk_module, "DOCS", folder)
    return folder


def cities(folder: Path) -> Path:
    """Write 50 points a city, with the columns that are read."""
    rng = np.random.default_rng(1)
    for name, (south, west, side) in ((CHICAGO, CHICAGO_SQUARE), (NEW_YORK, NEW_YORK_SQUARE)):
        at = np.array([south, west]) + side * rng.random((50, 2))
        with gzip.open(folder / name, "wt") as stream:
            stream.write("\n".join(["lat,lon", *(f"{y:.5f},{x:.5f}" for y, x in at)]) + "\n")
    return folder


@pytest.mark.parametrize("with_data", [False, True])
def test_the_series_command_has_a_line_for_every_map(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_data: bool
) -> None:
    monkeypatch.setattr(module, "TRIALS", 200)
    given = ["--devices", "300", "--repeats", "2", "--write"]
    given += ["--data", str(cities(tmp_path))] if with_data else []
    result = CliRunner().invoke(series, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    text = (docs / "experiments" / "windows.md").read_text()
    assert text.startswith(
        "before\n<!-- series -->\n| map | 1 of 7 at eps 3.5 | 2 of 7 at eps 1.75 "
    )
    assert text.endswith(" |\n<!-- /series -->\nafter\n")
    found = re.findall(r"^\| ([a-z ]+) \| \d\.\d{3} ± ", text, re.M)
    assert tuple(found) == (MAPS if with_data else MAPS[:3])
    assert "| all 7 at eps 0.5 | 300 | 0." in text


def test_a_folder_without_the_files_is_an_error_of_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(series, ["--data", str(tmp_path)])
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert "--data must hold" in result.output


def test_every_device_answers_as_many_windows_and_all_windows_are_alike() -> None:
    n = 20_000
    for answers in ANSWERS:
        answered = windows_answered(n, answers, np.random.default_rng(1))
        assert answered.shape == (n, WINDOWS)
        assert (answered.sum(axis=1) == answers).all()
        # Binomial shares, seven windows, six standard deviations: a false alarm once in 2e7.
        share = answers / WINDOWS
        assert np.abs(answered.mean(axis=0) - share).max() <= 6 * np.sqrt(share * (1 - share) / n)


def test_reports_that_cannot_lie_give_the_map_of_everybody() -> None:
    table = response_table("dam", 20, CELLS)
    place = places(CELLS, None)["normal"]
    rng = np.random.default_rng(1)
    (all_answer,) = play_series(place, {WINDOWS: table}, 2000, rng)
    (one_answers,) = play_series(place, {1: table}, 2000, rng)
    assert all_answer < 0.02  # those who leave a window out are missed, and nothing else is
    assert one_answers > 10 * all_answer


def test_the_risk_command_fills_its_block(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk_module, "REPORTS", (1, 3))
    result = CliRunner().invoke(
        still_device, ["--trials", "100", "--write"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    assert "largest standard error: 0.0" in result.output
    lines = (docs / "privacy.md").read_text().splitlines()
    assert lines[2] == "| eps | what is right | 1 | 3 |"
    assert [line.split(" | ")[0] for line in lines[4:10]] == ["| 1"] * 3 + ["| 3.5"] * 3


def test_what_the_page_on_privacy_says_of_the_errors_is_in_the_table() -> None:
    text = (DOCS / "experiments" / "windows.md").read_text()
    block = text[text.index("<!-- series -->") : text.index("<!-- /series -->")]
    rows = {name: re.findall(r"(\d\.\d{3}) ±", line) for name in MAPS
            for line in block.splitlines() if line.startswith(f"| {name} |")}  # fmt: skip
    one, two, every = (np.array([float(row[k]) for row in rows.values()]) for k in range(3))
    assert len(one) == len(MAPS)
    assert (one < two).all()
    assert (one < every).all()
    privacy = " ".join((DOCS / "privacy.md").read_text().split())
    assert (
        f"was {one.min():.2f} to {one.max():.2f} cells with one window of seven answered at eps "
        f"{LOSS}, and {every.min():.2f} to {every.max():.2f} with all seven at 0.5" in privacy
    )
