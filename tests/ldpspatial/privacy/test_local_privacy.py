"""Local privacy: the mean distance of an observer's guess."""

from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.channels.disk import StampChannel
from ldpspatial.errors import InputError
from ldpspatial.privacy.local_privacy import calibrate, cell_distances, local_privacy
from tests.support.naive_local_geo import guess_distance

Array = NDArray[np.float64]


def random_matrix(reports: int, cells: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    matrix = rng.random((reports, cells)) * (rng.random((reports, cells)) < 0.7)
    matrix[0] += 0.1
    matrix[-1] = 0  # a report that nobody gives
    return np.asarray(matrix / matrix.sum(axis=0))


@pytest.mark.parametrize("side", [1, 2, 3])
def test_it_is_the_sum_that_defines_it(side: int) -> None:
    cells = side**2
    matrix = random_matrix(7, cells, side)
    prior = np.random.default_rng(side).random(cells)
    channel = MatrixChannel(matrix, (side, side))
    assert local_privacy(channel) == pytest.approx(
        guess_distance(matrix, side, [1 / cells] * cells), rel=1e-12, abs=1e-15
    )
    assert local_privacy(channel, prior.reshape(side, side)) == pytest.approx(
        guess_distance(matrix, side, (prior / prior.sum()).tolist()), rel=1e-12, abs=1e-15
    )


def test_it_is_the_sum_that_defines_it_for_dam() -> None:
    channel = StampChannel(response_table("dam", 2.0, 3))
    assert local_privacy(channel) == pytest.approx(
        guess_distance(channel.matrix(), 3, [1 / 9] * 9), rel=1e-12
    )


# Five cells in a row, whose 25 pairs are at distance 1.6 on average: 2 (4 + 6 + 6 + 4) / 25.
FIVE = (1, 5)


def test_five_cells_by_hand() -> None:
    says_nothing = MatrixChannel(np.ones((1, 5)), FIVE)
    assert local_privacy(says_nothing) == pytest.approx(1.6)
    says_all = MatrixChannel(np.eye(5), FIVE)
    assert local_privacy(says_all) == 0
    # West (cells 0, 1), middle, or east (3, 4): a guess is half a cell off, where it is a pair.
    says_third = MatrixChannel(
        np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1.0]]), FIVE
    )
    assert local_privacy(says_third) == pytest.approx(0.4)


def test_five_cells_with_a_prior_by_hand() -> None:
    says_nothing = MatrixChannel(np.ones((1, 5)), FIVE)
    ends = [[1, 0, 0, 0, 1]]  # people are at either end: 0 or 4 off
    assert local_privacy(says_nothing, ends) == pytest.approx(2.0)
    assert local_privacy(says_nothing, [[0, 0, 7, 0, 0]]) == 0
    says_ends = MatrixChannel(np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1.0]]), FIVE)
    assert local_privacy(says_ends, ends) == 0


def test_distances_of_cells_that_are_no_square() -> None:
    found = cell_distances((2, 3))
    assert found[0].tolist() == pytest.approx([0, 1, 2, 1, sqrt(2), sqrt(5)])
    assert (found == found.T).all()


@pytest.mark.parametrize(
    ("prior", "rule"),
    [
        ([1, 2, 3], "shape"),
        (np.ones((2, 3)), "shape"),
        (np.zeros((2, 2)), "above 0"),
    ],
)
def test_bad_priors(prior: object, rule: str) -> None:
    channel = MatrixChannel(np.full((2, 4), 0.5), (2, 2))
    with pytest.raises(InputError, match=rf"prior must.*{rule}"):
        local_privacy(channel, prior)  # type: ignore[arg-type]


def test_calibrate_solves_a_falling_function() -> None:
    for target in (1e-3, 0.5, 10.0, 1000.0):
        found = calibrate(lambda epsilon: 1 / epsilon, target, 1e-3, 1e3)
        assert found == pytest.approx(1 / target, rel=1e-12)
    assert calibrate(lambda epsilon: 2 - epsilon, 2 - 0.1, 0.1, 1) == pytest.approx(0.1)
    assert 0.1 <= calibrate(lambda epsilon: 2 - epsilon, 1, 0.1, 1) <= 1


def test_calibrate_finds_where_a_jump_is() -> None:
    found = calibrate(lambda epsilon: 2.0 if epsilon < 0.3 else 1.0, 1.5, 1e-3, 10)
    assert found == pytest.approx(0.3, rel=1e-9)


def test_calibrate_on_a_flat_function_gives_its_lower_bound() -> None:
    assert calibrate(lambda _: 0.0, 0.0, 1e-3, 10) == pytest.approx(1e-3)


def test_calibrate_refuses_what_has_no_answer() -> None:
    with pytest.raises(InputError, match=r"target must lie in \[0\.1, 10\].* got 11"):
        calibrate(lambda epsilon: 1 / epsilon, 11, 0.1, 10)
    for low, high in ((1, 1), (2, 1)):
        with pytest.raises(InputError, match=rf"low must be below high, got {low}\.0 and 1\.0"):
            calibrate(lambda epsilon: 1 / epsilon, 0.5, low, high)
