"""Slow and obvious twins of the geo-indistinguishable releases and of local privacy."""

from collections.abc import Sequence
from itertools import combinations
from math import dist, exp, pi, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special

Array: TypeAlias = NDArray[np.float64]
Cell: TypeAlias = tuple[int, int]


def cells_in_order(side: int) -> list[Cell]:
    return [(row, column) for row in range(side) for column in range(side)]


def subset_channel(side: int, size: int, epsilon: float) -> tuple[Array, list[tuple[int, ...]]]:
    """Probabilities of all sets and, last, of the empty report: (reports, cells)."""
    cells = cells_in_order(side)
    sets = list(combinations(range(len(cells)), size))
    weights = np.array(
        [[exp(-epsilon * min(dist(x, cells[z]) for z in zs)) for x in cells] for zs in sets]
    )
    masses = weights.sum(axis=0)
    total = float(masses.max())
    for i, x in enumerate(cells):
        for j, y in enumerate(cells):
            if i != j:
                far = exp(epsilon * dist(x, y))
                total = max(total, float((far * masses[i] - masses[j]) / (far - 1)))
    return np.vstack([weights, total - masses]) / total, sets


def hit_matrix(matrix: Array, sets: Sequence[tuple[int, ...]]) -> Array:
    """Probability that cell z is in the set reported from cell x."""
    hits = np.zeros((matrix.shape[1], matrix.shape[1]))
    for report, zs in zip(matrix, sets, strict=False):
        for z in zs:
            hits[z] += report
    return hits


def subset_size(side: int, epsilon: float) -> int:
    """The least whole number that is at least d^2 / (e^(epsilon * mean) + 1)."""
    cells = cells_in_order(side)
    apart = [dist(x, y) for x in cells for y in cells if x != y]
    mean = sum(apart) / max(len(apart), 1)
    k = 1
    while k * (exp(epsilon * mean) + 1) < len(cells):
        k += 1
    return k


def guess_distance(matrix: Array, side: int, prior: Sequence[float]) -> float:
    """Local privacy as its definition reads: sum over x, guess and report."""
    cells = cells_in_order(side)
    total = 0.0
    for report in matrix:
        seen = sum(prior[x] * report[x] for x in range(len(cells)))
        if seen == 0:
            continue
        for x, here in enumerate(cells):
            for guess, there in enumerate(cells):
                posterior = prior[guess] * report[guess] / seen
                total += prior[x] * report[x] * posterior * dist(here, there)
    return float(total)


# Planar Laplace noise


def radius(share: Array, epsilon: float) -> Array:
    """The distance that a share of the noise stays within (Andrés et al. 2013, section 4.1)."""
    branch = special.lambertw((share - 1) / np.e, -1).real
    return np.asarray(-(branch + 1) / epsilon)


def planar_laplace_probability(
    side: int, rates: tuple[float, float], given: Cell, out: Cell
) -> float:
    """One entry of the channel, by another road than the density.

    Planar Laplace noise is Gaussian noise whose variance is Gamma(3/2, scale 2 / epsilon^2): at a
    given variance the axes are independent and have a closed form. One axis is stretched where the
    rates differ.
    """

    def landed(axis: int, deviation: float) -> float:
        low = -np.inf if out[axis] == 0 else float(out[axis] - given[axis])
        high = np.inf if out[axis] == side - 1 else float(out[axis] + 1 - given[axis])
        return _below(high, deviation) - _below(low, deviation)

    def at(share: float) -> float:
        deviation = sqrt(2 * special.gammaincinv(1.5, share))
        return landed(0, deviation / rates[0]) * landed(1, deviation / rates[1])

    found, _ = integrate.quad(at, 0, 1, epsabs=1e-9, epsrel=1e-9, limit=200)
    return float(found)


def _below(edge: float, deviation: float) -> float:
    """Mean over positions in [0, 1] that position + noise is below an edge."""
    if np.isinf(edge):
        return float(edge > 0)

    def primitive(x: float) -> float:
        z = x / deviation
        return deviation * float(z * special.ndtr(z) + exp(-(z**2) / 2) / sqrt(2 * pi))

    return primitive(edge) - primitive(edge - 1)
