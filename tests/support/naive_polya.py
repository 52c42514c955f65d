"""The law of noise shares, term by term in 50 digits, and of a sampler, path by path.

Obvious twins: nothing here is clever, and all of it is slow.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Ints = NDArray[np.int64]
Law = dict[int, Decimal]
Result = TypeVar("Result", bound=Hashable)
PRECISE = Context(prec=50)


def decimal(number: Fraction) -> Decimal:
    with localcontext(PRECISE):
        return Decimal(number.numerator) / Decimal(number.denominator)


@cache
def polya_pmf(share: Fraction, decay: Fraction, terms: int) -> Law:
    """Polya(share, exp(-decay)) for k < terms: its definition, term by term."""
    with localcontext(PRECISE):
        a, r = (-decimal(decay)).exp(), decimal(share)
        law = {0: (r * (1 - a).ln()).exp()}
        for k in range(1, terms):
            law[k] = law[k - 1] * (r + k - 1) / k * a
        return law


@cache
def noise_pmf(share: Fraction, decay: Fraction, reach: int, terms: int) -> Law:
    """X - Y for |k| <= reach, both Polya(share, exp(-decay)) cut off after ``terms``."""
    x = polya_pmf(share, decay, terms + reach)
    with localcontext(PRECISE):
        half = {k: sum(x[j] * x[j + k] for j in range(terms)) for k in range(reach + 1)}
    return {k: Decimal(half[abs(k)]) for k in range(-reach, reach + 1)}


def convolve(first: Sequence[Decimal], second: Sequence[Decimal]) -> list[Decimal]:
    """Sum of two independent numbers >= 0, as far as both laws are given."""
    with localcontext(PRECISE):
        n = min(len(first), len(second))
        return [sum((first[j] * second[k - j] for j in range(k + 1)), Decimal(0)) for k in range(n)]


def discrete_laplace(decay: Fraction, reach: int) -> Law:
    with localcontext(PRECISE):
        a = (-decimal(decay)).exp()
        return {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-reach, reach + 1)}


def p_value(samples: Ints, share: Fraction, decay: Fraction) -> float:
    """Chi-square of samples against X - Y; values expected less than 20 times are put together."""
    reach = round(8 * float(max(share, Fraction(1)) ** 2 / decay)) + 8
    x = np.array([float(p) for p in polya_pmf(share, decay, 4 * reach).values()])
    law = np.convolve(x, x[::-1])[len(x) - 1 - reach : len(x) + reach]
    expected = law * len(samples)
    common = expected >= 20
    at = np.clip(samples, -reach, reach) + reach
    observed = np.bincount(at, minlength=len(law))
    rest = len(samples) - expected[common].sum(), len(samples) - observed[common].sum()
    return float(stats.chisquare([*observed[common], rest[1]], [*expected[common], rest[0]]).pvalue)


def same_law_p_value(first: Ints, second: Ints) -> float:
    """Chi-square of two samples having one law; values seen less than 40 times are put together."""
    values, seen = np.unique(np.concatenate([first, second]), return_counts=True)
    label = np.where(seen >= 40, np.arange(1, len(values) + 1), 0)
    table = np.array(
        [
            np.bincount(label[np.searchsorted(values, sample)], minlength=len(values) + 1)
            for sample in (first, second)
        ]
    )
    return float(stats.chi2_contingency(table[:, table.any(axis=0)]).pvalue)


class _Unknown(Exception):  # noqa: N818
    """The procedure asks for a number beyond those decided on so far."""

    def __init__(self, bound: int) -> None:
        self.bound = bound


def every_path(
    procedure: Callable[[Callable[[int], int]], Result], least: Fraction = Fraction(0)
) -> tuple[dict[Result, Fraction], Fraction]:
    """Return the law of a procedure that draws whole numbers below bounds, exactly.

    Every sequence of numbers drawn is run, down to those of probability below ``least``; the
    second result is the probability of what was cut off.
    """
    law: dict[Result, Fraction] = defaultdict(Fraction)
    lost = Fraction(0)
    open_paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while open_paths:
        path, weight = open_paths.pop()
        if weight < least:
            lost += weight
            continue
        try:
            law[procedure(_replay(iter(path)))] += weight
        except _Unknown as stop:
            open_paths += [((*path, i), weight / stop.bound) for i in range(stop.bound)]
    return dict(law), lost


def _replay(path: Iterator[int]) -> Callable[[int], int]:
    def draw(bound: int) -> int:
        for number in path:
            return number
        raise _Unknown(bound)

    return draw
