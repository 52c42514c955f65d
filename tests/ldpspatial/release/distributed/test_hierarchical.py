from math import exp, sqrt

import numpy as np
import pytest

from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.distributed.levels.hierarchical import (
    Hierarchical,
    HierarchicalOracle,
    NonPrivateBestLevel,
)
from ldpspatial.release.distributed.levels.map_levels import Levels
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support import naive_levels as naive
from tests.support.cohorts import Recording, Silent


def town(users: int, shape: tuple[int, int], seed: int) -> UserCells:
    rng = np.random.default_rng(seed)
    at = rng.normal([0.4, 0.6], 0.15, (users, 2)).clip(0, 0.999) * shape
    rows, columns = at.astype(int).T
    return cells_by_user(np.arange(users), rows * shape[1] + columns, shape)


def test_every_level_is_counted_in_one_sum_with_an_equal_part_of_epsilon() -> None:
    recording, people = Recording(), town(50, (6, 5), 1)
    levels, rng = Levels((6, 5)), np.random.default_rng(2)
    cells = people.one_cell_each(rng)
    found = Hierarchical(recording).collect(levels, cells, 1.2, rng)
    (call,) = recording.calls
    assert (call.epsilon, call.sensitivity) == (1.2, 3)
    assert (call.contributions.sum(axis=1) == 3).all()
    assert found.decays == pytest.approx([0.4] * 3)
    exact = np.asarray(call.contributions.sum(axis=0))
    for level in (1, 2, 3):
        truth = naive.histogram(cells.tolist(), (6, 5), level)
        part = exact[levels.start(level) : levels.start(level + 1)].reshape(levels.sides(level))
        assert {at: part[at] for at in np.ndindex(*part.shape)} == truth


def test_noise_is_that_of_a_third_of_epsilon_on_three_levels() -> None:
    """Deviation of 16,000 counts of empty cells, within 5 standard errors (false alarm 6e-7)."""
    levels, rng = Levels((8, 8)), np.random.default_rng(3)
    cells, release = np.zeros(1, dtype=np.int64), Hierarchical(Cohort())
    noise = np.concatenate(
        [
            np.concatenate([m.ravel()[1:] for m in found.maps])
            for found in (release.collect(levels, cells, 1.5, rng) for _ in range(200))
        ]
    )
    a = exp(-0.5)
    assert len(noise) == 200 * 81
    assert abs(noise.std() / (sqrt(2 * a) / (1 - a)) - 1) < 5 * sqrt(5 / 4 / len(noise))


def test_one_level_is_published_spread_evenly() -> None:
    recording, people = Recording(), town(3000, (12, 16), 4)
    released = Hierarchical(recording).release(people, 1.0, np.random.default_rng(5))
    levels, level = Levels((12, 16)), int(released.facts["level"])
    counts = levels.split(recording.calls[0].found.counts)[level - 1]
    np.testing.assert_allclose(released.density, naive.density(counts, (12, 16), level), rtol=1e-12)
    assert released.facts["vector_length"] == levels.length
    assert released.facts["rounds"] == 1


def test_without_noise_the_oracle_is_the_non_private_one() -> None:
    people, truth = town(500, (16, 16), 6), town(50_000, (16, 16), 7).density
    private, without = (
        release.release(people, 1.0, np.random.default_rng(8))
        for release in (HierarchicalOracle(Silent(), truth), NonPrivateBestLevel(Cohort(), truth))
    )
    assert (private.density == without.density).all()
    assert private.facts["level"] == without.facts["level"]
    assert 1 < int(private.facts["level"]) < 4  # the sample is small: not the finest
    assert without.facts["vector_length"] == 2


def test_without_noise_and_other_truth_the_finest_level_is_the_best() -> None:
    people = town(500, (16, 16), 6)
    released = NonPrivateBestLevel(Cohort()).release(people, 1.0, np.random.default_rng(9))
    assert released.facts["level"] == 4
    assert released.density == pytest.approx(people.density)


def test_drop_outs_are_missing_from_the_non_private_map_too() -> None:
    some = NonPrivateBestLevel(Cohort(drop_out=0.5))
    released = some.release(town(400, (16, 16), 6), 1.0, np.random.default_rng(10))
    assert 130 < int(released.facts["survivors"]) < 270


def test_the_honest_choice_costs_little_against_the_oracle() -> None:
    """Mean squared errors over 30 seeded runs; the uniform map and the finest level do not pass."""
    truth = town(400_000, (32, 32), 11).density
    errors = []
    for seed in range(30):
        people, rng = town(4000, (32, 32), 100 + seed), np.random.default_rng(seed)
        state = rng.bit_generator.state
        honest = Hierarchical().release(people, 1.0, rng)
        rng.bit_generator.state = state
        oracle = HierarchicalOracle(truth=truth).release(people, 1.0, rng)
        errors.append([np.square(r.density - truth).sum() for r in (honest, oracle)])
    honest_error, oracle_error = np.mean(errors, axis=0)
    assert oracle_error <= honest_error < 1.2 * oracle_error
    assert np.square(truth - 1 / 1024).sum() > 3 * oracle_error
