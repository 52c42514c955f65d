"""Grids, trees, partitions and wavelets: each is its twin's map of the same noisy numbers."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import ceil

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.central import (
    CentralAdaptiveGrid,
    CentralQuadtree,
    LeastCostPartition,
    PrivTree,
    UniformGrid,
    Wavelets,
)
from ldpspatial.release.central.budget_parts import geometric, in_proportion, in_two
from ldpspatial.release.central.central_release import CentralRelease
from ldpspatial.release.central.masses import density_of_masses
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS, unit_sums
from ldpspatial.release.central.trees import wavelets
from ldpspatial.release.central.trees.partition import above_mean, cheapest
from ldpspatial.release.central.trees.privtree import PAPER, Growth, grown, scale_and_step
from tests.support import naive_rivals as naive
from tests.support.central_noise import fixed_noise
from tests.support.naive_central import cells_of, node_sum, nodes

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

SHAPES = [(1, 1), (8, 8), (5, 13), (1, 6)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
SEEDS = range(4)


def town(shape: tuple[int, int], seed: int) -> tuple[UserCells, Ints]:
    """Sixty users, most of them in one place, and their units."""
    rng = np.random.default_rng(seed)
    size = shape[0] * shape[1]
    cells = np.where(rng.random(120) < 0.6, rng.integers(size), rng.integers(0, size, 120))
    users = cells_by_user(np.arange(120) // 2, cells, shape)
    dense = np.zeros(shape, np.int64)
    places, units = unit_sums(users)
    dense.ravel()[places] = units
    return users, dense


def published(release: CentralRelease, users: UserCells) -> Array:
    return release.release(users, 1.0, np.random.default_rng(1)).density


# Grids


@every_shape
@pytest.mark.parametrize("parts", [1, 3, 8])
def test_a_uniform_grid_is_its_twin(
    shape: tuple[int, int], parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS:
        users, dense = town(shape, seed)
        noise, _ = fixed_noise(monkeypatch, 3 * MASS, seed)
        found = published(UniformGrid(parts), users)
        assert found == pytest.approx(naive.uniform_grid(dense, parts, noise), abs=1e-12)
        assert next(noise, None) is None


@every_shape
def test_an_adaptive_grid_is_its_twin(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    variances = [noise_deviation(epsilon, MASS) ** 2 for epsilon in (0.25, 0.75)]

    def cuts(mass: int) -> int:
        return naive.cuts_of(mass / MASS, 0.75, 2.0)

    for seed in SEEDS:
        users, dense = town(shape, seed)
        noise, _ = fixed_noise(monkeypatch, 3 * MASS, seed)
        found = published(CentralAdaptiveGrid(alpha=0.25, c2=2.0, parts=2), users)
        share = variances[1] / sum(variances)
        twin = naive.adaptive_grid(dense, 2, cuts, share, noise)
        assert found == pytest.approx(twin, abs=1e-9)
        assert next(noise, None) is None


@pytest.mark.parametrize(("people", "parts"), [(0, 1), (40, 2), (41, 3), (10_000, 32)])
def test_the_rules_of_grids_know_a_public_number_of_people(people: int, parts: int) -> None:
    """Parts are sqrt(N eps / 10), rounded up; the first round of two has a quarter, 10 at least."""
    users, _ = town((64, 64), 1)
    run = UniformGrid(people=people).release(users, 1.0, np.random.default_rng(1))
    assert run.facts["parts"] == parts
    blocks = CentralAdaptiveGrid(people=100 * people).release(users, 1, np.random.default_rng(1))
    wanted = max(10, -(-naive.cuts_of(100.0 * people, 1.0, 10.0) // 4))
    assert blocks.facts["blocks"] == min(wanted, 64) ** 2


def test_a_number_of_people_that_is_not_public_is_measured() -> None:
    users = cells_by_user(range(4000), [0] * 4000, (64, 64))
    run = UniformGrid().release(users, 1.0, np.random.default_rng(1))
    assert run.facts["parts"] == 20  # sqrt(4000 (31 / 32) / 10) = 19.7, give or take noise


# Trees


@every_shape
@pytest.mark.parametrize("depth", [1, 2, 9])
def test_a_quadtree_is_least_squares_of_all_its_sums(
    shape: tuple[int, int], depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = min(depth, Quadtree(shape).depth) + 1
    for seed in SEEDS[:2]:
        users, dense = town(shape, seed)
        noise, _ = fixed_noise(monkeypatch, 3 * MASS, seed)
        found = published(CentralQuadtree(depth, 1.5), users)
        budget = in_proportion(10**6, geometric(1.5, levels))
        variances = [noise_deviation(micro / 1e6, MASS) ** 2 for micro in budget]
        twin = naive.quadtree(dense, variances, noise)
        assert found == pytest.approx(twin, abs=1e-9)
        assert next(noise, None) is None


@every_shape
def test_privtree_is_its_twin(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS:
        users, dense = town(shape, seed)
        counts, shape_noise = fixed_noise(monkeypatch, 9 * MASS, seed)
        found = published(PrivTree(), users)
        leaves = naive.privtree(dense, scale_and_step(500_000)[1], shape_noise)
        masses = [node_sum(dense, node) + next(counts) for node in leaves]
        regions = [cells_of(node, shape) for node in leaves]
        assert found == pytest.approx(naive.even_map(regions, masses, shape), abs=1e-12)
        assert next(counts, None) is next(shape_noise, None) is None


def test_the_bias_of_a_level_is_never_below_what_the_proof_needs() -> None:
    """ln 4 to fifty digits, rounded down: the bias is the least whole number above it."""
    ln_4 = Fraction(138_629_436_111_989_061_883_446_424_291_635_313_615_100_026_872_051, 10**50)
    for micro in (1, 7, 500_000, 20 * 10**6):
        scale, step = scale_and_step(micro)
        assert scale == Fraction(7 * MASS * 10**6, 3 * micro)
        assert 0 < step - scale * ln_4 < 1
        scale, step = scale_and_step(micro, 2)
        assert scale == Fraction(31 * MASS * 10**6, 15 * micro)
        assert 0 < step - scale * 2 * ln_4 < 1


def test_tails_of_the_twin_are_those_of_the_law() -> None:
    a, bounds = np.exp(-1 / 3.0), range(-9, 10)
    numbers = np.arange(-400, 401)
    law = (1 - a) / (1 + a) * a ** np.abs(numbers)
    for bound in bounds:
        assert naive.more_than(bound, 3.0) == pytest.approx(np.log(law[numbers > bound].sum()))


def one_more(dense: Ints, where: tuple[int, int], units: int = MASS) -> Ints:
    more = dense.copy()
    more[where] += units
    return more


def crowds(shape: tuple[int, int], step: int, threshold: int) -> Iterator[Ints]:
    """Where most is lost, everybody in one cell, as deep as biases go; and people at random."""
    for people in range(6):
        for more in (0, MASS // 3):
            yield one_more(np.zeros(shape, np.int64), (0, 0), people * step + threshold + more)
    rng = np.random.default_rng(1)
    for people in (0, 3, 40):
        yield rng.multinomial(people, np.full(64, 1 / 64)).reshape(shape) * MASS


EPSILON = 1.0


def losses(scale: float, step: int, first: int = 0, threshold: int = 0) -> list[float]:
    """What one user adds to the loss in the worst tree, alone in one cell or spread over many."""
    found = []
    for before in crowds((8, 8), step, threshold):
        even = np.full((8, 8), MASS // 64)
        for after in (one_more(before, (0, 0)), one_more(before, (7, 3)), before + even):
            for pair in ((before, after), (after, before)):
                loss = naive.privtree_loss(*pair, scale, step, first=first, threshold=threshold)
                found.append(max(np.abs(loss)))
    return found


@pytest.mark.parametrize("growth", [PAPER, Growth(1, 2, Fraction(1, 2))])
def test_the_shape_of_a_privtree_hides_one_user_exactly(growth: Growth) -> None:
    """Over all trees, by the exact law; half the noise, and half the bias, would be noticed."""
    scale, step = scale_and_step(int(EPSILON * 1e6), growth.power)
    threshold = ceil(growth.threshold * scale)
    places = growth.first, threshold
    assert 0.7 * EPSILON < max(losses(float(scale), step, *places)) <= EPSILON
    assert max(losses(float(scale) / 2, step // 2, *places)) > 1.3 * EPSILON


def test_the_bias_keeps_the_loss_from_growing_with_depth() -> None:
    """One unit at a time, as the proof goes: a unit loses at most epsilon / MASS."""
    scale, step = scale_and_step(int(EPSILON * 1e6))
    nobody = np.zeros((16, 16), np.int64)
    before = one_more(nobody, (0, 0), 2 * step)
    after = one_more(before, (0, 0), 1)
    assert 0.9 < naive.privtree_loss(before, after, float(scale), step)[0] * MASS <= EPSILON
    unbiased = naive.privtree_loss(nobody, one_more(nobody, (0, 0), 1), float(scale), 0)
    assert unbiased[0] * MASS > 1.5 * EPSILON


@pytest.mark.parametrize("people", [0, 500])
def test_without_epsilon_for_the_shape_the_map_is_one_bucket(people: int) -> None:
    """A quarter of three millionths is none, and a billionth of all epsilon is none either."""
    users = cells_by_user(range(people), [3] * people, (4, 4))
    for release, epsilon in ((LeastCostPartition(), 3e-6), (LeastCostPartition(1e-9), 20.0)):
        run = release.release(users, epsilon, np.random.default_rng(1))
        assert run.facts == {"buckets": 1}
        assert (run.density == 1 / 16).all()
        assert run.claim.epsilon == epsilon


def test_without_epsilon_for_the_shape_the_map_is_one_leaf() -> None:
    users, _ = town((8, 8), 1)
    tree = Quadtree((8, 8))
    source = np.random.default_rng(1).bytes
    ((level, found),) = grown(Pyramid(tree, *unit_sums(users)), 0, source)
    assert (level, found.tolist()) == (0, [0])


# The partition


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 50), min_size=15, max_size=15),
    st.integers(0, 14),
    st.integers(0, 2),
)
def test_units_above_the_mean_are_the_twins_and_one_unit_changes_them_by_one(
    values: list[int], at: int, level: int
) -> None:
    shape = (3, 5)
    tree = Quadtree(shape)
    dense = np.array(values).reshape(shape)
    found = above_mean(tree, level, dense)
    twin = [
        naive.above_mean([int(dense[cell]) for cell in cells_of(node, shape)])
        for node in nodes(level, shape)
    ]
    assert found.tolist() == twin
    more = above_mean(tree, level, one_more(dense, (at // 5, at % 5), 1))
    assert np.abs(more - found).sum() <= 1


def test_units_above_the_mean_fit_64_bits() -> None:
    dense = np.zeros((512, 512), np.int64)
    dense[0, 0] = 2**62
    (found,) = above_mean(Quadtree((512, 512)), 0, dense).tolist()
    assert found == 2**62 - 2**62 // 512**2


@pytest.mark.parametrize("shape", [(4, 4), (3, 4), (1, 3)], ids=str)
def test_the_partition_is_the_cheapest_of_all(shape: tuple[int, int]) -> None:
    tree = Quadtree(shape)
    rng = np.random.default_rng(1)
    for _ in range(20):
        noisy = [rng.integers(-9, 9, len(tree.numbers(level))) for level in range(tree.depth)]
        costs = {
            node: 5.0 + 2 * max(int(value), 0)
            for level, values in enumerate(noisy)
            for node, value in zip(nodes(level, shape), values, strict=True)
        }
        ways = naive.partitions((0, 0, 0), shape)
        least = min(sum(costs.get(node, 5.0) for node in way) for way in ways)
        found = cheapest(tree, noisy, 5.0)
        at = {level: nodes(level, shape) for level in range(tree.depth + 1)}
        chosen = [
            at[level][place]
            for level, numbers in found
            for place in np.searchsorted(tree.numbers(level), numbers)
        ]
        assert sum(costs.get(node, 5.0) for node in chosen) == least
        cells = [cell for node in chosen for cell in cells_of(node, shape)]
        assert sorted(cells) == naive.every_cell(shape)


def test_a_partition_publishes_the_noisy_counts_of_its_buckets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = (4, 4)
    tree = Quadtree(shape)
    for seed in SEEDS:
        users, dense = town(shape, seed)
        noise, _ = fixed_noise(monkeypatch, 9 * MASS, seed)
        found = published(LeastCostPartition(), users)
        noisy = [
            above_mean(tree, level, dense) + np.array(list(islice(noise, 4**level)))
            for level in range(2)
        ]
        buckets = [
            nodes(level, shape)[place]
            for level, numbers in cheapest(tree, noisy, MASS / 0.75)
            for place in np.searchsorted(tree.numbers(level), numbers)
        ]
        masses = [node_sum(dense, node) + next(noise) for node in buckets]
        regions = [cells_of(node, shape) for node in buckets]
        assert found == pytest.approx(naive.even_map(regions, masses, shape), abs=1e-12)
        assert next(noise, None) is None


# Wavelets


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (4, 16), (16, 1)], ids=str)
def test_coefficients_are_those_of_the_basis_and_come_back(shape: tuple[int, int]) -> None:
    sums = np.random.default_rng(1).integers(0, 9, shape)
    tensor = wavelets.tensor_groups(sums)
    rows = naive.tensor_rows(*shape)
    found = np.concatenate([group.values.ravel() for group in tensor])
    assert sorted(found.tolist()) == sorted((rows @ sums.ravel()).tolist())
    back = wavelets.tensor_of([group.values.astype(float) for group in tensor], shape)
    assert (back == sums).all()
    if shape[0] == shape[1]:
        square = wavelets.square_groups(sums)
        found = np.concatenate([group.values.ravel() for group in square])
        assert found.tolist() == (naive.square_rows(shape[0]) @ sums.ravel()).tolist()
        assert (wavelets.squares_of([group.values.astype(float) for group in square]) == sums).all()


@pytest.mark.parametrize("basis", ["square", "tensor"])
def test_a_unit_changes_one_coefficient_of_each_group_by_one(basis: str) -> None:
    """Sensitivity: MASS for each group, and no group is asked twice."""
    groups_of = wavelets.square_groups if basis == "square" else wavelets.tensor_groups
    nobody = np.zeros((8, 8), np.int64)
    before = groups_of(nobody)
    assert len(before) == (1 + 3 * 3 if basis == "square" else 4 * 4)
    for at in range(64):
        after = groups_of(one_more(nobody, (at // 8, at % 8), 1))
        for one, other in zip(before, after, strict=True):
            assert np.abs(other.values - one.values).sum() == 1


@every_shape
@pytest.mark.parametrize("basis", ["square", "tensor"])
def test_a_wavelet_map_is_that_of_noisy_coefficients(
    shape: tuple[int, int], basis: wavelets.Basis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the noise of a dense matrix: its inverse times the same noisy numbers."""
    tree = Quadtree(shape)
    users, dense = town(shape, 1)
    noise, _ = fixed_noise(monkeypatch, 3 * MASS, 1)
    found = published(Wavelets(9, basis), users)
    sides = [1 << (side - 1).bit_length() for side in shape]
    if basis == "square":
        sides = [1 << tree.depth] * 2
    padded = np.zeros(sides, np.int64)
    padded[: shape[0], : shape[1]] = dense
    groups_of = wavelets.square_groups if basis == "square" else wavelets.tensor_groups
    empty = groups_of(padded)
    rows = naive.square_rows(sides[0]) if basis == "square" else naive.tensor_rows(*sides)
    # Where a group's coefficients lie among the rows: by the maps of one unit, which name them.
    kinds = {tuple(row): k for k, row in enumerate(rows.tolist())}
    order = []
    units = [groups_of(unit.reshape(sides)) for unit in np.eye(padded.size, dtype=np.int64)]
    for group in range(len(empty)):
        patterns = np.array([unit[group].values.ravel() for unit in units]).T
        order += [kinds[tuple(pattern)] for pattern in patterns.tolist()]
    noisy = (rows @ padded.ravel()).astype(float)
    for at in order:
        noisy[at] += next(noise)
    assert next(noise, None) is None
    cells = np.linalg.solve(rows.astype(float), noisy).reshape(sides)[: shape[0], : shape[1]]
    every = [[cell] for cell in naive.every_cell(shape)]
    assert found == pytest.approx(naive.even_map(every, cells.ravel().tolist(), shape), abs=1e-9)


