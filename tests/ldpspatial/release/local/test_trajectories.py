"""What releases of trajectories share: paths, sampling of visits, shares of epsilon."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.local.trajectories import trajectory_release as shared
from ldpspatial.release.local.trajectories.dam_trajectory import DamPoints, DamTrajectory
from ldpspatial.release.local.trajectories.ldptrace import LdpTrace
from ldpspatial.release.local.trajectories.pivottrace import PivotTrace
from ldpspatial.release.release import Release
from tests.support import naive_local_trails as naive

RELEASES: list[Release] = [
    *(DamTrajectory(), DamTrajectory(slots=3), DamPoints(), PivotTrace(), PivotTrace(2, 3)),
    *(LdpTrace("all"), LdpTrace(), LdpTrace(weigh="visit", most_points=5)),
]
every_release = pytest.mark.parametrize("release", RELEASES, ids=repr)


def wanderers(side: int, users: int, seed: int = 1) -> UserCells:
    """Users of one to twelve visits each."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 13, users)
    who = np.repeat(np.arange(users), lengths)
    return cells_by_user(who, rng.integers(0, side**2, len(who)), (side, side))


@every_release
@pytest.mark.parametrize("side", [1, 2, 3, 10])
@pytest.mark.parametrize("users", [1, 40])
def test_maps_of_any_side_and_any_number_of_users(release: Release, side: int, users: int) -> None:
    people = wanderers(side, users)
    before = people.visits.copy()
    for epsilon in (0.001, 1.0, 20.0):
        found = release.release(people, epsilon, np.random.default_rng(2))
        assert found.density.shape == (side, side)
        assert found.density.min() >= 0
        assert found.density.sum() == pytest.approx(1, abs=1e-9)
        assert found.claim == release.claim(epsilon)
        assert "estimator" in found.facts
        assert release.local_privacy(side, epsilon) >= 0  # type: ignore[attr-defined]
    assert (people.visits != before).nnz == 0


@every_release
def test_one_visit_is_a_trajectory(release: Release) -> None:
    people = cells_by_user(np.arange(30), np.arange(30) % 16, (4, 4))
    assert release.release(people, 2.0, np.random.default_rng(1)).density.sum() == pytest.approx(1)


@every_release
def test_equal_seeds_give_equal_maps(release: Release) -> None:
    people = wanderers(4, 50)
    first, again, other = (
        release.release(people, 5.0, np.random.default_rng(seed)).density for seed in (3, 3, 4)
    )
    assert (first == again).all()
    assert (first != other).any()


@every_release
def test_what_holds_no_trajectories_is_refused(release: Release) -> None:
    people, rng = wanderers(3, 5), np.random.default_rng(1)
    with pytest.raises(InputError, match="needs the visits in order: users must hold trails"):
        release.release(UserCells(people.shape, people.visits), 1.0, rng)
    with pytest.raises(InputError, match="needs a square map, got 2 x 3 cells"):
        release.release(cells_by_user([0], [0], (2, 3)), 1.0, rng)
    with pytest.raises(InputError, match="at least one user, got none"):
        release.release(cells_by_user([], np.array([], int), (2, 2)), 1.0, rng)


@every_release
@pytest.mark.parametrize("epsilon", [0, -1.0, float("inf"), float("nan"), "1", None, True, 21.0])
def test_bad_epsilons_are_refused(release: Release, epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        release.claim(epsilon)


@every_release
def test_the_claim_is_of_the_trajectory_or_says_that_it_is_not(release: Release) -> None:
    claim = release.claim(1.0)
    assert (claim.model, claim.epsilon, claim.delta, claim.neighbours) == ("local", 1, 0, "replace")
    if release.name == "dam-points":
        assert claim.unit == "report"
        assert any("T times epsilon" in words for words in claim.conditions)
    else:
        assert claim.unit == "trajectory"
        assert shared.SAME_REPORTS in claim.conditions


def test_the_smallest_epsilon_and_what_is_too_small_to_divide() -> None:
    people, rng = wanderers(3, 20), np.random.default_rng(1)
    for release in (DamTrajectory(), DamPoints(), PivotTrace()):
        assert release.release(people, 1e-6, rng).density.sum() == pytest.approx(1)
    refused = (
        (DamTrajectory(slots=4), "4e-06"),
        (LdpTrace("one"), "1e-05"),
        (LdpTrace("all", most_points=256), "0.000285556"),
    )
    for release, least in refused:
        with pytest.raises(InputError, match=f"epsilon must be more than {least}"):
            release.release(people, 1e-6, rng)


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(1, 25), st.data())
def test_paths_are_those_of_the_slow_twin(side: int, most: int, data: st.DataObject) -> None:
    cell = st.integers(0, side * side - 1)
    users = data.draw(st.lists(st.lists(cell, min_size=1, max_size=6), min_size=1, max_size=4))
    found = shared.adjacent_moves(naive.trails(*users), side, most)
    assert len(found) == len(users)
    for k, user in enumerate(users):
        assert found.of(k).tolist() == naive.king_path(user, side, most)
    again = shared.adjacent_moves(found, side, most)
    assert again.cells.tolist() == found.cells.tolist()


def test_a_jump_becomes_as_long_as_its_way_and_a_stay_stays_a_point() -> None:
    found = shared.adjacent_moves(naive.trails([0, 24, 24]), 5, 100)
    assert found.cells.tolist() == [0, 6, 12, 18, 24, 24]


def test_evenly_spaced_visits() -> None:
    trails = naive.trails([7], [1, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8])
    assert shared.evenly_spaced(trails, 5).tolist() == [[7] * 5, [1, 1, 1, 2, 2], [0, 2, 4, 6, 8]]
    assert shared.evenly_spaced(trails, 1).tolist() == [[7], [1], [4]]


def test_drawn_visits_are_uniform_and_stay_in_their_trajectory() -> None:
    trails = naive.trails([3], [4, 5, 6, 4], [8, 9])
    found = shared.drawn_visits(trails, 8000, np.random.default_rng(1))
    assert set(found[0]) == {3}
    counts = np.bincount(found[1], minlength=10)[[4, 5, 6]]
    assert stats.chisquare(counts, [4000, 2000, 2000]).pvalue > 1e-6
    assert stats.chisquare(counts, np.full(3, 8000 / 3)).pvalue < 1e-6  # distinct cells alike
    assert set(found[2]) == {8, 9}


def test_the_map_of_trajectories_weighs_users_or_visits() -> None:
    trails = naive.trails([0], [1, 1, 2, 3])
    assert shared.density_of(trails, 4, "user").tolist() == [0.5, 0.25, 0.125, 0.125]
    assert shared.density_of(trails, 4, "visit").tolist() == [0.2, 0.4, 0.2, 0.2]


@given(st.floats(1e-6, 20), st.integers(1, 70_000))
def test_shares_never_add_up_to_more(epsilon: float, parts: int) -> None:
    share = shared.share_of(epsilon, Fraction(1, parts))
    assert Fraction(share) * parts <= Fraction(epsilon)
    assert share * parts == pytest.approx(epsilon, rel=1e-12)


def test_no_error_shows_a_position() -> None:
    with pytest.raises(InputError) as error:
        shared.trails_of("ldptrace", UserCells((3, 3), wanderers(3, 5).visits))
    assert str(error.value).endswith("users must hold trails, got None")


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int8, int])
def test_shares_of_numbers_of_numpy(kind: type) -> None:
    tenth = Fraction(1, 10)
    assert shared.share_of(kind(2), tenth) == shared.share_of(2.0, tenth)
    assert LdpTrace().claim(kind(2)).epsilon == 2
