"""Results and reports in formats that other programs open: npz, GeoJSON, CSV and Parquet.

Every file is there in full or not at all (:mod:`ldpspatial.files.atomic`). Rows run south to north,
columns west to east. Densities and intervals are shares of the people of the whole square.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from client_sdk import Collection, Grid
from ldpspatial.cell_maps import cell_map
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate
from ldpspatial.estimation.uncertainty import Uncertainty
from ldpspatial.files.atomic import replacing
from ldpspatial.files.geojson import feature_collection

Path_ = str | os.PathLike[str]
Maps = dict[str, NDArray[np.float64]]

ID_BYTES = 16
ROW_GROUP = 1 << 20  # reports; a reader holds one row group, about 30 MB, at a time
_CELL = {"row": pa.int32(), "col": pa.int32()}
REPORTS = pa.schema(
    {"id": pa.binary(ID_BYTES), **_CELL, "collection": pa.dictionary(pa.int32(), pa.string())}
)
TEXT_REPORTS = pa.schema({"id": pa.string(), **_CELL, "collection": pa.string()})


def write_npz(
    path: Path_,
    collection: Collection,
    estimate: Estimate,
    uncertainty: Uncertainty | None = None,
) -> None:
    """Write all that is known of an estimate, for ``numpy.load(path, allow_pickle=False)``.

    Parameters
    ----------
    path : path
    collection : Collection
        What the reports belong to.
    estimate : Estimate
    uncertainty : Uncertainty, optional

    Notes
    -----
    Arrays: ``density`` (d, d) float64; ``counts`` (d + 2b, d + 2b) int64, output cell (row, col)
    at [row + b, col + b]; ``trace`` float64, log-likelihood in nats at the start and after each
    step; with an uncertainty ``lower`` and ``upper`` (d, d) float64.

    Scalars: ``collection`` (the canonical document), ``digest``, ``n``, ``log_likelihood``,
    ``iterations``, ``converged``, ``rule``, ``width``, ``sparsity``, ``smoothing`` ("none", a
    name, or "custom" for a function, which no file can hold); with an uncertainty ``level`` and
    ``method``.

    Raises
    ------
    InputError
        The estimate is not one of this collection's grid and output domain, or the file cannot
        be written.
    """
    maps = _maps(collection.grid, estimate, uncertainty)
    side = collection.table.cells + 2 * collection.table.radius
    if estimate.counts.shape != (side, side):
        raise InputError(
            f"estimate.counts must have the shape {(side, side)} of the collection's output "
            f"domain, got {estimate.counts.shape}"
        )
    entries: dict[str, Any] = {
        **maps,
        "counts": estimate.counts.astype(np.int64),
        "trace": np.array(estimate.trace, np.float64),
        "collection": collection.to_json(),
        "digest": collection.digest,
        "n": estimate.n,
        "log_likelihood": estimate.log_likelihood,
        "iterations": estimate.iterations,
        "converged": estimate.converged,
        "rule": estimate.rule,
        "width": estimate.width,
        "sparsity": estimate.sparsity,
        "smoothing": estimate.smoothing,
    }
    if uncertainty is not None:
        entries |= {"level": uncertainty.level, "method": uncertainty.method}
    with replacing(path) as stream:
        np.savez_compressed(stream, **entries)


def write_geojson(
    path: Path_, grid: Grid, estimate: Estimate, uncertainty: Uncertainty | None = None
) -> None:
    """Write every cell as a polygon with its density (GeoJSON, RFC 7946), one to a line.

    Parameters
    ----------
    path : path
    grid : Grid
        Neighbouring cells share their edges to the last digit (1e-7 degree or plane unit).
    estimate : Estimate
    uncertainty : Uncertainty, optional

    Notes
    -----
    Feature "row-col" has the properties ``row``, ``col``, ``density``, ``people`` (the expected
    number, density times reports) and with an uncertainty ``lower`` and ``upper``, shares like
    the density. The collection has ``reports`` (their number), and ``level`` and ``method`` of
    the intervals.

    Polygons and bounding box of a square across the antimeridian are not cut in two as RFC 7946
    recommends: their longitudes run on past 180, which keeps every cell one polygon.

    A plane grid is written in its own coordinates, x before y, and marked by the member
    ``"plane": true``. GeoJSON knows degrees only, so a viewer must be told what they are.

    Raises
    ------
    InputError
        The estimate does not fit the grid, or the file cannot be written.
    """
    maps = _maps(grid, estimate, uncertainty)
    members: dict[str, Any] = {"plane": True} if grid.kind == "plane" else {}
    members["reports"] = estimate.n
    if uncertainty is not None:
        members |= {"level": uncertainty.level, "method": uncertainty.method}
    density = maps.pop("density")
    properties = {"density": density, "people": density * estimate.n, **maps}
    with replacing(path) as stream:
        for text in feature_collection(grid, members, properties):
            stream.write(text.encode())


def write_csv(
    path: Path_, grid: Grid, estimate: Estimate, uncertainty: Uncertainty | None = None
) -> None:
    """Write a table with a line for every cell, by row, then column.

    Columns: row, col, latitude and longitude of the centre in degrees (y and x on a plane grid),
    density, and with an uncertainty lower and upper. Longitudes lie in [-180, 180).

    Raises
    ------
    InputError
        The estimate does not fit the grid, or the file cannot be written.
    """
    maps = _maps(grid, estimate, uncertainty)
    names = ("latitude", "longitude") if grid.kind == "geographic" else ("y", "x")
    # The centre of cell (k, k) has the latitude of row k and the longitude of column k.
    centers = np.array([grid.center(k, k) for k in range(grid.cells)])
    schema = pa.schema(_CELL | {name: pa.float64() for name in (*names, *maps)})
    cols = np.arange(grid.cells, dtype=np.int32)
    with replacing(path) as stream, pa_csv.CSVWriter(stream, schema) as writer:
        for row in range(grid.cells):
            latitude = np.full(grid.cells, centers[row, 0])
            values = [values[row] for values in maps.values()]
            arrays = [np.full_like(cols, row), cols, latitude, centers[:, 1], *values]
            writer.write_batch(pa.record_batch(list(map(pa.array, arrays)), schema=schema))


def write_reports(
    path: Path_, collection: Collection, rows: ArrayLike, cols: ArrayLike, ids: ArrayLike
) -> None:
    """Write reports as :func:`ldpspatial.counting.count_reports` reads them.

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
    suffix = Path(path).suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise InputError(f"path must end in .parquet or .csv, got {Path(path).name!r}")
    cells = [_cells_reported(name, at) for name, at in (("rows", rows), ("cols", cols))]
    keys = np.ascontiguousarray(ids)
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
    outside = n - int(_is_output(collection, *cells).sum())
    if outside:
        raise InputError(f"reports must lie in the output domain, but {outside} of {n} do not")
    columns = (*cells, keys)
    with replacing(path) as stream:
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


