"""The plain disk: its known answers, its real radius, and its reports."""

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from mpmath import mp, workdps  # type: ignore[import-untyped]
from scipy.stats import chi2

from client_sdk import ParameterError, ResponseTable, kernels, response_table
from client_sdk.mechanisms import PAPER
from client_sdk.shrunken import optimal_radius, optimal_squared_radius
from client_sdk.testing import StreamEntropy
from client_sdk.verify import verify_table
from tests.support import naive_mechanisms as naive

HUGE = pytest.param(10**5000, id="huge")  # Python refuses to write it out
FALSE_ALARM = 1e-6


def disk(epsilon: object, cells: int, squared: object) -> ResponseTable:
    return response_table("disk", epsilon, cells, squared_radius=squared)  # type: ignore[arg-type]


# Known answers


@pytest.mark.parametrize(
    ("cells", "epsilon", "squared", "points", "size", "top"),
    [
        (5, 0.7, 24, 69, 157, "0.00887315329927"),
        (5, 3.5, 1, 5, 45, "0.161085190025"),
        (10, 3.5, 5, 21, 192, "0.0382208170448"),
        (15, 0.7, 223, 697, 1705, "0.000835032634332"),
        (15, 1.4, 104, 333, 1117, "0.00189994141058"),
        (15, 3.5, 12, 37, 429, "0.0204761212965"),
        (15, 5, 2, 9, 289, "0.0918558309234"),
        (20, 3.5, 21, 69, 772, "0.0110829406716"),
        (20, 7, 0, 1, 400, "0.73322335243"),
    ],
)
def test_the_known_radius_domain_and_probability(
    cells: int, epsilon: float, squared: int, points: int, size: int, top: str
) -> None:
    """N = points in the circle + d^2 + 4bd - 4b - 1; e^eps over the total, with 60 digits."""
    table = response_table("disk", epsilon, cells)
    assert table == disk(epsilon, cells, squared)
    assert optimal_squared_radius(epsilon, cells) == squared
    assert (len(table.weights), table.output_size) == (points, size)
    assert float(table.probability(0, 0)) == pytest.approx(float(top), rel=1e-11)


def test_the_numbers_of_points_are_those_of_gauss() -> None:
    counts = [len(disk(1, 5, squared).weights) for squared in range(26)]
    assert counts == [1, 5, 9, 9, 13, 21, 21, 21, 25, 29, 37, 37, 37, 45, 45, 45, 49, 57, 61, 61,
                      69, 69, 69, 69, 69, 81]  # fmt: skip


# The radius


@pytest.mark.parametrize("cells", [*range(1, 21), 64, 128, 4096])
def test_the_default_is_the_square_of_the_unrounded_radius(cells: int) -> None:
    """Down to epsilon 1e-6, where float64 loses all digits."""
    for epsilon in map(Fraction, ("1/1000000", "1/1000", "1/10", "7/10", "33/10", "7", "20")):
        with workdps(naive.DIGITS):
            expected = int(mp.floor(naive.real_radius(epsilon, cells) ** 2))
        assert optimal_squared_radius(epsilon, cells) == expected
        b = optimal_radius(epsilon, cells)
        assert b * b <= expected < (b + 1) ** 2


@pytest.mark.parametrize("radius", [0, 1, 2, 5, 14])
def test_a_whole_radius_is_its_square(radius: int) -> None:
    assert response_table("disk", 2, 7, radius) == disk(2, 7, radius**2)
    assert response_table("disk", 2, 7, radius).radius == radius


@pytest.mark.parametrize(("epsilon", "cells"), [(Fraction(7, 5), 1), (2, 2), (Fraction(7, 2), 5)])
def test_every_squared_radius_gives_the_formula_rounded_down(epsilon: Any, cells: int) -> None:
    for squared in range(4 * cells**2 + 1):
        table = disk(epsilon, cells, squared)
        verify_table(table, Fraction(epsilon))
        with workdps(naive.DIGITS):
            weight = int(mp.floor(table.base_weight * mp.exp(naive.real(Fraction(epsilon)))))
        span = range(-2 * cells, 2 * cells + 1)
        offsets = [(r, c) for r, c in product(span, span) if r * r + c * c <= squared]
        assert dict(table.weights) == dict.fromkeys(offsets, weight)
        assert set(table.output_cells()) == naive.output_domain(cells, offsets)


def test_the_squared_radius_is_that_of_the_farthest_cell_and_makes_the_same_table() -> None:
    sums = [x * x + y * y for x, y in product(range(11), repeat=2)]
    for squared in range(101):
        table = disk(2, 5, squared)
        assert table.squared_radius == max(s for s in sums if s <= squared)
        assert disk(2, 5, table.squared_radius) == table
    assert {disk(2, 5, squared).radius for squared in (4, 5, 8)} == {2}


def test_no_cell_is_mixed() -> None:
    """Under any position, a report has one of two weights, at the ratio e^epsilon."""
    table = disk(2, 9, 13)
    assert {weight for row in table.octant for weight in row} == {table.max_weight}
    dam = response_table("dam", 2, 9, 3)
    assert len({weight for row in dam.octant for weight in row}) > 2


# Bad input


@pytest.mark.parametrize("squared", [-1, 101, 5.0, 4.5, "5", True, False, [5], np.float64(5), HUGE])
def test_a_bad_squared_radius_is_refused(squared: Any) -> None:
    rule = "squared_radius must be a whole number from 0 to 100, got "
    with pytest.raises(ParameterError, match=rule):
        disk(1, 5, squared)
    assert disk(1, 5, np.int64(100)) == disk(1, 5, 100)


def test_two_radii_are_refused() -> None:
    with pytest.raises(ParameterError, match="radius and squared_radius must not both be given"):
        response_table("disk", 1, 5, 2, 4)
    with pytest.raises(ParameterError, match="radius must be a whole number from 0 to 10, got 11"):
        response_table("disk", 1, 5, 11)


@pytest.mark.parametrize("mechanism", PAPER)
@pytest.mark.parametrize("radius", [None, 2])
def test_a_real_radius_of_another_mechanism_is_refused(mechanism: str, radius: int | None) -> None:
    rule = f"squared_radius is for mechanism disk alone, not for {mechanism}"
    with pytest.raises(ParameterError, match=rule):
        response_table(mechanism, 1, 5, radius, 4)


# Reports


def test_many_reports_follow_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square at false alarm 1e-6; the same reports do not fit the next smaller disk."""
    n, cell = 100_000, (0, 3)
    monkeypatch.setattr("client_sdk.entropy.system", StreamEntropy("disk"))
    table = disk(1.4, 5, 5)
    rows, cols = kernels.randomize_many(table, *(np.full(n, place) for place in cell))
    counts = Counter(zip(rows.tolist(), cols.tolist(), strict=True))
    assert set(counts) <= set(table.output_cells())

    def statistic(law: ResponseTable) -> float:
        expected = {
            (r, c): n * float(law.probability(r - cell[0], c - cell[1]))
            for r, c in law.output_cells()
        }
        return sum((counts[at] - e) ** 2 / e for at, e in expected.items())

    assert statistic(table) < chi2.isf(FALSE_ALARM, table.output_size - 1)
    smaller = disk(1.4, 5, 4)
    assert statistic(smaller) > chi2.isf(FALSE_ALARM, smaller.output_size - 1)
