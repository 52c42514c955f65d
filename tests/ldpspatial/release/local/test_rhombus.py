"""The rhombus: the client's table with a ball of the 1-norm."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from mpmath import mp, workdps  # type: ignore[import-untyped]
from scipy import stats

from client_sdk import Grid, ResponseTable, response_table
from client_sdk.kernels import draw_many
from client_sdk.validate import exact_epsilon
from client_sdk.verify import verify_table
from ldpspatial import StampChannel, wasserstein
from ldpspatial.datasets import synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user, user_cells
from ldpspatial.privacy.local_privacy import local_privacy
from ldpspatial.release.local.disks.dam import Dam
from ldpspatial.release.local.disks.rhombus import Rhombus, rhombus_radius, rhombus_table
from tests.support import naive_local_wave as naive

EPSILONS = [1e-6, 1e-3, 0.1, 0.7, 1.4, 3.5, 5.0, 9.0, 20.0]
FALSE_ALARM = 1e-6


@pytest.mark.parametrize("cells", [1, 2, 3, 5, 10, 15, 100, 4096])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_radius_is_that_of_the_formula_with_60_digits(epsilon: float, cells: int) -> None:
    exact = naive.rhombus_half_width(exact_epsilon(epsilon))
    assert rhombus_radius(epsilon, cells) == naive.cells_across(exact, cells)


@pytest.mark.parametrize("epsilon", [0.7, 1.4, 3.5, 7.0])
def test_the_radius_maximises_the_bound_of_the_mutual_information(epsilon: float) -> None:
    exact = float(naive.rhombus_half_width(Fraction(epsilon)))
    assert exact == pytest.approx(naive.most_informative(epsilon, 2), rel=1e-5)


def test_the_radius_at_no_privacy_loss() -> None:
    assert rhombus_radius(1e-6, 4096) == int(4096 * (2 + 6**0.5) / 2)  # m and k are alike there


@pytest.mark.parametrize("cells", [2, 3, 7])
@pytest.mark.parametrize("radius", [None, 0, 1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.7, 3.5])
def test_offsets_weights_and_output_domain_are_those_of_the_definition(
    cells: int, radius: int | None, epsilon: float
) -> None:
    table = rhombus_table(epsilon, cells, radius)
    b = table.radius
    assert set(table.weights) == naive.ball(b)
    assert len(table.weights) == 2 * b * b + 2 * b + 1
    assert set(table.weights.values()) == {table.max_weight}
    domain = naive.output_domain(cells, b)
    assert set(table.output_cells()) == domain
    assert table.output_size == len(domain) == cells**2 + 4 * cells * b + 2 * b * (b - 1)
    for cell in product(range(cells), repeat=2):
        offsets = [(row - cell[0], col - cell[1]) for row, col in domain]
        weights = [table.weights.get(offset, table.base_weight) for offset in offsets]
        assert sum(weights) == table.total_weight
        assert len(naive.ball(b) - set(offsets)) == 0
    columns = StampChannel(table).matrix().sum(axis=0)
    np.testing.assert_allclose(columns, 1, rtol=1e-12)


@pytest.mark.parametrize("cells", [1, 3, 15, 64])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_claim_holds_exactly_and_devices_accept_the_table(cells: int, epsilon: float) -> None:
    table = rhombus_table(epsilon, cells)
    verify_table(table, exact_epsilon(epsilon))
    with workdps(naive.DIGITS):
        bound = mp.exp(naive.real(exact_epsilon(epsilon)))
        assert naive.real(table.max_ratio()) <= bound
        assert table.max_weight + 1 > table.base_weight * bound
    assert 2**51 < table.total_weight < 2**53


def test_without_a_radius_it_is_randomised_response_like_dam() -> None:
    table, dam = rhombus_table(9.0, 10), response_table("dam", 9.0, 10)
    assert table.radius == dam.radius == 0
    assert (table.base_weight, table.octant) == (dam.base_weight, dam.octant)


def _drawn(table: ResponseTable, cell: tuple[int, int], n: int) -> np.ndarray:
    rng = np.random.default_rng(31)
    rows, cols = draw_many(table, np.full(n, cell[0]), np.full(n, cell[1]), rng.bytes)
    side = table.cells + 2 * table.radius
    flat = (rows + table.radius) * side + cols + table.radius
    return np.bincount(flat, minlength=side * side)


def test_reports_follow_the_channel() -> None:
    # Chi-square at 1e-6 of 200,000 reports a cell; the disk of the 2-norm is told from it.
    table = rhombus_table(1.4, 5, 2)
    channel, disk = StampChannel(table), StampChannel(response_table("dam-ns", 1.4, 5, 2))
    for cell in ((0, 0), (2, 2), (4, 1)):
        where = np.zeros((5, 5))
        where[cell] = 1
        counts = _drawn(table, cell, 200_000).reshape(channel.output_shape)
        assert counts[~channel.support].sum() == 0
        law = channel.forward(where)[channel.support] * counts.sum()
        assert stats.chisquare(counts[channel.support], law).pvalue > FALSE_ALARM
        other = disk.forward(where)[disk.support] * counts.sum()
        assert stats.chisquare(counts[disk.support], other).pvalue < FALSE_ALARM


def test_it_finds_the_map_about_as_well_as_dam() -> None:
    law = synthetic_maps()["normal"]
    grid = Grid.plane(law.y0, law.x0, law.side, 15)
    users = user_cells(law.draw(100_000, np.random.default_rng(1)), grid)
    found = Rhombus().release(users, 3.5, np.random.default_rng(2))
    dam = Dam().release(users, 3.5, np.random.default_rng(2))
    errors = [wasserstein(users.density, one.density) for one in (found, dam)]
    assert errors[0] == pytest.approx(0.315, abs=0.06)  # one run: .014
    assert errors[0] < 1.3 * errors[1]
    assert wasserstein(users.density, np.full((15, 15), 1 / 225)) > 4
    assert found.facts["radius"] == 4
    assert found.claim == Rhombus().claim(3.5)
    assert 3.4999 < float(found.facts["realised_epsilon"]) <= 3.5


def test_local_privacy_is_that_of_its_channel() -> None:
    expected = local_privacy(StampChannel(rhombus_table(3.5, 5)))
    assert Rhombus().local_privacy(5, 3.5) == expected
    assert 0 < expected < Rhombus().local_privacy(5, 0.7)


@pytest.mark.parametrize("side", [1, 2, 3, 10])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
@pytest.mark.parametrize("n", [1, 30])
def test_maps_of_any_side(side: int, epsilon: float, n: int) -> None:
    users = cells_by_user(np.arange(n), 7 * np.arange(n) % side**2, (side, side))
    before = users.visits.copy()
    first, again = (
        Rhombus().release(users, epsilon, np.random.default_rng(7)).density for _ in range(2)
    )
    assert first.shape == (side, side)
    assert first.min() >= 0
    assert first.sum() == pytest.approx(1, abs=1e-12)
    assert (first == again).all()
    assert (users.visits != before).nnz == 0


@pytest.mark.parametrize("epsilon", [0, -1, 21, float("inf"), float("nan"), "1"])
def test_epsilons_that_are_none_are_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon must be"):
        Rhombus().claim(epsilon)
    with pytest.raises(InputError, match="epsilon must be"):
        rhombus_table(epsilon, 3)


def test_sizes_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="cells must be a whole number"):
        rhombus_table(1.0, 0)
    for radius in (-1, 10, 1.0):
        with pytest.raises(InputError, match="radius must be a whole number"):
            rhombus_table(1.0, 3, radius)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rhombus needs a square map, got 2 x 3 cells"):
        Rhombus().release(cells_by_user([0], [0], (2, 3)), 1.0, np.random.default_rng(1))
