"""The messages of the protocol, two a round: from a client to the server, and from it to a client.

Each names the session (the digest of its terms), its round and the client. Every message can be
written as bytes and read back. Client and server check each that they get before they look into it,
come it as bytes or as an object.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from ldpspatial.distributed.secure_aggregation.masks import Ints, pack, unpack
from ldpspatial.distributed.secure_aggregation.primitives import (
    KEY_BYTES,
    SEAL_BYTES,
    SIGNATURE_BYTES,
)
from ldpspatial.distributed.secure_aggregation.shamir import PRIME, SHARE_BYTES
from ldpspatial.distributed.secure_aggregation.terms import DIGEST_BYTES, Step, Terms
from ldpspatial.distributed.secure_aggregation.wire import (
    Reader,
    are_pairs,
    is_bytes,
    is_number,
    listed,
    number_bytes,
    require,
)

SEALED_BYTES = 2 * SHARE_BYTES + SEAL_BYTES  # two shares for a neighbour
Fields = Mapping[str, Any]
M = TypeVar("M", bound="Message")


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

    @classmethod
    @abstractmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read what :meth:`body` has written."""

    @abstractmethod
    def check_body(self, terms: Terms) -> None:
        """Refuse fields that are not of their types, or have sizes other than the agreed ones."""

    def to_bytes(self) -> bytes:
        """Return the message as bytes: round, session, client and the body."""
        return bytes([self.step]) + self.session + number_bytes(self.client) + self.body()

    @classmethod
    def from_bytes(cls: type[M], data: bytes, terms: Terms) -> M:
        """Read a message of this kind; :meth:`to_bytes` gives the very same bytes.

        Parameters
        ----------
        data : bytes
            Anything at all.
        terms : Terms
            Of the session that the message has to be of.

        Raises
        ------
        ProtocolError
            The bytes are no message of this kind in this session.
        """
        reader = Reader(data)
        step, session, client = reader.take(1), reader.take(DIGEST_BYTES), reader.number()
        require(step == bytes([cls.step]), "a message of another round")
        message = cls(session, client, **cls.fields(reader, terms))
        message.check(terms)
        # Bytes left over, or bits between the last number and the next full byte.
        require(message.to_bytes() == data, "a message is not written as it should be")
        return message

    def check(self, terms: Terms) -> None:
        """Refuse a message of another session, or with fields that are not what they should be.

        Raises
        ------
        ProtocolError
        """
        require(is_number(self.client), "a client is named by something that is no number")
        own = is_bytes(self.session, DIGEST_BYTES) and self.session == terms.digest
        require(own, "a message of another session, round or client")
        self.check_body(terms)


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
        adverts = []
        for client, content in reader.pairs(2 * KEY_BYTES + SIGNATURE_BYTES):
            advert = KeyAdvert.fields(Reader(content), terms)
            adverts.append(KeyAdvert(terms.digest, client, **advert))
        return {"adverts": tuple(adverts)}

    def check_body(self, terms: Terms) -> None:
        """Check each advert."""
        require(isinstance(self.adverts, tuple), "the list of keys is no list")
        for advert in self.adverts:
            require(isinstance(advert, KeyAdvert), "the list of keys holds something else")
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
        right = is_bytes(self.seed_check, KEY_BYTES)
        require(right, f"client {self.client} sent no check of its seed")
        _check_sealed(self.sealed)


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
        _check_sealed(self.sealed)


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
        whole = isinstance(residues, np.ndarray) and residues.dtype == np.int64
        agreed = whole and residues.shape == (terms.length,) and self.bits == terms.bits
        require(agreed, f"client {self.client} sent no vector of the agreed length")
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
        return survivor_bits(self.numbers, self.clients)

    @classmethod
    def fields(cls, reader: Reader, terms: Terms) -> Fields:
        """Read one bit for each client that is enrolled."""
        octets = np.frombuffer(reader.take(-(-terms.clients // 8)), dtype=np.uint8)
        here = np.flatnonzero(np.unpackbits(octets, count=terms.clients))
        return {"numbers": frozenset(here.tolist()), "clients": terms.clients}

    def check_body(self, terms: Terms) -> None:
        """Check that these are numbers of clients who are enrolled."""
        numbers = self.numbers
        right = isinstance(numbers, frozenset) and all(map(is_number, numbers))
        require(right and self.clients == terms.clients, "the list of survivors is malformed")
        within = all(0 <= number < terms.clients for number in numbers)
        require(within, "the survivors include strangers")


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
        right = is_bytes(self.signature, SIGNATURE_BYTES)
        require(right, f"the signature of client {self.client} is malformed")


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
        right = are_pairs(self.signatures, lambda each: is_bytes(each, SIGNATURE_BYTES))
        require(right, "the list of confirmations is malformed")


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
        right = are_pairs(self.seeds, is_number) and are_pairs(self.keys, is_number)
        require(right, f"client {self.client} has revealed no shares")
        within = all(0 <= share < PRIME for _, share in (*self.seeds, *self.keys))
        require(within, f"client {self.client} revealed numbers beyond the field")


def survivor_bits(numbers: frozenset[int], clients: int) -> bytes:
    """Return a set of clients as one bit each: what is sent and what is signed."""
    here = np.zeros(clients, dtype=np.bool_)
    here[list(numbers)] = True
    return np.packbits(here).tobytes()


def _check_sealed(sealed: object) -> None:
    right = are_pairs(sealed, lambda each: is_bytes(each, SEALED_BYTES))
    require(right, "the list of sealed shares is malformed")
