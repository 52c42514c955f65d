"""Releases on the real protocol: the answers are those of a trusted sum, and the claim says how."""

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from client_sdk import entropy
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.distributed import (
    AdaptiveGrid,
    AdaptiveHierarchical,
    ClientCohort,
    Cohort,
    CountMin,
    Flat,
    Hierarchical,
    ManyLocations,
    ModularSum,
    SpatialDecomposition,
    sum_clients,
)
from ldpspatial.release.distributed.sums.secure_aggregation import Neighbours, SecureAggregation

REAL = SecureAggregation.of_modulus
CLIENTS = 30
WITHIN = ClientCohort(shard_size=15, drop_out=0.15, tolerated=0.4, colluding=0.1)
BEYOND = replace(WITHIN, drop_out=0.25, tolerated=0.2)  # every second shard is withheld


def people() -> UserCells:
    """Thirty at two places of a map of 4 x 4 cells."""
    return cells_by_user(range(CLIENTS), [0] * 20 + [15] * 10, (4, 4))


def real(cohort: ClientCohort) -> ClientCohort:
    return replace(cohort, secure_sum=REAL)


@pytest.mark.parametrize("cohort", [WITHIN, BEYOND])
@pytest.mark.parametrize(
    "release", [Flat(), AdaptiveHierarchical(rounds=2, depth=2, asked="every round")]
)
def test_a_release_by_secure_aggregation_is_that_of_a_trusted_sum(
    release: Any, cohort: ClientCohort
) -> None:
    # Keys come from the operating system and leave the generator alone: the noise is the same.
    seen = set()
    for seed in (0, 4, 5):
        found, trusted = (
            replace(release, cohort=each).release(people(), 12.0, np.random.default_rng(seed))
            for each in (real(cohort), cohort)
        )
        assert found.density.tolist() == trusted.density.tolist()
        assert found.facts == trusted.facts
        assert found.claim.epsilon == trusted.claim.epsilon
        seen.add(found.facts["survivors"])
    if cohort is WITHIN:
        assert all(18 <= int(v) < 30 for v in seen)  # both shards, and somebody has failed
    else:
        assert any(12 <= int(v) <= 15 for v in seen)  # one shard is withheld


def test_the_map_is_there_in_spite_of_failures() -> None:
    adaptive = AdaptiveHierarchical(cohort=real(WITHIN), rounds=2, depth=2)
    density = adaptive.release(people(), 20.0, np.random.default_rng(3)).density
    assert int(density.argmax()) == 0
    assert density[0, 0] > 0.4
    assert density[3, 3] > 0.15


def test_nothing_is_known_of_shards_beyond_what_is_tolerated() -> None:
    strict = real(ClientCohort(shard_size=10, drop_out=0.5))
    ones = sparse.csr_array(np.ones((CLIENTS, 2), dtype=np.int64))
    total = strict.sum(ones, 20.0, 2, np.random.default_rng(1))
    assert (total.revealed, total.survivors, total.counts.tolist()) == (0, 0, [0, 0])


@pytest.mark.parametrize(
    "release",
    [
        Hierarchical(),
        SpatialDecomposition(),
        CountMin(width=4, depth=4),
        AdaptiveGrid(),
        AdaptiveHierarchical(locations=ManyLocations(), rounds=2, depth=2),
    ],
)
def test_every_release_takes_such_a_cohort(release: Any) -> None:
    small = cells_by_user(range(6), [0, 0, 0, 1, 2, 3], (2, 2))
    cohort = ClientCohort(shard_size=6, tolerated=0.2, secure_sum=REAL)
    released = replace(release, cohort=cohort).release(small, 8.0, np.random.default_rng(2))
    assert released.density.sum() == pytest.approx(1)
    assert released.claim.model == "distributed"
    assert any("Ed25519" in condition for condition in released.claim.conditions)


def test_a_round_is_that_of_sum_clients() -> None:
    drawn: list[int] = []

    def keys(size: int) -> bytes:
        drawn.append(size)
        return entropy.system(size)

    protocol = functools.partial(REAL, entropy=keys)
    cohort = ClientCohort(shard_size=4, tolerated=0.25, secure_sum=protocol)
    ones = sparse.csr_array(np.ones((9, 3), dtype=np.int64))
    found = cohort.sum(ones, 2.0, 3, np.random.default_rng(5))
    # It was the protocol that added up: names of three sessions, and of each client two
    # keys, two secrets and for each of these two coefficients.
    assert (drawn.count(16), drawn.count(32)) == (3 + 9 * 2 * 3, 9 * 2)
    plain = Cohort(shard_size=4, tolerated=0.25)
    same = sum_clients(plain, ones, 2.0, 3, np.random.default_rng(5))
    assert found.counts.tolist() == same.counts.tolist()
    assert found.deviation == same.deviation


def test_the_claim_says_what_the_sum_rests_on() -> None:
    plain, trusted, computational = Cohort(), ClientCohort(), ClientCohort(secure_sum=REAL)
    for cohort, why in ((trusted, "all trust"), (computational, "computational: sums by secure")):
        claim = cohort.claim(1.0, clients=20_000)
        before = plain.claim(1.0, clients=20_000).conditions
        (said,) = set(claim.conditions) - set(before)
        assert why in said
        assert len(claim.conditions) == len(before)
        assert (claim.epsilon, claim.delta, claim.neighbours) == (1.0, 0, "zero")
    circle = functools.partial(REAL, neighbours=Neighbours(6, 3), honest_server=True)
    assert "choose_neighbours" in ClientCohort(secure_sum=circle).assumption


@pytest.mark.parametrize(
    ("tolerated", "colluding", "is_any"), [(0.2, 0.1, True), (0.5, 0.1, False), (0.3, 0.4, False)]
)
def test_a_claim_against_any_server_is_one_that_the_protocol_can_keep(
    tolerated: float, colluding: float, is_any: bool
) -> None:
    """As secure aggregation refuses too low a threshold unless the server is trusted by name."""
    cohort = Cohort(shard_size=20, tolerated=tolerated, colluding=colluding)
    assert ("server that follows the protocol" in cohort.assumption) == (not is_any)
    least = 20 + int(20 * colluding)
    assert (2 * cohort.threshold(20) > least) == is_any


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"secure_sum": SecureAggregation}, "secure_sum must sum a shard of 10000 with modulus"),
        ({"secure_sum": lambda m, t: ModularSum(m, t + 1)}, "threshold 10000, got modulus"),
        ({"secure_sum": REAL, "shard_size": 1}, "a shard of 1 with .* threshold 1: threshold must"),
    ],
)
def test_cohorts_that_cannot_be(arguments: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        ClientCohort(**arguments)


def test_a_last_shard_of_one_is_refused_when_the_round_begins() -> None:
    cohort = ClientCohort(shard_size=2, secure_sum=REAL)
    rng = np.random.default_rng(1)
    with pytest.raises(InputError, match="a shard of 1 with"):
        cohort.sum(sparse.csr_array(np.ones((3, 2), dtype=np.int64)), 1.0, 2, rng)
