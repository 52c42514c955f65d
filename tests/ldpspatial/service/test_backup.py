"""Back-ups that are made under load, and what counts after they were restored."""

import asyncio
import sqlite3
import stat
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from client_sdk import Report
from ldpspatial.service.backup import back_up
from ldpspatial.service.closing import close_collection, release
from ldpspatial.service.database import Statement
from ldpspatial.service.store import Held, open_store
from ldpspatial.service.tokens import make_token
from tests.support.command_line import refusal, succeed
from tests.support.disks import memory_disk
from tests.support.postgres import PostgresServer
from tests.support.senders import Sender, found, new_store
from tests.support.service import COLLECTION, lines, report, serving

BACKUPS = 5


def ids_of(location: str) -> set[str]:
    """Close the collection; return the ids that count."""
    counted, ids = asyncio.run(found(location))
    assert counted.n == len(ids)
    return {name.hex() for name in ids}


async def _held(location: str) -> Held:
    store = await open_store(location)
    held = await store.held(COLLECTION.digest)
    await store.close()
    return held


def test_back_ups_under_load_hold_what_was_acknowledged_and_in_no_order(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(new_store(str(path)))
    copies: list[tuple[Path, set[str]]] = []
    with serving(path) as server:
        sender = Sender(server, 1)
        sender.start()
        while not sender.acknowledged:
            time.sleep(0.01)
        for k in range(BACKUPS):
            time.sleep(0.2)
            before = set(sender.acknowledged)
            copy = tmp_path / f"copy{k}.db"
            succeed("store", "backup", path, copy)
            copies.append((copy, before))
        sender.stopping.set()
        sender.join(60)
    for copy, before in copies:
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        with closing(sqlite3.connect(copy)) as opened:  # all were gathered: no order is left
            assert opened.execute("SELECT count(*) FROM arrivals").fetchone() == (0,)
        assert before <= ids_of(str(copy)) <= set(sender.sent)
    assert len(copies[0][1]) > 0
    assert len(list(tmp_path.glob(".*"))) == 0  # nothing unfinished


def sent_again(location: str, held: set[str], batch: list[Report], more: list[Report]) -> None:
    """Send to a restored store: again what it holds, and what came after the back-up."""
    with serving(location) as server:
        assert server.post(lines(batch))[0] == 204
        assert server.post(lines(more))[0] == 204
    assert ids_of(location) == held | {each.id for each in more}


def test_a_restored_store_counts_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    copy = tmp_path / "copy"
    restored = tmp_path / "restored.db"
    asyncio.run(new_store(str(path)))
    batch = [report() for _ in range(300)]
    more = [report() for _ in range(100)]
    with serving(path) as server:
        assert server.post(lines(batch))[0] == 204
        succeed("store", "backup", path, copy)
        assert server.post(lines(more))[0] == 204
    succeed("store", "backup", copy, restored)
    sent_again(str(restored), {each.id for each in batch}, batch, more)


def test_a_copy_of_what_was_released_holds_its_counts_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(new_store(str(path)))
    batch = [report() for _ in range(300)]
    with serving(path) as server:
        assert server.post(lines(batch))[0] == 204

    async def released() -> None:
        store = await open_store(path)
        await close_collection(store, COLLECTION.digest)
        await release(store, COLLECTION.digest)
        token = await make_token(store, "laptop")
        assert token
        await store.close()

    early = tmp_path / "early"
    succeed("store", "backup", path, early)
    asyncio.run(released())
    late = tmp_path / "late"
    succeed("store", "backup", path, late)
    assert asyncio.run(_held(str(late))).state == "released"
    content = late.read_bytes()
    assert not any(bytes.fromhex(each.id) in content for each in batch)
    assert succeed("store", "token", path).output == "laptop\n"
    assert succeed("store", "token", late).output == ""  # a revoked one does not come back
    # A back-up outlives a release, as docs/operate.md warns.
    assert asyncio.run(_held(str(early))).state == "open"


def test_a_back_up_holds_no_report_of_a_release_that_was_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    copy = tmp_path / "copy"
    asyncio.run(new_store(str(path)))
    batch = [report() for _ in range(300)]
    with serving(path) as server:
        assert server.post(lines(batch))[0] == 204

    async def release_in_part_and_copy() -> None:
        store = await open_store(path)
        await close_collection(store, COLLECTION.digest)
        sql = "UPDATE collections SET state = 'released', hash_key = NULL"
        await store.database.run([Statement(sql)])
        await back_up(store, copy)
        await store.close()

    asyncio.run(release_in_part_and_copy())
    content = copy.read_bytes()
    assert not any(bytes.fromhex(each.id) in content for each in batch)


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_a_back_up_overwrites_nothing(tmp_path: Path, end: str) -> None:
    path = tmp_path / "store.db"
    asyncio.run(new_store(str(path)))
    there = tmp_path / f"copy{end}"
    there.write_bytes(b"precious")
    told = refusal("store", "backup", path, tmp_path / "copy")
    assert told == f"FILE must be a new file, but {there} is there"
    assert there.read_bytes() == b"precious"
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["store.db", there.name])


def test_a_back_up_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(new_store(str(path)))
    batch = [report() for _ in range(5000)]
    with serving(path) as server:
        assert server.post(lines(batch))[0] == 204
    nowhere = tmp_path / "no" / "copy"
    told = refusal("store", "backup", path, nowhere)
    assert told == f"FILE must lie in a folder that exists, got {str(nowhere)!r}"
    with memory_disk(tmp_path / "disk", "128k") as disk:
        assert "make room" in refusal("store", "backup", path, disk.folder / "copy")
        assert list(disk.folder.iterdir()) == []
    content = path.read_bytes()
    name = bytes.fromhex(batch[7].id)
    path.write_bytes(content.replace(name, bytes(16)))
    assert "is damaged" in refusal("store", "backup", path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert list(tmp_path.glob(".*")) == []


def test_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(new_store(str(path)))
    with serving(path) as server:
        assert server.post(lines([report()]))[0] == 204
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)


def test_a_postgresql_database_is_dumped_and_restored(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    location = postgres.new_database()
    restored = postgres.new_database()
    dump = tmp_path / "dump"
    asyncio.run(new_store(location))
    batch = [report() for _ in range(300)]
    more = [report() for _ in range(100)]
    assert "pg_dump" in refusal("store", "backup", location, dump)
    with serving(location) as server:
        assert server.post(lines(batch))[0] == 204
        command = [postgres.program("pg_dump"), "--format=custom", f"--file={dump}", location]
        subprocess.run(command, check=True)
        assert server.post(lines(more))[0] == 204
    command = [postgres.program("pg_restore"), "--exit-on-error", "--dbname", restored, dump]
    subprocess.run(command, check=True)
    sent_again(restored, {each.id for each in batch}, batch, more)
