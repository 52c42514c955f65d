"""What requests are told when the store fails, is slow, or ends; and what is left in between."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from ldpspatial.collecting.records import OutputDomain, Records, records_of
from ldpspatial.service import group_commit, upkeep
from ldpspatial.service.closing import close_collection
from ldpspatial.service.database import DamagedStoreError, StoreError
from ldpspatial.service.group_commit import BusyError, GroupCommit
from ldpspatial.service.store import Store, make_store, open_store
from tests.support.service import CELLS, COLLECTION

RNG = np.random.default_rng(9)
DOMAIN = OutputDomain(COLLECTION)


def some(n: int) -> Records:
    cells = np.array(CELLS)[RNG.integers(len(CELLS), size=n)]
    return records_of(RNG.bytes(16 * n), DOMAIN.places(cells[:, 0], cells[:, 1]))


def run(path: Path, act: Callable[[Store, GroupCommit, int], Awaitable[None]]) -> None:
    async def whole() -> None:
        store = await make_store(path)
        number = (await store.add(COLLECTION, 1)).number
        commits = GroupCommit(store)
        commits.start()
        await act(store, commits, number)
        await commits.stop()
        await store.close()

    asyncio.run(whole())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_requests_that_wait_share_a_transaction(path: Path) -> None:
    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        groups: list[int] = []
        plain = store.append

        async def append(arrived: Mapping[int, Records]) -> set[int]:
            groups.append(len(arrived[number]))
            await asyncio.sleep(0.01)
            return await plain(arrived)

        store.append = append  # type: ignore[method-assign]
        answers = await asyncio.gather(*(commits.add({number: some(3)}) for _ in range(50)))
        assert answers == [set()] * 50
        assert sum(groups) == 150
        assert len(groups) <= 3
        assert (await close_collection(store, COLLECTION.digest)).n == 150

    run(path, act)


def test_a_failure_of_the_store_reaches_those_who_waited_and_nobody_else(path: Path) -> None:
    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        plain = store.append

        async def full(arrived: Mapping[int, Records]) -> set[int]:
            raise StoreError("the disk is full")

        store.append = full  # type: ignore[method-assign]
        waiting = [commits.add({number: some(2)}) for _ in range(4)]
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in found] == [StoreError] * 4
        store.append = plain  # type: ignore[method-assign]
        assert await commits.add({number: some(5)}) == set()
        assert (await close_collection(store, COLLECTION.digest)).n == 5

    run(path, act)


def test_what_nobody_expected_reaches_those_who_waited_and_the_next_goes_on(path: Path) -> None:
    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        plain = store.append

        async def broken(arrived: Mapping[int, Records]) -> set[int]:
            raise ZeroDivisionError

        store.append = broken  # type: ignore[method-assign]
        with pytest.raises(StoreError):
            await commits.add({number: some(2)})
        store.append = plain  # type: ignore[method-assign]
        assert await commits.add({number: some(5)}) == set()

    run(path, act)


def test_where_memory_ends_those_who_waited_are_told_and_the_next_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are joined before they are stored: before, nobody was answered from then on."""

    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        def full(parts: object) -> object:
            raise MemoryError

        with monkeypatch.context() as patched:
            patched.setattr(group_commit.np, "concatenate", full)
            waiting = [commits.add({number: some(2)}) for _ in range(3)]
            found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in found] == [StoreError] * 3
        assert not commits.works
        assert await commits.add({number: some(5)}) == set()
        assert commits.works

    run(path, act)


def test_more_than_it_holds_is_refused_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "MOST_WAITING", 10)

    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        first = asyncio.ensure_future(commits.add({number: some(8)}))
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await commits.add({number: some(3)})
        assert await first == set()
        assert await commits.add({number: some(3)}) == set()

    run(path, act)


def test_a_request_that_went_away_is_stored_all_the_same(path: Path) -> None:
    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        gone = asyncio.ensure_future(commits.add({number: some(4)}))
        await asyncio.sleep(0)
        gone.cancel()
        assert await commits.add({number: some(1)}) == set()
        assert (await close_collection(store, COLLECTION.digest)).n == 5

    run(path, act)


def test_stopping_stores_what_waits_and_takes_no_more(path: Path) -> None:
    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        waiting = asyncio.ensure_future(commits.add({number: some(4)}))
        await asyncio.sleep(0)
        await commits.stop()
        assert await waiting == set()
        with pytest.raises(BusyError):
            await commits.add({number: some(4)})
        assert await store.database.read("SELECT seq FROM arrivals") == []  # all are gathered

    run(path, act)


def test_upkeep_runs_between_transactions_and_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "GATHERED_AT_ONCE", 50)

    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        for _ in range(60):
            await asyncio.gather(*(commits.add({number: some(5)}) for _ in range(4)))
        levels = await store.database.read("SELECT DISTINCT level FROM chunks")
        assert len(levels) > 1  # some were merged
        assert (await close_collection(store, COLLECTION.digest)).n == 1200

    run(path, act)


