"""Shares of a privacy budget, in millionths that never add up to more than the whole."""

from collections.abc import Sequence
from fractions import Fraction

from ldpspatial.errors import InputError
from ldpspatial.release.distributed.schedule import Budget
from ldpspatial.validate import positive


def split_budget(epsilon: float, shares: Sequence[float]) -> list[int]:
    """Divide epsilon, as it is written, in proportion to shares; in millionths, rounded down.

    Parameters
    ----------
    epsilon : float > 0
    shares : sequence of positive numbers

    Raises
    ------
    InputError
        Epsilon is not positive, or so small that a share of it is less than a millionth.

    Examples
    --------
    >>> split_budget(1.0, [1, 1, 1])
    [333333, 333333, 333333]
    """
    whole = Budget(epsilon).micro
    exact = [Fraction(positive("shares", share)) for share in shares]
    parts = [int(whole * share / sum(exact)) for share in exact]
    if min(parts) < 1:
        raise InputError(
            f"epsilon must leave a millionth for each of {len(parts)} parts, got {epsilon!r}"
        )
    return parts