def _maps(grid: Grid, estimate: Estimate, uncertainty: Uncertainty | None) -> Maps:
    """Return the density and the bounds of its intervals, checked against the grid."""
    maps = {"density": cell_map("estimate.density", estimate.density, grid)}
    if uncertainty is not None:
        maps["lower"] = cell_map("uncertainty.lower", uncertainty.lower, grid)
        maps["upper"] = cell_map("uncertainty.upper", uncertainty.upper, grid)
    return maps


def _cells_reported(field: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise InputError(
            f"{field} must be a one-dimensional array of signed integers, "
            f"got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


def _is_output(
    collection: Collection, rows: NDArray[np.int64], cols: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which cells a report may name: the vectorised twin of ResponseTable.is_output."""
    table = collection.table
    margins = np.array([*table.half_widths, -table.cells])  # the last: no column is within
    beyond = np.maximum(np.maximum(-rows, rows - table.cells + 1), 0)
    margin = margins[np.minimum(beyond, table.radius + 1)]
    return (-margin <= cols) & (cols < table.cells + margin)


def _report_batch(digest: str, part: Sequence[NDArray[Any]], in_text: bool) -> Any:
    """Return reports (rows, cols, ids) as an Arrow record batch."""
    rows, cols, ids = part
    raw, names = ids.tobytes(), pa.repeat(digest, len(ids))
    if in_text:
        ends = np.arange(len(ids) + 1, dtype=np.int32) * (2 * ID_BYTES)
        digits = pa.py_buffer(raw.hex().encode())
        key = pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), digits)
        schema = TEXT_REPORTS
    else:
        key = pa.Array.from_buffers(pa.binary(ID_BYTES), len(ids), [None, pa.py_buffer(raw)])
        names, schema = names.dictionary_encode(), REPORTS
    cells = [pa.array(at.astype(np.int32)) for at in (rows, cols)]
    return pa.record_batch([key, *cells, names], schema=schema)
