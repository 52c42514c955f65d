"""What the recommended distributed release hands to its map: the law of its sums."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.places.users import cells_by_user
from ldpspatial.release.distributed import REALISTIC, Cohort, DistributedLevels


@pytest.mark.parametrize("cohort", [Cohort(), REALISTIC])
def test_sums_are_in_steps_of_one_person_over_the_share_that_was_counted(cohort: Cohort) -> None:
    """So the law of counts may tell whole people; each person adds (1 - f) / f to a variance."""
    users = cells_by_user(range(2000), np.arange(2000) % 64, (8, 8))
    run = DistributedLevels(cohort, aim="cells").release(users, 4.0, np.random.default_rng(1))
    assert run.levels is not None
    level = run.levels.levels[-1]
    assert level.step == pytest.approx(2000 / run.facts["survivors"])
    assert level.per_person == pytest.approx(level.step - 1)
    steps = level.sums / level.step
    assert steps == pytest.approx(np.round(steps))


@pytest.mark.parametrize(
    ("cohort", "epsilon", "levels"),
    [
        (REALISTIC, 1.0, [2, 5]),
        (Cohort(), 1.0, [2, 5]),
        (Cohort(), 3.0, [5]),  # most noise is 0, and a tenth of epsilon would be half as much again
    ],
)
def test_wide_areas_are_counted_twice(cohort: Cohort, epsilon: float, levels: list[int]) -> None:
    people = np.random.default_rng(1).integers(0, 1024, 30_000)
    users = cells_by_user(range(len(people)), people, (32, 32))
    for aim in ("distance", "cells"):
        run = DistributedLevels(cohort, aim=aim).release(users, epsilon, np.random.default_rng(2))
        assert run.levels is not None
        found = [level.level for level in run.levels.levels if 0 < level.variance < np.inf]
        assert found == (levels if aim == "distance" else [5])
        assert run.facts["rounds"] == len(found)
        assert run.claim.epsilon == pytest.approx(epsilon, abs=1e-6)


def test_wide_areas_come_nearer_where_clients_fail() -> None:
    """People are everywhere, so noise and who failed add up: the second count takes some of it.

    Sixteen areas of 64 cells with 5,000 people on average. Summed over cells, whose noise is that
    of all of epsilon, errors are as the release says itself. Over 60 maps (960 squares, a standard
    error of .05) they are .75 times as large, and .92 times by what is learned of cells alone.
    """
    rng = np.random.default_rng(3)
    cohort = Cohort(100_000, drop_out=0.1, tolerated=0.2)
    cells = rng.integers(0, 1024, 80_000)
    users = cells_by_user(range(len(cells)), cells, (32, 32))
    single = DistributedLevels(cohort, aim="cells").release(users, 1.0, rng).levels
    assert single is not None
    truth = areas_of(users.density) * len(cells)
    squares = []
    for _ in range(60):
        run = DistributedLevels(cohort).release(users, 1.0, rng)
        squares.append(((areas_of(run.density) * len(cells) - truth) ** 2).mean())
    one = single.levels[-1]
    assert np.mean(squares) < 0.83 * (64 * one.variance + one.per_person * truth.mean())


def areas_of(cells: NDArray[Any]) -> NDArray[Any]:
    """Return the sums of a map of 32 x 32 cells in sixteen areas."""
    found: NDArray[Any] = cells.reshape(4, 8, 4, 8).sum(axis=(1, 3))
    return found
