"""Trajectories to measure on: walks over maps of two cities, and the trips of real taxis."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from experiments.sources import (
    CABS,
    CHICAGO_SQUARE,
    NEW_YORK_SQUARE,
    chicago,
    new_york,
    table,
)
from ldpspatial.datasets import density_walks
from ldpspatial.places.points import Points
from ldpspatial.places.users import UserCells, user_cells

Ints = NDArray[np.int64]

PARTS = 300  # cells along a side of the map that walks are drawn on
SHORTEST, LONGEST = 2, 200  # points of a trajectory
LARGEST_GAP = 600  # seconds between points of a trip
SAN_FRANCISCO_SQUARE = (37.68, -122.52, 0.17)  # south, west, side in degrees


@dataclass(frozen=True)
class Place:
    """Trajectories in a square.

    Attributes
    ----------
    name : str
    square : (south, west, side)
        In degrees.
    points : Points
        Trajectory after trajectory, in order; one is a user.
    """

    name: str
    square: tuple[float, float, float]
    points: Points

    def on(self, cells: int) -> UserCells:
        """Return the trajectories on a grid."""
        return user_cells(self.points, Grid.from_bounds(*self.square, cells))


def places(data: Path, walks: int, seed: int) -> list[Place]:
    """Return walks over New York and Chicago, drawn from the seed, and the trips of taxis."""
    maps = (
        ("New York, walks", NEW_YORK_SQUARE, new_york(data)),
        ("Chicago, walks", CHICAGO_SQUARE, chicago(data)),
    )
    walked = [
        Place(name, square, _walks(square, at, walks, np.random.default_rng([seed, k])))
        for k, (name, square, at) in enumerate(maps)
    ]
    return [*walked, Place("San Francisco, taxis", SAN_FRANCISCO_SQUARE, trips(data))]


def trips(data: Path) -> Points:
    """Return the trips of Cabspotting's taxis with passengers, one user each.

    A trip is a run of successive points of a taxi that are marked as occupied, no more than ten
    minutes apart. Trips of one point are left out, and of long ones the first 200 points are kept.
    """
    columns = table(data, CABS)
    at = np.column_stack([columns["lat"], columns["lon"]])
    seconds = columns["time"].astype("datetime64[s]").astype(np.int64)
    runs = trip_numbers(columns["user"], seconds, columns["occupied"])
    kept = np.flatnonzero((columns["occupied"] == 1) & clamped(runs))
    return Points(at[kept], np.unique(runs[kept], return_inverse=True)[1].astype(np.int64))


def trip_numbers(taxis: NDArray[np.object_], seconds: Ints, occupied: Ints) -> Ints:
    """Return the number of the run that each point belongs to, from rows in order of time."""
    begins = (taxis[1:] != taxis[:-1]) | (occupied[1:] != occupied[:-1])
    begins |= np.diff(seconds) > LARGEST_GAP
    return np.concatenate([[0], np.cumsum(begins)]).astype(np.int64)


def clamped(runs: Ints) -> NDArray[np.bool_]:
    """Tell which points are kept: the first 200 of each run that has two."""
    _, first, run, lengths = np.unique(
        runs, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.arange(len(runs)) - first[run]
    return np.asarray((lengths[run] >= SHORTEST) & (rank < LONGEST))


def _walks(
    square: tuple[float, float, float], at: Points, walks: int, rng: np.random.Generator
) -> Points:
    south, west, side = square
    density = user_cells(at, Grid.from_bounds(*square, PARTS)).density
    return density_walks(density, walks, rng, SHORTEST, LONGEST, (south, west), side)
