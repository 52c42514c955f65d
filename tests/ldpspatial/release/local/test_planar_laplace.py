"""Planar Laplace noise: law, channel, two units of epsilon, and what it does not claim."""

from math import hypot, pi, sqrt

import numpy as np
import pytest
from scipy import stats

from client_sdk import Grid
from client_sdk.grid import metres_per_degree
from ldpspatial import wasserstein
from ldpspatial.datasets import synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.places.points import Points
from ldpspatial.places.users import cells_by_user, user_cells
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.local.geo.planar_laplace import (
    PlanarLaplace,
    _one_position_each,
    planar_laplace_channel,
    planar_laplace_noise,
)
from tests.support.naive_local_geo import cells_in_order, planar_laplace_probability, radius

RATES = [(1e-6, 1e-6), (0.01, 0.01), (0.3, 0.3), (2.0, 2.0), (20.0, 20.0), (0.3, 3.0)]


def test_the_noise_has_the_radius_of_the_paper_in_a_uniform_direction() -> None:
    # Kolmogorov and Smirnov at 1e-6; the inverse of the distribution by Lambert's W is the twin.
    up, east = planar_laplace_noise(100_000, np.random.default_rng(1))
    far = np.hypot(up, east)
    paper = radius(np.random.default_rng(2).random(100_000), 1.0)
    assert stats.ks_2samp(far, paper).pvalue > 1e-6
    assert stats.kstest(far, lambda r: 1 - (1 + r) * np.exp(-r)).pvalue > 1e-6
    assert stats.kstest(np.arctan2(up, east), stats.uniform(-pi, 2 * pi).cdf).pvalue > 1e-6
    assert stats.kstest(far, stats.expon.cdf).pvalue < 1e-6  # Laplace on a line has this radius
    for share in (0.01, 0.5, 0.99):
        r = float(radius(np.array(share), 2.0))
        assert 1 - (1 + 2 * r) * np.exp(-2 * r) == pytest.approx(share)


@pytest.mark.parametrize("rates", RATES)
def test_the_channel_equals_another_quadrature(rates: tuple[float, float]) -> None:
    matrix = planar_laplace_channel(4, rates).matrix()
    assert matrix.sum(axis=0) == pytest.approx(np.ones(16), abs=1e-12)
    for given in ((0, 0), (1, 2)):
        for out in ((0, 0), (1, 2), (2, 2), (3, 0), (0, 1), (2, 1)):
            expected = planar_laplace_probability(4, rates, given, out)
            found = matrix[out[0] * 4 + out[1], given[0] * 4 + given[1]]
            assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("side", "epsilon"), [(1, 1.0), (2, 0.5), (3, 0.05), (5, 2.0)])
