"""The figures of the DAM paper: end to end on invented data, and their parts."""

import gzip
import sys
from pathlib import Path

import click
import numpy as np
import ot
import pytest
from click.testing import CliRunner

from experiments.papers.dam.figure8 import figure8, radii
from experiments.papers.dam.figure9 import figure9
from experiments.papers.dam.figure13 import figure13
from experiments.papers.dam.mechanisms import (
    DAM_NS,
    HUEM,
    K_RR,
    MDSW,
    SEM_EM,
    as_dam,
    releases,
    sets_of_one_cell,
)
from experiments.papers.dam.published_sinkhorn import WithSinkhorn, published_sinkhorn
from experiments.papers.dam.settings import CHICAGO_PARTS, NEW_YORK_PARTS, ROWS, Row, Setting
from experiments.sources import CHICAGO, CRIMES, NEW_YORK, Array
from ldpspatial.metrics import wasserstein
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local import Dam
from tests.support.experiment_runs import run_and_resume

PEOPLE = 20  # in each part of a city
FEW = {
    "a-d": Row("a-d", "cells", (Setting(2, 3.5), Setting(3, 3.5)), published_sinkhorn=False),
    "o-s": Row("o-s", "epsilon", (Setting(3, 3.5), Setting(3, 5.0)), published_sinkhorn=True),
}
COMMANDS: dict[str, tuple[click.Command, list[str], list[str]]] = {  # options, endings of figures
    "dam-figure8": (figure8, ["--users", "30"], [""]),
    "dam-figure9": (figure9, ["--users", "30"], ["-a-d", "-o-s"]),
    "dam-figure13": (figure13, [], [""]),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the columns of the real files, and nothing else of them."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    _write(folder / CRIMES, "date,hour,lat,lon,type", "2001-01-01,0,{:.5f},{:.5f},THEFT",
           _inside(CHICAGO_PARTS, rng))  # fmt: skip
    _write(folder / CHICAGO, "date,lat,lon,loc_cat", "2010-01-01 00:05,{:.5f},{:.5f},street",
           _inside(CHICAGO_PARTS, rng))  # fmt: skip
    _write(folder / NEW_YORK, "lat,lon,time,drop_lat,drop_lon,drop_time",
           "{:.5f},{:.5f},0,40.7,-73.9,1", _inside(NEW_YORK_PARTS, rng))  # fmt: skip
    return folder


def _inside(parts: dict[str, tuple[float, float, float]], rng: np.random.Generator) -> Array:
    clouds = [
        np.array(corner) + side * rng.beta(3, 2, (PEOPLE, 2)) for *corner, side in parts.values()
    ]
    return np.concatenate(clouds)


def _write(path: Path, header: str, line: str, points: Array) -> None:
    with gzip.open(path, "wt") as stream:
        stream.write("\n".join([header, *(line.format(*point) for point in points)]) + "\n")


