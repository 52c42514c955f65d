"""Squares with a law of where people are: the synthetic maps, and cities from data."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from experiments.sources import CHICAGO_SQUARE, NEW_YORK_SQUARE, chicago, new_york
from ldpspatial.datasets import SyntheticMap, synthetic_maps
from ldpspatial.places.points import Points

Draw = Callable[[int, np.random.Generator], NDArray[np.float64]]


@dataclass(frozen=True)
class Place:
    """A square, and a law of where people are.

    Attributes
    ----------
    grid : Grid
    draw : callable
        ``draw(n, rng)`` returns (n, 2) coordinates as the grid takes them.
    """

    grid: Grid
    draw: Draw


def places(cells: int, data: Path | None) -> dict[str, Place]:
    """Return the synthetic maps by name and, where a folder of data is given, two cities.

    Parameters
    ----------
    cells : int
        Along a side.
    data : Path, optional
        Adds assaults in Chicago and pick-ups of green taxis in New York, from which people are
        drawn with replacement.

    Raises
    ------
    InputError
        The folder does not hold the files.
    """
    found = {name: _of_map(law, cells) for name, law in synthetic_maps().items()}
    if data is not None:
        found["chicago"] = _of_data(CHICAGO_SQUARE, chicago(data), cells)
        found["new york"] = _of_data(NEW_YORK_SQUARE, new_york(data), cells)
    return found


def _of_map(law: SyntheticMap, cells: int) -> Place:
    return Place(Grid.plane(law.y0, law.x0, law.side, cells), law.draw)


def _of_data(bounds: tuple[float, float, float], points: Points, cells: int) -> Place:
    at = points.coordinates
    return Place(Grid.from_bounds(*bounds, cells), lambda n, rng: at[rng.integers(len(at), size=n)])
