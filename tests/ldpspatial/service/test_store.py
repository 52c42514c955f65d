"""What a store keeps and counts, in SQLite and in PostgreSQL, against count_reports."""

import asyncio
import sqlite3
import subprocess
import traceback
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ldpspatial import count_reports
from ldpspatial.errors import InputError
from ldpspatial.service import closing as service_closing
from ldpspatial.service import upkeep
from ldpspatial.service.closing import (
    Counted,
    close_collection,
    counted,
    drop,
    finish_closing,
    release,
    released_counts,
    stored_reports,
)
from ldpspatial.service.counting import count_stored
from ldpspatial.service.database import (
    ChangedStoreError,
    DamagedStoreError,
    Statement,
)
from ldpspatial.service.exporting import write_parquet
from ldpspatial.service.progress import progress_of
from ldpspatial.service.store import Store, make_store, open_store
from ldpspatial.service.tables import opened
from tests.support.service import COLLECTION, OTHER
from tests.support.stores import fill, on, random_records


def test_a_store_counts_what_count_reports_counts(location: str, tmp_path: Path) -> None:
    stored = on(location, fill, make=True)
    parquet = tmp_path / "reports.parquet"

    async def act(store: Store) -> tuple[Counted, int]:
        found = await close_collection(store, COLLECTION.digest)
        again = await close_collection(store, COLLECTION.digest)
        np.testing.assert_array_equal(again.counts, found.counts)
        return found, await write_parquet(store, COLLECTION.digest, parquet)

    found, written = on(location, act)
    assert found.received == stored
    assert found.n + found.repeated + found.conflicting == stored
    assert found.conflicting > 500
    assert found.repeated > 300
    assert written == found.n + found.conflicting
    elsewhere = count_reports(parquet, COLLECTION, "drop")
    np.testing.assert_array_equal(elsewhere.counts, found.counts)
    assert sum(elsewhere.rejected.values()) == found.conflicting
    assert elsewhere.repeated == 0  # the store has left them out


def test_gathering_and_merging_change_no_count(location: str) -> None:
    async def count(store: Store) -> tuple[Counted, Counted]:
        await fill(store)
        other = (await store.add(OTHER, 1)).number
        first = (await store.held(COLLECTION.digest)).number
        rows = await store.database.read("SELECT records FROM chunks WHERE collection = $1", first)
        rows += await store.database.read("SELECT records FROM arrivals")
        for (content,) in rows:  # the same reports, in one heap
            copy = np.frombuffer(content[4:], random_records(1).dtype)
            await store.append({other: copy})
        await upkeep.settle(store.database, 10**9)
        parts = await store.database.read(
            "SELECT count(*) FROM chunks GROUP BY collection, part HAVING count(*) > 1"
        )
        assert parts == []
        return (
            await close_collection(store, COLLECTION.digest),
            await close_collection(store, OTHER.digest),
        )

    one, two = on(location, count, make=True)
    np.testing.assert_array_equal(one.counts, two.counts)
    assert one.conflicting == two.conflicting


def test_a_collection_goes_from_open_to_closed_to_released_and_never_back(location: str) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 3)
        with pytest.raises(InputError, match="collection must be new, but the store has"):
            await store.add(COLLECTION, 3)
        with pytest.raises(InputError, match="must be closed to be released, and is open"):
            await release(store, COLLECTION.digest)
        with pytest.raises(InputError, match="must be closed before its counts are final"):
            await counted(store, COLLECTION.digest)
        assert await store.append({held.number: random_records(2)}) == set()
        assert (await close_collection(store, COLLECTION.digest)).n == 2
        assert await store.append({held.number: random_records(2)}) == {held.number}
        with pytest.raises(InputError, match="at least 3 reports before anything of them is given"):
            await release(store, COLLECTION.digest)
        with pytest.raises(InputError, match="must be released before it is mapped, and is closed"):
            await released_counts(store, COLLECTION.digest)
        assert (await store.held(COLLECTION.digest)).received == 2

    on(location, act, make=True)


