"""The tables: known answers, the claim in exact numbers, and a twin written from the formulas."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf, workdps  # type: ignore[import-untyped]

from client_sdk import ParameterError, ResponseTable, response_table
from client_sdk.exact import BITS, exp_below
from client_sdk.mechanisms import MECHANISMS
from client_sdk.shrunken import optimal_radius
from client_sdk.validate import MAX_CELLS, WEIGHT_LIMIT
from tests.support import naive_mechanisms as naive

HUGE = pytest.param(10**5000, id="huge")  # Python refuses to write it out
CELLS = (*range(1, 21), 64, 128)
EPSILONS = (0.1, 0.2, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 3.5, 5.0, 7.0, 9.0, 10.0)
SMALL = [
    (mechanism, Fraction(epsilon), cells, radius)
    for mechanism in MECHANISMS
    for epsilon, cells, radius in (
        ("1/1000", 3, None), ("1/10", 2, None), ("7/10", 5, None), ("7/5", 1, None),
        ("7/2", 6, None), ("7/2", 15, None), ("9", 4, 3), ("7/2", 2, 0), ("2", 1, 2), ("5", 7, 14),
    )
]  # fmt: skip


# Known answers


@pytest.mark.parametrize(
    ("cells", "epsilon", "radius", "size", "top"),
    [
        (5, 0.7, 4, 157, "0.00936821481"),
        (5, 3.5, 1, 49, "0.142974542"),
        (10, 3.5, 2, 192, "0.0455766453"),
        (15, 0.7, 14, 1681, "0.000864813125"),
        (15, 1.4, 10, 1141, "0.00188039071"),
        (15, 3.5, 3, 437, "0.0216736226"),
        (15, 5, 1, 289, "0.131661335"),
        (20, 3.5, 4, 772, "0.0126975043"),
    ],
)
def test_dam_gives_the_known_radius_domain_and_probability(
    cells: int, epsilon: float, radius: int | None, size: int, top: str
) -> None:
    table = response_table("dam", epsilon, cells)
    assert (table.radius, table.output_size) == (radius, size)
    assert float(table.probability(0, 0)) == pytest.approx(float(top), rel=6e-9)


def test_radius_stays_right_where_float64_loses_all_its_digits() -> None:
    with workdps(40):
        limit = float((2 + mp.sqrt(4 + mp.pi)) / mp.pi)
    assert optimal_radius(1e-6, 10**6) == pytest.approx(limit * 10**6, abs=1.5)
    for epsilon in (Fraction(1, 10**6), Fraction(1, 1000), Fraction(33, 10), Fraction(20)):
        for cells in (1, 15, 4096):
            assert optimal_radius(epsilon, cells) == naive.radius(epsilon, cells)


# The claim


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("cells", CELLS)
def test_ratio_never_exceeds_e_to_the_epsilon_and_comes_close(mechanism: str, cells: int) -> None:
    with workdps(60):  # holds a ratio of 53-bit numbers exactly
        for epsilon in EPSILONS:
            ratio = response_table(mechanism, epsilon, cells).max_ratio()
            exact = mpf(ratio.numerator) / ratio.denominator
            # The float is an exact number too: 0.7 holds slightly less than 7/10.
            assert exact <= mp.exp(mpf(min(Fraction(epsilon), Fraction(str(epsilon)))))
            assert exact >= (1 - mpf("1e-9")) * mp.exp(mpf(epsilon))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_float_is_read_as_the_smaller_of_what_it_holds_and_what_it_shows(mechanism: str) -> None:
    for epsilon in (0.1, 0.7):  # the first holds more than it shows, the second less
        smaller = min(Fraction(epsilon), Fraction(str(epsilon)))
        assert response_table(mechanism, epsilon, 9).octant == (
            response_table(mechanism, smaller, 9).octant
        )


@pytest.mark.parametrize("micro", [1, 10, 999, 10**6, 3_500_000, 6_931_472, 19_999_999, 2 * 10**7])
def test_the_integer_bound_is_below_the_exponential_by_a_hair(micro: int) -> None:
    exponent = Fraction(micro, 10**6)
    with workdps(90):
        exact = mp.exp(mpf(micro) / 10**6) * mpf(2) ** BITS
        assert 0 <= 1 - exp_below(exponent) / exact < mpf(2) ** -180


# Shape


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("cells", [1, 2, 3, 5, 15])
@pytest.mark.parametrize("radius", [0, 1, 2, 3, 6, 10])
def test_output_domain_is_the_union_of_the_disks(mechanism: str, cells: int, radius: int) -> None:
    radius = min(radius, 2 * cells)
    table = response_table(mechanism, 1.0, cells, radius)
    disk = naive.disk_offsets(mechanism, radius)
    assert list(table.weights) == sorted(disk)
    assert len(table.weights) == len(disk)
    domain = naive.output_domain(cells, disk)
    assert list(table.output_cells()) == sorted(domain)
    assert [table.output_cell(i) for i in range(table.output_size)] == sorted(domain)
    around = range(-radius - 2, cells + radius + 2)
    assert all(table.is_output(r, c) == ((r, c) in domain) for r in around for c in around)
    size = len(disk) + cells**2 + 4 * radius * cells - 4 * radius - 1
    assert table.output_size == len(domain) == size


@pytest.mark.parametrize(("mechanism", "epsilon", "cells", "radius"), SMALL)
def test_every_input_cell_has_probabilities_that_sum_to_one(
    mechanism: str, epsilon: Fraction, cells: int, radius: int | None
) -> None:
    table = response_table(mechanism, epsilon, cells, radius)
    assert table.max_weight == table.weights[0, 0]
    corners = {(0, 0), (0, cells - 1), (cells - 1, cells // 2)}
    for row, col in corners:
        outputs = table.output_cells()
        assert sum(table.probability(r - row, c - col) for r, c in outputs) == 1


@pytest.mark.parametrize(("mechanism", "epsilon", "cells", "radius"), SMALL)
def test_weights_equal_the_formulas_rounded_down(
    mechanism: str, epsilon: Fraction, cells: int, radius: int | None
) -> None:
    table = response_table(mechanism, epsilon, cells, radius)
    asked = naive.best_radius(mechanism, epsilon, cells) if radius is None else radius
    assert table.radius == int(asked)
    disk = naive.disk(mechanism, epsilon, asked)
    with workdps(naive.DIGITS):
        assert dict(table.weights) == {
            offset: int(mp.floor(table.base_weight * weight)) for offset, weight in disk.items()
        }
        q = naive.base_probability(disk, cells)
        assert abs(Fraction(table.base_weight, table.total_weight) / Fraction(str(q)) - 1) < 1e-9


def test_huem_falls_off_with_distance_and_dam_ns_is_flat() -> None:
    huem = response_table("huem", 2, 15, 5)
    arm = [huem.weights[0, x] for x in range(6)]
    assert arm == sorted(arm, reverse=True)
    assert arm[0] == arm[1]  # the smallest disk, of radius 1, holds both
    assert len(set(arm)) == 5
    flat = response_table("dam-ns", 2, 15, 5)
    assert {w for (r, c), w in flat.weights.items() if r * r + c * c <= 25} == {flat.max_weight}
    assert {w for (r, c), w in flat.weights.items() if r * r + c * c > 25} == {flat.base_weight}


def test_mechanisms_agree_at_radius_zero_which_is_randomised_response() -> None:
    tables = [response_table(m, 3.5, 4) for m in MECHANISMS]
    assert len({(t.base_weight, t.octant) for t in tables}) == 1
    table = tables[0]
    assert (table.radius, table.output_size, len(table.weights)) == (0, 16, 1)
    assert float(table.probability(0, 0)) == pytest.approx(np.exp(3.5) / (np.exp(3.5) + 15))


# 53 bits


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("cells", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3.5, 10, 20])
def test_base_weight_is_the_largest_power_of_two_that_fits(
    mechanism: str, cells: int, epsilon: float
) -> None:
    table = response_table(mechanism, epsilon, cells)
    base, total = table.base_weight, table.total_weight
    assert base & (base - 1) == 0
    assert total < WEIGHT_LIMIT
    # floor(2 x) <= 2 floor(x) + 1: twice the base gives at most 2 total + one a disk cell. So
    # the total lies in (2^52 - disk, 2^53), and only rounding can leave it below 2^52.
    assert 2 * total + len(table.weights) >= WEIGHT_LIMIT
    with workdps(naive.DIGITS):
        exact = Fraction(str(epsilon))
        disk = naive.disk(mechanism, exact, naive.best_radius(mechanism, exact, cells))
        doubled = sum(int(mp.floor(2 * base * w)) - 2 * base for w in disk.values())
    assert table.output_size * 2 * base + doubled >= WEIGHT_LIMIT


def test_a_table_of_more_than_53_bits_is_refused() -> None:
    with pytest.raises(ParameterError, match="radius must be smaller at this epsilon"):
        response_table("dam-ns", 20, 1300, 2600)


# Arguments


def test_radius_can_be_chosen_up_to_twice_the_side() -> None:
    assert response_table("dam", 1, 3, 6).radius == 6
    assert response_table("dam", 1, np.int64(3), np.int32(0)).radius == 0


@pytest.mark.parametrize("epsilon", [3, np.int64(3), np.float32(3), Fraction(3)])
def test_every_number_type_gives_the_same_table(epsilon: Any) -> None:
    assert response_table("dam", epsilon, 15) == response_table("dam", 3.0, 15)


@pytest.mark.parametrize(
    "epsilon",
    [0, -1, -0.5, float("nan"), float("inf"), -float("inf"), 1e3, 20.000001, 9e-7, 1e-300,
     "3.5", "", "x", b"1", None, True, False, 1j, [1], (1,), {}, object(), HUGE],
)  # fmt: skip
def test_bad_epsilon_is_refused(epsilon: Any) -> None:
    with pytest.raises(
        ParameterError, match=r"epsilon must be a number from 0\.000001 to 20, got "
    ):
        response_table("dam", epsilon, 5)


@pytest.mark.parametrize(
    "cells", [0, 1.5, 5.0, -1, MAX_CELLS + 1, "5", None, True, [5], np.float64(5), HUGE]
)
def test_bad_cells_are_refused(cells: Any) -> None:
    with pytest.raises(ParameterError, match="cells must be a whole number from 1 to 4096, got "):
        response_table("dam", 1, cells)


@pytest.mark.parametrize("radius", [-1, 0.5, 1.0, 11, "1", False, [1], HUGE])
def test_bad_radius_is_refused(radius: Any) -> None:
    with pytest.raises(ParameterError, match="radius must be a whole number from 0 to 10, got "):
        response_table("dam", 1, 5, radius)


@pytest.mark.parametrize("mechanism", ["DAM", "", None, 1, ["dam"], "krr"])
def test_unknown_mechanism_is_refused(mechanism: str) -> None:
    with pytest.raises(ParameterError, match="mechanism must be one of dam, dam-ns, huem, "):
        response_table(mechanism, 1, 5)


def test_weights_know_only_the_disk() -> None:
    table = response_table("dam", 3.5, 15)
    with pytest.raises(KeyError):
        table.weights[4, 0]
    with pytest.raises(KeyError):
        table.weights[3, 3]
    assert table.probability(3, 3) == Fraction(table.base_weight, table.total_weight)


def test_tables_are_values() -> None:
    table = response_table("dam", 3.5, 15)
    assert table == response_table("dam", 3.5, 15)
    assert isinstance(hash(table), int)
    copy = ResponseTable("dam", 3.5, 15, table.base_weight, table.octant)
    assert copy == table
    with pytest.raises(AttributeError):
        table.cells = 3  # type: ignore[misc]
