"""Slopes of what forgers move: prices of cells, and what more reports of an output cell add."""

import numpy as np
import pytest

from client_sdk import response_table
from ldpspatial import StampChannel, wasserstein
from ldpspatial.estimation.forgery_attacks import law_with, most_likely
from ldpspatial.estimation.forgery_slopes import priced, slopes

CHANNEL = StampChannel(response_table("dam", 3.5, 5, radius=1))
ROWS, COLS = np.indices((5, 5)) / 5
HILL = np.exp(-((ROWS - 0.3) ** 2 + (COLS - 0.4) ** 2) / 0.08)
HILL /= HILL.sum()


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

    def fit_of(law: np.ndarray) -> np.ndarray:
        return most_likely(CHANNEL, law, np.full((5, 5), 0.04), 3_000)

    fit = fit_of(law)
    slope = slopes(CHANNEL, law, fit, worth)
    assert (np.isneginf(slope) == ~CHANNEL.support).all()
    step = 1e-4
    for place in ((0, 3), (1, 1), (6, 4)):
        more = (1 - step) * law
        more[place] += step
        added = (worth * (fit_of(more) - fit)).sum() / step
        mean = (slope[CHANNEL.support] * law[CHANNEL.support]).sum()
        assert added == pytest.approx(slope[place] - mean, rel=0.05, abs=0.02)
