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
        Names to look for, in any case, where none is wanted: the first that is there counts.
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
        for name in self.usual if self.wanted is None else (self.wanted,):
            exact = [each for each in columns if each == name]
            matches = exact or [each for each in columns if fold(each) == fold(name)]
            if len(matches) == 1:
                return matches[0]
            if matches:
                raise self._refused(file, columns, f"{len(matches)} are called {shown(name)}")
        looked_for = self.usual if self.wanted is None else (self.wanted,)
        raise self._refused(file, columns, f"none is called {' or '.join(map(shown, looked_for))}")

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
    found = None
    if column is not None:
        names = list(dict.fromkeys(name for _, held, _ in rows for name in held))
        is_there = {fold(name) for name in names} & set(column.usual)
        if column.wanted is not None or is_there:
            found = column.find(file, names)
    return [
        Feature(
            None if found is None else held.get(found),
            geometry if isinstance(geometry, dict) else None,  # a list would be read as corners
            key,
        )
        for geometry, held, key in rows
    ]


def _finite(text: str) -> float:
    """Return a number of a JSON document; Python reads 1e999 as infinite."""
    number = float(text)
    return number if math.isfinite(number) else _not_finite(text)


def _not_finite(text: str) -> NoReturn:
    """Refuse a number that Python reads and that could not be written again as JSON."""
    raise InputError(f"path must hold finite numbers, got {shown(text)}")
