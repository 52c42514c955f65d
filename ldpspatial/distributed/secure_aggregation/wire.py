"""How messages are written as bytes and read back, and what types their fields have.

Whatever arrives may be anything. So each rule raises `ProtocolError` and nothing else, and whoever
has checked a message can work with its fields.
"""

from collections.abc import Callable, Iterable

from ldpspatial.distributed.secure_aggregation.errors import ProtocolError

NUMBER_BYTES = 4  # of a client


def number_bytes(client: int) -> bytes:
    """Return a number of a client as bytes."""
    return client.to_bytes(NUMBER_BYTES, "big")


def listed(entries: Iterable[tuple[int, bytes]]) -> bytes:
    """Return pairs of a client and bytes, one after the other."""
    return b"".join(number_bytes(client) + content for client, content in entries)


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
        begin, self._place = self._place, self._place + size
        if self._place > len(self._data):
            raise ProtocolError("a message is too short")
        return self._data[begin : self._place]

    def number(self) -> int:
        """Return the number of a client."""
        return int.from_bytes(self.take(NUMBER_BYTES), "big")

    def pairs(self, size: int) -> tuple[tuple[int, bytes], ...]:
        """Return all that is left, as pairs of a client and ``size`` bytes."""
        found = []
        while self._place < len(self._data):
            found.append((self.number(), self.take(size)))
        return tuple(found)


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


def are_pairs(value: object, right: Callable[[object], bool]) -> bool:
    """Tell whether a value is a tuple of pairs of a number and something that is ``right``."""
    return isinstance(value, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and is_number(pair[0]) and right(pair[1])
        for pair in value
    )
