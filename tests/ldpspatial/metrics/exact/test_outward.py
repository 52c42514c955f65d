"""Roots of fractions as floats on the safe side: checked by squaring, in fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpspatial.metrics.exact.outward import root_above, root_below, root_near

LEAST, LARGEST = math.ulp(0.0), math.nextafter(math.inf, 0.0)
ROOTS = [LEAST, 3 * LEAST, 1e-310, 2.0**-1022, 1e-200, 0.1, 1e200, LARGEST]


def check(cost: Fraction, order: int) -> None:
    below, near, above = (root(cost, order) for root in (root_below, root_near, root_above))
    assert 0 <= below <= near <= above
    assert Fraction(below) ** order <= cost <= Fraction(above) ** order
    assert above <= math.nextafter(below, math.inf)


@pytest.mark.parametrize("order", [1, 2])
def test_roots_lie_between_neighbouring_floats(order: int) -> None:
    rng = np.random.default_rng(order)
    for _ in range(3000):
        numerator, denominator = (
            int.from_bytes(rng.bytes(int(rng.integers(1, 40))), "big") + 1 for _ in range(2)
        )
        check(Fraction(numerator, denominator), order)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("root", ROOTS)
def test_roots_that_are_floats_come_back_and_others_are_told_apart(root: float, order: int) -> None:
    exact = Fraction(root) ** order
    assert root_below(exact, order) == root_near(exact, order) == root_above(exact, order) == root
    off = exact / 10**40
    check(exact - off, order)
    assert root_below(exact - off, order) < root
    if root < LARGEST:
        check(exact + off, order)
        assert root_above(exact + off, order) > root


@pytest.mark.parametrize("order", [1, 2])
def test_roots_below_all_floats_are_above_0(order: int) -> None:
    assert (root_below(Fraction(0), order), root_above(Fraction(0), order)) == (0.0, 0.0)
    tiny = Fraction(1, 10**2000)
    assert (root_below(tiny, order), root_above(tiny, order)) == (0.0, LEAST)
