"""The service as an operator runs it: commands, a server process, and requests with a token."""

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from client_sdk import Collection, Series

HOST = "127.0.0.1"
LDPSPATIAL = (sys.executable, "-m", "ldpspatial")
START_S = 60.0
LOOK_S = 0.25  # between two looks whether something is done
MAP_FILES = (
    "heatmap.png", "estimate.npz", "estimate.csv", "estimate.geojson", "summary.json",
)  # fmt: skip


class Operator:
    """What an operator asks of a running service; its failures end the run.

    Attributes
    ----------
    origin : str
        Where devices and browsers find the service.
    """

    def __init__(self, port: int, token: str):
        self.origin = f"http://{HOST}:{port}"
        self._port = port
        self._token = token

    def add(self, collection: Collection, minimum: int) -> None:
        """Open a collection."""
        self._told("POST", "", {"document": collection.to_json(), "minimum": minimum})

    def add_series(self, series: Series, minimum: int, leeway_s: int) -> None:
        """Add a series."""
        new = {"document": series.to_json(), "minimum": minimum, "leeway_s": leeway_s}
        self._ask("POST", "/operator/series", new)

    def progress(self, digest: str) -> dict[str, Any]:
        """Return the numbers of a collection."""
        return self._told("GET", f"/{digest}")

    def close(self, digest: str) -> dict[str, Any]:
        """Close a collection and return its numbers."""
        return self._told("POST", f"/{digest}/close")

    def release(self, digest: str) -> dict[str, Any]:
        """Release a collection and return its numbers."""
        return self._told("POST", f"/{digest}/release")

    def save_map(self, collection: Collection, folder: Path) -> dict[str, Any]:
        """Have the map made, write its files into a new folder, and return its summary.

        By EM: that is what the table of ``plan`` foretells.
        """
        folder.mkdir(parents=True)
        (folder / "collection.json").write_text(collection.to_json(), encoding="utf-8")
        for name in MAP_FILES:
            path = f"/operator/collections/{collection.digest}/map/{name}?rule=em"
            while (answer := self._ask("GET", path))[0] == 202:
                time.sleep(LOOK_S)
            (folder / name).write_bytes(answer[1])
        return json.loads((folder / "summary.json").read_text(encoding="utf-8"))

    def _told(self, method: str, path: str, content: object = None) -> Any:
        return json.loads(self._ask(method, f"/operator/collections{path}", content)[1])

    def _ask(self, method: str, path: str, content: object = None) -> tuple[int, bytes]:
        body = None if content is None else json.dumps(content)
        with closing(http.client.HTTPConnection(HOST, self._port, timeout=120)) as connection:
            connection.request(method, path, body, {"Authorization": f"Bearer {self._token}"})
            response = connection.getresponse()
            answer = response.read()
        if response.status not in (200, 201, 202):
            told = answer.decode("utf-8", "replace")
            raise click.ClickException(f"{method} {path} was answered {response.status}: {told}")
        return response.status, answer


@contextmanager
def serving(folder: Path) -> Iterator[Operator]:
    """Make a store in a folder and serve it, without a limit on what one address may send."""
    store = folder / "store.db"
    _run("store", "new", store)
    token = _run("store", "token", store, "operator").strip()
    port = _free_port()
    log = folder / "service.log"
    command = [*LDPSPATIAL, "serve", str(store), "--port", str(port), "--rate", "0"]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stream)
    try:
        _wait_for(port, process, log)
        yield Operator(port, token)
    finally:
        process.terminate()
        process.wait()


def _run(*arguments: object) -> str:
    command = [*LDPSPATIAL, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise click.ClickException(f"the service did not start: {log.read_text(errors='replace')}")
