"""Connections from a fleet's network to its server."""

import asyncio
import re
from contextlib import suppress
from typing import NamedTuple

MOST_IDLE_S = 2.0  # of a connection, which the server closes after 5
HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


class Response(NamedTuple):
    """An answer, and all its bytes."""

    status: int
    content: bytes
    raw: bytes


class Upstream:
    """Sends whole requests and returns whole responses."""

    def __init__(self, port: int):
        self._port = port
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, path: str, headers: str, body: bytes) -> Response:
        """Send a request and return the answer; there must be one."""
        reader, writer = await self._connection()
        writer.write(_request(path, headers, len(body)) + body)
        try:
            head = await reader.readuntil(HEAD_END)
            content = await reader.readexactly(length(head))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise RuntimeError("the server hung up") from error  # no device did
        self._idle.append((asyncio.get_running_loop().time(), reader, writer))
        return Response(int(head[9:12]), content, head + content)

    async def begin(self, path: str, headers: str, body: bytes, sent: int) -> None:
        """Send a request up to so many bytes of the body, and hang up."""
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(_request(path, headers, len(body)) + body[:sent])
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    def close(self) -> None:
        """Close all connections."""
        for _, _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            since, reader, writer = self._idle.pop()
            if asyncio.get_running_loop().time() < since + MOST_IDLE_S:
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self._port)


def length(head: bytes) -> int:
    """Return how many bytes follow the headers."""
    found = _LENGTH.search(head)
    return int(found[1]) if found else 0


def _request(path: str, headers: str, number: int) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: fleet\r\nContent-Length: {number}\r\n{headers}\r\n"
    return head.encode()
