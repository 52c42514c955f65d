"""k-RR: the truth is kept as often as claimed, in whole weights."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf, workdps  # type: ignore[import-untyped]
from scipy import stats

from client_sdk.exact import ONE, exp_below
from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local.disks.randomized_response import KRr, krr_frequencies
from tests.support import naive_local_sets as naive

FALSE_ALARM = 1e-6
SMALL = [(side, epsilon) for side in (1, 2, 3) for epsilon in (1e-6, 0.5, 1.4, 7.0, 20.0)]


@pytest.mark.parametrize(("side", "epsilon"), [*SMALL, (15, 3.5), (64, 1.4), (256, 20.0)])
def test_the_truth_is_kept_as_often_as_the_formula_says(side: int, epsilon: float) -> None:
    table, m = KRr().table(side, epsilon), side**2
    kept = table.probability(0, 0)
    assert table.output_size == m
    assert kept + (m - 1) * Fraction(table.base_weight, table.total_weight) == 1
    with workdps(50):
        e = mp.exp(mpf(epsilon))
        exact = e / (e + m - 1)
        below = exact - mpf(kept.numerator) / kept.denominator
        assert -1e-40 < below < 1e-13  # rounded down, by less than floats could tell


@pytest.mark.parametrize(("side", "epsilon"), SMALL[5:])
def test_the_claim_holds_in_whole_weights(side: int, epsilon: float) -> None:
    # exp_below is a rational bound below e^eps: no rounding hides a breach.
    table = KRr().table(side, epsilon)
    ratio = table.max_ratio()
    assert ratio <= Fraction(exp_below(Fraction(epsilon)), ONE)
    law = naive.krr_law(side**2, ratio)
    for (y,), row in ((tuple(report), row) for report, row in law.items()):
        for x in range(side**2):
            offset = y // side - x // side, y % side - x % side
            assert table.probability(*offset) == row[x]


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_reports_are_drawn_from_their_law(epsilon: float) -> None:
    n, own = 200_000, 4
    users = cells_by_user(np.arange(n), np.full(n, own), (3, 3))
    found = KRr().release(users, epsilon, np.random.default_rng(1)).estimate
    assert found is not None

    def p_value(kept: float) -> float:
        law = np.full(9, (1 - kept) / 8)
        law[own] = kept
        return float(stats.chisquare(found.counts.ravel(), n * law).pvalue)

    kept = float(KRr().table(3, epsilon).probability(0, 0))
    assert p_value(kept) > FALSE_ALARM
    # The same test tells a mechanism that draws the other cell from all, the own one included.
    assert p_value(kept + (1 - kept) / 9) < FALSE_ALARM


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
def test_frequencies_are_unbiased_and_sum_to_1(epsilon: float) -> None:
    table = KRr().table(3, epsilon)
    shares = np.arange(9) / 36
    kept = float(table.probability(0, 0))
    mean = 10**9 * (shares * kept + (1 - shares) * (1 - kept) / 8)
    np.testing.assert_allclose(krr_frequencies(mean, table), shares, atol=1e-9)


def test_facts_name_the_estimator() -> None:
    users = cells_by_user(np.arange(20), np.arange(20) % 4, (2, 2))
    found = KRr().release(users, 2.0, np.random.default_rng(2))
    assert found.facts["estimator"] == "em"
    assert found.facts["radius"] == 0
    assert float(found.facts["realised_epsilon"]) <= 2.0
    projected = KRr(estimator="projection").release(users, 2.0, np.random.default_rng(2))
    assert dict(projected.facts) == {"estimator": "projection"}
    assert projected.estimate is None


def test_the_smallest_epsilon_is_that_of_devices() -> None:
    with pytest.raises(InputError, match="epsilon"):
        KRr().release(cells_by_user([0], [0], (2, 2)), 1e-7, np.random.default_rng(3))
