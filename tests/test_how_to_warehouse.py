"""The page on warehouses, run: its blocks in order, on reports of three days."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ldpspatial import count_reports
from ldpspatial.collecting.partial_counts import count_files, read_counts
from ldpspatial.collecting.report_files import write_reports
from tests.support.service import CELLS, COLLECTION
from tests.support.spark import missing

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "reports-from-a-warehouse.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DAYS = ("monday", "tuesday", "wednesday")
SPARK = (
    "--master local[1] --driver-memory 512m --conf spark.ui.enabled=false "
    "--conf spark.driver.host=127.0.0.1 --conf spark.driver.bindAddress=127.0.0.1 pyspark-shell"
)


def write_days(folder: Path) -> None:
    """Write the collection, and a folder of two files for each day."""
    rng = np.random.default_rng(4)
    (folder / "berlin.json").write_text(COLLECTION.to_json())
    for day in DAYS:
        (folder / day).mkdir()
        cells = np.array(CELLS)[rng.integers(len(CELLS), size=300)]
        ids = rng.integers(256, size=(300, 16), dtype=np.uint8)
        for k, part in enumerate((slice(200), slice(150, 300))):  # 50 of them in both
            file = folder / day / f"{k}.parquet"
            write_reports(file, COLLECTION, cells[part, 0], cells[part, 1], ids[part])


def run(language: str, block: str, folder: Path) -> None:
    """Run a block as a reader does, with the environment of these tests on the path."""
    command = ["sh", "-e", "-c", block] if language == "sh" else [sys.executable, "-c", block]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {
        **os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": SPARK,
    }  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_the_page_counts_what_count_reports_counts(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)
    write_days(tmp_path)
    for language, block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        run(language, block, tmp_path)
    for day in DAYS:
        expected = count_reports(sorted((tmp_path / day).iterdir()), COLLECTION)
        assert (expected.n, expected.repeated) == (300, 50)
        found = read_counts(tmp_path / f"{day}.json", COLLECTION)
        np.testing.assert_array_equal(found.counts, expected.counts)
        assert (found.n, found.repeated) == (300, 50)
    together = count_files([tmp_path / "berlin-counts.json"], COLLECTION)
    assert (together.n, together.repeated) == (900, 150)
    assert (tmp_path / "map" / "heatmap.png").exists()
