"""What the recommended distributed release hands to its map: the law of its sums."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.distributed import REALISTIC, Cohort, DistributedLevels, TwoServers
from tests.support.cohorts import Recording, log_likelihood_ratio, replays


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


# --- each client asked once


def crowd_of(clients: int, side: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return cells of people who are mostly near one corner."""
    at = np.minimum(rng.exponential(side / 6, (clients, 2)).astype(np.int64), side - 1)
    found: NDArray[Any] = at[:, 0] * side + at[:, 1]
    return found


@pytest.mark.parametrize("clients", [1, 2, 9, 5000])
@pytest.mark.parametrize("aim", ["distance", "cells"])
def test_asked_once_each_client_answers_in_one_round(clients: int, aim: Any) -> None:
    """Rows of the rounds are of clients who were not asked before, at all of epsilon."""
    cells = crowd_of(clients, 16, np.random.default_rng(1))
    users = cells_by_user(range(clients), cells, (16, 16))
    for epsilon in (0.05, 2.0):
        cohort = Recording(shard_size=1000)
        release = DistributedLevels(cohort, aim, "once")
        run = release.release(users, epsilon, np.random.default_rng(2))
        rows = [call.contributions.shape[0] for call in cohort.calls]
        assert sum(rows) == clients == run.facts["survivors"]
        assert min(rows) > 0
        assert len(rows) == run.facts["rounds"]
        assert all(call.epsilon == epsilon for call in cohort.calls)
        assert all(call.contributions.sum(axis=1).max() <= 1 for call in cohort.calls)
        assert run.claim.epsilon == epsilon


def test_asked_once_the_people_of_all_rounds_are_all_people() -> None:
    """Nodes of wide areas and all cells are asked: their sums without noise add up to the people.

    Each client is asked for one of them, so no person is counted twice, and none is left out.
    """
    cells = np.random.default_rng(1).integers(0, 1024, 30_000)
    users = cells_by_user(range(len(cells)), cells, (32, 32))
    cohort = Recording()
    DistributedLevels(cohort, asked="once").release(users, 1.0, np.random.default_rng(2))
    wide, single = (np.asarray(call.contributions.sum(axis=0)) for call in cohort.calls)
    assert (len(wide), len(single), wide.sum(), single.sum()) == (16, 1024, 3000, 27_000)
    people = users.density * len(cells)
    left = people.reshape(4, 8, 4, 8).sum(axis=(1, 3)).ravel()
    rows, columns = np.divmod(np.arange(16), 4)
    by_area = {int(n): k for k, n in enumerate(morton(rows, columns))}
    of_area = np.array([by_area[k] for k in range(16)])
    of_single = np.bincount(np.arange(1024) >> 6, single, minlength=16)
    assert (wide + of_single).tolist() == left[of_area].round().astype(int).tolist()


def morton(rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of the nodes of level 2: two bits a level, the row's first."""
    found = (rows >> 1 << 3) + (columns >> 1 << 2) + ((rows & 1) << 1) + (columns & 1)
    return np.asarray(found)


def test_who_is_asked_first_is_drawn() -> None:
    """Of four clients each is in the first round as often: false alarm 1e-6."""
    users = cells_by_user(range(4), [0, 5, 10, 15], (4, 4))
    cohort = Recording()
    release = DistributedLevels(cohort, asked="once")
    first = np.zeros(16)
    for seed in range(400):
        before = len(cohort.calls)
        release.release(users, 200.0, np.random.default_rng(seed))
        assert len(cohort.calls) - before == 1 or cohort.calls[before].contributions.shape[0] < 4
        first += np.asarray(cohort.calls[before].contributions.sum(axis=0))
    counted = first[first > 0]
    assert len(counted) == 4
    assert ((counted - counted.mean()) ** 2).sum() / counted.mean() < 30.7


@pytest.mark.parametrize("asked", ["once", "every round"])
def test_a_client_loses_no_more_than_epsilon(asked: Any) -> None:
    """By the best statistic there is, of all rounds that ask it; one false alarm in 10^6."""
    users = cells_by_user(range(6), [0, 5, 15, 3, 9, 14], (4, 4))
    recording = Recording()
    release = DistributedLevels(recording, asked=asked)
    claim = release.release(users, 2.0, np.random.default_rng(4)).claim
    rng = np.random.default_rng(5)
    ratios = np.zeros((2, 40_000))
    for call in recording.calls:
        of_call = [log_likelihood_ratio(call, 0, sums) for sums in replays(call, 0, 40_000, rng)]
        ratios += of_call
    assert 1.0 < lower_bound_epsilon(*ratios) <= claim.epsilon == 2.0


def test_the_claim_says_that_nobody_is_asked_twice() -> None:
    for release in (DistributedLevels(asked="once"), TwoServers(asked="once")):
        words = " ".join(release.claim(1.5).conditions)
        assert "each user is asked in one round" in words
        assert release.claim(1.5).epsilon == 1.5
    assert "one round" not in " ".join(DistributedLevels().claim(1.5).conditions)
    with pytest.raises(InputError, match="asked must be"):
        DistributedLevels(asked="twice")  # type: ignore[arg-type]


def test_asked_once_sums_stand_for_all_people() -> None:
    """Each level's sums are without bias, and off by as much as they say: 1e-6 a check."""
    cells = crowd_of(20_000, 32, np.random.default_rng(1))
    users = cells_by_user(range(len(cells)), cells, (32, 32))
    release = DistributedLevels(Cohort(1000, drop_out=0.1, tolerated=0.3), asked="once")
    off: dict[int, list[float]] = {}
    for seed in range(60):
        levels = release.release(users, 0.5, np.random.default_rng(seed)).levels
        assert levels is not None
        people = users.density * len(cells)
        for level in levels.levels[1:]:
            if np.isfinite(level.variance):
                truth = levels.tree.pooled(level.level, level.nodes, people)
                variance = level.variance + level.per_person * truth
                # Of a node that was divided as its sum was high, the children are as they are.
                off.setdefault(level.level, []).append(
                    float((level.sums - truth).sum() / np.sqrt(variance.sum()))
                )
    assert len(off) > 1
    for errors in off.values():
        assert abs(np.mean(errors)) < 4.9 / np.sqrt(len(errors))
        assert np.mean(np.square(errors)) < 2.1  # chi squared of 60


def test_asked_once_finer_levels_have_less_noise_where_shards_are_many() -> None:
    """Half as much noise costs a quarter of the people, and half of epsilon: by ten shards."""
    cells = crowd_of(100_000, 64, np.random.default_rng(1))
    users = cells_by_user(range(len(cells)), cells, (64, 64))
    noise = {}
    for asked in ("once", "every round"):
        run = DistributedLevels(asked=asked).release(  # type: ignore[arg-type]
            users, 0.1, np.random.default_rng(2)
        )
        assert run.levels is not None
        found = [each.variance for each in run.levels.levels[1:] if np.isfinite(each.variance)]
        noise[asked] = found[0]
    assert noise["once"] < 0.95 * noise["every round"]
