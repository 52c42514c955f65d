"""Two inputs that differ in one user, among people that both share.

An attacker may know everybody but one. Who else is on the map decides how much it shows of that
one: where nobody is, noise that is cut off hides them; where some are, one more may be what a tree
divides a node for.
"""

from dataclasses import dataclass

import numpy as np

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.validate import map_shape, whole_number

TWO_CELLS = ((0, 0), (0, 1), (0, 3), (0, 40), (40, 40))
MORE_CELLS = ((0, 0, 0), (0, 40, 0), (12, 12, 12), (40, 40, 40))

MOST_OTHERS = 1_000_000  # in one cell
MOST_SIDE = 1024


@dataclass(frozen=True)
class Inputs:
    """A map, and the people of both inputs.

    Attributes
    ----------
    shape : (rows, columns)
        At least two cells, a side of 1,024 at most. The one user is in the first cell, the
        south-west corner; on the second input in the last one, or nowhere.
    beside, opposite, elsewhere : int in [0, 1,000,000]
        Others in the first cell, in the last one, and in each cell between.

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    shape: tuple[int, int] = (2, 2)
    beside: int = 0
    opposite: int = 0
    elsewhere: int = 0

    def __post_init__(self) -> None:
        shape = map_shape("shape", self.shape)
        if shape == (1, 1):
            raise InputError("shape must have two cells at least, got (1, 1)")
        for name, side in zip(("rows", "columns"), shape, strict=True):
            whole_number(f"{name} of shape", side, 1, MOST_SIDE)
        object.__setattr__(self, "shape", shape)
        for name in ("beside", "opposite", "elsewhere"):
            whole_number(name, getattr(self, name), 0, MOST_OTHERS)

    def pair(self, claim: PrivacyClaim, there: int | None = None) -> tuple[UserCells, UserCells]:
        """Return two inputs that differ in the data of one user, as the claim says.

        Parameters
        ----------
        claim : PrivacyClaim
            Under replacement, or where one user is added or removed.
        there : int, optional
            Where that user is on the second input, instead of in the last cell.
        """
        last = self.shape[0] * self.shape[1] - 1
        counts = np.full(last + 1, self.elsewhere)
        counts[0] = self.beside
        counts[last] = self.opposite
        others = np.repeat(np.arange(last + 1), counts)

        def users(*cells: int) -> UserCells:
            everybody = np.concatenate([np.array(cells, np.int64), others])
            return cells_by_user(np.arange(len(everybody)), everybody, self.shape)

        if claim.neighbours == "add or remove":
            return users(0), users()
        return users(0), users(last if there is None else there)

    def __str__(self) -> str:
        return (
            f"{self.shape[0]} x {self.shape[1]}; {self.beside}, {self.opposite}, {self.elsewhere}"
        )


def likely_inputs(square: bool = False) -> list[Inputs]:
    """Return inputs by which one of the releases of this package shows much of a user.

    Parameters
    ----------
    square : bool
        Only maps with as many rows as columns.
    """
    two, four, sixteen = (1, 2), (2, 2), (4, 4)
    found = [Inputs(two, beside, opposite) for beside, opposite in TWO_CELLS]
    found += [Inputs(four, *others) for others in MORE_CELLS]
    found += [Inputs(sixteen, *others) for others in MORE_CELLS]
    return [each for each in found if not square or each.shape[0] == each.shape[1]]
