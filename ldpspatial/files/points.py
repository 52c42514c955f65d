"""Positions that an analyst holds in a file, one row each, read and checked once.

A message says which column breaks which rule, how many rows do and the number of the first one.
It never repeats a coordinate.
"""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import PLANE_LIMIT
from ldpspatial.errors import InputError
from ldpspatial.files.columns import as_codes, as_numbers, is_missing, read_columns
from ldpspatial.files.table_layout import Layout, find_column, fold, listed, table_layout
from ldpspatial.places.points import Points
from ldpspatial.validate import one_of, true_or_false

LATITUDE_NAMES = ("lat", "latitude", "y", "pickup_latitude", "pickup_lat", "start_lat")
LONGITUDE_NAMES = (
    *("lon", "lng", "long", "longitude", "x"),
    *("pickup_longitude", "pickup_lon", "start_lon", "start_lng"),
)
GEOGRAPHIC_LIMITS = (90.0, 360.0)  # degrees; longitudes may be written -180..180 or 0..360
PLANE_LIMITS = (float(PLANE_LIMIT), float(PLANE_LIMIT))
ON_MISSING = ("error", "drop")


def read_points(
    path: str | os.PathLike[str],
    lat: str | None = None,
    lon: str | None = None,
    user: str | None = None,
    *,
    plane: bool = False,
    on_missing: str = "error",
) -> Points:
    r"""Read positions from a CSV, TSV (each also gzipped) or Parquet file.

    Only the named columns are read; names are matched exactly, else ignoring case and outer
    spaces. Fields may be separated by commas, semicolons or tabs and stand in double quotes;
    decimals are written with a point.

    Parameters
    ----------
    path : path of a .csv, .csv.gz, .tsv, .tsv.gz, .parquet or .pq file
    lat, lon : str, optional
        Columns of latitude and longitude in degrees, or of y and x on a plane. By default the
        one column with a common name, such as lat or Latitude, lng or Longitude, y or x.
    user : str, optional
        Column that tells users apart: text or numbers of any kind.
    plane : bool
        Whether the numbers are y and x of a plane: latitudes must lie in [-90, 90] otherwise.
    on_missing : {"error", "drop"}
        What to do with rows in which a named column is empty or NaN.

    Returns
    -------
    Points

    Raises
    ------
    InputError
        The file is missing, empty, without rows, of an unknown extension or damaged; a column is
        missing or ambiguous; a cell is empty (unless dropped), holds text in place of a number,
        is infinite or no latitude or longitude.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "visits.csv"
    >>> _ = file.write_text("who,Latitude,Longitude\nann,48.0,11.0\nbob,48.1,11.2\nann,,\n")
    >>> read_points(file, user="who", on_missing="drop")
    Points(2 positions, 2 users, 1 rows dropped)
    """
    one_of("on_missing", on_missing, ON_MISSING)
    true_or_false("plane", plane)
    layout = table_layout(path)
    numeric = [
        _coordinate_column(layout, "lat", lat, LATITUDE_NAMES),
        _coordinate_column(layout, "lon", lon, LONGITUDE_NAMES),
    ]
    if numeric[0] == numeric[1]:
        raise InputError(f"lat and lon must name two columns, got {lat or lon!r} for both")
    labels = [] if user is None else [find_column(layout, "user", user)]

    columns = read_columns(layout, numeric, labels)
    columns.check_whole(layout)
    rows = len(columns.arrays[0])
    if rows == 0:
        raise InputError(f"path must hold rows, but {layout.path.name!r} has none")
    names = [layout.names[i] for i in (*numeric, *labels)]
    coordinates = _checked_numbers(columns.arrays[:2], names[:2], plane)

    missing = np.any(np.isnan(coordinates), axis=1)
    for array in columns.arrays[2:]:
        missing |= is_missing(array)
    if missing.any() and on_missing == "error":
        raise InputError(
            f"{' and '.join(map(repr, names))} must be filled in every row: {_which(missing)} "
            "empty; repair them, or leave them out with {remedy}",
            remedy=("on_missing", "drop"),
        )
    if missing.all():
        raise InputError(f"path must hold positions, but all {rows} rows have an empty cell")
    keep = ~missing
    users = as_codes(columns.arrays[2].filter(keep), "user") if labels else None
    return Points(coordinates[keep], users, int(missing.sum()))


def _coordinate_column(
    layout: Layout, field: str, wanted: str | None, common: Sequence[str]
) -> int:
    if wanted is not None:
        return find_column(layout, field, wanted)
    matches = [i for i, name in enumerate(layout.names) if fold(name) in common]
    if len(matches) == 1:
        return matches[0]
    found = "several columns have" if matches else "no column has"
    raise InputError(
        f"{field} must name a column here: {found} one of the usual names "
        f"({', '.join(common)}); {listed(layout)}"
    )


def _checked_numbers(
    arrays: Sequence[object], names: Sequence[str], plane: bool
) -> NDArray[np.float64]:
    """Return the two columns as (n, 2) float64, NaN where empty; refuse other than coordinates."""
    fields = ("y", "x") if plane else ("latitude", "longitude")
    limits = PLANE_LIMITS if plane else GEOGRAPHIC_LIMITS
    hint = "" if plane else "; are the columns swapped, or is this a plane ({remedy})?"
    values = []
    for array, name, field, limit in zip(arrays, names, fields, limits, strict=True):
        numbers, text = as_numbers(array, repr(name))
        if text.any():
            raise InputError(
                f"{name!r} must hold numbers such as 12.5, with a decimal point: "
                f"{_which(text)} text"
            )
        infinite = np.isinf(numbers)
        if infinite.any():
            raise InputError(f"{name!r} must be finite: {_which(infinite)} infinite")
        outside = np.abs(numbers) > limit
        if outside.any():
            raise InputError(
                f"{name!r} must be a {field} from -{limit:g} to {limit:g}: "
                f"{_which(outside)} outside{hint}",
                remedy=("plane", True),
            )
        values.append(numbers)
    return np.column_stack(values)


def _which(rows: NDArray[np.bool_]) -> str:
    """Return how many rows and which is the first, as the subject of a sentence."""
    count = int(rows.sum())
    verb = "is" if count == 1 else "are"
    return f"{count} of {len(rows)} rows (first: row {int(rows.argmax()) + 1}) {verb}"
