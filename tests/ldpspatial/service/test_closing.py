"""Closing, release and drop that are interrupted, or meet another one: in both databases."""

import asyncio
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from ldpspatial.collecting.records import Records, hashes, parts
from ldpspatial.errors import InputError
from ldpspatial.service import closing as service_closing
from ldpspatial.service import group_commit, upkeep
from ldpspatial.service.closing import (
    close_collection,
    drop,
    release,
)
from ldpspatial.service.database import (
    Statement,
    StoreError,
)
from ldpspatial.service.store import Store, open_store
from tests.support.postgres import PostgresServer
from tests.support.service import COLLECTION, OTHER
from tests.support.stores import on, random_records


async def interrupt_closing(store: Store) -> None:
    """Leave a collection as a process does that is killed when it begins to close it."""
    sql = "UPDATE collections SET state = 'closed' WHERE digest = $1"
    await store.database.run([Statement(sql, [(COLLECTION.digest,)])])


async def left_of(store: Store, number: int) -> int:
    """Return how many rows of reports of a collection there are."""
    tables = ("arrivals", "chunks")
    counts = [f"SELECT count(*) FROM {table} WHERE collection = $1" for table in tables]  # noqa: S608
    return sum([(await store.database.read(sql, number))[0][0] for sql in counts])


def test_a_drop_after_an_interrupted_closing_leaves_nothing_and_locks_nothing(
    location: str,
) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        other = await store.add(OTHER, 1)
        await store.append({held.number: random_records(9), other.number: random_records(4)})
        await interrupt_closing(store)
        await drop(store, COLLECTION.digest)
        assert await left_of(store, held.number) == 0
        assert (await close_collection(store, OTHER.digest)).n == 4

    on(location, act, make=True)


@pytest.mark.parametrize("state", ["released", "dropped"])
def test_reports_that_were_left_of_a_collection_lock_no_other_one(
    location: str, state: str
) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        other = await store.add(OTHER, 1)
        await store.append({held.number: random_records(9), other.number: random_records(4)})
        sql = "UPDATE collections SET state = $1, hash_key = NULL WHERE number = $2"
        await store.database.run([Statement(sql, [(state, held.number)])])
        await upkeep.settle(store.database, 10**6)
        assert await left_of(store, held.number) == 0
        assert (await close_collection(store, OTHER.digest)).n == 4

    on(location, act, make=True)


@pytest.mark.parametrize("change", [release, drop])
def test_who_closes_while_another_releases_or_drops_finds_no_damage(
    location: str, monkeypatch: pytest.MonkeyPatch, change: Callable[..., Awaitable[object]]
) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: random_records(500)})
        other = await open_store(location)
        plain = service_closing._part
        waiting = [other]

        async def part(which: Store, number: int, place: int, key: bytes) -> tuple[Records, int]:
            if which is store and place == 100 and waiting:
                await change(waiting.pop(), COLLECTION.digest)
            return await plain(which, number, place, key)

        monkeypatch.setattr(service_closing, "_part", part)
        if change is release:
            assert (await close_collection(store, COLLECTION.digest)).n == 500
        else:
            with pytest.raises(InputError, match="must be open or closed, and is dropped"):
                await close_collection(store, COLLECTION.digest)
            assert await store.database.read("SELECT collection FROM counts") == []
        assert not waiting
        assert await left_of(store, held.number) == 0
        await other.close()

    on(location, act, make=True)


@pytest.mark.parametrize("change", [release, drop])
def test_a_deletion_that_failed_is_finished_when_it_is_asked_for_again(
    location: str, monkeypatch: pytest.MonkeyPatch, change: Callable[..., Awaitable[object]]
) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: random_records(40)})
        await close_collection(store, COLLECTION.digest)

        async def full(database: object) -> bool:
            raise StoreError("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(service_closing, "forget", full)
            with pytest.raises(StoreError, match="the disk is full"):
                await change(store, COLLECTION.digest)
        assert await left_of(store, held.number) > 0
        await change(store, COLLECTION.digest)
        assert await left_of(store, held.number) == 0
        with pytest.raises(InputError, match="must be closed to be"):
            await change(store, COLLECTION.digest)

    on(location, act, make=True)


def test_a_store_that_is_opened_deletes_what_a_release_left(location: str) -> None:
    async def release_in_part(store: Store) -> int:
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: random_records(40)})
        await close_collection(store, COLLECTION.digest)
        sql = "UPDATE collections SET state = 'released', hash_key = NULL"
        await store.database.run([Statement(sql)])
        return held.number

    number = on(location, release_in_part, make=True)
    assert on(location, lambda store: left_of(store, number)) == 0


