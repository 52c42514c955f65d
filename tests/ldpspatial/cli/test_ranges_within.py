"""``ldpspatial ranges --within``: public weights inside cells, told where they were used."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from client_sdk import Collection, Grid
from ldpspatial.channels.disk import StampChannel
from ldpspatial.collecting.region_shares import region_shares
from ldpspatial.collecting.region_tables import write_csv
from ldpspatial.collecting.results import read_estimate, write_npz
from ldpspatial.estimation import estimate
from ldpspatial.files.regions import read_regions
from ldpspatial.files.side_information import read_within
from tests.support.command_line import run, succeed
from tests.support.files import write_file

pytest.importorskip("shapely")

SQUARE = Collection.create("square", Grid.plane(0, 0, 6, 6), 3.0)
REGIONS = "name,south,west,north,east\nwhole,1,1,3,3\ncut,1,1,3,3.5\n"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the estimate of people who sit in two rows, the west of each cell's venues."""
    folder = tmp_path_factory.mktemp("kept")
    channel = StampChannel(SQUARE.table)
    density = np.zeros((6, 6))
    density[1:3] = 1 / 12
    counts = np.where(channel.support, np.round(1e6 * channel.forward(density)), 0)
    write_npz(folder / "estimate.npz", SQUARE, estimate(channel, counts, "em"))
    venues = [f"{y / 10},{x + 0.2}" for y in range(10, 30) for x in range(6)]
    write_file(folder, "venues.csv", "y,x\n" + "\n".join(venues) + "\n")
    write_file(folder, "regions.csv", REGIONS)
    return folder


def test_shares_follow_the_venues_and_every_output_tells_so(kept: Path, tmp_path: Path) -> None:
    venues = kept / "venues.csv"
    regions = kept / "regions.csv"
    outputs = ("--csv", tmp_path / "a.csv", "--geojson", tmp_path / "a.geojson")
    said = succeed("ranges", kept, regions, "--within", venues, *outputs).stdout
    plain = succeed("ranges", kept, regions, "--csv", tmp_path / "plain.csv").stdout
    assert "--within places people in 12 of 36 cells. By the reports it is trusted by " in said
    assert "--within" not in plain
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as stream:
        whole, cut = csv.DictReader(stream)
    with (tmp_path / "plain.csv").open(encoding="utf-8", newline="") as stream:
        _, by_area = csv.DictReader(stream)
    assert float(whole["by_public_weights"]) == 0
    assert float(cut["by_public_weights"]) == pytest.approx(float(cut["in_cut_cells"]))
    assert float(cut["share"]) == pytest.approx(3 / 6, abs=0.03)
    assert float(by_area["share"]) == pytest.approx(2.5 / 6, abs=0.03)
    assert float(cut["trust"]) > 0.9
    assert "trust" not in by_area
    assert cut["touched"] == by_area["touched"]
    drawn = json.loads((tmp_path / "a.geojson").read_text())
    assert drawn["features"][1]["properties"]["trust"] == float(cut["trust"])
    assert drawn["features"][1]["properties"]["by_public_weights"] > 0


def test_a_geopackage_tells_it_in_columns(kept: Path, tmp_path: Path) -> None:
    pyogrio = pytest.importorskip("pyogrio")
    venues = kept / "venues.csv"
    packed = tmp_path / "a.gpkg"
    succeed("ranges", kept, kept / "regions.csv", "--within", venues, "--gpkg", packed)
    meta, _, _, values = pyogrio.raw.read(packed)
    columns = dict(zip(meta["fields"], values, strict=True))
    assert (columns["trust"] > 0.9).all()
    assert columns["by_public_weights"][0] == 0 < columns["by_public_weights"][1]


def test_python_and_the_command_write_the_same_file(kept: Path, tmp_path: Path) -> None:
    venues = kept / "venues.csv"
    area = write_file(tmp_path, "area.csv", "name,south,west,north,east\narea,0.5,0.5,5.5,5.1\n")
    succeed(
        "ranges", kept, kept / "regions.csv", "--within", venues, "--of", area, "--csv",
        tmp_path / "a.csv",
    )  # fmt: skip
    collection, found = read_estimate(kept)
    shares = region_shares(
        found,
        read_regions(kept / "regions.csv", collection.grid),
        area=read_regions(area, collection.grid),
        within=read_within(venues, collection.grid),
    )
    write_csv(tmp_path / "b.csv", shares)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "y,x\n50,50\n",
            (),
            "--within must hold people inside the square, but 'venues.csv' has none",
        ),
        ("y,x\n1,1\n", ("--within-column", "seats"), "--within-column must name"),
        ("y,x\n1,1\n", ("--within-layer", "seats"), "--within-layer must be left out"),
    ],
)
def test_files_that_say_nothing_are_refused(
    kept: Path, tmp_path: Path, text: str, options: tuple[str, ...], message: str
) -> None:
    file = write_file(tmp_path, "venues.csv", text)
    ran = run("ranges", kept, kept / "regions.csv", "--within", file, *options)
    assert ran.exit_code == 1
    assert message in " ".join(ran.stderr.split())


def test_its_options_need_it_and_no_output_replaces_it(kept: Path) -> None:
    for option in ("--within-layer", "--within-column"):
        ran = run("ranges", kept, kept / "regions.csv", option, "a")
        assert ran.exit_code == 2
        assert "--within-layer and --within-column need --within." in ran.stderr
    venues = kept / "venues.csv"
    ran = run("ranges", kept, kept / "regions.csv", "--within", venues, "--csv", venues)
    assert "--csv must not replace an input" in ran.stderr
