"""PivotTrace: laws of its draws against slow twins, what is spent, reconstruction."""

from fractions import Fraction
from itertools import pairwise, product
from math import exp, log

import numpy as np
import pytest
from scipy import stats

from client_sdk import Grid
from client_sdk.shared import ONE, exp_below
from ldpspatial import wasserstein
from ldpspatial.datasets import density_walks
from ldpspatial.places.users import cells_by_user, user_cells
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.privacy.local_privacy import cell_distances
from ldpspatial.release.local.trajectories import pivot_reports as draws
from ldpspatial.release.local.trajectories.pivottrace import REGION_PART, PivotTrace, radii
from ldpspatial.release.local.trajectories.trajectory_release import share_of
from tests.support import naive_local_trails as naive

SHARES = [1.5, 2.0, 1.0]


def _array(cells: object) -> np.ndarray:
    return np.array(cells, np.int64)


def _largest_ratio(laws: list[dict]) -> float:
    """Largest log-ratio of two inputs' probabilities of the same outputs."""
    table = np.array([list(law.values()) for law in laws])
    assert all(list(law) == list(laws[0]) for law in laws)
    assert np.allclose(table.sum(axis=1), 1, atol=1e-12)
    return float(np.log(table.max(axis=0) / table.min(axis=0)).max())


class Given:
    """A generator whose whole numbers are told beforehand, one after another."""

    def __init__(self, *numbers: int):
        self.numbers = list(numbers)
        self.below: list[int] = []

    def integers(self, low: int, high: int) -> int:
        assert low == 0
        self.below.append(int(high))
        return self.numbers.pop(0)


@pytest.mark.parametrize("size", [1, 2, 8])
@pytest.mark.parametrize("epsilon", [1e-9, 1.3, 20.0])
def test_k_rr_gives_every_value_the_share_of_its_weight(size: int, epsilon: float) -> None:
    # The value takes the whole numbers below the top weight, others a base weight each, in order.
    weights = draws.value_weights(size, epsilon)
    base, top = map(int, weights)
    assert Fraction(top, base) * ONE <= exp_below(Fraction(epsilon))
    assert top / base == pytest.approx(exp(epsilon), rel=1e-12)
    for value in {0, size - 1}:
        ends = [0, top, *(top + k * base for k in range(1, size))]
        others = [x for x in range(size) if x != value]
        for said, first, end in zip([value, *others], ends, ends[1:], strict=False):
            rng = Given(first, end - 1)
            for _ in range(2):
                assert draws.randomised_value.py_func(value, size, weights, rng) == said
            assert rng.below == [top + (size - 1) * base] * 2


def test_the_exponential_mechanism_has_its_law_and_its_loss() -> None:
    everywhere = list(product(range(3), repeat=2))
    sets = [everywhere, [(0, 0)], [(0, 0), (0, 1)], [(0, 2), (1, 0), (2, 1)], everywhere[3:]]
    for candidates, epsilon in product(sets, (1e-7, 1.1, 30.0)):
        laws = []
        weights = draws.cell_weights(9, epsilon)
        for cell in everywhere:
            found = draws.nearness(*cell, _array(candidates), weights)
            assert (weights[0] <= found).all()
            assert (found <= weights[1]).all()
            laws.append([Fraction(int(each), int(found.sum())) for each in found])
            law = naive.nearness(cell, tuple(candidates), epsilon)
            assert np.allclose([float(p) for p in laws[-1]], list(law.values()), atol=1e-9)
        # Of the whole weights, exactly.
        largest = max(max(column) / min(column) for column in zip(*laws, strict=True))
        assert largest * ONE <= exp_below(Fraction(epsilon))
    # From afar, where weights of their own would all be 0 in floats.
    afar = draws.nearness(4000, 4000, _array([(0, 0), (0, 1)]), draws.cell_weights(2, 20.0))
    assert 0 < afar[0] < afar[1]
    assert log(afar[1] / afar[0]) <= 10.0


