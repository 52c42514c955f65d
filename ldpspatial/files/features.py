"""Features, each a geometry with what one column says of it; and those of GeoJSON documents."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ldpspatial.errors import InputError
from ldpspatial.files.table_layout import SHOWN_NAMES, fold
from ldpspatial.validate import shown

GEOJSON = (".geojson", ".json")


@dataclass(frozen=True)
class Feature:
    """A geometry and its value.

    Attributes
    ----------
    value : object
        What the column holds, None where there is none.
    geometry : GeoJSON mapping or shapely geometry
        Longitude (x) first; None where there is none.
    key : object
        The id of a GeoJSON feature.
    """

    value: object
    geometry: Any
    key: object = None


@dataclass(frozen=True)
class Column:
    """Which column to read.

    Attributes
    ----------
    field : str
        Of the argument that names it, for messages.
    wanted : str or None
        Its name.
    usual : tuple of str
        Names to look for, in any case, where none is wanted.
    """

    field: str
    wanted: str | None
    usual: tuple[str, ...]

    def find(self, file: Path, columns: Sequence[str]) -> str:
        """Return which of the columns of a file it is, by its exact name before any case.

        Raises
        ------
        InputError
            None or several of them are.
        """
        looked_for = self.usual if self.wanted is None else (self.wanted,)
        called = " or ".join(map(shown, looked_for))
        exact = [each for each in columns if each in looked_for]
        matches = exact or [each for each in columns if fold(each) in map(fold, looked_for)]
        if len(matches) == 1:
            return matches[0]
        found = f"{len(matches)} are called {called}" if matches else f"none is called {called}"
        raise self._refused(file, columns, found)

    def _refused(self, file: Path, columns: Sequence[str], why: str) -> InputError:
        return InputError(
            f"{self.field} must name one column of {file.name!r} ({listed(columns)}): {why}"
        )


def no_layers(file: Path, layer: str | None) -> None:
    """Refuse a layer of a file that has none."""
    if layer is not None:
        raise InputError(
            f"layer must be left out where a file has none, as {file.name!r}, got {shown(layer)}"
        )


def listed(names: Sequence[str]) -> str:
    """Return names for a message, which may be of columns and layers but of no user's data."""
    some = ", ".join(map(shown, names[:SHOWN_NAMES])) or "there are none"
    return some + (", ..." if len(names) > SHOWN_NAMES else "")


def geojson_features(file: Path, column: Column | None) -> list[Feature]:
    """Return the features of a GeoJSON document, and one property of each.

    Where no column is wanted by its name, features may lack it.

    Raises
    ------
    InputError
        The file is no FeatureCollection, holds a number that is not finite, or lacks the column.
    """
    try:
        document = json.loads(
            file.read_text(encoding="utf-8-sig"), parse_constant=_not_finite, parse_float=_finite
        )
        rows = [
            (each["geometry"], dict(each.get("properties") or {}), each.get("id"))
            for each in document["features"]
        ]
    except InputError as error:
        raise InputError(f"{error} in {file.name!r}") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(
            f"path must be a GeoJSON FeatureCollection, but {file.name!r} is not"
        ) from None
    properties = [held for _, held, _ in rows]
    values = [None] * len(rows) if column is None else _values(file, column, properties)
    return [
        Feature(
            value,
            geometry if isinstance(geometry, dict) else None,  # a list would be read as corners
            key,
        )
        for value, (geometry, _, key) in zip(values, rows, strict=True)
    ]


def _values(file: Path, column: Column, properties: Sequence[dict[str, Any]]) -> list[Any]:
    """Return one property of each feature, whose usual names each may write in its own letters."""
    names = list(dict.fromkeys(name for held in properties for name in held))
    if column.wanted is not None:
        found = column.find(file, names)
        return [held.get(found) for held in properties]
    if not {fold(name) for name in names} & set(column.usual):
        return [None] * len(properties)
    if all(len(set(map(fold, held))) == len(held) for held in properties):
        names = list({fold(name): name for name in names}.values())
    found = column.find(file, names)
    return [
        held[found] if found in held else {fold(k): v for k, v in held.items()}.get(fold(found))
        for held in properties
    ]


def _finite(text: str) -> float:
    """Return a number of a JSON document; Python reads 1e999 as infinite."""
    number = float(text)
    return number if math.isfinite(number) else _not_finite(text)


def _not_finite(text: str) -> NoReturn:
    """Refuse a number that Python reads and that could not be written again as JSON."""
    raise InputError(f"path must hold finite numbers, got {shown(text)}")
