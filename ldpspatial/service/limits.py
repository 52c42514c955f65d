"""How much one request may hold, and how many one address may send."""

import hashlib
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from ldpspatial.validate import whole_number

KEY_SECONDS = 3600.0
MOST_ADDRESSES = 100_000


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
