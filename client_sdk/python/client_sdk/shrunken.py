"""Shrunken areas of disk cells: the geometry of DAM, DAM-NS and HUEM.

The disk of radius b around an input cell is laid on the grid of output cells. A cell whose
centre is inside counts whole; a cell that the disk only touches counts with the area of a
shrunken rectangle (Du et al. 2024, section VI-A, Theorem VI.1).

Offsets are output cell minus input cell. By symmetry only the octant x >= y >= 0 is computed,
with x = max(|drow|, |dcol|) and y = min(|drow|, |dcol|).
"""

from math import isqrt

from client_sdk.exact import BITS, ONE, PI, exp_below, root_below
from client_sdk.validate import exact_epsilon, whole_number


def optimal_radius(epsilon: object, cells: int) -> int:
    """Return the disk radius b in cells: floor(b* d) (Du et al. 2024, section V-C).

    b* maximises an upper bound of the mutual information between position and report on the
    unit square: with m = e^eps (e^eps - 1 - eps) and k = eps e^eps - e^eps + 1,
    b* = (2k + sqrt(4 k^2 + pi m k)) / (pi m). Numerator and denominator vanish together as
    eps -> 0, which is why this is done with 192 fractional bits and not in float64.

    Returns 0 where the square is so coarse that the best disk is the cell itself; the mechanism
    is then k-ary randomised response over the cells.
    """
    top, bottom = _optimal_radius(epsilon, cells)
    return top // bottom


def optimal_squared_radius(epsilon: object, cells: int) -> int:
    """Return floor((b* d)^2): the same disk before its radius is rounded to whole cells."""
    top, bottom = _optimal_radius(epsilon, cells)
    return top * top // (bottom * bottom)


def _optimal_radius(epsilon: object, cells: int) -> tuple[int, int]:
    """Return b* d as numerator and denominator."""
    exponent = exact_epsilon(epsilon)
    d = whole_number("cells", cells, 1, 1 << 20)
    eps = (exponent.numerator << BITS) // exponent.denominator
    e = exp_below(exponent)
    m = e * (e - ONE - eps) >> BITS
    k = (eps * e >> BITS) - e + ONE
    # sqrt(4 k^2 + pi m k); every product of two scaled numbers is scaled back.
    root = root_below((4 * k * k >> BITS) + (PI * (m * k >> BITS) >> BITS))
    # Both sides carry 2^(2 BITS), so their quotient is not scaled.
    return d * (2 * k + root) * ONE, PI * m


def disk_rows(radius: int) -> list[int]:
    """Return, for x = 0..radius, the largest y with (x, y) in the disk and y unrestricted.

    The disk holds the cells that the open disk touches (their nearest corner is closer than b)
    and the four axis arms up to b. Row x of the disk is the interval [-y, y].
    """
    rows = []
    for x in range(radius + 1):
        # Nearest corner, doubled to stay whole: (2x - 1)^2 + (2y - 1)^2 < 4 b^2.
        near = max(2 * x - 1, 0) ** 2
        room = 4 * radius * radius - near
        # y counts if 2y - 1 <= isqrt(room - 1); y = 0 always counts: it is on the axis arm.
        rows.append((isqrt(room - 1) + 1) // 2 if room > 0 else 0)
    return rows


def is_high(x: int, y: int, radius: int) -> bool:
    """Tell whether the centre of offset (x, y) lies in or on the circle."""
    return x * x + y * y <= radius * radius


def shrunken_area(x: int, y: int, radius: int) -> int:
    """Return the part of cell (x, y), x >= y >= 0, that the disk holds, scaled by 2**BITS.

    A mixed cell keeps a rectangle around the point where its ray from the centre meets the
    circle. Where that point lies outside the cell the rectangle is empty (the paper's formula
    would turn negative, e.g. at (3, 2) with b = 3).
    """
    if is_high(x, y, radius):
        return ONE
    if y == 0:
        return 0
    shrink = isqrt((radius * radius << 2 * BITS) // (x * x + y * y)) - ONE  # t = b / r - 1
    # Half the sides of the rectangle; half of the cell's own side is 1/2.
    u = shrink * x + ONE // 2
    v = shrink * y + ONE // 2
    return 4 * u * v >> BITS if u > 0 and v > 0 else 0
