from math import exp

import numpy as np
import pytest
from scipy import stats

from ldpspatial.places.users import cells_by_user
from ldpspatial.release.distributed.levels.flat import Flat
from tests.support.cohorts import Recording, Silent


def test_without_noise_the_map_is_the_truth() -> None:
    people = cells_by_user(range(10), [0, 0, 0, 1, 1, 4, 5, 5, 5, 5], (2, 3))
    released = Flat(Silent()).release(people, 1.0, np.random.default_rng(1))
    assert released.density == pytest.approx(people.density)
    assert released.facts == {"vector_length": 6, "rounds": 1, "level": 2, "survivors": 10}


def test_the_map_is_what_the_sum_shows_clipped() -> None:
    recording = Recording()
    people = cells_by_user(range(40), np.arange(40) % 7, (3, 4))
    released = Flat(recording).release(people, 0.5, np.random.default_rng(2))
    (call,) = recording.calls
    shown = np.maximum(call.found.counts, 0)
    assert released.density.ravel() == pytest.approx(shown / shown.sum())
    assert (call.epsilon, call.sensitivity) == (0.5, 1)
    assert (call.contributions.sum(axis=1) == 1).all()


@pytest.mark.parametrize(("scale", "same"), [(1.0, True), (0.5, False)])
def test_noise_of_empty_cells_is_discrete_laplace_of_epsilon(scale: float, same: bool) -> None:
    """Chi-square over 16,383 cells, false alarm 1e-6; noise of half the scale does not pass."""
    recording, epsilon = Recording(), 0.8
    people = cells_by_user([0], [0], (128, 128))
    Flat(recording).release(people, epsilon / scale, np.random.default_rng(3))
    noise = np.clip(recording.calls[0].found.counts[1:], -8, 8)
    seen = np.bincount(noise + 8, minlength=17)
    a = exp(-epsilon)
    law = (1 - a) / (1 + a) * a ** np.abs(np.arange(-8.0, 9))
    law[[0, -1]] /= 1 - a  # and everything beyond
    assert law.sum() == pytest.approx(1)
    assert (stats.chisquare(seen, law * len(noise)).pvalue > 1e-6) == same


def test_of_a_user_with_many_visits_one_drawn_uniformly_counts() -> None:
    """3 of 4 visits in cell 0; 4,000 users: within 5 standard deviations (false alarm 6e-7)."""
    users = np.repeat(np.arange(4000), 4)
    people = cells_by_user(users, np.tile([0, 0, 0, 3], 4000), (2, 2))
    released = Flat(Silent()).release(people, 1.0, np.random.default_rng(4))
    assert abs(released.density[0, 0] - 0.75) < 5 * (0.75 * 0.25 / 4000) ** 0.5


def test_the_published_length() -> None:
    people = cells_by_user(range(3), [0, 5, 9], (1024, 1024))
    released = Flat().release(people, 1.0, np.random.default_rng(5))
    assert released.facts["vector_length"] == 1_048_576
