"""``count``: parts that are counted apart and added give the map of the whole."""

from pathlib import Path

import numpy as np
import pytest

from ldpspatial.collecting.report_files import write_reports
from tests.support.command_line import refusal, succeed
from tests.support.service import CELLS, COLLECTION, OTHER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    (tmp_path / "berlin.json").write_text(COLLECTION.to_json())
    (tmp_path / "other.json").write_text(OTHER.to_json())
    for day in ("monday", "tuesday"):
        cells = np.array(CELLS)[rng.integers(len(CELLS), size=500)]
        ids = rng.integers(256, size=(500, 16), dtype=np.uint8)
        write_reports(tmp_path / f"{day}.parquet", COLLECTION, cells[:, 0], cells[:, 1], ids)
    return tmp_path


def test_parts_give_the_map_of_the_whole(folder: Path) -> None:
    document = folder / "berlin.json"
    for day in ("monday", "tuesday"):
        shown = succeed(
            "count", document, folder / f"{day}.parquet", "--out", folder / f"{day}.c.json"
        )
        assert "500 reports" in shown.output
    both = folder / "both.json"
    succeed("count", document, folder / "monday.c.json", folder / "tuesday.c.json", "--out", both)
    again = folder / "again.json"
    succeed("count", document, folder / "monday.c.json", folder / "tuesday.parquet", "--out", again)
    assert both.read_bytes() == again.read_bytes()
    maps = []
    apart = [folder / "monday.parquet", folder / "tuesday.parquet"]
    for name, files in (("one", [both]), ("two", apart)):
        succeed("estimate", document, *files, "--intervals", "none", "--out", folder / name)
        maps.append((folder / name / "estimate.csv").read_bytes())
    assert maps[0] == maps[1]


def test_bad_parts_are_refused(folder: Path) -> None:
    document = folder / "berlin.json"
    part = folder / "part.json"
    succeed("count", document, folder / "monday.parquet", "--out", part)
    out = folder / "out.json"
    told = refusal("count", folder / "other.json", part, "--out", out)
    assert "holds those of another one" in told
    assert "must name a file of counts" in refusal("count", document, document, "--out", out)
    assert "out must end in .json" in refusal("count", document, part, "--out", folder / "out.csv")
    assert not out.exists()
