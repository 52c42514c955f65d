"""The messages of the protocol, two a round: from a client to the server, and from it to a client.

Each names the session (the digest of its terms), its round and the client. How many bytes that
takes is part of what is measured, so every message can be written as bytes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpspatial.distributed.secure_aggregation.masks import Ints, pack
from ldpspatial.distributed.secure_aggregation.shamir import SHARE_BYTES
from ldpspatial.distributed.secure_aggregation.terms import Step

NUMBER_BYTES = 4  # of a client


@dataclass(frozen=True)
class Message(ABC):
    """What all messages have.

    Attributes
    ----------
    session : bytes, 32
        Digest of the session's terms.
    client : int
        Who sends it to the server, or whom the server sends it to.
    """

    step: ClassVar[Step]
    session: bytes
    client: int

    @abstractmethod
    def body(self) -> bytes:
        """Return what follows the header, as bytes."""

    def to_bytes(self) -> bytes:
        """Return the message as bytes: round, session, client and the body."""
        return bytes([self.step]) + self.session + _number(self.client) + self.body()


@dataclass(frozen=True)
class KeyAdvert(Message):
    """Round 0, up: a client's public keys, signed.

    Attributes
    ----------
    cipher_key, mask_key : bytes, 32 each
        X25519 public keys, for the encryption of shares and for the masks of pairs.
    signature : bytes, 64
    """

    step = Step.ADVERTISE
    cipher_key: bytes
    mask_key: bytes
    signature: bytes

    def body(self) -> bytes:
        """Return keys and signature."""
        return self.cipher_key + self.mask_key + self.signature


@dataclass(frozen=True)
class KeyList(Message):
    """Round 0, down: the adverts of the client's neighbours and its own."""

    step = Step.ADVERTISE
    adverts: tuple[KeyAdvert, ...]

    def body(self) -> bytes:
        """Return number, keys and signature of each."""
        return b"".join(_number(advert.client) + advert.body() for advert in self.adverts)


@dataclass(frozen=True)
class SharesOut(Message):
    """Round 1, up: shares of the client's two secrets, encrypted for each neighbour.

    Attributes
    ----------
    seed_check : bytes, 32
        Derived from the seed of the client's own mask: tells whether it was put together rightly.
    sealed : tuple of (receiver, ciphertext)
    """

    step = Step.SHARE
    seed_check: bytes
    sealed: tuple[tuple[int, bytes], ...]

    def body(self) -> bytes:
        """Return the check, and receiver and ciphertext of each."""
        return self.seed_check + _listed(self.sealed)


@dataclass(frozen=True)
class SharesIn(Message):
    """Round 1, down: what neighbours have encrypted for the client, as (sender, ciphertext)."""

    step = Step.SHARE
    sealed: tuple[tuple[int, bytes], ...]

    def body(self) -> bytes:
        """Return sender and ciphertext of each."""
        return _listed(self.sealed)


@dataclass(frozen=True)
class MaskedVector(Message):
    """Round 2, up: a client's vector under its own mask and those of all its pairs.

    Attributes
    ----------
    residues : (length,) int64 array in [0, 2^bits)
    bits : int
    """

    step = Step.MASK
    residues: Ints
    bits: int

    def body(self) -> bytes:
        """Return the residues without gaps."""
        return pack(self.residues, self.bits)


@dataclass(frozen=True)
class Survivors(Message):
    """Round 2, down: whose vectors have arrived, of all clients.

    Attributes
    ----------
    numbers : frozenset of int
    clients : int
        How many are enrolled.
    """

    step = Step.MASK
    numbers: frozenset[int]
    clients: int

    def body(self) -> bytes:
        """Return one bit a client."""
        return survivor_bits(self.numbers, self.clients)


@dataclass(frozen=True)
class Confirmation(Message):
    """Round 3, up: the client's signature of the survivors that it was told."""

    step = Step.CONFIRM
    signature: bytes

    def body(self) -> bytes:
        """Return the signature."""
        return self.signature


@dataclass(frozen=True)
class Confirmations(Message):
    """Round 3, down: signatures of the client's neighbours and its own, as (signer, signature)."""

    step = Step.CONFIRM
    signatures: tuple[tuple[int, bytes], ...]

    def body(self) -> bytes:
        """Return signer and signature of each."""
        return _listed(self.signatures)


@dataclass(frozen=True)
class Revealed(Message):
    """Round 4, up: shares of seeds of survivors and of mask keys of clients that have failed.

    Attributes
    ----------
    seeds, keys : tuple of (owner, share)
        No client is an owner in both.
    """

    step = Step.REVEAL
    seeds: tuple[tuple[int, int], ...]
    keys: tuple[tuple[int, int], ...]

    def body(self) -> bytes:
        """Return how many seeds there are, and owner and share of all."""
        both = (*self.seeds, *self.keys)
        shares = [(owner, share.to_bytes(SHARE_BYTES, "big")) for owner, share in both]
        return _number(len(self.seeds)) + _listed(shares)


def survivor_bits(numbers: frozenset[int], clients: int) -> bytes:
    """Return a set of clients as one bit each: what is sent and what is signed."""
    here = np.zeros(clients, dtype=np.bool_)
    here[list(numbers)] = True
    return np.packbits(here).tobytes()


def _number(client: int) -> bytes:
    return client.to_bytes(NUMBER_BYTES, "big")


def _listed(entries: Iterable[tuple[int, bytes]]) -> bytes:
    return b"".join(_number(client) + content for client, content in entries)
