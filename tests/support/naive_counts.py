"""The slow twin of the law of counts: one sum and one count at a time."""

from collections.abc import Sequence
from math import exp, sqrt


def posterior(
    sums: Sequence[float], counts: Sequence[float], variance: float, per_person: float, rounds: int
) -> list[tuple[float, float]]:
    """Return mean and median of each count under the law that makes the sums likeliest."""
    scales = [sqrt((variance + per_person * count) / 2) for count in counts]
    law = [1 / len(counts)] * len(counts)
    for last in range(rounds + 1):
        each = []
        for seen in sums:
            fit = [
                weight * exp(-abs(seen - count) / scale) / scale
                for weight, count, scale in zip(law, counts, scales, strict=True)
            ]
            each.append([one / sum(fit) for one in fit])
        if last < rounds:
            law = [sum(one[k] for one in each) / len(sums) for k in range(len(counts))]
    found = []
    for one in each:
        mean = sum(weight * count for weight, count in zip(one, counts, strict=True))
        below = [sum(one[: k + 1]) >= 0.5 for k in range(len(one))]
        found.append((mean, counts[below.index(True)]))
    return found
