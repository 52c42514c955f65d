"""Estimators and releases of other packages: by module:Name, and by entry points."""

import json
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest

import ldpspatial as lp
from client_sdk import Grid, response_table
from ldpspatial.release.registry import find_releases
from tests.support.command_line import refusal, succeed
from tests.support.extensions import Nothing, Uniform
from tests.support.files import write_file

ESTIMATOR, RELEASE = "tests.support.extensions:Uniform", "tests.support.extensions:Nothing"
CHANNEL = lp.StampChannel(response_table("dam", 3.5, 5))
COUNTS = np.round(1e3 * CHANNEL.forward(np.eye(5) / 5))
POINTS = "lat,lon\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(200))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package with these entry points were installed."""
    known = EntryPoints(
        [
            EntryPoint("uniform", ESTIMATOR, "ldpspatial.estimators"),
            EntryPoint("nothing", RELEASE, "ldpspatial.releases"),
        ]
    )
    monkeypatch.setattr("ldpspatial.validate.entry_points", lambda group: known.select(group=group))


def test_an_estimator_of_another_package_is_one_like_ours() -> None:
    for rule in (Uniform(), ESTIMATOR):
        found = lp.estimate(CHANNEL, COUNTS, rule)
        assert (found.rule, found.facts, found.converged) == ("uniform", {}, True)
        intervals = lp.cell_intervals(found, method="bootstrap", rng=np.random.default_rng(1))
        assert intervals.width.max() < 1e-12  # it always says the same
        assert lp.goodness_of_fit(found).p_value > 0


@pytest.mark.usefixtures("registered")
def test_names_of_entry_points_are_known() -> None:
    assert lp.estimate(CHANNEL, COUNTS, "uniform").estimator == Uniform()
    assert list(lp.releases())[-1] == "nothing"
    assert find_releases("nothing") == {"nothing": Nothing()}


def test_the_command_line_takes_both(tmp_path: Path) -> None:
    points = write_file(tmp_path, "points.csv", POINTS)
    square = ("--plane", "0,0,8", "--cells", 4, "--epsilon", 2)
    succeed("simulate", points, *square, "--rule", ESTIMATOR, "--out", tmp_path / "map")
    summary = json.loads((tmp_path / "map" / "summary.json").read_text())
    assert summary["estimator"]["rule"] == "uniform"
    files = (tmp_path / "map" / "collection.json", tmp_path / "map" / "reports.parquet")
    succeed("estimate", *files, "--rule", ESTIMATOR, "--out", tmp_path / "again")
    more = ("--repeats", 1, "--jobs", 1, "--out", tmp_path / "curves")
    succeed("compare", points, *square, "--release", "dam", "--release", RELEASE, *more)
    assert RELEASE in (tmp_path / "curves" / "errors.csv").read_text()


def test_a_file_of_an_estimator_that_is_not_installed_is_read(tmp_path: Path) -> None:
    points = write_file(tmp_path, "points.csv", POINTS)
    square = ("--plane", "0,0,8", "--cells", 4, "--epsilon", 2)
    succeed("simulate", points, *square, "--rule", ESTIMATOR, "--out", tmp_path / "map")
    regions = write_file(tmp_path, "r.csv", "name,south,west,north,east\na,0,0,4,4\n")
    succeed("ranges", tmp_path / "map", regions, "--method", "fisher")
    assert "that its file cannot hold" in refusal(
        "ranges", tmp_path / "map", regions, "--method", "bootstrap"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tests.support.extensions:None_", "rule must be found at"),
        ("no.such.module:Name", "rule must be found at"),
        (":", "rule must be found at"),
        ("tests.support.extensions:Nothing", "rule must lead to Estimator"),
        ("nothing", "rule must be one of scaled, likelihood, published, cross-validated"),
    ],
)
def test_what_leads_nowhere_is_refused(name: str, message: str) -> None:
    with pytest.raises(lp.InputError, match=message):
        lp.estimate(CHANNEL, COUNTS, name)


@pytest.mark.parametrize("name", ["tests.support.extensions:Uniform", "a:b", "unknown"])
def test_a_release_that_is_none_is_refused(name: str) -> None:
    grid = Grid.plane(0, 0, 8, 4)
    with pytest.raises(lp.InputError, match="release"):
        lp.compare(np.ones((5, 2)), grid, [1.0], [name], 1, np.random.default_rng(1))
