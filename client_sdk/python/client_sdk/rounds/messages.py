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
    are_pairs,
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

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read keys and signature."""
        return {
            "cipher_key": reader.take(KEY_BYTES),
            "mask_key": reader.take(KEY_BYTES),
            "signature": reader.take(SIGNATURE_BYTES),
        }

    def check_body(self, terms: Terms) -> None:
        """Check the sizes of keys and signature."""
        keys = is_bytes(self.cipher_key, KEY_BYTES) and is_bytes(self.mask_key, KEY_BYTES)
        signed = is_bytes(self.signature, SIGNATURE_BYTES)
        require(keys and signed, f"keys or signature of client {self.client} are malformed")


@dataclass(frozen=True)
class KeyList(Message):
    """Round 0, down: the adverts of the client's neighbours and its own."""

    step = Step.ADVERTISE
    adverts: tuple[KeyAdvert, ...]

    def body(self) -> bytes:
        """Return number, keys and signature of each."""
        return b"".join(number_bytes(advert.client) + advert.body() for advert in self.adverts)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read the adverts, which are of the same session."""
        adverts = (
            KeyAdvert(terms.digest, client, **KeyAdvert.fields(Reader(content), terms))
            for client, content in reader.pairs(2 * KEY_BYTES + SIGNATURE_BYTES)
        )
        return {"adverts": tuple(adverts)}

    def check_body(self, terms: Terms) -> None:
        """Check each advert."""
        adverts = self.adverts
        right = isinstance(adverts, tuple) and all(isinstance(v, KeyAdvert) for v in adverts)
        require(right, "the list of keys is malformed")
        for advert in adverts:
            advert.check(terms)


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
        return self.seed_check + listed(self.sealed)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read the check, and receivers and ciphertexts."""
        return {"seed_check": reader.take(KEY_BYTES), "sealed": reader.pairs(SEALED_BYTES)}

    def check_body(self, terms: Terms) -> None:
        """Check the sizes of check and ciphertexts."""
        require(is_bytes(self.seed_check, KEY_BYTES), "the check of the seed is malformed")
        check_pairs(self.sealed, SEALED_BYTES, "sealed shares")


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
        right = isinstance(self.numbers, frozenset) and set(map(type, self.numbers)) <= {int}
        numbers = self.numbers if right else frozenset()
        within = right and (not numbers or (min(numbers) >= 0 and max(numbers) < terms.clients))
        agreed = is_number(self.clients) and self.clients == terms.clients
        require(within and agreed, "the list of survivors is malformed, or includes strangers")


@dataclass(frozen=True)
class Confirmation(Message):
    """Round 3, up: the client's signature of the survivors that it was told."""

    step = Step.CONFIRM
    signature: bytes

    def body(self) -> bytes:
        """Return the signature."""
        return self.signature

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read the signature."""
        return {"signature": reader.take(SIGNATURE_BYTES)}

    def check_body(self, terms: Terms) -> None:
        """Check the size of the signature."""
        require(is_bytes(self.signature, SIGNATURE_BYTES), "the signature is malformed")


@dataclass(frozen=True)
class Confirmations(Message):
    """Round 3, down: signatures of the client's neighbours and its own, as (signer, signature)."""

    step = Step.CONFIRM
    signatures: tuple[tuple[int, bytes], ...]

    def body(self) -> bytes:
        """Return signer and signature of each."""
        return listed(self.signatures)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read signers and signatures."""
        return {"signatures": reader.pairs(SIGNATURE_BYTES)}

    def check_body(self, terms: Terms) -> None:
        """Check the sizes of signatures."""
        check_pairs(self.signatures, SIGNATURE_BYTES, "signatures")


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
        return number_bytes(len(self.seeds)) + listed(shares)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read the number of seeds, and owners and shares."""
        seeds = reader.number()
        both = [(v, int.from_bytes(share, "big")) for v, share in reader.pairs(SHARE_BYTES)]
        require(seeds <= len(both), "a message is too short")
        return {"seeds": tuple(both[:seeds]), "keys": tuple(both[seeds:])}

    def check_body(self, terms: Terms) -> None:
        """Check that all shares are numbers of the field."""
        for shares in (self.seeds, self.keys):
            require(are_pairs(shares, is_number), "the list of shares is malformed")
            within = all(0 <= share < PRIME for _, share in shares)
            require(within, f"client {self.client} revealed numbers beyond the field")
