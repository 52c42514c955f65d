"""Squares of real cities, and where people are in them: from the folder given with --data."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from experiments.sources import CABS, CHICAGO, GOWALLA, NEW_YORK, TOKYO, table

Array = NDArray[np.float64]
Square = tuple[float, float, float]  # south, west, side in degrees

# The squares of Du et al. (2024, section VII-A) and of the docs of the data. No choice of the field
# or of its intervals was made on the second group; TUNED names the first.
SQUARES: Mapping[str, tuple[str, Square]] = MappingProxyType(
    {
        "chicago a": (CHICAGO, (41.72, -87.68, 0.09)),
        "chicago c": (CHICAGO, (41.92, -87.77, 0.07)),
        "chicago": (CHICAGO, (41.64, -87.90, 0.36)),
        "new york a": (NEW_YORK, (40.65, -73.84, 0.10)),
        "new york b": (NEW_YORK, (40.65, -73.95, 0.09)),
        "new york": (NEW_YORK, (40.56, -74.05, 0.32)),
        "austin": (GOWALLA, (30.1, -97.95, 0.40)),
        "san francisco": (GOWALLA, (37.70, -122.52, 0.13)),
        "stockholm": (GOWALLA, (59.2, 17.8, 0.25)),
        "tokyo": (TOKYO, (35.55, 139.55, 0.30)),
        "cabs": (CABS, (37.70, -122.52, 0.13)),
    }
)
# For central and distributed releases and better-default-drawn: nothing was chosen on these.
MORE: Mapping[str, tuple[str, Square]] = MappingProxyType(
    {
        "dallas": (GOWALLA, (32.60, -97.05, 0.45)),
        "gothenburg": (GOWALLA, (57.60, 11.80, 0.25)),
        "las vegas": (GOWALLA, (35.98, -115.32, 0.30)),
        "orlando": (GOWALLA, (28.30, -81.65, 0.30)),
        "seattle": (GOWALLA, (47.48, -122.45, 0.25)),
        "washington": (GOWALLA, (38.75, -77.20, 0.30)),
    }
)
TUNED = ("chicago a", "chicago c", "chicago", "new york a", "new york b", "new york")
HELD_BACK = tuple(name for name in SQUARES if name not in TUNED)


@dataclass(frozen=True)
class City:
    """Where people are in a square.

    Attributes
    ----------
    name : str
    square : south, west, side in degrees
    points : (n, 2) array
        In sides of the square from its south-west corner, y first.
    owners : (n,) array, optional
        Whose points they are, where the file says so.
    """

    name: str
    square: Square
    points: Array
    owners: NDArray[np.int64] | None = None

    def grid(self, cells: int) -> Grid:
        """Return the square in so many cells a side."""
        return Grid.from_bounds(*self.square, cells)

    def law(self, cells: int) -> Array:
        """Return the share of the points in each cell."""
        return self._histogram(self.points, cells)

    def halves(self, rng: np.random.Generator) -> tuple["City", "City"]:
        """Return two cities of half of the owners each, or of half of the points."""
        owners = np.arange(len(self.points)) if self.owners is None else self.owners
        names, whose = np.unique(owners, return_inverse=True)
        is_first = (rng.permutation(len(names)) < len(names) // 2)[whose]
        first, second = (
            City(self.name, self.square, self.points[kept], owners[kept])
            for kept in (is_first, ~is_first)
        )
        return first, second

    def people(self, n: int, rng: np.random.Generator) -> Array:
        """Return n of the points, drawn with replacement."""
        return self.points[rng.integers(len(self.points), size=n)]

    def histogram(self, people: Array, cells: int) -> NDArray[np.int64]:
        """Return how many of some people are in each cell."""
        return np.round(self._histogram(people, cells) * len(people)).astype(np.int64)

    @staticmethod
    def _histogram(points: Array, cells: int) -> Array:
        at = np.minimum((points * cells).astype(np.int64), cells - 1)
        index = at[:, 0] * cells + at[:, 1]
        return np.bincount(index, minlength=cells**2).reshape(cells, cells) / len(points)


def cities(data: Path, names: tuple[str, ...] = tuple(SQUARES)) -> list[City]:
    """Return cities by name, of ``SQUARES`` or ``MORE``.

    Raises
    ------
    InputError
        The folder does not hold the files.
    """
    read: dict[str, tuple[Array, NDArray[np.int64] | None]] = {}
    found = []
    for name in names:
        file, (south, west, side) = SQUARES[name] if name in SQUARES else MORE[name]
        if file not in read:
            columns = table(data, file)
            at = np.column_stack([columns["lat"], columns["lon"]]).astype(np.float64)
            read[file] = at, columns.get("user")
        at, owners = read[file]
        places = (at - (south, west)) / side
        inside = ((places >= 0) & (places < 1)).all(1)
        whose = None if owners is None else owners[inside]
        found.append(City(name, (south, west, side), places[inside], whose))
    return found
