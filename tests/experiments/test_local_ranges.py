"""Range queries of local releases on a small folder of invented data; pairs of releases."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from experiments.generated import generated
from experiments.pairs import errors_of, verdict
from experiments.sources import CHICAGO, CHICAGO_SQUARE, NEW_YORK, NEW_YORK_SQUARE
from experiments.studies.local_ranges import LOCAL, REFERENCES, SLOW, crowds, local_ranges
from ldpspatial.comparison.compare import compare_people
from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local import Dam, KRr
from tests.support.experiment_runs import run_and_resume

NAME = "local-ranges"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the columns of the real files, 200 points a city."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    files = (
        (CHICAGO, CHICAGO_SQUARE, "date,lat,lon,loc_cat", "2010-01-01 00:05,", ",street"),
        (NEW_YORK, NEW_YORK_SQUARE, "lat,lon,time", "", ",2016-01-01 00:03:45"),
    )
    for name, (south, west, side), header, before, after in files:
        at = np.array([south, west]) + side * rng.beta(3, 2, (200, 2))
        rows = [f"{before}{y:.5f},{x:.5f}{after}" for y, x in at]
        with gzip.open(folder / name, "wt") as stream:
            stream.write("\n".join([header, *rows]) + "\n")
    return folder


@pytest.mark.usefixtures("short_chains")
def test_the_command_runs_resumes_and_writes_the_docs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.studies.local_ranges.SIDES", (2, 4))
    few = ("--data", data, "--users", 150, "--repeats", 1)
    found = run_and_resume(local_ranges, NAME, few, "Error", tmp_path, monkeypatch)
    assert generated(found.docs, f"{NAME}.png").exists()
    releases = len(LOCAL) + len(SLOW) + len(REFERENCES)
    assert found.text.count("\n| new york | ") == 2 * releases + 4  # errors, and the best ones
    assert found.text.count("| subset-selection | em | local, eps-LDP per user |") == 2 * 4
    assert found.text.count("| central, DP (add or remove) per user |") == 2 * 4 * 2


def test_people_are_the_same_at_both_resolutions(data: Path) -> None:
    for people in crowds(data, 100, 1).values():
        coarse, fine = people[16].density, people[32].density
        assert coarse == pytest.approx(fine.reshape(16, 2, 16, 2).sum(axis=(1, 3)))


def test_errors_are_in_order_and_w2_is_in_cells() -> None:
    people = {4: cells_by_user(np.arange(50), np.arange(50) % 7, (4, 4))}
    rng = np.random.default_rng(1)
    releases = {"dam": Dam(), "k-rr": KRr()}
    table = compare_people(people, [1.0, 2.0], releases, 3, rng, metrics=["w2", "range"])
    shuffled = table.take([5, 4, 3, 2, 1, 0, 11, 9, 10, 8, 6, 7])
    found = errors_of(shuffled, "dam", "w2", epsilon=1.0)
    assert found == pytest.approx(4 * table["w2"].to_numpy()[:3])
    assert (errors_of(table, "dam", "range", epsilon=1.0) == table["range"].to_numpy()[:3]).all()
    with pytest.raises(InputError, match="one run a repeat"):
        errors_of(table, "dam", "w2")
    with pytest.raises(InputError, match="one run a repeat"):
        errors_of(table, "huem", "w2", epsilon=1.0)


def test_a_verdict_needs_differences_of_one_sign() -> None:
    first = np.array([1.0, 5.0, 9.0])
    above = np.array([2.0, 6.1, 9.9])
    assert verdict(first, above) == "lower"
    assert verdict(above, first) == "higher"
    assert verdict(first, np.array([2.0, 4.0, 9.5])) == "level"
    assert verdict(first[:1], first[1:2]) == "level"  # one run tells nothing
