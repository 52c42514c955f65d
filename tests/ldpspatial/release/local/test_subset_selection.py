"""Subset selection: subsets against their law, the size of them, and the claim."""

from fractions import Fraction
from math import comb, exp, log

import numpy as np
import pytest
from scipy import stats

from client_sdk.shared import ONE, exact_epsilon, exp_below
from ldpspatial.errors import InputError
from ldpspatial.estimation import region_share
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local.sets import subset_selection
from ldpspatial.release.local.sets.subset_selection import (
    SubsetSelection,
    draw_subsets,
    inclusion_probability,
    subset_frequencies,
    subset_size,
    subset_variances,
)
from tests.support import naive_local_sets as naive

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("size", [2, 4, 9])
@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 3.5, 20.0])
def test_no_report_is_likelier_by_more_than_e_to_the_epsilon(size: int, epsilon: float) -> None:
    # The exact ratio of what follows from the chance that is drawn with, beside e^eps rounded down.
    k, p = subset_size(size, epsilon), inclusion_probability(size, epsilon)
    ratio = (p / comb(size - 1, k - 1)) / ((1 - p) / comb(size - 1, k))
    assert ratio == SubsetSelection().weights(size, epsilon).ratio
    assert ratio * ONE <= exp_below(exact_epsilon(epsilon))
    assert float(ratio) == pytest.approx(exp(epsilon), rel=1e-12)
    law = naive.subset_law(size, k, Fraction(exp(epsilon)))
    included = sum(row[0] for report, row in law.items() if 0 in report)
    assert float(p) == pytest.approx(float(included), rel=1e-15)


@pytest.mark.parametrize(
    ("size", "epsilon", "k"),
    [
        *((225, 1.4, 45), (225, 3.5, 7), (225, 5.0, 2), (225, 5.01, 1)),
        *((1024, 1.4, 203), (1, 1.0, 1), (2, 1e-6, 1), (3, 1e-6, 1), (9, 20.0, 1)),
    ],
)
def test_sizes(size: int, epsilon: float, k: int) -> None:
    assert subset_size(size, epsilon) == k
    law = SubsetSelection().set_sizes(size, epsilon)
    assert law.nonzero()[0].tolist() == [k]
    facts = SubsetSelection().design(size, epsilon)
    assert facts == {"subset_size": k}


