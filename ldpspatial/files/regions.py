"""Regions in files: rectangles in tables and polygons in GeoJSON, read, and written with numbers.

Messages call the file REGIONS, as the command ``ranges`` does.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import ArrayLike, NDArray

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.files.atomic import replacing
from ldpspatial.files.columns import as_numbers, read_columns
from ldpspatial.files.table_layout import existing_file, table_layout
from ldpspatial.places.regions import Region, check_regions
from ldpspatial.validate import file_path, instance, number_array, shown

Path_ = str | os.PathLike[str]

SIDES = ("south", "west", "north", "east")
GEOJSON = (".geojson", ".json")


def read_regions(path: Path_, grid: Grid) -> list[Region]:
    r"""Read the regions of a table of rectangles or of a GeoJSON document of polygons.

    Parameters
    ----------
    path : path
        A table (.csv, .tsv, each also gzipped, .parquet, .pq) with the columns name, south, west,
        north and east, a rectangle a row; or a GeoJSON FeatureCollection (.geojson, .json) of
        Polygons and MultiPolygons, longitude first, with the property name. Polygons need the
        extra ``regions``.
    grid : client_sdk.Grid
        Of the map whose cells the regions cover.

    Returns
    -------
    list of Region
        In the order of the file. The third is called "region 3" where it has no name. One that
        lies outside of the map, or in part, says so (``on_map``).

    Raises
    ------
    InputError
        The file is missing, damaged, empty or neither of the two; a number in it is missing or not
        finite; a region is invalid, or all miss the map. The message names the row or feature.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "regions.csv"
    >>> _ = file.write_text("name,south,west,north,east\nnorth,1,0,2,2\n")
    >>> [(each.name, each.weights.tolist()) for each in read_regions(file, Grid.plane(0, 0, 2, 2))]
    [('north', [[0.0, 0.0], [1.0, 1.0]])]
    """
    file = existing_file(path)
    instance("grid", grid, Grid)
    read = _polygons if file.suffix.lower() in GEOJSON else _rectangles
    found = read(file, grid)
    if not found:
        raise InputError(f"REGIONS must hold at least one region, but {file.name!r} holds none")
    if not any(region.on_map for region in found):
        raise InputError(
            "REGIONS must hold a region that overlaps the map, but all of "
            f"{file.name!r} lie outside of its square: are latitude and longitude exchanged?"
        )
    return found


def write_regions_csv(
    path: Path_, regions: Sequence[Region], columns: Mapping[str, ArrayLike]
) -> None:
    """Write a table with a line for each region: its name, then its number in every column.

    Parameters
    ----------
    path : path
    regions : sequence of Region
    columns : mapping of str to (n,) array of finite numbers
        By the name of the column, a number for each region.

    Raises
    ------
    InputError
        There is no region, a column has another length, or the file cannot be written.
    """
    file = file_path("path", path)
    numbers = _numbers("columns", columns, check_regions(regions))
    # A name of a JSON document may hold half of a surrogate pair, which UTF-8 cannot.
    names = [region.name.encode("utf-8", "replace").decode() for region in regions]
    table = pa.table({"name": names, **numbers})
    with replacing(file) as stream:
        pa_csv.write_csv(table, stream)


def write_regions_geojson(
    path: Path_,
    regions: Sequence[Region],
    properties: Mapping[str, ArrayLike],
    members: Mapping[str, Any],
) -> None:
    """Write a GeoJSON FeatureCollection (RFC 7946), one region to a line.

    Parameters
    ----------
    path : path
    regions : sequence of Region
        One without a geometry becomes a feature without a place.
    properties : mapping of str to (n,) array of finite numbers
        Properties of the features beside ``name``.
    members : mapping of str to JSON value
        Further members of the collection.

    Raises
    ------
    InputError
        There is no region, a property has another length, a geometry or member is not JSON, or the
        file cannot be written.
    """
    file = file_path("path", path)
    numbers = _numbers("properties", properties, check_regions(regions))
    instance("members", members, dict)
    head = _json("members", {"type": "FeatureCollection", **members})[:-1]
    features = [
        _json(
            f"regions: geometry of {shown(region.name)}",
            {
                "type": "Feature",
                "geometry": region.geometry,
                "properties": {
                    "name": region.name,
                    **{name: values[k].item() for name, values in numbers.items()},
                },
            },
        )
        for k, region in enumerate(regions)
    ]
    lines = ",\n".join(features)
    with replacing(file) as stream:
        stream.write(f'{head}, "features": [\n{lines}\n]}}\n'.encode())


def _rectangles(file: Path, grid: Grid) -> list[Region]:
    layout = table_layout(file)
    wanted = ("name", *SIDES)
    missing = [name for name in wanted if layout.names.count(name) != 1]
    if missing:
        raise InputError(
            f"REGIONS must have the columns {', '.join(wanted)} once each, "
            f"but {file.name!r} lacks or repeats {', '.join(missing)}"
        )
    # As labels, so that a message can tell what stands in the place of a number.
    columns = read_columns(layout, [], [layout.names.index(name) for name in (*SIDES, "name")])
    if columns.ragged:
        raise InputError(
            f"REGIONS must have {len(layout.names)} fields in every row, "
            f"but row {columns.first_ragged} of {file.name!r} has not"
        )
    *fields, names = columns.arrays
    numbers = [as_numbers(each, side)[0] for each, side in zip(fields, SIDES, strict=True)]
    regions = []
    for row, given in enumerate(names.to_pylist()):
        place = f"row {row + 1} of {file.name!r}"
        for side, values, cells in zip(SIDES, numbers, fields, strict=True):
            if np.isnan(values[row]):
                raise InputError(f"{place}: {side} must be a number, got {_field(cells[row])}")
        box = [float(values[row]) for values in numbers]
        text = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
        try:
            regions.append(Region.rectangle(_name(text, row + 1), grid, *box))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    return regions


def _polygons(file: Path, grid: Grid) -> list[Region]:
    try:
        document = json.loads(
            file.read_text(encoding="utf-8"), parse_constant=_not_finite, parse_float=_finite
        )
        features = [
            (each["geometry"], each.get("properties") or {}, each.get("id"))
            for each in document["features"]
        ]
        named = [(geometry, properties.get("name", key)) for geometry, properties, key in features]
    except InputError as error:
        raise InputError(f"{error} in {file.name!r}") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(
            f"REGIONS must be a GeoJSON FeatureCollection, but {file.name!r} is not"
        ) from None
    regions = []
    for number, (geometry, given) in enumerate(named, 1):
        try:
            if not isinstance(geometry, dict):
                raise InputError("geometry must be a GeoJSON Polygon or MultiPolygon, got none")
            regions.append(Region.polygon(_name(given, number), grid, geometry))
        except InputError as error:
            raise InputError(f"feature {number} of {file.name!r}: {error}") from None
    return regions


def _name(given: object, number: int) -> str:
    return str(given) if given not in (None, "") else f"region {number}"


def _field(cell: Any) -> str:
    """Return what stands in a field of a table, for an error message.

    It may be told, unlike the fields of files of positions: regions are drawn, and are nobody's.
    """
    value = cell.as_py()
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    empty = text is None or (isinstance(text, str) and not text.strip())
    return "an empty field" if empty else shown(text)


def _finite(text: str) -> float:
    """Return a number of a JSON document; Python reads 1e999 as infinite."""
    number = float(text)
    return number if math.isfinite(number) else _not_finite(text)


def _not_finite(text: str) -> NoReturn:
    """Refuse a number that Python reads and that could not be written again as JSON."""
    raise InputError(f"REGIONS must hold finite numbers, got {shown(text)}")


def _numbers(
    field: str, given: Mapping[str, ArrayLike], regions: Sequence[Region]
) -> dict[str, NDArray[np.float64]]:
    instance(field, given, dict)
    return {name: number_array(f"{field}: {name}", each, (len(regions),))
            for name, each in given.items()}  # fmt: skip


def _json(field: str, value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{field} must be JSON with finite numbers") from None
