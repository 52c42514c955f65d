"""Parts of requests: bodies within limits, gzip streams, tokens."""

import asyncio
import gzip
import zlib
from collections.abc import Iterator

import pytest
from starlette.requests import ClientDisconnect, Request

from ldpspatial.service.limits import FullError
from ldpspatial.service.problems import Problem
from ldpspatial.service.request_parts import (
    PackingError,
    TooLargeError,
    bearer_token,
    body_problems,
    received,
    unpacked,
)


def request_of(pieces: list[bytes], **headers: str) -> Request:
    """Return a request whose body comes in pieces, and then ends."""
    coming: Iterator[bytes] = iter(pieces)
    left = [len(pieces)]

    async def receive() -> dict[str, object]:
        left[0] -= 1
        return {"type": "http.request", "body": next(coming), "more_body": left[0] > 0}

    shown = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": shown}, receive)


def test_a_body_comes_whole_or_not_at_all() -> None:
    pieces = [b"abc", b"", b"defg"]
    taken: list[int] = []
    assert asyncio.run(received(request_of(pieces), 7, taken.append)) == b"abcdefg"
    assert sum(taken) == 7
    with pytest.raises(TooLargeError):
        asyncio.run(received(request_of(pieces), 6))
    for length in ("8", "9" * 5000):  # what it says is enough: nothing is read
        with pytest.raises(TooLargeError):
            asyncio.run(received(request_of([], content_length=length), 7))
    assert asyncio.run(received(request_of([b"a"], content_length="many"), 7)) == b"a"


@pytest.mark.parametrize(
    ("error", "status"),
    [(TooLargeError, 413), (PackingError, 400), (FullError, 503), (asyncio.TimeoutError, 408),
     (ClientDisconnect, 400)],
)  # fmt: skip
def test_what_goes_wrong_with_a_body_is_answered(error: type[Exception], status: int) -> None:
    with pytest.raises(Problem) as told, body_problems("At most 7 bytes."):
        raise error
    assert told.value.status == status
    closes = status in (408, 413, 503)  # the rest of the body may still come
    assert (told.value.headers.get("Connection") == "close") is closes
    assert ("7 bytes" in str(told.value)) is (status == 413)


def test_a_token_is_shown_in_one_way() -> None:
    for shown in ("Bearer abc", "bearer  abc ", "BEARER abc"):
        assert bearer_token(request_of([], authorization=shown)) == "abc"
    for shown in ("Basic abc", "abc", "", "Bearer"):
        assert bearer_token(request_of([], authorization=shown)) is None
    assert bearer_token(request_of([])) is None


def test_a_gzip_stream_is_unpacked_to_a_limit_and_no_further() -> None:
    content = b"a line of twenty bytes" * 20
    assert unpacked(gzip.compress(content), len(content)) == content
    with pytest.raises(TooLargeError):
        unpacked(gzip.compress(content), len(content) - 1)
    bomb = gzip.compress(bytes(10**8))
    assert len(bomb) < 10**5
    with pytest.raises(TooLargeError):
        unpacked(bomb, 1 << 21)


@pytest.mark.parametrize(
    "packed",
    [b"", b"not gzip", gzip.compress(b"a" * 99)[:-1], gzip.compress(b"a") + b"b",
     gzip.compress(b"a") * 2, zlib.compress(b"a"), gzip.compress(b"a")[:-4] + b"\0\0\0\0"],
    ids=range(7),
)  # fmt: skip
def test_what_is_not_one_gzip_stream_is_refused(packed: bytes) -> None:
    with pytest.raises(PackingError):
        unpacked(packed, 1000)
