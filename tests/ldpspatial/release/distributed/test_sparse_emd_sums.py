"""Sparse EMD over secure sums: the central program on the sums of shards."""

import numpy as np
import pytest

from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.central import SparseEmd
from ldpspatial.release.distributed import Cohort, SparseEmdSums


def town(users: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    places = rng.integers(0, 32 * 32, 6)
    return places[rng.integers(0, 6, users)]


def test_much_epsilon_gives_the_map_of_the_central_program() -> None:
    people = cells_by_user(np.arange(4000), town(4000), (32, 32))
    summed = SparseEmdSums(Cohort()).release(people, 20.0, np.random.default_rng(1))
    central = SparseEmd().release(people, 20.0, np.random.default_rng(1))
    assert np.abs(summed.density - central.density).sum() < 0.01
    assert np.abs(summed.density - people.density).sum() < 0.01


def test_errors_are_those_of_the_central_model_at_one_shard() -> None:
    """The noise has the same law but for rounding: mean L1 errors of 30 runs within a fifth."""
    people = cells_by_user(np.arange(2000), town(2000), (32, 32))
    errors = []
    for release in (SparseEmdSums(Cohort(shard_size=2000)), SparseEmd()):
        rng = np.random.default_rng(2)
        runs = [release.release(people, 0.1, rng).density for _ in range(30)]
        errors.append(np.mean([np.abs(run - people.density).sum() for run in runs]))
    assert errors[0] == pytest.approx(errors[1], rel=0.2)


def test_the_claim_is_what_was_spent_and_vectors_are_short() -> None:
    people = cells_by_user(np.arange(500), town(500), (32, 32))
    run = SparseEmdSums(keep=4).release(people, 1.0000009, np.random.default_rng(1))
    assert run.claim.epsilon == 1.0
    assert run.claim.neighbours == "zero"
    assert run.facts["rounds"] == 5
    assert run.facts["vector_length"] == 4 + 4 * 16
    assert sum(map(int, str(run.facts["micro epsilons"]).split())) == 10**6


def test_no_survivors_give_a_uniform_map() -> None:
    people = cells_by_user(np.arange(500), town(500), (32, 32))
    cohort = Cohort(drop_out=0.5, tolerated=0.1)
    run = SparseEmdSums(cohort).release(people, 1.0, np.random.default_rng(1))
    assert run.density == pytest.approx(np.full((32, 32), 1 / 1024))


@pytest.mark.parametrize("field", ["keep", "decay", "cohort"])
def test_bad_fields_are_refused(field: str) -> None:
    with pytest.raises(InputError, match=f"{field} must"):
        SparseEmdSums(**{field: 0})
