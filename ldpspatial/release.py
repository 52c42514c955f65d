"""Release: what turns users' positions into a map under a stated privacy claim.

Comparison knows releases and nothing else, whatever the trust model: a mechanism that is written
once as a release appears in every table and figure.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, inf
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from client_sdk.validate import is_number, shown
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate
from ldpspatial.users import Positions, UserCells, user_cells

Array = NDArray[np.float64]
Model = Literal["local", "distributed", "central", "none"]
Neighbours = Literal["replace", "zero", "add or remove"]
Fact = float | int | str

TAKING_PART = "who has a position in the map is public: others take no part"

NEIGHBOURS: Mapping[Neighbours, str] = {
    "replace": "one user's data replaced by any other",
    "zero": "one user's report replaced by zeros, the number of users public",
    "add or remove": "one user added or removed",
}


@dataclass(frozen=True)
class PrivacyClaim:
    """What a release promises, to whom and in comparison of which inputs.

    Two claims can be compared only when their unit and neighbouring relation are the same; see
    :meth:`under_replacement`.

    Attributes
    ----------
    model : {"local", "distributed", "central", "none"}
        Who sees data before noise: nobody; nobody unless clients and server collude beyond the
        assumptions; the server; everybody.
    epsilon : float
        Infinite where nothing is promised.
    delta : float
    unit : {"report", "trajectory", "user"}
        What of a person the claim protects as a whole.
    neighbours : {"replace", "zero", "add or remove"}
        Which two inputs are to be hard to tell apart (NEIGHBOURS spells them out).
    notion : str
        "differential privacy", or another notion, which is not comparable with it: under
        "geo-indistinguishability" the loss between two positions is epsilon times their distance.
    distance : str
        Unit of length of that distance, "cell" or "metre"; empty under differential privacy.
    conditions : tuple of str
        What the claim rests on, in words.
    """

    model: Model
    epsilon: float
    delta: float = 0.0
    unit: Literal["report", "trajectory", "user"] = "user"
    neighbours: Neighbours = "replace"
    notion: str = "differential privacy"
    distance: str = ""
    conditions: tuple[str, ...] = ()

    def under_replacement(self) -> "PrivacyClaim":
        """Return what the claim implies when one user's data are replaced by any other.

        Replacing is removing and adding: by group privacy (Dwork and Roth 2014, section 2.3) twice
        epsilon, and delta (1 + e^epsilon) times. A claim that is under replacement stays.

        Examples
        --------
        >>> PrivacyClaim("central", 1.0, neighbours="add or remove").under_replacement().epsilon
        2.0
        """
        if self.neighbours == "replace":
            return self
        delta = self.delta * (1 + exp(self.epsilon)) if self.delta else 0.0
        return replace(self, epsilon=2 * self.epsilon, delta=delta, neighbours="replace")

    def __str__(self) -> str:
        if self.model == "none":
            return "no privacy"
        loss = f"epsilon {self.epsilon:.6g}" + (f", delta {self.delta:.2g}" if self.delta else "")
        loss += f" per {self.distance}" if self.distance else ""
        return f"{self.model} {self.notion}, {loss}, per {self.unit}, {NEIGHBOURS[self.neighbours]}"


@dataclass(frozen=True)
class Released:
    """What one run of a release gave.

    Attributes
    ----------
    density : (rows, columns) array
        Non-negative, sums to 1; row 0 is the south, column 0 the west.
    claim : PrivacyClaim
        Of this very run: what was spent, never more than what was asked for.
    facts : mapping of str to number or text
        What else is worth a column: vector length, rounds, radius. Facts may depend on the data
        and are for evaluation; the claim covers the density alone unless it says otherwise.
    estimate : Estimate or None
        How the density was found, where EM found it.
    """

    density: Array
    claim: PrivacyClaim
    facts: Mapping[str, Fact] = field(default_factory=dict)
    estimate: Estimate | None = field(default=None, repr=False)


class Release(ABC):
    """A mechanism with its estimator; subclasses are frozen dataclasses of their parameters.

    Attributes
    ----------
    name : str
        Name in the registry, in tables and on the command line.
    model : {"local", "distributed", "central", "none"}
    """

    name: ClassVar[str]
    model: ClassVar[Model]

    @abstractmethod
    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return what a run at this epsilon promises."""

    @abstractmethod
    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run on users whose cells are known.

        All randomness comes from ``rng``: this is simulation. What runs on devices and servers
        draws from the operating system.
        """

    def run(
        self, points: Positions, grid: Grid, epsilon: float, rng: np.random.Generator
    ) -> Released:
        """Run on users' positions.

        Parameters
        ----------
        points : (n, 2) array, pair (user ids, (n, 2) array), or Points
            As in :func:`ldpspatial.users.user_cells`.
        grid : client_sdk.Grid
        epsilon : float > 0
        rng : numpy.random.Generator

        Raises
        ------
        InputError
            A bad argument, or positions that are all outside the grid.
        """
        check_epsilon(epsilon)
        check_generator(rng)
        return self.release(user_cells(points, grid), epsilon, rng)


def check_epsilon(epsilon: object) -> None:
    """Refuse an epsilon that is no positive finite number."""
    try:
        good = is_number(epsilon) and 0 < float(epsilon) < inf  # type: ignore[arg-type]
    except (ValueError, OverflowError):  # a number, but no float is near it
        good = False
    if not good:
        raise InputError(f"epsilon must be a positive finite number, got {shown(epsilon)}")


def check_generator(rng: object) -> None:
    """Refuse what is no numpy Generator: randomness is an argument without a default."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy Generator, got {type(rng).__name__}")