# Negative masses


@settings(max_examples=100)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=12))
def test_the_nearest_map_without_negatives_keeps_the_sum(values: list[float]) -> None:
    masses = np.array([values])
    twin = naive.nearest_map(masses)
    assume(not 0 < masses.sum() < 1e-6)  # next to nothing: where all of it goes is rounding
    assert density_of_masses(masses, "nearest") == pytest.approx(twin, abs=1e-6)


def test_the_nearest_map_is_uniform_where_rounding_hides_the_sum() -> None:
    """No error, and no index out of bounds: what is published must not depend on that."""
    for masses in (
        [2.0**60, -(2.0**60), 1.0],
        [-1.0, -2.0, 3.0],
        [0.0, 0.0, 0.0],
        [-5.0, 1.0, 0.0],
    ):
        density = density_of_masses(np.array([masses]), "nearest")
        assert density == pytest.approx(np.full((1, 3), 1 / 3))


@pytest.mark.parametrize(
    "release",
    [UniformGrid(16), CentralAdaptiveGrid(), CentralQuadtree(), Wavelets()],
    ids=lambda release: release.name,
)
def test_releases_publish_the_nearest_map_where_asked(release: CentralRelease) -> None:
    """Of the same noisy numbers: whatever was cut off is now taken off all."""
    users, _ = town((16, 16), 1)
    near = published(replace(release, negatives="nearest"), users)  # type: ignore[type-var]
    zero = published(release, users)
    assert near.min() == 0
    assert np.count_nonzero(near) < np.count_nonzero(zero)
    assert (zero[near > 0] > 0).all()


