"""What all releases by one visit a user owe: their claim, to the letter and in samples."""

from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.distributed.levels.adaptive_grid import AdaptiveGrid
from ldpspatial.release.distributed.levels.flat import Flat
from ldpspatial.release.distributed.levels.hierarchical import (
    Hierarchical,
    HierarchicalOracle,
    NonPrivateBestLevel,
)
from ldpspatial.release.distributed.levels.one_visit import OneVisit
from ldpspatial.release.distributed.levels.sketch import CountMin, CountMinMinimum, CountMinOracle
from ldpspatial.release.distributed.levels.spatial_decomposition import (
    SpatialDecomposition,
    SpatialDecompositionLeaves,
    SpatialDecompositionOracle,
)
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support.cohorts import Call, Deaf, Recording, log_likelihood_ratio, replays

PRIVATE: list[OneVisit] = [
    Flat(),
    Hierarchical(),
    SpatialDecomposition(),
    SpatialDecompositionLeaves(),
    CountMin(width=40, depth=4),
    CountMin(width=40, depth=4, per_level=True),
    CountMinMinimum(width=40, depth=4),
    AdaptiveGrid(blocks=3),
    AdaptiveGrid(blocks=3, alpha=0.2, consistent=True),
]
ORACLES: list[OneVisit] = [
    HierarchicalOracle(),
    SpatialDecompositionOracle(),
    CountMinOracle(width=40, depth=4),
    NonPrivateBestLevel(),
]
every_private = pytest.mark.parametrize("release", PRIVATE, ids=str)
every_release = pytest.mark.parametrize("release", PRIVATE + ORACLES, ids=str)


def people(shape: tuple[int, int], users: int, seed: int) -> UserCells:
    """Users with one to three visits."""
    rng = np.random.default_rng(seed)
    who = np.concatenate([np.arange(users), rng.integers(users, size=users)])
    return cells_by_user(who, rng.integers(shape[0] * shape[1], size=len(who)), shape)


@every_release
@settings(max_examples=12)
@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.integers(1, 40),
    st.floats(0.001, 20),
    st.integers(0, 2**32 - 1),
)
def test_a_density_comes_out(
    release: OneVisit, shape: tuple[int, int], users: int, epsilon: float, seed: int
) -> None:
    crowd = people(shape, users, seed)
    everybody = replace(release, cohort=Cohort())
    released = everybody.release(crowd, epsilon, np.random.default_rng(seed))
    assert released.density.shape == shape
    assert released.density.min() >= 0
    assert released.density.sum() == pytest.approx(1, abs=1e-9)
    assert released.facts["survivors"] == users
    assert released.claim.model == release.model
    assert released.claim.epsilon <= epsilon or release.model == "none"


@every_private
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.345678])
def test_no_client_loses_more_than_is_claimed(release: OneVisit, epsilon: float) -> None:
    """Exactly: each sum costs a client its L1 norm by the scale of the noise, and they add up."""
    recording = Recording()
    released = replace(release, cohort=recording).release(
        people((6, 5), 30, 1), epsilon, np.random.default_rng(2)
    )
    spent = sum(Fraction(call.epsilon) for call in recording.calls)
    assert float(spent) <= epsilon * (1 + 1e-15)
    assert float(spent) > 0.999 * epsilon
    assert all(call.loss <= call.epsilon for call in recording.calls)
    assert released.claim.epsilon == pytest.approx(float(spent), rel=1e-15)
    assert released.facts["vector_length"] == sum(len(c.found.counts) for c in recording.calls)


@every_private
def test_nothing_but_the_sums_shows(release: OneVisit) -> None:
    """Where sums do not depend on the data, nor does the map: what follows is post-processing."""
    deaf = replace(release, cohort=Deaf())
    here, there = (cells_by_user(range(200), [cell] * 200, (6, 5)) for cell in (0, 29))
    first, second = (deaf.release(crowd, 1.0, np.random.default_rng(3)) for crowd in (here, there))
    assert (first.density == second.density).all()
    assert first.facts == second.facts
    aware = replace(release, cohort=Cohort())
    maps = [aware.release(crowd, 20.0, np.random.default_rng(3)).density for crowd in (here, there)]
    assert (maps[0] != maps[1]).any()


def calls_of(release: OneVisit) -> list[Call]:
    """Sums of a run on a map of two levels, or of one where losses would be spread too thin."""
    recording, side = Recording(), 2 if isinstance(release, CountMin) else 4
    crowd = cells_by_user([0, 1, 2], [1, 2, 2], (side, side))
    replace(release, cohort=recording).release(crowd, 2.0, np.random.default_rng(4))
    return recording.calls


