"""Slow, obvious twins of the cryptography of rounds, from the RFCs: no library but ``hashlib``."""

from collections.abc import Sequence
from hashlib import sha256, sha512

FIELD = 2**255 - 19
WORD = 2**32 - 1


def x25519(scalar: bytes, point: bytes) -> bytes:
    """Return scalar times point: the ladder of RFC 7748, section 5."""
    clamped = int.from_bytes(scalar, "little") & (2**255 - 8) & (2**255 - 1) | 2**254
    x1 = int.from_bytes(point, "little") % 2**255
    x2, z2, x3, z3 = 1, 0, x1, 1
    for bit in reversed(range(255)):
        swap = clamped >> bit & 1
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
        total, difference = x2 + z2, x2 - z2
        square, other = total**2, difference**2
        e = square - other
        da, cb = (x3 - z3) * total, (x3 + z3) * difference
        x3, z3 = (da + cb) ** 2 % FIELD, x1 * (da - cb) ** 2 % FIELD
        x2, z2 = square * other % FIELD, e * (square + 121665 * e) % FIELD
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, FIELD - 2, FIELD) % FIELD).to_bytes(32, "little")


def hmac_sha256(key: bytes, data: bytes) -> bytes:
    """RFC 2104."""
    if len(key) > 64:
        key = sha256(key).digest()
    key += bytes(64 - len(key))
    inner = sha256(bytes(k ^ 0x36 for k in key) + data).digest()
    return sha256(bytes(k ^ 0x5C for k in key) + inner).digest()


def hkdf_sha256(secret: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    """RFC 5869."""
    key = hmac_sha256(salt, secret)
    found = block = b""
    for number in range(1, size // 32 + 2):
        block = hmac_sha256(key, block + info + bytes([number]))
        found += block
    return found[:size]


def chacha20(key: bytes, nonce: bytes, counter: int, data: bytes) -> bytes:
    """RFC 8439, section 2.4."""
    found = bytearray()
    for at in range(0, len(data), 64):
        stream = _chacha_block(key, nonce, counter + at // 64)
        found += bytes(a ^ b for a, b in zip(data[at : at + 64], stream, strict=False))
    return bytes(found)


def chacha20_poly1305(key: bytes, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """RFC 8439, section 2.8."""
    sealed = chacha20(key, nonce, 1, plaintext)
    told = b"".join(data + bytes(-len(data) % 16) for data in (associated, sealed))
    told += b"".join(len(data).to_bytes(8, "little") for data in (associated, sealed))
    return sealed + _poly1305(_chacha_block(key, nonce, 0)[:32], told)


def ed25519(private: bytes, message: bytes) -> tuple[bytes, bytes]:
    """Return public key and signature: RFC 8032, section 5.1."""
    order = 2**252 + 27742317777372353535851937790883648493
    hashed = sha512(private).digest()
    scalar = int.from_bytes(hashed[:32], "little") & (2**254 - 8) | 2**254
    public = _encoded(_times(scalar, _base()))
    nonce = int.from_bytes(sha512(hashed[32:] + message).digest(), "little") % order
    point = _encoded(_times(nonce, _base()))
    challenge = int.from_bytes(sha512(point + public + message).digest(), "little")
    return public, point + ((nonce + challenge * scalar) % order).to_bytes(32, "little")


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[k : k + 4], "little") for k in range(0, len(data), 4)]


def _chacha_block(key: bytes, nonce: bytes, counter: int) -> bytes:
    first = [*_words(b"expand 32-byte k"), *_words(key), counter, *_words(nonce)]
    state = first.copy()
    columns = [[k, k + 4, k + 8, k + 12] for k in range(4)]
    diagonals = [[k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4] for k in range(4)]
    for _ in range(10):
        for quarter in [*columns, *diagonals]:
            _quarter_round(state, quarter)
    sums = [(a + b) & WORD for a, b in zip(state, first, strict=True)]
    return b"".join(each.to_bytes(4, "little") for each in sums)


def _quarter_round(state: list[int], places: Sequence[int]) -> None:
    a, b, c, d = places
    for target, source, turned, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[target] = (state[target] + state[source]) & WORD
        mixed = state[turned] ^ state[target]
        state[turned] = (mixed << by | mixed >> (32 - by)) & WORD


def _poly1305(key: bytes, data: bytes) -> bytes:
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(data), 16):
        total = (total + int.from_bytes(data[at : at + 16] + b"\x01", "little")) * r
        total %= 2**130 - 5
    return ((total + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


Point = tuple[int, int]


def _base() -> Point:
    y = 4 * pow(5, FIELD - 2, FIELD) % FIELD
    square = (y * y - 1) * pow(_d() * y * y + 1, FIELD - 2, FIELD) % FIELD
    x = pow(square, (FIELD + 3) // 8, FIELD)
    if (x * x - square) % FIELD:
        x = x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD
    return (FIELD - x if x % 2 else x), y


def _d() -> int:
    return -121665 * pow(121666, FIELD - 2, FIELD) % FIELD


def _plus(one: Point, other: Point) -> Point:
    (x1, y1), (x2, y2) = one, other
    t = _d() * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + t, FIELD - 2, FIELD)
    y = (y1 * y2 + x1 * x2) * pow(1 - t, FIELD - 2, FIELD)
    return x % FIELD, y % FIELD


def _times(scalar: int, point: Point) -> Point:
    found = 0, 1
    while scalar:
        if scalar % 2:
            found = _plus(found, point)
        point, scalar = _plus(point, point), scalar // 2
    return found


def _encoded(point: Point) -> bytes:
    return (point[1] + 2**255 * (point[0] % 2)).to_bytes(32, "little")
