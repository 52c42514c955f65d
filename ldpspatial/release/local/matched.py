"""A local release run at the epsilon that leaves an observer as much in doubt as another one.

How the DAM paper compares DAM with SEM-Geo-I (Du et al. 2024, section VII-B): their epsilons are of
two notions and cannot be compared, so both run at the same local privacy. Local privacy is no
promise, and what is promised stays what it was: a matched release claims what the release inside
claims at its own epsilon.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import ClassVar

import numpy as np

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.places.users import Positions, UserCells
from ldpspatial.privacy.claims import SAME_LOCAL_PRIVACY, PrivacyClaim
from ldpspatial.privacy.local_privacy import calibrate
from ldpspatial.release.local.coordinates.square_wave import SquareWave
from ldpspatial.release.local.geo.planar_laplace import RATES, PlanarLaplace
from ldpspatial.release.local.geo.sem_geo_i import SemGeoI, least_epsilon
from ldpspatial.release.local.local_release import LocalRelease, square_side
from ldpspatial.release.local.recommended import Recommended
from ldpspatial.release.parameters import label_of
from ldpspatial.release.release import Fact, Released
from ldpspatial.validate import (
    MAX_EPSILON,
    MICRO,
    check_epsilon,
    check_generator,
    input_errors,
    instance,
    whole_number,
)

LEAST = 1 / MICRO  # epsilons that are searched
MOST = float(MAX_EPSILON)


@dataclass(frozen=True)
class Match:
    """The release inside as it runs, and at which epsilon.

    Attributes
    ----------
    inner : LocalRelease
        With its number of cells k fixed where it is SEM-Geo-I.
    epsilon : float
        In the unit of that release.
    local_privacy : float
        Cells; that of the release to match.
    jumped : bool
        Whether no k of the formula has this local privacy: k then is fixed at its value after the
        jump.
    standard_error : float
        Of the local privacy of ``inner``, cells; 0 where it is exact.
    """

    inner: LocalRelease
    epsilon: float
    local_privacy: float
    jumped: bool = False
    standard_error: float = 0.0


@dataclass(frozen=True)
class Matched(LocalRelease):
    """A local release at the local privacy of another one, whose epsilon is asked for.

    Attributes
    ----------
    inner : LocalRelease
        What runs, say ``SemGeoI()`` or ``PlanarLaplace()``.
    to : LocalRelease
        Whose local privacy is to be matched, say ``Dam()``. Neither may be a release whose local
        privacy is that of one report of several: equality of those would say nothing of users. A
        recommended release must have been told how many users to expect.
    cells : int
        Side of the maps on which they are matched, and the only ones that it runs on.

    Examples
    --------
    >>> from ldpspatial.release.local.disks.dam import Dam
    >>> matched = Matched(SemGeoI(), Dam(), cells=15)
    >>> matched.label, round(matched.match(5.0).epsilon, 4)
    ('sem-geo-i matched to dam', 0.8416)
    """

    inner: LocalRelease
    to: LocalRelease
    cells: int

    name: ClassVar[str] = "matched"

    def __post_init__(self) -> None:
        for field in ("inner", "to"):
            given = instance(field, getattr(self, field), LocalRelease)  # type: ignore[type-abstract]
            if isinstance(given, SquareWave):
                raise InputError(f"{field} must be a release of square maps, got {given.name}")
            if not given.privacy_of_all_reports:
                raise InputError(
                    f"{field} must be a release whose local privacy is of all that one user sends, "
                    f"got {given.name}, whose is of one report"
                )
            if isinstance(given, Recommended) and given.n_users is None:
                raise InputError(
                    f"{field} must be a release whose local privacy does not depend on who comes, "
                    f"got {given.name} without n_users: say how many are expected, as in "
                    f"{given.name}:n_users=10000"
                )
        object.__setattr__(self, "cells", whole_number("cells", self.cells, 1))

    @property
    def label(self) -> str:
        """What tables call it: which release, matched to which."""
        return f"{label_of(self.inner)} matched to {label_of(self.to)}"

    @input_errors()
    def match(self, epsilon: float) -> Match:
        """Return what runs, and at which epsilon, when ``to`` runs at this one.

        Raises
        ------
        InputError
            No epsilon from 0.000001 to 20 (1000 for planar Laplace) gives the release inside
            this local privacy.
        """
        check_epsilon(epsilon)
        return _match(self, float(epsilon))

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return what the release inside claims at its own epsilon: notion, unit and number."""
        match = self.match(epsilon)
        claim = match.inner.claim(match.epsilon)
        equal = (
            f"{SAME_LOCAL_PRIVACY} {self.to.name} at epsilon {float(epsilon):g} on "
            f"{self.cells} x {self.cells} cells, uniform prior"
        )
        return replace(claim, conditions=(*claim.conditions, equal))

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the local privacy of the release inside at its own epsilon, in cells."""
        if cells != self.cells:
            raise InputError(
                f"{self.label} is matched on {self.cells} x {self.cells} cells, got {cells}"
            )
        match = self.match(epsilon)
        return match.inner.local_privacy(cells, match.epsilon)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run the release inside on users whose cells are known."""
        match = self.match(epsilon)
        self.check_side(square_side(self.name, users))
        return self._of(match.inner.release(users, match.epsilon, rng), epsilon)

    def run(
        self, points: Positions, grid: Grid, epsilon: float, rng: np.random.Generator
    ) -> Released:
        """Run the release inside on positions, as :meth:`Release.run`."""
        check_generator(rng)
        instance("grid", grid, Grid)
        match = self.match(epsilon)
        self.check_side(grid.cells)
        return self._of(match.inner.run(points, grid, match.epsilon, rng), epsilon)

    def check_side(self, side: int) -> None:
        """Refuse a map of another side than that on which it is matched."""
        if side != self.cells:
            raise InputError(
                f"the map must have {self.cells} x {self.cells} cells, on which {self.label} is "
                f"matched, got {side} x {side}: compare it on one grid at a time"
            )

    def _of(self, found: Released, epsilon: float) -> Released:
        match = self.match(epsilon)
        facts: dict[str, Fact] = {
            "matched_epsilon": match.epsilon,
            "local_privacy": match.local_privacy,
            "local_privacy_error": match.standard_error,
            "jumped": int(match.jumped),
        }
        return replace(found, claim=self.claim(epsilon), facts={**found.facts, **facts})


