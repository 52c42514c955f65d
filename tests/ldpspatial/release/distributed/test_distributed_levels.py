"""What the recommended distributed release hands to its map: the law of its sums."""

import numpy as np
import pytest

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
