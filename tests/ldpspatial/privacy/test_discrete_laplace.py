"""Discrete Laplace noise: the twin's numbers, the exact law, and tests that see wrong laws.

False-alarm probability of each statistical test: 1e-6, with a fixed seed.
"""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from client_sdk import entropy
from client_sdk.testing import FixedEntropy, StreamEntropy
from ldpspatial.errors import InputError
from ldpspatial.privacy import discrete_laplace
from ldpspatial.privacy.discrete_laplace import epsilon_for, noise_deviation, probability, sample
from tests.support import naive_central as naive
from tests.support.naive_polya import discrete_laplace as noise_law

Ints = NDArray[np.int64]

FALSE_ALARM = 1e-6
LARGEST = 2**53 - 1
SCALES = [
    *((1, 1000), (1, 3), (1, 1), (7, 2), (255, 1), (256, 1), (257, 3)),
    *((2**20, 1), (2**20 * 10**6, 699_999), (2**21 * 10**6, 1000), (LARGEST, 1), (1, LARGEST)),
]


# The same numbers as the twin


@pytest.mark.parametrize(("numerator", "denominator"), SCALES)
def test_the_twin_draws_the_same_from_the_same_bytes(numerator: int, denominator: int) -> None:
    label = f"{numerator}/{denominator}"
    drawn = sample(300, numerator, denominator, StreamEntropy(label))
    stream, scale = StreamEntropy(label), Fraction(numerator, denominator)
    assert drawn.tolist() == [naive.discrete_laplace(scale, stream) for _ in range(300)]


def test_draws_do_not_depend_on_how_the_bytes_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sample(200, 2**20, 3, StreamEntropy("cut"))
    for chunk in (1, 7, 64):
        monkeypatch.setattr(discrete_laplace, "CHUNK_BYTES", chunk)
        assert np.array_equal(sample(200, 2**20, 3, StreamEntropy("cut")), whole)


def test_a_scale_need_not_be_in_lowest_terms() -> None:
    first, second = (sample(100, 6 * k, 4 * k, StreamEntropy("terms")) for k in (1, 5))
    assert np.array_equal(first, second)


def test_a_seed_repeats_a_simulation_and_the_operating_system_does_not() -> None:
    first, second = (sample(50, 10**6, 1, np.random.default_rng(1).bytes) for _ in range(2))
    assert np.array_equal(first, second)
    first, second = (sample(50, 10**6, 1, entropy.system) for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(("bound", "width"), [(1, 1), (2, 1), (3, 1), (200, 1), (256, 1), (300, 2)])
def test_uniform_numbers_are_uniform_over_all_bytes(bound: int, width: int) -> None:
    counts = np.zeros(bound + 1, int)
    for u in range(256**width):
        data = np.frombuffer(u.to_bytes(width, "big"), np.uint8)
        value, at = discrete_laplace._below.py_func(data, 0, bound)
        counts[bound if at < 0 else value] += 1
    assert len(set(counts[:bound])) == 1
    assert counts[0] > 0


def test_the_longest_row_of_heads_is_cut_before_64_bits_overflow() -> None:
    heads, plus = bytes([0, 1]), bytes([0])  # coins 1/2 heads, 1/3 tails: the third, so heads
    data = heads * 1023 + plus
    assert sample(1, 1, 1, FixedEntropy(data.ljust(2400, b"\0"))).tolist() == [1023]
    data = bytes(14) + data  # U = 0, and a uniform number below 2^53 that is not below U
    assert sample(1, LARGEST, 1, FixedEntropy(data.ljust(2400, b"\0"))).tolist() == [1023 * LARGEST]
    assert 1024 * LARGEST < 2**63


# The law


def chi_square_p(drawn: Ints, numerator: int, denominator: int) -> float:
    """P-value of Pearson's test in up to 40 bins of about equal probability."""
    rate = denominator / numerator
    # P(X >= k) = a^k / (1 + a) for k >= 1: edges at even tails, mirrored.
    tails = np.linspace(0.5, 0, 20, endpoint=False)[1:]
    edges = np.unique(np.ceil(-np.log(tails * (1 + exp(-rate))) / rate))
    edges = edges[edges >= 1]
    tail = np.exp(-rate * edges) / (1 + exp(-rate))
    up = np.append(tail[:-1] - tail[1:], tail[-1])
    law = np.concatenate([up[::-1], [1 - 2 * tail[0]], up])
    cuts = np.concatenate([-edges[::-1] + 0.5, edges - 0.5])
    counts = np.bincount(np.searchsorted(cuts, drawn), minlength=len(law))
    assert law.sum() == pytest.approx(1)
    assert len(drawn) * law.min() > 100
    expected = len(drawn) * law
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(law) - 1))


