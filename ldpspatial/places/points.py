"""Points: positions that an analyst holds, and whose they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    """

    coordinates: NDArray[np.float64]
    users: NDArray[np.int64] | None = None
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.coordinates)

    def __repr__(self) -> str:
        users = "" if self.users is None else f", {int(self.users.max(initial=-1)) + 1} users"
        return f"Points({len(self)} positions{users}, {self.dropped} rows dropped)"
