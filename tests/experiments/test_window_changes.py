"""Intervals of changes in cities, on a small folder of invented data."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.changing_cities import CITIES, HELD_BACK, SWELL, TUNED, WINDOWS, changing_city
from experiments.studies import window_changes as study
from ldpspatial.errors import InputError
from tests.support.invented_cities import write_cities


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like that of the real files."""
    return write_cities(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("name", CITIES)
def test_a_changing_city_is_a_map_for_each_window(data: Path, name: str) -> None:
    city = changing_city(data, name)
    assert city.shares.shape == (WINDOWS, len(city.points))
    np.testing.assert_allclose(city.shares.sum(1), 1)
    assert ((city.points >= 0) & (city.points < 1)).all()
    laws = city.laws(4)
    np.testing.assert_allclose(laws.sum((1, 2)), 1)
    assert abs(laws[0] - laws[-1]).sum() > 0.01
    at = city.cells_of(4)
    here = (at == at[0]).all(1)
    assert laws[3][tuple(at[0])] == pytest.approx(city.shares[3][here].sum())


def test_trips_end_where_they_end_and_places_swell_by_a_third(data: Path) -> None:
    assert set(TUNED) | set(HELD_BACK) == set(CITIES)
    trips = changing_city(data, "trips")
    begin, end = trips.shares[0] > 0, trips.shares[-1] > 0
    assert not (begin & end).any()
    assert (begin | end).all()
    swelling = changing_city(data, "stockholm").shares
    assert 1 < (swelling.max(0) / swelling.min(0)).max() < (1 + SWELL) ** 12
    with pytest.raises(InputError, match="--data must hold"):
        changing_city(data / "nowhere", "cabs")


def test_regions_know_their_true_shares(data: Path) -> None:
    city = changing_city(data, "crimes")
    masks, shares = study.regions_of(city, 6, np.random.default_rng(1))
    assert shares.shape == (len(masks), WINDOWS)
    laws = city.laws(6)
    for mask, share in list(zip(masks, shares, strict=True))[: study.RECTANGLES]:
        np.testing.assert_allclose(share, (laws * mask).sum((1, 2)))
    assert ((shares >= 0) & (shares <= 1)).all()


@pytest.mark.usefixtures("short_chains")
def test_the_command_writes_a_table_for_each_group(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: CITIES[name] for name in ("trips", "cabs")}
    for name, value in (
        ("SETTINGS", ((4, 500, 3.5),)), ("CITIES", few), ("DOCS", tmp_path),
    ):  # fmt: skip
        monkeypatch.setattr(study, name, value)
    page = tmp_path / "experiments" / "region-intervals.md"
    page.parent.mkdir()
    page.write_text("<!-- window-changes -->\n<!-- /window-changes -->\n")
    options = ("--data", data, "--out", tmp_path / "out", "--jobs", 1, "--write")
    ran = CliRunner().invoke(study.window_changes, [*map(str, options)])
    assert ran.exit_code == 0, ran.output
    text = page.read_text()
    monkeypatch.setattr(study, "measured", int)  # nothing is played again: it would fail
    again = CliRunner().invoke(study.window_changes, [*map(str, options)])
    assert again.exit_code == 0, again.output
    assert page.read_text() == text
    assert text.count("| all | ") == 2
    for name in few:
        assert text.count(f"| {name} | ") == 1
