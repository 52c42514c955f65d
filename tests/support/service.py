"""The collection server as a process of the tests' own, which can be killed at any moment."""

import http.client
import itertools
import multiprocessing
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar

from client_sdk import Collection, Grid, Report
from ldpspatial.service.app import make_app
from ldpspatial.service.limits import Limits
from ldpspatial.service.server import make_server

GRID = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=15)
COLLECTION = Collection.create("noon in Berlin", GRID, 3.5)
OTHER = Collection.create("one o'clock in Berlin", GRID, 3.5)
CELLS = COLLECTION.table.output_cells()
NDJSON = "application/x-ndjson"

Cell = tuple[int, int]
AnyServer = TypeVar("AnyServer", bound="Server")


def report(cell: Cell = (1, 1), collection: Collection = COLLECTION) -> Report:
    """Return a new report of a cell."""
    return Report(collection.digest, secrets.token_hex(16), *cell)


def lines(reports: Sequence[Report]) -> bytes:
    """Return what is sent for several reports."""
    return "".join(each.to_body() + "\n" for each in reports).encode()


# Below the ports that systems give to whoever asks for any: a connection of another test could have
# one of these before its server has begun, or between a kill and the next start.
FIRST_PORT, PORTS = 12_000, 20_000
_turns = itertools.count(os.getpid() * 97)  # test runners beside this one have others


def free_port() -> int:
    """Return a port that nobody listens at, another one each time."""
    for turn in _turns:
        port = FIRST_PORT + turn % PORTS
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("unreachable")


def _serve(location: str, port: int, limits: Limits) -> None:
    make_server(make_app(location, limits), limits, "127.0.0.1", port).run()


class Server:
    """A server at a port of its own; started by :func:`serving`.

    Attributes
    ----------
    port : int
    """

    _processes = multiprocessing.get_context("forkserver")

    def __init__(self, location: str | Path, limits: Limits):
        self._location = str(location)
        self._limits = limits
        self.port = free_port()
        # Imports are made once, so that a server starts in some hundredths of a second.
        self._processes.set_forkserver_preload(["uvloop", "ldpspatial.service.server"])

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self._process = self._new_process()
        self._process.start()
        deadline = time.monotonic() + 120
        while True:
            assert time.monotonic() < deadline, "the server did not start"
            assert self._process.is_alive(), "the server ended"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.005)

    def _new_process(self) -> BaseProcess:
        arguments = self._location, self.port, self._limits
        return self._processes.Process(target=_serve, args=arguments)

    def kill(self) -> None:
        """End it without notice."""
        self._process.kill()
        self._process.join()

    def stop(self) -> None:
        """End it as an operator does."""
        os.kill(self._process.pid or 0, signal.SIGTERM)
        self._process.join(60)
        assert self._process.exitcode is not None, "the server did not stop"

    def request(
        self, method: str, path: str, body: bytes = b"", timeout: float = 120, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers in lower case and content of a response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with closing(connection):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()

    def post(self, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send reports."""
        return self.request("POST", "/reports", body, **{"Content_Type": NDJSON, **headers})


@contextmanager
def serving(location: str | Path, limits: Limits | None = None) -> Iterator[Server]:
    """Serve a store that exists, without a limit of requests by default."""
    with running(Server(location, limits or Limits(requests_a_minute=0))) as server:
        yield server


@contextmanager
def running(server: AnyServer) -> Iterator[AnyServer]:
    """Start a server, and stop it in the end."""
    server.start()
    try:
        yield server
    finally:
        if server._process.is_alive():
            server.stop()
