"""Intervals in cities, on a small folder of invented data."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.cities import HELD_BACK, SQUARES, TUNED, City, cities
from experiments.studies import city_intervals as study
from ldpspatial.errors import InputError
from tests.support.invented_cities import write_cities


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like that of the real files."""
    return write_cities(tmp_path_factory.mktemp("data"))


def test_a_city_is_its_points_in_its_square(data: Path) -> None:
    assert set(TUNED) | set(HELD_BACK) == set(SQUARES)
    assert not set(TUNED) & set(HELD_BACK)
    (city,) = cities(data, ("stockholm",))
    assert ((city.points >= 0) & (city.points < 1)).all()
    assert city.law(4).sum() == pytest.approx(1)
    people = city.people(50, np.random.default_rng(1))
    assert city.histogram(people, 3).sum() == 50
    assert city.grid(5).cells == 5
    with pytest.raises(InputError, match="--data must hold"):
        cities(data / "nowhere")


def test_polygons_hold_some_of_the_people_and_rectangles_some_cells() -> None:
    rng = np.random.default_rng(2)
    city = City("invented", (0, 0, 1), rng.beta(2, 2, (500, 2)))
    outlines = list(study.polygons(city, rng))
    assert len(outlines) == study.POLYGONS
    for mask in study.rectangles(6, 30, rng):
        rows, columns = mask.any(1).sum(), mask.any(0).sum()
        assert mask.sum() == rows * columns > 0


@pytest.mark.usefixtures("short_chains")
def test_the_command_writes_a_table_for_each_group(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"SIDES": (5,), "EPSILONS": (2.0,), "USERS": (10_000,)}
    for name, value in {**small, "DOCS": tmp_path}.items():
        monkeypatch.setattr(study, name, value)
    page = tmp_path / "experiments" / "region-intervals.md"
    page.parent.mkdir()
    marks = [
        f"<!-- {mark}{name} -->\n"
        for name in ("city-intervals", "polygon-errors")
        for mark in ("", "/")
    ]
    page.write_text("".join(marks))
    options = ("--data", data, "--out", tmp_path / "out", "--jobs", 1)
    ran = CliRunner().invoke(study.city_intervals, [*map(str, options), "--write"])
    assert ran.exit_code == 0, ran.output
    text = page.read_text()
    monkeypatch.setattr(study, "measured", int)  # nothing is played again: it would fail
    again = CliRunner().invoke(study.city_intervals, [*map(str, options), "--write"])
    assert again.exit_code == 0, again.output
    assert page.read_text() == text
    assert text.count("| all | ") == text.count("| eps 2 | ") == 2
    assert text.count("| 2 | 10,000 | ") == 1
    for name in SQUARES:
        assert text.count(f"| {name} | ") == 1
