"""Places: the maps that people are drawn from, and the users of Tokyo as they are."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from client_sdk import Grid
from experiments.setup import COUNT
from experiments.sources import (
    CHICAGO_SQUARE,
    Array,
    chicago,
    manhattan,
    people_of,
    tokyo,
)
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user, user_cells

side_option = click.option(
    "--side", default=1024, show_default=True, type=COUNT, help="Pixels of a side of Manhattan."
)


@dataclass(frozen=True, eq=False)
class Place:
    """Where people are.

    Attributes
    ----------
    name : str
    density : (rows, columns) array
        The truth that errors refer to; sums to 1.
    people : UserCells, optional
        Everybody there is, where users are known; by default they are drawn from the density.
    """

    name: str
    density: Array
    people: UserCells | None = None

    def draw(self, users: int | None, rng: np.random.Generator) -> UserCells:
        """Return so many users, or everybody where users are known."""
        if self.people is not None:
            return self.people if users is None else self.people.sample(users, rng)
        if users is None:
            raise InputError(f"users must be a number: nobody is known in {self.name}")
        return people_of(self.density, users, rng)

    @property
    def digest(self) -> str:
        """Fingerprint of the place, by which runs on other data are noticed."""
        digest = hashlib.sha256(f"{self.density.shape} {self.people!r}".encode())
        digest.update(np.ascontiguousarray(self.density).tobytes())
        return digest.hexdigest()[:16]


def manhattan_place(data: Path, side: int) -> Place:
    """Return the map of Manhattan with each of its pixels repeated, about side / 216 times.

    Bagdasaryan et al. draw people from a map of 1024 x 1024 pixels; what is to be had is that map
    at 216 x 216. Repeated pixels keep its shape and have no finer detail.
    """
    luminosity = manhattan(data)
    rows, columns = (np.arange(side) * pixels // side for pixels in luminosity.shape)
    repeated = luminosity[np.ix_(rows, columns)]
    return Place("Manhattan", repeated / repeated.sum())


def tokyo_users(data: Path, side: int) -> Place:
    """Return Tokyo's users with all their check-ins; the truth is the mean of their maps."""
    people = _tokyo_cells(data, side)
    return Place("Tokyo", people.density, people)


def tokyo_place(data: Path, side: int) -> Place:
    """Return the map of Tokyo's check-ins: whoever is drawn from it stands for a person."""
    visits = _tokyo_cells(data, side).visits.sum(axis=0)
    return Place("Tokyo", np.asarray(visits, np.float64).reshape(side, side) / visits.sum())


def chicago_place(data: Path, side: int) -> Place:
    """Return the map of assaults in Chicago's square."""
    south, west, degrees = CHICAGO_SQUARE
    everybody = user_cells(chicago(data), Grid.from_bounds(south, west, degrees, side))
    return Place("Chicago", everybody.density)


def _tokyo_cells(data: Path, side: int) -> UserCells:
    """Put check-ins on a grid over their bounding box."""
    checkins = tokyo(data)
    if checkins.users is None:
        raise InputError("check-ins must tell users apart")
    least, most = (bound(checkins.coordinates, axis=0) for bound in (np.min, np.max))
    share = (checkins.coordinates - least) / (most - least)
    row, column = np.minimum((share * side).astype(np.int64), side - 1).T
    return cells_by_user(checkins.users, row * side + column, (side, side))
