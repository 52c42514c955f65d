import numpy as np
import pytest

from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.distributed.levels.map_levels import Levels
from ldpspatial.release.distributed.levels.spatial_decomposition import (
    SpatialDecomposition,
    SpatialDecompositionLeaves,
    SpatialDecompositionOracle,
)
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support import naive_levels as naive
from tests.support.cohorts import Recording, Silent


@pytest.mark.parametrize(
    ("release", "ratio"),
    [(SpatialDecomposition(), 2 ** (-1 / 3)), (SpatialDecompositionLeaves(), 2 ** (1 / 3))],
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
def test_budgets_are_geometric_and_never_more_than_epsilon(
    release: SpatialDecomposition, ratio: float, epsilon: float
) -> None:
    budgets = release.budgets(Levels((1024, 1024)), epsilon)
    assert len(budgets) == 10
    assert round(epsilon * 10**6) - 10 <= sum(budgets) <= round(epsilon * 10**6)
    assert np.divide(budgets[1:], budgets[:-1]) == pytest.approx([ratio] * 9, rel=5e-4)


def test_known_budgets() -> None:
    """2^(-i/3) / (sum over 1..10) in millionths, and the same backwards for the leaves."""
    known = [229021, 181774, 144274, 114510, 90887, 72137, 57255, 45443, 36068, 28627]
    levels = Levels((1024, 1024))
    assert SpatialDecomposition().budgets(levels, 1.0) == known
    assert SpatialDecompositionLeaves().budgets(levels, 1.0) == known[::-1]


def test_every_level_is_a_sum_with_its_own_epsilon() -> None:
    recording, release = Recording(), SpatialDecomposition()
    levels, rng = Levels((5, 8)), np.random.default_rng(1)
    cells = rng.integers(40, size=30)
    found = SpatialDecomposition(recording).collect(levels, cells, 1.0, rng)
    budgets = release.budgets(levels, 1.0)
    assert [round(call.epsilon * 10**6) for call in recording.calls] == budgets
    assert [call.sensitivity for call in recording.calls] == [1, 1, 1]
    assert found.spent == sum(budgets) / 10**6
    for level, call in enumerate(recording.calls, start=1):
        truth = naive.histogram(cells.tolist(), (5, 8), level)
        exact = np.asarray(call.contributions.sum(axis=0)).reshape(levels.sides(level))
        assert {at: exact[at] for at in np.ndindex(*exact.shape)} == truth
        assert (found.counts(level).ravel() == call.found.counts).all()
        assert found.deviations[level - 1] == call.found.deviation


def test_coarse_levels_have_less_noise_and_leaves_have_with_the_other_name() -> None:
    levels, rng, cells = Levels((16, 16)), np.random.default_rng(2), np.arange(9)
    coarse = SpatialDecomposition(Cohort()).collect(levels, cells, 1.0, rng).deviations
    leaves = SpatialDecompositionLeaves(Cohort()).collect(levels, cells, 1.0, rng).deviations
    assert list(coarse) == sorted(coarse)
    assert list(leaves) == sorted(leaves, reverse=True)


def test_without_noise_the_oracle_finds_the_truth() -> None:
    people = cells_by_user(range(6), [0, 1, 1, 7, 12, 15], (4, 4))
    oracle = SpatialDecompositionOracle(Silent())
    released = oracle.release(people, 1.0, np.random.default_rng(3))
    assert released.density == pytest.approx(people.density)
    assert released.facts["level"] == 2


def test_the_length_is_that_of_all_levels_together() -> None:
    """The published table has 1,048,576, which is the finest level alone."""
    assert SpatialDecomposition().vector_length(Levels((1024, 1024))) == 1_398_100


def test_an_epsilon_too_small_to_divide_is_refused() -> None:
    people = cells_by_user([0], [0], (64, 64))
    with pytest.raises(InputError, match="epsilon must leave a millionth for each of 6 parts"):
        SpatialDecomposition().release(people, 0.000004, np.random.default_rng(4))
