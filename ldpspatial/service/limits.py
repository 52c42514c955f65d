"""How much requests may hold, one and all together, and how many one address may send."""

import hashlib
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ldpspatial.validate import whole_number

KEY_SECONDS = 3600.0
MOST_ADDRESSES = 100_000
ROOM_BYTES = 1 << 25  # of all bodies that are in memory, but for the first bytes of each
FREE_BYTES = 1 << 12  # of each body: what a device sends finds room whatever others hold


@dataclass(frozen=True)
class Limits:
    """Limits of a request.

    Attributes
    ----------
    body_bytes : int
        Bytes of a body, as sent and again as unpacked.
    lines : int
        Lines of a body.
    seconds : int
        Time in which a body must arrive.
    requests_a_minute : int
        Requests of one address (of one /64 with IPv6); 0: no limit.
    """

    body_bytes: int = 1 << 21
    lines: int = 10_000
    seconds: int = 30
    requests_a_minute: int = 600

    def __post_init__(self) -> None:
        whole_number("body_bytes", self.body_bytes, 1024, 1 << 28)
        whole_number("lines", self.lines, 1, 10**6)
        whole_number("seconds", self.seconds, 1, 3600)
        whole_number("requests_a_minute", self.requests_a_minute, 0, 10**9)


class FullError(Exception):
    """The bodies that are in memory leave no room for more of this one."""


class BodyRoom:
    """Bounds the bytes of all bodies that are in memory at the same time.

    Parameters
    ----------
    limits : Limits
        Four of the longest bodies have room in any case.
    """

    def __init__(self, limits: Limits):
        self._left = max(ROOM_BYTES, 4 * limits.body_bytes)

    @contextmanager
    def request(self) -> Iterator[Callable[[int], None]]:
        """Yield what takes room for more bytes of one request; all is given back at its end.

        It raises :class:`FullError` where there is none.
        """
        total = 0
        held = 0

        def take(number: int) -> None:
            nonlocal total, held
            more = max(0, total + number - FREE_BYTES) - held
            if more > self._left:
                raise FullError
            total += number
            held += more
            self._left -= more

        try:
            yield take
        finally:
            self._left += held


class RateLimit:
    """Buckets of requests by address, in memory only.

    An address is held as a keyed hash whose key changes every hour, and with it all buckets: a
    dump of the memory does not tell who sent anything an hour ago.
    """

    def __init__(self, requests_a_minute: int, clock: Callable[[], float] = time.monotonic):
        self._most = float(requests_a_minute)
        self._clock = clock
        self._key = b""
        self._key_until = -1.0
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def wait_s(self, address: str) -> float:
        """Count a request of an address; return 0, or in how many seconds it may come again."""
        if not self._most:
            return 0.0
        now = self._clock()
        if now >= self._key_until:
            self._key = secrets.token_bytes(32)
            self._key_until = now + KEY_SECONDS
            self._buckets.clear()
        name = hashlib.blake2b(_network(address), key=self._key, digest_size=16).digest()
        left, at = self._buckets.pop(name, (self._most, now))
        left = min(self._most, left + (now - at) * self._most / 60)
        allowed = left >= 1
        self._buckets[name] = (left - 1 if allowed else left, now)
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) * 60 / self._most


def _network(address: str) -> bytes:
    """Return the bytes that stand for an address: with IPv6 those of its /64."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address.encode()
    mapped = getattr(ip, "ipv4_mapped", None)  # ::ffff:192.0.2.1, as a socket for both gives it
    ip = mapped or ip
    return ip.packed[:8] if ip.version == 6 else ip.packed
