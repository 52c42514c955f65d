"""Cities in which people move from window to window: points, and how many are at each by window."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from experiments.cities import SQUARES, cities
from experiments.sources import CABS, CRIMES, NEW_YORK, table

Array = NDArray[np.float64]

WINDOWS = 7
HOURS = 24
SAN_FRANCISCO_HOUR = -7  # behind UTC, in which the cabs' times are
BUMPS, REACH, SWELL = 6, 0.15, 1 / 3  # of places that swell and shrink: a third, over .15 sides
HALF = 0.5  # of the people of one city end in the other


@dataclass(frozen=True)
class ChangingCity:
    """Where people are in a square, window by window.

    Attributes
    ----------
    name : str
    square : south, west, side in degrees
    points : (n, 2) array
        In sides of the square from its south-west corner, y first.
    shares : (WINDOWS, n) array
        Share of the people at each point; every row sums to 1.
    """

    name: str
    square: tuple[float, float, float]
    points: Array
    shares: Array

    def grid(self, cells: int) -> Grid:
        """Return the square in so many cells a side."""
        return Grid.from_bounds(*self.square, cells)

    def cells_of(self, cells: int) -> NDArray[np.int64]:
        """Return the (n, 2) row and column of each point."""
        return np.minimum((self.points * cells).astype(np.int64), cells - 1)

    def laws(self, cells: int) -> Array:
        """Return the (WINDOWS, d, d) share of the people in each cell."""
        rows, cols = self.cells_of(cells).T
        found = [
            np.bincount(rows * cells + cols, weights=share, minlength=cells**2)
            for share in self.shares
        ]
        return np.reshape(found, (WINDOWS, cells, cells))


def changing_city(data: Path, name: str) -> ChangingCity:
    """Return a city of CITIES.

    Raises
    ------
    InputError
        The folder does not hold the files.
    """
    return CITIES[name](data)


def _trips(data: Path) -> ChangingCity:
    """Green taxis of New York: where trips begin turns into where they end."""
    columns = table(data, NEW_YORK)
    square = SQUARES["new york"][1]
    begin, _ = _in_square(columns["lat"], columns["lon"], square)
    end, _ = _in_square(columns["drop_lat"], columns["drop_lon"], square)
    return _blended("trips", square, begin, end, 1.0)


def _crimes(data: Path) -> ChangingCity:
    """Crimes in Chicago, by hour of the day."""
    columns = table(data, CRIMES)
    square = SQUARES["chicago"][1]
    places, inside = _in_square(columns["lat"], columns["lon"], square)
    return _by_hour("crimes", square, places, columns["hour"][inside].astype(np.int64))


def _cabs(data: Path) -> ChangingCity:
    """Cabs of San Francisco, by hour of the day."""
    columns = table(data, CABS)
    square = SQUARES["cabs"][1]
    places, inside = _in_square(columns["lat"], columns["lon"], square)
    seconds = np.asarray(columns["time"][inside]).astype("datetime64[s]").astype(np.int64)
    return _by_hour("cabs", square, places, seconds // 3600 + SAN_FRANCISCO_HOUR)


def _swelling(name: str, data: Path) -> ChangingCity:
    """Return a city whose places swell and shrink by a third, each at a time of its own."""
    (city,) = cities(data, (name,))
    rng = np.random.default_rng(list(SQUARES).index(name))
    centres = city.points[rng.integers(len(city.points), size=BUMPS)]
    starts = rng.uniform(0, 2 * np.pi, BUMPS)
    squared = ((city.points[:, None] - centres) ** 2).sum(-1)
    near = np.exp(-squared / (2 * REACH**2))
    turns = np.sin(starts + np.pi * np.arange(WINDOWS)[:, None] / (WINDOWS - 1))
    return ChangingCity(name, city.square, city.points, _normal((1 + SWELL) ** (turns @ near.T)))


def _moving(data: Path) -> ChangingCity:
    """Return a map of Austin that turns into one of Stockholm, to the half."""
    first, last = cities(data, ("austin", "stockholm"))
    return _blended("austin to stockholm", first.square, first.points, last.points, HALF)


def _in_square(lat: Array, lon: Array, square: tuple[float, float, float]) -> tuple[Array, Array]:
    """Return the positions inside, in sides of the square, and which they are."""
    south, west, side = square
    places = (np.column_stack([lat, lon]).astype(np.float64) - (south, west)) / side
    inside = ((places >= 0) & (places < 1)).all(1)
    return places[inside], inside


def _blended(
    name: str, square: tuple[float, float, float], first: Array, last: Array, most: float
) -> ChangingCity:
    """Return a city of which a part grows, window by window, that is like the last."""
    part = most * np.arange(WINDOWS)[:, None] / (WINDOWS - 1)
    shares = np.hstack(
        [(1 - part) / len(first) * np.ones(len(first)), part / len(last) * np.ones(len(last))]
    )
    return ChangingCity(name, square, np.vstack([first, last]), shares)


def _by_hour(
    name: str, square: tuple[float, float, float], places: Array, hours: NDArray[np.int64]
) -> ChangingCity:
    """Return a city whose windows are parts of the day."""
    window = hours % HOURS * WINDOWS // HOURS
    shares = window == np.arange(WINDOWS)[:, None]
    return ChangingCity(name, square, places, _normal(shares.astype(np.float64)))


def _normal(weights: Array) -> Array:
    return np.asarray(weights / weights.sum(1, keepdims=True))


CITIES: Mapping[str, Callable[[Path], ChangingCity]] = MappingProxyType(
    {
        "trips": _trips,
        "crimes": _crimes,
        "chicago a": partial(_swelling, "chicago a"),
        "cabs": _cabs,
        "san francisco": partial(_swelling, "san francisco"),
        "stockholm": partial(_swelling, "stockholm"),
        "tokyo": partial(_swelling, "tokyo"),
        "austin to stockholm": _moving,
    }
)
TUNED = ("trips", "crimes", "chicago a")  # the stretch of changes was chosen on these
HELD_BACK = tuple(name for name in CITIES if name not in TUNED)
