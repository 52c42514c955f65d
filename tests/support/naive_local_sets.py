"""Set reports one by one: every possible report with exact probabilities, and slow twins.

``e`` is a fraction that stands for e^epsilon: probabilities are rational in it, so ratios are
compared without any rounding. A law maps a report to its probabilities under each value.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
from numpy.typing import NDArray

from ldpspatial.release.local.sets.local_hashing import FIELD

Array = NDArray[np.float64]
Report = frozenset[int]
Law = Mapping[Report, Sequence[Fraction]]


def all_sets(size: int) -> list[Report]:
    """Every subset of the values, ordered by the number whose bits are its members."""
    return [frozenset(v for v in range(size) if code >> v & 1) for code in range(1 << size)]


def exchangeable_privacy(distances: Array, epsilon: float, sizes: Array) -> float:
    """Local privacy of reports whose sets of a size are alike, from all distances of values.

    Where a value is a group of cells, its distance to itself is that between two of its cells.
    """
    m = len(distances)
    own = float(np.trace(distances)) / m
    apart = (float(distances.sum()) - own * m) / (m * (m - 1)) if m > 1 else 0.0
    inside, high = np.arange(m + 1), np.exp(epsilon)
    same = (inside * high**2 + m - inside) / (inside * high + m - inside) ** 2
    return float(sizes @ (same * own + (1 - same) * apart))


def codes(starts: NDArray[np.int64], cells: NDArray[np.unsignedinteger]) -> list[int]:
    """The number of each report in ``all_sets``."""
    return [sum(1 << int(v) for v in cells[i:j]) for i, j in pairwise(starts)]


def krr_law(size: int, e: Fraction) -> Law:
    total = e + size - 1
    return {
        frozenset([y]): [(e if x == y else 1) / Fraction(total) for x in range(size)]
        for y in range(size)
    }


def oue_law(size: int, e: Fraction) -> Law:
    return {report: oue_row(report, size, Fraction(1, 2), 1 / (e + 1)) for report in all_sets(size)}


def oue_row(report: Report, size: int, own: Fraction, other: Fraction) -> list[Fraction]:
    row = []
    for x in range(size):
        probability = Fraction(1)
        for v in range(size):
            one = own if v == x else other
            probability *= one if v in report else 1 - one
        row.append(probability)
    return row


def subset_law(size: int, k: int, e: Fraction) -> Law:
    included = k * e / (k * e + size - k)
    sets = [frozenset(chosen) for chosen in combinations(range(size), k)]
    with_x = sum(0 in chosen for chosen in sets)
    return {
        chosen: [
            included / with_x if x in chosen else (1 - included) / (len(sets) - with_x)
            for x in range(size)
        ]
        for chosen in sets
    }


def olh_law(size: int, g: int, e: Fraction) -> Law:
    """Of the supported sets, the hash function uniform among all functions."""
    keep = e / (e + g - 1)
    law: dict[Report, list[Fraction]] = defaultdict(lambda: [Fraction(0)] * size)
    for function in product(range(g), repeat=size):
        for y in range(g):
            report = frozenset(v for v, hashed in enumerate(function) if hashed == y)
            for x in range(size):
                said = keep if function[x] == y else (1 - keep) / (g - 1)
                law[report][x] += said / g**size
    return law


def hash_function(coefficients: Sequence[int], g: int) -> Callable[[int], int]:
    """The polynomial with this value and these differences at 0, in whole numbers of any size."""
    at_0, first, second = (int(c) for c in coefficients)

    def hashed(v: int) -> int:
        v = int(v)  # of any size, unlike numpy's
        element = (at_0 + first * v + second * (v * (v - 1) // 2)) % FIELD
        return min(element // (FIELD // g), g - 1)

    return hashed


def supported(value: int, coefficients: Sequence[int], shift: int, g: int, size: int) -> list[int]:
    """The values that one OLH report supports."""
    hashed = hash_function(coefficients, g)
    said = (hashed(value) + int(shift)) % g
    return [v for v in range(size) if hashed(v) == said]


def matrix(law: Law) -> Array:
    """The dense channel, reports by values, in the law's order."""
    return np.array([[float(p) for p in row] for row in law.values()])


def privacy(law: Law, distances: Array) -> float:
    """Local privacy under a uniform prior, report by report and pair by pair."""
    total = 0.0
    for row in law.values():
        seen = sum(row)
        if seen == 0:
            continue
        posterior = [float(p / seen) for p in row]
        for x, at_x in enumerate(posterior):
            for guess, at_guess in enumerate(posterior):
                total += float(seen) / len(row) * at_x * at_guess * distances[x, guess]
    return total
