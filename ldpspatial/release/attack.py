"""Attacks on a release: whether what leaves it tells neighbouring inputs apart too well.

Whoever sees the map must not be able to tell whose positions went into it, beyond the claim. So
the release is run many times on two inputs that its claim calls neighbours (:func:`attack`), what
comes of each run is made a number, and :mod:`ldpspatial.privacy.distinguish` says how far
apart the two laws of that number provably are. That a run ends in an error, and in which, or warns,
or gives something of another form, is seen as well, and so are the noisy sums that come with a map.
More than was claimed is a violation, whatever the release does inside. Less proves nothing: another
attack may see more.

How much is seen hangs on who else is on the map (:mod:`ldpspatial.release.attack_inputs`);
:func:`best_inputs` looks for those by which a release shows most.

Of local releases :func:`attack_reports` sees all that one user sends, and judges by the ratio of
the probabilities on either input. Their maps are made of that and tell less.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.distinguish import (
    CONFIDENCE,
    Pair,
    best_bound,
    lower_bound_epsilon,
    lower_bound_product,
)
from ldpspatial.privacy.telling import learned
from ldpspatial.release.attack_inputs import MOST_SIDE, Inputs, likely_inputs
from ldpspatial.release.local.local_release import LocalRelease
from ldpspatial.release.local.worst_pairs import worst_pair
from ldpspatial.release.release import Release, run_release
from ldpspatial.release.seen import Form, form_of, numbers_of
from ldpspatial.validate import (
    callback,
    check_epsilon,
    check_generator,
    input_errors,
    instance,
    shown,
    true_or_false,
    whole_number,
)

Array = NDArray[np.float64]

MOST_RUNS = 10_000_000
LEAST_LEARNED = 300  # runs on either input, below which nothing is learned from them
LIKELY = 0.9
NOTHING = "nothing: no difference was seen"


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
        What told the two inputs apart best: the masses of two cells, all numbers that came, or
        the form of what came, as most runs on either input had it or, where that is one, by the
        form whose number of runs differs most. "nothing" where nothing was seen.
    inputs : Inputs or None
        What the release was run on, but for the one user; None where one user's reports were drawn.
    """

    claim: PrivacyClaim
    allowed: float
    seen: float
    runs: int
    largest: float = inf
    by: str = "what was sent"
    inputs: Inputs | None = None

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
    cells: int | Inputs,
    runs: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
    facts: bool = False,
) -> Attack:
    """Attack a release at one epsilon.

    One user moves from the south-west corner of the map to the opposite one, or to the next cell
    where the loss grows with distance; or, where the claim is about adding or removing a user, is
    there in the first input only. Three numbers are looked at: the mass of the one cell less that
    of the other; the form of what came, which is an error, a warning, or the parts of what was
    released; and what tells most of all that was seen, learned by
    :func:`ldpspatial.privacy.telling.learned` from a sixth of the runs. Another third chooses among
    them, and an event of that number; the other half measures that event.

    Parameters
    ----------
    release : Release
    epsilon : float > 0
    cells : int in [2, 1024] or Inputs
        Along a side of a map on which there is nobody else; or the map, and who else is on it.
    runs : int in [4, 10,000,000]
        On each input. n runs can show a loss of about ln(n / 60). Nothing is learned from fewer
        than 600.
    rng : numpy.random.Generator
    progress : callable (runs done, runs in all), optional
    facts : bool
        The facts of a run are published as well, as far as they are numbers.

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
    number = whole_number("runs", runs, 4, MOST_RUNS)
    check_generator(rng)
    callback("progress", progress)
    true_or_false("facts", facts)
    # The same rule for both kinds: what is no Inputs must be a number of cells.
    inputs = cells if isinstance(cells, Inputs) else _alone(cells)
    return _attack(release, epsilon, inputs, number, rng, progress, facts, CONFIDENCE)


def best_inputs(
    release: Release,
    epsilon: float,
    rng: np.random.Generator,
    runs: int = 200,
    candidates: Sequence[Inputs] | None = None,
    facts: bool = False,
) -> Inputs:
    """Return the inputs by which a release shows most of one user, for an attack on fresh runs.

    By attacks on all candidates, then with four times as many runs on the best quarter of those,
    and so on until one is left. What is seen here is a choice and no finding.

    Parameters
    ----------
    release : Release
    epsilon : float > 0
    rng : numpy.random.Generator
    runs : int in [4, 10,000]
        Of the first attacks, on each input.
    candidates : sequence of Inputs, optional
        By default those of :func:`ldpspatial.release.attack_inputs.likely_inputs`; of a local
        release, which may take no other, those whose maps are square.
    facts : bool
        As in :func:`attack`.

    Raises
    ------
    InputError
        An argument breaks its rule.
    """
    instance("release", release, Release)  # type: ignore[type-abstract]
    check_epsilon(epsilon)
    check_generator(rng)
    number = whole_number("runs", runs, 4, 10_000)
    true_or_false("facts", facts)
    left = likely_inputs(square=release.model == "local") if candidates is None else candidates
    if not isinstance(left, (list, tuple)) or not left:
        raise InputError(f"candidates must be a list of Inputs, one at least, got {shown(left)}")
    for each in left:
        instance("each of candidates", each, Inputs)
    while len(left) > 1:
        # A bound that holds nine times in ten: a few hundred runs show nothing for certain.
        seen = [
            _attack(release, epsilon, each, number, rng, None, facts, LIKELY).seen for each in left
        ]
        ranks = np.argsort(-np.array(seen), kind="stable")[: max(1, len(left) // 4)]
        left = [left[rank] for rank in ranks.tolist()]
        number *= 4
    return left[0]


def _alone(cells: object) -> Inputs:
    side = whole_number("cells", cells, 2, MOST_SIDE)
    return Inputs((side, side))


def _attack(
    release: Release,
    epsilon: float,
    inputs: Inputs,
    runs: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None,
    facts: bool,
    confidence: float,
) -> Attack:
    claim = instance(f"claim of release {release.name}", release.claim(epsilon), PrivacyClaim)
    # No position stands for a report of zeros, and a replacement is two such changes.
    if claim.neighbours == "zero":
        claim = claim.under_replacement()
    # The next cell is at distance 1, where a loss per unit of distance is epsilon itself.
    there = 1 if claim.distance else inputs.shape[0] * inputs.shape[1] - 1
    pair = inputs.pair(claim, there)

    known: dict[Form, int] = {}
    forms, numbers = [], []
    for k, users in enumerate(pair):
        which = np.empty(runs)
        rows: list[list[float]] = []
        for run in range(runs):
            form, found = form_of(release, users, epsilon, rng)
            which[run] = known.setdefault(form, len(known))
            rows.append([] if found is None else numbers_of(found, there, facts))
            if progress is not None:
                progress(k * runs + run + 1, 2 * runs)
        forms.append(which)
        numbers.append(rows)
    if not any(any(rows) for rows in numbers):
        run_release(release, pair[0], epsilon, rng)  # which says what is wrong
    seen, by = _told_apart(forms, _table(numbers), confidence, claim.delta)
    return Attack(
        claim,
        inf if claim.model == "none" else claim.epsilon,
        seen,
        runs,
        by=_words(by, list(known), forms, claim) if seen else NOTHING,
        inputs=inputs,
    )


def _table(numbers: Iterable[list[list[float]]]) -> list[Array]:
    """Return all numbers of either input, one row a run, NaN for what is missing."""
    both = list(numbers)
    longest = max(len(row) for rows in both for row in rows)
    return [np.array([row + [nan] * (longest - len(row)) for row in rows]) for rows in both]


def _told_apart(
    forms: Sequence[Array], numbers: Sequence[Array], confidence: float, delta: float
) -> tuple[float, int]:
    """Return the bound, and what it is by: the form, the difference of two masses, or all."""
    half = len(forms[0]) // 2
    to_learn = half // 3 if half >= LEAST_LEARNED else 0
    # A run without numbers is unlike any other.
    difference = [np.where(np.isnan(each[:, 0]), -inf, each[:, 0]) for each in numbers]
    statistics: list[Sequence[Array]] = [forms, difference]
    if to_learn:
        everything = [_kinds(*each) for each in zip(forms, numbers, strict=True)]
        telling = learned(*(each[:to_learn] for each in everything))
        statistics.append([telling(each) for each in everything])
    choosing: list[Pair] = [(p[to_learn:half], q[to_learn:half]) for p, q in statistics]
    measuring: list[Pair] = [(p[half:], q[half:]) for p, q in statistics]
    return best_bound(choosing, measuring, confidence, delta)


def _kinds(forms: Array, numbers: Array) -> Array:
    return np.concatenate([forms[:, np.newaxis], numbers], axis=1)


def _words(by: int, known: list[Form], forms: Sequence[Array], claim: PrivacyClaim) -> str:
    if by:
        return ("the masses of two cells", "all numbers that came")[by - 1]
    shares = [np.bincount(each.astype(int), minlength=len(known)) / len(each) for each in forms]
    gone = "with nobody" if claim.neighbours == "add or remove" else "with the user elsewhere"
    usual = [int(share.argmax()) for share in shares]
    if usual[0] != usual[1]:
        return f"what came: {known[usual[0]]} with the user, {known[usual[1]]} {gone}"
    rare = int(np.abs(shares[0] - shares[1]).argmax())
    told = [f"{share[rare]:.1%}" for share in shares]
    return f"how often {known[rare]} came: {told[0]} of runs with the user, {told[1]} {gone}"


@input_errors()
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
        largest = max(largest, float(sum(part.log_ratio for part in pair.parts)))
    return Attack(claim, claim.epsilon, loss, number, largest)
