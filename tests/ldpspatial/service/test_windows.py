"""Series: windows open and close by the clock of the service."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

from client_sdk import Grid, Series
from ldpspatial.collecting.records import records_of
from ldpspatial.errors import InputError
from ldpspatial.service import windows
from ldpspatial.service.closing import counted, release
from ldpspatial.service.database import Statement, StoreError
from ldpspatial.service.device_api import Catalogue, DeviceApi
from ldpspatial.service.group_commit import GroupCommit
from ldpspatial.service.limits import Limits
from ldpspatial.service.problems import Problem
from ldpspatial.service.store import CLOSED, OPEN, RELEASED, Store, make_store
from ldpspatial.service.tokens import make_token
from ldpspatial.service.windows import Clock, HeldSeries, add_series, all_series
from tests.support.command_line import refusal, succeed
from tests.support.service import lines, report, serving

GRID = Grid.plane(0, 0, 100, 5)
HOUR = 3600
START = 1_000_000
WEEK = Series.create("week", GRID, 2, first_start=START, window_seconds=HOUR, windows=4)


def run(location: str, act: Callable[[Store], Awaitable[None]]) -> None:
    async def body() -> None:
        store = await make_store(location)
        try:
            await act(store)
        finally:
            await store.close()

    asyncio.run(body())


async def nothing() -> None:
    """Do what a service does that holds no list of collections."""


async def turn(store: Store, now: float) -> None:
    """Open, close and count what is due at a time."""
    clock = Clock(store, nothing, lambda: now)
    await clock.look()
    while clock.uncounted:
        await clock.count_next()


async def states(store: Store) -> dict[int, str]:
    """Return the state of each window that the store has."""
    numbers = {WEEK.collection(k).digest: k for k in range(1, 5)}
    return {numbers[held.digest]: held.state for held in await store.collections()}


async def once_open(store: Store) -> dict[int, str]:
    """Return the states when a clock has opened a window; a minute is more than it takes."""
    for _ in range(6000):
        if OPEN in (found := await states(store)).values():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("no window was opened")


def test_windows_open_and_close(location: str) -> None:
    async def act(store: Store) -> None:
        await add_series(store, WEEK, 2, leeway_s=600)
        for now, expected in (
            (START - 601, {}),
            (START - 600, {1: OPEN}),
            (START + HOUR - 601, {1: OPEN}),
            (START + HOUR - 600, {1: OPEN, 2: OPEN}),
            (START + HOUR + 599.5, {1: OPEN, 2: OPEN}),
            (START + HOUR + 600, {1: CLOSED, 2: OPEN}),
            (START, {1: CLOSED, 2: OPEN}),  # a clock that was turned back opens nothing again
            (START + 4 * HOUR + 599, {1: CLOSED, 2: CLOSED, 4: OPEN}),  # 3 was slept through
            (START + 9 * HOUR, {1: CLOSED, 2: CLOSED, 4: CLOSED}),
        ):
            for _ in range(2):
                await turn(store, now)
                assert await states(store) == expected, now

    run(location, act)


def test_a_window_is_a_collection_with_reports_of_its_own(location: str) -> None:
    async def act(store: Store) -> None:
        await add_series(store, WEEK, 2, leeway_s=0)
        await turn(store, START)
        digest = WEEK.collection(1).digest
        held = await store.held(digest)
        await store.append({held.number: records_of(bytes(range(32)), np.arange(2))})
        await turn(store, START + HOUR)
        assert (await counted(store, digest)).n == 2
        await release(store, digest)
        await turn(store, START)  # nor is one that was released opened again
        assert await states(store) == {1: RELEASED, 2: OPEN}

    run(location, act)


def test_what_a_crash_left_half_done_is_taken_up(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(store: Store) -> None:
        await add_series(store, WEEK, 2, leeway_s=0)
        add = store.add

        async def failing(*arguments: object) -> None:
            raise StoreError("killed here")

        monkeypatch.setattr(store, "add", failing)
        told: list[None] = []

        async def changed() -> None:
            told.append(None)

        clock = Clock(store, changed, lambda: START + 1)
        await clock.look()
        assert (await states(store), told) == ({}, [])
        monkeypatch.setattr(store, "add", add)
        await clock.look()
        await clock.look()
        assert (await states(store), told) == ({1: OPEN}, [None])

    run(location, act)


async def learned(store: Store, clock: Clock, window: int) -> int:
    """Return the status of a report of a window, 0 where nothing was refused before its lines."""
    catalogue = Catalogue(store)
    api = DeviceApi(store, GroupCommit(store), Limits(), catalogue, clock)
    try:
        await api._learn({WEEK.collection(window).digest.encode()})
    except Problem as problem:
        return 422 if problem.kind else problem.status
    return 0


def test_a_report_of_a_window_that_is_late_to_open_is_to_come_again(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(store: Store) -> None:
        await add_series(store, WEEK, 2, leeway_s=0)
        now = [START - 10.0 * HOUR]
        clock = Clock(store, nothing, lambda: now[0])
        assert await learned(store, clock, 1) == 503  # who has not looked does not know
        await clock.look()
        assert await learned(store, clock, 1) == 0  # no window of mine, for hours

        async def failing(*arguments: object) -> None:
            raise StoreError("the disk is full")

        run_it = store.database.run
        for now[0] in (START - 10.0, START + 1.0):
            monkeypatch.setattr(store.database, "run", failing)
            await clock.look()
            assert await learned(store, clock, 1) == 503
            assert await learned(store, clock, 3) == 0
        monkeypatch.setattr(store.database, "run", run_it)
        await clock.look()
        assert (await learned(store, clock, 1), await states(store)) == (0, {1: OPEN})

    run(location, act)


def test_who_did_not_look_just_now_does_not_know_which_windows_there_are(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(store: Store) -> None:
        now = [float(START)]
        clock = Clock(store, nothing, lambda: now[0])
        await clock.look()
        foreign = {b"0" * 64}
        assert not clock.may_open(foreign, 0)
        assert clock.may_open(foreign, 1)  # a series was added since
        for now[0] in (START + 61.0, START - 1.0, START + 10.0 * HOUR):  # a late look, a new time
            assert clock.may_open(foreign, 0)
        await clock.look()
        assert not clock.may_open(foreign, 0)

        async def failing(*arguments: object) -> None:
            raise StoreError("the connection was lost")

        monkeypatch.setattr(store.database, "read", failing)
        await clock.look()
        assert clock.may_open(foreign, 0)

    run(location, act)


def test_windows_open_while_closed_ones_are_counted(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(store: Store) -> None:
        await add_series(store, WEEK, 2, leeway_s=0)
        now = [float(START)]
        clock = Clock(store, nothing, lambda: now[0])
        await clock.look()
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow(store: Store, digest: str) -> None:
            begun.set()
            await may_end.wait()

        monkeypatch.setattr(windows, "close_collection", slow)
        now[0] += HOUR
        await clock.look()
        counting = asyncio.create_task(clock.count_next())
        await begun.wait()
        now[0] += HOUR
        await clock.look()
        assert await states(store) == {1: CLOSED, 2: CLOSED, 3: OPEN}
        may_end.set()
        await counting
        assert clock.uncounted == 1

    run(location, act)


def test_a_damaged_window_keeps_no_other_from_opening_or_closing(location: str) -> None:
    async def act(store: Store) -> None:
        other = Series.create("other", GRID, 2, first_start=START, window_seconds=HOUR, windows=9)
        for series in (WEEK, other):
            await add_series(store, series, 2, leeway_s=0)
        await turn(store, START)
        for series in (WEEK, other):
            held = await store.held(series.collection(1).digest)
            await store.append({held.number: records_of(bytes(range(32)), np.arange(2))})
        damaged = await store.held(WEEK.collection(1).digest)
        change = "UPDATE arrivals SET records = $2 WHERE collection = $1"
        await store.database.run([Statement(change, [(damaged.number, bytes(44))])])
        await turn(store, START + HOUR)
        for series in (WEEK, other):
            for window, state in ((1, CLOSED), (2, OPEN)):
                assert (await store.held(series.collection(window).digest)).state == state

    run(location, act)


@pytest.mark.parametrize(
    ("minimum", "leeway", "message"),
    [
        (0, 0, "minimum must be"),
        (1, -1, "leeway_s must be"),
        (1, 500 * HOUR, "leeway_s must be below 500 windows of 3600 s, got 1800000"),
    ],
)
def test_bad_series(location: str, minimum: int, leeway: int, message: str) -> None:
    async def act(store: Store) -> None:
        with pytest.raises(InputError, match=message):
            await add_series(store, WEEK, minimum, leeway)
        await add_series(store, WEEK, 1, 0)
        with pytest.raises(InputError, match="must be new"):
            await add_series(store, WEEK, 1, 0)
        assert len(await all_series(store)) == 1

    run(location, act)


def test_the_windows_that_take_reports_are_those_whose_times_hold(location: str) -> None:
    async def act(store: Store) -> None:
        held = await add_series(store, WEEK, 1, leeway_s=5000)
        for now in range(START - 6000, START + 5 * HOUR + 6000, 317):
            expected = [
                k for k in range(1, 5) if held.times(WEEK, k)[0] <= now < held.times(WEEK, k)[1]
            ]
            assert list(held.taking(WEEK, now)) == expected

    run(location, act)


def test_over_http_and_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    file = tmp_path / "week.json"
    running = Series.create("now", GRID, 2, first_start=0, window_seconds=10**9, windows=5)
    file.write_text(running.to_json())
    succeed("store", "new", path)
    added = succeed("store", "add-series", path, file, "--minimum", 3, "--leeway", 60).output
    assert added == f"Added: {running.digest}\n"
    shown = succeed("store", "list", path).output
    assert "now\n" in shown
    for fact in (running.digest, "each window from 3 reports on", "60 s before and after"):
        assert fact in shown
    assert "must be new" in refusal("store", "add-series", path, file, "--minimum", 3)
    assert "SERIES" in refusal("store", "add-series", path, tmp_path / "x", "--minimum", 3)
    token = succeed("store", "token", path, "laptop").output.strip()
    window = running.collection(2)  # from 2001 to 2033
    with serving(path) as server:
        status, headers, content = server.request("GET", f"/series/{running.digest}")
        assert (status, content.decode()) == (200, running.to_json())
        assert "immutable" in headers["cache-control"]
        assert server.request("GET", f"/series/{'0' * 64}")[0] == 404
        assert server.post(lines([report((0, 0), window)]))[0] == 204
        assert server.post(lines([report((0, 0), running.collection(3))]))[0] == 422
        operator = {"Authorization": f"Bearer {token}"}
        new = {"document": WEEK.to_json(), "minimum": 5, "leeway_s": 60}
        body = json.dumps(new).encode()
        assert server.request("POST", "/operator/series", body, **operator)[0] == 201
        assert server.request("POST", "/operator/series", body, **operator)[0] == 422
        assert server.request("GET", "/operator/series")[0] == 401
        told = json.loads(server.request("GET", "/operator/series", **operator)[2])
        assert [(each["name"], each["leeway_s"]) for each in told] == [("now", 60), ("week", 60)]


def test_the_service_looks_when_a_window_is_due_and_now_and_then() -> None:
    week = HeldSeries(1, WEEK.digest, WEEK.to_json(), minimum=2, leeway_s=600)
    end = START + 4 * HOUR + 600
    for now, due in (
        (START - 10 * HOUR, START - 600),
        (START - 600.5, START - 600),
        (START - 600, START + HOUR - 600),
        (START + HOUR - 600, START + HOUR + 600),  # two are open: the first closes next
        (START + HOUR + 600, START + 2 * HOUR - 600),
        (end - 0.25, end),
        (end, math.inf),
        (end + 10 * HOUR, math.inf),
    ):
        assert week.due(WEEK, now) == due, now


def test_a_look_waits_for_the_next_window_and_for_20_seconds_at_most(location: str) -> None:
    async def act(store: Store) -> None:
        time = START - 5.0

        async def changed() -> None:
            pass

        clock = Clock(store, changed, lambda: time)
        assert await clock.pause() == 20
        await add_series(store, WEEK, 2, leeway_s=0)
        assert await clock.pause() == 5
        time = START - 0.001
        assert await clock.pause() == 0.1
        time = START + 10.0
        assert await clock.pause() == 20

    run(location, act)


def test_the_service_looks_by_itself(tmp_path: Path) -> None:
    async def act() -> list[str]:
        store = await make_store(tmp_path / "store.db")
        await make_token(store, "x")
        await add_series(store, WEEK, 1, leeway_s=0)

        async def changed() -> None:
            pass

        clock = Clock(store, changed, lambda: START + HOUR + 1)
        clock.start()
        found = await once_open(store)
        await clock.stop()
        await store.close()
        return [str(k) + state for k, state in found.items()]

    assert asyncio.run(act()) == ["2open"]


LATER = Series.create("later", GRID, 2, first_start=START, window_seconds=HOUR, windows=4)


async def opens_beside_a_damaged_one(store: Store, field: str, value: object) -> None:
    """Open the windows of a series beside one of which a field holds what was never written."""
    held = await add_series(store, LATER, 2, leeway_s=0)
    await add_series(store, WEEK, 2, leeway_s=0)
    change = f"UPDATE series SET {field} = $2 WHERE number = $1"  # noqa: S608
    await store.database.run([Statement(change, [(held.number, value)])])
    now = [START + 1.0]
    clock = Clock(store, nothing, lambda: now[0])
    clock.start()
    assert await once_open(store) == {1: OPEN}
    now[0] = START + HOUR + 1  # it goes on looking
    await clock.look()
    assert await clock.pause() == 20
    assert not any(task.done() for task in clock._tasks)
    await clock.stop()
    assert (await states(store))[2] == OPEN
    broken, _ = await all_series(store)
    with pytest.raises(StoreError, match="is not what was added: restore a back-up"):
        broken.series()


def test_a_series_that_is_damaged_keeps_no_other_from_opening(location: str) -> None:
    broken = LATER.to_json().replace("later", "lAter")
    run(location, lambda store: opens_beside_a_damaged_one(store, "document", broken))


@pytest.mark.parametrize("field", ["leeway", "minimum", "digest", "document"])
def test_a_row_of_other_types_keeps_no_other_from_opening(field: str, tmp_path: Path) -> None:
    """SQLite holds a text where a number was written: before, the clock stood still then."""
    path = str(tmp_path / "store.db")
    value: object = b"\xff" if field in {"digest", "document"} else "x"
    run(path, lambda store: opens_beside_a_damaged_one(store, field, value))
