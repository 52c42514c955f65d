"""Rounds: who is summed, what is withheld, and that both engines have the law of the claim."""

from fractions import Fraction
from math import log, sqrt

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
from tests.support.naive_polya import p_value, polya_pmf, same_law_p_value

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


UNEVEN = Cohort(shard_size=9, drop_out=0.2, tolerated=0.5)  # of 43 clients: 9, 9, 9, 8 and 8


def shard_by_shard(
    cohort: Cohort, rows: sparse.csr_array, decay: float, rng: np.random.Generator
) -> tuple[Ints, Fraction]:
    """The slow twin: noise for every shard by itself; and how often a shard's noise is in it."""
    total = np.zeros(rows.shape[1], dtype=np.int64)
    share = Fraction(0)
    for shard in cohort.deal(rows.shape[0], rng):
        here, size = int(shard.survives.sum()), len(shard.members)
        if here >= cohort.threshold(size):
            noise = sum_of_shares(here, cohort.honest(size), decay, rows.shape[1], rng)
            total += rows[shard.members[shard.survives]].toarray().sum(axis=0) + noise
            share += Fraction(here, cohort.honest(size))
    return total, share


@pytest.mark.parametrize("cohort", [Cohort(shard_size=9), UNEVEN])
def test_one_draw_for_all_shards_has_the_law_of_a_draw_for_each(cohort: Cohort) -> None:
    rows = nothing(43, 200_000)
    at_once = cohort.sum(rows, 0.5, 1, np.random.default_rng(20))
    one_by_one, share = shard_by_shard(cohort, rows, 0.5, np.random.default_rng(20))
    assert (at_once.shards, at_once.revealed) == (5, 5)
    assert at_once.deviation == pytest.approx(noise_deviation(0.5, 1) * sqrt(share), rel=1e-12)
    assert p_value(at_once.counts, share, Fraction(1, 2)) > FALSE_ALARM
    assert same_law_p_value(at_once.counts, one_by_one) > FALSE_ALARM
    # A share too few in one of the shards would be caught, and 1 / h of the larger in all.
    large = cohort.honest(9)
    for wrong in (share - Fraction(1, 5), Fraction(at_once.survivors, large)):
        assert p_value(at_once.counts, wrong, Fraction(1, 2)) < FALSE_ALARM


def test_one_draw_counts_the_survivors_of_the_shards_that_open() -> None:
    cohort = Cohort(shard_size=9, drop_out=0.3, tolerated=0.3)
    rows = sparse.csr_array(np.random.default_rng(21).integers(0, 3, (200, 8)))
    for seed in range(10):
        found = cohort.sum(rows, SILENT * 16, 16, np.random.default_rng(seed))
        twin, share = shard_by_shard(cohort, rows, SILENT, np.random.default_rng(seed))
        assert 0 < found.revealed < found.shards
        assert found.counts.tolist() == twin.tolist()
        assert found.deviation == pytest.approx(noise_deviation(SILENT, 1) * sqrt(share))


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(3)])
def test_a_shard_wraps_no_more_often_than_is_reckoned_with(epsilon: Fraction) -> None:
    # 2^r exp(-epsilon k / 2) bounds what is at k and beyond: the law's own tail, term by term.
    for share in (Fraction(1), Fraction(5, 2), Fraction(8)):
        law = [float(p) for p in polya_pmf(share, epsilon, 200).values()]
        tails = np.cumsum(law[::-1])[::-1]
        k = np.arange(200)
        assert (np.log(tails) <= float(share) * log(2) - float(epsilon) * k / 2 + 1e-9).all()


def test_noise_is_drawn_at_once_just_where_no_shard_can_wrap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []

    def watched(survivors: int, honest: int, *args: float, **named: float) -> Ints:
        drawn.append(survivors // honest)
        return sum_of_shares(survivors, honest, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("ldpspatial.release.distributed.sums.cohort.sum_of_shares", watched)
    # 2^-64 of four shards' six entries: ln(2 * 24 * 2^64) + 4 ln 2 = 51.0, at least half of
    # epsilon times the room that 12 clients leave, 2^(bits - 1) - 12.
    for bits, epsilon, at_once in ((7, 2.0, True), (7, 1.9, False), (32, 1e-6, True)):
        drawn.clear()
        rng = np.random.default_rng(22)
        Cohort(shard_size=3, bits=bits).sum(ones(12, 6), 6 * epsilon, 6, rng)
        assert drawn == ([4] if at_once else [1] * 4)


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
