"""The walk of docs/recommended.md: its commands run as printed, and devices can report."""

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from client_sdk import Collection, Randomizer
from ldpspatial.planning import plan as planning
from tests.support.command_line import refusal, succeed

PAGE = Path(__file__).parents[3] / "docs" / "recommended.md"
FIELDS = ("id", "row", "col", "collection")
COARSE = 12  # cells a side in place of 64: the walk is then played in seconds


def write_places(rng: np.random.Generator) -> None:
    """Write a file of positions around the square's centre, and one of districts."""
    at = np.array([52.52, 13.405]) + rng.normal(0, 0.02, (2_000, 2))
    np.savetxt("visits.csv", at, "%.6f", ",", header="lat,lon", comments="")
    ring = [[13.38, 52.50], [13.43, 52.50], [13.43, 52.54], [13.38, 52.54], [13.38, 52.50]]
    district = {
        "type": "Feature",
        "properties": {"name": "centre"},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }
    document = {"type": "FeatureCollection", "features": [district]}
    Path("districts.geojson").write_text(json.dumps(document), encoding="utf-8")


def test_the_walk_runs_from_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planning, "recommended_cells", lambda *_: COARSE)
    write_places(np.random.default_rng(4))
    shell = PAGE.read_text(encoding="utf-8").split("```sh\n")[1].split("```")[0]
    commands = [shlex.split(line, comments=True) for line in shell.replace("\\\n", "").splitlines()]
    assert [words[1] for words in commands] == ["plan", "simulate", "estimate", "ranges"]
    for name, *arguments in commands:
        assert name == "ldpspatial"
        printed = succeed(*arguments).stdout
    collection = Collection.from_json(Path("noon.json").read_text(encoding="utf-8"))
    assert collection.grid.cells == COARSE
    assert printed.splitlines()[-1].split()[0] == "centre"

    succeed("collection", "new", "evening", "--center", "52.52,13.405", "--side-km", 12,
            "--epsilon", 3.5, "--cells", COARSE, "--out", "evening.json")  # fmt: skip
    other = refusal("estimate", "evening.json", "result/reports.parquet", "--out", "other")
    assert "collection" in other
    device = Randomizer(collection)
    with Path("reports.csv").open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(FIELDS)
        for k in range(50):
            report = device.report(52.52 + k / 1000, 13.405)
            table.writerow(getattr(report, field) for field in FIELDS)
    succeed("estimate", "noon.json", "reports.csv", "--out", "noon")