def shown(calls: list[Call], repeats: int, rng: np.random.Generator) -> float:
    """Lower bound on epsilon from sums with a client's report and with zeros in its place.

    The statistic is the likelihood ratio of all sums together: no other tells the two better apart.
    """
    with_report, without = np.zeros(repeats), np.zeros(repeats)
    for call in calls:
        drawn = replays(call, 0, repeats, rng)
        with_report += log_likelihood_ratio(call, 0, drawn[0])
        without += log_likelihood_ratio(call, 0, drawn[1])
    return lower_bound_epsilon(with_report, without)


@every_private
def test_a_report_and_zeros_are_as_hard_to_tell_apart_as_claimed(release: OneVisit) -> None:
    """False alarm 1e-6 each; with noise of half the scale the bound is above 2 (seen: above 3)."""
    calls, rng = calls_of(release), np.random.default_rng(5)
    assert 1.3 < shown(calls, 40_000, rng) <= 2.0
    halved = [replace(call, epsilon=2 * call.epsilon) for call in calls]
    assert shown(halved, 40_000, rng) > 2.5


@every_release
def test_claims_say_what_they_are(release: OneVisit) -> None:
    claim = release.claim(1.5)
    if release in ORACLES:
        assert (release.model, claim.model, claim.epsilon) == ("none", "none", inf)
        assert str(claim) == "no privacy"
        assert "truth" in claim.conditions[0]
    else:
        assert (claim.model, claim.epsilon, claim.delta) == ("distributed", 1.5, 0.0)
        assert (claim.unit, claim.neighbours) == ("user", "zero")
        assert any("one visit a user" in condition for condition in claim.conditions)
        shards = replace(release, cohort=Cohort(shard_size=7)).claim_of(1.5, 20).conditions
        assert any("3 disjoint shards" in condition for condition in shards)


def test_names_are_those_of_the_registry() -> None:
    names = [release.name for release in PRIVATE + ORACLES]
    assert list(dict.fromkeys(names)) == [
        "flat",
        "hierarchical",
        "spatial-decomposition",
        "spatial-decomposition-leaves",
        "count-min",
        "count-min-minimum",
        "adaptive-grid",
        "hierarchical-oracle",
        "spatial-decomposition-oracle",
        "count-min-oracle",
        "non-private-best-level",
    ]


@every_private
def test_where_every_shard_is_withheld_the_map_is_uniform(release: OneVisit) -> None:
    withheld = replace(release, cohort=Cohort(drop_out=0.99))
    released = withheld.release(people((4, 3), 40, 6), 1.0, np.random.default_rng(7))
    assert released.facts["survivors"] == 0
    assert released.density == pytest.approx(np.full((4, 3), 1 / 12))


@every_private
def test_with_drop_outs_the_map_is_of_those_who_stay(release: OneVisit) -> None:
    some = replace(release, cohort=Cohort(shard_size=500, drop_out=0.1, tolerated=0.2))
    crowd = cells_by_user(range(2000), np.repeat([0, 15], 1000), (4, 4))
    released = some.release(crowd, 20.0, np.random.default_rng(8))
    assert 1700 < int(released.facts["survivors"]) < 1900
    if not isinstance(release, CountMin):  # a table as small as here shows too little
        assert abs(released.density.ravel()[[0, 15]] - 0.5).max() < 0.1


@every_release
def test_runs_repeat_from_their_generator(release: OneVisit) -> None:
    crowd = people((5, 5), 50, 9)
    first, again, other = (
        release.release(crowd, 1.0, np.random.default_rng(seed)).density for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert first.shape == other.shape


@every_release
def test_bad_arguments_are_refused(release: OneVisit) -> None:
    crowd = people((4, 4), 5, 10)
    with pytest.raises(InputError, match="epsilon must be a positive finite number, got -1"):
        release.release(crowd, -1, np.random.default_rng(1))
    with pytest.raises(InputError, match="rng must be a numpy Generator, got int"):
        release.release(crowd, 1.0, 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="epsilon must be a positive finite number"):
        release.claim(inf)


def test_positions_on_a_grid_will_do() -> None:
    grid, rng = Grid.plane(0, 0, 4.0, 4), np.random.default_rng(11)
    points = np.full((3000, 2), 0.5)
    assert Hierarchical().run(points, grid, 4.0, rng).density[0, 0] > 0.9
