"""Exact arithmetic in whole numbers: no float decides how private a report is.

A real number z is held as floor(z * 2**BITS) or a lower bound of it.
"""

from fractions import Fraction
from math import isqrt

BITS = 192
ONE = 1 << BITS

# pi to 50 places, cut off (so a lower bound, short of pi by less than 1e-50).
PI = int(Fraction(314159265358979323846264338327950288419716939937510, 10**50) * ONE)


def exp_below(exponent: Fraction) -> int:
    """Return S with S / 2**BITS <= e**exponent, short of it by less than 2**-128 relatively.

    The Taylor series has positive terms only and every term is rounded down, so the sum can
    only fall short: the bound is rigorous. At exponent <= 20 fewer than 150 terms are above
    2**-BITS; what one rounding takes away, later factors blow up to at most e**exponent times
    itself, so the sum falls short by less than 150 * 2**-BITS relatively. docs/protocol.md,
    section 3, states the same loop, so that any language can repeat it with big integers.
    """
    total = 0
    term = ONE
    n = 0
    while term:
        total += term
        n += 1
        term = term * exponent.numerator // (exponent.denominator * n)
    return total


def root_below(value: int) -> int:
    """Return the scaled square root of a scaled number, rounded down."""
    return isqrt(value << BITS)  # sqrt(v / 2^B) 2^B = sqrt(v 2^B)
