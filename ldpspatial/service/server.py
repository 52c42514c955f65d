"""The HTTP server: uvicorn, without logs of requests, and with a limit on how long headers take."""

import asyncio
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ldpspatial.service.limits import Limits

KEEP_ALIVE_S = 5
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
        Address of the reverse proxy whose X-Forwarded-For is believed.
    """
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=_patient(limits.seconds),
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )
    return uvicorn.Server(config)


def _patient(seconds: float) -> type[HttpToolsProtocol]:
    """Return uvicorn's protocol with a limit on the time between two complete headers' ends."""

    class Patient(HttpToolsProtocol):
        """Closes a connection whose headers take too long: uvicorn itself waits for ever."""

        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect_headers()

        def data_received(self, data: bytes) -> None:
            if self._late is None and (self.cycle is None or self.cycle.response_complete):
                self._expect_headers()
            super().data_received(data)

        def on_headers_complete(self) -> None:
            self._have_headers()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._have_headers()
            super().connection_lost(exc)

        def _expect_headers(self) -> None:
            self._late = self.loop.call_later(seconds, self.transport.close)

        def _have_headers(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Patient
