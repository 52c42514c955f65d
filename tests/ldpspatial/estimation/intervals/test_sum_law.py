"""Laws of sums of parts, by which regions are told."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import beta

from ldpspatial.estimation.intervals.sum_law import (
    STEPS,
    PartLaw,
    all_or_none,
    crowded_law,
    farthest,
    sums_of,
)


def test_a_sum_has_the_law_of_all_ways() -> None:
    rng = np.random.default_rng(1)
    amounts, chances = rng.uniform(1, 9, 6), rng.uniform(0, 1, 6)
    law = sums_of(amounts, all_or_none(chances))
    assert law.probabilities.sum() == pytest.approx(1)
    ways = np.array(list(product((0, 1), repeat=6)))
    likely = np.where(ways, chances, 1 - chances).prod(1)
    sums = ways @ amounts / amounts.sum()
    for at in np.linspace(0, 1, 50):
        least, most = (likely[sums <= at + off].sum() for off in (-law.off, law.off))
        assert least - 1e-12 <= law.probabilities[law.values <= at].sum() <= most + 1e-12
    assert law.off < 6 / STEPS


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("mean", [0.001, 0.02, 0.3, 0.98])
def test_no_law_of_this_mean_has_a_farther_quantile(mean: float, side: int) -> None:
    seldom = 0.025
    law = farthest(np.array([mean]), seldom, side)
    assert (law.values * law.probabilities).sum() == pytest.approx(mean)
    assert law.probabilities.sum() == pytest.approx(1)
    end = float(law.values[0, 1])  # of a chance that is not seldom enough to be left out
    assert law.probabilities[0, 1] > seldom
    far = end if side > 0 else 1 - end
    assert far == pytest.approx(min((mean if side > 0 else 1 - mean) / seldom, 1))


@pytest.mark.parametrize("crowding", [1e-4, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("mean", [0.01, 0.3, 0.98])
def test_crowded_parts_have_the_law_of_beta(mean: float, crowding: float) -> None:
    law = crowded_law(np.array([mean]), np.array([crowding]))
    values, likely = law.values[0], law.probabilities[0]
    assert likely.sum() == pytest.approx(1)
    assert values @ likely == pytest.approx(mean)
    variance = crowding * mean * (1 - mean)
    assert likely @ (values - mean) ** 2 + law.within[0] == pytest.approx(variance)
    assert law.within[0] <= 0.1 * variance + 1e-9
    many = 1 / crowding - 1
    exact = beta(mean * many, (1 - mean) * many)
    assert (np.diff(values) >= 0).all()
    # At each value it is that of Beta, to the bin.
    upto = np.concatenate([[0], np.cumsum(likely)])
    assert (exact.cdf(values) >= upto[:-1] - 1e-9).all()
    assert (exact.cdf(values) <= upto[1:] + 1e-9).all()


def test_where_all_are_at_one_place_beta_is_all_or_none() -> None:
    chances = np.array([0.1, 0.5, 0.99])
    law, expected = crowded_law(chances, np.ones(3)), all_or_none(chances)
    for k in range(3):
        ends = law.values[k].round(3)
        assert law.probabilities[k][ends == 0].sum() == pytest.approx(
            expected.probabilities[k, 0], abs=1e-4
        )
        assert law.probabilities[k][ends == 1].sum() == pytest.approx(chances[k], abs=1e-4)


def test_amounts_that_are_alike_lie_on_few_numbers() -> None:
    sums = sums_of(np.full(8, 3.0), all_or_none(np.full(8, 0.5)))
    assert sums.values == pytest.approx(np.arange(9) / 8)
    assert sums.off < 2e-9
    one = PartLaw(np.array([[0.25]]), np.array([[1.0]]), np.zeros(1))
    assert sums_of(np.ones(1), one).values.tolist() == [0.25]
