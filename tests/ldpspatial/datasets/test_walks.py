"""Density-weighted walks: lengths, cells, steps and points."""

import numpy as np
import pytest
from scipy import stats

from client_sdk import Grid
from ldpspatial.datasets import density_walks
from ldpspatial.errors import InputError
from ldpspatial.places.users import user_cells

MAP = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0], [0.0, 1.0, 2.0]])


def cells_and_walks(*args: object, **options: object) -> tuple[np.ndarray, np.ndarray]:
    points = density_walks(*args, **options)  # type: ignore[arg-type]
    side = len(np.asarray(args[0]))
    row, column = np.floor(points.coordinates * side).astype(int).T
    assert points.users is not None
    return row * side + column, points.users


def test_lengths_are_uniform_and_walks_stand_in_order() -> None:
    _, users = cells_and_walks(MAP, 6000, np.random.default_rng(1), shortest=2, longest=5)
    assert (np.diff(users) >= 0).all()
    counts = np.bincount(np.bincount(users))
    assert counts[:2].tolist() == [0, 0]
    assert stats.chisquare(counts[2:]).pvalue > 1e-6
    assert len(counts) == 6


def test_steps_go_to_neighbours_in_proportion_to_their_points() -> None:
    cells, users = cells_and_walks(MAP, 4000, np.random.default_rng(2), longest=12)
    same = users[1:] == users[:-1]
    before, after = cells[:-1][same], cells[1:][same]
    for cell, law in ((0, {1: 2, 3: 3, 4: 4}), (4, {0: 1, 1: 2, 3: 3, 5: 5, 7: 1, 8: 2})):
        counts = np.bincount(after[before == cell], minlength=9)
        weights = np.array(list(law.values())) / sum(law.values())
        assert counts.sum() == counts[list(law)].sum()
        assert stats.chisquare(counts[list(law)], weights * counts.sum()).pvalue > 1e-6
        even = np.full(len(law), counts.sum() / len(law))  # the test tells neighbours alike
        assert stats.chisquare(counts[list(law)], even).pvalue < 1e-6


def test_starts_are_uniform_among_cells_with_points_and_points_within_cells() -> None:
    rng = np.random.default_rng(3)
    cells, _ = cells_and_walks(MAP, 7000, rng, shortest=1, longest=1)
    assert stats.chisquare(np.bincount(cells, minlength=9)[MAP.ravel() > 0]).pvalue > 1e-6
    at = density_walks(MAP, 7000, rng, 1, 1).coordinates * 3 % 1
    assert stats.kstest(at.ravel(), "uniform").pvalue > 1e-6


def test_a_walk_among_empty_cells_stays() -> None:
    lonely = np.zeros((5, 5))
    lonely[1, 3] = 2
    cells, users = cells_and_walks(lonely, 20, np.random.default_rng(1))
    assert set(cells) == {8}
    assert users.max() == 19


def test_the_map_lies_where_it_was_asked_for_and_seeds_repeat() -> None:
    first, again = (
        density_walks(MAP, 50, np.random.default_rng(7), corner=(40, -3), side=6) for _ in range(2)
    )
    assert (first.coordinates == again.coordinates).all()
    users = user_cells(first, Grid.plane(40, -3, 6.0, 3))
    assert users.outside == 0
    assert len(users) == 50
    assert users.trails is not None


def test_masses_of_any_size() -> None:
    for factor in (1e-300, 1e306):
        cells, _ = cells_and_walks(MAP * factor, 20, np.random.default_rng(1))
        assert (MAP.ravel()[cells] > 0).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"density": np.ones((2, 3))}, r"density must be .* of shape \(g, g\), got .* \(2, 3\)"),
        ({"shortest": 9, "longest": 8}, "longest must be a whole number from 9"),
    ],
)
def test_bad_arguments(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"density": MAP, "walks": 3, **changes}
    with pytest.raises(InputError, match=message):
        density_walks(rng=np.random.default_rng(1), **arguments)  # type: ignore[arg-type]
