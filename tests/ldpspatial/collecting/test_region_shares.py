"""Shares of many regions from Python: the numbers of ``region_share``, the files of ``ranges``."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client_sdk import Collection, Grid
from ldpspatial import EM, Estimate, Field, StampChannel, region_share
from ldpspatial.collecting.region_shares import MOVED, region_shares
from ldpspatial.collecting.region_tables import write_csv, write_geojson
from ldpspatial.collecting.results import read_estimate, write_npz
from ldpspatial.errors import InputError
from ldpspatial.estimation.forgery.influence import influence
from ldpspatial.estimation.intervals import Interval, alone, cell_intervals
from ldpspatial.estimation.intervals.area import people_in_area
from ldpspatial.estimation.robust import Cleaned, Robust
from ldpspatial.files.regions import read_regions
from ldpspatial.places.regions import Region, rectangle
from tests.support.command_line import succeed
from tests.support.files import write_file

SQUARE = Collection.create("square", Grid.plane(0, 0, 6, 6), 3.0)
TABLE = "name,south,west,north,east\nwhole,1,1,3,3\ncut,1,1,3,3.5\n"


@pytest.fixture(scope="module")
def found() -> Estimate:
    channel = StampChannel(SQUARE.table)
    people = np.add.outer(np.arange(6.0), np.arange(6.0))
    counts = np.where(channel.support, np.round(1e4 * channel.forward(people / people.sum())), 0)
    return EM().fit(channel, counts)


def test_each_region_has_the_share_that_it_has_alone(found: Estimate) -> None:
    boxes = {"whole": (1, 1, 3, 3), "cut": (1, 1, 3, 3.5), "all": (0, 0, 6, 6)}
    regions = [Region(name, rectangle(SQUARE.grid, *box)) for name, box in boxes.items()]
    calls = []
    shares = region_shares(found, regions, 0.9, "fisher", progress=lambda *done: calls.append(done))
    assert (shares.n, shares.level, shares.method) == (found.n, 0.9, "fisher")
    for row, region in zip(shares.rows, regions, strict=True):
        assert row.region is region
        assert row.share == region_share(found, region.weights, 0.9, "fisher")
        assert row.people == row.share.estimate * found.n
        assert not row.is_outside
    part = found.density[1:3, 3].sum() / 2
    parts = [row.in_cut_cells for row in shares.rows]
    assert parts == [0, pytest.approx(part / shares.rows[1].share.estimate), 0]
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_a_region_tells_how_far_forgers_move_it(found: Estimate, tmp_path: Path) -> None:
    boxes = {"corner": (0, 0, 2, 2), "all": (0, 0, 6, 6), "none": (9, 9, 10, 10)}
    regions = [Region.rectangle(name, SQUARE.grid, *box) for name, box in boxes.items()]
    shares = region_shares(found, regions, forged=0.05)
    forgers = influence(found.channel, found.density, 0.05)  # type: ignore[arg-type]
    corner, everything, nothing = shares.rows
    assert corner.forged == forgers.region(regions[0].weights)
    assert everything.moved == nothing.moved == (0, 0, 0, 0)
    assert corner.moved is not None
    down, up, least, most = corner.moved
    assert least <= down < -0.01 < 0.01 < up <= most
    write_csv(tmp_path / "shares.csv", shares)
    write_geojson(tmp_path / "shares.geojson", SQUARE.grid, shares)
    with (tmp_path / "shares.csv").open() as stream:
        line = next(csv.DictReader(stream))
    feature = json.loads((tmp_path / "shares.geojson").read_text())["features"][0]["properties"]
    for name, value in zip(MOVED, corner.moved, strict=True):
        assert float(line[name]) == feature[name] == value
    assert float(line["forged"]) == feature["forged"] == 0.05
    assert "forged" not in region_shares(found, regions[:1]).numbers
    # The map's share, which forgers move, is another number than the mean of samples.
    less = replace(corner, share=Interval(-least / 2, 0.0, 1.0))
    assert less.moved == (pytest.approx(max(down, least / 2)), up, least / 2, most)
    with pytest.raises(InputError, match=r"^forged must be left out where shares are of an area"):
        region_shares(found, regions, area=regions[0].weights, forged=0.05)


def test_a_map_of_the_people_in_an_area_tells_of_these_alone(found: Estimate) -> None:
    regions = [Region.rectangle("corner", SQUARE.grid, 0, 0, 2, 2)]
    west = Region.rectangle("west", SQUARE.grid, 0, 0, 6, 3)
    fitted = Field().fit(found.channel, found.counts)
    of_area = region_shares(fitted, regions, area=[west])
    inside, share = people_in_area(fitted, west.weights)
    again = region_shares(inside, regions)
    assert again.of_all == of_area.of_all == share
    assert again.rows[0].people == of_area.rows[0].people
    assert again.rows[0].share == of_area.rows[0].share
    with pytest.raises(InputError, match="forged must be left out where shares are of an area"):
        region_shares(inside, regions, forged=0.01)


def test_people_are_those_whose_reports_were_not_taken_for_forged(found: Estimate) -> None:
    counts = found.counts.copy()
    counts[1, -2] += round(0.1 * counts.sum())
    robust = Robust().fit(found.channel, counts)
    (everybody,) = region_shares(robust, [Region("all", np.ones((6, 6)))]).rows
    assert isinstance(robust.details, Cleaned)
    assert robust.details.taken_out > 0.05
    assert everybody.people == pytest.approx((1 - robust.details.taken_out) * counts.sum())
    quick = Robust(map_alone=True).fit(found.channel, counts)
    assert cell_intervals(quick).method == "posterior"  # by counts, the forged ones would be people


def test_a_share_is_outside_beyond_rounding(found: Estimate) -> None:
    (row,) = region_shares(found, [Region("all", np.ones((6, 6)))]).rows
    for lower, upper, outside in ((0.2, 0.5, True), (0.2, 1 - 1e-12, False), (1, 1, False)):
        assert type(row)(row.region, Interval(1.0, lower, upper), 1, 0, 1, 1).is_outside == outside


def test_python_and_the_command_write_the_same_files(found: Estimate, tmp_path: Path) -> None:
    write_npz(tmp_path / "estimate.npz", SQUARE, found)
    file = write_file(tmp_path, "regions.csv", TABLE)
    by_command, by_python = ([tmp_path / f"{who}{kind}" for kind in (".csv", ".geojson")]
                             for who in ("command", "python"))  # fmt: skip
    outputs = ("--csv", by_command[0], "--geojson", by_command[1])
    succeed("ranges", tmp_path, file, *outputs, "--level", 0.8)
    collection, kept = read_estimate(tmp_path)
    shares = region_shares(kept, read_regions(file, collection.grid), level=0.8)
    write_csv(by_python[0], shares)
    write_geojson(by_python[1], collection.grid, shares)
    for one, other in zip(by_command, by_python, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_region_without_geometry_is_a_feature_without_a_place(
    found: Estimate, tmp_path: Path
) -> None:
    shares = region_shares(found, [Region("all", np.ones((6, 6)))])
    write_geojson(tmp_path / "a.geojson", SQUARE.grid, shares)
    assert '"geometry": null' in (tmp_path / "a.geojson").read_text()


def test_a_sliver_of_a_cell_is_not_wholly_inside(found: Estimate) -> None:
    weights = [rectangle(SQUARE.grid, 1, 1, 3, east) for east in (3, 3.0005)]
    exact, sliver = region_shares(found, [Region(f"{w.sum()}", w) for w in weights], 0.9).rows
    assert sliver.wholly_inside == exact.wholly_inside
    assert sliver.touched == exact.touched


def test_each_region_says_which_method_tells_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        alone, "MOST_WIDENED", 1.5
    )  # those of cells are wider: cells stay the field's
    hill = Collection.create("hill", Grid.plane(0, 0, 8, 8), 3.0, "disk", radius=1)
    y, x = np.indices((8, 8)) / 8
    density = np.exp(-((x - 0.4) ** 2 + (y - 0.6) ** 2) / 0.05)
    channel = StampChannel(hill.table)
    counts = np.round(1e5 * channel.forward(density / density.sum()))
    write_npz(tmp_path / "map.npz", hill, Field().fit(channel, counts))
    regions = write_file(
        tmp_path, "regions.csv", "name,south,west,north,east\ncell,1,1,2,2\nmost,0,0,8,6\n"
    )
    out = tmp_path / "shares.csv"
    printed = succeed("ranges", tmp_path / "map.npz", regions, "--csv", out).stdout.splitlines()
    assert "by posterior or fisher" in printed[0]
    assert printed[4].startswith("Regions told by fisher: 1 of 2, the others by posterior.")
    with out.open() as stream:
        assert [line["method"] for line in csv.DictReader(stream)] == ["posterior", "fisher"]
