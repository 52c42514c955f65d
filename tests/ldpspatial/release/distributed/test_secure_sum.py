"""Sums modulo a power of two, and nothing below the threshold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.release.distributed._checks import MAX_BITS
from ldpspatial.release.distributed.sums.secure_sum import (
    ModularSum,
    SecureSum,
    check_vectors,
    decode,
    encode,
)

Ints = NDArray[np.int64]
MOST = 1 << MAX_BITS
moduli = st.sampled_from([2, 4, 256, 1 << 32, MOST])
quick = settings(max_examples=60)


@quick
@given(moduli, st.integers(-(1 << 62), (1 << 62) - 1))
def test_residues_and_signed_numbers_are_two_names_of_one_thing(modulus: int, value: int) -> None:
    residue = encode(value, modulus)
    signed = decode(residue, modulus)
    assert residue == value % modulus
    assert -modulus // 2 <= signed < modulus // 2
    assert encode(signed, modulus) == residue
    array = np.array([value])
    assert encode(array, modulus).tolist() == [residue]
    assert decode(encode(array, modulus), modulus).tolist() == [signed]


def test_a_total_within_the_range_comes_back_and_one_beyond_wraps() -> None:
    assert decode(encode(np.arange(-4, 4), 8), 8).tolist() == list(range(-4, 4))
    assert decode(encode(np.array([4, -5, 12]), 8), 8).tolist() == [-4, 3, -4]


@quick
@given(moduli, st.integers(1, 6), st.integers(0, 4), st.randoms(use_true_random=False))
def test_the_total_is_that_of_whole_numbers(
    modulus: int, clients: int, length: int, random: object
) -> None:
    pick = random.randrange  # type: ignore[attr-defined]
    # Near the top of the range, where a sum of int64 would run over.
    rows = [[modulus - 1 - pick(min(modulus, 5)) for _ in range(length)] for _ in range(clients)]
    here = [bool(pick(3)) for _ in range(clients)]
    vectors = np.array(rows, dtype=np.int64).reshape(clients, length)
    total = ModularSum(modulus, 1).total(vectors, np.array(here))
    if not any(here):
        assert total is None
    else:
        assert total is not None
        kept = [row for row, stays in zip(rows, here, strict=True) if stays]
        assert total.tolist() == [sum(column) % modulus for column in zip(*kept, strict=True)]


@pytest.mark.parametrize("survivors", range(6))
def test_nothing_is_revealed_below_the_threshold(survivors: int) -> None:
    protocol: SecureSum = ModularSum(16, 4)
    total = protocol.total(np.ones((5, 2), dtype=np.int64), np.arange(5) < survivors)
    assert (total is None) == (survivors < 4)


def test_vectors_are_left_as_they_are() -> None:
    vectors = np.full((3, 2), 7)
    before = vectors.copy()
    ModularSum(8, 1).total(vectors, np.array([True, True, True]))
    assert (vectors == before).all()


@pytest.mark.parametrize("modulus", [0, 1, 3, 12, -8, 1 << 63, 8.0, True, "8"])
def test_what_is_no_modulus_is_refused(modulus: int) -> None:
    with pytest.raises(
        InputError, match=r"modulus must be a (power of two|whole number from 2 to)"
    ):
        ModularSum(modulus, 1)


@pytest.mark.parametrize(
    ("vectors", "survivors", "rule"),
    [
        (np.ones(3, dtype=np.int64), np.ones(3, dtype=bool), "vectors must be an int64 array"),
        (np.ones((3, 1)), np.ones(3, dtype=bool), "vectors must be an int64 array"),
        (np.ones((3, 1), dtype=np.int64), np.ones(2, dtype=bool), "a bool for each of 3 clients"),
        (np.ones((3, 1), dtype=np.int64), np.ones(3, dtype=int), "a bool for each of 3 clients"),
        (np.full((3, 1), 8), np.ones(3, dtype=bool), r"must lie in \[0, 8\) \(not repeated"),
        (np.full((3, 1), -1), np.ones(3, dtype=bool), r"must lie in \[0, 8\) \(not repeated"),
    ],
)
def test_what_is_no_vector_a_client_is_refused(
    vectors: Ints, survivors: NDArray[np.bool_], rule: str
) -> None:
    with pytest.raises(InputError, match=rule):
        check_vectors(vectors, survivors, 8)
    with pytest.raises(InputError, match=rule):
        ModularSum(8, 1).total(vectors, survivors)
