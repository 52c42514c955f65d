"""Disks that are full, read-only or damaged: what is acknowledged is stored, or nothing is."""

import asyncio
import os
import random
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from client_sdk import Report
from ldpspatial.collecting.records import OutputDomain, Records, records_of
from ldpspatial.errors import InputError, LdpSpatialError
from ldpspatial.service import sqlite
from ldpspatial.service.closing import close_collection, counted, stored_reports
from ldpspatial.service.database import (
    ChangedStoreError,
    DamagedStoreError,
    Statement,
    StoreError,
)
from ldpspatial.service.failure_log import FailureLog
from ldpspatial.service.store import Store, make_store, open_store
from ldpspatial.service.tokens import make_token
from ldpspatial.service.upkeep import gather, join, merge
from tests.support.command_line import refusal
from tests.support.disks import file_disk, memory_disk
from tests.support.postgres import PostgresServer, missing
from tests.support.senders import found, new_store
from tests.support.service import CELLS, COLLECTION, Server, lines, report, serving

DOMAIN = OutputDomain(COLLECTION)
BATCH = 200
OVERWRITTEN = 75  # stores of which something was overwritten


def some(n: int, seed: int) -> Records:
    rng = np.random.default_rng(seed)
    cells = np.array(CELLS)[rng.integers(len(CELLS), size=n)]
    return records_of(rng.bytes(16 * n), DOMAIN.places(cells[:, 0], cells[:, 1]))


def send(server: Server, acknowledged: set[str]) -> bool:
    """Send a batch; note what is acknowledged; tell whether it was."""
    batch: list[Report] = [report() for _ in range(BATCH)]
    status, headers, _ = server.post(lines(batch))
    if status == 204:
        acknowledged.update(each.id for each in batch)
        return True
    assert (status, headers["retry-after"]) == (503, "30")
    return False


def send_until(server: Server, acknowledged: set[str], is_stored: bool) -> None:
    """Send batches until one is stored, or one is not."""
    for _ in range(1000):
        if send(server, acknowledged) == is_stored:
            return
    raise AssertionError("nothing changed")


def check(location: str, acknowledged: set[str]) -> None:
    """Compare what counts with what was acknowledged: no more, no less."""
    counted, ids = asyncio.run(found(location))
    assert {name.hex() for name in ids} == acknowledged
    assert counted.n == len(acknowledged) > BATCH


# Full


def test_a_full_disk_acknowledges_nothing_and_room_ends_it_without_a_restart(
    tmp_path: Path,
) -> None:
    acknowledged: set[str] = set()
    with memory_disk(tmp_path / "disk", "2m") as disk:
        path = disk.folder / "store.db"
        asyncio.run(new_store(str(path)))
        with serving(path) as server:
            for _ in range(3):
                send_until(server, acknowledged, is_stored=True)
                disk.fill()
                send_until(server, acknowledged, is_stored=False)
                assert server.request("GET", f"/collections/{COLLECTION.digest}")[0] == 200
                disk.empty()
            send_until(server, acknowledged, is_stored=True)
        check(str(path), acknowledged)


def test_a_server_stops_on_a_full_disk_and_loses_nothing(tmp_path: Path) -> None:
    acknowledged: set[str] = set()
    with memory_disk(tmp_path / "disk", "2m") as disk:
        path = disk.folder / "store.db"
        asyncio.run(new_store(str(path)))
        with serving(path) as server:
            send_until(server, acknowledged, is_stored=True)
            send_until(server, acknowledged, is_stored=True)
            disk.fill()
            server.stop()
        told = refusal("store", "close", path, COLLECTION.digest)
        assert str(path) in told
        assert "room" in told
        disk.empty()
        check(str(path), acknowledged)


def test_a_service_does_not_start_on_a_full_disk(tmp_path: Path) -> None:
    with memory_disk(tmp_path / "disk", "2m") as disk:
        path = disk.folder / "store.db"
        asyncio.run(new_store(str(path)))
        disk.fill()
        told = refusal("serve", path)
        assert str(path) in told
        assert "room" in told


