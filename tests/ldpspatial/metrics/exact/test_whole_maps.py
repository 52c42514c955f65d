import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pytest

from ldpspatial.metrics.exact.whole_maps import UNITS, WholeMaps, snake, whole_maps

FloatArray = npt.NDArray[np.float64]


def shares(masses: FloatArray) -> list[Fraction]:
    """The map scaled to mass 1, exactly."""
    exact = [Fraction(mass) for mass in masses.ravel().tolist()]
    return [mass / sum(exact) for mass in exact]


def expected(p: FloatArray, q: FloatArray, without_common: bool) -> list[list[Fraction]]:
    first, second = shares(p), shares(q)
    common = [min(a, b) * without_common for a, b in zip(first, second, strict=True)]
    return [[a - b for a, b in zip(each, common, strict=True)] for each in (first, second)]


def check(p: FloatArray, q: FloatArray, without_common: bool, rounded: bool) -> WholeMaps:
    """Compare with the maps as fractions: equal, or their sums along the snake nearly so."""
    maps = whole_maps(p, q, without_common)
    assert maps.rounded == rounded
    assert maps.unit > 0
    for whole, exact in zip(
        (maps.supply, maps.demand), expected(p, q, without_common), strict=True
    ):
        assert whole.shape == p.shape
        assert whole.dtype == np.int64
        assert whole.min() >= 0
        if not rounded:
            assert [int(mass) * maps.unit for mass in whole.flat] == exact
            continue
        assert whole.sum() == UNITS
        assert maps.unit * UNITS == pytest.approx(float(sum(exact)), rel=1e-15)
        path = naive_snake(p.shape)
        sums = accumulate(int(whole.flat[cell]) for cell in path)
        for got, true in zip(sums, accumulate(exact[cell] for cell in path), strict=True):
            assert abs(got - true / maps.unit) <= Fraction(1, 2)
    return maps


def naive_snake(shape: tuple[int, ...]) -> list[int]:
    path = []
    for row in range(shape[0]):
        columns = range(shape[1]) if row % 2 == 0 else reversed(range(shape[1]))
        path += [row * shape[1] + column for column in columns]
    return path


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 2), (3, 4), (4, 3)])
def test_the_snake_goes_from_neighbour_to_neighbour(shape: tuple[int, int]) -> None:
    path = snake(shape).tolist()
    assert path == naive_snake(shape)
    assert sorted(path) == list(range(shape[0] * shape[1]))
    rows, columns = np.divmod(np.array(path), shape[1])
    assert (abs(np.diff(rows)) + abs(np.diff(columns)) == 1).all()


@pytest.mark.parametrize("without_common", [False, True])
@pytest.mark.parametrize("scale", [1.0, 2.0**-1060, 2.0**1000, 1.0 / 3])
def test_counts_of_equal_totals_are_exact(without_common: bool, scale: float) -> None:
    rng = np.random.default_rng(1)
    for shape in [(1, 2), (3, 1), (4, 5), (9, 9)]:
        p = rng.integers(0, 50, shape).astype(float)
        p[0, 0] += 1
        q = rng.permutation(p.ravel()).reshape(shape)
        # A third of a whole number is rounded, but alike in both maps: no unit is common to all.
        if scale == 1.0 / 3:
            p, q = p * 2.0**-30, q * 2.0**-30
        else:
            p, q = p * scale, q * scale
        maps = check(p, q, without_common, rounded=False)
        assert maps.supply.sum() == maps.demand.sum() <= shares_total(p)


def shares_total(masses: FloatArray) -> int:
    """How many times the largest common unit of the masses goes into their total."""
    exact = [Fraction(mass) for mass in masses.ravel().tolist() if mass > 0]
    denominator = math.lcm(*(mass.denominator for mass in exact))
    whole = [int(mass * denominator) for mass in exact]
    return sum(whole) // math.gcd(*whole)


@pytest.mark.parametrize("without_common", [False, True])
def test_counts_of_other_totals_with_a_small_common_unit_are_exact(without_common: bool) -> None:
    rng = np.random.default_rng(2)
    for total in (3, 10**7 + 19, 2**24 + 1):
        p = rng.multinomial(total, np.full(12, 1 / 12)).reshape(3, 4).astype(float)
        q = rng.multinomial(total + 1, np.full(12, 1 / 12)).reshape(3, 4).astype(float)
        check(p, q, without_common, rounded=False)


def test_a_total_of_2_to_the_52_is_exact_and_one_more_is_not() -> None:
    for total, rounded in ((2**52, False), (2**52 + 1, True)):
        p, q = np.array([[total - 1.0, 1.0]]), np.array([[2.0, total - 2.0]])
        maps = check(p, q, False, rounded)
        assert maps.supply.sum() == 2**52
        # What both maps have is taken away first, so that what is left is exact all the same.
        assert not check(p, np.array([[total - 3.0, 3.0]]), True, False).rounded


