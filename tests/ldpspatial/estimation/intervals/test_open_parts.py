"""Regions that cut cells and undivided nodes, each of which is taken by itself."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from client_sdk import Grid
from ldpspatial.collecting.region_shares import level_region_shares
from ldpspatial.estimation.intervals.levels import level_intervals
from ldpspatial.estimation.intervals.noise_reach import fourth_of_levels, noise_deviations
from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.regions import Region, polygon
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.distributed import Cohort, DistributedLevels
from ldpspatial.release.release import Release
from tests.ldpspatial.estimation.levels.test_level_map import grown
from tests.support.dense_levels import parts_and_covariance

Array = NDArray[np.float64]
CELLS, FINE = 16, 8  # cells a side, and squares a side of each, where people are


def dense_ends(
    weights: Array, density: Array, parts: list[NDArray[np.bool_]], people: Array,
    covariance: Array, fourth: list[float],
) -> tuple[float, float]:  # fmt: skip
    """Return the ends of a share by one matrix and a law of the largest parts on a finer grid."""
    total = float(people.sum())
    held = np.array([density[part].sum() for part in parts])
    inside = np.array([(weights * density)[part].sum() for part in parts]) / held
    within = (held * total) ** 2 * inside * (1 - inside)
    ranked = [int(k) for k in np.argsort(within) if within[k] > 0]
    largest, others = ranked[-64:], ranked[:-64]
    rest = sum(within[k] for k in others)
    lumps = within * ((inside > 0.0125) & (inside < 0.9875))
    step = float(held @ lumps) / lumps.sum() * total / 2
    slopes = []
    for value in (0, 1, None):
        slope = inside.copy()
        for k in largest:
            slope[k] = inside[k] if value is None else value
        slopes.append(slope)
    none, most = slopes[0] @ people, slopes[1] @ people
    between = float((inside * (1 - inside)) @ np.diag(covariance))
    fine = 2**18
    law = np.zeros(fine + 65)
    law[0] = 1
    for k in largest:
        law = (1 - inside[k]) * law + inside[k] * np.roll(
            law, round(held[k] / held[largest].sum() * fine)
        )
    ways = np.flatnonzero(law)
    means = none + ways / fine * (most - none)

    def chance_beyond(share: float, side: int) -> float:
        noise = [(s - share) @ covariance @ (s - share) for s in slopes]
        variance = max(noise[0], noise[1], noise[2] + between) + rest
        reach = noise_deviations(0.95, max(fourth) / variance) * np.sqrt(variance) / norm.ppf(0.975)
        inwards = np.maximum(means, 0.0) if side > 0 else np.minimum(means, total)
        beyond = norm.cdf(side * (inwards + side * step - share * total) / reach)
        return float(law[ways] @ beyond)

    ends = []
    for side in (-1, 1):
        low, high = 0.0, 1.0
        for _ in range(20):
            middle = (low + high) / 2
            if (chance_beyond(middle, side) > 0.025) == (side > 0):
                low = middle
            else:
                high = middle
        ends.append(low)
    return ends[0], ends[1]


@pytest.mark.parametrize("shape", [(8, 8), (5, 7), (14, 14)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ends_are_those_of_a_dense_covariance_and_all_ways_to_lie(
    shape: tuple[int, int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.poisson(rng.gamma(0.5, 20, shape)).astype(np.float64) + 5
    tree, levels = grown(truth, seed, leaves=seed == 2)
    found = combined(tree, levels)
    parts, people, covariance = parts_and_covariance(tree, levels)
    together, apart = (level_intervals(found, open_parts=each) for each in ("together", "apart"))
    widths = np.zeros(2)
    for _ in range(3):
        weights = np.where(rng.random(shape) < 0.3, rng.random(shape), rng.random(shape) < 0.5)
        low, high = dense_ends(
            weights, found.density, parts, people, covariance, fourth_of_levels(found)
        )
        widest = together.bounds(weights)
        share = float((weights * found.density).sum())
        expected = max(widest[0], min(low, share)), min(widest[1], max(high, share))
        outwards = np.array([1, -1]) * (np.array(expected) - apart.bounds(weights))
        assert ((outwards > -1e-4) & (outwards < 5e-3)).all()  # by what the grid may be off
        widths += together.width_of(weights), apart.width_of(weights)
    assert widths[1] < 0.9 * widths[0]


def test_where_nothing_is_open_and_for_cells_both_are_the_same() -> None:
    rng = np.random.default_rng(1)
    users = cells_by_user(np.arange(2000), rng.integers(0, 64, 2000), (8, 8))
    levels = CentralLevels("cells").release(users, 2.0, rng).levels
    assert levels is not None
    together, apart = (level_intervals(levels, open_parts=each) for each in ("together", "apart"))
    np.testing.assert_array_equal(together.lower, apart.lower)
    np.testing.assert_array_equal(together.upper, apart.upper)
    for _ in range(10):
        mask = rng.random((8, 8)) < 0.5
        one, other = together.region(mask), apart.region(mask)
        assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), abs=1e-9)


def test_an_empty_node_and_a_map_of_next_to_nobody_have_ends() -> None:
    tree = Quadtree((4, 4))
    for people, variance in ((100.0, 1e-6), (3.0, 100.0)):
        whole = NoisyLevel(0, np.array([0]), np.array([people]), variance)
        quarters = NoisyLevel(1, np.arange(4), np.array([people, 0.0, 0.0, -1.0]), variance)
        sure = level_intervals(combined(tree, [whole, quarters]), open_parts="apart")
        lower, upper = sure.bounds(np.tile([0.0, 0.5, 0.5, 1.0], (4, 1)))
        assert 0 <= lower < upper <= 1
        assert sure.bounds(np.zeros((4, 4))) == (0, 0)
        assert sure.bounds(np.ones((4, 4))) == (1, 1)


def places(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Return the squares of people who crowd together within cells as cells within the map."""
    coarse = np.kron(rng.gamma(0.3, 1, (CELLS, CELLS)), np.ones((FINE, FINE)))
    law = (coarse * rng.gamma(0.3, 1, coarse.shape)).ravel()
    return rng.choice(law.size, n, p=law / law.sum())


