"""The messages, two a round: from a client to the server, and from the server to a client."""

from dataclasses import dataclass

import numpy as np

from client_sdk.rounds.masks import (
    Ints,
    bits_of_numbers,
    numbers_of_bits,
    pack,
    unpack,
)
from client_sdk.rounds.primitives import (
    CODE_BYTES,
    KEY_BYTES,
    SEAL_BYTES,
    SIGNATURE_BYTES,
)
from client_sdk.rounds.shamir import PRIME, SHARE_BYTES
from client_sdk.rounds.terms import Step, Terms
from client_sdk.rounds.wire import (
    Fields,
    Message,
    Reader,
    check_each,
    check_pairs,
    is_bytes,
    is_number,
    listed,
    number_bytes,
    require,
)

SEALED_BYTES = 2 * SHARE_BYTES + SEAL_BYTES  # two shares for a neighbour


@dataclass(frozen=True)
class KeyAdvert(Message):
    """Round 0, up: a client's public key, signed.

    Attributes
    ----------
    mask_key : bytes, 32
        An X25519 public key for the masks of pairs.
    signature : bytes, 64
        For the server, which lists no key that its owner has not sent.
    """

    step = Step.ADVERTISE
    mask_key: bytes
    signature: bytes

    def body(self) -> bytes:
        """Return key and signature."""
        return self.mask_key + self.signature

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read key and signature."""
        return {"mask_key": reader.take(KEY_BYTES), "signature": reader.take(SIGNATURE_BYTES)}

    def check_body(self, terms: Terms) -> None:
        """Check the sizes of key and signature."""
        right = is_bytes(self.mask_key, KEY_BYTES) and is_bytes(self.signature, SIGNATURE_BYTES)
        require(right, f"key or signature of client {self.client} are malformed")


@dataclass(frozen=True)
class KeyList(Message):
    """Round 0, down: the mask keys of the client's neighbours and its own, as (owner, key)."""

    step = Step.ADVERTISE
    keys: tuple[tuple[int, bytes], ...]

    def body(self) -> bytes:
        """Return owner and key of each."""
        return listed(self.keys)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read owners and keys."""
        return {"keys": reader.pairs(KEY_BYTES)}

    def check_body(self, terms: Terms) -> None:
        """Check the sizes of keys."""
        check_pairs(self.keys, KEY_BYTES, "keys")


@dataclass(frozen=True)
class SharesOut(Message):
    """Round 1, up: shares of the client's two secrets, encrypted for each neighbour.

    Attributes
    ----------
    seed_check : bytes, 32
        Derived from the seed of the client's own mask: tells whether it was put together rightly.
    sealed : tuple of bytes
        A ciphertext for each neighbour, by ascending number.
    """

    step = Step.SHARE
    seed_check: bytes
    sealed: tuple[bytes, ...]

    def body(self) -> bytes:
        """Return the check and the ciphertexts."""
        return self.seed_check + b"".join(self.sealed)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read the check and the ciphertexts."""
        return {"seed_check": reader.take(KEY_BYTES), "sealed": reader.pieces(SEALED_BYTES)}

    def check_body(self, terms: Terms) -> None:
        """Check the sizes of check and ciphertexts."""
        require(is_bytes(self.seed_check, KEY_BYTES), "the check of the seed is malformed")
        check_each(self.sealed, SEALED_BYTES, "sealed shares")


