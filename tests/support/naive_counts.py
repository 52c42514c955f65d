"""The slow twin of the law of counts: one sum and one count at a time."""

from collections.abc import Callable, Sequence
from math import comb, exp, sqrt

from scipy.integrate import quad
from scipy.stats import gamma


def posterior(
    sums: Sequence[float],
    counts: Sequence[float],
    variance: float,
    per_person: float,
    rounds: int,
    normal: bool = False,
    laws: Sequence[Sequence[Sequence[float]]] | None = None,
    at_first: float = 0.0,
) -> list[tuple[float, float, float]]:
    """Return each count's mean, median and variance under the law that makes sums likeliest."""

    def density(seen: float, count: float) -> float:
        deviation = sqrt(variance + per_person * count)
        off = (seen - count) / deviation
        return exp(-(off**2) / 2 if normal else -abs(off) * sqrt(2)) / deviation

    return by_law(sums, counts, density, rounds, laws, at_first)


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


def about(foretold: float, counts: Sequence[float], off: float, whole: int) -> list[float]:
    """Return the law of counts about what is foretold, on every ``whole``-th of them.

    Each shares what lies between it and the next one, by how near it is; the last has all beyond.
    """
    steps = counts[::whole]
    variance = foretold + (off * foretold) ** 2
    law = gamma(foretold**2 / variance, scale=variance / foretold)
    found = [0.0] * len(counts)
    size = steps[1]
    for k, step in enumerate(steps[1:], start=1):

        def part(x: float, step: float = step) -> float:
            return float((1 - abs(x - step) / size) * law.pdf(x))

        last = k == len(steps) - 1
        beyond = law.sf(step) if last else quad(part, step, step + size)[0]
        found[k * whole] = quad(part, step - size, step)[0] + beyond
    found[0] = 1 - sum(found)
    return found


def by_law(
    sums: Sequence[float],
    counts: Sequence[float],
    likely: Callable[[float, float], float],
    rounds: int,
    laws: Sequence[Sequence[Sequence[float]]] | None = None,
    at_first: float = 0.0,
) -> list[tuple[float, float, float]]:
    """Return each count's mean, median and variance, given how likely sums are under it.

    ``laws`` are, for each sum, laws of counts with weights of their own beside those of counts.
    """
    single = [[float(j == k) for j in range(len(counts))] for k in range(len(counts))]
    near = laws or [[]] * len(sums)
    weights = [(1 - at_first) / len(counts)] * len(counts)
    weights += [at_first / max(len(near[0]), 1)] * len(near[0])
    for last in range(rounds + 1):
        told, each = [0.0] * len(weights), []
        for seen, own in zip(sums, near, strict=True):
            fit = [likely(seen, count) for count in counts]
            parts = [*single, *own]
            joint = [
                [weight * p * f for p, f in zip(part, fit, strict=True)]
                for weight, part in zip(weights, parts, strict=True)
            ]
            all_of_them = sum(map(sum, joint))
            told = [t + sum(one) / all_of_them for t, one in zip(told, joint, strict=True)]
            each.append([sum(column) / all_of_them for column in zip(*joint, strict=True)])
        if last < rounds:
            weights = [one / len(sums) for one in told]
    found = []
    for one in each:
        mean = sum(weight * count for weight, count in zip(one, counts, strict=True))
        below = [sum(one[: k + 1]) >= 0.5 for k in range(len(one))]
        spread = sum(w * (count - mean) ** 2 for w, count in zip(one, counts, strict=True))
        found.append((mean, counts[below.index(True)], spread))
    return found
