"""DAM, DAM-NS, HUEM and disk cell by cell, with 60 digits: the obvious twin of client_sdk's tables.

Nothing of client_sdk is used. Weights are multiples of the base weight, mp floats; a disk is a
dictionary over all its offsets and the output domain a set, both built by looking at every cell.
"""

from collections.abc import Collection
from fractions import Fraction

from mpmath import mp, mpf, workdps  # type: ignore[import-untyped]

Offset = tuple[int, int]
Disk = dict[Offset, mpf]
DIGITS = 60


def real(number: Fraction) -> mpf:
    return mpf(number.numerator) / number.denominator


def real_radius(epsilon: Fraction, cells: int) -> mpf:
    with workdps(DIGITS):
        eps = real(epsilon)
        e = mp.exp(eps)
        m = e * (e - 1 - eps)
        k = eps * e - e + 1
        return (2 * k + mp.sqrt(4 * k**2 + mp.pi * m * k)) / (mp.pi * m) * cells


def radius(epsilon: Fraction, cells: int) -> int:
    return int(mp.floor(real_radius(epsilon, cells)))


def best_radius(mechanism: str, epsilon: Fraction, cells: int) -> mpf:
    return real_radius(epsilon, cells) if mechanism == "disk" else radius(epsilon, cells)


def shrunken_area(drow: int, dcol: int, b: int) -> mpf:
    x, y = max(abs(drow), abs(dcol)), min(abs(drow), abs(dcol))
    if y == 0:
        return mpf(1 if x <= b else 0)
    r = mp.sqrt(x * x + y * y)
    if x * x + y * y <= b * b:
        return mpf(1)
    t = b / r - 1
    u, v = t * x + mpf(1) / 2, t * y + mpf(1) / 2
    return 4 * u * v if u > 0 and v > 0 else mpf(0)


def in_disk(mechanism: str, drow: int, dcol: int, b: mpf) -> bool:
    """Nearest corner closer than b (all numbers doubled), or on an axis arm; "disk": the centre."""
    x, y = abs(drow), abs(dcol)
    if mechanism == "disk":
        return bool(x * x + y * y <= b * b)
    touched = max(2 * x - 1, 0) ** 2 + max(2 * y - 1, 0) ** 2 < (2 * b) ** 2
    return touched or (min(x, y) == 0 and max(x, y) <= b)


def disk_offsets(mechanism: str, b: mpf) -> list[Offset]:
    with workdps(DIGITS):
        span = range(-int(b), int(b) + 1)
        return [(i, j) for i in span for j in span if in_disk(mechanism, i, j, b)]


def output_domain(cells: int, offsets: Collection[Offset]) -> set[Offset]:
    square = [(i, j) for i in range(cells) for j in range(cells)]
    return {(i + di, j + dj) for i, j in square for di, dj in offsets}


def weight(mechanism: str, epsilon: Fraction, b: mpf, drow: int, dcol: int) -> mpf:
    eps = real(epsilon)
    if mechanism == "disk":
        return mp.exp(eps)
    if mechanism == "dam" or b == 0:
        return 1 + (mp.exp(eps) - 1) * shrunken_area(drow, dcol, b)
    if mechanism == "dam-ns":
        return mp.exp(eps) if drow**2 + dcol**2 <= b * b else mpf(1)
    levels = [mp.exp(eps * (b - k) / b) for k in range(b)] + [mpf(1)]  # E_1, ..., E_(b+1)
    steps = ((levels[k - 1] - levels[k], k) for k in range(1, b + 1))
    return 1 + sum(step * shrunken_area(drow, dcol, k) for step, k in steps)


def disk(mechanism: str, epsilon: Fraction, b: mpf) -> Disk:
    with workdps(DIGITS):
        return {o: weight(mechanism, epsilon, b, *o) for o in disk_offsets(mechanism, b)}


def base_probability(weights: Disk, cells: int) -> mpf:
    """q = 1 / (sum of the weights over the output domain)."""
    with workdps(DIGITS):
        return 1 / (len(output_domain(cells, weights)) + sum(w - 1 for w in weights.values()))
