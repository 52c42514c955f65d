"""The same reports counted from their files, by DuckDB through Ibis, and by Spark through Ibis."""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from client_sdk import Collection, Grid, kernels
from experiments.benchmarks.timing import Table, in_process
from ldpspatial.collecting.report_files import write_reports

REPORTS = 10_000_000
FILES = 10
AGAIN = 50  # one report in so many of a file is repeated in the next file, another contradicted
COLLECTION = Collection.create("bench", Grid.from_center(48.0, 11.0, 12_000, 64), 3.5)

_COUNT_FILES = "found = count_reports(files, collection, 'drop')\n"
_COUNT_TABLE = "found = count_table(table, collection, 'drop')\n"
_DUCKDB = (
    "connection = ibis.duckdb.connect()\n"
    "connection.raw_sql('SET enable_progress_bar = false')\n"  # it would go to standard output
    "table = connection.read_parquet([str(file) for file in files])\n"
)
_SPARK = (
    "from pyspark.sql import SparkSession\n"
    "builder = SparkSession.builder.master('local[2]')\n"
    "settings = {'ui.enabled': 'false', 'driver.bindAddress': '127.0.0.1',\n"
    "    'driver.host': '127.0.0.1', 'driver.memory': '4g', 'local.dir': str(folder / 'spark'),\n"
    "    'sql.warehouse.dir': str(folder / 'tables'), 'log.level': 'ERROR'}\n"
    "for name, value in settings.items():\n"
    "    builder = builder.config('spark.' + name, value)\n"
    "table = ibis.pyspark.connect(builder.getOrCreate()).read_parquet(str(folder / 'reports'))\n"
)
WAYS = {  # what comes before the clock starts, and what is timed
    "`count_reports`": ("", _COUNT_FILES),
    "DuckDB through Ibis": (f"import ibis\n{_DUCKDB}", _COUNT_TABLE),
    "Spark through Ibis, two threads": (f"import ibis\n{_SPARK}", _COUNT_TABLE),
}


def warehouse() -> Table:
    """Count reports with repeats and conflicts in three ways, which must agree in every cell."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        planted = _written(folder)
        found = {
            way: in_process(_code(folder, *code)) for way, code in WAYS.items() if not _lacks(way)
        }
        first, *others = (np.load(folder / f"{each['file']}.npy") for each in found.values())
    told = {
        (each["n"], each["repeated"], tuple(each["rejected"].values())) for each in found.values()
    }
    if told != {planted} or any(not np.array_equal(first, other) for other in others):
        raise RuntimeError(f"counts differ: {told}, and {planted} were planted")
    own = found["`count_reports`"]["seconds"]
    rows: list[list[object]] = []
    for way in WAYS:
        if why := _lacks(way):
            rows.append([way, f"not measured: {why}", "", ""])
            continue
        seconds = found[way]["seconds"]
        equal = f"{planted[0]:,} counted, {planted[1]:,} repeated, {planted[2][0]:,} conflicting"
        rows.append([way, f"{seconds:.1f} s", f"{seconds / own:.1f}", equal])
    return [f"{REPORTS:,} reports with ids", "time", "times `count_reports`", "found"], rows


def _lacks(way: str) -> str:
    """Return what a way of counting needs and this machine has not, or nothing."""
    needed = {"DuckDB": ("ibis",), "Spark": ("ibis", "pyspark")}.get(way.partition(" ")[0], ())
    for package in needed:
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed"
    if "pyspark" in needed and not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        return "Java is not installed"
    return ""


def _code(folder: Path, before: str, timed: str) -> str:
    """Return a program that counts in one way, and keeps the counts in a file."""
    return (
        "from pathlib import Path\nimport numpy as np\nfrom client_sdk import Collection\n"
        "from ldpspatial.collecting.counting import count_reports\n"
        "from ldpspatial.collecting.warehouse import count_table\n"
        f"folder = Path({str(folder)!r})\n"
        "files = sorted((folder / 'reports').glob('*.parquet'))\n"
        f"collection = Collection.from_json({COLLECTION.to_json()!r})\n"
        f"{before}"
        "began = time.perf_counter()\n"
        f"{timed}"
        "result['seconds'] = time.perf_counter() - began\n"
        "result.update(n=found.n, repeated=found.repeated, rejected=found.rejected)\n"
        "result['file'] = str(len(list(folder.glob('*.npy'))))\n"
        "np.save(folder / result['file'], found.counts)"
    )


def _written(folder: Path) -> tuple[int, int, tuple[int, ...]]:
    """Write the files; return how many count, are repeated, and conflict.

    The first reports of each file are copies of some of the file before, and the following ones
    have ids of others of it with other cells.
    """
    (folder / "reports").mkdir()
    rng = np.random.default_rng(9)
    size = REPORTS // FILES
    again = size // AGAIN
    first, second = COLLECTION.table.output_cells()[:2]
    before: tuple[Any, ...] | None = None
    for number in range(FILES):
        cells = rng.integers(0, COLLECTION.grid.cells, (2, size))
        rows, cols = kernels.draw_many(COLLECTION.table, *cells, rng.bytes)
        ids = np.frombuffer(rng.bytes(16 * size), np.uint8).reshape(size, 16).copy()
        if before is not None:
            for mine, theirs in zip((rows, cols, ids), before, strict=True):
                mine[: 2 * again] = theirs[-2 * again :]
            was_first = (rows == first[0]) & (cols == first[1])
            moved = slice(again, 2 * again)
            rows[moved] = np.where(was_first[moved], second[0], first[0])
            cols[moved] = np.where(was_first[moved], second[1], first[1])
        write_reports(folder / "reports" / f"{number}.parquet", COLLECTION, rows, cols, ids)
        before = (rows, cols, ids)
    repeated = (FILES - 1) * again
    conflicting = (FILES - 1) * again * 2
    return size * FILES - repeated - conflicting, repeated, (conflicting,)
