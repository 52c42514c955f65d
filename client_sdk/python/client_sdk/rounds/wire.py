"""What all messages have: a header, a form as bytes, and rules for the types of their fields.

Whatever arrives may be anything, be it bytes or an object. Client and server check each message
before they look into it; what breaks a rule raises `ProtocolError` and nothing else.
"""

import struct
from abc import ABC, abstractmethod
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.terms import DIGEST_BYTES, NUMBER_BYTES, Step, Terms

Fields = Mapping[str, Any]
M = TypeVar("M", bound="Message")


class Reader:
    """Reads bytes from their beginning.

    Raises
    ------
    ProtocolError
        What is read is not bytes, or too short.
    """

    def __init__(self, data: bytes) -> None:
        if not isinstance(data, bytes):
            raise ProtocolError(f"a message must be bytes, got {type(data).__name__}")
        self._data, self._place = data, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes, ``size`` of them."""
        begin = self._place
        self._place = self._place + size
        if self._place > len(self._data):
            raise ProtocolError("a message is too short")
        return self._data[begin : self._place]

    def number(self) -> int:
        """Return the number of a client."""
        return int.from_bytes(self.take(NUMBER_BYTES), "big")

    def pairs(self, size: int) -> tuple[tuple[int, bytes], ...]:
        """Return all that is left, as pairs of a client and ``size`` bytes."""
        return tuple((number, content) for number, content in self._rest(f">I{size}s"))

    def pieces(self, size: int) -> tuple[bytes, ...]:
        """Return all that is left, in pieces of ``size`` bytes."""
        return tuple(piece for (piece,) in self._rest(f"{size}s"))

    def _rest(self, form: str) -> Iterator[tuple[Any, ...]]:
        """Return all that is left in entries of a form of the module ``struct``."""
        rest = self.take(len(self._data) - self._place)
        if len(rest) % struct.calcsize(form):
            raise ProtocolError("a message is too short")
        return struct.iter_unpack(form, rest)


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
            The bytes are not a message of this kind in this session.
        """
        reader = Reader(data)
        step = reader.take(1)
        session = reader.take(DIGEST_BYTES)
        client = reader.number()
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
        require(is_number(self.client), "a client is named by something that is not a number")
        own = is_bytes(self.session, DIGEST_BYTES) and self.session == terms.digest
        require(own, "a message of another session, round or client")
        self.check_body(terms)


def number_bytes(client: int) -> bytes:
    """Return a number of a client as bytes."""
    return client.to_bytes(NUMBER_BYTES, "big")


def listed(entries: Iterable[tuple[int, bytes]]) -> bytes:
    """Return pairs of a client and bytes, one after the other."""
    return b"".join(client.to_bytes(NUMBER_BYTES, "big") + content for client, content in entries)


def as_text(data: bytes) -> str:
    """Return bytes as a text to be kept: base64, two thirds of what hexadecimal takes."""
    return b2a_base64(data, newline=False).decode()


def from_text(text: str) -> bytes:
    """Return the bytes that :func:`as_text` was given."""
    return a2b_base64(text)


def require(rule: bool, broken: str) -> None:
    """Raise ProtocolError with a text unless a rule holds."""
    if not rule:
        raise ProtocolError(broken)


def is_number(value: object) -> bool:
    """Tell whether a value is a whole number: no bool and no float, which compare equal to some."""
    return type(value) is int


def is_bytes(value: object, size: int) -> bool:
    """Tell whether a value is that many bytes."""
    return isinstance(value, bytes) and len(value) == size


def check_pairs(value: object, size: int, what: str) -> None:
    """Refuse what is not a tuple of pairs of a number and so many bytes."""
    right = isinstance(value, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and type(pair[0]) is int for pair in value
    )
    require(right, f"the list of {what} is malformed")
    check_each(tuple(pair[1] for pair in value), size, what)  # type: ignore[attr-defined]


def check_each(value: object, size: int, what: str) -> None:
    """Refuse what is not a tuple of so many bytes each."""
    right = isinstance(value, tuple) and all(
        type(each) is bytes and len(each) == size for each in value
    )
    require(right, f"the list of {what} is malformed")
