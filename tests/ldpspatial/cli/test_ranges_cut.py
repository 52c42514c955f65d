"""``ldpspatial ranges`` on regions that cut cells: what is said of them, and why."""

import csv
from pathlib import Path

import numpy as np
import pytest

from client_sdk import Collection, Grid
from ldpspatial.channels.disk import StampChannel
from ldpspatial.collecting.results import read_estimate, write_npz
from ldpspatial.estimation import cell_intervals, estimate, region_share
from ldpspatial.places.regions import Region, rectangle
from tests.support.command_line import run, succeed
from tests.support.files import write_file

HEADER = "name,south,west,north,east\n"
WHOLE = "whole,1,1,3,3\n"
CUT = "cut,1,1,3,3.5\n"
SQUARE = Collection.create("square", Grid.plane(0, 0, 6, 6), 3.0)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the estimate of people who sit in two rows of the map."""
    channel, density = StampChannel(SQUARE.table), np.zeros((6, 6))
    density[1:3] = 1 / 12
    counts = np.where(channel.support, np.round(1e4 * channel.forward(density)), 0)
    path = tmp_path_factory.mktemp("kept") / "estimate.npz"
    write_npz(path, SQUARE, estimate(channel, counts, "em"))
    return path


def test_how_much_is_in_cut_cells_is_in_the_table(kept: Path, tmp_path: Path) -> None:
    regions = write_file(tmp_path, "regions.csv", HEADER + WHOLE + CUT)
    out = tmp_path / "shares.csv"
    lines = succeed("ranges", kept, regions, "--csv", out).stdout.splitlines()
    density = cell_intervals(read_estimate(kept)[1], method="posterior").density
    part = density[1:3, 3].sum() / 2
    expected = part / (density[1:3, 1:3].sum() + part)
    assert 0.1 < expected < 0.3
    with out.open(encoding="utf-8", newline="") as stream:
        whole, cut = csv.DictReader(stream)
    assert float(whole["in_cut_cells"]) == 0
    assert float(cut["in_cut_cells"]) == pytest.approx(expected, rel=1e-9)
    inside = density[1:3, 1:3].sum()
    assert float(cut["wholly_inside"]) == pytest.approx(inside)
    assert float(cut["touched"]) == pytest.approx(inside + 2 * part)
    for column in ("wholly_inside", "touched"):
        assert float(whole[column]) == pytest.approx(float(whole["share"]), rel=1e-12)
    assert lines[1].endswith("inside to touched")
    assert lines[2].endswith(f" {inside:.2%} to {inside:.2%}")
    assert lines[3].endswith(f" {inside:.2%} to {inside + 2 * part:.2%}")


def test_of_regions_that_leave_the_map_the_part_inside_counts(kept: Path, tmp_path: Path) -> None:
    """Half of one is beyond the edge, and another lies elsewhere: neither keeps the rest back."""
    regions = write_file(
        tmp_path, "regions.csv", HEADER + WHOLE + "edge,0,4,6,8\n" + "far,50,50,51,51\n"
    )
    table = tmp_path / "shares.csv"
    said = succeed("ranges", kept, regions, "--csv", table).stdout
    assert "Regions that leave the map: 2 of 3, 1 of them wholly." in said
    assert "nothing is known of a region with no part in it" in said
    (told,) = [line for line in said.splitlines() if line.lstrip().startswith("far")]
    assert told.split() == ["far", *"-----"]
    with table.open(encoding="utf-8", newline="") as stream:
        whole, edge, far = csv.DictReader(stream)
    density = cell_intervals(read_estimate(kept)[1], method="posterior").density
    assert [float(each["on_map"]) for each in (whole, edge, far)] == [1, 0.5, 0]
    assert float(edge["share"]) == pytest.approx(density[:, 4:].sum())
    assert {far[name] for name in ("share", "lower", "upper", "people", "in_cut_cells")} == {""}


def test_polygons_that_leave_the_map_tell_how_much_of_them_is_in_it() -> None:
    pytest.importorskip("shapely")
    ring = [[4, 0], [8, 0], [8, 6], [4, 6], [4, 0]]
    found = Region.polygon("edge", SQUARE.grid, {"type": "Polygon", "coordinates": [ring]})
    assert found.on_map == pytest.approx(0.5)
    far = [[x + 50, y] for x, y in ring]
    found = Region.polygon("far", SQUARE.grid, {"type": "Polygon", "coordinates": [far]})
    assert (found.on_map, found.weights.max()) == (0, 0)


def test_edges_that_a_file_rounds_cut_nothing(kept: Path, tmp_path: Path) -> None:
    rounded = "a,1.0004,0.9996,3.0004,2.9996\n"
    regions, table = write_file(tmp_path, "regions.csv", HEADER + rounded), tmp_path / "shares.csv"
    succeed("ranges", kept, regions, "--csv", table)
    with table.open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert float(row["in_cut_cells"]) == 0


@pytest.mark.parametrize("side", [0.5, 0.02, 1e-4])
def test_a_region_within_a_cell_cuts_it_however_small(
    kept: Path, tmp_path: Path, side: float
) -> None:
    speck = f"speck,2.3,2.3,{2.3 + side},{2.3 + side}\n"
    regions, table = write_file(tmp_path, "regions.csv", HEADER + speck), tmp_path / "shares.csv"
    succeed("ranges", kept, regions, "--csv", table)
    with table.open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert float(row["in_cut_cells"]) == 1


def test_the_help_says_what_is_covered_and_that_scores_are_for_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = " ".join(run("ranges", "--help").stdout.split())
    assert "account for the noise of the reports and for where people may be within a cell" in text
    assert (
        "The method scores, for reports that are sets, is there for objects in Python only" in text
    )


# Chains agree but nearly on maps this smooth and this well known, here and there not.
@pytest.mark.filterwarnings("ignore:the field whose samples intervals are made of")
@pytest.mark.parametrize("cells", [8, 10])
def test_intervals_hold_the_people_also_where_the_region_cuts_cells(cells: int) -> None:
    # Evenly within a cell, 43 % of a peak are in the middle; in truth 47 % are.
    grid = Grid.plane(0, 0, 8, cells)
    people = np.random.default_rng(1).normal(4, 1, (200_000, 2))
    inside = np.all((people >= 3) & (people < 5), axis=1).mean()
    places = np.clip(np.floor(people / 8 * cells), 0, cells - 1).astype(int)
    truth = np.zeros((cells, cells))
    np.add.at(truth, tuple(places.T), 1 / len(people))
    channel = StampChannel(Collection.create("plane", grid, 3.5).table)
    found = estimate(
        channel, np.where(channel.support, np.round(2e5 * channel.forward(truth)), 0), "em"
    )
    weights = rectangle(grid, 3, 3, 5, 5)
    share = region_share(found, weights)
    assert share.lower < (weights * truth).sum() < share.upper
    assert share.lower < inside < share.upper
    if cells == 10:  # without what is within cells it would not
        assert abs(inside - (weights * truth).sum()) > 0.03
