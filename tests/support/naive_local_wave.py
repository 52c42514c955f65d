"""Square wave and rhombus cell by cell, with 60 digits, and what follows from dense matrices.

Nothing of the releases is used. Radii are found twice: from the formula, and as the maximum of the
bound of the mutual information that the formula stands for.
"""

from fractions import Fraction

import numpy as np
from mpmath import mp, mpf, workdps  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

Array = NDArray[np.float64]
Offset = tuple[int, int]
DIGITS = 60


def real(number: Fraction) -> mpf:
    return mpf(number.numerator) / number.denominator


def _terms(epsilon: Fraction) -> tuple[mpf, mpf]:
    eps = real(epsilon)
    return mp.exp(eps) * (mp.exp(eps) - 1 - eps), eps * mp.exp(eps) - mp.exp(eps) + 1


def half_width(epsilon: Fraction) -> mpf:
    """On the unit interval."""
    with workdps(DIGITS):
        m, k = _terms(epsilon)
        return k / (2 * m)


def rhombus_half_width(epsilon: Fraction) -> mpf:
    """On the unit square: the radius of DAM with 2 in place of pi."""
    with workdps(DIGITS):
        m, k = _terms(epsilon)
        return (2 * k + mp.sqrt(4 * k**2 + 2 * m * k)) / (2 * m)


def cells_across(half: mpf, cells: int) -> int:
    with workdps(DIGITS):
        return int(mp.floor(half * cells))


def information_bound(epsilon: float, low: float, high: float) -> float:
    """Entropy of a uniform report less that of a report given the position; areas of both parts."""
    q = 1 / (high * np.exp(epsilon) + low)
    p = q * np.exp(epsilon)
    return float(np.log(low + high) + high * p * np.log(p) + low * q * np.log(q))


def most_informative(epsilon: float, dimension: int) -> float:
    """The b that maximises the bound: a band of 2b in 1 + 2b, or 2 b^2 in 1 + 4b + 2b^2."""

    def loss(b: float) -> float:
        low, high = (1.0, 2 * b) if dimension == 1 else (1 + 4 * b, 2 * b * b)
        return -information_bound(epsilon, low, high)

    found = minimize_scalar(loss, bounds=(1e-6, 4), method="bounded", options={"xatol": 1e-10})
    return float(found.x)


def wave_matrix(cells: int, epsilon: Fraction, b: int) -> Array:
    with workdps(DIGITS):
        high = mp.exp(real(epsilon))
        total = (2 * b + 1) * high + cells - 1
        return np.array(
            [
                [float((high if abs(report - cell) <= b else 1) / total) for cell in range(cells)]
                for report in range(-b, cells + b)
            ]
        )


def ball(b: int) -> set[Offset]:
    span = range(-b, b + 1)
    return {(i, j) for i in span for j in span if abs(i) + abs(j) <= b}


def output_domain(cells: int, b: int) -> set[Offset]:
    square = [(i, j) for i in range(cells) for j in range(cells)]
    return {(i + di, j + dj) for i, j in square for di, dj in ball(b)}


def ems(matrix: Array, counts: Array, steps: int, smoothing: bool) -> Array:
    """EM on a row, smoothed by [1, 2, 1] / 4 with the ends doubled."""
    cells = matrix.shape[1]
    density = np.full(cells, 1 / cells)
    for _ in range(steps):
        predicted = [sum(row[x] * density[x] for x in range(cells)) for row in matrix]
        ratio = [c / g for c, g in zip(counts, predicted, strict=True)]
        density = (
            np.array(
                [
                    density[x] * sum(r * row[x] for r, row in zip(ratio, matrix, strict=True))
                    for x in range(cells)
                ]
            )
            / counts.sum()
        )
        if smoothing:
            ends = [density[0], *density, density[-1]]
            density = np.array(
                [(ends[x] + 2 * ends[x + 1] + ends[x + 2]) / 4 for x in range(cells)]
            )
        density = density / density.sum()
    return density


def one_of_two_coordinates(wave: Array) -> Array:
    """Dense channel of a user who reports the row or the column, and which; by row, then column."""
    silent = np.ones((1, wave.shape[1]))
    return np.vstack([np.kron(wave, silent), np.kron(silent, wave)]) / 2
