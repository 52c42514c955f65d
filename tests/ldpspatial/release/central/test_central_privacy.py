"""Runs on neighbouring inputs cannot be told apart better than claimed; with less noise they can.

The added user is alone in the last cell. What a run adds noise to is recorded while it runs, so
the noise is the one that makes its map; runs on levels of a quadtree, where the map takes most of
the time, end there. The statistic sums, over what was measured, epsilon times
the noisy sum around that user, cut to [0, MASS]: its largest and smallest values are the events
that lose all of epsilon.
"""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk.entropy import Entropy
from ldpspatial.places.users import cells_by_user
from ldpspatial.privacy import discrete_laplace
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.central import (
    CentralAdaptiveGrid,
    CentralLevels,
    CentralQuadtree,
    Laplace,
    LaplaceTop,
    LeastCostPartition,
    PrivTree,
    SparseEmd,
    UniformGrid,
    Wavelets,
    central_levels,
    central_release,
)
from ldpspatial.release.central.central_release import CentralRelease, with_noise
from ldpspatial.release.central.quantise import MASS
from ldpspatial.release.central.trees import quadtree
from tests.support.central_noise import replace_noise

Ints = NDArray[np.int64]
Array = NDArray[np.float64]
Statistics = Callable[[CentralRelease, bool], Array]

FALSE_ALARM = 1e-6
EPSILON = 1.5
# Over 10 other seeds of each the bound, divided by epsilon, was 0.35 to 0.71 with the right noise
# and 1.07 to 1.48 with half of it: the tests below are seeded, pass, and fail on half the noise.
RUNS = {"central-levels": 2500, "sparse-emd": 2500}
FEW = 1500
# A shape has a 20th of epsilon here: whether shapes hide a user is decided exactly, over all trees,
# in test_rivals.py. Where levels or groups have shares, one has nearly all, as few runs have to do.
RELEASES = [
    *(CentralLevels(), SparseEmd(keep=4), Laplace(), LaplaceTop()),
    *(UniformGrid(parts=2), CentralAdaptiveGrid(alpha=0.05, parts=2), CentralQuadtree(growth=16.0)),
    *(PrivTree(alpha=0.05), LeastCostPartition(alpha=0.05), Wavelets(basis="tensor", growth=16.0)),
]
every_release = pytest.mark.parametrize("release", RELEASES, ids=lambda r: r.name)
SIDES = {"central-levels": 4, "sparse-emd": 4, "laplace": 4, "laplace-top": 4}
# In the order of the groups, for the last coefficient: people before, and what one more adds.
WAVELETS = ((2, 1), (0, -1), (2, -1), (0, 1))


class AllMeasuredError(Exception):
    """Ends a run when it has taken its last noisy sum."""


@pytest.fixture
def statistics(monkeypatch: pytest.MonkeyPatch) -> Statistics:
    """Return release, whether one user is added -> statistics of runs."""
    terms: list[float] = []
    known: tuple[tuple[int, int], ...] = ()

    def recorded(units: Ints, micro_epsilon: int, source: Entropy) -> Ints:
        noisy = with_noise(units, micro_epsilon, source)
        # The last node of a level holds the last cell, but where central-levels divides others.
        assert len(noisy) in (1, 4, 8, 12, 16)
        people, adds = known[len(terms)] if known else (2 * (len(noisy) == 1), 1)
        terms.append(micro_epsilon * min(max(adds * (int(noisy[-1]) - people * MASS), 0), MASS))
        return noisy

    def measured(*_: object) -> None:
        raise AllMeasuredError

    replace_noise(monkeypatch, recorded)
    for module in (central_levels, quadtree):
        monkeypatch.setattr(module, "combined", measured)

    def run(release: CentralRelease, one_more: bool) -> Array:
        nonlocal known
        known = WAVELETS if release.name == "wavelets" else ()
        side = SIDES.get(release.name, 2)
        cells = [0, 1, side * side - 1][: 2 + one_more]
        users = cells_by_user(range(len(cells)), cells, (side, side))
        rng = np.random.default_rng(len(users))
        found = []
        for _ in range(RUNS.get(release.name, FEW)):
            terms.clear()
            with suppress(AllMeasuredError):
                release.release(users, EPSILON, rng)
            found.append(sum(terms))
        return np.array(found)

    return run


@every_release
def test_one_user_is_hidden_as_claimed(release: CentralRelease, statistics: Statistics) -> None:
    claimed = release.claim(EPSILON).epsilon
    samples = statistics(release, False), statistics(release, True)
    assert 0.3 * claimed < lower_bound_epsilon(*samples, 1 - FALSE_ALARM) <= claimed


@every_release
def test_half_the_noise_would_be_noticed(
    release: CentralRelease,
    statistics: Statistics,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def half(size: int, numerator: int, denominator: int, source: Entropy) -> Ints:
        return discrete_laplace.sample(size, numerator, 2 * denominator, source)

    monkeypatch.setattr(central_release, "sample", half)
    claimed = release.claim(EPSILON).epsilon
    samples = statistics(release, False), statistics(release, True)
    assert lower_bound_epsilon(*samples, 1 - FALSE_ALARM) > claimed