# Budgets


@settings(max_examples=100)
@given(
    st.integers(1, 20 * 10**6),
    st.floats(1e-3, 16),
    st.integers(1, 15),
    st.floats(0, 1, exclude_min=True, exclude_max=True),
)
def test_parts_are_in_proportion_and_all_of_epsilon(
    micro: int, growth: float, number: int, alpha: float
) -> None:
    parts = in_proportion(micro, geometric(growth, number))
    assert sum(parts) == micro
    assert min(parts) >= 0
    weights = geometric(growth, number)
    for part, weight in zip(parts[:-1], weights, strict=False):
        assert 0 <= micro * weight / sum(weights) - part < 1
    first, rest = in_two(micro, alpha)
    assert first == int(micro * Fraction(alpha))
    assert rest == micro - first >= 1


@pytest.mark.parametrize("release", [UniformGrid(), CentralAdaptiveGrid()])
def test_the_least_epsilon_is_enough_for_a_grid(release: CentralRelease) -> None:
    users = cells_by_user([0], [0], (4, 4))
    assert release.release(users, 1e-6, np.random.default_rng(1)).claim.epsilon == 1e-6


def test_a_quarter_of_the_sides_is_rounded_up() -> None:
    users = cells_by_user(np.arange(20_000), np.zeros(20_000, int), (64, 64))
    run = CentralAdaptiveGrid(people=20_000).release(users, 1.0, np.random.default_rng(1))
    assert run.facts["blocks"] == 12**2  # a quarter of 45
