"""Data sets and settings of the DAM paper's figures (section VII-A, tables III and IV)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from client_sdk import Grid
from experiments.sources import CHICAGO_SQUARE, NEW_YORK_SQUARE, chicago, crimes, new_york
from experiments.synthetic import crowd
from ldpspatial.places.points import Points
from ldpspatial.places.users import UserCells, user_cells

# South, west, side in degrees.
CHICAGO_PARTS = {
    "A": (41.72, -87.68, 0.09),
    "B": (41.82, -87.73, 0.09),
    "C": (41.92, -87.77, 0.07),
}
NEW_YORK_PARTS = {
    "A": (40.65, -73.84, 0.10),
    "B": (40.65, -73.95, 0.09),
    "C": (40.82, -73.90, 0.07),
}
WHOLE = "whole"
REAL = ("Crime", "Assaults", "NYC")
SYNTHETIC = {"Normal": "normal", "SZipf": "szipf", "MNormal": "mnormal"}


class Setting(NamedTuple):
    """Cells along a side, and epsilon."""

    cells: int
    epsilon: float


@dataclass(frozen=True)
class Row:
    """A row of panels of Figure 9: what varies, and over which settings.

    The map of a single cell, where every error is 0, is left out.
    """

    panels: str
    against: str
    settings: tuple[Setting, ...]
    published_sinkhorn: bool


ROWS = {
    row.panels: row
    for row in (
        Row("a-d", "cells", tuple(Setting(d, 3.5) for d in (2, 3, 4, 5)), False),
        Row("e-i", "cells", tuple(Setting(d, 5.0) for d in (5, 10, 15, 20)), True),
        Row("j-n", "epsilon", tuple(Setting(5, e) for e in (0.7, 1.4, 2.1, 2.8, 3.5)), False),
        Row("o-s", "epsilon", tuple(Setting(15, e) for e in (5.0, 6.0, 7.0, 8.0, 9.0)), True),
    )
}


@dataclass(frozen=True)
class DataSet:
    """People in one square or more, whose errors are averaged.

    Attributes
    ----------
    name : str
    parts : mapping of names to callables (cells) -> UserCells
    users : int or None
        Drawn anew for each repeat; None takes all.
    """

    name: str
    parts: Mapping[str, Callable[[int], UserCells]]
    users: int | None = None


def data_sets(data: Path, users: int) -> list[DataSet]:
    """Return the paper's five data sets, and assaults as a larger Crime.

    Parameters
    ----------
    data : Path
        Folder of data files.
    users : int
        Of a run on a synthetic map.
    """
    cities = (crimes, CHICAGO_PARTS), (chicago, CHICAGO_PARTS), (new_york, NEW_YORK_PARTS)
    real = [
        DataSet(name, _squares(read(data), parts))
        for name, (read, parts) in zip(REAL, cities, strict=True)
    ]
    drawn = [
        DataSet(name, {WHOLE: partial(crowd, law, users=users)}, users)
        for name, law in SYNTHETIC.items()
    ]
    return [*real, *drawn]


def whole_cities(data: Path) -> list[DataSet]:
    """Return the real data sets on one square around the whole city."""
    squares = CHICAGO_SQUARE, CHICAGO_SQUARE, NEW_YORK_SQUARE
    return [
        DataSet(name, _squares(read(data), {WHOLE: square}))
        for name, read, square in zip(REAL, (crimes, chicago, new_york), squares, strict=True)
    ]


def _squares(
    points: Points, squares: Mapping[str, tuple[float, float, float]]
) -> dict[str, Callable[[int], UserCells]]:
    def people(square: tuple[float, float, float]) -> Callable[[int], UserCells]:
        return cache(lambda cells: user_cells(points, Grid.from_bounds(*square, cells)))

    return {name: people(square) for name, square in squares.items()}
