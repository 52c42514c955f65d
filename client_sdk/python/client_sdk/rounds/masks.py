"""Masks: residues modulo 2^bits from a key; residues and sets of clients on the wire."""

import numpy as np
from numpy.typing import NDArray

from client_sdk.rounds.primitives import keystream

Ints = NDArray[np.int64]


def expand(key: bytes, length: int, bits: int) -> Ints:
    """Return the mask of a key: ``length`` residues, each the low bits of its own word.

    Every residue is as uniform as the stream is: 2^bits divides the number of words.

    Parameters
    ----------
    key : bytes, 32
        Used for this mask only.
    length : int
    bits : int in [1, 62]
    """
    width = 4 if bits <= 32 else 8  # bytes of a word
    words = np.frombuffer(keystream(key, width * length), dtype=f"<u{width}")
    # Words from 2^63 on turn negative, with the same low bits.
    residues: Ints = words.astype(np.int64) & np.int64((1 << bits) - 1)
    return residues


def pack(residues: Ints, bits: int) -> bytes:
    """Return residues modulo 2^bits as bytes, ``bits`` bits each without gaps, low bit first."""
    octets = residues.astype("<i8").view(np.uint8).reshape(-1, 8)
    each = np.unpackbits(octets, axis=1, count=bits, bitorder="little")  # (length, bits)
    return np.packbits(each, bitorder="little").tobytes()


def unpack(octets: bytes, bits: int, length: int) -> Ints:
    """Return the ``length`` residues that :func:`pack` wrote; what is beyond is not looked at."""
    each = np.unpackbits(
        np.frombuffer(octets, dtype=np.uint8), count=length * bits, bitorder="little"
    ).reshape(length, bits)
    filled = np.zeros((length, 64), dtype=np.uint8)
    filled[:, :bits] = each
    residues: Ints = np.packbits(filled, axis=1, bitorder="little").view("<i8").ravel()
    return residues.astype(np.int64)


def bits_of_numbers(numbers: frozenset[int], clients: int) -> bytes:
    """Return a set of clients as one bit each: what is sent and what is confirmed."""
    here = np.zeros(clients, dtype=np.bool_)
    here[np.fromiter(numbers, dtype=np.int64, count=len(numbers))] = True
    return np.packbits(here).tobytes()


def numbers_of_bits(octets: bytes, clients: int) -> frozenset[int]:
    """Return the set that :func:`bits_of_numbers` wrote; what is beyond is not looked at."""
    here = np.unpackbits(np.frombuffer(octets, dtype=np.uint8), count=clients)
    return frozenset(np.flatnonzero(here).tolist())
