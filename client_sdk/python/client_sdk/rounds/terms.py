"""Terms: what server and clients have agreed on before a session begins. All of it is public."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from hashlib import sha256

from client_sdk.errors import ParameterError
from client_sdk.rounds.graph import MAX_CLIENTS, Neighbours
from client_sdk.rounds.noise import MAX_BITS
from client_sdk.validate import shown, whole_number

PROTOCOL = 5
VERSION = f"ldpspatial secure aggregation {PROTOCOL}".encode()
SESSION_BYTES = 16
NUMBER_BYTES = 4  # of a client
DIGEST_BYTES = 32
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
    colluding : int in [0, threshold)
        How many clients may do anything together with the server.
    honest_server : bool
        Trust the server to follow the protocol. Otherwise twice the threshold has to exceed
        ``clients + colluding``, on the complete graph: a server that tells two halves of the
        clients of different survivors gets shares of both secrets of a client, and its vector.
    document : bytes, 0 or 32
        SHA-256 of the round document that says what is asked and with which noise; empty where
        there is none. It enters every key, code and signature: clients of a session agree on it.

    Raises
    ------
    ParameterError
        A field breaks its rule, or the threshold is too low against any server.
    """

    session: bytes
    clients: int
    threshold: int
    bits: int
    length: int
    neighbours: Neighbours | None = None
    colluding: int = 0
    honest_server: bool = False
    document: bytes = b""

    def __post_init__(self) -> None:
        if len(self.session) != SESSION_BYTES:
            raise ParameterError(f"session must be {SESSION_BYTES} bytes, got {len(self.session)}")
        if len(self.document) not in (0, DIGEST_BYTES):
            raise ParameterError(
                f"document must be a digest of {DIGEST_BYTES} bytes, got {len(self.document)}"
            )
        whole_number("clients", self.clients, 2, MAX_CLIENTS)
        whole_number("threshold", self.threshold, 2, self.clients)
        whole_number("bits", self.bits, 1, MAX_BITS)
        whole_number("length", self.length, 1, MAX_LENGTH)
        if self.neighbours is not None and self.neighbours.shares > self.threshold:
            raise ParameterError(
                f"neighbours.shares must be at most the threshold {self.threshold}, "
                f"got {self.neighbours.shares!r}"
            )
        whole_number("colluding", self.colluding, 0, self.threshold - 1)
        if self.complete and self.colluding >= self.shares:
            # All are neighbours of all: those who collude hold shares of everybody's secrets.
            raise ParameterError(
                f"neighbours.shares must be more than the {self.colluding} clients who collude "
                f"where all are neighbours, got {self.shares}"
            )
        if not isinstance(self.honest_server, bool):
            raise ParameterError(
                f"honest_server must be True or False, got {shown(self.honest_server)}"
            )
        if not self.honest_server:
            self._check_against_any_server()

    def _check_against_any_server(self) -> None:
        remedy = "or trust it to follow the protocol with honest_server=True"
        if not self.complete:
            raise ParameterError(
                "neighbours must be None against a server that may do anything, got "
                f"{self.neighbours!r}; {remedy}"
            )
        # As many shares as give one secret back must not be left over for the other secret.
        if 2 * self.shares <= self.clients + self.colluding:
            least = (self.clients + self.colluding) // 2 + 1
            field = "threshold" if self.neighbours is None else "neighbours.shares"
            raise ParameterError(
                f"{field} must be {least} or more of {self.clients} clients with "
                f"{self.colluding} colluding, against a server that may do anything, got "
                f"{self.shares}; {remedy}"
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
        numbers = (
            self.clients, self.threshold, self.bits, self.length, self.degree, self.shares,
            self.colluding, int(self.honest_server),
        )  # fmt: skip
        told = VERSION + self.session + b"".join(map(encoded, numbers)) + self.document
        return sha256(told).digest()

    def label(self, use: str, *numbers: int) -> bytes:
        """Return what binds a key, a ciphertext or a signature to this session and to one use."""
        return VERSION + self.digest + use.encode() + b":" + b"".join(map(encoded, numbers))


def encoded(number: int) -> bytes:
    """Return a number below 2^64 as eight bytes."""
    return number.to_bytes(8, "big")
