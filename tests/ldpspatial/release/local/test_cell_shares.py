"""Noisy shares and an expected map: posterior means against an integral, and what they bring."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from ldpspatial.release.local.sets import cell_shares
from ldpspatial.release.local.sets.cell_shares import posterior_shares
from ldpspatial.release.local.sets.set_reports import on_simplex

Array = NDArray[np.float64]

KINDS = tuple(product(cell_shares.SPREADS, cell_shares.CROWDED, cell_shares.EMPTY))  # of laws


def town(side: int = 12) -> Array:
    """A smooth hill with one crowded cell, which holds a fifth of the people."""
    at = (np.arange(side) + 0.5) / side
    hill = np.exp(-(((at - 0.4) / 0.2) ** 2))
    smooth = np.outer(hill, hill) + 0.05
    crowded = 0.8 * smooth / smooth.sum()
    crowded[2, 9] += 0.2
    return crowded


def one(most: float, *kind: float) -> cell_shares.Law:
    """Return a single law as a row of laws."""
    factors, weights = cell_shares._law(most, *kind)
    return factors, weights[np.newaxis]


@pytest.mark.parametrize("most", [1.5, 4.0, 225.0, 1e7])
@pytest.mark.parametrize("kind", KINDS)
def test_the_laws_of_factors_have_mean_1(most: float, kind: tuple[float, float, float]) -> None:
    factors, weights = cell_shares._law(most, *kind)
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(1)
    assert weights @ factors == pytest.approx(1, abs=1e-9)
    assert factors[0] == 0
    assert factors[-1] == pytest.approx(max(most, 2))


def test_each_cell_has_its_posterior_mean() -> None:
    """And a law its evidence: against the integral over all shares, cell by cell."""
    expected = np.array([0.5, 0.3, 0.15, 0.05])
    told = np.array([0.42, 0.01, 0.3, 0.27])
    variance = 0.06**2
    factors, weights = cell_shares._law(20.0, 0.7, 0.05, 0.05)
    laws = factors, np.array([weights, np.roll(weights, 1)])
    (found, _), (evidence, _) = (
        each.T for each in cell_shares._means(told, (variance, variance), expected, laws)
    )
    grid, step = np.linspace(-1, 2, 300_001, retstep=True)
    ratio = factors[-1] / factors[-2]
    for g, x, mean in zip(expected, told, found, strict=True):
        prior = np.zeros_like(grid)
        for factor, weight in zip(factors[1:], weights[1:], strict=True):
            middle = min(g * factor, 1.0)
            prior += weight * stats.norm.pdf(grid, middle, middle * np.log(ratio) / 2)
        here = prior * stats.norm.pdf(x, grid, variance**0.5) * step
        empty = weights[0] * stats.norm.pdf(x, 0, variance**0.5)
        assert mean == pytest.approx((here @ grid) / (here.sum() + empty), rel=1e-5)
        evidence -= np.log((here.sum() + empty) * np.sqrt(2 * np.pi))
    assert evidence == pytest.approx(0, abs=1e-5)


def test_laws_are_weighed_by_their_evidence() -> None:
    truth = town()
    told = truth + 0.004 * np.random.default_rng(4).normal(size=truth.shape)
    variances = (1.6e-5, 1.6e-5)
    smooth = np.full_like(truth, 1 / truth.size)
    found = [
        cell_shares._means(told.ravel(), variances, smooth.ravel(), one(144.0, *kind))
        for kind in KINDS
    ]
    evidence = np.array([float(each[0]) for _, each in found])
    weights = np.exp(evidence - evidence.max())
    expected = np.hstack([means for means, _ in found]) @ (weights / weights.sum())
    result = posterior_shares(told, variances, smooth)
    np.testing.assert_allclose(result, on_simplex(expected.reshape(truth.shape)), rtol=1e-12)


def test_where_nobody_is_crowded_noise_makes_few_crowds() -> None:
    """Mean squared errors of 40 runs; of five other sets of 40 the ratio was .27 to .29."""
    rng = np.random.default_rng(6)
    smooth = town()
    smooth[2, 9] = smooth[2, 8]
    smooth /= smooth.sum()
    wary = one(float(1 / smooth.min()), 0.7, 0.05, 0.05)
    errors = []
    for _ in range(40):
        told = smooth + 0.01 * rng.normal(size=smooth.shape)
        found = posterior_shares(told, (1e-4, 1e-4), smooth)
        alone, _ = cell_shares._under(told, (1e-4, 1e-4), smooth, wary)
        both = found.ravel(), alone[:, 0]
        errors.append([((each - smooth.ravel()) ** 2).sum() for each in both])
    ours, of_one = np.mean(errors, axis=0)
    assert ours < 0.6 * of_one


def test_crowded_cells_vary_more() -> None:
    """A share that may be off by as much is drawn towards what is expected of it."""
    told, expected = np.array([0.4, 0.6]), np.array([0.6, 0.4])
    exact = posterior_shares(told, (1e-8, 1e-8), expected)
    np.testing.assert_allclose(exact, told, atol=1e-3)
    noisy = posterior_shares(told, (1e-8, 0.1), expected)
    assert 0.41 < noisy[0] < 0.6


def test_what_sets_say_counts_where_they_say_something() -> None:
    rng = np.random.default_rng(1)
    truth = town()
    expected = np.full_like(truth, 1 / truth.size)
    nothing = posterior_shares(truth + 30 * rng.normal(size=truth.shape), (900.0, 900.0), expected)
    np.testing.assert_allclose(nothing, expected, rtol=0.02)
    everything = posterior_shares(truth, (1e-14, 1e-14), expected)
    np.testing.assert_allclose(everything, truth, atol=1e-6)
    for found in (nothing, everything):
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("deviation", [0.001, 0.003, 0.01, 0.03])
def test_it_is_nearer_than_the_projection_and_than_what_was_expected(deviation: float) -> None:
    """Mean squared errors of 40 runs; of either the smaller is at least 1.3 times ours."""
    rng = np.random.default_rng(2)
    truth = town()
    smooth = truth.copy()
    smooth[2, 9] = 0.05 / truth.size  # what is expected knows nothing of the crowd
    smooth /= smooth.sum()
    errors = []
    for _ in range(40):
        noise = deviation * rng.normal(size=truth.shape)
        told = truth + noise - noise.mean()
        found = posterior_shares(told, (deviation**2, deviation**2), smooth)
        errors.append([((each - truth) ** 2).sum() for each in (found, on_simplex(told), smooth)])
    ours, projected, given = np.mean(errors, axis=0)
    assert 1.3 * ours < min(projected, given)


def test_many_cells_are_done_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = town()
    told = truth + 0.01 * np.random.default_rng(3).normal(size=truth.shape)
    whole = posterior_shares(told, (1e-4, 2e-4), truth)
    monkeypatch.setattr(cell_shares, "AT_ONCE", 50)
    parts = posterior_shares(told, (1e-4, 2e-4), truth)
    np.testing.assert_allclose(parts, whole, rtol=1e-12)


def test_a_law_is_made_of_empty_usual_and_crowded_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its mean is made 1: log u is normal of mean -s^2 / 2, and of crowds 1 / u."""
    monkeypatch.setattr(cell_shares, "_of_mean_one", lambda weights, _: weights)
    factors, weights = cell_shares._law(1e6, 0.5, 0.05, 0.1)
    usual = stats.norm.pdf(np.log(factors[1:]), -(0.5**2) / 2, 0.5)
    crowds = (factors[1:] > 1) / factors[1:]
    expected = 0.85 * usual / usual.sum() + 0.05 * crowds / crowds.sum()
    np.testing.assert_allclose(weights, [0.1, *expected], rtol=1e-9)
