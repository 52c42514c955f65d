"""A client's noise share: every path of the sampler, its law, and what a sum of shares hides."""

import ast
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import log
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import ParameterError, entropy
from client_sdk.rounds import noise as noise_share
from client_sdk.rounds.noise import (
    NoiseShare,
    Uniform,
    client_vector,
    cycles_kept,
    exponential_coin,
    geometric,
)
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from tests.support.naive_polya import PRECISE, decimal, every_path, p_value, polya_pmf

Ints = NDArray[np.int64]
FALSE_ALARM = 1e-6
Sampler = Callable[[int, np.random.Generator], Ints]  # clients, rng -> sums of their shares
LENGTH = 4_000


def rising(share: Fraction, k: int) -> Fraction:
    """share (share + 1) .. (share + k - 1) / k!"""
    value = Fraction(1)
    for i in range(k):
        value *= (share + i) / Fraction(i + 1)
    return value


# Every path


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("size", range(6))
def test_things_kept_have_exactly_the_law_of_an_urn(size: int, parts: int) -> None:
    law, lost = every_path(lambda draw: cycles_kept(size, parts, draw))
    share = Fraction(1, parts)
    wanted = {k: rising(share, k) * rising(1 - share, size - k) for k in range(size + 1)}
    assert lost == 0
    assert law == {k: p for k, p in wanted.items() if p}


@pytest.mark.parametrize("parts", [1, 2, 7, 9_000])
@pytest.mark.parametrize("decay", [Fraction(1), Fraction(1, 20)])
def test_kept_of_a_geometric_number_is_polya(parts: int, decay: Fraction) -> None:
    # What the proof says of the generating function, coefficient by coefficient.
    share, terms = Fraction(1, parts), 60 if decay == 1 else 1_000
    with localcontext(PRECISE):
        a = (-decimal(decay)).exp()
        rest = [Decimal(1)]
        for k in range(1, terms):
            rest.append(rest[-1] * (decimal(1 - share) + k - 1) / k)
        for kept, wanted in polya_pmf(share, decay, 5).items():
            first = decimal(rising(share, kept))
            mixed = sum((1 - a) * a ** (kept + j) * first * p for j, p in enumerate(rest))
            assert abs(mixed - wanted) < Decimal("1e-20")


@pytest.mark.parametrize(("u", "t"), [(0, 1), (1, 1), (1, 2), (3, 4)])
def test_the_coin_is_exponential(u: int, t: int) -> None:
    law, lost = every_path(lambda draw: exponential_coin(u, t, draw), Fraction(1, 10**7))
    wanted = (decimal(Fraction(-u, t))).exp()
    assert lost < Fraction(1, 1_000)
    assert decimal(law[True]) <= wanted <= decimal(law[True] + lost)


@pytest.mark.parametrize("decay", [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2)])
def test_the_geometric_number_has_its_law(decay: Fraction) -> None:
    law, lost = every_path(lambda draw: geometric(decay, draw), Fraction(1, 500_000))
    a = (-decimal(decay)).exp()
    assert lost < Fraction(1, 20)
    for k in range(6):
        wanted = (1 - a) * a**k
        assert decimal(law.get(k, Fraction(0))) <= wanted <= decimal(law.get(k, Fraction(0)) + lost)


def test_uniform_numbers_are_uniform_over_every_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_share, "PAGE_BYTES", 1)  # a page is what one draw takes
    for bound in (1, 2, 3, 100, 256):
        drawn = Counter(n for byte in range(256) for n in numbers(bound, bytes([byte])))
        assert sorted(drawn) == list(range(bound))
        assert len(set(drawn.values())) == 1, bound
    drawn = Counter(n for pair in product(range(256), repeat=2) for n in numbers(257, bytes(pair)))
    assert sorted(drawn) == list(range(257))
    assert set(drawn.values()) == {128}  # of 2^16: the seven top bits are thrown away


def numbers(bound: int, data: bytes) -> list[int]:
    """The number that a draw takes from so many bytes; none where they are thrown away."""
    pages = iter([data])
    try:
        return [Uniform(lambda _: next(pages)).below(bound)]
    except StopIteration:
        return []


def test_numbers_of_any_size_come_from_bytes_used_once() -> None:
    given: list[bytes] = []

    def pages(n: int) -> bytes:
        page = np.random.default_rng(len(given)).bytes(n)
        given.append(page)
        return page

    source = Uniform(pages)
    bound = 256**400  # as many bytes as it takes, and a remainder that does not fill a number
    drawn = [source.below(bound) for _ in range(5)]
    chunks = [page[i : i + 400] for page in given for i in range(0, 800, 400)]
    assert drawn == [int.from_bytes(chunk, "big") for chunk in chunks[:5]]
    assert source.below(1 << (8 * 5_000)).bit_length() > 39_900  # more than a page


# The law of sums


def shares(clients: int, rng: np.random.Generator, decay: Fraction, made_for: int) -> Ints:
    share = NoiseShare(decay, 1, made_for)
    total: Ints = np.array([share.sample(LENGTH, rng.bytes) for _ in range(clients)]).sum(axis=0)
    return total


def exact(clients: int, rng: np.random.Generator) -> Ints:
    return shares(clients, rng, Fraction(1, 2), 10)


def made_for_the_whole_shard(clients: int, rng: np.random.Generator) -> Ints:
    return shares(clients, rng, Fraction(1, 2), 14)