@dataclass(frozen=True)
class SharesIn(Message):
    """Round 1, down: what neighbours have encrypted for the client, as (sender, ciphertext)."""

    step = Step.SHARE
    sealed: tuple[tuple[int, bytes], ...]

    def body(self) -> bytes:
        """Return sender and ciphertext of each."""
        return listed(self.sealed)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read senders and ciphertexts."""
        return {"sealed": reader.pairs(SEALED_BYTES)}

    def check_body(self, terms: Terms) -> None:
        """Check the sizes of ciphertexts."""
        check_pairs(self.sealed, SEALED_BYTES, "sealed shares")


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

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read as many residues as agreed."""
        return {
            "residues": unpack(
                reader.take(-(-terms.length * terms.bits // 8)), terms.bits, terms.length
            ),
            "bits": terms.bits,
        }

    def check_body(self, terms: Terms) -> None:
        """Check that these are residues, as many as agreed."""
        residues = self.residues
        whole = type(residues) is np.ndarray and residues.dtype == np.int64
        agreed = is_number(self.bits) and self.bits == terms.bits
        right = whole and agreed and residues.shape == (terms.length,)
        require(right, f"client {self.client} sent no vector of the agreed length")
        within = residues.min() >= 0 and residues.max() < terms.modulus
        require(bool(within), f"client {self.client} sent numbers beyond the modulus")


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
        return bits_of_numbers(self.numbers, self.clients)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read one bit for each client that is enrolled."""
        octets = reader.take(-(-terms.clients // 8))
        return {"numbers": numbers_of_bits(octets, terms.clients), "clients": terms.clients}

    def check_body(self, terms: Terms) -> None:
        """Check that these are numbers of clients who are enrolled."""
        numbers = self.numbers
        right = isinstance(numbers, frozenset) and set(map(type, numbers)) <= {int}
        within = right and (not numbers or (min(numbers) >= 0 and max(numbers) < terms.clients))
        agreed = is_number(self.clients) and self.clients == terms.clients
        require(within and agreed, "the list of survivors is malformed, or includes strangers")


@dataclass(frozen=True)
class Confirmation(Message):
    """Round 3, up: the survivors that the client was told, confirmed to its neighbours.

    Attributes
    ----------
    codes : tuple of bytes, 16 each
        An authentication code for each neighbour that survives, by ascending number.
    """

    step = Step.CONFIRM
    codes: tuple[bytes, ...]

    def body(self) -> bytes:
        """Return the codes."""
        return b"".join(self.codes)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read the codes."""
        return {"codes": reader.pieces(CODE_BYTES)}

    def check_body(self, terms: Terms) -> None:
        """Check the sizes of codes."""
        check_each(self.codes, CODE_BYTES, "codes")


@dataclass(frozen=True)
class Confirmations(Message):
    """Round 3, down: what neighbours have confirmed to the client, as (sender, code)."""

    step = Step.CONFIRM
    codes: tuple[tuple[int, bytes], ...]

    def body(self) -> bytes:
        """Return sender and code of each."""
        return listed(self.codes)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read senders and codes."""
        return {"codes": reader.pairs(CODE_BYTES)}

    def check_body(self, terms: Terms) -> None:
        """Check the sizes of codes."""
        check_pairs(self.codes, CODE_BYTES, "codes")


@dataclass(frozen=True)
class Revealed(Message):
    """Round 4, up: shares of seeds of survivors and of mask keys of clients that have failed.

    Attributes
    ----------
    seeds : tuple of int
        Of the survivors among those who share secrets with the client, itself included, by
        ascending number.
    keys : tuple of int
        Of the others, by ascending number.
    """

    step = Step.REVEAL
    seeds: tuple[int, ...]
    keys: tuple[int, ...]

    def body(self) -> bytes:
        """Return how many seeds there are, and all shares."""
        shares = (share.to_bytes(SHARE_BYTES, "big") for share in (*self.seeds, *self.keys))
        return number_bytes(len(self.seeds)) + b"".join(shares)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read the number of seeds, and the shares."""
        seeds = reader.number()
        both = tuple(int.from_bytes(share, "big") for share in reader.pieces(SHARE_BYTES))
        require(seeds <= len(both), "a message is too short")
        return {"seeds": both[:seeds], "keys": both[seeds:]}

    def check_body(self, terms: Terms) -> None:
        """Check that all shares are numbers of the field."""
        for shares in (self.seeds, self.keys):
            whole = isinstance(shares, tuple) and all(is_number(share) for share in shares)
            require(whole, "the list of shares is malformed")
            within = all(0 <= share < PRIME for share in shares)
            require(within, f"client {self.client} revealed numbers beyond the field")
