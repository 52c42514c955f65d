"""Epsilon divided into whole millionths, which add up to all of it."""

from collections.abc import Sequence
from fractions import Fraction


def in_proportion(micro: int, weights: Sequence[Fraction]) -> tuple[int, ...]:
    """Divide millionths in proportion to weights, rounded down; the last part gets what is left.

    Parts may be 0, but not all of them.

    Examples
    --------
    >>> in_proportion(10, [Fraction(1)] * 3), in_proportion(1, [Fraction(1)] * 2)
    ((3, 3, 4), (0, 1))
    """
    total = sum(weights)
    parts = [int(micro * weight / total) for weight in weights[:-1]]
    return *parts, micro - sum(parts)


def geometric(growth: float, number: int) -> list[Fraction]:
    """Return the weights growth^0, growth^1, ..., of the float without rounding.

    Examples
    --------
    >>> [str(weight) for weight in geometric(1.5, 3)]
    ['1', '3/2', '9/4']
    """
    exact = Fraction(float(growth))
    return [exact**step for step in range(number)]


def in_two(micro: int, alpha: float) -> tuple[int, int]:
    """Divide millionths into a share alpha, rounded down, and the rest, which is at least 1.

    Examples
    --------
    >>> in_two(1_000_001, 0.5), in_two(1, 0.5)
    ((500000, 500001), (0, 1))
    """
    first, rest = in_proportion(micro, [Fraction(float(alpha)), 1 - Fraction(float(alpha))])
    return first, rest