def test_a_claim_of_whole_weights_needs_no_float_to_be_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whatever stands for a distance, weights stay between base and top.
    weights, cells = draws.cell_weights(4, 1.0), _array([(0, 0), (0, 1), (1, 0), (1, 1)])
    wrong = iter([0.0, 1e300, 3.0, 1e-300])
    monkeypatch.setattr(draws, "distance", lambda *_: next(wrong))
    found = draws.nearness.py_func(0, 0, cells, weights)
    assert found.tolist() == [weights[1], weights[0], weights[0], weights[1]]


def test_candidates_are_drawn_as_their_law_says() -> None:
    cells = _array(list(product(range(3), repeat=2)))
    weights, half = draws.cell_weights(9, 6.0), draws.cell_weights(9, 3.0)
    each, rng = draws.nearness(0, 0, cells, weights), np.random.default_rng(1)
    found = np.bincount(
        [draws.near_cell(0, 0, cells, weights, rng) for _ in range(9000)], minlength=9
    )
    assert stats.chisquare(found, each / each.sum() * 9000).pvalue > 1e-6
    each_of_half = draws.nearness(0, 0, cells, half)
    assert stats.chisquare(found, each_of_half / each_of_half.sum() * 9000).pvalue < 1e-6
    # Every cell owns as many whole numbers as its weight.
    ends = [0, *np.cumsum(each).tolist()]
    for cell, (first, end) in enumerate(pairwise(ends)):
        given = Given(first, end - 1)
        for _ in range(2):
            assert draws.near_cell.py_func(0, 0, cells, weights, given) == cell
        assert given.below == [ends[-1]] * 2


def test_sectors_blocks_and_diameters_are_those_of_the_slow_twin() -> None:
    cells = list(product(range(5), repeat=2))
    for sectors, (cell, pivot) in product((2, 3, 8), product(cells, repeat=2)):
        assert draws.sector(*cell, *pivot, sectors) == naive.sector(cell, pivot, sectors)
    assert [draws.sector(*at, 0, 0, 4) for at in ((0, 1), (1, 0), (0, -1), (-1, 0))] == [0, 1, 2, 3]
    for centre, radius in product(cells, (0, 1, 2, 4)):
        block = draws.block_around(_array(centre), radius, 5)
        found = [tuple(cell) for cell in draws.block_cells(block)]
        assert found == list(naive.block(centre, radius, 5))
    rng = np.random.default_rng(1)
    for _ in range(50):
        some = _array(cells)[np.sort(rng.choice(25, rng.integers(1, 12), replace=False))]
        most = max(np.hypot(*(a - b)) for a in some for b in some)
        assert draws.diameter(some) == pytest.approx(most, abs=1e-12)
    assert [radii(side).tolist() for side in (1, 2, 3, 15)] == [[1], [1], [1, 2], [2, 4, 8, 14]]
    assert all(radii(side).tolist() == naive.public_radii(side) for side in range(1, 40))


def test_the_region_has_its_law_and_its_loss() -> None:
    sizes, rng = naive.public_radii(3), np.random.default_rng(2)
    weights = np.array([draws.cell_weights(9, 0.7), draws.value_weights(len(sizes), 0.7)])
    laws = [naive.region_law(points, sizes, 3, 1.4) for points in naive.pairs_of_cells(3)]
    assert _largest_ratio(laws) <= 1.4 + 1e-12
    points = [(0, 0), (1, 0)]  # whose mean lies half-way
    law = naive.region_law(points, sizes, 3, 1.4)
    found = dict.fromkeys(law, 0)
    for _ in range(20_000):
        centre, size = draws.region(_array(points), _array(sizes), 3, weights, rng)
        found[tuple(int(x) for x in centre), int(size)] += 1
    counts = list(found.values())
    assert stats.chisquare(counts, np.array(list(law.values())) * 20_000).pvalue > 1e-6
    other = naive.region_law(points, sizes, 3, 5.6)
    assert stats.chisquare(counts, np.array(list(other.values())) * 20_000).pvalue < 1e-6


