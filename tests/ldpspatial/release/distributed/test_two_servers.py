"""Two servers: the law of their sums, what a coalition sees, and the releases that run on them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, stats

from client_sdk.shared import Entropy
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.discrete_laplace import probability, sample
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.attack import attack
from ldpspatial.release.distributed import (
    AdaptiveHierarchical,
    Batch,
    Cohort,
    DistributedLevels,
    Flat,
    Hierarchical,
    SharedBatch,
    TwoServers,
)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Coalition(Batch):
    """What one server and the collector see: the noise of the other server is all there is.

    Attributes
    ----------
    loud : int
        A bug to be caught: the scale of that noise is so many times too small.
    """

    loud: int = 1

    def _collected(
        self, rows: sparse.csr_array, most: int, numerator: int, denominator: int, noise: Entropy
    ) -> Ints:
        counts = np.asarray(rows.sum(axis=0), dtype=np.int64)
        return counts + sample(len(counts), numerator, self.loud * denominator, noise)


def town(users: int, shape: tuple[int, int] = (16, 16), seed: int = 1) -> UserCells:
    rng = np.random.default_rng(seed)
    law = rng.gamma(0.2, 1, shape)
    cells = rng.choice(law.size, size=users, p=(law / law.sum()).ravel())
    return cells_by_user(np.arange(users), cells, shape)


def chi_square(draws: Ints, law: NDArray[np.float64]) -> float:
    """Return the p-value of whole numbers under a law over -k..k, tails joined to its ends."""
    reach = len(law) // 2
    found = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=len(law))
    wide = law.copy()
    wide[[0, -1]] += (1 - law.sum()) / 2
    return float(stats.chisquare(found, wide * len(draws)).pvalue)


def test_the_noise_of_a_sum_is_that_of_both_servers() -> None:
    """Its whole law, false alarm 1e-6; noise of one server alone is noticed."""
    rows = sparse.csr_array((1, 40_000), dtype=np.int64)
    drawn = Batch().sum(rows, 0.8, 2, np.random.default_rng(1)).counts
    single = probability(np.arange(-200, 201), 5, 2)  # scale 2 / .8
    both = np.convolve(single, single)
    assert chi_square(drawn, both[400 - 12 : 400 + 13]) > 1e-6
    assert chi_square(drawn, single[200 - 12 : 200 + 13]) < 1e-12
    told = Batch().deviation(0.8, 2, 1)
    assert drawn.std() == pytest.approx(told, rel=0.05)


@pytest.mark.parametrize("drop_out", [0.0, 0.3, 0.999])
def test_the_simulation_is_report_by_report_what_the_servers_do(drop_out: float) -> None:
    rng = np.random.default_rng(2)
    rows = sparse.csr_array(rng.multinomial(2, [0.1, 0.2, 0.3, 0.4], size=40))
    for epsilon in (0.05, 0.8, 19.9):
        fast, slow = (
            kind(drop_out=drop_out).sum(rows, epsilon, 2, np.random.default_rng(3))
            for kind in (Batch, SharedBatch)
        )
        assert fast.counts.tolist() == slow.counts.tolist()
        assert (fast.survivors, fast.deviation) == (slow.survivors, slow.deviation)


def test_the_release_is_the_same_played_report_by_report() -> None:
    users = town(60, (4, 4))
    fast, slow = (
        TwoServers(kind()).release(users, 3.0, np.random.default_rng(4))
        for kind in (Batch, SharedBatch)
    )
    assert fast.density.tolist() == slow.density.tolist()
    assert fast.facts == slow.facts
    assert fast.claim == slow.claim


def test_a_server_with_the_collector_learns_what_is_claimed_and_no_more() -> None:
    """Likelihood ratio of sums with a report and with zeros, less the coalition's own noise.

    False alarm 1e-6; noise of half the scale is seen, and who sees both noises learns less.
    """
    runs = 40_000
    epsilon = 2.0
    zeros = sparse.csr_array((1, runs), dtype=np.int64)

    def seen(batch: Batch) -> float:
        rng = np.random.default_rng(5)
        drawn = [batch.sum(zeros, epsilon, 1, rng).counts.astype(np.float64) for _ in range(2)]
        drawn[0] += 1
        ratio = [epsilon * (np.abs(y) - np.abs(y - 1)) for y in drawn]
        return lower_bound_epsilon(ratio[0], ratio[1])

    assert 1.3 < seen(Coalition()) <= epsilon
    assert seen(Coalition(loud=2)) > 2.5
    assert seen(Batch()) < seen(Coalition())


def test_maps_are_as_hard_to_tell_apart_as_claimed() -> None:
    """The whole pipeline, one user who moves, from what a coalition of server and collector has.

    Replacing costs 2 epsilon. False alarm 1e-6; noise of a fourth of the scale is caught.
    """
    rng = np.random.default_rng(6)
    found = attack(TwoServers(Coalition()), 0.7, 2, 400, rng)
    assert found.allowed == 1.4
    assert found.passed
    caught = attack(TwoServers(Coalition(loud=4)), 0.7, 2, 400, rng)
    assert not caught.passed


def test_noise_is_there_whoever_stays_away() -> None:
    users = town(4000)
    run = TwoServers(Batch(drop_out=0.5)).release(users, 4.0, np.random.default_rng(7))
    assert 1800 < int(run.facts["survivors"]) < 2200
    assert run.levels is not None
    # A batch of half of them stands for all: (1 - f) / f for each person in a node.
    assert run.levels.levels[-1].per_person == pytest.approx(1, abs=0.2)
    assert np.abs(run.density - users.density).sum() < 0.3
    nobody = TwoServers(Batch(drop_out=0.9999)).release(town(20), 4.0, np.random.default_rng(7))
    assert nobody.density == pytest.approx(np.full((16, 16), 1 / 256))
    assert nobody.facts["survivors"] == 0


def test_levels_are_those_that_the_noise_of_two_allows() -> None:
    """With twice the variance the first level is that of two shards, one of each server."""
    users = town(4000, (64, 64))
    two, shards = (
        release.release(users, 1.0, np.random.default_rng(8)).levels
        for release in (TwoServers(Batch()), DistributedLevels(Cohort(shard_size=2000)))
    )
    assert two is not None
    assert shards is not None
    assert [level.variance for level in two.levels[1:]][:4] == pytest.approx(
        [level.variance for level in shards.levels[1:]][:4]
    )


def test_the_claim_says_whom_it_is_against() -> None:
    claim = TwoServers().claim(1.5)
    assert (claim.model, claim.epsilon, claim.delta) == ("distributed", 1.5, 0.0)
    assert (claim.unit, claim.neighbours) == ("user", "zero")
    said = "; ".join(claim.conditions)
    assert "one of two aggregators follows the protocol" in said
    assert "computational" in said
    assert "shard" not in said
    assert claim == TwoServers(Batch(drop_out=0.2)).claim(1.5)


@pytest.mark.parametrize("release", [Flat(), Hierarchical(), AdaptiveHierarchical(calibration=1)])
def test_other_distributed_releases_run_on_two_servers(release: Any) -> None:
    users = town(3000, (8, 8))
    run = replace(release, cohort=Batch()).release(users, 6.0, np.random.default_rng(9))
    assert np.abs(run.density - users.density).sum() < 0.35
    assert any("two aggregators" in condition for condition in run.claim.conditions)


def test_shapes_and_epsilons_at_the_ends() -> None:
    for shape in ((1, 1), (1, 2), (5, 13)):
        for epsilon in (1e-6, 1.0, 20.0):
            run = TwoServers().release(town(50, shape), epsilon, np.random.default_rng(10))
            assert run.density.sum() == pytest.approx(1)
            assert run.claim.epsilon == epsilon
    for call in (TwoServers().claim, lambda e: TwoServers().release(town(9), e, rng())):
        for epsilon in (20.1, 1e-7, 0.0):
            with pytest.raises(InputError, match="epsilon must"):
                call(epsilon)


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def test_a_cohort_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="cohort must be a Batch, got Cohort"):
        TwoServers(Cohort())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="drop_out must"):
        Batch(drop_out=1.0)
    assert repr(Batch(drop_out=0.1)) == "Batch(drop_out=0.1)"
