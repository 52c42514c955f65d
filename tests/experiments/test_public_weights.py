"""What public weights bring, on a small folder of invented data."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.cities import City, cities
from experiments.studies import public_weights as study
from tests.support.invented_cities import write_cities

pytest.importorskip("shapely")


def test_halves_share_no_owner_and_make_the_city() -> None:
    rng = np.random.default_rng(1)
    owners = rng.integers(20, size=400)
    city = City("invented", (0, 0, 1), rng.random((400, 2)), owners)
    first, second = city.halves(rng)
    assert first.owners is not None
    assert second.owners is not None
    assert not set(first.owners) & set(second.owners)
    together = np.vstack([first.points, second.points])
    assert {tuple(at) for at in together} == {tuple(at) for at in city.points}
    assert len(set(first.owners)) == len(set(owners)) // 2
    alone = City("invented", (0, 0, 1), city.points)
    assert [len(half.points) for half in alone.halves(rng)] == [200, 200]


def test_files_are_of_the_other_half_and_the_wrong_ones_are_elsewhere(tmp_path: Path) -> None:
    (city,) = cities(write_cities(tmp_path), ("stockholm",))
    found = study.files(city, 5, np.random.default_rng(1))
    weights = [each.people for each in found.values() if each is not None]
    assert len(weights) == len(found) - 1 == 4
    assert (weights[1] > 0).sum() <= study.FEW < (weights[0] > 0).sum()
    for wrong in weights[2:]:
        assert ((wrong > 0) & (weights[0] > 0)).mean() < 0.01


@pytest.mark.usefixtures("short_chains")
def test_the_command_writes_a_line_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_cities(tmp_path / "data")
    for name, value in (
        ("SIDES", (5,)), ("NAMES", ("stockholm", "austin")), ("COLLECTIONS", ((5000, 3.0),)),
        ("DOCS", tmp_path),
    ):  # fmt: skip
        monkeypatch.setattr(study, name, value)
    page = tmp_path / "experiments" / "region-intervals.md"
    page.parent.mkdir()
    page.write_text("<!-- public-weights -->\n<!-- /public-weights -->\n")
    options = ("--data", data, "--out", tmp_path / "out", "--jobs", 1)
    ran = CliRunner().invoke(study.public_weights, [*map(str, options), "--write"])
    assert ran.exit_code == 0, ran.output
    text = page.read_text()
    monkeypatch.setattr(study, "measured", int)  # nothing is played again: it would fail
    again = CliRunner().invoke(study.public_weights, [*map(str, options), "--write"])
    assert again.exit_code == 0, again.output
    assert page.read_text() == text
    for file in (study.AREA, "places of others", "all, far off"):
        assert text.count(f"| 5 | {file} | ") == 1