def test_what_arrives_on_a_quiet_day_is_gathered_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "LONGEST_UNGATHERED_S", 0.05)

    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        await commits.add({number: some(3)})
        for _ in range(6000):  # a minute
            if not await store.database.read("SELECT seq FROM arrivals"):
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the reports still lie in the order of their arrival")

    run(path, act)


def test_upkeep_that_fails_is_tried_again_and_requests_go_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(group_commit, "LONGEST_UNGATHERED_S", 0.02)
    plain = group_commit.gather
    failures = [StoreError("the disk is full")] * 3

    async def gather(database: object) -> int:
        if failures:
            raise failures.pop()
        return await plain(database)  # type: ignore[arg-type]

    monkeypatch.setattr(group_commit, "gather", gather)

    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        for _ in range(50):
            assert await commits.add({number: some(3)}) == set()
            await asyncio.sleep(0.01)
        assert failures == []

    run(path, act)
    assert caplog.messages == ["the disk is full"]  # once: more lines would fill it

    async def count() -> int:
        store = await open_store(path)
        found = await close_collection(store, COLLECTION.digest)
        await store.close()
        return found.n

    assert asyncio.run(count()) == 150


def test_under_full_load_reports_are_gathered_and_every_part_is_merged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Merging alone could take all steps: here one of 100 chunks follows each commit.
    most = 200
    monkeypatch.setattr(group_commit, "GATHERED_AT_ONCE", most)
    monkeypatch.setattr(upkeep, "GATHERED_AT_ONCE", most)

    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        waiting = []

        async def send() -> None:
            for _ in range(150):
                assert await commits.add({number: some(10)}) == set()
                rows = await store.database.read("SELECT sum(number) FROM arrivals")
                waiting.append(rows[0][0] or 0)

        await asyncio.gather(*(send() for _ in range(8)))
        assert max(waiting) < 3 * most
        merged = await store.database.read("SELECT part FROM chunks WHERE level > 0")
        places = [part for (part,) in merged]
        # From a random part on: one of four quarters is left out by chance with
        # probability 4 * .75^60 < 1e-6.
        assert len(places) >= 60
        assert {part // 64 for part in places} == {0, 1, 2, 3}
        assert (await close_collection(store, COLLECTION.digest)).n == 8 * 150 * 10

    run(path, act)


def test_upkeep_that_breaks_in_a_way_nobody_expected_ends_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(group_commit, "LONGEST_UNGATHERED_S", 0.02)

    async def gather(database: object) -> int:
        raise ZeroDivisionError("13.405")  # whatever such a text holds is not logged

    monkeypatch.setattr(group_commit, "gather", gather)

    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        for _ in range(20):
            assert await commits.add({number: some(3)}) == set()
            await asyncio.sleep(0.01)

    run(path, act)
    assert caplog.messages == ["the store did not do it: ZeroDivisionError"]


def test_refusals_that_could_not_be_written_are_written_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "LONGEST_UNGATHERED_S", 0.02)

    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        plain = store.refuse

        async def full(refused: Mapping[tuple[int, str], int]) -> None:
            raise StoreError("the disk is full")

        store.refuse = full  # type: ignore[method-assign]
        commits.refuse(number, "foreign")
        await commits.add({number: some(1)})
        await asyncio.sleep(0.1)
        commits.refuse(number, "foreign")
        assert commits.refused == {(number, "foreign"): 2}
        store.refuse = plain  # type: ignore[method-assign]
        await commits.stop()
        assert await store.refused() == {(number, "foreign"): 2}

    run(path, act)


def test_damage_ends_the_taking_of_reports_and_all_upkeep(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        assert await commits.add({number: some(3)}) == set()
        commits.note(DamagedStoreError("the store", "a page"))
        with pytest.raises(DamagedStoreError, match="restore a back-up"):
            await commits.add({number: some(3)})
        assert await store.collections() != []

    run(path, act)
    assert len(caplog.messages) == 1


def test_where_few_reports_come_their_order_is_soon_gone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report a minute: each would be a chunk of its own, in the order of arrival."""
    monkeypatch.setattr(group_commit, "LONGEST_UNGATHERED_S", 0.01)

    async def act(store: Store, commits: GroupCommit, number: int) -> None:
        for k in range(400):
            assert await commits.add({number: some(1)}) == set()
            if k % 100 == 99:
                for _ in range(6000):  # until upkeep has nothing left to do, a minute at most
                    await asyncio.sleep(0.01)
                    rows = await store.database.read("SELECT part FROM chunks")
                    parts = [part for (part,) in rows]
                    left = await store.database.read("SELECT count(*) FROM arrivals")
                    if left == [(0,)] and len(parts) == len(set(parts)):
                        break
                assert left == [(0,)]
                assert len(parts) == len(set(parts))  # one chunk a part, and no more
        assert len(parts) < 256

    run(path, act)
