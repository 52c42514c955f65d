"""Users' units: whole, MASS in all, rounded user by user."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ldpspatial.errors import InputError
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.central import quantise
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS, contributions, unit_sums
from tests.support import naive_central as naive

SHAPE = (3, 5)
visits_of_users = st.lists(
    st.lists(st.integers(0, 9), min_size=15, max_size=15).filter(any), min_size=1, max_size=6
)


def users_of(rows: list[list[int]], shape: tuple[int, int] = SHAPE) -> UserCells:
    return UserCells(shape, sparse.csr_array(np.array(rows, dtype=np.int64)))


@settings(max_examples=60)
@given(visits_of_users)
def test_each_user_has_the_units_of_the_twin(rows: list[list[int]]) -> None:
    units = contributions(users_of(rows)).toarray()
    assert units.tolist() == [naive.units(row, MASS) for row in rows]
    assert (units.sum(axis=1) == MASS).all()
    assert np.abs(units / MASS - users_of(rows).distributions.toarray()).max() < 1 / MASS


@settings(max_examples=60)
@given(visits_of_users, st.lists(st.integers(0, 9), min_size=15, max_size=15).filter(any))
def test_one_user_more_changes_every_level_by_exactly_the_mass(
    rows: list[list[int]], added: list[int]
) -> None:
    """Sensitivity: and every sum grows, so the L1 distance is that of the totals."""
    tree = Quadtree(SHAPE)
    before, after = (Pyramid(tree, *unit_sums(users_of(r))) for r in (rows, [*rows, added]))
    for level in range(tree.depth + 1):
        nodes = tree.numbers(level)
        grown = after.sums(level, nodes) - before.sums(level, nodes)
        assert np.abs(grown).sum() == MASS
        assert (grown >= 0).all()


def test_a_user_in_more_cells_than_units_has_no_more_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantise, "MASS", 4)
    assert contributions(users_of([[1] * 15])).toarray().tolist() == [[1] * 4 + [0] * 11]
    assert contributions(users_of([[1] * 14 + [2]])).toarray().sum() == 4


def test_rounding_does_not_depend_on_the_other_users_nor_on_the_order_of_entries() -> None:
    rows = [[1, 2, 4] + [0] * 12, [0, 3, 3, 1] + [0] * 11]
    together = contributions(users_of(rows)).toarray()
    assert together[1].tolist() == contributions(users_of(rows[1:])).toarray()[0].tolist()
    shuffled = sparse.csr_array(
        (np.array([4, 1, 2]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 15)
    )
    assert contributions(UserCells(SHAPE, shuffled)).toarray()[0].tolist() == together[0].tolist()


def test_sums_name_the_cells_that_hold_something() -> None:
    people = cells_by_user(["a", "b", "b", "c"], [7, 7, 2, 14], SHAPE)
    cells, units = unit_sums(people)
    assert cells.tolist() == [2, 7, 14]
    assert units.tolist() == [MASS // 2, MASS + MASS // 2, MASS]


def test_any_number_of_visits_fits() -> None:
    row = [2**41, 2**41] + [0] * 13
    for more in (0, 1, 2**40):  # beyond 2^42 the last digits are dropped
        row[2] = more
        units = contributions(users_of([row])).toarray()[0]
        assert units.sum() == MASS
        assert units[:3].tolist() == pytest.approx(
            [MASS * share / sum(row) for share in row[:3]], abs=1
        )
    huge = contributions(users_of([[2**62] * 8 + [0] * 7]))  # their sum is 0 in 64 bits
    assert huge.toarray()[0].tolist() == [MASS // 8] * 8 + [0] * 7


def test_others_do_not_change_a_users_units() -> None:
    alone = contributions(users_of([[1, 2] + [0] * 13])).toarray()
    beside = contributions(users_of([[1, 2] + [0] * 13, [2**62] * 15])).toarray()
    assert (beside[0] == alone[0]).all()


@pytest.mark.parametrize("bad", [0, -1])
def test_visits_below_one_are_refused(bad: int) -> None:
    """A negative one would let a user's units go beyond the mass."""
    visits = sparse.csr_array((np.array([bad, 5]), np.array([0, 1]), np.array([0, 2])), (1, 15))
    with pytest.raises(InputError, match=f"visits must be at least 1, got {bad}"):
        contributions(UserCells(SHAPE, visits))


def test_visits_just_beyond_what_fits_do_not_wrap() -> None:
    units = contributions(users_of([[2**43, 2**43 - 1] + [0] * 13])).toarray()[0]
    assert units.sum() == MASS
    assert (units >= 0).all()
