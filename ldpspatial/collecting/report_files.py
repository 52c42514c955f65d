"""Reports written to Parquet or CSV, as :mod:`ldpspatial.collecting.counting` reads them."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from client_sdk import Collection
from ldpspatial.collecting.records import ID_BYTES, OutputDomain
from ldpspatial.errors import InputError
from ldpspatial.files.atomic import replacing
from ldpspatial.validate import file_path, instance, whole_array

Path_ = str | os.PathLike[str]

MOST_CELL = 1 << 31  # what a column of 32 bits holds; the output domain is smaller
ROW_GROUP = 1 << 20  # reports; a reader holds one row group, about 30 MB, at a time
_CELL = {"row": pa.int32(), "col": pa.int32()}
REPORTS = pa.schema(
    {"id": pa.binary(ID_BYTES), **_CELL, "collection": pa.dictionary(pa.int32(), pa.string())}
)
TEXT_REPORTS = pa.schema({"id": pa.string(), **_CELL, "collection": pa.string()})


def write_reports(
    path: Path_, collection: Collection, rows: ArrayLike, cols: ArrayLike, ids: ArrayLike
) -> None:
    """Write reports as :func:`ldpspatial.collecting.counting.count_reports` reads them.

    Parameters
    ----------
    path : path of a .parquet or .csv file
        Parquet: ``id`` fixed_size_binary(16), ``row`` and ``col`` int32, ``collection`` (the
        digest) as a dictionary of one string; zstd. CSV: the same columns, id in hexadecimal.
    collection : Collection
    rows, cols : (n,) integer arrays
        Reported cells; all must lie in the output domain.
    ids : (n, 16) uint8 array
        Random bytes that tell reports apart.

    Raises
    ------
    InputError
        Another suffix, no report, arrays of another shape or type, a cell outside the output
        domain, or the file cannot be written.
    """
    file = file_path("path", path)
    suffix = file.suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise InputError(f"path must end in .parquet or .csv, got {file.name!r}")
    instance("collection", collection, Collection)
    cells = [
        whole_array(name, at, ("n",), -MOST_CELL, MOST_CELL)
        for name, at in (("rows", rows), ("cols", cols))
    ]
    try:
        keys = np.asarray(ids)
    except ValueError:  # rows of different lengths
        raise InputError("ids must be a uint8 array, of one shape") from None
    n = len(cells[0])
    if n == 0:
        raise InputError("rows must hold at least one report, got 0")
    if len(cells[1]) != n:
        raise InputError(f"rows and cols must have one length, got {n} and {len(cells[1])}")
    if keys.dtype != np.uint8 or keys.shape != (n, ID_BYTES):
        raise InputError(
            f"ids must be a uint8 array of shape {(n, ID_BYTES)}, "
            f"got {keys.dtype} of shape {keys.shape}"
        )
    outside = n - int(OutputDomain(collection).holds(*cells).sum())
    if outside:
        raise InputError(f"reports must lie in the output domain, but {outside} of {n} do not")
    columns = (*cells, np.ascontiguousarray(keys))
    with replacing(file) as stream:
        writer = (
            pq.ParquetWriter(stream, REPORTS, compression="zstd")
            if suffix == ".parquet"
            else pa_csv.CSVWriter(stream, TEXT_REPORTS)
        )
        with writer:
            for start in range(0, n, ROW_GROUP):
                part = [column[start : start + ROW_GROUP] for column in columns]
                batch = _report_batch(collection.digest, part, in_text=suffix == ".csv")
                writer.write_batch(batch)


def _report_batch(digest: str, part: Sequence[NDArray[Any]], in_text: bool) -> Any:
    """Return reports (rows, cols, ids) as an Arrow record batch."""
    rows, cols, ids = part
    raw = ids.tobytes()
    names = pa.repeat(digest, len(ids))
    if in_text:
        ends = np.arange(len(ids) + 1, dtype=np.int32) * (2 * ID_BYTES)
        digits = pa.py_buffer(raw.hex().encode())
        key = pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), digits)
        schema = TEXT_REPORTS
    else:
        key = pa.Array.from_buffers(pa.binary(ID_BYTES), len(ids), [None, pa.py_buffer(raw)])
        names = names.dictionary_encode()
        schema = REPORTS
    cells = [pa.array(at.astype(np.int32)) for at in (rows, cols)]
    return pa.record_batch([key, *cells, names], schema=schema)