@pytest.mark.parametrize(("numerator", "denominator"), [s for s in SCALES if s[0] * 4 > s[1]])
def test_drawn_numbers_have_the_exact_law(numerator: int, denominator: int) -> None:
    rng = np.random.default_rng(1)
    drawn = sample(100_000, numerator, denominator, rng.bytes)
    assert chi_square_p(drawn, numerator, denominator) > FALSE_ALARM


def of_halved_scale(size: int, numerator: int, rng: np.random.Generator) -> Ints:
    return sample(size, numerator, 2, rng.bytes)


def rounded_float(size: int, numerator: int, rng: np.random.Generator) -> Ints:
    return np.rint(rng.laplace(scale=numerator, size=size)).astype(np.int64)


def with_two_zeros(size: int, numerator: int, rng: np.random.Generator) -> Ints:
    positive = rng.geometric(-np.expm1(-1 / numerator), size) - 1
    return np.where(rng.random(size) < 0.5, positive, -positive).astype(np.int64)


def five_per_cent_wide(size: int, numerator: int, rng: np.random.Generator) -> Ints:
    return sample(size, 21 * numerator, 20, rng.bytes)


@pytest.mark.parametrize(
    ("wrong", "numerator"),
    [
        *((of_halved_scale, n) for n in (1, 10, 2**20)),
        *((five_per_cent_wide, n) for n in (1, 10, 2**20)),
        *((rounded_float, n) for n in (1, 2)),  # the two laws approach each other as n grows
        *((with_two_zeros, n) for n in (1, 10)),
    ],
)
def test_the_test_of_the_law_sees_other_laws(
    wrong: Callable[[int, int, np.random.Generator], Ints], numerator: int
) -> None:
    drawn = wrong(100_000, numerator, np.random.default_rng(2))
    assert chi_square_p(drawn, numerator, 1) < FALSE_ALARM


def test_a_tiny_scale_gives_zero() -> None:
    """P(not 0) is 2e-435 here."""
    assert not sample(1000, 1, 1000, np.random.default_rng(1).bytes).any()
    assert float(probability(0, 1, 1000)) == 1
    assert noise_deviation(1000, 1) < 1e-200


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 4), (1, 1), (7, 2), (40, 1)])
def test_the_law_adds_up_falls_as_it_should_and_has_its_standard_deviation(
    numerator: int, denominator: int
) -> None:
    k = np.arange(-2000, 2001)
    law = probability(k, numerator, denominator)
    assert law.sum() == pytest.approx(1, rel=1e-12)
    assert np.array_equal(law, law[::-1])
    ratio = float(probability(3, numerator, denominator) / probability(4, numerator, denominator))
    assert ratio == pytest.approx(exp(denominator / numerator), rel=1e-12)
    deviation = np.sqrt((law * k**2).sum())
    assert noise_deviation(denominator, numerator) == pytest.approx(deviation, rel=1e-12)
    a = exp(-denominator / numerator)
    assert float(probability(0, numerator, denominator)) == pytest.approx((1 - a) / (1 + a))


def test_a_large_scale_has_the_standard_deviation_of_the_continuous_law() -> None:
    assert noise_deviation(1, 2**40) == pytest.approx(2**0.5 * 2**40, rel=1e-12)


# Its deviation, and back


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1), (0.25, 2), (6.0, 1)])
def test_deviation_is_that_of_the_law(epsilon: float, sensitivity: int) -> None:
    law = noise_law(Fraction(epsilon) / sensitivity, 600)
    variance = sum(k * k * p for k, p in law.items())
    assert noise_deviation(epsilon, sensitivity) == pytest.approx(sqrt(variance), rel=1e-13)