@pytest.mark.parametrize("first", [0, 1])
def test_a_copy_has_its_law_and_its_loss(first: int) -> None:
    # All trajectories of two points on 2 x 3 cells: pivot, sector and target enumerated.
    cells = tuple(product(range(2), range(3)))
    inputs = [list(pair) for pair in product(product(range(3), repeat=2), repeat=2)]
    laws = [naive.pair_law(points, first, cells, 3, SHARES) for points in inputs]
    everything = sorted({key for law in laws for key in law})
    laws = [{key: law[key] for key in everything} for law in laws]
    assert _largest_ratio(laws) <= sum(SHARES) + 1e-12
    assert _largest_ratio(laws) > 0.5 * sum(SHARES)
    points, block = [(0, 0), (2, 1)], _array([0, 1, 0, 2])  # the second lies outside the block
    law = naive.pair_law(points, first, cells, 3, SHARES)
    found = dict.fromkeys(everything, 0)
    pivot, direction, target = SHARES
    weights = np.array(
        [
            draws.cell_weights(6, pivot),
            draws.value_weights(3, direction),
            draws.cell_weights(6, target),
        ]
    )
    rng = np.random.default_rng(3)
    for _ in range(20_000):
        noisy, heard = draws.copy_reports(_array(points), first, block, 3, weights, rng)
        at = [tuple(int(x) for x in cell) for cell in noisy]
        found[at[first], int(heard[0]), at[1 - first]] += 1
    counts = np.array([found[key] for key in law])
    assert counts.sum() == 20_000
    assert stats.chisquare(counts, np.array(list(law.values())) * 20_000).pvalue > 1e-6
    weaker = naive.pair_law(points, first, cells, 3, [s / 1.5 for s in SHARES])
    assert stats.chisquare(counts, np.array(list(weaker.values())) * 20_000).pvalue < 1e-6


@pytest.mark.parametrize("side", [2, 3])
def test_all_reports_together_lose_no_more_than_epsilon(side: int) -> None:
    # Two points a trajectory: the worst loss of the region, and of both copies in its worst block.
    epsilon, sectors = 2.0, 2
    release, inputs = PivotTrace(2, sectors), list(naive.pairs_of_cells(side))
    sizes, spent = naive.public_radii(side), share_of(epsilon, REGION_PART)
    region = _largest_ratio([naive.region_law(points, sizes, side, spent) for points in inputs])
    everywhere = product(product(range(side), repeat=2), sizes)
    copies = [
        sum(
            _largest_ratio(
                [
                    naive.pair_law(points, k, cells, sectors, [share_of(epsilon, p) for p in parts])
                    for points in inputs
                ]
            )
            for k, parts in enumerate(release.parts())
        )
        for cells in {naive.block(centre, radius, side) for centre, radius in everywhere}
    ]
    assert 0.5 * epsilon < region + max(copies) <= epsilon + 1e-12


@pytest.mark.parametrize("pivots", [2, 3, 5, 8, 256])
def test_the_parts_of_epsilon_sum_to_it_and_floats_to_no_more(pivots: int) -> None:
    release = PivotTrace(pivots)
    odd, even = (pivots + 1) // 2, pivots // 2
    counts = [(odd, pivots - 1, even), (even, pivots - 1, odd)]
    parts = [
        (part, count)
        for copy, numbers in zip(release.parts(), counts, strict=True)
        for part, count in zip(copy, numbers, strict=True)
    ]
    assert REGION_PART + sum(part * count for part, count in parts) == 1
    for epsilon in (1e-6, 1.5, 0.1 + 0.2, 20.0):
        spent = Fraction(share_of(epsilon, REGION_PART))
        spent += sum(count * Fraction(share_of(epsilon, part)) for part, count in parts)
        assert spent <= Fraction(epsilon)