@pytest.mark.parametrize("without_common", [False, True])
@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (4, 5), (9, 8)])
def test_real_masses_are_rounded_along_the_snake(
    shape: tuple[int, int], without_common: bool
) -> None:
    rng = np.random.default_rng([3, *shape])
    for spread in (0, 9, 300):
        p, q = rng.random((2, *shape)) * 10.0 ** rng.uniform(-spread, 0, (2, *shape))
        q *= rng.random(shape) < 0.7
        p[-1, -1] += 0.1
        q[0, 0] += 0.1
        check(p, q, without_common, rounded=True)
        check(p * 2.0**-1000, q * 2.0**1000, without_common, rounded=True)


def test_masses_halfway_between_units_are_at_most_half_a_unit_off() -> None:
    # Every sum along the snake lies halfway between two units: n roundings, yet no drift.
    p, q = np.full((5, 8), 2.0**-53), np.full((5, 8), 2.0**-53)
    p[0, 0], q[4, 7] = 1 - 39 * 2.0**-53, 1 - 39 * 2.0**-53
    check(p, q, False, rounded=True)
    check(p[:, ::-1], q[::-1], False, rounded=True)


@pytest.mark.parametrize("tiny", [1e-300, 5e-324, 2.0**-1022])
@pytest.mark.parametrize("without_common", [False, True])
def test_masses_of_extreme_ratios(tiny: float, without_common: bool) -> None:
    p, q = np.array([[1.0, tiny, 0.3], [0.0, 0.1, tiny]]), np.array([[tiny, 0.7, 0], [1, 0, tiny]])
    check(p, q, without_common, rounded=True)
    check(p * 2.0**900, q, without_common, rounded=True)


def test_subnormal_masses_are_exact() -> None:
    least = 5e-324
    p, q = np.array([[3 * least, 0, least]]), np.array([[0, 2 * least, 2 * least]])
    maps = check(p, q, False, rounded=False)
    assert (maps.supply.tolist(), maps.demand.tolist()) == ([[3, 0, 1]], [[0, 2, 2]])
    assert maps.unit == Fraction(1, 4)
    check(p, q * 2.0**1000 * 2.0**74, False, rounded=False)


def test_the_largest_floats_do_not_overflow() -> None:
    p = np.array([[1.7e308, 1e290], [0.0, 0.0]])
    check(p, p[::-1].copy(), False, rounded=True)


def test_common_mass_is_taken_away_exactly() -> None:
    p = np.array([[5.0, 1.0, 3.0, 0.0]])
    q = np.array([[2.0, 1.0, 0.0, 6.0]])
    maps = check(p, q, True, rounded=False)
    assert (maps.supply.tolist(), maps.demand.tolist()) == ([[1, 0, 1, 0]], [[0, 0, 0, 2]])
    assert maps.unit == Fraction(3, 9)
    # Next to a common mass of 1, what differs by 2^-52 of it stays exact.
    blurred = np.array([[1.0, 2.0**-52, 2.0**-60]])
    maps = check(blurred, blurred[:, [0, 2, 1]].copy(), True, rounded=False)
    assert (maps.supply.tolist(), maps.demand.tolist()) == ([[0, 1, 0]], [[0, 0, 1]])


def test_where_nothing_but_common_mass_is_there_nothing_is_left() -> None:
    p = np.array([[1.0, 0.25], [0.1, 0.0]])
    maps = check(p, p * 8, True, rounded=False)
    assert not maps.supply.any()
    assert not maps.demand.any()


@pytest.mark.parametrize("tiny", [2.0**-130, 2.0**-1000, 5e-324])
def test_the_smallest_masses_are_not_cut_off(tiny: float) -> None:
    # Where the large ones are the same in both maps, these are all that is left to carry.
    p, q = np.array([[1.0, tiny, 0.0]]), np.array([[1.0, 0.0, tiny]])
    maps = check(p, q, True, rounded=False)
    assert (maps.supply.tolist(), maps.demand.tolist()) == ([[0, 1, 0]], [[0, 0, 1]])
    check(p, q, False, rounded=True)
    check(p, np.array([[1.0, tiny * 2, 0.0]]), True, rounded=False)


def test_arguments_stay_as_they_are() -> None:
    p, q = np.array([[0.3, 0.7]]), np.array([[0.6, 0.4]])
    p.flags.writeable = q.flags.writeable = False
    whole_maps(p, q, True)