def test_a_released_collection_holds_its_counts_and_no_report(location: str) -> None:
    async def act(store: Store) -> Counted:
        held = await store.add(COLLECTION, 3)
        other = await store.add(OTHER, 3)
        await store.append({held.number: random_records(40), other.number: random_records(7)})
        closed = await close_collection(store, COLLECTION.digest)
        released = await release(store, COLLECTION.digest)
        np.testing.assert_array_equal(closed.counts, released.counts)
        with pytest.raises(InputError, match="must be closed to be released, and is released"):
            await release(store, COLLECTION.digest)
        with pytest.raises(InputError, match="must be closed to give its reports, and is released"):
            await write_parquet(store, COLLECTION.digest, "reports.parquet")
        rows = await store.database.read("SELECT collection FROM chunks")
        assert {row[0] for row in rows} == {other.number}
        assert (await close_collection(store, OTHER.digest)).n == 7
        return await released_counts(store, COLLECTION.digest)

    assert on(location, act, make=True).n == 40


def test_one_transaction_stores_all_or_nothing_of_a_collection(location: str) -> None:
    async def act(store: Store) -> None:
        one = await store.add(COLLECTION, 3)
        two = await store.add(OTHER, 3)
        await close_collection(store, OTHER.digest)
        batch = {two.number: random_records(5), one.number: random_records(4)}
        assert await store.append(batch) == {two.number}
        progress = [await progress_of(store, held) for held in await store.collections()]
        assert [each.received for each in progress] == [4, 0]
        assert [each.counted for each in progress] == [None, 0]

    on(location, act, make=True)


def test_while_a_closed_collection_is_counted_its_progress_is_told(location: str) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 3)
        await store.append({held.number: random_records(4)})
        closed = "UPDATE collections SET state = 'closed' WHERE number = $1"
        await store.database.run([Statement(closed, [(held.number,)])])  # as closing begins
        held = await store.held(COLLECTION.digest)
        progress = await progress_of(store, held)
        assert (progress.state, progress.received, progress.counted) == ("closed", 4, None)
        with pytest.raises(InputError, match="and is being counted"):
            await counted(store, COLLECTION.digest)
        await close_collection(store, COLLECTION.digest)
        assert (await progress_of(store, held)).counted == 4

    on(location, act, make=True)


def test_a_transaction_that_finds_less_than_it_expects_does_nothing(location: str) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 3)
        await store.append({held.number: random_records(4)})
        statements = [
            Statement("DELETE FROM arrivals", expected=1),
            Statement("DELETE FROM chunks WHERE seq = $1", [(1,)], expected=1),
        ]
        with pytest.raises(ChangedStoreError):
            await store.database.run(statements)
        assert (await close_collection(store, COLLECTION.digest)).n == 4

    on(location, act, make=True)


def test_a_transaction_that_failed_leaves_no_cursor_behind(tmp_path: Path) -> None:
    # Its error, freed in another thread, would reset a statement that the next one is using.
    async def act() -> None:
        store = await make_store(str(tmp_path / "store.db"))
        with pytest.raises(ChangedStoreError) as error:
            await store.database.run(
                [Statement("DELETE FROM chunks WHERE part = $1", [(1,), (2,)], expected=3)]
            )
        frames = [frame for frame, _ in traceback.walk_tb(error.value.__traceback__)]
        values = [value for frame in frames for value in frame.f_locals.values()]
        (cursor,) = (value for value in values if isinstance(value, sqlite3.Cursor))
        with pytest.raises(sqlite3.ProgrammingError, match="closed cursor"):
            cursor.fetchone()
        await store.close()

    asyncio.run(act())


def test_two_processes_that_gather_at_once_lose_nothing(location: str) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 3)
        for _ in range(40):
            await store.append({held.number: random_records(10)})
        other = await open_store(location)
        await asyncio.gather(
            *(upkeep.gather(each.database) for each in (store, other, store, other)),
            *(upkeep.merge(each.database) for each in (store, other)),
            return_exceptions=False,
        )
        await other.close()
        assert (await close_collection(store, COLLECTION.digest)).n == 400

    on(location, act, make=True)


def test_a_crash_between_closing_and_counting_is_made_up_for(location: str) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 3)
        await store.append({held.number: random_records(9)})
        sql = "UPDATE collections SET state = 'closed' WHERE number = $1"
        await store.database.run([Statement(sql, [(held.number,)])])
        assert (await close_collection(store, COLLECTION.digest)).n == 9

    on(location, act, make=True)


