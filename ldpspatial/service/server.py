"""The HTTP server: uvicorn without logs of requests, with limits on headers and connections."""

import asyncio
import errno
import ipaddress
import logging
import os
import socket
import traceback
from collections import defaultdict
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ldpspatial.errors import InputError
from ldpspatial.service.failure_log import FailureLog
from ldpspatial.service.limits import Limits
from ldpspatial.validate import shown

KEEP_ALIVE_S = 5
BACKLOG = 2048
MOST_CONNECTIONS = 1000  # at the same time; a system gives a process 1024 files unless it is told
MOST_HEAD_BYTES = 1 << 16
HEAD_PIECE_BYTES = 1 << 14  # so much is read between two looks at the length of headers
TOO_LONG_HEAD = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)
STOP_S = 10  # for requests that are being answered


def make_server(
    app: Starlette, limits: Limits, host: str, port: int, proxy: str | None = None
) -> uvicorn.Server:
    """Return a server that can be run.

    Parameters
    ----------
    app : Starlette
        As of :func:`ldpspatial.service.app.make_app`.
    limits : Limits
        Those of the application.
    host : str
    port : int
    proxy : str, optional
        Address of the reverse proxy, or its network, whose X-Forwarded-For is believed.

    Raises
    ------
    InputError
        The proxy is no address.
    """
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=type("Patient", (_Patient,), {"seconds": limits.seconds}),
        access_log=False,
        log_level="error",  # below it uvicorn tells of each request that is not well-formed
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        backlog=BACKLOG,
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=None if proxy is None else _trusted(proxy),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )
    logging.getLogger("uvicorn.error").addFilter(_SPARING)
    return uvicorn.Server(config)


def listening(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at each address of a host.

    Raises
    ------
    InputError
        The host is none of this machine, or the port is taken or forbidden.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise InputError(f"host must be a name or address, got {shown(host)}") from None
    sockets: list[socket.socket] = []
    failed: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        try:
            sockets.append(socket.create_server(address, family=family, backlog=BACKLOG))
        except OSError as error:
            failed = error
    # A name may stand for an address that this machine has not: ::1 where IPv6 is off.
    if failed and not (sockets and failed.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)):
        for each in sockets:
            each.close()
        raise InputError(
            f"host and port must be free to listen at, got {shown(host)} and {port}: "
            f"{os.strerror(failed.errno or 0)}"
        )
    return sockets


def _trusted(proxy: str) -> str:
    """Return the address of a proxy: uvicorn itself would ignore what is none."""
    try:
        ipaddress.ip_network(proxy)
    except ValueError:
        raise InputError(f"proxy must be an IP address or a network, got {shown(proxy)}") from None
    return proxy


class _Sparing(logging.Filter):
    """Tells the same failure once a minute, and nothing that a request held.

    uvicorn logs an exception with its text, for each request.
    """

    def __init__(self) -> None:
        super().__init__()
        self._failures: defaultdict[str, FailureLog] = defaultdict(FailureLog)

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell of an exception here instead."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        places = traceback.extract_tb(error.__traceback__)
        where = f"{Path(places[-1].filename).name}:{places[-1].lineno}" if places else "?"
        failure = f"{record.getMessage().strip()}: {type(error).__name__} at {where}"
        self._failures[failure].tell(failure)
        return False


_SPARING = _Sparing()


class _Patient(HttpToolsProtocol):
    """Closes a connection whose headers take too long, or have no end: uvicorn itself waits."""

    seconds = 30.0

    _late: asyncio.TimerHandle | None = None
    _is_in_head = False  # of a message whose headers have begun and have not ended
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        if self._late is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_headers()
        for start in range(0, len(data), HEAD_PIECE_BYTES):
            piece = data[start : start + HEAD_PIECE_BYTES]
            super().data_received(piece)
            if self._is_in_head:
                self._head_bytes += len(piece)
            if self._head_bytes > MOST_HEAD_BYTES:
                self.transport.write(TOO_LONG_HEAD)
                self.transport.close()
            if self.transport.is_closing():
                return

    def on_message_begin(self) -> None:
        self._is_in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._have_headers()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._have_headers()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        self._late = self.loop.call_later(self.seconds, self.transport.close)

    def _have_headers(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