@lru_cache(maxsize=256)
def _match(matched: Matched, epsilon: float) -> Match:
    inner = matched.inner
    cells = matched.cells
    target = matched.to.local_privacy(cells, epsilon)
    if isinstance(inner, SemGeoI):
        return _match_sets(inner, cells, target)
    most = RATES[1] if isinstance(inner, PlanarLaplace) else MOST
    found = calibrate(lambda e: inner._local_privacy(cells, e), target, LEAST, most)
    return Match(inner, found, target)


def _match_sets(inner: SemGeoI, cells: int, target: float) -> Match:
    """Find k, then epsilon at this k: the paper's k falls with epsilon, in steps.

    Local privacy falls along the range of epsilons of each k, and jumps down where the next smaller
    k begins. Wanted is the largest k whose local privacy at the end of its range is at most the
    target. The target lies in the range of this k, or else in the jump to it; then k is kept for
    epsilons below its range, where it reaches the target, and the match is marked as jumped.
    """
    held, last = inner, MOST
    if inner.size is None:
        most = inner.subset_size(cells, LEAST)
        ends = [inf, MOST, *(least_epsilon(cells, k - 1) for k in range(2, most + 1))]
        low, high = 1, 2  # doubled first: small sets are the usual answer, and the quick one
        while high <= most and replace(inner, size=high).local_privacy(cells, ends[high]) <= target:
            low = high
            high = 2 * high
        high = min(high, most + 1)
        # Local privacy at the end of a k's range: no more than the target at low, unless low is 1;
        # more at high, unless there is no such k.
        while high - low > 1:
            k = (low + high) // 2
            if replace(inner, size=k).local_privacy(cells, ends[k]) <= target:
                low = k
            else:
                high = k
        held = replace(inner, size=low)
        last = ends[low]
    found = calibrate(lambda e: held.local_privacy(cells, e), target, LEAST, last)
    privacy = held.sampled_local_privacy(cells, found)
    jumped = inner.subset_size(cells, found) != held.size
    return Match(held, found, target, jumped, privacy.standard_error)