def on_cells(squares: Array) -> Array:
    """Return the means of squares within each cell."""
    return np.asarray(squares.reshape(CELLS, FINE, CELLS, FINE).mean((1, 3)))


def a_disc(rng: np.random.Generator) -> Array:
    """Return the squares within a random disc."""
    y, x = (np.indices((CELLS * FINE,) * 2) + 0.5) / (CELLS * FINE)
    (row, column), radius = rng.uniform(0.2, 0.8, 2), rng.uniform(0.15, 0.4)
    return np.asarray(((y - row) ** 2 + (x - column) ** 2 < radius**2) * 1.0)


@pytest.mark.parametrize(
    ("release", "epsilon"),
    [
        (CentralLevels(), 0.3),
        (CentralLevels("cells"), 1.0),
        (DistributedLevels(Cohort(drop_out=0.1, tolerated=0.2)), 1.0),
    ],
)
def test_discs_are_held_and_told_more_narrowly(release: Release, epsilon: float) -> None:
    """Of 300 discs 268 must be held: .95 fails once in 10^6, coverage of .85 is seen in .98."""
    rng = np.random.default_rng(5)
    held, widths = 0, np.zeros(2)
    for _ in range(100):
        at = places(rng, 3000)
        row, column = np.divmod(at, CELLS * FINE)
        users = cells_by_user(np.arange(3000), row // FINE * CELLS + column // FINE, (CELLS, CELLS))
        levels = release.release(users, epsilon, rng).levels
        assert levels is not None
        together, apart = (
            level_intervals(levels, open_parts=each) for each in ("together", "apart")
        )
        for _ in range(3):
            disc = a_disc(rng)
            truth, weights = disc.ravel()[at].mean(), on_cells(disc)
            lower, upper = apart.bounds(weights)
            held += lower <= truth <= upper
            widths += together.width_of(weights), upper - lower
    assert held >= binom.ppf(1e-6, 300, 0.95)
    assert widths[1] < 0.7 * widths[0]


def test_a_border_that_follows_the_people_is_held_by_all_parts_together_alone() -> None:
    """As along a shore: of each cell that the border cuts everybody is inside."""
    rng = np.random.default_rng(6)
    held = {"together": 0, "apart": 0}
    weights = np.zeros((CELLS, CELLS))
    weights[:, :8], weights[:, 8] = 1.0, 0.5
    for _ in range(20):
        at = rng.integers(0, CELLS, 3000) * CELLS + rng.integers(0, 9, 3000)
        users = cells_by_user(np.arange(3000), at, (CELLS, CELLS))
        levels = CentralLevels("cells").release(users, 2.0, rng).levels
        assert levels is not None
        for each in held:
            held[each] += level_intervals(levels, open_parts=each).bounds(weights)[1] >= 1
    assert held == {"together": 20, "apart": 0}


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("addresses", [1, 2, 5, 10, 16])
def test_few_addresses_are_held_as_often_as_any_level_says(level: float, addresses: int) -> None:
    """A law of all or none is far from normal: by its variance one is held in .8 of .95.

    Of 400 regions so many must be held that the level fails once in 10^6.
    """
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(100):
        crowd = rng.dirichlet(np.full(addresses, 3.0))
        where = rng.permutation(16)[:addresses]
        drawn = rng.choice(addresses, 1000, p=crowd)
        users = cells_by_user(np.arange(1000), where[drawn], (4, 4))
        levels = CentralLevels("cells").release(users, 1.0, rng).levels
        assert levels is not None
        sure = level_intervals(levels, level, "apart")
        for area in (0.1, 0.2, 0.5, 0.8):  # of each cell, and so the chance of each address
            inside = rng.random(addresses) < area
            lower, upper = sure.bounds(np.full((4, 4), area))
            held += lower <= inside[drawn].mean() <= upper
    assert held >= binom.ppf(1e-6, 400, level)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("addresses", [10, 20, 65, 200])
def test_addresses_that_are_alike_are_held_where_noise_is_next_to_nothing(
    level: float, addresses: int
) -> None:
    """The share lies on few numbers, and an end between two of them holds too few.

    Of 1,000 regions so many must be held that the level fails once in 10^6.
    """
    tree, cells = Quadtree((16, 16)), np.arange(256)
    rng = np.random.default_rng(8)
    where = rng.permutation(256)[:addresses]
    levels = [
        NoisyLevel(0, np.array([0]), np.array([10.0 * addresses]), 0.0),
        *(NoisyLevel(k, np.arange(4**k), np.zeros(4**k), np.inf) for k in (1, 2, 3)),
        NoisyLevel(4, cells, np.isin(cells, where) * 10.0, 1e-6),
    ]
    for area in (0.05, 0.3, 0.5):
        lower, upper = level_intervals(combined(tree, levels), level, "apart").bounds(
            np.full((16, 16), area)
        )
        share = rng.binomial(addresses, area, 1000) / addresses
        held = int(((lower <= share) & (share <= upper)).sum())
        assert held >= binom.ppf(1e-6, 1000, level)
        assert upper - lower < binom.std(addresses, area) * 5 / addresses + 1 / addresses


@pytest.mark.parametrize(
    ("addresses", "area", "level", "noise"),
    [
        *((4, 0.2, 0.5, 10), (15, 0.6, 0.95, 5), (3, 0.5, 0.8, 5), (1, 0.02, 0.99, 100)),
        *((1, 0.6, 0.5, 100), (2, 0.3, 0.6, 50), (7, 0.1, 0.9, 20)),
    ],
)
def test_an_end_is_not_just_short_of_a_number_that_the_share_lies_on(
    addresses: int, area: float, level: float, noise: float
) -> None:
    """Ends hardly move with the noise, so that such a number was left out always: .11 of .5 held.

    Of 800 regions so many must be held that the level fails once in 10^6.
    """
    rng = np.random.default_rng(10)
    people = np.zeros(16)
    people[:addresses] = 1000 / addresses
    held = 0
    for _ in range(800):
        levels = [
            NoisyLevel(0, np.array([0]), np.array([1000.0]), 0.0),
            NoisyLevel(1, np.arange(4), np.zeros(4), np.inf),
            NoisyLevel(2, np.arange(16), people + rng.normal(0, noise, 16), noise**2),
        ]
        sure = level_intervals(combined(Quadtree((4, 4)), levels), level, "apart")
        lower, upper = sure.bounds(np.full((4, 4), area))
        held += lower <= people[rng.random(16) < area].sum() / 1000 <= upper
    assert held >= binom.ppf(1e-6, 800, level)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_noise_between_children_of_one_node_counts(level: float) -> None:
    """All four cells of a map are cut alike: what is known of all of them says nothing of one.

    Of 600 regions so many must be held that the level fails once in 10^6.
    """
    rng = np.random.default_rng(9)
    tree, people = Quadtree((2, 2)), np.array([400.0, 300.0, 200.0, 100.0])
    held = 0
    for _ in range(600):
        levels = [
            NoisyLevel(0, np.array([0]), np.array([1000.0]), 0.0),
            NoisyLevel(1, np.arange(4), people + rng.normal(0, 300, 4), 300.0**2),
        ]
        sure = level_intervals(combined(tree, levels), level, "apart")
        lower, upper = sure.bounds(np.full((2, 2), 0.5))
        held += lower <= people[rng.random(4) < 0.5].sum() / 1000 <= upper
    assert held >= binom.ppf(1e-6, 600, level)


def test_sums_that_are_exact_below_a_noisy_one_are_known() -> None:
    exact = NoisyLevel(1, np.arange(4), np.array([91.0, 0.0, 9.0, 0.0]), 0.0)
    found = combined(
        Quadtree((2, 2)), [NoisyLevel(0, np.array([0]), np.array([103.0]), 4.0), exact]
    )
    for each in ("together", "apart"):
        sure = level_intervals(found, open_parts=each)
        south = sure.region(np.array([[True, True], [False, False]]))
        assert (south.lower, south.upper) == pytest.approx((0.91, 0.91))
        assert sure.lower.ravel() == pytest.approx([0.91, 0, 0.09, 0])
        assert sure.bounds(np.full((2, 2), 1e-300)) == pytest.approx(
            {"together": (0, 1), "apart": (0, 0)}[each], abs=1e-4
        )


@pytest.mark.parametrize("level", [1e-17, 2**-60, Fraction(19, 20), 1 - 2**-53])
def test_any_level_between_0_and_1_has_ends(level: float) -> None:
    levels = [
        NoisyLevel(0, np.array([0]), np.array([100.0]), 1.0),
        NoisyLevel(1, np.arange(4), np.array([70.0, 10, 10, 10]), 1.0),
        NoisyLevel(2, np.arange(4), np.array([20.0, 20, 20, 10]), 1.0),
    ]
    found = combined(Quadtree((4, 4)), levels)  # its own sums decided which node is divided
    for each in ("together", "apart"):
        sure = level_intervals(found, level, each)
        lower, upper = sure.bounds(np.tile([1.0, 0.3, 0.3, 0.0], (4, 1)))
        assert 0 <= lower <= upper <= 1
        assert ((sure.lower >= 0) & (sure.lower <= sure.upper) & (sure.upper <= 1)).all()


def test_a_table_of_regions_says_how_they_are_told() -> None:
    tree = Quadtree((4, 4))
    levels = [
        NoisyLevel(k, np.arange(4**k), np.full(4**k, 160.0 / 4**k), 2.0 * k) for k in range(3)
    ]
    found = combined(tree, levels)
    middle = polygon(Grid.plane(0, 0, 4, 4), [(0.5, 0.5), (0.5, 3.5), (3.5, 3.5), (3.5, 0.5)])
    tables = [
        level_region_shares(found, [Region("middle", middle)], open_parts=each)
        for each in ("together", "apart")
    ]
    together, apart = (table.rows[0] for table in tables)
    assert (together.method, apart.method) == ("levels", "levels, parts apart")
    assert [table.members["method"] for table in tables] == [together.method, apart.method]
    assert together.share.estimate == apart.share.estimate
    assert together.share.lower < apart.share.lower < apart.share.upper < together.share.upper