def test_a_release_that_was_interrupted_holds_no_upkeep_up(location: str) -> None:
    """Its key is gone and reports are left: merging leaves them to whoever deletes them."""

    async def act(store: Store) -> None:
        number = (await store.add(COLLECTION, 1)).number
        for _ in range(upkeep.CHUNKS_OF_A_LEVEL):
            await store.append({number: random_records(2000)})
            await upkeep.gather(store.database)
        await close_collection(store, COLLECTION.digest)
        sql = "UPDATE collections SET state = 'released', hash_key = NULL"
        await store.database.run([Statement(sql)])
        assert not await upkeep.merge(store.database)
        await upkeep.settle(store.database, 10**6)
        assert await store.database.read("SELECT seq FROM chunks LIMIT 1") != []
        await upkeep.forget(store.database)
        assert await store.database.read("SELECT seq FROM chunks LIMIT 1") == []

    on(location, act, make=True)


def test_rejections_add_up(location: str) -> None:
    async def act(store: Store) -> None:
        await store.refuse({(1, "foreign"): 2, (0, "malformed"): 1})
        await store.refuse({(1, "foreign"): 3})
        assert await store.refused() == {(1, "foreign"): 5, (0, "malformed"): 1}

    on(location, act, make=True)


def test_damaged_rows_are_told_and_never_counted(location: str) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 3)
        await store.append({held.number: random_records(9)})
        (content,) = (await store.database.read("SELECT records FROM arrivals"))[0]
        changed = content[:20] + bytes([content[20] ^ 1]) + content[21:]
        await store.database.run([Statement("UPDATE arrivals SET records = $1", [(changed,)])])
        with pytest.raises(DamagedStoreError, match="checksum of a row of reports does not fit"):
            await close_collection(store, COLLECTION.digest)

    on(location, act, make=True)


@pytest.mark.parametrize("minimum", [0, -1, 1.5, True, "3", None, 10**13])
def test_a_minimum_is_a_whole_number_from_one(tmp_path: Path, minimum: object) -> None:
    async def act(store: Store) -> None:
        with pytest.raises(InputError, match="minimum must be"):
            await store.add(COLLECTION, minimum)  # type: ignore[arg-type]

    on(str(tmp_path / "store.db"), act, make=True)


# SQLite alone


def test_only_a_store_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with pytest.raises(InputError, match="store must be a file, found none"):
        asyncio.run(open_store(path))
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE t (a)")
    with pytest.raises(InputError, match="store must be a file that ldpspatial made"):
        asyncio.run(open_store(path))
    with pytest.raises(InputError, match="store must be a new file"):
        asyncio.run(make_store(path))
    for content in (b"not a database at all" * 1000, b'{"schema": 1}'):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"store must be a file that .* is no file of SQLite"):
            asyncio.run(open_store(path))
        assert path.read_bytes() == content


def test_a_store_of_another_version_is_refused(location: str) -> None:
    async def act(store: Store) -> None:
        await store.database.run([Statement("UPDATE store SET version = 2")])

    on(location, act, make=True)
    with pytest.raises(InputError, match="store must be of version 1, got 2"):
        on(location, act)


def test_sqlite_syncs_every_commit_and_overwrites_what_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    records = random_records(500)
    names = [row.tobytes() for row in records["id"]]

    async def act(store: Store) -> None:
        settings = {}
        for name in ("journal_mode", "synchronous", "secure_delete"):
            # Those of the connection that writes: they are not kept in the file.
            settings[name] = store.database._writing.execute(f"PRAGMA {name}").fetchone()[0]  # type: ignore[attr-defined]
        assert settings == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: records})
        await close_collection(store, COLLECTION.digest)

    async def let_go(store: Store) -> None:
        await release(store, COLLECTION.digest)
        # While it is open: the log is beside it. (A copy, because to close the file here would
        # drop the locks of SQLite.)
        for file in tmp_path.iterdir():
            subprocess.run(["cp", file, f"{file}.copy"], check=True)

    on(str(path), act, make=True)
    assert all(name in path.read_bytes() for name in names)
    on(str(path), let_go)
    for copy in tmp_path.glob("*.copy"):
        held = copy.read_bytes()
        assert not any(name in held for name in names)


