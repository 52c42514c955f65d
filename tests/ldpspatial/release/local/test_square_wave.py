"""Square wave: whole weights, reports, and EMS on maps of one row."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf, workdps  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy import stats

from ldpspatial import wasserstein
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation.smoothing import binomial
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.local_privacy import local_privacy
from ldpspatial.release.local.coordinates.fine_ems import BINS, FineEMS
from ldpspatial.release.local.coordinates.square_wave import (
    SquareWave,
    offset_law,
    optimal_half_width,
    square_wave_matrix,
    square_wave_table,
)
from tests.support import naive_local_wave as naive

EPSILONS = [1e-6, 1e-3, 0.1, 0.7, 1.4, 3.5, 5.0, 9.0, 20.0]
FALSE_ALARM = 1e-6


def row_of(cells: NDArray[np.int64], columns: int) -> UserCells:
    return cells_by_user(np.arange(len(cells)), cells, (1, columns))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_half_width_is_that_of_the_formula_with_60_digits(epsilon: float) -> None:
    exact = naive.half_width(Fraction(epsilon))
    assert optimal_half_width(epsilon) == pytest.approx(float(exact), rel=1e-15)


def test_the_half_width_falls_from_one_half_at_no_privacy_loss() -> None:
    assert optimal_half_width(1e-6) == pytest.approx(0.5 - 1e-6 / 3, abs=1e-12)
    widths = [optimal_half_width(epsilon) for epsilon in EPSILONS]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("epsilon", [0.7, 1.4, 3.5, 7.0])
def test_the_half_width_maximises_the_bound_of_the_mutual_information(epsilon: float) -> None:
    assert optimal_half_width(epsilon) == pytest.approx(
        naive.most_informative(epsilon, 1), rel=1e-5
    )


@pytest.mark.parametrize("cells", [1, 2, 3, 10, 15, 100, 4096])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_radius_is_rounded_down(epsilon: float, cells: int) -> None:
    exact = naive.half_width(Fraction(epsilon))
    assert square_wave_table(cells, epsilon).radius == naive.cells_across(exact, cells)


@pytest.mark.parametrize("cells", [1, 2, 3, 10])
@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 3.5, 20.0])
@pytest.mark.parametrize("radius", [None, 0, 1, 2])
def test_the_matrix_is_that_of_the_definition(
    cells: int, epsilon: float, radius: int | None
) -> None:
    table = square_wave_table(cells, epsilon, radius)
    matrix = square_wave_matrix(cells, epsilon, radius)
    assert matrix.shape == (cells + 2 * table.radius, cells)
    slow = naive.wave_matrix(cells, Fraction(epsilon), table.radius)
    np.testing.assert_allclose(matrix, slow, rtol=1e-8)  # rounded down to whole weights
    np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=1e-14)


@pytest.mark.parametrize("cells", [1, 3, 15, 4096])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("parts", [1, 2])
def test_the_claim_holds_exactly_in_whole_numbers(cells: int, epsilon: float, parts: int) -> None:
    table = square_wave_table(cells, epsilon, parts=parts)
    ratio = table.max_ratio()
    with workdps(naive.DIGITS):
        bound = mp.exp(naive.real(Fraction(epsilon) / parts))
        assert naive.real(ratio) <= bound
        # No more is given away than one unit of the last place of the weight.
        assert table.band_weight + 1 > mpf(table.base_weight) * bound
    assert table.total_weight < 2**53
    doubled = 2 * table.base_weight * (table.outputs + (2 * table.radius + 1) * (ratio - 1))
    assert doubled > 2**53 - 2 * (2 * table.radius + 1)
    assert table.band_weight > table.base_weight


@pytest.mark.parametrize(("cells", "radius"), [(1, 0), (1, 2), (2, 1), (3, 0), (5, 2), (4, 7)])
def test_every_input_has_the_same_total_over_the_same_reports(cells: int, radius: int) -> None:
    table = square_wave_table(cells, 1.4, radius)
    for cell in range(cells):
        reports = range(-radius, cells + radius)
        inside = [abs(report - cell) <= radius for report in reports]
        weights = [table.band_weight if near else table.base_weight for near in inside]
        assert sum(inside) == 2 * radius + 1
        assert sum(weights) == table.total_weight


@pytest.mark.parametrize(("cells", "radius"), [(1, 0), (1, 1), (5, 0), (5, 2), (3, 4)])
@pytest.mark.parametrize("epsilon", [0.7, 3.5])
def test_reports_follow_the_matrix(cells: int, radius: int, epsilon: float) -> None:
    # Chi-square of 100,000 reports from either end and the middle, 1e-6 in all 20 tests together.
    table = square_wave_table(cells, epsilon, radius)
    matrix = table.matrix()
    rng = np.random.default_rng(11)
    for cell in {0, cells // 2, cells - 1}:
        counts = table.counts(table.draw(np.full(100_000, cell), rng))
        assert counts.shape == (table.outputs,)
        if table.outputs > 1:
            law = matrix[:, cell] * counts.sum()
            assert stats.chisquare(counts, law).pvalue > FALSE_ALARM / 30


def test_the_same_test_tells_reports_of_a_wrong_wave() -> None:
    rng = np.random.default_rng(12)
    table, at = square_wave_table(5, 1.4, 2), np.full(100_000, 1)
    wrong = {
        "of a neighbour": table.draw(at + 1, rng),
        "of a narrower band": square_wave_table(5, 1.4, 1).draw(at, rng),
        "of another epsilon": square_wave_table(5, 1.3, 2).draw(at, rng),
        "held in the square": np.clip(table.draw(at, rng), 0, 4),
    }
    law = table.matrix()[:, 1] * len(at)
    for reports in wrong.values():
        assert stats.chisquare(table.counts(reports), law).pvalue < FALSE_ALARM


def test_the_smoother_of_maps_is_that_of_one_coordinate_on_one_row() -> None:
    row = np.array([[0.5, 0.0, 0.0, 0.25, 0.25]])
    expected = [[0.375, 0.125, 0.0625, 0.1875, 0.25]]
    np.testing.assert_allclose(binomial(row), expected, rtol=1e-15)
    np.testing.assert_allclose(binomial(np.array([[1.0]])), [[1.0]])


@pytest.mark.parametrize("smoothing", [True, False])
def test_the_map_is_that_of_slow_ems(smoothing: bool) -> None:
    rng = np.random.default_rng(3)
    users = row_of(rng.binomial(7, 0.3, 3000), 8)
    found = SquareWave(smoothing=smoothing, fine=False).release(
        users, 1.4, np.random.default_rng(4)
    )
    assert found.estimate is not None
    matrix = square_wave_matrix(8, 1.4)
    slow = naive.ems(matrix, found.estimate.counts, found.estimate.iterations, smoothing)
    np.testing.assert_allclose(found.density[0], slow, rtol=1e-9)
    assert found.facts["estimator"] == ("ems" if smoothing else "em")
    assert found.facts["iterations"] == found.estimate.iterations


def test_fine_bins_are_those_of_slow_ems_on_cells_cut_into_parts() -> None:
    users = row_of(np.random.default_rng(3).binomial(3, 0.2, 3000), 4)
    found = SquareWave().release(users, 2.0, np.random.default_rng(4)).estimate
    assert found is not None
    assert found.estimator == FineEMS("scaled")
    parts = BINS // 4
    cut = np.repeat(square_wave_matrix(4, 2.0), parts, axis=1)
    slow = naive.ems(cut, found.counts, found.iterations, smoothing=True)
    np.testing.assert_allclose(found.density[0], slow.reshape(4, parts).sum(axis=1), rtol=1e-9)
    # Much less is blurred than by whole cells.
    plain, cells = (
        SquareWave(smoothing, fine=False).release(users, 2.0, np.random.default_rng(4)).density
        for smoothing in (False, True)
    )
    assert np.abs(found.density - plain).sum() < np.abs(cells - plain).sum() / 4


def test_it_finds_the_map() -> None:
    rng = np.random.default_rng(5)
    users = row_of(np.clip(rng.normal(20, 4, 50_000).astype(int), 0, 39), 40)
    found = SquareWave().release(users, 2.0, np.random.default_rng(6))
    assert wasserstein(users.density, found.density) < 0.8
    assert wasserstein(users.density, np.full((1, 40), 1 / 40)) > 7
    assert found.facts["radius"] == 5
    assert 1.999 < float(found.facts["realised_epsilon"]) <= 2.0


def test_local_privacy_is_that_of_the_dense_channel() -> None:
    for cells, epsilon in ((1, 1.0), (2, 0.7), (9, 1.4), (15, 3.5)):
        channel = MatrixChannel(square_wave_matrix(cells, epsilon), (1, cells))
        expected = local_privacy(channel)
        assert SquareWave().local_privacy(cells, epsilon) == pytest.approx(expected, rel=1e-12)
    assert SquareWave().local_privacy(15, 1e-6) == pytest.approx((15**2 - 1) / 45, rel=1e-5)
    assert SquareWave().local_privacy(15, 20.0) == pytest.approx(0, abs=1e-6)


def test_the_offset_of_a_guess_has_a_law() -> None:
    np.testing.assert_allclose(offset_law(np.eye(4)), [1, 0, 0, 0])  # the report says it all
    np.testing.assert_allclose(offset_law(np.ones((1, 3))), [3 / 9, 4 / 9, 2 / 9])  # nothing


@pytest.mark.parametrize("columns", [1, 2, 3, 10, 33])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
@pytest.mark.parametrize("n", [1, 40])
def test_rows_of_any_length(columns: int, epsilon: float, n: int) -> None:
    users = row_of(np.arange(n) % columns, columns)
    before = users.visits.copy()
    first, again = (
        SquareWave().release(users, epsilon, np.random.default_rng(7)).density for _ in range(2)
    )
    assert first.shape == (1, columns)
    assert first.min() >= 0
    assert first.sum() == pytest.approx(1, abs=1e-12)
    assert (first == again).all()
    assert (users.visits != before).nnz == 0


def test_the_claim() -> None:
    users = row_of(np.array([0, 1, 2]), 3)
    found = SquareWave().release(users, 1.4, np.random.default_rng(1))
    assert found.claim == SquareWave().claim(1.4)
    assert (found.claim.model, found.claim.epsilon, found.claim.delta) == ("local", 1.4, 0)
    assert (found.claim.neighbours, found.claim.unit) == ("replace", "user")


@pytest.mark.parametrize("shape", [(3, 3), (5, 1), (2, 7)])
def test_maps_of_more_than_one_row_are_refused(shape: tuple[int, int]) -> None:
    users = cells_by_user([0], [0], shape)
    rule = f"sw-ems needs a map of one row, got {shape[0]} x {shape[1]} cells"
    with pytest.raises(InputError, match=rule):
        SquareWave().release(users, 1.0, np.random.default_rng(1))


@pytest.mark.parametrize("epsilon", [0, 1e-7, 20.5, float("nan")])
def test_epsilons_that_are_none_are_refused(epsilon: float) -> None:
    for function in (
        optimal_half_width,
        SquareWave().claim,
        lambda value: square_wave_matrix(3, value),
    ):
        with pytest.raises(InputError, match="epsilon must be a"):
            function(epsilon)


@pytest.mark.parametrize(
    ("field", "cells", "radius"),
    [("cells", 0, None), ("cells", 4097, None), ("cells", 2.5, None), ("radius", 3, -1),
     ("radius", 3, 7), ("radius", 3, 1.0)],
)  # fmt: skip
def test_sizes_that_are_none_are_refused(field: str, cells: int, radius: int | None) -> None:
    with pytest.raises(InputError, match=f"{field} must be a whole number"):
        square_wave_table(cells, 1.0, radius)
    for parts in (0, 3):
        with pytest.raises(InputError, match="parts must be a whole number"):
            square_wave_table(3, 1.0, parts=parts)


def test_no_user_is_refused() -> None:
    with pytest.raises(InputError, match="at least one user, got none"):
        SquareWave().release(row_of(np.array([], int), 3), 1.0, np.random.default_rng(1))


def test_every_number_below_the_total_gives_a_report_of_the_domain() -> None:
    table = square_wave_table(4, 1.0, 1)
    even, more = table.outputs * table.base_weight, table.band_weight - table.base_weight

    class Given:
        def integers(self, total: int, size: int) -> np.ndarray:
            assert (total, size) == (table.total_weight, 6)
            return np.array([0, even - 1, even, even + more - 1, even + more, total - 1])

    reports = table.draw(np.full(6, 2), Given())  # type: ignore[arg-type]
    assert table.total_weight == even + 3 * more
    assert reports.tolist() == [-1, 4, 1, 1, 2, 3]