@pytest.mark.parametrize("power", range(-9, 13, 3))
def test_epsilon_for_a_deviation_loses_no_digits(power: int) -> None:
    deviation = 1.7 * 10.0**power
    with localcontext(Context(prec=80)):
        v = Decimal(deviation) ** 2
        wanted = -3 * (((v + 1) - (2 * v + 1).sqrt()) / v).ln()
    assert epsilon_for(deviation, 3) == pytest.approx(float(wanted), rel=1e-14)
    assert noise_deviation(epsilon_for(deviation, 3), 3) == pytest.approx(deviation, rel=1e-12)


# Arguments


@pytest.mark.parametrize(
    ("size", "numerator", "denominator", "field"),
    [
        *((-1, 1, 1, "size"), (1.5, 1, 1, "size")),
        *((1, 0, 1, "numerator"), (1, 2**53, 1, "numerator"), (1, 0.5, 1, "numerator")),
        *((1, 1, 0, "denominator"), (1, 1, -1, "denominator"), (1, 1, inf, "denominator")),
    ],
)
def test_bad_arguments_are_named(size: int, numerator: int, denominator: int, field: str) -> None:
    with pytest.raises(InputError, match=f"^{field} must be a whole number from"):
        sample(size, numerator, denominator, entropy.system)
    if field != "size":
        with pytest.raises(InputError, match=field):
            probability(0, numerator, denominator)


def test_nothing_is_drawn_for_no_numbers() -> None:
    assert sample(0, 1, 1, FixedEntropy(b"")).shape == (0,)


@pytest.mark.parametrize("value", [0, -1.0, inf, float("nan"), "1", True])
@pytest.mark.parametrize("function", [noise_deviation, epsilon_for])
def test_what_is_no_positive_number_is_refused(
    function: Callable[[float, float], float], value: float
) -> None:
    for arguments in ((value, 1), (1, value)):
        with pytest.raises(InputError, match="must be a positive finite number"):
            function(*arguments)


def test_the_epsilon_of_a_tiny_deviation_is_finite_and_goes_on_where_the_formula_ends() -> None:
    """1 / v overflows from 1e-154 on, of which the logarithm is some 709."""
    assert epsilon_for(1e-200, 1) == pytest.approx(log(2) + 400 * log(10), rel=1e-14)
    above, below = epsilon_for(1.001e-100, 1), epsilon_for(0.999e-100, 1)
    assert below - above == pytest.approx(2 * log(1.001 / 0.999), rel=1e-9)


@pytest.mark.parametrize("size", [0, 1, 23])
def test_an_entropy_function_that_returns_too_little_is_refused(size: int) -> None:
    """With no byte the draw never ended; with one it read the same byte again and again."""
    with pytest.raises(InputError, match=rf"entropy must return as many bytes .*, 24, got {size}"):
        sample(1, 1, 1, lambda _: b"x" * size)


@pytest.mark.parametrize("numerator", [2**33 + 1, 10**12 + 1, 2**52 + 1])
def test_the_last_bits_of_long_uniform_numbers_are_drawn_as_the_twin_does(numerator: int) -> None:
    """Those of a scale above 2^32, whose digits in base 2 are not all ones."""
    label = f"{numerator}"
    drawn = sample(100, numerator, 7, StreamEntropy(label))
    stream, scale = StreamEntropy(label), Fraction(numerator, 7)
    assert drawn.tolist() == [naive.discrete_laplace(scale, stream) for _ in range(100)]


def test_an_epsilon_that_vanishes_beside_the_sensitivity_has_no_deviation() -> None:
    """And not one of 0, as if nothing had to be added."""
    with pytest.raises(InputError, match=r"^epsilon must be large enough for a finite deviation"):
        noise_deviation(5e-324, 10)


@pytest.mark.parametrize("power", range(-308, 0, 7))
def test_every_tiny_deviation_has_its_epsilon(power: int) -> None:
    """Next to log(2 / v), v the square of the deviation."""
    expected = log(2) - 2 * power * log(10)
    assert epsilon_for(10.0**power, 1) == pytest.approx(expected, rel=0.2 if power > -8 else 1e-9)