def test_a_file_that_may_not_grow_acknowledges_nothing_until_it_may(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(new_store(str(path)))
    acknowledged: set[str] = set()
    with serving(path) as server:
        send_until(server, acknowledged, is_stored=True)
        pid = server._process.pid
        assert pid is not None
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 17, -1))
        send_until(server, acknowledged, is_stored=False)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        send_until(server, acknowledged, is_stored=True)
    check(str(path), acknowledged)


def test_a_full_tablespace_acknowledges_nothing_and_room_ends_it() -> None:
    if why := missing():
        pytest.skip(why)
    acknowledged: set[str] = set()
    # The user of PostgreSQL may not enter the folders of the tests.
    with TemporaryDirectory() as place, memory_disk(Path(place) / "disk", "24m") as disk:
        Path(place).chmod(0o755)
        # A server of its own: one that was killed does not come back without its tablespaces.
        postgres = PostgresServer()
        try:
            postgres.start()
            location = postgres.new_database(disk.folder)
            asyncio.run(new_store(location))
            with serving(location) as server:
                send_until(server, acknowledged, is_stored=True)
                disk.fill()
                send_until(server, acknowledged, is_stored=False)
                disk.empty()
                send_until(server, acknowledged, is_stored=True)
            check(location, acknowledged)
        finally:
            postgres.remove()


# Read-only


def read_only_refusal(path: Path, *arguments: object) -> None:
    told = refusal(*arguments)
    assert str(path) in told
    assert "writ" in told


def test_a_store_on_a_read_only_file_system_is_neither_served_nor_closed(tmp_path: Path) -> None:
    with memory_disk(tmp_path / "disk", "2m") as disk:
        path = disk.folder / "store.db"
        asyncio.run(new_store(str(path)))
        disk.remount("ro")
        read_only_refusal(path, "serve", path)
        read_only_refusal(path, "store", "close", path, COLLECTION.digest)
        read_only_refusal(disk.folder / "new.db", "store", "new", disk.folder / "new.db")
        disk.remount("rw")
        assert asyncio.run(found(str(path)))[0].n == 0


def test_a_disk_that_goes_read_only_acknowledges_nothing_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    """The kernel mounts a disk read-only when it fails: here it is told that it did."""
    image = tmp_path / "image"
    folder = tmp_path / "disk"
    acknowledged: set[str] = set()
    with file_disk(folder, image) as disk:
        path = disk.folder / "store.db"
        asyncio.run(new_store(str(path)))
        with serving(path) as server:
            send_until(server, acknowledged, is_stored=True)
            send_until(server, acknowledged, is_stored=True)
            disk.remount("abort")
            send_until(server, acknowledged, is_stored=False)
            assert not send(server, acknowledged)
    with file_disk(folder, image):  # after a check of the disk
        check(str(path), acknowledged)


def test_a_database_that_takes_no_writes_acknowledges_nothing(postgres: PostgresServer) -> None:
    location = postgres.new_database()
    asyncio.run(new_store(location))
    acknowledged: set[str] = set()
    with serving(location) as server:
        send_until(server, acknowledged, is_stored=True)
        postgres.set_for_all(location, "default_transaction_read_only", "on")
        send_until(server, acknowledged, is_stored=False)
        assert "takes writes" in refusal("store", "close", location, COLLECTION.digest)
        postgres.set_for_all(location, "default_transaction_read_only", "off")
        send_until(server, acknowledged, is_stored=True)
    check(location, acknowledged)


