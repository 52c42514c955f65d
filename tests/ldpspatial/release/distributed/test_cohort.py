"""Rounds: who is summed, what is withheld, and that both engines have the law of the claim."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats

from ldpspatial.errors import InputError
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.distributed.noise.polya import sum_of_shares
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support.naive_polya import p_value

Ints = NDArray[np.int64]
FALSE_ALARM = 1e-6
SILENT = 700.0  # an epsilon so large that noise is 0 but with probability below 1e-300


def nothing(clients: int, length: int) -> sparse.csr_array:
    return sparse.csr_array((clients, length), dtype=np.int64)


def ones(clients: int, length: int) -> sparse.csr_array:
    return sparse.csr_array(np.ones((clients, length), dtype=np.int64))


# Shards and thresholds


@settings(max_examples=100)
@given(st.integers(1, 300), st.integers(1, 400))
def test_shards_are_few_and_equal(shard_size: int, clients: int) -> None:
    sizes = Cohort(shard_size=shard_size).shards(clients)
    assert sum(sizes) == clients
    assert len(sizes) == -(-clients // shard_size)
    assert max(sizes) <= shard_size
    assert max(sizes) - min(sizes) <= 1


@settings(max_examples=100)
@given(st.integers(0, 99), st.integers(0, 99), st.integers(1, 3_000))
def test_thresholds_are_exact_shares(percent: int, bad: int, clients: int) -> None:
    bad = min(bad, 99 - percent)
    cohort = Cohort(tolerated=percent / 100, colluding=bad / 100)
    most_failures, most_bad = percent * clients // 100, bad * clients // 100
    assert cohort.threshold(clients) == clients - most_failures
    assert cohort.honest(clients) == clients - most_failures - most_bad
    assert cohort.honest(clients) >= 1


def test_everybody_is_in_one_shard_and_fails_at_the_rate_stated() -> None:
    cohort = Cohort(shard_size=1_000, drop_out=0.1)
    shards = cohort.deal(9_500, np.random.default_rng(1))
    members = np.concatenate([shard.members for shard in shards])
    assert np.array_equal(np.sort(members), np.arange(9_500))
    assert not np.array_equal(members, np.sort(members))
    failed = sum(int((~shard.survives).sum()) for shard in shards)
    low, high = stats.binom.interval(1 - FALSE_ALARM, 9_500, 0.1)
    assert low <= failed <= high
    # Other shards, and other failures, in the next round.
    again = cohort.deal(9_500, np.random.default_rng(2))
    assert not np.array_equal(shards[0].members, again[0].members)


# Sums


@pytest.mark.parametrize("drop_out", [0.0, 0.3])
def test_without_noise_the_sum_is_that_of_the_survivors(drop_out: float) -> None:
    cohort = Cohort(shard_size=7, drop_out=drop_out, tolerated=0.9)
    values = np.random.default_rng(3).integers(0, 5, (40, 6))
    rows, sensitivity = sparse.csr_array(values), int(values.sum(axis=1).max())
    total = cohort.sum(rows, SILENT * sensitivity, sensitivity, np.random.default_rng(4))
    shards = cohort.deal(40, np.random.default_rng(4))
    alive = np.concatenate([shard.members[shard.survives] for shard in shards])
    assert np.array_equal(total.counts, values[alive].sum(axis=0))
    assert (total.shards, total.revealed, total.clients) == (6, 6, 40)
    assert total.survivors == len(alive)
    assert (total.survivors == 40) == (drop_out == 0)
    assert total.deviation < 1e-100


def test_a_shard_with_too_few_survivors_is_withheld() -> None:
    cohort = Cohort(shard_size=5, drop_out=0.2, tolerated=0.2)
    rng = np.random.default_rng(5)
    for _ in range(20):
        total = cohort.sum(ones(50, 1), SILENT, 1, rng)
        assert total.counts.tolist() == [total.survivors]
        assert 4 * total.revealed <= total.survivors <= 5 * total.revealed
    gone = Cohort(shard_size=5, drop_out=0.999).sum(ones(50, 3), 1.0, 3, rng)
    assert (gone.revealed, gone.survivors, gone.deviation) == (0, 0, 0.0)
    assert gone.counts.tolist() == [0, 0, 0]


def test_wrapped_totals_are_decoded_shard_by_shard() -> None:
    # 12 a shard in 4 bits is -4; both shards in one sum would be 24, which is -8.
    assert Cohort(shard_size=12, bits=4).sum(
        ones(24, 2), SILENT * 2, 2, np.random.default_rng(6)
    ).counts.tolist() == [-8, -8]
    assert Cohort(shard_size=12, bits=5).sum(
        ones(24, 2), SILENT * 2, 2, np.random.default_rng(6)
    ).counts.tolist() == [24, 24]
    noisy = Cohort(shard_size=12, bits=4).sum(nothing(24, 2_000), 0.1, 1, np.random.default_rng(6))
    assert noisy.counts.min() == -16
    assert noisy.counts.max() == 14


# Noise


def test_clients_that_fail_take_their_noise_with_them() -> None:
    cohort = Cohort(shard_size=10, drop_out=0.2, tolerated=0.5)
    total = cohort.sum(nothing(30, 40_000), 0.5, 1, np.random.default_rng(10))
    assert total.revealed == 3
    assert total.survivors < 30
    assert p_value(total.counts, Fraction(total.survivors, 5), Fraction(1, 2)) > FALSE_ALARM
    assert p_value(total.counts, Fraction(30, 5), Fraction(1, 2)) < FALSE_ALARM


@pytest.mark.parametrize(
    ("cohort", "clients"),
    [
        (Cohort(shard_size=9), 20),
        (Cohort(shard_size=9, drop_out=0.3, tolerated=0.3), 20),
        (Cohort(shard_size=1, drop_out=0.5), 3),
        (Cohort(shard_size=9, drop_out=0.1, tolerated=0.4, colluding=0.2), 20),
    ],
)
def test_deviation_is_the_mean_over_survivors(cohort: Cohort, clients: int) -> None:
    wanted = 0.0
    stays = 1 - cohort.drop_out
    for size in cohort.shards(clients):
        for here in range(cohort.threshold(size), size + 1):
            wanted += stats.binom.pmf(here, size, stays) * here / cohort.honest(size)
    found = cohort.deviation(2.0, 3, clients)
    assert found == pytest.approx(noise_deviation(2.0, 3) * sqrt(wanted), rel=1e-12)


def test_a_neighbour_is_hidden_and_half_the_noise_would_be_caught() -> None:
    # One client reports 3 in an element, or nothing; shares are made for 8 and all 10 survive.
    cohort = Cohort(shard_size=10, tolerated=0.2)
    found = []
    for epsilon in (1.0, 2.0):
        rng = np.random.default_rng(11)
        here, gone = (cohort.sum(nothing(10, 100_000), epsilon, 3, rng).counts for _ in range(2))
        found.append(lower_bound_epsilon(here + 3, gone, 1 - FALSE_ALARM))
    assert 0.7 < found[0] <= 1
    assert 1.4 < found[1] <= 2


def test_fewer_than_the_shares_are_made_for_would_be_caught() -> None:
    # What the threshold prevents: 5 of 10 shares lose 1.68 at epsilon 1.
    rng = np.random.default_rng(12)
    here, gone = (sum_of_shares(5, 10, 1.0, 100_000, rng) for _ in range(2))
    assert lower_bound_epsilon(here + 1, gone, 1 - FALSE_ALARM) > 1
    here, gone = (sum_of_shares(11, 10, 1.0, 100_000, rng) for _ in range(2))
    assert 0.8 < lower_bound_epsilon(here + 1, gone, 1 - FALSE_ALARM) <= 1


# Claims and arguments


def test_the_claim_says_what_it_rests_on() -> None:
    claim = Cohort(tolerated=0.1, colluding=0.05).claim(1.5, clients=25_000)
    assert (claim.model, claim.epsilon, claim.delta) == ("distributed", 1.5, 0.0)
    assert (claim.unit, claim.neighbours) == ("user", "zero")
    assert claim.conditions == (
        "a shard's sum is withheld if more than 10 % of its clients fail",
        "at most 5 % of a shard's clients omit or reveal their noise",
        "the server sees nothing but sums of shards: computational, as secure aggregation is",
        "the number of clients is public, and who fails, which does not depend on the data",
        "3 disjoint shards of at most 8334 clients",
    )
    assert claim.under_replacement().epsilon == 3.0
    assert len(Cohort().claim(1.0).conditions) == 4


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"drop_out": 1.0}, r"drop_out must be a number in \[0, 1\), got 1.0"),
        ({"tolerated": 0.5, "colluding": 0.5}, "tolerated \\+ colluding must be below 1"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, float], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        Cohort(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "epsilon", "sensitivity", "rule"),
    [
        (ones(3, 2), 1.0, 1, r"L1 norms of at most 1 \(not repeated here\)"),
        (-ones(3, 2), 1.0, 2, r"contributions must lie in \[0, 2\] \(not repeated here\)"),
        (5 * ones(3, 2), 1.0, 2, r"contributions must lie in \[0, 2\] \(not repeated here\)"),
        (ones(3, 2) / 2, 1.0, 2, "contributions must be whole numbers of shape"),
        (nothing(0, 2), 1.0, 2, "contributions must be whole numbers of shape"),
        (ones(3, 2), 1e-12, 2, r"epsilon / sensitivity must be at least 2\^-40"),
    ],
)
def test_bad_rounds_are_refused(
    rows: sparse.csr_array, epsilon: float, sensitivity: int, rule: str
) -> None:
    with pytest.raises(InputError, match=rule):
        Cohort().sum(rows, epsilon, sensitivity, np.random.default_rng(1))


def test_small_integer_types_do_not_run_over() -> None:
    rows = sparse.csr_array(np.full((300, 2), 100, dtype=np.uint8))
    total = Cohort().sum(rows, SILENT * 200, 200, np.random.default_rng(15))
    assert total.counts.tolist() == [30_000, 30_000]
