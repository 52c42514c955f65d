"""Two maps as whole numbers of one total, for a solver that works on nothing else."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from ldpspatial.metrics._maps import LARGEST_WHOLE, ROUNDING, TOTAL_UNITS, FloatArray
from ldpspatial.metrics.exact.network_simplex import Ints

UNITS = int(TOTAL_UNITS)
"""Total of maps that had to be rounded."""

LEAST_FLOAT = math.ulp(0.0)
PLACES = 53  # binary ones of a float


@dataclass(frozen=True, eq=False)
class WholeMaps:
    """Two maps (R, C) of one total, and what they stand for.

    unit : the mass of 1 where each given map has mass 1.
    rounded : whether the masses were rounded. If so, then along `snake` the cumulated masses are
    off by half a unit at most.
    """

    supply: Ints
    demand: Ints
    unit: Fraction
    rounded: bool

    def share(self, masses: Ints) -> FloatArray:
        """Return whole masses (n,) > 0 as shares of a given map: the least float, if it is less."""
        shift = self.unit.denominator.bit_length() - self.unit.numerator.bit_length()
        scaled = float(self.unit * Fraction(2) ** shift)  # the unit itself may be below all floats
        return np.asarray(np.maximum(np.ldexp(masses * scaled, -shift), LEAST_FLOAT), np.float64)


def whole_maps(p: FloatArray, q: FloatArray, without_common: bool) -> WholeMaps:
    """Return two maps (R, C) of positive mass, each scaled to mass 1, in whole numbers.

    They are exact wherever a common unit goes no more than 2^52 times into their total: for counts
    of equal totals, and for many of unequal ones. Otherwise the masses are rounded so that their
    sums along `snake` are the nearest whole numbers. With `without_common` the mass that both maps
    have at a cell is taken away from both first, exactly; what is left may be nothing.
    """
    path = snake(p.shape)
    path = path[(p.flat[path] > 0) | (q.flat[path] > 0)]  # sums change nowhere else
    first = _exact(p.flat[path])
    second = _exact(q.flat[path])
    total_p = sum(first)
    total_q = sum(second)
    # Both totals become total_p * total_q, without a division.
    first = [mass * total_q for mass in first]
    second = [mass * total_p for mass in second]
    if without_common:
        common = list(map(min, first, second))
        first = [mass - same for mass, same in zip(first, common, strict=True)]
        second = [mass - same for mass, same in zip(second, common, strict=True)]
    left = sum(first)
    divisor = math.gcd(*first, *second) or 1  # gcd is 0 where nothing is left
    rounded = left // divisor > UNITS
    if rounded:
        first = _rounded(first, left)
        second = _rounded(second, left)
        unit = Fraction(left, total_p * total_q * UNITS)
    else:
        first = [mass // divisor for mass in first]
        second = [mass // divisor for mass in second]
        unit = Fraction(divisor, total_p * total_q)
    return WholeMaps(_map(first, path, p), _map(second, path, p), unit, rounded)


def shares(masses: FloatArray) -> FloatArray:
    """Return a map of positive mass divided by its total, which may be beyond float64.

    Each share is off by two roundings at most, unless it is among the smallest floats.
    """
    scaled = np.ldexp(masses, -np.frexp(masses.max())[1])  # a power of 2: no rounding
    divided: FloatArray = scaled / math.fsum(scaled.ravel().tolist())
    return divided


def exact_total(masses: FloatArray) -> Fraction:
    """Return the total of a map of positive mass, which may be beyond all floats."""
    # What `_exact` counts in: the last place of the least mass.
    least = int(np.frexp(masses[masses > 0])[1].min()) - PLACES
    return sum(_exact(masses.ravel())) * Fraction(2) ** least


def differ_by_rounding(p: FloatArray, q: FloatArray) -> bool:
    """Whether two maps of positive mass, each scaled to mass 1, differ by nothing but rounding.

    Whole numbers have no rounding. Nor is it rounding, however small, what only one map has at a
    cell.
    """
    if _are_counts(p) and _are_counts(q):
        return False
    first = _exact(p.ravel())
    second = _exact(q.ravel())
    total_p = sum(first)
    total_q = sum(second)
    pairs = ((a * total_q, b * total_p) for a, b in zip(first, second, strict=True))
    return all(abs(a - b) <= Fraction(ROUNDING) * max(a, b) for a, b in pairs)


def exact_difference(p: FloatArray, q: FloatArray) -> Fraction:
    """Return the total variation of two maps of positive mass, each scaled to mass 1."""
    first = _exact(p.ravel())
    second = _exact(q.ravel())
    total_p = sum(first)
    total_q = sum(second)
    apart = sum(abs(a * total_q - b * total_p) for a, b in zip(first, second, strict=True))
    return Fraction(apart, 2 * total_p * total_q)


def snake(shape: tuple[int, ...]) -> Ints:
    """Return the cells row * C + column of a grid, rows taken from left and right in turn."""
    cells = np.arange(shape[0] * shape[1]).reshape(shape)
    cells[1::2] = cells[1::2, ::-1]
    path: Ints = cells.ravel()
    return path


def _are_counts(masses: FloatArray) -> bool:
    # Beyond the limit all floats are whole numbers, rounded or not. The sum must not overflow.
    small = float(masses.max()) <= LARGEST_WHOLE and float(masses.sum()) <= LARGEST_WHOLE
    return small and bool((masses == np.rint(masses)).all())


def _exact(masses: FloatArray) -> list[int]:
    """Return masses in multiples of the last place of the least: a power of 2 divides them all."""
    digits, exponents = np.frexp(masses)  # digits below 1, with PLACES binary places
    shifts = np.where(masses > 0, exponents - exponents[masses > 0].min(), 0).tolist()
    whole = (digits * 2.0**PLACES).astype(np.int64).tolist()
    return [mass << shift for mass, shift in zip(whole, shifts, strict=True)]


def _rounded(masses: list[int], total: int) -> list[int]:
    # Sums are rounded (half up), not masses: the last is UNITS, and none is off by more than 1/2.
    sums = [(2 * UNITS * mass + total) // (2 * total) for mass in accumulate(masses)]
    return [after - before for before, after in zip([0, *sums], sums, strict=False)]


def _map(masses: list[int], path: Ints, like: FloatArray) -> Ints:
    whole = np.zeros(like.size, np.int64)
    whole[path] = masses
    return whole.reshape(like.shape)
