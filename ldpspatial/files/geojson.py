"""Cells of a grid as the text of a GeoJSON document (RFC 7946), piece by piece.

Written by hand and not by a JSON encoder, which would hold a large grid in memory as objects.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from client_sdk.shared import UNIT

Array = NDArray[np.float64]


def feature_collection(
    grid: Grid, members: Mapping[str, Any], properties: Mapping[str, Array]
) -> Iterator[str]:
    """Yield a FeatureCollection with a polygon for every cell, a row of cells at a time.

    Parameters
    ----------
    grid : Grid
    members : mapping of str to JSON value
        Further members of the collection.
    properties : mapping of str to (d, d) array of finite numbers
        Properties of the cells beside ``row`` and ``col``.
    """
    souths = _edges(grid.south, grid.height, grid.cells)
    wests = _edges(grid.west, grid.width, grid.cells)
    members = {"type": "FeatureCollection", **members}
    box = ",".join((wests[0], souths[0], wests[-1], souths[-1]))
    yield f'{json.dumps(members)[:-1]}, "bbox": [{box}], "features": [\n'
    separator = ",\n"
    for row, (south, north) in enumerate(pairwise(souths)):
        if row == grid.cells - 1:
            separator = "\n"
        values = {name: numbers[row].tolist() for name, numbers in properties.items()}
        features = (
            _feature(row, col, _ring(south, west, north, east), values)
            for col, (west, east) in enumerate(pairwise(wests))
        )
        yield ",\n".join(features) + separator
    yield "]}\n"


def _edges(corner: int, extent: int, cells: int) -> list[str]:
    """Return the lines between cells with all 7 decimals; neighbours share the same text."""
    # corner + k extent / cells to the nearest unit, halves up, in whole numbers.
    return [_decimal(corner + (2 * k * extent + cells) // (2 * cells)) for k in range(cells + 1)]


def _decimal(units: int) -> str:
    whole, fraction = divmod(abs(units), UNIT)
    return f"{'-' if units < 0 else ''}{whole}.{fraction:07d}"


def _ring(south: str, west: str, north: str, east: str) -> str:
    """Return the corners counter-clockwise from the south-west, where the ring also ends."""
    return f"[{west},{south}],[{east},{south}],[{east},{north}],[{west},{north}],[{west},{south}]"


def _feature(row: int, col: int, ring: str, values: Mapping[str, list[float]]) -> str:
    # repr of a finite float is a JSON number that reads back as the same float.
    more = "".join(f',"{name}":{numbers[col]!r}' for name, numbers in values.items())
    return (
        f'{{"type":"Feature","id":"{row}-{col}",'
        f'"geometry":{{"type":"Polygon","coordinates":[[{ring}]]}},'
        f'"properties":{{"row":{row},"col":{col}{more}}}}}'
    )
