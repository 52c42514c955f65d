"""Fits of maximum likelihood: their conditions, EM's limit, and how they answer to reports."""

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import StampChannel, wasserstein
from ldpspatial.estimation import limit_fits
from ldpspatial.estimation.forgery.attacks import law_with, priced
from ldpspatial.estimation.limit_fits import LimitFits
from tests.support.forgeries import fitted

Array = NDArray[np.float64]

CHANNEL = StampChannel(response_table("dam", 3.5, 5, radius=1))
ROWS, COLS = np.indices((5, 5)) / 5
HILL = np.exp(-((ROWS - 0.3) ** 2 + (COLS - 0.4) ** 2) / 0.08)
HILL /= HILL.sum()


def explained(channel: StampChannel, law: Array, fit: Array) -> Array:
    """Return M^T(c / M f)."""
    return channel.adjoint(law / np.where(channel.support, channel.forward(fit), 1.0))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 7.0])
@pytest.mark.parametrize("share", [0.001, 0.05, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_fits_meet_the_conditions_of_the_maximum(epsilon: float, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    channel = StampChannel(response_table("dam", epsilon, 9))
    density = rng.dirichlet(np.full(81, 0.2)).reshape(9, 9)
    density[:3] = 0
    density /= density.sum()
    law = (1 - share) * channel.forward(density)
    law[channel.support] += share * rng.dirichlet(np.full(int(channel.support.sum()), 0.01))
    fit = LimitFits(channel).fit(law, density)
    slack = 1 - explained(channel, law, fit)
    assert fit.min() >= 0
    assert fit.sum() == pytest.approx(1, abs=1e-12)
    assert slack.min() > -1e-9
    assert (fit * slack).max() < 1e-9


def test_fits_are_where_plain_em_goes_to() -> None:
    law = law_with(CHANNEL, HILL, 0.1, (-1, 2))
    slow = fitted(CHANNEL.matrix(), law[CHANNEL.support], 20_000)
    fit = LimitFits(CHANNEL).fit(law, HILL)
    np.testing.assert_allclose(fit.ravel(), slow, atol=1e-5)


@pytest.mark.parametrize("settled", [None, 1e-7])
def test_mass_may_be_kept_to_some_cells(settled: float | None) -> None:
    where = COLS < 0.5
    law = CHANNEL.forward(HILL)
    fit = LimitFits(CHANNEL, where).fit(law, HILL, settled)
    assert (fit[~where] == 0).all()
    slack = 1 - explained(CHANNEL, law, fit)
    assert slack[where].min() > -1e-4
    assert (fit * slack).max() < 1e-4
    assert slack[~where].min() < -0.1  # it would rather be elsewhere
    held = np.where(where, HILL, 0) / HILL[where].sum()
    np.testing.assert_allclose(
        LimitFits(CHANNEL, where).fit(CHANNEL.forward(held), where / where.sum()), held, atol=1e-5
    )


def test_what_densities_give_is_fitted_by_them() -> None:
    fit = LimitFits(CHANNEL).fit(CHANNEL.forward(HILL), np.full((5, 5), 0.04))
    np.testing.assert_allclose(fit, HILL, atol=1e-5)


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_conjugate_gradients_come_near_the_exact_fit(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = StampChannel(response_table("disk", epsilon, 12, squared_radius=4))
    rows, cols = np.indices((12, 12)) / 12
    density = np.exp(-((rows - 0.3) ** 2 + (cols - 0.4) ** 2) / 0.08)
    density /= density.sum()
    law = law_with(channel, density, 0.05, (2, 9))
    exact = LimitFits(channel)
    fit = exact.fit(law, density)
    monkeypatch.setattr(limit_fits, "DENSE_SIDE", 0)
    other = LimitFits(channel)
    moved = wasserstein(density, fit)
    near = other.fit(law, density)
    assert wasserstein(density, near) == pytest.approx(moved, rel=2e-3)
    slope = exact.slopes(law, fit, rows - cols)[channel.support]
    found = other.slopes(law, near, rows - cols)[channel.support]
    assert np.corrcoef(slope, found)[0, 1] > 0.95


@pytest.mark.parametrize("settled", [None, 1e-6])
@pytest.mark.parametrize("reported", [(0, 0), (10, 31)])
def test_a_cell_that_reports_fill_alone_is_found(
    settled: float | None, reported: tuple[int, int]
) -> None:
    """All else is in one cell, and next to no report comes from elsewhere.

    f z is 0 with nobody in a cell that should have some, where steps are solved nearly. Against EM,
    which needs no disk where a report is its own cell or even.
    """
    channel = StampChannel(response_table("disk", 12.0, 32, squared_radius=0))
    density = np.zeros((32, 32))
    density[8, 20] = 1
    law = law_with(channel, density, 0.05, reported)
    table = channel.table
    even = table.base_weight / table.total_weight
    own = table.max_weight / table.total_weight - even
    slow = np.full((32, 32), 1 / 1024)
    for _ in range(3_000):
        ratio = law / (even + own * slow)
        slow *= own * ratio + even * ratio.sum()
    moved = wasserstein(density, slow / slow.sum())
    fit = LimitFits(channel).fit(law, density, settled)
    assert explained(channel, law, fit).max() - 1 < 2e-4
    assert wasserstein(density, fit) == pytest.approx(moved, rel=2e-3)


@pytest.mark.parametrize("cells", [9, 40])
@pytest.mark.parametrize("settled", [None, 1e-6])
def test_laws_are_fitted_together_as_each_by_itself(
    cells: int, settled: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be they quickly at their limits or not, in one stack or in several."""
    monkeypatch.setattr(limit_fits, "TOGETHER", 3 * cells**2)
    channel = StampChannel(response_table("dam", 2.0, cells))
    rng = np.random.default_rng(4)
    density = rng.dirichlet(np.full(cells**2, 0.2)).reshape(cells, cells)
    shares = (0.001, 0.3, 0.01, 0.1)
    laws = np.stack([law_with(channel, density, share, (0, cells // 2)) for share in shares])
    limits = LimitFits(channel)
    together = limits.fits(laws, density, settled)
    for law, fit in zip(laws, together, strict=True):
        alone = limits.fit(law, density, settled)
        assert np.abs(fit - alone).sum() < 0.02
        assert wasserstein(density, fit) == pytest.approx(wasserstein(density, alone), rel=1e-3)


def test_prices_are_the_slope_of_the_squared_distance() -> None:
    other = np.random.default_rng(2).dirichlet(np.ones(25)).reshape(5, 5)
    squared, worth = priced(HILL, other)
    assert squared == pytest.approx(wasserstein(HILL, other) ** 2, rel=1e-5)
    there = np.zeros((5, 5))
    there[0, 3] = 1
    step = 1e-5
    ahead = wasserstein(HILL, (1 - step) * other + step * there) ** 2
    slope = (ahead - squared) / step
    assert slope == pytest.approx(worth[0, 3] - (worth * other).sum(), abs=1e-2)


def test_slopes_are_what_more_reports_add_to_the_fit() -> None:
    worth = ROWS**2 - COLS
    law = law_with(CHANNEL, HILL, 0.1, (0, 2))
    limits = LimitFits(CHANNEL)
    fit = limits.fit(law, HILL)
    slope = limits.slopes(law, fit, worth)
    assert (np.isneginf(slope) == ~CHANNEL.support).all()
    step = 1e-5
    for place in ((0, 3), (1, 1), (6, 4)):
        more = (1 - step) * law
        more[place] += step
        added = (worth * (limits.fit(more, HILL) - fit)).sum() / step
        mean = (slope[CHANNEL.support] * law[CHANNEL.support]).sum()
        assert added == pytest.approx(slope[place] - mean, rel=1e-3, abs=1e-3)
