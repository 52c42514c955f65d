"""The Wasserstein distance on a line, in fractions: the twin of every bound."""

from fractions import Fraction
from typing import Any


def exact_on_a_line(p: list[Any], q: list[Any], order: int) -> Fraction:
    """W_order ** order of two maps of one row: carry mass from left to right."""
    first = [Fraction(x) / sum(map(Fraction, p)) for x in p]
    second = [Fraction(x) / sum(map(Fraction, q)) for x in q]
    cost, i, j = Fraction(0), 0, 0
    while i < len(p) and j < len(q):
        mass = min(first[i], second[j])
        cost += mass * abs(i - j) ** order
        first[i], second[j] = first[i] - mass, second[j] - mass
        i, j = i + (first[i] == 0), j + (second[j] == 0)
    return cost
