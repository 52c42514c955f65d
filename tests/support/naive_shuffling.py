"""Shuffled reports straight from the definition, and bounds on them summed term by term.

Nothing of ldpspatial is used. A channel is a list of rows of probabilities, one row an input. All
divergences are e^epsilon-hockey-stick divergences: the least delta at that epsilon.
"""

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement, permutations
from typing import TypeAlias

import numpy as np
from scipy.stats import binom

Channel: TypeAlias = Sequence[Sequence[float]]
Histogram: TypeAlias = tuple[int, ...]


def randomised_response(epsilon0: float, k: int) -> list[list[float]]:
    r = math.exp(epsilon0)
    return [[(r if x == y else 1) / (r + k - 1) for y in range(k)] for x in range(k)]


def law_of_histogram(rows: Channel) -> dict[Histogram, float]:
    """All that a shuffler lets through: how often each report occurred."""
    law: dict[Histogram, float] = {(0,) * len(rows[0]): 1.0}
    for row in rows:
        longer: dict[Histogram, float] = {}
        for histogram, mass in law.items():
            for y, probability in enumerate(row):
                if probability > 0:
                    key = (*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])
                    longer[key] = longer.get(key, 0.0) + mass * probability
        law = longer
    return law


def divergence(p: dict[Histogram, float], q: dict[Histogram, float], epsilon: float) -> float:
    times = math.exp(epsilon)
    return math.fsum(max(mass - times * q.get(key, 0.0), 0.0) for key, mass in p.items())


def true_deltas(channel: Channel, n: int, epsilons: Sequence[float]) -> list[float]:
    """The least deltas over all datasets of n people and all replacements of one of them."""
    worst = [0.0] * len(epsilons)
    inputs = range(len(channel))
    for others in combinations_with_replacement(inputs, n - 1):
        laws = [law_of_histogram([channel[x], *(channel[o] for o in others)]) for x in inputs]
        for x, y in permutations(inputs, 2):
            found = [divergence(laws[x], laws[y], epsilon) for epsilon in epsilons]
            worst = list(map(max, worst, found))
    return worst


def clone_delta(epsilon0: float, n: int, epsilon: float, share: float | None = None) -> float:
    """The divergence of the dominating pair; `share` other than 2 / (r + 1) is a mistake."""
    r, times = math.exp(epsilon0), math.exp(epsilon)
    rho = 2 / (r + 1) if share is None else share
    terms = []
    for c in range(n):
        clones = math.comb(n - 1, c) * rho**c * (1 - rho) ** (n - 1 - c)
        for a in range(c + 2):
            # Ones among c fair bits and the bit of the one person, which is 1 with odds r or 1 / r.
            before, after = (math.comb(c, k) / 2**c if 0 <= k <= c else 0.0 for k in (a - 1, a))
            p, q = (r * before + after) / (r + 1), (before + r * after) / (r + 1)
            terms.append(clones * max(p - times * q, 0.0))
    return math.fsum(terms)


def clone_delta_by_tails(epsilon0: float, n: int, epsilon: float) -> float:
    """The same for many people: every number of clones, and for each two binomial tails."""
    r, times = math.exp(epsilon0), math.exp(epsilon)
    rho = 2 / (r + 1)
    spread = 12 * math.sqrt((n - 1) * rho) + 100
    c = np.arange(max(0, int((n - 1) * rho - spread)), min(n - 1, int((n - 1) * rho + spread)) + 1)
    bits = c + 1
    # r a + b > e^epsilon (a + r b) from this a on.
    least = np.floor(bits * (times * r - 1) / ((r - 1) * (1 + times))) + 1
    mean = bits / 2 * binom.sf(least - 2, bits - 1, 0.5)
    excess = (r - 1) * (1 + times) * mean - bits * (times * r - 1) * binom.sf(least - 1, bits, 0.5)
    beside = 2 / ((r + 1) * bits)
    return float((binom.pmf(c, n - 1, rho) * beside * np.maximum(excess, 0)).sum())


def blanket_delta(epsilon0: float, n: int, epsilon: float, blanket: float) -> float:
    """The divergence where a share `blanket` of each report is like that of randomised response."""
    r, times = math.exp(epsilon0), math.exp(epsilon)
    special = (1 - blanket) / (r - 1)  # of a report from the blanket: one datum, or the other
    common = blanket - 2 * special
    terms = []
    for m in range(1, n + 1):
        others = math.comb(n - 1, m - 1) * blanket ** (m - 1) * (1 - blanket) ** (n - m)
        for a in range(m + 1):
            for b in range(m + 1 - a):
                rest = m - a - b
                ways = math.comb(m, a) * math.comb(m - a, b)
                mass = ways * special ** (a + b) * common**rest / blanket**m * blanket / m
                gap = r * a + b + rest - times * (a + r * b + rest)
                terms.append(others * mass * max(gap, 0.0))
    return math.fsum(terms)


def blanket_delta_by_fft(epsilon0: float, n: int, epsilon: float, blanket: float) -> float:
    """The same for many people: E[max(Z_1 + .. + Z_n, 0)] / n, the sum's law by Fourier transform.

    Values of Z are split between two neighbours of a lattice of 2^20 points, mean kept, which adds
    less than 1e-4 of the answer where that is above 1e-9 or so.
    """
    r, times, size = math.exp(epsilon0), math.exp(epsilon), 1 << 20
    special = (1 - blanket) / (r - 1)
    values = np.array([r - times, 1 - r * times, 1 - times, 0.0])
    masses = np.array([special, special, blanket - 2 * special, 1 - blanket])
    mean = float(values @ masses)
    step = 24 * math.sqrt(n * float((values - mean) ** 2 @ masses)) / size
    points = np.rint(np.fft.fftfreq(size) * size)
    turn = -2j * np.pi * points / size
    law = np.zeros(size, complex)
    for value, mass in zip(values / step, masses, strict=True):
        low, part = math.floor(value), value - math.floor(value)
        law += mass * ((1 - part) * np.exp(turn * low) + part * np.exp(turn * (low + 1)))
    centre = round(n * mean / step)
    of_sum = np.fft.ifft(np.exp(n * np.log(law) - turn * centre)).real
    return float(np.maximum((points + centre) * step, 0) @ of_sum / n)


def closed_form_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """Feldman, McMillan and Talwar, Hiding Among the Clones, FOCS 2021, theorem 3.1."""
    r = math.exp(epsilon0)
    assert epsilon0 <= math.log(n / (16 * math.log(2 / delta)))
    root = 8 * math.sqrt(r * math.log(4 / delta) / n)
    return math.log1p((r - 1) / (r + 1) * (root + 8 * r / n))
