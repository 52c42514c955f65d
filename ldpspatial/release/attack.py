"""Attacks on a release: whether what leaves it tells neighbouring inputs apart too well.

Whoever sees the map must not be able to tell whose positions went into it, beyond the claim. So
the release is run many times on two inputs that its claim calls neighbours (:func:`attack`), each
run is made a number, and :func:`~ldpspatial.privacy.distinguish.lower_bound_epsilon` says how far
apart the two laws of that number provably are. That a run ends in an error, and in which, or warns,
or gives something of another form, is seen as well. More than was claimed is a violation, whatever
the release does inside. Less proves nothing: another attack may see more.

A map of many reports shows little of one user, and for trees and trajectories next to nothing.
There :func:`attack_reports` has the power: it sees all that one user sends, and judges by the ratio
of the probabilities on either input.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.distinguish import CONFIDENCE, lower_bound_epsilon, lower_bound_product
from ldpspatial.release.local.local_release import LocalRelease
from ldpspatial.release.local.worst_pairs import worst_pair
from ldpspatial.release.release import Release, run_release
from ldpspatial.validate import (
    callback,
    check_epsilon,
    check_generator,
    instance,
    whole_number,
)

Array = NDArray[np.float64]

MOST_RUNS = 10_000_000
MOST_SIDE = 1024


@dataclass(frozen=True)
class Form:
    """What came of a run beside its numbers: an error, or the parts of what was released."""

    shape: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()
    said: tuple[str, ...] = ()  # warnings
    error: str = ""


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
    largest : float
        Largest loss by the law of what was seen, where that is known (:func:`attack_reports`);
        otherwise infinite. It may be well below the claim.
    by : str
        What told the two inputs apart best: the numbers of the map, or the form of what came, with
        that of most runs on either input.
    """

    claim: PrivacyClaim
    allowed: float
    seen: float
    runs: int
    largest: float = inf
    by: str = "what was sent"

    @property
    def passed(self) -> bool:
        """Whether nothing was seen that the claim rules out, or the law of the reports."""
        return self.seen <= min(self.allowed, self.largest)

    @property
    def power(self) -> float:
        """Share of the claim that was seen: the claim times 1 / power would be refuted."""
        return self.seen / self.allowed


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
    there in the first input only, and nobody in the second. The number is the mass of the one cell
    less that of the other. Beside it stands the form of what came: an error, a warning, or the
    parts of what was released. Each of the two has half of the probability of a false alarm.

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
        An argument breaks a rule of this function.
    Exception
        What every run raised, if no run gave a map.

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

    numbers = np.full((2, number), -inf)  # where a run ended in an error
    forms = np.empty((2, number))
    known: dict[Form, int] = {}
    for k, users in enumerate(inputs):
        for run in range(number):
            form, density = _form(release, users, epsilon, rng)
            forms[k, run] = known.setdefault(form, len(known))
            if density is not None:
                numbers[k, run] = density[here] - density[there]
            if progress is not None:
                progress(k * number + run + 1, 2 * number)
    if not np.isfinite(numbers).any():
        run_release(release, inputs[0], epsilon, rng)  # which says what is wrong
    allowed = inf if claim.model == "none" else claim.epsilon
    half = (1 + CONFIDENCE) / 2
    by_number, by_form = (lower_bound_epsilon(p, q, half, claim.delta) for p, q in (numbers, forms))
    by = "the numbers of the map"
    if by_form >= by_number:  # numbers that errors left out tell as much as the errors
        usual = [list(known)[int(np.bincount(each.astype(int)).argmax())] for each in forms]
        by = f"what came: {_told(usual[0])} with the user, {_told(usual[1])} "
        by += "with nobody" if claim.neighbours == "add or remove" else "with the user elsewhere"
    return Attack(claim, allowed, max(by_number, by_form), number, by=by)


def attack_reports(
    release: LocalRelease, epsilon: float, cells: int, runs: int, rng: np.random.Generator
) -> Attack:
    """Attack all that one user of a local release sends.

    The two inputs are those of :func:`~ldpspatial.release.local.worst_pairs.worst_pair`, and the
    number is the logarithm of the ratio of the probabilities of what was sent: no other tells more.
    Where a user sends many reports, one telling sequence is looked at as well, report by report:
    their ratios multiply. Each way has half of the probability of a false alarm.

    Parameters
    ----------
    release : LocalRelease
        One of this package, or derived from one.
    epsilon : float > 0
    cells : int in [2, 1024]
        Along a side.
    runs : int in [4, 10,000,000]
        On each input.
    rng : numpy.random.Generator

    Raises
    ------
    InputError
        An argument breaks a rule of this function or of the release, or of what its users send
        nothing is known.

    Examples
    --------
    >>> from ldpspatial import releases
    >>> found = attack_reports(releases()["hdg"], 1.0, 4, 20_000, np.random.default_rng(1))
    >>> found.passed, 0.8 < found.power < 1
    (True, True)
    """
    instance("release", release, LocalRelease)  # type: ignore[type-abstract]
    check_epsilon(epsilon)
    side = whole_number("cells", cells, 2, MOST_SIDE)
    number = whole_number("runs", runs, 4, MOST_RUNS)
    check_generator(rng)
    claim = release.claim(epsilon)
    pair = worst_pair(release, side, epsilon)
    seen = [pair.log_ratios(which, number, rng) for which in (0, 1)]
    half = (1 + CONFIDENCE) / 2
    loss = lower_bound_epsilon(seen[0], seen[1], half)
    largest = float(np.abs(seen).max())
    if pair.parts:
        hits = [[part.hits(which, number, rng) for part in pair.parts] for which in (0, 1)]
        loss = max(loss, lower_bound_product(hits[0], hits[1], number, half))
        largest = max(largest, sum(part.log_ratio for part in pair.parts))
    return Attack(claim, claim.epsilon, loss, number, largest)


def _form(
    release: Release, users: UserCells, epsilon: float, rng: np.random.Generator
) -> tuple[Form, Array | None]:
    """Return everything about a run but its numbers, and its density, if it has one."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = run_release(release, users, epsilon, rng)
        except Exception as error:  # whatever it is, it is seen
            return Form(error=f"{type(error).__name__}: {error}"), None
    said = tuple(str(warning.message) for warning in warned)
    held = {"an estimate": found.estimate, "levels": found.levels}
    parts = tuple(name for name, part in held.items() if part is not None)
    return Form(found.density.shape, parts, said), found.density.ravel()


def _told(form: Form) -> str:
    if form.error:
        return f"the error {form.error!r}"
    parts = " and ".join(("a map", *form.parts))
    return parts + "".join(f", the warning {said!r}" for said in form.said)


def _neighbours(
    claim: PrivacyClaim, here: int, there: int, side: int
) -> tuple[UserCells, UserCells]:
    """Return two inputs that differ in the data of one user, as the claim says."""

    def users(*cells: int) -> UserCells:
        return cells_by_user(np.arange(len(cells)), np.array(cells), (side, side))

    if claim.neighbours == "add or remove":
        return users(here), users()
    return users(here), users(there)
