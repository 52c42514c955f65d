"""What the HTTP server does before a request reaches the application: limits, and its log."""

import asyncio
import logging
import re
import select
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from starlette.applications import Starlette

from ldpspatial.errors import InputError
from ldpspatial.service.limits import FREE_BYTES, ROOM_BYTES, BodyRoom, FullError, Limits
from ldpspatial.service.server import MOST_HEAD_BYTES, listening, make_server
from ldpspatial.service.store import make_store
from tests.support.command_line import refusal
from tests.support.service import COLLECTION, NDJSON, free_port, lines, report, serving

LIMITS = Limits(requests_a_minute=0)


async def _prepared(path: Path) -> None:
    store = await make_store(path)
    await store.add(COLLECTION, 1)
    await store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "store.db"
    asyncio.run(_prepared(file))
    return file


def asked(port: int, *pieces: bytes) -> bytes:
    """Send pieces and return the status line that comes back."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            return connection.recv(4096).partition(b"\r\n")[0]
        except ConnectionResetError:
            return b"reset"


# Headers


HEAD = b"GET /health HTTP/1.1\r\nHost: a\r\n"


def test_headers_have_a_longest_length(path: Path) -> None:
    fits = b"X: " + b"a" * (MOST_HEAD_BYTES * 3 // 4)
    long = b"X: " + b"a" * 2 * MOST_HEAD_BYTES
    many = b"".join(b"x%05d: y\r\n" % k for k in range(MOST_HEAD_BYTES // 8))
    end = b"\r\n\r\n"
    with serving(path, LIMITS) as server:
        assert asked(server.port, HEAD, fits, end) == b"HTTP/1.1 200 OK"
        for refused in (
            asked(server.port, HEAD + long + end),
            asked(server.port, HEAD + many + end),
            asked(server.port, HEAD, long),
            asked(server.port, b"GET /" + b"a" * 2 * MOST_HEAD_BYTES),
        ):
            assert refused in (b"HTTP/1.1 431 Request Header Fields Too Large", b"reset")
        one_connection = HEAD + b"\r\n"
        assert asked(server.port, one_connection * 3000)  # each has its own headers
        body = lines([report() for _ in range(1000)])
        assert server.post(body)[0] == 204  # a body is longer


def test_connections_are_bounded_and_none_becomes_a_web_socket() -> None:
    config = make_server(Starlette(), LIMITS, "127.0.0.1", 1).config
    assert (config.limit_concurrency, config.ws) == (1000, "none")


# Bodies


def test_the_bodies_of_all_requests_have_one_bound() -> None:
    room = BodyRoom(LIMITS)
    with ExitStack() as requests:
        takes = [requests.enter_context(room.request()) for _ in range(100)]
        longest = LIMITS.body_bytes
        for take in takes[: ROOM_BYTES // longest]:
            for _ in range(2):
                take(longest // 2)
        with pytest.raises(FullError):
            takes[20](longest)
        for take in takes[-50:]:
            take(FREE_BYTES)  # a device's report finds room all the same
        with pytest.raises(FullError):
            takes[-1](longest)
    with room.request() as take:
        take(ROOM_BYTES)
    with BodyRoom(Limits(body_bytes=1 << 28)).request() as take:
        take(1 << 30)


def test_unfinished_bodies_leave_room_for_reports(path: Path) -> None:
    # Of such bodies four fill the room.
    limits = Limits(requests_a_minute=0, body_bytes=1 << 23, seconds=600)
    head = b"POST /reports HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
    head %= NDJSON.encode(), limits.body_bytes
    with serving(path, limits) as server, ExitStack() as opened:

        def unfinished() -> socket.socket:
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            opened.enter_context(closing(connection))
            connection.sendall(head + b"x" * (limits.body_bytes - 1))
            return connection

        held = [unfinished() for _ in range(4)]
        deadline = time.monotonic() + 120
        long = lines([report() for _ in range(1000)])
        while (answer := server.post(long))[0] != 503:  # until what was sent has been read
            assert time.monotonic() < deadline
            # One whose last bytes came while this report was in the room found none, and was told.
            told, _, _ = select.select(held, [], [], 0.05)
            held = [unfinished() if each in told else each for each in held]
        status, headers, _ = answer
        assert (status, headers["retry-after"]) == (503, "30")
        assert server.post(lines([report()]))[0] == 204
        opened.close()
        while server.post(long)[0] != 204:
            assert time.monotonic() < deadline


# The log


def test_nothing_is_logged_about_requests(path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "ldpspatial", "serve", str(path), "--port", str(port)]
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert service.stderr is not None
    told = service.stderr.readline()
    for _ in range(5):
        assert asked(port, b"\x00\xff planted\r\n\r\n").endswith(b"400 Bad Request")
        upgrade = HEAD + b"Connection: Upgrade\r\nUpgrade: %s\r\n\r\n"
        for kind in (b"websocket", b"h2c", b"planted"):
            assert asked(port, upgrade % kind) == b"HTTP/1.1 200 OK"
    service.terminate()
    assert (told.startswith("Serving"), service.communicate(timeout=60)[1]) == (True, "")


def test_a_failure_of_the_code_is_told_once_and_without_what_was_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    make_server(Starlette(), LIMITS, "127.0.0.1", 1)
    logger = logging.getLogger("uvicorn.error")
    for _ in range(100):
        try:
            raise ValueError("planted")
        except ValueError as error:
            logger.error("Exception in ASGI application\n", exc_info=error)
    (message,) = caplog.messages
    assert re.fullmatch(r"Exception in ASGI application: ValueError at test_server.py:\d+", message)


# What cannot be served


@pytest.mark.parametrize("proxy", ["not an address", "", "*", "localhost", "10.0.0.1/8", "::g"])
def test_a_proxy_that_is_no_address_is_refused(path: Path, proxy: str) -> None:
    told = refusal("serve", path, "--proxy", proxy)
    assert f"proxy must be an IP address or a network, got {proxy!r}" in told


@pytest.mark.parametrize("proxy", ["127.0.0.1", "::1", "10.0.0.0/8"])
def test_a_proxy_is_an_address_or_a_network(proxy: str) -> None:
    assert make_server(Starlette(), LIMITS, "127.0.0.1", 1, proxy).config.forwarded_allow_ips


def test_a_host_that_is_none_is_one_line(path: Path) -> None:
    told = refusal("serve", path, "--host", "nosuchhost.invalid")
    assert "host must be a name or address, got 'nosuchhost.invalid'" in told
    assert "Serving" not in told


def test_a_port_that_is_taken_is_one_line(path: Path) -> None:
    (taken,) = listening("127.0.0.1", 0)
    with closing(taken):
        port = taken.getsockname()[1]
        told = refusal("serve", path, "--port", port)
        assert f"free to listen at, got '127.0.0.1' and {port}: Address already in use" in told
    with pytest.raises(InputError, match=r"got '192\.0\.2\.1' and 1: "):
        listening("192.0.2.1", 1)