def test_every_user_sends_as_many_reports_whatever_the_length() -> None:
    short, long = cells_by_user([0], [3], (4, 4)), cells_by_user([0] * 60, [5] * 60, (4, 4))
    for pivots in (2, 5):
        found = [
            PivotTrace(pivots).release(users, 1.0, np.random.default_rng(1)).facts
            for users in (short, long)
        ]
        assert found[0] == found[1]
        # The region's two; in each copy K points and K - 1 directions.
        assert found[0]["reports_per_user"] == 2 + 2 * (2 * pivots - 1)


def test_a_long_trajectory_cannot_be_told_from_a_short_one_beyond_epsilon() -> None:
    # 100,000 users a side, one merged point each end: the bound holds, and at 20 it is above 1.
    n = 100_000
    bounds = []
    for epsilon in (1.0, 20.0):
        samples = []
        for cells in ([0], [8, 8, 8, 8, 8, 8]):
            who = np.repeat(np.arange(n), len(cells))
            users = cells_by_user(who, np.tile(cells, n), (3, 3))
            density = PivotTrace(2).release(users, epsilon, np.random.default_rng(4)).density
            first = round(density[0, 0] * 2 * n) // 2
            samples.append(np.random.default_rng(5).permutation(np.arange(n) < first))
        bounds.append(lower_bound_epsilon(*samples))
    assert bounds[0] <= 1.0 < bounds[1] <= 20.0


def test_it_finds_the_map() -> None:
    crowd = np.zeros((20, 20))
    crowd[:5, :5] = 1
    points = density_walks(crowd, 3000, np.random.default_rng(1), longest=30)
    users = user_cells(points, Grid.plane(0, 0, 1.0, 4))
    flat = wasserstein(users.density, np.full((4, 4), 1 / 16))
    errors = [
        wasserstein(
            users.density, PivotTrace(2).release(users, eps, np.random.default_rng(2)).density
        )
        for eps in (20.0, 2.0)
    ]
    assert errors[0] < 0.65 * flat
    assert errors[0] < errors[1] < flat


def test_rounding_favours_no_side() -> None:
    assert [draws.nearest_whole(total, 2) for total in range(6)] == [0, 0, 1, 2, 2, 2]
    assert [draws.nearest_whole(total, 4) for total in range(9)] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    # A map that is the mirror image of another gets the mirror image in the mean.
    users = cells_by_user(np.arange(20_000), np.full(20_000, 12), (5, 5))
    density = PivotTrace().release(users, 4.0, np.random.default_rng(1)).density
    rows = density.sum(axis=1)
    assert np.allclose(rows, rows[::-1], atol=0.01)


def test_local_privacy_is_that_of_one_pivot() -> None:
    epsilon, cells = 6.0, tuple(product(range(2), repeat=2))
    spent = share_of(epsilon, PivotTrace(2).parts()[0][0])
    laws = np.array([list(naive.nearness(cell, cells, spent).values()) for cell in cells])
    distances, mean = cell_distances((2, 2)), 0.0
    for column in laws.T:
        mean += column @ distances @ column / column.sum() / 4
    assert PivotTrace(2).local_privacy(2, epsilon) == pytest.approx(mean, rel=1e-12)


def test_the_weights_of_all_reports_spend_epsilon_together() -> None:
    def loss(weights: np.ndarray) -> float:
        base, top = map(int, weights)
        return log(top / base)

    around, copies = PivotTrace(5).weights(9, 2.0)
    spent = 2 * loss(around[0]) + loss(around[1])  # cells by half of what they spend
    for (pivot, direction, target), pivots in zip(copies, (3, 2), strict=True):
        spent += 2 * pivots * loss(pivot) + 4 * loss(direction) + 2 * (5 - pivots) * loss(target)
    assert spent == pytest.approx(2.0, rel=1e-9)
