"""Too few reports where nobody is: bounds that hold wherever people are, and see a deficit.

Draws are seeded; a right bound fails one of these tests with probability below 1e-6.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, kstwo

from ldpspatial.estimation.fit_check.deficits import deficit, holes

Array = NDArray[np.float64]
CELLS = 225
RUNS = 100
MOST = 7e-8  # of each bound on how often p-values may be small


def p_values(people: Array, repeats: int, lacking: float = 0.0) -> Array:
    """Return p-values of noise of standard deviation 1 about people, less what is lacking."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(repeats):
        noise = rng.standard_normal((CELLS, RUNS))
        found.append(deficit(people - lacking + rng.standard_normal(CELLS), noise))
    return np.array(found)


def crowd(empty: int) -> Array:
    """Return people of all numbers, from next to nobody, in all but some cells."""
    return np.concatenate([np.zeros(empty), np.linspace(0, 6, CELLS - empty)])


def test_p_values_are_uniform_where_nobody_is_anywhere() -> None:
    found = np.sort(p_values(crowd(CELLS), 300))
    steps = np.arange(301) / 300
    # .05 for the normal laws that stand for sums of capped deviations.
    furthest = max((steps[1:] - found).max(), (found - steps[:-1]).max())
    assert furthest <= kstwo.isf(1e-7, 300) + 0.05


@pytest.mark.parametrize("empty", [0, 20, 110, CELLS])
def test_people_raise_no_alarm(empty: int) -> None:
    found = p_values(crowd(empty), 200)
    for rate in (0.1, 0.01, 1e-3):
        assert (found < rate).sum() <= binom.isf(MOST, len(found), 1.2 * rate)


def test_a_small_deficit_in_half_of_the_cells_is_seen() -> None:
    """At the 5 % level in 30 runs of 60: below 1e-6 with a power of .8, and 1e-4 with one of .25.

    What is known of 110 empty cells, each lacking .5 standard deviations, is a sum that is moved by
    5.2. People in the other cells hide it from a sum over all cells.
    """
    assert binom.cdf(29, 60, 0.8) < 1e-6
    assert binom.sf(29, 60, 0.25) < 1e-4
    found = p_values(crowd(110), 60, lacking=0.5)
    assert (found < 0.05).sum() >= 30


def test_a_deep_hole_is_seen() -> None:
    people = crowd(110)
    people[:3] = -6
    assert (p_values(people, 20) < 1e-4).all()


def test_cells_that_depend_on_one_another_raise_no_more_alarms() -> None:
    rng = np.random.default_rng(2)
    found = []
    for _ in range(200):
        # Pairs of cells that are the same.
        noise = np.repeat(rng.standard_normal((CELLS // 2, RUNS + 1)), 2, axis=0)
        found.append(deficit(noise[:, 0], noise[:, 1:]))
    for rate in (0.1, 0.01, 1e-3):
        assert (np.array(found) < rate).sum() <= binom.isf(MOST, 200, 1.2 * rate)


def test_a_square_without_an_empty_cell_is_no_deficit() -> None:
    noise = np.random.default_rng(3).standard_normal((CELLS, RUNS))
    assert deficit(np.full(CELLS, 9.0), noise) == 1


def test_holes_of_chance_are_none() -> None:
    rng = np.random.default_rng(4)
    noise = rng.standard_normal((CELLS, RUNS))
    found = [holes(rng.standard_normal(CELLS), noise) for _ in range(200)]
    for rate in (0.1, 0.01, 1e-3):
        assert (np.array(found) < rate).sum() <= binom.isf(MOST, 200, 1.2 * rate)
    assert holes(rng.standard_normal(CELLS) - 2, noise) < 1e-9
