"""What all local releases share."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import ClassVar

import numpy as np

from client_sdk import ParameterError
from client_sdk.validate import MAX_CELLS, exact_epsilon, shown, whole_number
from ldpspatial.channel import MATRIX_LIMIT
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate
from ldpspatial.estimation.stopping import CROSS_VALIDATED, RULES
from ldpspatial.release import (
    TAKING_PART,
    Model,
    PrivacyClaim,
    Release,
    Released,
    check_epsilon,
)
from ldpspatial.users import UserCells

ONE_REPORT = "one report a user, of one of the user's positions drawn uniformly"
PUBLIC_MAP = "the square and its cells are public"


@contextmanager
def input_errors() -> Iterator[None]:
    """Raise as InputError what the client refuses: a release has one kind of error."""
    try:
        yield
    except ParameterError as error:
        raise InputError(str(error)) from None


class LocalRelease(Release):
    """A release whose users randomise before anything leaves the device."""

    model: ClassVar[Model] = "local"

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
            posterior, uniform prior (:mod:`ldpspatial.local_privacy`). It is no promise: the claim
            is.

        Raises
        ------
        InputError
            No number of cells, or too many; no epsilon, or one without a claim.
        """
        side = public_number("cells", cells, 1, MAX_CELLS)
        self.claim(epsilon)
        return self._local_privacy(side, float(epsilon))

    @abstractmethod
    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the local privacy at arguments that are in order."""

    @property
    def privacy_of_all_reports(self) -> bool:
        """Whether the local privacy is of all that one user sends, and not of one report of it."""
        return True

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP of one report a user; releases that promise something else override it."""
        check_epsilon(epsilon)
        conditions = ONE_REPORT, PUBLIC_MAP, TAKING_PART
        return PrivacyClaim("local", float(epsilon), conditions=conditions)

    @input_errors()
    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run on users whose cells are known, as :meth:`ldpspatial.release.Release.release`.

        Epsilon counts as the nearest float, and so does the claim, whatever kind of number it is.

        Raises
        ------
        InputError
            No epsilon, or one without a claim; a map or users that the release does not take.
        """
        check_epsilon(epsilon)
        return self._release(users, float(epsilon), rng)

    @abstractmethod
    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run on an epsilon that is a float."""

    def _keep_whole(self, field: str, low: int, high: int) -> None:
        """Check a field and keep it as an int, which numpy's integers are not."""
        object.__setattr__(self, field, public_number(field, getattr(self, field), low, high))


def square_side(name: str, users: UserCells) -> int:
    """Return the side of a square map, or refuse a map that is none."""
    rows, columns = users.shape
    if rows != columns:
        raise InputError(f"{name} needs a square map, got {rows} x {columns} cells")
    return rows


@input_errors()
def public_number(field: str, value: object, low: int, high: int) -> int:
    """Return a whole number in [low, high] as an int, or raise InputError."""
    return whole_number(field, value, low, high)


def side_within(name: str, cells: object, most: int) -> int:
    """Return the side of a map, or refuse one that is longer than a release takes."""
    side = public_number("cells", cells, 1, MAX_CELLS)
    if side > most:
        raise InputError(f"cells must lie in [1, {most}] for {name}, got {side}")
    return side


def check_side(side: object) -> None:
    """Refuse a side that is none, or too long for a matrix of all pairs of cells."""
    if public_number("cells", side, 1, MAX_CELLS) ** 4 > MATRIX_LIMIT:
        raise InputError(f"cells must be smaller for a matrix of all pairs of cells, got {side}")


def check_rule(rule: object) -> None:
    """Refuse what is no stopping rule, even where a projection would never ask it."""
    if not (rule in RULES if isinstance(rule, str) else hasattr(rule, "done")):
        known = ", ".join(RULES)
        raise InputError(f"rule must be one of {known} or a StoppingRule, got {shown(rule)}")


@input_errors()
def device_epsilon(epsilon: object) -> Fraction:
    """Return epsilon as the exact number that tables are made for, or refuse it."""
    return exact_epsilon(epsilon)


def estimator_name(found: Estimate) -> str:
    """Return how a density was found, as a fact: EM, smoothed EM or a sieve."""
    if found.rule == CROSS_VALIDATED:
        return "sieve"
    return "em" if found.smooth is None else "ems"
