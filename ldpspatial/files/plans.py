"""Plans of transport as tables, for programs that draw or sum up flows."""

import csv
import os

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from ldpspatial.errors import InputError
from ldpspatial.files.atomic import replacing
from ldpspatial.metrics.flows import flow_lengths
from ldpspatial.metrics.transport import Transport
from ldpspatial.validate import file_path, instance

SUFFIXES = (".csv", ".parquet")
CELLS = ("source_row", "source_col", "target_row", "target_col")
COLUMNS = (*CELLS, "mass", "distance")


def write_plan(path: str | os.PathLike[str], plan: Transport) -> None:
    """Write the flows of a plan, a line each, those that add most to the distance first.

    Columns: source_row, source_col, target_row, target_col, mass (share of the map's mass) and
    distance (in the unit of ``plan.cell``). The sum of mass * distance ** order is value ** order.

    Parameters
    ----------
    path : path ending in .csv or .parquet
    plan : Transport

    Raises
    ------
    InputError
        Another suffix, or the file cannot be written.
    """
    file = file_path("path", path)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"path must end in {' or '.join(SUFFIXES)}, got {file.name!r}")
    instance("plan", plan, Transport)
    distance = flow_lengths(plan)
    order = (-plan.mass * distance**plan.order).argsort(kind="stable")
    cells = [*plan.sources[order].T, *plan.targets[order].T]
    columns = {name: pa.array(at, pa.int32()) for name, at in zip(CELLS, cells, strict=True)}
    columns |= {"mass": pa.array(plan.mass[order]), "distance": pa.array(distance[order])}
    table = pa.table(columns)
    with replacing(file) as stream:
        if suffix == ".csv":
            pa_csv.write_csv(table, stream)
        else:
            pq.write_table(table, stream, compression="zstd")


def is_plan(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file has the columns of a plan, perhaps of one that moves nothing."""
    file = file_path("path", path)
    try:
        if file.suffix.lower() == ".parquet":
            return tuple(pq.read_schema(file).names) == COLUMNS
        with file.open(encoding="utf-8", newline="") as stream:
            return tuple(next(csv.reader(stream), ())) == COLUMNS
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException):
        return False