def test_reports_of_a_cell_follow_the_channel(side: int, epsilon: float) -> None:
    # Chi-square over reported cells, at 1e-6 over the cells that are tried.
    channel = PlanarLaplace().channel(side, epsilon)
    for cell in {0, side**2 // 2, side**2 - 1}:
        users = cells_by_user(np.arange(40_000), np.full(40_000, cell), (side, side))
        found = PlanarLaplace().release(users, epsilon, np.random.default_rng(cell)).estimate
        assert found is not None
        law = channel.matrix()[:, cell] * 40_000
        some = law > 1e-3
        expected = law[some] / law[some].sum() * found.counts[some].sum()
        if side > 1:
            assert stats.chisquare(found.counts[some], expected).pvalue > 1e-6 / 3
            # As those of twice the epsilon would not.
            other = PlanarLaplace().channel(side, epsilon * 2).matrix()[some, cell]
            expected = other / other.sum() * found.counts[some].sum()
            assert stats.chisquare(found.counts[some], expected).pvalue < 1e-6


def test_the_chi_square_tells_positions_at_the_centre_from_uniform_ones() -> None:
    rng = np.random.default_rng(1)
    noised = 1.5 + planar_laplace_noise(40_000, rng) / 2
    rows, columns = np.clip(np.floor(noised), 0, 2).astype(int)
    law = PlanarLaplace().channel(3, 2.0).matrix()[:, 4]
    counts = np.bincount(rows * 3 + columns, minlength=9)
    assert stats.chisquare(counts, law / law.sum() * 40_000).pvalue < 1e-6


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_cells_keep_epsilon_at_the_distance_of_their_centres_and_attain_it(epsilon: float) -> None:
    matrix = PlanarLaplace().channel(6, epsilon).matrix()
    cells = np.array(cells_in_order(6))
    worst = 0.0
    for x, here in enumerate(cells):
        for y, there in enumerate(cells):
            if x != y:
                loss = np.log(matrix[:, x] / matrix[:, y]).max()
                worst = max(worst, loss / (epsilon * hypot(*(here - there))))
    assert 0.8 < worst <= 1 + 1e-9
    ends = np.log(matrix[:, 0] / matrix[:, -1]).max()
    assert ends > 3 * epsilon  # which epsilon-LDP would forbid


def test_two_positions_of_neighbouring_cells_can_lose_more_than_epsilon_times_one_cell() -> None:
    # At the far corners of cells (0, 0) and (0, 1) of 1 x 4: sqrt(5) apart where centres are 1.
    def west(at: tuple[float, float], seed: int) -> np.ndarray:
        noise = planar_laplace_noise(200_000, np.random.default_rng(seed))
        return (np.array(at)[:, None] + noise)[1] < 0  # type: ignore[no-any-return]

    bound = lower_bound_epsilon(west((0, 0), 1), west((1, 2), 2))
    assert 1 < bound <= sqrt(5)


def test_it_finds_the_map_and_the_default_stop_beats_that_of_ldp_mechanisms() -> None:
    law = synthetic_maps()["normal"]
    grid = Grid.plane(law.y0, law.x0, law.side, 12)
    points = law.draw(20_000, np.random.default_rng(1))
    truth = user_cells(points, grid).density
    error = {}
    for rule in ("scaled", "likelihood"):
        found = PlanarLaplace(rule=rule).run(points, grid, 1.0, np.random.default_rng(2))
        assert found.estimate is not None
        assert (found.estimate.rule, found.estimate.n) == (rule, 20_000)
        error[rule] = wasserstein(truth, found.density)
    assert error["scaled"] < 0.5
    assert error["scaled"] < error["likelihood"]
    assert wasserstein(truth, np.full((12, 12), 1 / 144)) > 2


def test_the_claim_names_its_unit_and_says_that_it_is_no_ldp() -> None:
    for unit in ("cell", "metre"):
        claim = PlanarLaplace(unit).claim(0.5)
        assert (claim.model, claim.epsilon, claim.distance) == ("local", 0.5, unit)
        assert claim.notion == "geo-indistinguishability"
        assert claim.conditions[0].startswith("not epsilon-LDP")
    users = cells_by_user(np.arange(50), np.arange(50) % 9, (3, 3))
    found = PlanarLaplace().release(users, 0.5, np.random.default_rng(1))
    assert found.claim == PlanarLaplace().claim(0.5)
    assert "not epsilon-LDP" in str(found.facts["notion"])
    assert (found.facts["estimator"], found.facts["epsilon_per_cell"]) == ("em", 0.5)


def test_an_epsilon_per_metre_is_that_per_cell_over_its_side() -> None:
    grid = Grid.from_center(60.0, 24.0, 8_000, 8)  # cells of a kilometre
    rng = np.random.default_rng(1)
    points = np.array([60.0, 24.0]) + rng.normal(0, 0.01, (3_000, 2))
    metre = PlanarLaplace("metre").run(points, grid, 0.002, np.random.default_rng(2))
    cell = PlanarLaplace("cell").run(points, grid, 2.0, np.random.default_rng(2))
    assert metre.claim.epsilon == 0.002
    assert metre.facts["epsilon_per_cell"] == pytest.approx(2.0, rel=1e-5)
    assert cell.facts["epsilon_per_metre"] == pytest.approx(0.002, rel=1e-5)
    assert metre.density == pytest.approx(cell.density, abs=1e-3)


def test_noise_in_metres_is_as_wide_north_as_east_where_cells_are_not() -> None:
    # A degree of longitude at latitude 60 is half one of latitude: noise spans twice the columns.
    grid = Grid.from_bounds(59.0, 24.0, 2.0, 40)
    height, width = grid.cell_size
    per_latitude, per_longitude = metres_per_degree(60.0)
    assert (height, width) == pytest.approx((per_latitude / 20, per_longitude / 20))
    points = np.tile([60.0, 25.0], (20_000, 1))
    found = PlanarLaplace("metre").run(points, grid, 1 / 4000, np.random.default_rng(1))
    assert found.estimate is not None
    counts = found.estimate.counts.reshape(40, 40)
    spread = [
        np.sqrt(np.average((np.arange(40) - 19.5) ** 2, weights=counts.sum(axis=axis))) * side
        for axis, side in ((1, height), (0, width))
    ]
    assert spread[0] == pytest.approx(spread[1], rel=0.05)
    assert spread[0] == pytest.approx(sqrt(3) * 4000, rel=0.05)  # E r^2 = 6 / epsilon^2


def test_one_raw_position_a_user_is_drawn_uniformly_from_those_inside() -> None:
    grid = Grid.plane(0, 0, 4.0, 4)
    at = np.array([[0.25, 0.5], [3.75, 1.5], [2.5, 9.0], [1.125, 2.0]])
    ids = ["ann", "ann", "ann", "bob"]
    rng = np.random.default_rng(1)
    for points in ((ids, at), Points(at, np.array([0, 0, 0, 1]))):
        drawn = np.array([_one_position_each(points, grid, rng) for _ in range(2_000)])
        assert drawn.shape == (2_000, 2, 2)
        assert (drawn[:, :, 1] == at[3]).all()
        first = int((drawn[:, 0, 0] == 0.25).sum())
        assert ((drawn[:, 0, 0] == 0.25) | (drawn[:, 0, 0] == 3.75)).all()
        assert stats.binomtest(first, 2_000).pvalue > 1e-6
    assert _one_position_each(at, grid, rng).tolist() == at[[0, 1, 3]].T.tolist()


def test_positions_on_either_writing_of_a_longitude_are_one() -> None:
    grid = Grid.from_bounds(-1.0, 179.0, 2.0, 4)  # across the antimeridian
    found = [
        _one_position_each(np.array([[0.0, lon]]), grid, np.random.default_rng(1))
        for lon in (180.25, -179.75)
    ]
    assert found[0] == pytest.approx(found[1])
    assert found[0].ravel() == pytest.approx([2, 2.5])


@pytest.mark.parametrize("side", [1, 2, 3, 10])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 20.0])
def test_any_side_and_epsilon_and_a_single_user(side: int, epsilon: float) -> None:
    users = cells_by_user([0], [side**2 - 1], (side, side))
    found = PlanarLaplace().release(users, epsilon, np.random.default_rng(1))
    assert found.density.sum() == pytest.approx(1)
    assert 0 <= PlanarLaplace().local_privacy(side, epsilon) <= sqrt(2) * side


