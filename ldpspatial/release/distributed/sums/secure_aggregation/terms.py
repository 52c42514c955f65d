"""Terms: what server and clients have agreed on before a session begins. All of it is public."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from hashlib import sha256

from ldpspatial.errors import InputError
from ldpspatial.release.distributed.sums.secure_aggregation.graph import MAX_CLIENTS, Neighbours
from ldpspatial.validate import whole_number

VERSION = b"ldpspatial secure aggregation 1"
SESSION_BYTES = 16
DIGEST_BYTES = 32
MAX_BITS = 62  # int64 holds 2^62 with its negative half
MAX_LENGTH = 1 << 32  # words of eight bytes: an eighth of what a ChaCha20 stream holds


class Step(IntEnum):
    """The rounds of the protocol, named after what a client does in them."""

    ADVERTISE = 0
    SHARE = 1
    MASK = 2
    CONFIRM = 3
    REVEAL = 4


@dataclass(frozen=True)
class Terms:
    """The public parameters of one session.

    Attributes
    ----------
    session : bytes, 16
        Drawn afresh for every session.
    clients : int in [threshold, 2^20]
        How many are enrolled; they are numbered from 0.
    threshold : int >= 2
        Fewest clients that have to be left in every round; fewest whose sum is revealed.
    bits : int in [1, 62]
        The modulus is 2^bits.
    length : int >= 1
        Of a vector.
    neighbours : Neighbours or None
        None shares every secret with every client, as in Bonawitz et al. (CCS 2017), in
        ``threshold`` shares.

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    session: bytes
    clients: int
    threshold: int
    bits: int
    length: int
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        if len(self.session) != SESSION_BYTES:
            raise InputError(f"session must be {SESSION_BYTES} bytes, got {len(self.session)}")
        whole_number("clients", self.clients, 2, MAX_CLIENTS)
        whole_number("threshold", self.threshold, 2, self.clients)
        whole_number("bits", self.bits, 1, MAX_BITS)
        whole_number("length", self.length, 1, MAX_LENGTH)
        if self.neighbours is not None and self.neighbours.shares > self.threshold:
            raise InputError(
                f"neighbours.shares must be at most the threshold {self.threshold}, "
                f"got {self.neighbours.shares!r}"
            )

    @property
    def modulus(self) -> int:
        """2^bits."""
        return 1 << self.bits

    @property
    def degree(self) -> int:
        """Most neighbours of a client."""
        return self.clients - 1 if self.neighbours is None else self.neighbours.degree

    @property
    def complete(self) -> bool:
        """Whether all clients are neighbours of all."""
        return self.degree >= self.clients - 1

    @property
    def shares(self) -> int:
        """How many shares give a secret back: t."""
        return self.threshold if self.neighbours is None else self.neighbours.shares

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that stand for the session and all its terms, in every key and message."""
        numbers = (self.clients, self.threshold, self.bits, self.length, self.degree, self.shares)
        return sha256(VERSION + self.session + b"".join(map(encoded, numbers))).digest()

    def label(self, use: str, *numbers: int) -> bytes:
        """Return what binds a key, a ciphertext or a signature to this session and to one use."""
        return VERSION + self.digest + use.encode() + b":" + b"".join(map(encoded, numbers))


def encoded(number: int) -> bytes:
    """Return a number below 2^64 as eight bytes."""
    return number.to_bytes(8, "big")
