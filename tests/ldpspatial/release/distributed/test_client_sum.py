"""A round client by client: the law of the simulation, and a secure sum of one's own."""

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from client_sdk import entropy
from ldpspatial.errors import InputError
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.distributed.noise.polya import sum_of_shares
from ldpspatial.release.distributed.sums.client_sum import sum_clients
from ldpspatial.release.distributed.sums.cohort import Cohort
from ldpspatial.release.distributed.sums.secure_aggregation import SecureAggregation
from ldpspatial.release.distributed.sums.secure_sum import ModularSum, decode
from tests.support.naive_polya import p_value, same_law_p_value

Ints = NDArray[np.int64]
FALSE_ALARM = 1e-6
SILENT = 700.0  # an epsilon so large that noise is 0 but with probability below 1e-300


def nothing(clients: int, length: int) -> sparse.csr_array:
    return sparse.csr_array((clients, length), dtype=np.int64)


def ones(clients: int, length: int) -> sparse.csr_array:
    return sparse.csr_array(np.ones((clients, length), dtype=np.int64))


LENGTH = 5_000
COHORTS = {
    "all survive": (Cohort(shard_size=6), 6, Fraction(1)),
    "more than needed": (Cohort(shard_size=6, tolerated=0.34), 6, Fraction(6, 4)),
    "two shards of different size": (Cohort(shard_size=4, tolerated=0.25), 7, Fraction(4, 3) + 1),
    "colluders": (Cohort(shard_size=6, tolerated=0.17, colluding=0.34), 6, Fraction(6, 3)),
}


@pytest.mark.parametrize("name", COHORTS)
def test_both_engines_have_the_exact_law(name: str) -> None:
    cohort, clients, share = COHORTS[name]
    rng = np.random.default_rng(8)
    fast = cohort.sum(nothing(clients, LENGTH), 0.5, 1, rng)
    slow = sum_clients(cohort, nothing(clients, LENGTH), 0.5, 1, rng)
    for total in (fast, slow):
        assert p_value(total.counts, share, Fraction(1, 2)) > FALSE_ALARM
        assert total.deviation == pytest.approx(noise_deviation(0.5, 1) * sqrt(share))
    assert same_law_p_value(fast.counts, slow.counts) > FALSE_ALARM


@pytest.mark.parametrize("share", [Fraction(7, 6), Fraction(5, 6), Fraction(2)])
def test_the_same_test_would_tell_a_wrong_share(share: Fraction) -> None:
    total = Cohort(shard_size=6).sum(nothing(6, LENGTH), 0.5, 1, np.random.default_rng(8))
    assert p_value(total.counts, share, Fraction(1, 2)) < FALSE_ALARM
    wrong = sum_of_shares(share.numerator, share.denominator, 0.5, LENGTH, np.random.default_rng(9))
    if share == 2:
        assert same_law_p_value(total.counts, wrong) < FALSE_ALARM


def test_both_engines_wrap_alike() -> None:
    cohort = Cohort(shard_size=3, bits=3)
    args = ones(6, 2), 19.0, 2
    # At 9.5 an element noise is not 0 once in 7,000 draws; three clients make 3, four would wrap.
    for engine in (cohort.sum, lambda *args: sum_clients(cohort, *args)):
        assert engine(*args, np.random.default_rng(7)).counts.tolist() == [6, 6]
    tight = Cohort(shard_size=3, bits=2)
    for engine in (tight.sum, lambda *args: sum_clients(tight, *args)):
        assert engine(*args, np.random.default_rng(7)).counts.tolist() == [-2, -2]


def test_each_shard_has_its_own_secure_sum_with_its_own_threshold() -> None:
    made: list[tuple[int, int]] = []

    def watched(modulus: int, threshold: int) -> ModularSum:
        made.append((modulus, threshold))
        return ModularSum(modulus, threshold)

    cohort = Cohort(shard_size=4, tolerated=0.25, bits=10)
    total = sum_clients(
        cohort,
        ones(7, 2),
        Fraction(15),
        2,
        np.random.default_rng(13),
        entropy=entropy.system,
        secure_sum=watched,
    )
    assert made == [(1024, 3), (1024, 3)]
    assert np.abs(total.counts - 7).max() <= 8  # beyond it with probability below 1e-20


