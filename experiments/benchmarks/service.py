"""Durable reports a second through HTTP, beside the same server on a store with an index on ids."""

import asyncio
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from client_sdk import Collection, Grid, Report
from experiments.benchmarks.timing import Table
from ldpspatial.collecting.records import Records
from ldpspatial.service.closing import close_collection
from ldpspatial.service.database import Statement
from ldpspatial.service.sqlite import SqliteDatabase
from ldpspatial.service.store import Store, make_store, open_store
from tests.support.postgres import PostgresServer, missing

COLLECTION = Collection.create("bench", Grid.from_center(52.52, 13.405, 20_000, 15), 3.5)
PORT = 8971
ROUNDS = 3
SECONDS = 4.0
# Reports in a request, and connections at a time: as many as keep the server busy.
LOADS = ((1, 64), (100, 16), (1000, 8))
_OPTIONS = ["--port", str(PORT), "--rate", "0", "--max-bytes", str(1 << 22)]
OURS = f"import sys; from ldpspatial.cli import main; main(['serve', sys.argv[1], *{_OPTIONS}])"
ALTERNATIVE = (
    "from experiments.benchmarks.service import open_indexed; from ldpspatial.service import app; "
    f"app.open_store = open_indexed; {OURS}"
)
HEADERS = b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"


class Indexed(Store):
    """The alternative: each id in a table with an index, and one counter a cell, at once."""

    async def append(self, arrived: Mapping[int, Records]) -> set[int]:
        """Store reports whose ids are new."""
        statements = []
        for number, records in arrived.items():
            rows = [(number, row["id"].tobytes(), int(row["place"])) for row in records]
            sql = "VALUES ($1, $2, $3)"
            if not isinstance(self.database, SqliteDatabase):  # quicker there than row by row
                sql = "SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[])"
                rows = [tuple(map(list, zip(*rows, strict=True)))]
            insert = f"INSERT INTO ids (collection, id, place) {sql} ON CONFLICT DO NOTHING"
            statements.append(Statement(insert, rows))
        await self.database.run(statements)
        return set()


async def open_indexed(location: Any) -> Store:
    """Open a store with the index; takes the place of ``open_store`` in the alternative."""
    database = (await open_store(location)).database
    end = "WITHOUT ROWID" if isinstance(database, SqliteDatabase) else ""
    types = "collection {whole}, id {bytes}, place {whole}".format(**database.types)
    sql = f"CREATE TABLE IF NOT EXISTS ids ({types}, PRIMARY KEY (collection, id)) {end}"
    await database.run([Statement(sql)])
    return Indexed(database)


def service() -> Table:
    """Send reports to both stores in turn; return reports a second, and how long requests took."""
    rows = _rows("SQLite", _new_file)
    why = missing()
    if why:
        rows.append([why, "", "", ""])
    else:
        server = PostgresServer()
        try:
            server.start()
            rows += _rows("PostgreSQL", lambda: _new_database(server))
        finally:
            server.remove()
    rows.append(_long_run())
    return ["what", "ldpspatial", "an index on ids", "ratio"], rows


def _rows(name: str, place: Callable[[], AbstractContextManager[str]]) -> list[list[object]]:
    """Measure both stores in new databases of one kind; return a row for each load."""
    taken: dict[tuple[int, bool], list[tuple[float, float]]] = {}
    for _ in range(ROUNDS):
        for batch, connections in LOADS:
            for is_indexed in (False, True):
                with place() as location:
                    found = _measured(location, batch, connections, is_indexed)
                taken.setdefault((batch, is_indexed), []).append(found)
    rows: list[list[object]] = []
    for batch, _ in LOADS:
        ours, theirs = (
            [median(values) for values in zip(*taken[batch, each], strict=True)]
            for each in (False, True)
        )
        rows.append([
            f"{name}: reports a second, {batch} a request",
            f"{ours[0]:,.0f}, 99 % below {ours[1]:.0f} ms",
            f"{theirs[0]:,.0f}, 99 % below {theirs[1]:.0f} ms", f"{ours[0] / theirs[0]:.1f}",
        ])  # fmt: skip
    return rows


@contextmanager
def _new_file() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder, "store.db"))


@contextmanager
def _new_database(server: PostgresServer) -> Iterator[str]:
    yield server.new_database()


def _measured(location: str, batch: int, connections: int, is_indexed: bool) -> tuple[float, float]:
    """Return reports a second and the 99th percentile of a request in ms."""
    asyncio.run(_made(location))
    with _Server(location, is_indexed):
        reports, latencies = asyncio.run(_load(batch, connections, SECONDS))
    return reports / SECONDS, float(np.percentile(latencies, 99)) * 1e3


def _long_run(reports: int = 10_000_000) -> list[object]:
    """Store many reports; tell memory of the server, bytes a report, and how long closing takes."""
    folder = Path(tempfile.mkdtemp())
    try:
        path = str(folder / "store.db")
        asyncio.run(_made(path))
        with _Server(path, is_indexed=False) as server:
            sent = 0
            while sent < reports:
                sent += asyncio.run(_load(1000, 8, 10.0))[0]
            memory = server.peak_mb()
        size = sum(file.stat().st_size for file in folder.iterdir())
        began = time.perf_counter()
        asyncio.run(_closed(path))
        seconds = time.perf_counter() - began
    finally:
        shutil.rmtree(folder)
    told = f"{memory:.0f} MB peak, {size / sent:.1f} bytes a report, closed in {seconds:.1f} s"
    return [f"{sent / 1e6:.0f} million reports kept", told, "", ""]


async def _made(location: str) -> None:
    store = await make_store(location)
    await store.add(COLLECTION, 1)
    await store.close()


async def _closed(location: str) -> None:
    store = await open_store(location)
    await close_collection(store, COLLECTION.digest)
    await store.close()


class _Server:
    """``ldpspatial serve`` in a process of its own, or the alternative to it."""

    def __init__(self, location: str, is_indexed: bool):
        code = ALTERNATIVE if is_indexed else OURS
        command = [sys.executable, "-c", code, location]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def __enter__(self) -> "_Server":
        asyncio.run(_answers())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def peak_mb(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024


async def _answers() -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", PORT)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return


async def _load(batch: int, connections: int, seconds: float) -> tuple[int, list[float]]:
    """Send new reports for some seconds; return how many, and the seconds of each request."""
    cells = COLLECTION.table.output_cells()
    rng = np.random.default_rng()
    models = [
        Report(COLLECTION.digest, "0" * 32, *cells[k]).to_body().encode() + b"\n"
        for k in rng.integers(len(cells), size=256)
    ]
    latencies: list[float] = []
    until = time.perf_counter() + seconds

    def new(k: int) -> bytes:
        return models[k % 256].replace(b"0" * 32, secrets.token_hex(16).encode(), 1)

    async def send(make: Callable[[int], bytes]) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        sent = 0
        while time.perf_counter() < until:
            body = b"".join(make(sent + k) for k in range(batch))
            began = time.perf_counter()
            writer.write(HEADERS + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            latencies.append(time.perf_counter() - began)
            if not head.startswith(b"HTTP/1.1 204 "):
                raise RuntimeError(f"the server refused: {head!r}")
            sent += batch
        writer.close()
        return sent

    found = await asyncio.gather(*(send(new) for _ in range(connections)))
    return sum(found), latencies
