"""Parts of a request that several interfaces read: its body, its token, a digest in its path."""

import asyncio
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.requests import ClientDisconnect, Request

from ldpspatial.service.limits import FullError
from ldpspatial.service.problems import Problem, busy

DIGEST = re.compile("[0-9a-f]{64}")
CLOSE = {"Connection": "close"}  # the rest of the body may still come


class TooLargeError(Exception):
    """The body is longer than this service takes, before or after unpacking."""


class PackingError(Exception):
    """The body is not one complete gzip stream."""


async def received(
    request: Request, longest: int, take: Callable[[int], None] = lambda size: None
) -> bytes:
    """Return the body of a request.

    Parameters
    ----------
    request : Request
    longest : int
        Bytes.
    take : function
        Is told how many bytes came, piece by piece, and raises where there is no room for them.

    Raises
    ------
    TooLargeError
        The body is longer, or says that it will be.
    """
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > longest:
        raise TooLargeError
    body = bytearray()
    async for piece in request.stream():
        if len(body) + len(piece) > longest:
            raise TooLargeError
        take(len(piece))
        body += piece
    return bytes(body)


def unpacked(body: bytes, longest: int) -> bytes:
    """Return what is in a gzip stream of at most ``longest`` bytes, without making more."""
    stream = zlib.decompressobj(wbits=31)
    try:
        content = stream.decompress(body, longest + 1)
    except zlib.error:
        raise PackingError from None
    if len(content) > longest:
        raise TooLargeError
    if not stream.eof or stream.unused_data:
        raise PackingError
    return content


@contextmanager
def body_problems(too_large: str) -> Iterator[None]:
    """Answer what goes wrong while a body comes: too long, too slow, no room, gone, not packed.

    Parameters
    ----------
    too_large : str
        What is told of a body that is too long.
    """
    try:
        yield
    except TooLargeError:
        raise Problem(413, too_large, headers=CLOSE) from None
    except PackingError:
        raise Problem(400, "The body is not one gzip stream.") from None
    except FullError:
        raise busy("Too much is being received.", CLOSE) from None
    except asyncio.TimeoutError:
        raise Problem(408, "The body took too long.", headers=CLOSE) from None
    except ClientDisconnect:
        raise Problem(400, "The connection was closed.") from None


def bearer_token(request: Request) -> str | None:
    """Return the token that a request shows, None where it shows none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def no_token(detail: str) -> Problem:
    """Return the answer to a request that shows no token, or a wrong one."""
    return Problem(401, detail, headers={"WWW-Authenticate": "Bearer"})
