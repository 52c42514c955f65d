"""Users on a grid: who counts how much."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.places.points import Points
from ldpspatial.places.users import UserCells, cells_by_user, counts_within, user_cells
from ldpspatial.release.central import CentralLevels

PLANE = Grid.plane(0, 0, 4.0, 4)
VISITS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 11)), min_size=1, max_size=40)


def test_every_user_weighs_the_same_however_many_visits() -> None:
    users = user_cells((["a", "b", "a", "a"], [[0, 0], [3, 3], [0, 0], [0, 1]]), PLANE)
    assert len(users) == 2
    assert users.density[0, 0] == pytest.approx(1 / 3)
    assert users.density[0, 1] == pytest.approx(1 / 6)
    assert users.density[3, 3] == 0.5


def test_without_ids_every_row_is_a_user() -> None:
    users = user_cells([[0.5, 0.5], [0.6, 0.6], [3.5, 0.5]], PLANE)
    assert len(users) == 3
    assert users.density[0, 0] == pytest.approx(2 / 3)
    assert users.density[3, 0] == pytest.approx(1 / 3)


def test_points_bring_their_users() -> None:
    points = Points(np.array([[0.5, 0.5], [1.5, 0.5]]), np.array([7, 7]))
    assert len(user_cells(points, PLANE)) == 1


def test_positions_outside_are_left_out_and_users_without_any_other_too() -> None:
    users = user_cells((["a", "b", "a"], [[0.5, 0.5], [9, 9], [9, 0]]), PLANE)
    assert (len(users), users.outside, users.users_outside) == (1, 2, 1)
    sampled = users.sample(1, np.random.default_rng(1))
    assert (sampled.outside, sampled.users_outside) == (2, 1)
    assert users.density[0, 0] == 1


def test_its_printed_form_hides_where_people_are() -> None:
    assert repr(user_cells([[1.5, 2.5]], PLANE)) == "UserCells(1 users on 4 x 4 cells, 0 outside)"


@given(VISITS)
def test_densities_and_distributions_by_hand(visits: list[tuple[int, int]]) -> None:
    who, where = map(np.array, zip(*visits, strict=True))
    users = cells_by_user(who, where, (3, 4))
    expected = np.zeros(12)
    people = sorted(set(who))
    for row, person in enumerate(people):
        own = np.bincount(where[who == person], minlength=12) / (who == person).sum()
        expected += own / len(people)
        assert users.distributions[[row]].toarray()[0] == pytest.approx(own)
        assert (
            users.visits[[row]].toarray()[0].max() == users.visits[row, users.most_visited()[row]]
        )
    assert users.density.ravel() == pytest.approx(expected)
    assert users.density.sum() == pytest.approx(1)


def test_one_cell_each_follows_the_users_own_shares() -> None:
    # Chi-square over 20,000 draws of three users, false alarm 1e-6.
    users = cells_by_user([0] * 6 + [1] + [2] * 4, [0, 0, 0, 5, 5, 7, 2, 1, 1, 1, 3], (2, 4))
    rng = np.random.default_rng(3)
    drawn = np.array([users.one_cell_each(rng) for _ in range(20_000)])
    assert (drawn[:, 1] == 2).all()
    for row in (0, 2):
        law = users.distributions[[row]].toarray()[0]
        counts = np.bincount(drawn[:, row], minlength=8)
        assert not counts[law == 0].any()
        found = counts[law > 0], law[law > 0] * len(drawn)
        assert stats.chisquare(*found).pvalue > 1e-6


def test_visits_beyond_64_bits_in_all_neither_wrap_nor_stop_anybody() -> None:
    visits = sparse.csr_array(np.array([[2**62] * 4, [2**63 - 1, 1, 0, 0], [0, 0, 0, 1]]))
    users = UserCells((2, 2), visits)
    assert users.density.sum() == pytest.approx(1)
    assert users.density.min() >= 0
    drawn = np.array([users.one_cell_each(np.random.default_rng(k)) for k in range(400)])
    assert set(drawn[:, 0]) == {0, 1, 2, 3}
    assert set(drawn[:, 1]) == {0}
    assert set(drawn[:, 2]) == {3}


def test_a_sample_is_of_different_users() -> None:
    users = cells_by_user(np.arange(12), np.arange(12), (3, 4))
    chosen = users.sample(5, np.random.default_rng(1))
    assert len(chosen) == 5
    assert sorted(chosen.density.ravel())[-5:] == pytest.approx([0.2] * 5)
    for bad in (0, 13):
        with pytest.raises(InputError, match="users must be a whole number from 1 to 12, got"):
            users.sample(bad, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ((["a"], [[0.5, 0.5], [1, 1]]), "ids"),
        ([[9.0, 9.0]], "outside"),
        ([[0.5, float("nan")]], "finite"),
    ],
)
def test_bad_positions(points: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        user_cells(points, PLANE)  # type: ignore[arg-type]


@pytest.mark.parametrize("ids", [["a", 1], [1.0, float("nan")], [1], 5, [[1], [2]]])
def test_bad_ids(ids: object) -> None:
    with pytest.raises(InputError, match="user ids must"):
        cells_by_user(np.array(ids, dtype=object if ids == ["a", 1] else None), [0, 1], (3, 4))


def test_nobody_is_an_input_too_but_has_no_density() -> None:
    nobody = cells_by_user([], [], (3, 4))
    assert len(nobody) == 0
    with pytest.raises(InputError, match="users must hold at least one user"):
        _ = nobody.density


@pytest.mark.parametrize("ids", [np.ones((2, 1)), 5, [["a"], ["b"]]])
def test_ids_of_a_wrong_shape_are_refused_as_ids(ids: Any) -> None:
    """And not as bad points, which the message named before."""
    with pytest.raises(InputError, match=r"user ids must have shape \(2,\), one a position"):
        user_cells((ids, [[0.5, 0.5], [1.5, 0.5]]), PLANE)


def test_a_broken_position_is_outside_and_in_no_cell() -> None:
    points = [[np.nan, 1.0], [1.5, np.inf], [2.5, 2.5]]
    users = user_cells(points, Grid.plane(0, 0, 4.0, 4), may_be_empty=True)
    assert (len(users), users.outside) == (1, 2)
    assert users.visits.indices.tolist() == [10]


def test_no_user_has_more_than_the_most() -> None:
    visits = sparse.csr_array(np.array([[3, 3], [2, 2], [4, 5]]))
    assert counts_within(visits, 4).tolist() == [1, 1, 2, 2, 1, 1]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "uint32", "uint64"])
def test_visits_of_any_whole_type_are_counted_alike(kind: str) -> None:
    visits = np.array([[3, 100], [2, 2]])
    narrow = sparse.csr_array(visits.astype(kind))
    assert (
        counts_within(narrow, 50).tolist() == counts_within(sparse.csr_array(visits), 50).tolist()
    )
    run = CentralLevels().release(UserCells((1, 2), narrow), 20.0, np.random.default_rng(1))
    assert run.density.sum() == pytest.approx(1)


def test_visits_of_many_stay_in_the_order_of_time() -> None:
    who, cells = np.arange(1000) % 3, np.random.default_rng(1).integers(0, 64, 1000)
    trails = cells_by_user(who, cells, (8, 8)).trails
    assert trails is not None
    for user in range(3):
        assert trails.of(user).tolist() == cells[user::3].tolist()


def test_a_sample_keeps_the_trails_of_its_users() -> None:
    who = np.repeat(np.arange(8), [5, 1, 4, 2, 7, 3, 6, 2])
    cells = np.random.default_rng(2).integers(0, 12, len(who))
    users = cells_by_user(who, cells, (3, 4))
    chosen = users.sample(4, np.random.default_rng(1))
    assert users.trails is not None
    assert chosen.trails is not None
    kept = [chosen.trails.of(user).tolist() for user in range(4)]
    every = [users.trails.of(user).tolist() for user in range(8)]
    assert kept == [every[user] for user in sorted(map(every.index, kept))]
    for trail, visits in zip(kept, chosen.visits.toarray(), strict=True):
        assert np.bincount(trail, minlength=12).tolist() == visits.tolist()


def test_longitudes_of_either_turn_and_far_planes_are_good_positions() -> None:
    city = Grid.from_center(40.7, -74.0, 1000, 4)
    for longitude in (-74.0, 286.0):
        users = user_cells([[40.701, longitude + 1e-3]], city, may_be_empty=True)
        assert (len(users), users.outside) == (1, 0)
    far = Grid.plane(5e6, 4e5, 4.0, 4)
    assert len(user_cells([[5e6 + 1, 4e5 + 1]], far, may_be_empty=True)) == 1


def test_whole_degrees_beyond_the_earth_are_outside_too() -> None:
    square = Grid.from_bounds(52.0, 13.0, 1.0, 4)
    users = user_cells([[52, 13], [91, 13], [52, 400]], square, may_be_empty=True)
    assert (len(users), users.outside) == (1, 2)