def test_a_closed_collection_has_one_chunk_a_part(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large: two chunks of a part lie in the order in which their reports came."""
    monkeypatch.setattr(upkeep, "LARGEST_MERGED", 2)

    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        for _ in range(3):
            await store.append({held.number: random_records(2000)})
            await upkeep.gather(store.database)
        await close_collection(store, COLLECTION.digest)
        rows = await store.database.read("SELECT part FROM chunks")
        assert len(rows) == len(set(rows)) == 256

    on(location, act, make=True)


def test_a_chunk_is_joined_with_those_that_are_worth_it(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "SMALL", 1)

    async def sizes(store: Store) -> list[int]:
        sql = "SELECT number FROM chunks WHERE part = 0 ORDER BY number"
        return [number for (number,) in await store.database.read(sql)]

    async def act(store: Store) -> None:
        number = (await store.add(COLLECTION, 1)).number
        key = await upkeep.key_of(store.database, number)
        drawn = random_records(256 * 2000)
        of_part = drawn[parts(hashes(drawn["id"], key)) == 0]
        low = 0
        for size in (1000, 90, 20, 10):
            await store.append({number: of_part[low : low + size]})
            await upkeep.gather(store.database)
            low += size
        while await upkeep.join(store.database):
            pass
        assert await sizes(store) == [120, 1000]
        while await upkeep.join(store.database, upkeep.LARGEST_MERGED):
            pass
        assert await sizes(store) == [1120]
        assert (await close_collection(store, COLLECTION.digest)).n == 1120

    on(location, act, make=True)


def test_a_release_says_that_a_reader_keeps_what_was_deleted_and_upkeep_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "PATIENCE_S", 0.1)
    monkeypatch.setattr(group_commit, "LONGEST_UNGATHERED_S", 0.01)
    path = tmp_path / "store.db"
    records = random_records(500)
    names = [row.tobytes() for row in records["id"]]

    def held_bytes() -> bytes:
        # By another process: to close the file in this one would drop the locks of SQLite.
        files = sorted(tmp_path.glob("store.db*"))
        return subprocess.run(["cat", *files], check=True, stdout=subprocess.PIPE).stdout

    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: records})
        await close_collection(store, COLLECTION.digest)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM chunks").fetchall()
            await release(store, COLLECTION.digest)
            assert "until whoever is reading them has ended" in caplog.text
            assert any(name in held_bytes() for name in names)
        commits = group_commit.GroupCommit(store)
        commits.start()
        for _ in range(6000):  # a minute
            await asyncio.sleep(0.01)
            if not any(name in held_bytes() for name in names):
                break
        assert not any(name in held_bytes() for name in names)
        await commits.stop()

    on(str(path), act, make=True)


def test_postgresql_does_not_wait_for_who_reads_a_table(postgres: PostgresServer) -> None:
    location = postgres.new_database()

    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: random_records(500)})
        await close_collection(store, COLLECTION.digest)
        other = await open_store(location)
        async with other.database._connection() as reader, reader.transaction():  # type: ignore[attr-defined]
            await reader.fetch("SELECT * FROM chunks")
            assert not await store.database.tidy(everything=True)
        assert await store.database.tidy()
        size = "SELECT pg_table_size('chunks'), pg_table_size('arrivals')"
        chunks, arrivals = (await store.database.read(size))[0]
        assert arrivals <= 8192  # of the table of its large rows
        assert chunks < 500_000
        await other.close()

    on(location, act, make=True)


def test_copies_do_not_count_for_the_minimum(location: str) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 5)
        records = random_records(3)
        for _ in range(2):
            await store.append({held.number: records})
        await close_collection(store, COLLECTION.digest)
        with pytest.raises(InputError, match="at least 5 reports"):
            await release(store, COLLECTION.digest)

    on(location, act, make=True)


def test_a_release_leaves_no_key_by_which_reports_were_ordered(location: str) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: random_records(3)})
        await close_collection(store, COLLECTION.digest)
        await release(store, COLLECTION.digest)
        assert [
            tuple(row) for row in await store.database.read("SELECT hash_key FROM collections")
        ] == [(None,)]

    on(location, act, make=True)
