"""Files of reports for tests, and what counting makes of them."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client_sdk import Collection, Grid
from ldpspatial import InputError, count_reports

COLLECTION = Collection.create("test", Grid.plane(0, 0, 1, 5), 3.5, radius=2)


def parquet(path: Path, **columns: object) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.table(columns), path)
    return path


def csv(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.name.lower().endswith(".gz") else data)
    return path


def counted(*files: Path) -> dict[tuple[int, int], int]:
    """Return the number of reports by (row, col)."""
    counts = count_reports(files, COLLECTION).counts
    b = COLLECTION.table.radius
    return {(r - b, c - b): n for (r, c), n in np.ndenumerate(counts) if n}


def refusal(*files: Path) -> str:
    with pytest.raises(InputError) as caught:
        count_reports(files, COLLECTION)
    return str(caught.value)


def dropped(*files: Path) -> tuple[int, dict[str, int]]:
    result = count_reports(files, COLLECTION, on_invalid="drop")
    return result.n, result.rejected