def test_reports_are_stored_while_a_store_is_tidied(location: str) -> None:
    """A checkpoint that was not read to its end kept the next transaction from its commit."""

    async def act(store: Store) -> None:
        number = (await store.add(COLLECTION, 1)).number
        for _ in range(50):
            tidying = store.database.tidy()
            storing = store.append({number: random_records(1)})
            assert (await asyncio.gather(tidying, storing))[1] == set()

    on(location, act, make=True)


def test_below_the_minimum_nothing_is_given_and_all_can_be_dropped(
    location: str, tmp_path: Path
) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 3)
        with pytest.raises(InputError, match="must be closed to be dropped, and is open"):
            await drop(store, COLLECTION.digest)
        await store.append({held.number: random_records(2)})
        await close_collection(store, COLLECTION.digest)
        with pytest.raises(InputError, match="at least 3 reports before anything"):
            await write_parquet(store, COLLECTION.digest, tmp_path / "reports.parquet")
        with pytest.raises(InputError, match="at least 3 reports before anything"):
            await count_stored(store, COLLECTION)
        assert not (tmp_path / "reports.parquet").exists()
        await drop(store, COLLECTION.digest)
        for table in ("arrivals", "chunks", "counts"):
            assert await store.database.read(f"SELECT * FROM {table}") == []  # noqa: S608
        told = await progress_of(store, await store.held(COLLECTION.digest))
        assert (told.state, told.received, told.counted) == ("dropped", 2, None)
        assert await store.append({held.number: random_records(2)}) == {held.number}
        for change in (close_collection, release, drop, counted):
            with pytest.raises(InputError, match="dropped"):
                await change(store, COLLECTION.digest)

    on(location, act, make=True)


def test_a_closing_that_was_interrupted_is_finished(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: random_records(5)})

        async def killed(*arguments: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as broken:
            broken.setattr(service_closing, "_count", killed)
            with pytest.raises(KeyboardInterrupt):
                await close_collection(store, COLLECTION.digest)
        told = await progress_of(store, await store.held(COLLECTION.digest))
        assert (told.state, told.counted) == ("closed", None)
        assert await finish_closing(store) == 1
        assert await finish_closing(store) == 0
        assert (await counted(store, COLLECTION.digest)).n == 5

    on(location, act, make=True)


def test_a_release_in_the_middle_of_a_download_is_not_taken_for_damage(location: str) -> None:
    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: random_records(500)})
        await close_collection(store, COLLECTION.digest)
        reports = stored_reports(store, COLLECTION.digest)
        await anext(reports)
        await release(store, COLLECTION.digest)
        with pytest.raises(ChangedStoreError, match="released meanwhile"):
            async for _ in reports:
                pass

    on(location, act, make=True)


def test_two_servers_that_store_for_several_collections_do_not_wait_for_each_other(
    location: str,
) -> None:
    """In whatever order reports came: each locks the collections in the same order."""

    async def act(store: Store) -> None:
        one = await store.add(COLLECTION, 1)
        two = await store.add(OTHER, 1)
        other = await open_store(location)

        async def send(to: Store, first: int, second: int) -> None:
            for _ in range(60):
                arrived = {first: random_records(3), second: random_records(3)}
                assert await to.append(arrived) == set()

        await asyncio.gather(
            send(store, one.number, two.number), send(other, two.number, one.number)
        )
        await other.close()
        assert (await store.held(COLLECTION.digest)).received == 360

    on(location, act, make=True)


def test_arrivals_are_kept_by_their_ids_and_not_as_they_came(location: str) -> None:
    """The order of lines would tell which reports one device sent together."""

    async def act(store: Store) -> None:
        held = await store.add(COLLECTION, 1)
        await store.append({held.number: random_records(50)})
        rows = await store.database.read("SELECT records FROM arrivals")
        records = opened(store.database, (content for (content,) in rows))
        ids = [each.tobytes() for each in records["id"]]
        assert len(ids) == 50
        assert ids == sorted(ids)

    on(location, act, make=True)