@pytest.fixture
def few_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small maps, of the cities their first part only, and one synthetic data set."""
    package = "experiments.papers.dam."
    for name in ("figure9", "figure13"):
        monkeypatch.setattr(sys.modules[f"{package}{name}"], "ROWS", FEW)
    monkeypatch.setattr(sys.modules[f"{package}figure8"], "SETTING", Setting(5, 1.4))
    for name, parts in {"CHICAGO_PARTS": CHICAGO_PARTS, "NEW_YORK_PARTS": NEW_YORK_PARTS}.items():
        monkeypatch.setattr(sys.modules[f"{package}settings"], name, {"A": parts["A"]})
    monkeypatch.setattr(sys.modules[f"{package}settings"], "SYNTHETIC", {"SZipf": "szipf"})


@pytest.mark.usefixtures("few_settings")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_runs_resumes_and_writes_the_docs(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, options, figures = COMMANDS[name]
    given = ("--data", data, "--repeats", 2, *options)
    found = run_and_resume(command, name, given, "\n| ", tmp_path, monkeypatch)
    assert found.text.startswith("| ")
    assert all(f"| {place} |" in found.text for place in ("Crime", "Assaults", "NYC"))
    of_another_notion = [line for line in found.text.splitlines() if "SEM-Geo-I" in line]
    assert all("(geo-indistinguishability)" in line for line in of_another_notion)
    assert {p.name for p in found.docs.rglob("*.png")} == {f"{name}{end}.png" for end in figures}


def test_the_docs_want_all_panels(data: Path, tmp_path: Path) -> None:
    given = ["--data", str(data), "--out", str(tmp_path), "--panel", "a-d", "--write"]
    result = CliRunner().invoke(figure9, given)
    assert result.exit_code == 2
    assert "--write needs all panels" in result.output


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(figure13, ["--data", str(tmp_path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert f"Error: --data must hold {CRIMES}" in result.output


def test_settings_are_the_papers() -> None:
    assert radii(Setting(15, 3.5)) == [1, 2, 3, 4, 5]
    assert {setting for row in ROWS.values() for setting in row.settings} == {
        *((d, 3.5) for d in (2, 3, 4, 5)),
        *((d, 5.0) for d in (5, 10, 15, 20)),
        *((5, e) for e in (0.7, 1.4, 2.1, 2.8, 3.5)),
        *((15, e) for e in (5.0, 6.0, 7.0, 8.0, 9.0)),
    }


@pytest.mark.parametrize(
    ("setting", "same"),
    [
        (Setting(10, 3.5), set()),  # radius 2
        (Setting(5, 3.5), {HUEM}),  # radius 1
        (Setting(4, 3.5), {HUEM, DAM_NS, K_RR}),  # radius 0
        (Setting(15, 7.0), {HUEM, DAM_NS, K_RR}),
    ],
)
def test_what_reports_by_the_very_law_of_dam(setting: Setting, same: set[str]) -> None:
    assert {label for label in (HUEM, DAM_NS, K_RR, MDSW) if as_dam(label, setting)} == same


def test_em_decodes_sem_geo_i_where_sets_have_one_cell() -> None:
    assert sets_of_one_cell(Setting(5, 3.5))
    assert SEM_EM in releases(Setting(5, 3.5))
    assert not sets_of_one_cell(Setting(5, 1.4))
    assert SEM_EM not in releases(Setting(5, 1.4))


@pytest.mark.parametrize("shape", [(5, 5), (4, 7)])
def test_published_sinkhorn_is_that_of_pot(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    truth, density = (rng.random(shape) * (rng.random(shape) < 0.8) for _ in range(2))
    truth, density = truth / truth.sum(), density / density.sum()
    at = np.argwhere(np.ones(shape)).astype(float)
    one, other = truth.ravel() > 0, density.ravel() > 0
    cost = ot.dist(at[one], at[other])
    expected = ot.sinkhorn2(
        truth.ravel()[one], density.ravel()[other], cost, 1 / 5, numItermax=1000, warn=False
    )
    assert published_sinkhorn(truth, density) == pytest.approx(np.sqrt(float(expected)), abs=1e-4)


@pytest.mark.parametrize("cells", [5, 10, 15, 20])
def test_a_map_stands_apart_from_itself(cells: int) -> None:
    middle = np.exp(-((np.mgrid[-2 : 2 : cells * 1j, -2 : 2 : cells * 1j] / 0.8) ** 2).sum(0))
    for density in (middle / middle.sum(), np.full((cells, cells), cells**-2.0)):
        assert 0.13 < published_sinkhorn(density, density) < 0.165
        assert wasserstein(density, density) == 0


def test_mass_far_away_leaves_published_sinkhorn_finite() -> None:
    truth, density = np.zeros((2, 20, 20))
    truth[0, 0] = density[19, 19] = 1
    assert np.isfinite(published_sinkhorn(truth, density))
    assert published_sinkhorn(truth, truth) == 0


def test_the_published_distance_leaves_the_map_as_it_is() -> None:
    rng = np.random.default_rng(1)
    people = cells_by_user(np.arange(50), rng.integers(0, 9, 50), (3, 3))
    plain = Dam().release(people, 2.0, np.random.default_rng(2))
    found = WithSinkhorn(Dam()).release(people, 2.0, np.random.default_rng(2))
    assert found.claim == plain.claim == WithSinkhorn(Dam()).claim(2.0)
    assert (found.density == plain.density).all()
    assert found.facts["sinkhorn"] == published_sinkhorn(people.density, plain.density)
    assert {**found.facts, **plain.facts} == found.facts
