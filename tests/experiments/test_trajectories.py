"""The comparison of releases of trajectories, on a small folder of invented data."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.generated import generated
from experiments.papers.trajectories import report, runs
from experiments.papers.trajectories.figure14 import figure14
from experiments.papers.trajectories.places import (
    SAN_FRANCISCO_SQUARE,
    clamped,
    places,
    trip_numbers,
    trips,
)
from experiments.papers.trajectories.runs import PUBLISHED, releases
from experiments.sources import CABS, CHICAGO, CHICAGO_SQUARE, NEW_YORK, NEW_YORK_SQUARE
from experiments.uniform import Uniform
from ldpspatial.comparison.compare import compare_people
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.non_private import NonPrivate
from tests.support.experiment_runs import run_and_resume

NAME = "dam-figure14"


def write(path: Path, header: str, rows: Iterable[str]) -> None:
    with gzip.open(path, "wt") as stream:
        stream.write("\n".join([header, *rows]) + "\n")


def scattered(square: tuple[float, float, float], number: int) -> list[str]:
    south, west, side = square
    at = np.array([south, west]) + side * np.random.default_rng(1).beta(3, 2, (number, 2))
    return [f"{y:.5f},{x:.5f}" for y, x in at]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the columns of the real files: 300 points a city, 12 trips of two taxis."""
    folder = tmp_path_factory.mktemp("data")
    rows = [f"{at},2016-01-01 00:03:45" for at in scattered(NEW_YORK_SQUARE, 300)]
    write(folder / NEW_YORK, "lat,lon,time", rows)
    rows = [f"2010-01-01 00:05,{at},street" for at in scattered(CHICAGO_SQUARE, 300)]
    write(folder / CHICAGO, "date,lat,lon,loc_cat", rows)
    rows = [
        f"taxi{k // 60},{at},2008-05-17T14:{k % 60:02}:00Z,{int(k % 10 < 6)}"
        for k, at in enumerate(scattered(SAN_FRANCISCO_SQUARE, 120))
    ]
    write(folder / CABS, "user,lat,lon,time,occupied", rows)
    return folder


@pytest.fixture
def few_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three small grids and two epsilons, for what plays them and what reports on them."""
    few = {"SIDES": (1, 5, 6), "SIDE": 6, "EPSILONS": (1.0, 1.5),
           "SETTINGS": ((1, 1.5), (5, 1.5), (6, 1.5), (6, 1.0))}  # fmt: skip
    for name, value in few.items():
        monkeypatch.setattr(runs, name, value)
        monkeypatch.setattr(report, name, value)
    monkeypatch.setattr(report, "ENDS", (5, 6))


@pytest.mark.usefixtures("few_settings")
def test_the_command_runs_resumes_and_writes_the_docs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("--data", data, "--walks", 6, "--repeats", 1)
    found = run_and_resume(figure14, NAME, given, "Every", tmp_path, monkeypatch)
    assert generated(found.docs, f"{NAME}.png").exists()
    assert found.text.count("| San Francisco, taxis | DAM, every point: em |") == 2  # one a truth
    assert found.text.count("local, eps-LDP per report") == 6
    assert found.text.count("nobody sends | 0.00 |") == 6  # nothing to miss on one cell
    assert "| San Francisco, taxis (12) | 6, 6, 6 |" in found.text
    assert len(list(found.out.rglob("runs.jsonl"))) == 3 * 2


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    found = CliRunner().invoke(figure14, ["--data", str(tmp_path), "--out", str(tmp_path / "out")])
    assert found.exit_code == 1
    assert f"Error: --data must hold {NEW_YORK}" in found.output


def test_trips_are_occupied_runs_without_gaps(data: Path) -> None:
    found = trips(data)
    assert found.users is not None
    assert np.bincount(found.users).tolist() == [6] * 12
    taxis = np.array(["a"] * 7 + ["b"], dtype=object)
    seconds = np.array([0, 600, 1201, 1260, 1300, 1320, 1330, 1340])
    occupied = np.array([1, 1, 1, 1, 0, 1, 1, 1])
    assert trip_numbers(taxis, seconds, occupied).tolist() == [0, 0, 1, 1, 2, 3, 3, 4]


def test_trips_are_clamped_to_2_and_200_points() -> None:
    kept = clamped(np.repeat([0, 1, 2], [1, 2, 203]))
    assert kept.tolist() == [False, True, True] + [True] * 200 + [False] * 3


def test_walks_follow_from_the_seed(data: Path) -> None:
    one, same, other = (places(data, 20, seed)[0].on(300) for seed in (1, 1, 2))
    assert (one.density == same.density).all()
    assert (one.density != other.density).any()
    assert one.trails is not None
    lengths = one.trails.lengths
    assert 2 <= lengths.min() <= lengths.max() <= 200


def test_every_release_but_the_published_one_protects_the_trajectory() -> None:
    units = {label: release.claim(1.5).unit for label, release in releases("user").items()}
    assert units.pop(PUBLISHED) == "report"
    assert units.pop("uniform") == "user"
    assert set(units.values()) == {"trajectory"}


def crowd() -> UserCells:
    """One user with three visits to cell 0, and one with a visit to cell 3."""
    return cells_by_user([0, 0, 0, 1], [0, 0, 0, 3], (2, 2))


def test_the_truth_of_visits_weighs_visits_the_same() -> None:
    assert crowd().visit_density.tolist() == [[0.75, 0], [0, 0.25]]
    found = {}
    for truth in ("users", "visits"):
        table = compare_people(
            {2: crowd()}, [1.0], {"true": NonPrivate(), "uniform": Uniform()}, 1,
            np.random.default_rng(1), metrics=["l1"], truth=truth,
        )  # fmt: skip
        found[truth] = table["l1"].to_pylist()
        assert table["claim_epsilon"].to_pylist()[1] == 0
    assert found == {"users": [0, 1], "visits": [0.5, 1]}
