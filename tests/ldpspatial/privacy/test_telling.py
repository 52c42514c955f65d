"""What is learned tells two laws apart about as well as the ratio of their probabilities."""

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from ldpspatial.privacy.distinguish import best_bound, lower_bound_epsilon
from ldpspatial.privacy.telling import learned

Array = NDArray[np.float64]
FALSE_ALARM = 1e-6


def auc(first: Array, second: Array) -> float:
    """Return the chance that a number of the first kind exceeds one of the second.

    Equal ones count half: how a sort leaves them is for the processor to say.
    """
    ranks = scipy.stats.rankdata(np.concatenate([first, second]))
    n = len(first)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / n / len(second))


def rows(moved: float, n: int, rng: np.random.Generator) -> Array:
    """Two sums with noise of scale 1, of which one is hidden half of the time, and a third."""
    sums = rng.laplace([moved, -moved, 0], 1, (n, 3))
    hidden = rng.random(n) < 0.5
    sums[hidden, 1] = np.nan
    return sums


def exact(sums: Array) -> Array:
    """Return the logarithm of the ratio for one that moved by 1 and one that did not move."""
    ratio = np.abs(sums) - np.abs(sums - [1, -1, 0])
    total: Array = np.nansum(ratio, axis=1)
    return total


def test_the_learned_number_tells_nearly_as_much_as_the_ratio() -> None:
    rng = np.random.default_rng(1)
    telling = learned(rows(1, 5000, rng), rows(0, 5000, rng))
    here, there = rows(1, 40_000, rng), rows(0, 40_000, rng)
    best = auc(exact(here), exact(there))
    assert best > 0.7
    assert best - 0.01 < auc(telling(here), telling(there)) < best + 0.002
    # The two sums that moved lose 1 each.
    seen = lower_bound_epsilon(telling(here), telling(there))
    assert 1.6 < seen <= 2


def test_numbers_that_repeat_are_told_from_those_beside_them() -> None:
    rng = np.random.default_rng(2)
    here = np.where(rng.random((2000, 1)) < 0.3, 0.0, rng.normal(size=(2000, 1)))
    telling = learned(here, rng.normal(size=(2000, 1)))
    at_zero, beside = telling(np.array([[0.0], [1e-6]]))
    assert at_zero > beside + 2


@pytest.mark.parametrize("numbers", [np.zeros((4, 2)), np.full((4, 1), np.nan)])
def test_where_nothing_differs_nothing_is_told(numbers: Array) -> None:
    assert learned(numbers, numbers)(numbers) == pytest.approx(0, abs=1e-6)


def test_a_bound_on_the_best_of_learned_numbers_is_wrong_as_seldom_as_stated() -> None:
    # Laws that lose nothing, learned from few: where much is tried, much looks telling by chance.
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(100):
        drawn = rng.normal(size=(2, 240, 6))
        telling = learned(*drawn[:, :80])
        statistics = [[telling(each) for each in drawn]] + [list(drawn[..., k]) for k in range(6)]
        parts = [
            [(p[part], q[part]) for p, q in statistics]
            for part in (slice(80, 160), slice(160, 240))
        ]
        wrong += best_bound(*parts, confidence=0.8, delta=0.0)[0] > 0
    # At most a fifth of the time: 42 or more have a chance of 4e-7.
    assert wrong < 42
