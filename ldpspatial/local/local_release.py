"""What all local releases share."""

from abc import abstractmethod
from typing import ClassVar

from ldpspatial.errors import InputError
from ldpspatial.release import TAKING_PART, Model, PrivacyClaim, Release, check_epsilon
from ldpspatial.users import UserCells

ONE_REPORT = "one report a user, of one of the user's positions drawn uniformly"
PUBLIC_MAP = "the square and its cells are public"


class LocalRelease(Release):
    """A release whose users randomise before anything leaves the device."""

    model: ClassVar[Model] = "local"

    @abstractmethod
    def local_privacy(self, cells: int, epsilon: float) -> float:
        """Return how far off an observer's guess of one person is, from all that one user sends.

        Parameters
        ----------
        cells : int
            Side of the map in cells.
        epsilon : float > 0

        Returns
        -------
        float
            Mean distance in cells between the cell that was reported on and a guess from the
            posterior, uniform prior (:mod:`ldpspatial.local_privacy`). It is no promise: the claim
            is.
        """

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP of one report a user; releases that promise something else override it."""
        check_epsilon(epsilon)
        return PrivacyClaim("local", epsilon, conditions=(ONE_REPORT, PUBLIC_MAP, TAKING_PART))


def square_side(name: str, users: UserCells) -> int:
    """Return the side of a square map, or refuse a map that is none."""
    rows, columns = users.shape
    if rows != columns:
        raise InputError(f"{name} needs a square map, got {rows} x {columns} cells")
    return rows
