"""Tails of the check of the fit against SciPy's distributions."""

import numpy as np
import pytest
from scipy import stats

from ldpspatial.estimation.fit_check.tails import gamma_tail, least_of_many, upper_tail


@pytest.mark.parametrize("statistic", [-1.0, 0.0, 0.5, 9.0, 400.0])
def test_the_tail_of_a_gamma_law(statistic: float) -> None:
    expected = stats.gamma.sf(statistic, 2.0**2 / 3.0, scale=3.0 / 2.0)
    assert gamma_tail(statistic, 2.0, 3.0) == pytest.approx(expected, rel=1e-12)
    assert gamma_tail(statistic, 2.0, 0.0) == 1.0


@pytest.mark.parametrize("skewness", [-2.0, -0.3, -1e-5, 0.0, 1e-5, 0.3, 2.0])
def test_tails_are_those_of_pearsons_third_kind(skewness: float) -> None:
    """Beyond where the law ends as well."""
    deviations = np.array([-9.0, -1.0, 0.0, 0.4, 3.0, 9.0])
    expected = stats.pearson3.sf(deviations, skewness)
    found = upper_tail(deviations, np.full(deviations.shape, skewness))
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-15)


def test_of_sums_that_are_one_the_least_counts_once_and_of_independent_ones_twice() -> None:
    p_values = np.array([0.01, 0.01])
    assert least_of_many(p_values, np.ones((2, 2))) == pytest.approx(0.01, rel=0.06)
    assert least_of_many(p_values, np.eye(2)) == pytest.approx(1 - 0.99**2, rel=0.06)
