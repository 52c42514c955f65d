"""What all local releases share."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from ldpspatial.channels.protocol import MATRIX_LIMIT
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate
from ldpspatial.estimation.estimate import find_estimator
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import ONE_MECHANISM, TAKING_PART, Model, PrivacyClaim
from ldpspatial.release.release import Release, Released, check_run
from ldpspatial.validate import MAX_CELLS, check_epsilon, input_errors, whole_number

ONE_REPORT = "one report a user, of one of the user's positions drawn uniformly"
PUBLIC_MAP = "the square and its cells are public"


class LocalRelease(Release):
    """A release whose users randomise before anything leaves the device."""

    model: ClassVar[Model] = "local"

    one_mechanism: ClassVar[bool] = True
    """Whether one mechanism, fixed beforehand, draws the one report of each user by itself.

    False for rounds that look at earlier reports and for groups of fixed sizes. Only where it is
    True do bounds on shuffled reports hold (:mod:`ldpspatial.privacy.shuffling`).
    """

    @input_errors()
    def local_privacy(self, cells: int, epsilon: float) -> float:
        """Return how far off an observer's guess of one person is, from what one user sends.

        From all of it where :attr:`privacy_of_all_reports` is True. Otherwise from one report
        alone, at its share of epsilon: all that the user sends tells more.

        Parameters
        ----------
        cells : int in [1, 4096]
            Side of the map in cells; some releases take short sides only.
        epsilon : float > 0
            One that the release has a claim for.

        Returns
        -------
        float
            Mean distance in cells between the cell that was reported on and a guess from the
            posterior, uniform prior (:mod:`ldpspatial.privacy.local_privacy`). It is not a promise:
            the claim is.

        Raises
        ------
        InputError
            ``cells`` is no whole number or too large, or the release has no claim for ``epsilon``.
        """
        side = whole_number("cells", cells, 1, MAX_CELLS)
        self.claim(epsilon)
        return self._local_privacy(side, float(epsilon))

    @abstractmethod
    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the local privacy at arguments that have been checked."""

    @property
    def privacy_of_all_reports(self) -> bool:
        """Whether the local privacy is of all that one user sends, and not of one report of it."""
        return True

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP of one report a user; releases that promise something else override it."""
        check_epsilon(epsilon)
        alike = (ONE_MECHANISM,) if self.one_mechanism else ()
        conditions = (ONE_REPORT, PUBLIC_MAP, TAKING_PART, *alike)
        return PrivacyClaim("local", float(epsilon), conditions=conditions)

    @input_errors()
    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run on users whose cells are known, as :meth:`Release.release`.

        Epsilon counts as the nearest float, and so does the claim, whatever kind of number it is.

        Raises
        ------
        InputError
            The release has no claim for ``epsilon``, or does not take such a map or such users;
            there is no user, whose number is public here.
        """
        check_run(users, epsilon, rng)
        if len(users) == 0:
            raise InputError("users must hold at least one user, got none")
        return self._release(users, float(epsilon), rng)

    @abstractmethod
    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run with arguments that have been checked, epsilon as a float."""

    def _keep_whole(self, field: str, low: int, high: int | None = None) -> None:
        """Check a field and keep it as an int, which numpy's integers are not."""
        object.__setattr__(self, field, whole_number(field, getattr(self, field), low, high))


def square_side(name: str, users: UserCells) -> int:
    """Return the side of a map, which must be square."""
    rows, columns = users.shape
    if rows != columns:
        raise InputError(f"{name} needs a square map, got {rows} x {columns} cells")
    return rows


def side_within(name: str, cells: object, most: int) -> int:
    """Return the side of a map, which must be at most what a release takes."""
    side = whole_number("cells", cells, 1, MAX_CELLS)
    if side > most:
        raise InputError(f"cells must lie in [1, {most}] for {name}, got {side}")
    return side


def check_side(side: object) -> None:
    """Check that a side is a number of cells, few enough for a matrix of all pairs of them."""
    if whole_number("cells", side, 1, MAX_CELLS) ** 4 > MATRIX_LIMIT:
        raise InputError(f"cells must be smaller for a matrix of all pairs of cells, got {side}")


def check_rule(rule: object) -> None:
    """Check that a rule names an estimator, even where a projection would not need one."""
    find_estimator(rule)


def estimator_name(found: Estimate) -> str:
    """Return how a density was found, as a fact: "em", "ems", "field" or another's."""
    return found.estimator.kind