def test_equal_seeds_give_equal_maps_and_the_input_stays() -> None:
    at = np.random.default_rng(1).uniform(0, 8, (200, 2))
    before, grid = at.copy(), Grid.plane(0, 0, 8, 8)
    first, again, other = (
        PlanarLaplace().run(at, grid, 1.0, np.random.default_rng(seed)).density
        for seed in (3, 3, 4)
    )
    assert (first == again).all()
    assert (first != other).any()
    assert (at == before).all()


def test_bad_input() -> None:
    rng, users = np.random.default_rng(1), cells_by_user([0], [0], (2, 2))
    for call in (
        lambda: PlanarLaplace("metre").release(users, 1.0, rng),
        lambda: PlanarLaplace("metre").local_privacy(2, 1.0),
    ):
        with pytest.raises(InputError, match="unit must be cell where there is no grid"):
            call()
    with pytest.raises(InputError, match="planar-laplace needs a square map, got 2 x 3 cells"):
        PlanarLaplace().release(cells_by_user([0], [0], (2, 3)), 1.0, rng)
    with pytest.raises(InputError, match=r"cells must lie in \[1, 64\] for planar-laplace, got 65"):
        PlanarLaplace().local_privacy(65, 1.0)
    with pytest.raises(InputError, match="rule must be one of"):
        PlanarLaplace(rule="best").release(users, 1.0, rng)
    with pytest.raises(InputError, match="epsilon must be 1e-06 to 1000 per cell, got 2000"):
        PlanarLaplace("metre").run([[0.5, 0.5]], Grid.plane(0, 0, 4_000, 2), 1.0, rng)
    with pytest.raises(InputError, match="points must lie in the square"):
        PlanarLaplace().run([[9.5, 0.5]], Grid.plane(0, 0, 4, 2), 1.0, rng)
    for epsilon in (5e-7, 1001):
        with pytest.raises(InputError, match="epsilon must"):
            PlanarLaplace().release(users, epsilon, rng)
        with pytest.raises(InputError, match="epsilon must"):
            PlanarLaplace().run([[1, 1]], Grid.plane(0, 0, 4, 2), epsilon, rng)


def test_the_epsilon_of_a_metre_is_that_of_the_shorter_side_of_a_cell() -> None:
    grid = Grid.from_bounds(60.0, 10.0, 0.1, 8)  # cells are twice as high as wide
    people = np.column_stack([np.full(50, 60.05), np.full(50, 10.05)])
    run = PlanarLaplace().run(people, grid, 1.0, np.random.default_rng(1))
    assert run.facts["epsilon_per_metre"] == pytest.approx(1 / min(grid.cell_size))
