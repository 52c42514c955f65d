"""The slow twin of the law of counts: one sum and one count at a time."""

from collections.abc import Callable, Sequence
from math import comb, exp, sqrt


def posterior(
    sums: Sequence[float],
    counts: Sequence[float],
    variance: float,
    per_person: float,
    rounds: int,
    normal: bool = False,
) -> list[tuple[float, float, float]]:
    """Return each count's mean, median and variance under the law that makes sums likeliest."""

    def density(seen: float, count: float) -> float:
        deviation = sqrt(variance + per_person * count)
        off = (seen - count) / deviation
        return exp(-(off**2) / 2 if normal else -abs(off) * sqrt(2)) / deviation

    return by_law(sums, counts, density, rounds)


def in_steps(
    sums: Sequence[int], counts: Sequence[int], p: float, counted: float, rounds: int
) -> list[tuple[float, float, float]]:
    """Return the same where a share of the people is counted, under noise of the law p^|z|."""

    def probability(seen: float, count: float) -> float:
        size = int(count)
        return sum(
            comb(size, k) * counted**k * (1 - counted) ** (size - k) * p ** abs(seen - k)
            for k in range(size + 1)
        )

    return by_law(sums, counts, probability, rounds)


def by_law(
    sums: Sequence[float],
    counts: Sequence[float],
    likely: Callable[[float, float], float],
    rounds: int,
) -> list[tuple[float, float, float]]:
    """Return each count's mean, median and variance, given how likely sums are under it."""
    law = [1 / len(counts)] * len(counts)
    for last in range(rounds + 1):
        each = []
        for seen in sums:
            fit = [weight * likely(seen, count) for weight, count in zip(law, counts, strict=True)]
            each.append([one / sum(fit) for one in fit])
        if last < rounds:
            law = [sum(one[k] for one in each) / len(sums) for k in range(len(counts))]
    found = []
    for one in each:
        mean = sum(weight * count for weight, count in zip(one, counts, strict=True))
        below = [sum(one[: k + 1]) >= 0.5 for k in range(len(one))]
        spread = sum(w * (count - mean) ** 2 for w, count in zip(one, counts, strict=True))
        found.append((mean, counts[below.index(True)], spread))
    return found
