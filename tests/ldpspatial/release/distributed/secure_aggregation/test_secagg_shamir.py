from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.rounds.shamir import (
    PRIME,
    SHARE_BYTES,
    _uniform,
    combine,
    draw,
    split,
)
from client_sdk.testing import FixedEntropy
from tests.support import naive_shamir as naive
from tests.support.aggregation_rounds import seeded

SMALL = 7


def passes_miller_rabin(n: int, bases: int) -> bool:
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in range(2, 2 + bases):
        squares = [pow(base, odd << k, n) for k in range(twos)]
        if squares[0] != 1 and n - 1 not in squares:
            return False
    return True


def test_the_field_is_a_field_of_128_bits() -> None:
    assert passes_miller_rabin(PRIME, 64)
    assert not passes_miller_rabin(PRIME + 2, 64)  # the test can fail
    assert (1 << 128) - (1 << 8) < PRIME < 1 << (8 * SHARE_BYTES)


def test_a_secret_is_a_uniform_number_of_the_field() -> None:
    too_large, fits = PRIME.to_bytes(16, "big"), (PRIME - 1).to_bytes(16, "big")
    assert draw(FixedEntropy(too_large + fits)) == fits
    assert len({draw(seeded(seed)) for seed in range(20)}) == 20


@settings(max_examples=20)
@given(st.sampled_from([SMALL, PRIME]), st.integers(15, 40), st.integers(0, 1000))
def test_long_polynomials_too_are_reduced_rightly(prime: int, needed: int, seed: int) -> None:
    holders = [1, 2, min(prime - 1, 2**20)]
    entropy = seeded(seed)
    others = [_uniform(prime, entropy) for _ in range(needed - 1)]
    assert split(5, needed, holders, seeded(seed), prime) == naive.split(5, others, holders, prime)


@settings(max_examples=60)
@given(
    st.sampled_from([SMALL, 257, PRIME]),
    st.integers(0, 2**128 - 1),
    st.sets(st.integers(1, 6), min_size=1, max_size=6),
    st.data(),
)
def test_agrees_with_powers_and_a_linear_system(
    prime: int, secret: int, chosen: set[int], data: st.DataObject
) -> None:
    secret, holders = secret % prime, sorted(chosen)
    needed = data.draw(st.integers(1, len(holders)))
    seed = data.draw(st.integers(0, 1000))
    entropy = seeded(seed)
    others = [_uniform(prime, entropy) for _ in range(needed - 1)]
    shares = split(secret, needed, holders, seeded(seed), prime)
    assert shares == naive.split(secret, others, holders, prime)
    held = dict(zip(holders, shares, strict=True))
    for some in combinations(holders, needed):
        part = {x: held[x] for x in some}
        assert combine(part, prime) == naive.combine(part, prime) == secret


def all_views(secret: int, lowest: int) -> dict[tuple[int, int], Counter[tuple[int, ...]]]:
    """What each two of three holders see over all entropy; t = 3, first coefficient >= lowest."""
    seen: dict[tuple[int, int], Counter[tuple[int, ...]]] = {}
    for data in product(range(lowest, SMALL), range(SMALL)):
        shares = split(secret, 3, [1, 2, 3], FixedEntropy(bytes(data)), SMALL)
        for i, j in combinations(range(3), 2):
            seen.setdefault((i, j), Counter())[shares[i], shares[j]] += 1
    return seen


def test_one_share_too_few_says_exactly_nothing() -> None:
    every_pair = dict.fromkeys(product(range(SMALL), repeat=2), 1)
    for secret in range(SMALL):
        for (i, j), seen in all_views(secret, lowest=0).items():
            assert seen == every_pair == naive.views(secret, 3, [i + 1, j + 1], SMALL)
    # A leading coefficient that is never 0 leaks, and would be noticed.
    leaky = [all_views(secret, lowest=1)[0, 1] for secret in range(SMALL)]
    assert all(seen != every_pair for seen in leaky)
    assert leaky[0] != leaky[1]


def test_too_few_shares_combine_to_anything_with_equal_chance() -> None:
    for secret in range(SMALL):
        found = Counter(
            combine({1: one, 3: two}, SMALL)
            for (one, two), times in naive.views(secret, 3, [1, 3], SMALL).items()
            for _ in range(times)
        )
        assert set(found.values()) == {SMALL}
        assert len(found) == SMALL


def test_any_wrong_share_gives_another_secret() -> None:
    shares = dict(zip([1, 2, 5], split(3, 3, [1, 2, 5], seeded(1), SMALL), strict=True))
    for holder, off in product(shares, range(1, SMALL)):
        wrong = {**shares, holder: (shares[holder] + off) % SMALL}
        assert combine(wrong, SMALL) != 3


def test_coefficients_are_uniform_by_rejection() -> None:
    every_byte = FixedEntropy(bytes(range(256)))
    drawn = Counter(_uniform(SMALL, every_byte) for _ in range(256 * SMALL // 8))
    assert drawn == dict.fromkeys(range(SMALL), 32)  # the three low bits, and 7 thrown away
    with pytest.raises(EOFError):
        _uniform(SMALL, FixedEntropy(b"\xff"))
    assert (
        _uniform(PRIME, FixedEntropy(b"\xff" * 16 + b"\xfe" + bytes(14) + b"\x05"))
        == 254 * 2**120 + 5
    )
