"""An attack on a release by its maps alone: whether they tell neighbouring inputs apart too well.

Whoever sees the map must not be able to tell whose positions went into it, beyond the claim. So the
release is run many times on two inputs that its claim calls neighbours, each map is made one
number, and :func:`~ldpspatial.privacy.distinguish.lower_bound_epsilon` says how far apart the two
laws of that number provably are. More than was claimed is a violation, whatever the release does
inside. Less proves nothing: another attack may see more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.release import Release, run_release
from ldpspatial.validate import (
    callback,
    check_epsilon,
    check_generator,
    instance,
    whole_number,
)

MOST_RUNS = 10_000_000
MOST_SIDE = 1024


@dataclass(frozen=True)
class Attack:
    """What the attack saw.

    Attributes
    ----------
    claim : PrivacyClaim
        What was attacked: the release's claim, for inputs that differ as ``neighbours`` says.
    allowed : float
        Largest loss that the claim allows between the two inputs. Infinite where nothing is
        promised.
    seen : float
        The loss is at least this, except with probability 1e-6.
    runs : int
        On each of the two inputs.
    """

    claim: PrivacyClaim
    allowed: float
    seen: float
    runs: int

    @property
    def passed(self) -> bool:
        """Whether nothing was seen that the claim rules out."""
        return self.seen <= self.allowed


def attack(
    release: Release,
    epsilon: float,
    cells: int,
    runs: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> Attack:
    """Attack a release at one epsilon.

    One user moves from the south-west corner of the map to the opposite one, or to the next cell
    where the loss grows with distance; or, where the claim is about adding or removing a user, is
    there in the first input only. The number is the mass of the one cell less that of the other.

    Parameters
    ----------
    release : Release
    epsilon : float > 0
    cells : int in [2, 1024]
        Along a side; the fewer, the more a single user weighs.
    runs : int in [4, 10,000,000]
        On each input. n runs can show a loss of about ln(n / 60).
    rng : numpy.random.Generator
    progress : callable (runs done, runs in all), optional

    Raises
    ------
    InputError
        An argument breaks a rule of this function or of the release.

    Examples
    --------
    >>> from ldpspatial import releases
    >>> found = attack(releases()["k-rr"], 1.0, 2, 2000, np.random.default_rng(1))
    >>> found.passed, 0.4 < found.seen <= found.allowed
    (True, True)
    """
    instance("release", release, Release)  # type: ignore[type-abstract]
    check_epsilon(epsilon)
    side = whole_number("cells", cells, 2, MOST_SIDE)
    number = whole_number("runs", runs, 4, MOST_RUNS)
    check_generator(rng)
    callback("progress", progress)
    claim = instance(f"claim of release {release.name}", release.claim(epsilon), PrivacyClaim)
    # No position stands for a report of zeros, and a replacement is two such changes.
    if claim.neighbours == "zero":
        claim = claim.under_replacement()
    by_distance = bool(claim.distance)
    here = 0
    # The next cell is at distance 1, where a loss per unit of distance is epsilon itself.
    there = 1 if by_distance else side**2 - 1
    inputs = _neighbours(claim, here, there, side)

    seen = []
    for k, users in enumerate(inputs):
        numbers = np.empty(number)
        for run in range(number):
            density = run_release(release, users, epsilon, rng).density.ravel()
            numbers[run] = density[here] - density[there]
            if progress is not None:
                progress(k * number + run + 1, 2 * number)
        seen.append(numbers)
    allowed = inf if claim.model == "none" else claim.epsilon
    loss = lower_bound_epsilon(seen[0], seen[1], delta=claim.delta)
    return Attack(claim, allowed, loss, number)


def _neighbours(
    claim: PrivacyClaim, here: int, there: int, side: int
) -> tuple[UserCells, UserCells]:
    """Return two inputs that differ in the data of one user, as the claim says."""

    def users(*cells: int) -> UserCells:
        return cells_by_user(np.arange(len(cells)), np.array(cells), (side, side))

    if claim.neighbours == "add or remove":
        return users(there, here), users(there)
    return users(here), users(there)
