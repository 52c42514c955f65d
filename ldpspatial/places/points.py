"""Points: positions that an analyst holds, and whose they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.validate import number_array, whole_array, whole_number

MOST_CODE = 1 << 63


@dataclass(frozen=True, eq=False, repr=False)
class Points:
    """Positions and, where users hold several, whose they are.

    Its printed form shows how many there are and never where.

    Attributes
    ----------
    coordinates : ndarray of float64, shape (n, 2)
        Latitude and longitude in degrees; y and x in the unit of the file on a plane.
    users : ndarray of int64, shape (n,), or None
        A code 0, 1, ... for every user, in the order in which they first appear; None where every
        row is a user of its own.
    dropped : int
        Rows of the file that hold no usable position and were left out.

    Raises
    ------
    InputError
        Arrays of another shape or type or of different lengths, or positions that are not finite.
    """

    coordinates: NDArray[np.float64]
    users: NDArray[np.int64] | None = None
    dropped: int = 0

    def __post_init__(self) -> None:
        coordinates = number_array("coordinates", self.coordinates, ("n", 2))
        object.__setattr__(self, "coordinates", coordinates)
        if self.users is not None:
            users = whole_array("users", self.users, ("n",), 0, MOST_CODE)
            if len(users) != len(coordinates):
                raise InputError(
                    f"users must have one code a position, got {len(users)} for {len(coordinates)}"
                )
            object.__setattr__(self, "users", users)
        object.__setattr__(self, "dropped", whole_number("dropped", self.dropped, 0))

    def __len__(self) -> int:
        return len(self.coordinates)

    def __repr__(self) -> str:
        users = "" if self.users is None else f", {int(self.users.max(initial=-1)) + 1} users"
        return f"Points({len(self)} positions{users}, {self.dropped} rows dropped)"
