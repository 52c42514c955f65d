"""Roots of exact costs as floats that are bounds, also where floats are coarse or run out."""

import math
from fractions import Fraction

PLACES = 64
"""Binary places to which a root is known before it becomes a float."""


def root_below(cost: Fraction, order: int) -> float:
    """Return a float that is no more than the root cost ** (1 / order); order 1 or 2."""
    root, _ = _enclosed(cost, order)
    near = float(root)  # rounded to nearest, also below the least normal float
    return near if Fraction(near) <= root else math.nextafter(near, 0.0)


def root_above(cost: Fraction, order: int) -> float:
    """Return a float that is no less than the root cost ** (1 / order); order 1 or 2."""
    _, root = _enclosed(cost, order)
    near = float(root)
    return near if Fraction(near) >= root else math.nextafter(near, math.inf)


def root_near(cost: Fraction, order: int) -> float:
    """Return the root cost ** (1 / order) as a float, off by no more than one place; order 1 or 2.

    Where the root is a float, that is what comes back.
    """
    return float(_enclosed(cost, order)[0])


def _enclosed(cost: Fraction, order: int) -> tuple[Fraction, Fraction]:
    """Return fractions around the root of a cost >= 0, equal where the root has few places."""
    if order == 1 or cost == 0:
        return cost, cost
    # cost * 4^shift has about 2 * PLACES bits, and its root, rounded down to a whole number, half.
    shift = PLACES - (cost.numerator.bit_length() - cost.denominator.bit_length()) // 2
    scaled = cost * Fraction(4) ** shift
    root = math.isqrt(math.floor(scaled))
    unit = Fraction(1, 2) ** shift
    return root * unit, (root + (root * root != scaled)) * unit
