"""What lies on the disk: nothing that tells whose a report is, or what came with it, or when."""

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import numpy as np

from ldpspatial.service.limits import Limits
from ldpspatial.service.store import make_store
from tests.support.hasty_server import MINUTE_S, HastyServer
from tests.support.postgres import PostgresServer
from tests.support.service import COLLECTION, Server, lines, report, running, serving

AGENT = "planted-agent-7f3a"
FORWARDED = "203.0.113.77"
BATCHES, SIZE = 60, 20


async def _new(location: str | Path) -> None:
    store = await make_store(location)
    await store.add(COLLECTION, 1)
    await store.close()


def send(server: Server, chance: random.Random, pause_s: float = 0.0) -> list[list[bytes]]:
    """Send batches with planted headers; return the ids of each."""
    batches = []
    for _ in range(BATCHES):
        batch = [report() for _ in range(SIZE)]
        chance.shuffle(batch)
        status, headers, _ = server.post(
            lines(batch), User_Agent=AGENT, X_Forwarded_For=FORWARDED, Cookie=f"who={AGENT}",
            Referer=f"https://{AGENT}.example", Date="Tue, 03 Mar 2026 05:06:07 GMT",
        )  # fmt: skip
        assert status == 204
        assert "set-cookie" not in headers
        batches.append([bytes.fromhex(each.id) for each in batch])
        time.sleep(pause_s)
    return batches


def places(held: bytes, names: list[bytes]) -> np.ndarray:
    found = np.array([held.find(name) for name in names])
    assert (found >= 0).all()
    return found


def tells_no_order(held: bytes, batches: list[list[bytes]]) -> bool:
    """Compare neighbours in a batch with the store's order, over all batches; then all reports.

    If the order tells nothing, the ranks of a batch are a random choice: the sum of the gaps
    between consecutive ranks of a batch has a known mean, and a z-score below -5 has a probability
    under 3e-7. Unsorted, every gap would be 1. And rank and order of arrival have a correlation
    of 0, with a deviation of 1 over the root of their number.
    """
    flat = [name for batch in batches for name in batch]
    rank = places(held, flat).argsort().argsort()
    gaps = np.abs(np.diff(rank.reshape(BATCHES, SIZE), axis=1)).ravel()
    n = BATCHES * SIZE
    rng = np.random.default_rng(1)
    shuffled = [
        np.abs(np.diff(rng.permutation(n).reshape(BATCHES, SIZE), axis=1)).sum()
        for _ in range(2000)
    ]
    z = (gaps.sum() - np.mean(shuffled)) / np.std(shuffled)
    in_order = np.abs(np.diff(np.arange(n).reshape(BATCHES, SIZE), axis=1)).sum()
    assert (in_order - np.mean(shuffled)) / np.std(shuffled) < -50  # what this would catch
    return bool(z > -5 and abs(np.corrcoef(rank, np.arange(n))[0, 1]) * np.sqrt(n) < 5)


def content(folder: Path) -> dict[str, bytes]:
    """Return what lies in the files of a store; a server has them open, and not this process."""
    return {file.name: file.read_bytes() for file in folder.glob("store.db*")}


def without_ids(held: bytes, batches: list[list[bytes]]) -> bytes:
    """Return a file less the ids, whose random bytes spell any four in one run of 200,000."""
    for batch in batches:
        for name in batch:
            held = held.replace(name, b"")
    return held


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what a server does in its next minutes."""
    for _ in range(600):
        if is_so():
            return
        time.sleep(MINUTE_S / 3)
    raise AssertionError("it does not come about")


def each_is_there_once(folder: Path, batches: list[list[bytes]]) -> bool:
    """Tell whether the log is empty, and no report lies anywhere twice."""
    files = content(folder)
    everything = b"".join(files.values())
    is_once = all(everything.count(name) == 1 for batch in batches for name in batch)
    return is_once and not files.get("store.db-wal")


def is_in_order(folder: Path, batches: list[list[bytes]]) -> bool:
    """Tell whether no report is there twice, and their order tells nothing."""
    return each_is_there_once(folder, batches) and tells_no_order(
        content(folder)["store.db"], batches
    )


def test_no_byte_of_the_store_tells_sender_time_or_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(_new(path))
    with serving(path) as server:
        batches = send(server, random.Random(4))  # noqa: S311
        server.stop()
    files = content(tmp_path)
    told = b"".join(without_ids(held, batches) for held in files.values())
    for planted in (AGENT, FORWARDED, "127.0.0.1", "2026", "Mozilla"):
        assert planted.encode() not in told, planted
    assert bytes([203, 0, 113, 77]) not in told
    assert each_is_there_once(tmp_path, batches)  # no second copy, in no order
    assert tells_no_order(files["store.db"], batches)


def test_minutes_after_the_last_report_a_running_store_tells_no_order(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(_new(path))
    with running(HastyServer(path, Limits(requests_a_minute=0))) as server:
        batches = send(server, random.Random(5), pause_s=MINUTE_S / 10)  # noqa: S311
        wait_until(lambda: is_in_order(tmp_path, batches))


def test_minutes_after_a_kill_and_a_start_a_store_tells_no_order(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(_new(path))
    server = HastyServer(path, Limits(requests_a_minute=0))
    with running(server):
        batches = send(server, random.Random(6))  # noqa: S311
        server.kill()
        server.start()
        wait_until(lambda: is_in_order(tmp_path, batches))


def test_postgresql_keeps_no_row_as_it_arrived(postgres: PostgresServer) -> None:
    """But in its log, and in rows of gathered reports that a later one has taken the place of."""
    location = postgres.new_database()
    asyncio.run(_new(location))
    where = (
        "SELECT pg_relation_filepath(oid), pg_relation_filepath(reltoastrelid) "
        "FROM pg_class WHERE relname = 'arrivals'"
    )

    async def arrivals() -> bytes:
        connection = await asyncpg.connect(location)
        await connection.execute("CHECKPOINT")
        names = await connection.fetchrow(where)
        held = b"".join((postgres.folder / "data" / name).read_bytes() for name in names)
        await connection.close()
        return held

    with running(HastyServer(location, Limits(requests_a_minute=0))) as server:
        batches = send(server, random.Random(7))  # noqa: S311
        flat = [name for batch in batches for name in batch]

        def none_is_left() -> bool:
            held = asyncio.run(arrivals())
            return not any(name in held for name in flat)

        wait_until(none_is_left)