def test_a_sum_opens_at_the_threshold_and_not_at_the_number_of_honest_clients() -> None:
    made: list[tuple[int, int]] = []

    def watched(modulus: int, threshold: int) -> ModularSum:
        made.append((modulus, threshold))
        return ModularSum(modulus, threshold)

    cohort = Cohort(shard_size=10, drop_out=0.35, tolerated=0.3, colluding=0.4, bits=9)
    assert (cohort.threshold(10), cohort.honest(10)) == (7, 3)
    kept = set()
    for seed in range(12):
        here = [shard.survives.sum() for shard in cohort.deal(10, np.random.default_rng(seed))]
        rng = np.random.default_rng(seed)
        total = sum_clients(cohort, ones(10, 1), 20, 1, rng, secure_sum=watched)
        assert total.revealed == (here[0] >= 7)
        kept.add(int(here[0]))
    assert {5, 6, 7} <= kept  # of which 5 and 6 are more than the honest
    assert set(made) == {(512, 7)}


def counted(drawn: list[int]) -> entropy.Entropy:
    fresh = np.random.default_rng(1).bytes

    def draw(size: int) -> bytes:
        drawn.append(size)
        return fresh(size)

    return draw


@pytest.mark.parametrize(
    ("protocol", "rule"),
    [
        (lambda m, t: ModularSum(t, m), "modulus 64 and threshold 8, got modulus 8 and threshold"),
        (lambda m, t: ModularSum(m, t - 1), "threshold 8, got modulus 64 and threshold 7"),
        (lambda m, t: ModularSum(2 * m, t), "threshold 8, got modulus 128 and threshold 8"),
        (SecureAggregation, f"threshold 8, got modulus {2**8} and threshold 64"),
    ],
)
def test_a_secure_sum_of_something_else_is_refused_before_any_noise(
    protocol: Any, rule: str
) -> None:
    drawn: list[int] = []
    cohort, rng = Cohort(shard_size=8, bits=6), np.random.default_rng(1)
    with pytest.raises(InputError, match=rule):
        sum_clients(cohort, ones(8, 2), 1.0, 2, rng, entropy=counted(drawn), secure_sum=protocol)
    assert drawn == []


@pytest.mark.parametrize(
    ("cohort", "clients", "rule"),
    [
        (Cohort(shard_size=2), 3, "a shard of 1 with modulus 4294967296 and threshold 1: thresho"),
        (Cohort(shard_size=2, tolerated=0.5), 4, "a shard of 2 with .* and threshold 1: threshold"),
    ],
)
def test_a_shard_too_small_for_the_protocol_is_refused_before_any_noise(
    cohort: Cohort, clients: int, rule: str
) -> None:
    drawn: list[int] = []
    with pytest.raises(InputError, match=rule):
        sum_clients(
            cohort,
            ones(clients, 2),
            1.0,
            2,
            np.random.default_rng(1),
            entropy=counted(drawn),
            secure_sum=SecureAggregation.of_modulus,
        )
    assert drawn == []


def test_a_withheld_shard_is_withheld_in_both_engines() -> None:
    cohort = Cohort(shard_size=3, drop_out=0.5)
    for seed in range(6):
        fast = cohort.sum(ones(12, 1), SILENT, 1, np.random.default_rng(seed))
        slow = sum_clients(cohort, ones(12, 1), 20, 1, np.random.default_rng(seed))
        assert slow.revealed == sum(
            bool(shard.survives.all()) for shard in cohort.deal(12, np.random.default_rng(seed))
        )
        assert (fast.revealed, fast.survivors) == (slow.revealed, slow.survivors)


def test_wrapping_loses_no_privacy_and_is_the_same_in_law() -> None:
    cohort = Cohort(shard_size=5, bits=3)
    rng = np.random.default_rng(14)
    fast = cohort.sum(nothing(5, LENGTH), 0.5, 1, rng).counts
    slow = sum_clients(cohort, nothing(5, LENGTH), 0.5, 1, rng).counts
    assert set(fast) == set(slow) == set(range(-4, 4))
    assert same_law_p_value(fast, slow) > FALSE_ALARM
    shifted = decode((fast + 1) & 7, 8)
    assert lower_bound_epsilon(shifted, slow, 1 - FALSE_ALARM) <= 0.5