def test_known_answers() -> None:
    # k = 2 of 6 at e^eps = 2: p = 4 / 8, q = (1/2 + 1) / 5.
    assert float(inclusion_probability(6, log(2))) == pytest.approx(1 / 2)
    hits = 1000 * np.array([0.5, *[0.3] * 5])
    np.testing.assert_allclose(subset_frequencies(hits, 1000, log(2)), [1, *[0] * 5], atol=1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_frequencies_are_unbiased_and_sum_to_1(size: int, epsilon: float) -> None:
    shares = np.random.default_rng(1).dirichlet(np.ones(size))
    k, p = subset_size(size, epsilon), float(inclusion_probability(size, epsilon))
    q = (p * (k - 1) + (1 - p) * k) / max(size - 1, 1)
    found = subset_frequencies(1e6 * (shares * p + (1 - shares) * q), 10**6, epsilon)
    np.testing.assert_allclose(found, shares, atol=1e-9)
    assert found.sum() == pytest.approx(1, abs=1e-9)


def test_reports_are_drawn_from_their_law() -> None:
    n, own, size, epsilon = 100_000, 3, 6, log(2)
    drawn = SubsetSelection().reports(np.full(n, own), size, epsilon, np.random.default_rng(2))
    assert set(np.diff(drawn.starts)) == {2}
    seen = np.bincount(naive.codes(drawn.starts, drawn.cells), minlength=64)

    def p_value(e: Fraction) -> float:
        law = naive.subset_law(size, 2, e)
        due = [n * float(law[s][own]) if s in law else 0.0 for s in naive.all_sets(size)]
        possible = np.array(due) > 0
        assert not seen[~possible].any()
        return float(stats.chisquare(seen[possible], np.array(due)[possible]).pvalue)

    assert p_value(Fraction(2)) > FALSE_ALARM
    assert p_value(Fraction(21, 10)) < FALSE_ALARM  # the test tells 5 % of e^eps


def test_any_numbers_of_others_give_uniform_subsets() -> None:
    n, rng = 60_000, np.random.default_rng(3)
    values, own, others = rng.integers(5, size=n), rng.random(n) < 0.3, rng.integers(5, size=n)
    starts, cells = draw_subsets(values, own, others, 5, rng)
    np.testing.assert_array_equal(np.diff(starts), others + own)
    seen = np.zeros((5, 2, 5, 32), int)
    np.add.at(seen, (values, own.astype(int), others, naive.codes(starts, cells)), 1)
    p_values = []
    for value in range(5):
        for has_own in range(2):
            for k in range(5):
                possible = [
                    len(s) == k + has_own and (value in s) == bool(has_own)
                    for s in naive.all_sets(5)
                ]
                counts = seen[value, has_own, k]
                assert not counts[~np.array(possible)].any()
                p_values.append(stats.chisquare(counts[possible]).pvalue if 0 < k < 4 else 1.0)
    assert min(p_values) > FALSE_ALARM / 50


def test_the_order_in_a_report_says_nothing() -> None:
    n = 40_000
    own, others = np.ones(n, bool), np.full(n, 3)
    _, cells = draw_subsets(np.full(n, 2), own, others, 8, np.random.default_rng(4))
    place = (cells.reshape(n, 4) == 2).argmax(axis=1)
    assert stats.chisquare(np.bincount(place, minlength=4)).pvalue > FALSE_ALARM
    firsts = np.bincount(cells.reshape(n, 4)[:, 0], minlength=8)
    assert firsts.min() > 0.1 * n


def test_counting_in_parts_is_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    # In parts of 3 users: every user is counted once. Hits are within 6 standard deviations.
    monkeypatch.setattr(subset_selection, "CHUNK_ENTRIES", 6)
    values = np.random.default_rng(5).choice(6, 5000, p=[0.5, 0.2, 0.1, 0.1, 0.1, 0.0])
    release = SubsetSelection(estimator="projection")
    found = release.frequencies(values, 6, log(2), np.random.default_rng(6))
    assert found.sum() == pytest.approx(1)
    deviation = np.sqrt(0.25 / 5000) / 0.2  # p - q = 1/5
    assert np.abs(found - np.bincount(values, minlength=6) / 5000).max() < 6 * deviation


@pytest.mark.parametrize(("size", "epsilon"), [(6, 1.0), (9, 5.0)])
def test_its_variances_are_those_of_shares_near_0_and_near_1(size: int, epsilon: float) -> None:
    # Of 4,000 runs a variance is off by 2.3 % in the mean, and here by less than six times that.
    values = np.zeros(50, np.int64)
    rng = np.random.default_rng(8)
    found = [SubsetSelection().frequencies(values, size, epsilon, rng)[:2] for _ in range(4000)]
    full, empty = np.var(found, axis=0)
    near_0, near_1 = subset_variances(size, 50, epsilon)
    assert empty == pytest.approx(near_0, rel=0.14)
    assert full == pytest.approx(near_1, rel=0.14)
    assert subset_variances(1, 50, epsilon) == (0, 0)


def test_a_user_with_many_positions_sends_one_report() -> None:
    users = cells_by_user([0, 0, 0, 1], [0, 0, 8, 3], (3, 3))
    found = SubsetSelection().release(users, 1.0, np.random.default_rng(7)).estimate
    assert found is not None
    assert found.n == 2


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"values must lie in \[0, 4\) \(not repeated here\)$"):
        SubsetSelection().reports(np.array([4]), 4, 1.0, np.random.default_rng(1))
    with pytest.raises(InputError, match="n must be a whole number from 1 on"):
        subset_frequencies(np.zeros(4), 0, 1.0)


@pytest.mark.parametrize("method", ["posterior", "fisher"])
def test_reports_that_are_sets_have_intervals_by_scores_alone(method: str) -> None:
    users = cells_by_user(np.arange(300), np.arange(300) % 9, (3, 3))
    found = SubsetSelection(estimator="em").release(users, 2.0, np.random.default_rng(1)).estimate
    assert found is not None
    with pytest.raises(
        InputError, match=f"must be scores where the channel knows .* got '{method}"
    ):
        region_share(found, np.eye(3), method=method)
    for scores in ("auto", "scores"):
        share = region_share(found, np.eye(3), method=scores)
        assert 0 < share.lower < 1 / 3 < share.upper < 1


@pytest.mark.parametrize("users", [1, 4, 5])
def test_everybody_is_counted_however_many_are_held_at_a_time(
    users: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of so many subsets has its size, so that shares sum to 1."""
    for entries in (1, 8, 1000):
        monkeypatch.setattr(subset_selection, "CHUNK_ENTRIES", entries)
        values = np.arange(users) % 9
        shares = SubsetSelection().frequencies(values, 9, 1.0, np.random.default_rng(1))
        assert shares.sum() == pytest.approx(1)
