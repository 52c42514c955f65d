"""City cells by name, counties as users, and observers of images as users."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from experiments.sources import COUNTIES, GAZE, city_cells, table
from ldpspatial.errors import InputError
from ldpspatial.places.points import Points
from ldpspatial.places.users import UserCells

Ints = NDArray[np.int64]

WEST, EAST, SOUTH, NORTH = -125.0, -66.0, 24.0, 50.0  # box around the contiguous United States
DEATHS = "deaths_2020-07-24"  # to the last day of the file
IMAGE = 762, 562  # height and width of every image in pixels
WEIGHTS = ("duration", "fixations")


def busiest(checkins: Points, side: int, users: int, places: int) -> dict[str, UserCells]:
    """Return the busiest city cells with at least so many users, by name, the busiest first."""
    found = city_cells(checkins, side, users, places)
    if len(found) < places:
        raise InputError(f"the data hold {len(found)} places with {users} users, not {places}")
    return {f"place {number:02}": people for number, people in enumerate(found, 1)}


@dataclass(frozen=True, eq=False)
class Fixations:
    """Where observers looked, one row a fixation.

    Attributes
    ----------
    user, image, duration : (n,) int arrays
        Who looked at which image, and for how many milliseconds.
    x, y : (n,) arrays
        In pixels from the left and from the top.
    """

    user: Ints
    image: Ints
    duration: Ints
    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def on(self, image: int, pixels: int, weight: str = "duration") -> UserCells:
        """Return the observers of one image on cells of pixels x pixels.

        The cells cover the image, beyond its right edge and its top where they do not divide it.
        The file counts y down, a map up: row 0 is the bottom.

        Parameters
        ----------
        image : int
        pixels : int >= 1
            Side of a cell.
        weight : {"duration", "fixations"}
            Whether a look weighs as long as it lasted, or every fixation weighs the same.
        """
        height, width = IMAGE
        rows = -(-height // pixels)
        columns = -(-width // pixels)
        here = self.image == image
        row = (height - 1 - np.floor(self.y[here]).astype(np.int64)) // pixels
        column = np.floor(self.x[here]).astype(np.int64) // pixels
        duration = self.duration[here]
        visits = duration if weight == "duration" else np.ones_like(duration)
        return weighted_cells(self.user[here], row * columns + column, visits, (rows, columns))


def gaze(data: Path) -> Fixations:
    """Return the fixations of all observers on all images."""
    columns = table(data, GAZE)
    user, image, duration = (columns[name].astype(np.int64) for name in ("user", "image", "dur_ms"))
    x, y = (columns[name].astype(np.float64) for name in ("x", "y"))
    height, width = IMAGE
    outside = (x < 0) | (x >= width) | (y < 0) | (y >= height)
    if outside.any():
        raise InputError(f"{GAZE} must hold positions inside its images, got {outside.sum()} out")
    return Fixations(user, image, duration, x, y)


@dataclass(frozen=True, eq=False)
class Counties:
    """Counties with a death, at their centres.

    Attributes
    ----------
    latitude, longitude : (n,) arrays
    deaths : (n,) int array, at least 1
    left_out : dict of str to int
        How many rows of the file are not here, by reason.
    """

    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    deaths: Ints
    left_out: dict[str, int]

    def on(self, side: int) -> UserCells:
        """Return counties as users on the box, stretched to side x side cells."""
        row = (self.latitude - SOUTH) / (NORTH - SOUTH) * side
        column = (self.longitude - WEST) / (EAST - WEST) * side
        cells = np.floor(row).astype(np.int64) * side + np.floor(column).astype(np.int64)
        return weighted_cells(np.arange(len(cells)), cells, self.deaths, (side, side))


def counties(data: Path) -> Counties:
    """Return the counties of the contiguous United States that have a death.

    Rows at (0, 0) are not places, and a county without deaths is a user without a position.
    """
    columns = table(data, COUNTIES)
    latitude = columns["lat"]
    longitude = columns["lon"]
    deaths = columns[DEATHS]
    nowhere = (latitude == 0) & (longitude == 0)
    inside = (latitude >= SOUTH) & (latitude < NORTH) & (longitude >= WEST) & (longitude < EAST)
    beyond = ~nowhere & ~inside
    without = inside & (deaths < 1)
    kept = inside & (deaths >= 1)
    reasons = {"at (0, 0)": nowhere, "outside the box": beyond, "without deaths": without}
    left_out = {reason: int(rows.sum()) for reason, rows in reasons.items()}
    return Counties(latitude[kept], longitude[kept], deaths[kept].astype(np.int64), left_out)


def weighted_cells(users: Ints, cells: Ints, visits: Ints, shape: tuple[int, int]) -> UserCells:
    """Return users' visits to cells, each (user, cell) pair with how often."""
    _, who = np.unique(users, return_inverse=True)
    size = int(who.max()) + 1, shape[0] * shape[1]
    total = sparse.coo_array((visits, (who, cells)), shape=size).tocsr()
    total.sum_duplicates()
    return UserCells(shape, total)