def half_the_scale(clients: int, rng: np.random.Generator) -> Ints:
    return shares(clients, rng, Fraction(1), 10)


def every_client_the_same(clients: int, rng: np.random.Generator) -> Ints:
    return clients * shares(1, rng, Fraction(1, 2), 10)


def both_from_one_gamma(clients: int, rng: np.random.Generator) -> Ints:
    mean = rng.gamma(0.1, 1 / np.expm1(0.5), (clients, LENGTH))
    return np.asarray((rng.poisson(mean) - rng.poisson(mean)).sum(axis=0))


def one_sided(clients: int, rng: np.random.Generator) -> Ints:
    return np.abs(exact(clients, rng))


@pytest.mark.parametrize("clients", [10, 12])
def test_sums_of_shares_have_the_exact_law(clients: int) -> None:
    noise = exact(clients, np.random.default_rng(clients))
    assert p_value(noise, Fraction(clients, 10), Fraction(1, 2)) > FALSE_ALARM


@pytest.mark.parametrize(
    "broken",
    [
        made_for_the_whole_shard,
        half_the_scale,
        every_client_the_same,
        both_from_one_gamma,
        one_sided,
    ],
)
def test_the_same_test_catches_published_bugs(broken: Sampler) -> None:
    noise = broken(10, np.random.default_rng(1))
    assert p_value(noise, Fraction(1), Fraction(1, 2)) < FALSE_ALARM / 1000


def test_shares_of_a_larger_sensitivity_have_the_exact_law() -> None:
    share = NoiseShare(Fraction(3, 2), 50, 2)
    rng = np.random.default_rng(4)
    total = np.sum([share.sample(LENGTH, rng.bytes) for _ in range(2)], axis=0)
    assert p_value(total, Fraction(1), share.decay) > FALSE_ALARM
    assert p_value(total, Fraction(1), share.decay * Fraction(5, 4)) < FALSE_ALARM / 1000


def test_a_neighbour_is_hidden_and_half_the_noise_would_be_caught() -> None:
    # One of two clients reports 1 or 0. The claim is epsilon 1; half the scale gives 2.
    found = []
    for epsilon in (1, 2):
        share, rng = NoiseShare(epsilon, 1, 2), np.random.default_rng(5)
        here, gone = (
            np.sum([share.sample(3 * LENGTH, rng.bytes) for _ in range(2)], axis=0)
            for _ in range(2)
        )
        found.append(lower_bound_epsilon(here + 1, gone, 1 - FALSE_ALARM))
    assert 0.8 < found[0] <= 1
    assert 1.6 < found[1] <= 2


def test_wide_noise_is_drawn_without_overflow() -> None:
    share = NoiseShare(Fraction(1, 1_000), 1 << 32, 1)
    noise = share.sample(400, np.random.default_rng(6).bytes)
    scale = share.sensitivity * 1_000
    size = sum(abs(k) for k in noise) / len(noise)
    assert abs(log(size / scale)) < 0.3  # mean size of discrete Laplace noise is its scale
    assert max(map(abs, noise)) > 1 << 43


# The device's side


def test_fields_are_read_exactly_and_on_the_safe_side() -> None:
    assert NoiseShare(0.7, 2, 5).decay <= Fraction(7, 20)
    assert NoiseShare(0.1, 1, 5).decay == Fraction(1, 10)  # the float holds slightly more
    assert NoiseShare(Fraction(1, 3), np.int64(7), 5).decay == Fraction(1, 21)


def test_a_vector_is_contribution_and_noise_modulo_the_power_of_two() -> None:
    share = NoiseShare(Fraction(1, 10), 5, 1)
    contribution = [0, 3, 0, 2]
    modulus = 64
    one = np.random.default_rng(7)
    noise = share.sample(4, np.random.default_rng(7).bytes)
    vector = client_vector(contribution, share, modulus, one.bytes)
    assert vector == [(c + z) % modulus for c, z in zip(contribution, noise, strict=True)]
    assert any(c + z < 0 or c + z >= modulus for c, z in zip(contribution, noise, strict=True))
    assert client_vector([], share, modulus, entropy.system) == []


@pytest.mark.parametrize("contribution", [[6, 0], [3, 3], [-1, 1], [0.5, 0], [None]])
def test_a_contribution_beyond_the_noise_is_refused_and_not_repeated(
    contribution: list[int],
) -> None:
    share = NoiseShare(Fraction(1, 2), 5, 10)
    with pytest.raises(ParameterError) as caught:
        client_vector(contribution, share, 256, entropy.system)
    assert str(caught.value) == (
        "contribution must be whole numbers >= 0 with a sum of at most 5 (not repeated here)"
    )


@pytest.mark.parametrize("modulus", [1, 12, 1 << 63])
def test_a_modulus_with_which_vectors_tell_more_than_their_sum_is_refused(modulus: int) -> None:
    with pytest.raises(ParameterError, match="modulus must be"):
        client_vector([1], NoiseShare(1, 1, 10), modulus, entropy.system)


def test_no_float_decides_anything() -> None:
    tree = ast.parse(Path(noise_share.__file__).read_text(encoding="utf-8"))
    floats = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is float]
    divisions = [n for n in ast.walk(tree) if isinstance(n, ast.Div)]
    outside = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert not floats
    assert len(divisions) == 1  # of two fractions: epsilon / sensitivity
    assert all(
        str(module).split(".")[0] in {"client_sdk", "ldpspatial", *sys.stdlib_module_names}
        for module in outside
    )