# Damaged


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage is what is tested here, and not power cuts."""
    quick = tuple(setting.replace("= FULL", "= OFF") for setting in sqlite.SETTINGS)
    monkeypatch.setattr(sqlite, "SETTINGS", quick)


def overwritten(whole: bytes, chance: random.Random) -> bytes:
    """Return a file of which something was zeroed, replaced, or had bits turned."""
    size = chance.choice([1, 1, 4, 16, 100, 1000, 16_384])
    at = chance.randrange(len(whole) - size)
    old = whole[at : at + size]
    turned = bytes(byte ^ (1 << chance.randrange(8)) for byte in old)
    new = chance.choice([bytes(size), chance.randbytes(size), turned])
    return whole[:at] + new + whole[at + size :]


async def used(path: Path) -> tuple[int, int, int]:
    """Add reports to a store, close it, and read all: reports that count, are copies, are there."""
    store = await open_store(path)
    try:
        held = await store.held(COLLECTION.digest)
        await store.append({held.number: some(50, 99)})
        result = await close_collection(store, COLLECTION.digest)
        there = 0
        async for records in stored_reports(store, COLLECTION.digest):
            there += len(records)
        return result.n, result.repeated, there
    finally:
        await store.close()


@pytest.mark.usefixtures("unsynced")
def test_a_file_overwritten_anywhere_counts_right_or_is_refused_with_advice(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"

    async def fill() -> None:
        store = await make_store(path)
        number = (await store.add(COLLECTION, 1)).number
        for k in range(40):
            await store.append({number: some(50, k)})
            if k in (10, 25):
                await gather(store.database)
        await store.append({number: some(50, 7)})
        await store.close()

    asyncio.run(fill())
    whole = path.read_bytes()
    chance = random.Random(8)  # noqa: S311
    refused = 0
    for _ in range(OVERWRITTEN):
        path.write_bytes(overwritten(whole, chance))
        try:
            assert asyncio.run(used(path)) == (2050, 50, 2050)
        except LdpSpatialError as error:
            refused += 1
            assert str(path) in str(error)  # noqa: PT017
            assert "back-up" in str(error) or isinstance(error, InputError)  # noqa: PT017
        for left in tmp_path.glob("store.db-*"):
            left.unlink()
    assert refused > OVERWRITTEN // 10  # what was overwritten was not unused room alone
    path.write_bytes(whole)
    assert asyncio.run(used(path)) == (2050, 50, 2050)


class Stuck:
    """A database whose rows can be found, and never deleted: an index that does not fit them."""

    def __init__(self, store: Store):
        self.name = store.database.name
        self.read = store.database.read

    async def run(self, statements: list[Statement]) -> list[int]:
        raise ChangedStoreError("another process changed the store meanwhile")


@pytest.mark.parametrize("step", [gather, merge, join])
def test_rows_that_are_found_and_cannot_be_deleted_are_damage(
    location: str, step: Callable[[Any], Awaitable[object]]
) -> None:
    async def whole() -> None:
        store = await make_store(location)
        try:
            number = (await store.add(COLLECTION, 1)).number
            for k in range(10):
                await store.append({number: some(500, k)})
                if step is not gather:
                    await gather(store.database)
            with pytest.raises(DamagedStoreError, match="restore a back-up"):
                await step(Stuck(store))
            assert await step(store.database)
        finally:
            await store.close()

    asyncio.run(whole())


CHANGES = (
    "UPDATE chunks SET records = {turned} WHERE seq = (SELECT max(seq) FROM chunks)",
    "DELETE FROM chunks WHERE seq = (SELECT max(seq) FROM chunks)",
    "UPDATE chunks SET part = (part + 1) % 256 WHERE seq = (SELECT max(seq) FROM chunks)",
    "UPDATE collections SET received = received + 1",
    "UPDATE collections SET repeated = repeated + 1",
    "UPDATE collections SET document = replace(document, 'noon', 'moon')",
    "UPDATE collections SET state = 'opened'",
    "UPDATE collections SET hash_key = {other_key}",
    "UPDATE collections SET hash_key = NULL",
)
COUNTED = (
    "UPDATE counts SET numbers = places",
    "UPDATE counts SET places = {other_key}",
    "UPDATE counts SET repeated = repeated + 1",
    "UPDATE counts SET conflicting = conflicting + 1",
)


def changed(location: str, change: str) -> str:
    """Return a statement in the words of a database."""
    is_sqlite = not location.startswith("postgres")
    key = "zeroblob(32)" if is_sqlite else "decode(repeat('00', 32), 'hex')"
    turned = "zeroblob(length(records))" if is_sqlite else "set_byte(records, 9, 77)"
    return change.format(other_key=key, turned=turned)


def on(location: str, act: Callable[[Store], Awaitable[None]]) -> None:
    async def whole() -> None:
        store = await make_store(location)
        try:
            number = (await store.add(COLLECTION, 1)).number
            await store.append({number: some(500, 1)})
            await store.append({number: some(500, 1)})
            await gather(store.database)
            await act(store)
        finally:
            await store.close()

    asyncio.run(whole())


@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_were_changed_are_never_counted(location: str, change: str) -> None:
    async def act(store: Store) -> None:
        await store.database.run([Statement(changed(location, change))])
        with pytest.raises(DamagedStoreError, match="restore a back-up"):
            await close_collection(store, COLLECTION.digest)
        assert await store.database.read("SELECT * FROM counts") == []

    on(location, act)


@pytest.mark.parametrize("change", COUNTED)
def test_counts_that_were_changed_are_never_told(location: str, change: str) -> None:
    async def act(store: Store) -> None:
        assert (await close_collection(store, COLLECTION.digest)).n == 500
        await store.database.run([Statement(changed(location, change))])
        with pytest.raises(DamagedStoreError, match="restore a back-up"):
            await counted(store, COLLECTION.digest)

    on(location, act)


def test_a_server_that_finds_damage_takes_no_more_reports(tmp_path: Path) -> None:
    """Reports that it took now would be lost with the store; devices keep them."""
    path = tmp_path / "store.db"
    acknowledged: set[str] = set()

    async def new() -> str:
        store = await make_store(path)
        await store.add(COLLECTION, 1)
        token = await make_token(store, "laptop")
        await store.close()
        return token

    token = asyncio.run(new())
    with serving(path) as server:
        for _ in range(10):
            send_until(server, acknowledged, is_stored=True)
        server.stop()
        server.start()
        file = os.open(path, os.O_WRONLY)
        size = os.fstat(file).st_size
        os.pwrite(file, random.Random(5).randbytes(size - 65_536), 65_536)  # noqa: S311
        os.close(file)
        at = f"/operator/collections/{COLLECTION.digest}/close"
        status, headers, _ = server.request("POST", at, Authorization=f"Bearer {token}")
        assert (status, headers["retry-after"]) == (503, "30")
        for _ in range(20):
            assert not send(server, acknowledged)


def test_a_failure_is_told_once_a_minute_and_again_after_it_was_mended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    log = FailureLog(lambda: now[0])
    for _ in range(100):
        log.tell("full")
    log.tell("damaged")
    log.recovered()
    log.tell("damaged")
    now[0] = 59.0
    log.tell("damaged")
    now[0] = 61.0
    log.tell("damaged")
    assert caplog.messages == [
        "full",
        "full (and 99 times since)",
        "damaged",
        "the store takes reports again",
        "damaged",
        "damaged (and 1 times since)",
        "damaged",
    ]


def test_a_service_says_in_one_line_why_it_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(new_store(str(path)))
    content = bytearray(path.read_bytes())
    content[100:16_384] = bytes(16_284)  # the page that lists the tables
    path.write_bytes(content)
    command = [sys.executable, "-m", "ldpspatial", "serve", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    (line,) = done.stderr.strip().splitlines()
    assert done.returncode == 1
    assert line.startswith(f"Error: the store at {path} is damaged")


def test_a_failure_of_the_store_is_the_failure_of_one_request(tmp_path: Path) -> None:
    """Whatever a disk answers: the error says what to do, and the next transaction is tried."""

    async def act(store: Store) -> None:
        held = await store.held(COLLECTION.digest)
        arrived: dict[int, Any] = {held.number: some(10, 3)}
        with pytest.raises(StoreError, match="try again"):
            await store.database.run([Statement("INSERT INTO store VALUES (1, 2)")])
        assert await store.append(arrived) == set()

    on(str(tmp_path / "store.db"), act)
