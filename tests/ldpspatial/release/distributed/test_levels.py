import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpspatial.errors import InputError
from ldpspatial.release.distributed.levels.map_levels import Levels, ones_at
from tests.support import naive_levels as naive

shapes = st.tuples(st.integers(1, 13), st.integers(1, 13))
SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=60)
@given(shapes, SEEDS)
def test_counts_of_every_level_are_those_of_the_twin(shape: tuple[int, int], seed: int) -> None:
    levels, rng = Levels(shape), np.random.default_rng(seed)
    assert levels.depth == naive.depth(shape)
    cells = rng.integers(shape[0] * shape[1], size=9)
    rows = levels.one_hot_all(cells)
    assert rows.shape == (9, levels.length)
    together = levels.split(np.asarray(rows.sum(axis=0)))
    for level in range(1, levels.depth + 1):
        expected = naive.histogram(cells.tolist(), shape, level)
        alone = np.asarray(levels.one_hot(cells, level).sum(axis=0)).reshape(levels.sides(level))
        assert {at: alone[at] for at in np.ndindex(*alone.shape)} == expected
        assert (together[level - 1] == alone).all()
        sizes = levels.areas(level)
        assert {at: sizes[at] for at in np.ndindex(*sizes.shape)} == naive.areas(shape, level)


@settings(max_examples=60)
@given(shapes, SEEDS)
def test_density_spreads_counts_as_the_twin_does(shape: tuple[int, int], seed: int) -> None:
    levels, rng = Levels(shape), np.random.default_rng(seed)
    for level in range(1, levels.depth + 1):
        counts = rng.integers(-4, 6, levels.sides(level)).astype(float)
        density = levels.density(counts, level)
        np.testing.assert_allclose(density, naive.density(counts, shape, level), rtol=1e-12)
        assert density.shape == shape
        assert density.min() >= 0
        assert density.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("counts", [0.0, -3.0])
def test_nothing_positive_is_uniform(counts: float) -> None:
    levels = Levels((3, 5))
    for level in range(levels.depth + 1):
        density = levels.density(np.full(levels.sides(level), counts), level)
        assert density == pytest.approx(np.full((3, 5), 1 / 15))


def test_lengths_of_the_published_table() -> None:
    levels = Levels((1024, 1024))
    assert levels.depth == 10
    assert levels.cells(10) == 1_048_576
    assert levels.length == 1_398_100


def test_squares_outside_of_the_map_carry_no_element() -> None:
    levels = Levels((5, 2))
    assert [levels.sides(level) for level in (0, 1, 2, 3)] == [(1, 1), (2, 1), (3, 1), (5, 2)]
    assert levels.areas(1).tolist() == [[8], [2]]
    assert levels.length == 2 + 3 + 10


def test_a_map_of_one_cell_has_a_level() -> None:
    levels = Levels((1, 1))
    assert (levels.depth, levels.length) == (1, 1)
    assert levels.density([[7]], 1).tolist() == [[1.0]]


def test_places_named_twice_count_twice() -> None:
    rows = ones_at(np.array([[3, 0, 3], [1, 1, 1]]), 4)
    assert rows.toarray().tolist() == [[1, 0, 0, 2], [0, 3, 0, 0]]
    assert rows.dtype == np.int64


@pytest.mark.parametrize("level", [-1, 4])
def test_a_level_that_is_not_there_is_refused(level: int) -> None:
    with pytest.raises(InputError, match="level must be a whole number from 0 to 3, got"):
        Levels((5, 8)).block(level)
