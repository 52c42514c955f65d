"""Release: what turns users' positions into a map under a stated privacy claim.

Comparison knows releases and nothing else, whatever the trust model: a mechanism that is written
once as a release appears in every table and figure.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate
from ldpspatial.estimation.levels import LevelMap
from ldpspatial.places.users import Positions, UserCells, user_cells
from ldpspatial.privacy.claims import Model, PrivacyClaim
from ldpspatial.validate import check_epsilon, check_generator, density_array, instance

Array = NDArray[np.float64]
Fact = float | int | str


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
        How the density was found, where it was found from local reports.
    levels : LevelMap or None
        The noisy sums that it was found from, where they are what intervals need
        (:func:`ldpspatial.level_intervals`). The claim covers them.

    Raises
    ------
    InputError
        What is no density, no claim, or no such facts.
    """

    density: Array
    claim: PrivacyClaim
    facts: Mapping[str, Fact] = field(default_factory=dict)
    estimate: Estimate | None = field(default=None, repr=False)
    levels: LevelMap | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        density = density_array("density", self.density, ("rows", "columns"))
        object.__setattr__(self, "density", density)
        instance("claim", self.claim, PrivacyClaim)
        facts = instance("facts", self.facts, Mapping)  # type: ignore[type-abstract]
        if not all(isinstance(name, str) for name in facts):
            raise InputError("facts must have texts for names")
        if self.estimate is not None:
            instance("estimate", self.estimate, Estimate)
        if self.levels is not None:
            instance("levels", self.levels, LevelMap)


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
            As in :func:`ldpspatial.places.users.user_cells`.
        grid : client_sdk.Grid
        epsilon : float > 0
        rng : numpy.random.Generator

        Raises
        ------
        InputError
            A bad argument. Positions that are all outside the grid, or one that is not finite or
            not on the earth, as well, but for a central release: there the number of users is no
            more public than where they are, so that nobody inside is an input like any other.
        """
        check_epsilon(epsilon)
        check_generator(rng)
        users = user_cells(points, grid, may_be_empty=self.model == "central")
        return run_release(self, users, epsilon, rng)


def run_release(
    release: Release, users: UserCells, epsilon: float, rng: np.random.Generator
) -> Released:
    """Run a release, which may be of another package, and look at what it gives.

    Raises
    ------
    InputError
        That is no Released, or a map of other cells than the users'.
    """
    found = instance(
        f"what release {release.name} returns", release.release(users, epsilon, rng), Released
    )
    if found.density.shape != users.shape:
        raise InputError(
            f"density of release {release.name} must have shape {users.shape}, "
            f"got {found.density.shape}"
        )
    return found


def check_run(users: object, epsilon: object, rng: object) -> None:
    """Check what a release is run with; the first line of every :meth:`Release.release` here."""
    instance("users", users, UserCells)
    check_epsilon(epsilon)
    check_generator(rng)
