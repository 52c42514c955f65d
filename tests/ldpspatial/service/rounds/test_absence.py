"""Nobody is late because the server was: killed, standing still, without its store, or behind."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from client_sdk.rounds import Ask, Asked, RoundDocument, Step
from ldpspatial.errors import InputError
from ldpspatial.service.database import Statement, StoreError
from ldpspatial.service.rounds.server import RoundServer, Running, open_campaign, released
from ldpspatial.service.rounds.tables import has_rounds
from tests.support.round_campaigns import CAMPAIGN, PEOPLE, Clock, opened, people, started
from tests.support.round_devices import START, a_campaign
from tests.support.round_sessions import Mortal, Players, a_database, a_session, play
from tests.support.round_visits import Visitor, app_of, call

PART = 3600 / 8
NEEDED = 5  # of six


class Scene:
    """The first round of a campaign with six people, and a clock."""

    def __init__(self, folder: Path, clock: Clock, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._patch = folder, patch
        self.clock = clock

    async def begin(self) -> None:
        self.database, directory = await opened(self._folder)
        self.visitors = people(self._folder / "d", directory, self._patch, cohorts=1)
        await self.restart()

    async def restart(self) -> None:
        """Kill the server, and start it."""
        self.rounds: RoundServer = await started(self.database, self.clock)
        self.app: Starlette = app_of(self.database, self.rounds)

    async def at(self, parts: float, *visitors: Visitor) -> None:
        """Let it be so many eighths of the round later than its start; let some people ask."""
        self.clock.seconds = START + parts * PART + 1
        await self.rounds.tick()
        for visitor in visitors:
            await visitor.step(self.app)

    async def finish(self) -> None:
        """Let everybody go on until nobody has anything to ask."""
        for _ in range(15):
            await self.rounds.tick()
            for visitor in self.visitors:
                await visitor.step(self.app)
        await self.rounds.tick()

    @property
    def running(self) -> Running:
        found = self.rounds.running(CAMPAIGN.digest)
        assert found is not None
        return found

    def summed(self) -> list[bool | None]:
        return [visitor.summed for visitor in self.visitors]


@pytest.fixture
def scene(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, clock, monkeypatch)


def test_who_could_not_ask_for_a_seat_while_the_server_was_away_has_time_again(
    scene: Scene,
) -> None:
    async def run() -> None:
        await scene.begin()
        await scene.at(0, *scene.visitors[:3])
        await scene.restart()
        await scene.at(2.1)  # when seats would have been dealt to three, below the threshold
        await scene.at(4, *scene.visitors[3:])
        await scene.at(4.2)
        await scene.finish()
        assert scene.summed() == [True] * PEOPLE
        await scene.database.close()

    asyncio.run(run())


def test_a_server_that_comes_late_begins_the_round_while_there_is_time(scene: Scene) -> None:
    async def run() -> None:
        await scene.begin()
        await scene.at(2.9, *scene.visitors)
        await scene.at(4.8, *scene.visitors)
        assert scene.running.state == "gathering"
        await scene.at(5)
        await scene.finish()
        assert scene.summed() == [True] * PEOPLE
        await scene.database.close()

    asyncio.run(run())


@pytest.mark.parametrize("step", [Step.ADVERTISE, Step.SHARE, Step.MASK, Step.CONFIRM, Step.REVEAL])
def test_a_step_that_ended_while_the_server_was_away_has_its_time_again(
    scene: Scene, step: Step
) -> None:
    async def run() -> None:
        await scene.begin()
        await scene.at(0, *scene.visitors)
        await until_sending(scene, step)
        await scene.restart()
        ended = 3 + int(step)
        await scene.at(ended + 0.1)
        await scene.at(ended + 0.9)  # people come only now
        await scene.finish()
        assert scene.summed() == [True] * PEOPLE
        assert [v.participant.spent() for v in scene.visitors] == [12_000_000] * PEOPLE
        await scene.database.close()

    asyncio.run(run())


async def until_sending(scene: Scene, step: Step) -> None:
    """Deal seats, and let everybody go on until the message of a step is to be sent."""
    await scene.at(2.1)
    for _ in range(40):
        for visitor in scene.visitors:
            while visitor.ask is not None and not is_message(visitor.ask, step):
                visitor.ask = visitor._visit.send(await call(scene.app, visitor.ask))
                if visitor.ask.wait_s:
                    break
        await scene.rounds.tick()
    assert all(v.ask is not None and is_message(v.ask, step) for v in scene.visitors)


def is_message(ask: Ask, step: Step) -> bool:
    return ask.method == "POST" and f"/{int(step)}/" in ask.path and "sessions" in ask.path


def test_a_server_that_stood_still_has_taken_no_time_from_anybody(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that was asleep: all who asked meanwhile are heard after the server's next look."""

    async def run() -> None:
        await scene.begin()
        sleeps: asyncio.Queue[float] = asyncio.Queue()
        asleep: asyncio.Queue[None] = asyncio.Queue()

        async def sleep(_: float) -> None:
            asleep.put_nowait(None)
            scene.clock.seconds += await sleeps.get()

        async def passes(seconds: float) -> None:
            sleeps.put_nowait(seconds)
            await asleep.get()

        with monkeypatch.context() as patch:
            patch.setattr("ldpspatial.service.rounds.server.asyncio.sleep", sleep)
            looking = asyncio.create_task(scene.rounds.run())
            await asleep.get()
            assert scene.running.state == "gathering"
            await passes(2.5 * PART)  # at one go
            for visitor in scene.visitors:
                await visitor.step(scene.app)
            for _ in range(20):
                await passes(0.1 * PART)
            assert scene.running.state == "summing"
            for visitor in scene.visitors:
                await visitor.step(scene.app)
            looking.cancel()
        await scene.finish()
        assert scene.summed() == [True] * PEOPLE
        await scene.database.close()

    asyncio.run(run())


def failing(database: Mortal, patch: pytest.MonkeyPatch) -> None:
    async def fails(statements: Sequence[Statement]) -> list[int]:
        raise StoreError("the disk is full")

    patch.setattr(database.inner, "run", fails)


@pytest.mark.parametrize("asked", [True, False])
def test_a_store_that_did_not_write_has_taken_no_time_from_anybody(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    """It refuses vectors just before they are too late, or else the closing of the step."""

    async def run() -> None:
        await scene.begin()
        await scene.at(0, *scene.visitors)
        await until_sending(scene, Step.MASK)
        with monkeypatch.context() as patch:
            failing(scene.database, patch)
            if asked:
                await scene.at(4.9, *scene.visitors)  # told to come again
            else:
                with pytest.raises(StoreError):
                    await scene.at(5.1)
        await scene.at(5.2)
        await scene.at(5.5)
        await scene.finish()
        assert scene.summed() == [True] * PEOPLE
        await scene.database.close()

    asyncio.run(run())


def test_seats_that_a_store_did_not_write_may_be_asked_for_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        await scene.begin()
        await scene.at(0)
        for visitor in scene.visitors:
            while visitor.ask is not None and not visitor.ask.path.endswith("/seat"):
                visitor.ask = visitor._visit.send(await call(scene.app, visitor.ask))
        with monkeypatch.context() as patch:
            failing(scene.database, patch)
            await scene.at(1.9, *scene.visitors)
        await scene.at(1.95)
        await scene.at(3.9, *scene.visitors)
        await scene.at(4)
        await scene.finish()
        assert scene.summed() == [True] * PEOPLE
        await scene.database.close()

    asyncio.run(run())


def test_a_server_that_is_killed_for_ever_moves_a_round_by_three_eighths_at_most(
    scene: Scene,
) -> None:
    """Vectors are due by the round's end: devices give none later."""

    async def run() -> None:
        await scene.begin()
        await scene.at(0, *scene.visitors)
        seen = {}
        for tenth in range(110):
            await scene.restart()
            await scene.at(tenth / 10)
            running = scene.running
            seen[tenth / 10] = running.document and (running.document.round, running.state)
            if running.sessions:
                seen[tenth / 10] = running.sessions[0].step
        assert seen[4.9] == (1, "gathering")
        assert seen[5.0] is Step.ADVERTISE  # nobody sends
        assert seen[6.0] is None  # too few: it is over
        assert seen[8.0] == (2, "gathering")
        await scene.database.close()

    asyncio.run(run())


@pytest.mark.parametrize("since", [0.0, 2.0, 4.5, 9.0, 99.0])
def test_no_step_ends_before_its_time_nor_more_than_three_eighths_after_it(since: float) -> None:
    running = Running(CAMPAIGN, b"", None)  # type: ignore[arg-type]
    ends = [running.gathers_until(1, START + since * PART)]
    ends += [running.until(1, step, START + since * PART) for step in Step]
    for planned, end in enumerate(ends, 2):
        assert START + planned * PART <= end <= START + (planned + 3) * PART
    assert ends[1 + Step.MASK] <= START + CAMPAIGN.round_seconds
    assert running.opens_until(1) + 2 * PART <= START + 5 * PART  # a full quarter for seats


# --- what is said for good


def test_a_session_that_is_made_again_sends_nobody_away_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store failed once. While all messages are read again, somebody asks for an answer."""

    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, session = await a_session(database)
        players = Players(document, name, session)
        await play(players, session, until=Step.MASK)
        with monkeypatch.context() as patch:
            failing(database, patch)
            with pytest.raises(StoreError):
                await session.take(Step.MASK, 0, players.answers[0][1])
        before = session.answer(Step.SHARE, 1)
        to_thread, asked = asyncio.to_thread, []

        async def meanwhile(function: Any, *arguments: Any) -> Any:
            found = await to_thread(function, *arguments)
            asked.append((session.step, session.answer(Step.SHARE, 1)))
            return found

        monkeypatch.setattr("ldpspatial.service.rounds.sessions.asyncio.to_thread", meanwhile)
        thread_saw = []
        receive = _server_class().receive

        def seen(self: Any, message: Any) -> None:
            thread_saw.append(session.step)
            receive(self, message)

        monkeypatch.setattr(_server_class(), "receive", seen)
        await session.take(Step.MASK, 0, players.answers[0][1])
        assert asked == [(Step.MASK, before)]
        assert set(thread_saw) == {Step.MASK}
        await database.close()

    asyncio.run(run())


def _server_class() -> Any:
    from ldpspatial.service.rounds import sessions  # noqa: PLC0415

    return sessions.Server


def test_a_store_that_cannot_be_read_is_not_taken_for_one_without_rounds(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that started on it so would tell everybody that there is no such campaign."""

    async def fails(*_: object) -> None:
        raise StoreError("the connection was lost")

    async def run() -> None:
        database = await a_database(tmp_path, location)
        assert await has_rounds(database)
        with monkeypatch.context() as patch:
            patch.setattr(database.inner, "read", fails)
            with pytest.raises(StoreError, match="connection was lost"):
                await has_rounds(database)
        await database.run([Statement("UPDATE round_store SET version = 1")])
        with pytest.raises(StoreError, match="must be of version 3, got 1: open new campaigns"):
            await has_rounds(database)
        await database.run([Statement("DROP TABLE round_store")])
        assert not await has_rounds(database)
        await database.close()

    asyncio.run(run())


def test_a_process_that_another_one_overtook_sends_nobody_away(scene: Scene) -> None:
    """Two processes serve one store; each device asks now the one, now the other."""

    async def run() -> None:
        await scene.begin()
        await scene.at(0)
        other = await started(scene.database, scene.clock)
        await other.tick()
        apps = scene.app, app_of(scene.database, other)
        for visitor in scene.visitors:
            await visitor.step(scene.app)
        scene.clock.seconds = START + 2.1 * PART
        await scene.rounds.tick()  # the other one does not know that seats are dealt
        asked = 0
        for _ in range(40):
            for visitor in scene.visitors:
                while visitor.ask is not None:
                    asked += 1
                    told = await call(apps[asked % 2], visitor.ask)
                    try:
                        visitor.ask = visitor._visit.send(told)
                    except StopIteration as end:
                        visitor.ask, visitor.summed = None, end.value
                    if visitor.ask is None or visitor.ask.wait_s:
                        break
            scene.clock.seconds += 0.2 * PART
            for server in (scene.rounds, other):
                with suppress(StoreError):  # the store is further: it looks again
                    await server.tick()
        assert scene.summed() == [True] * PEOPLE
        await scene.database.close()

    asyncio.run(run())


def test_a_campaign_that_cannot_be_loaded_stops_no_other(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Its people are told to come again, not that there is no such campaign."""
    other = a_campaign(rounds=2, most_clients=PEOPLE, least_honest=3)

    async def run() -> None:
        database, directory = await opened(tmp_path)
        await open_campaign(database, other, directory, people=24, tolerated=0.2)
        sql = "UPDATE round_campaigns SET release = 'of later times' WHERE digest = $1"
        await database.run([Statement(sql, [(CAMPAIGN.digest,)])])
        rounds = await started(database, clock)
        await rounds.tick()
        assert rounds.running(CAMPAIGN.digest) is None
        running = rounds.running(other.digest)
        assert running is not None
        assert running.document is not None
        app = app_of(database, rounds)
        for digest, status in ((CAMPAIGN.digest, 503), (other.digest, 200), ("0" * 64, 404)):
            assert (await call(app, Ask("GET", f"/rounds/{digest}"))).status == status
        await database.run([Statement(sql.replace("of later times", "distributed-levels"),
                                      [(CAMPAIGN.digest,)])])  # fmt: skip
        await rounds.tick()
        assert (await call(app, Ask("GET", f"/rounds/{CAMPAIGN.digest}"))).status == 200
        await database.close()

    with caplog.at_level(logging.ERROR, "ldpspatial"):
        asyncio.run(run())
    assert f"campaign {CAMPAIGN.digest} cannot be loaded: release must be" in caplog.text


@pytest.mark.parametrize("over", [False, True])
def test_a_campaign_that_another_version_began_is_not_read_as_if_this_one_had(
    over: bool, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """Sums lie where the round's document says: another rule would put them elsewhere."""

    async def run() -> None:
        await scene.begin()
        await scene.at(0, *scene.visitors)
        if over:
            await scene.at(2.1)
            await scene.finish()
            assert scene.summed() == [True] * PEOPLE
        digest = CAMPAIGN.digest
        asked = await scene.rounds.document_text(digest, 1)
        assert asked is not None
        document = RoundDocument.from_json(asked, CAMPAIGN)
        other = RoundDocument.create(
            CAMPAIGN, 1, Asked(levels=(1,)), clients=document.clients,
            threshold=document.threshold, colluding=document.colluding,
        )  # fmt: skip
        assert other.to_json() != asked
        sql = "UPDATE round_rounds SET document = $2 WHERE campaign = $1 AND number = 1"
        await scene.database.run([Statement(sql, [(digest, other.to_json())])])
        await scene.restart()
        await scene.rounds.tick()
        assert scene.rounds.running(digest) is None
        assert (await call(scene.app, Ask("GET", f"/rounds/{digest}"))).status == 503
        with pytest.raises(InputError, match="campaign must go on with the ldpspatial that began"):
            await released(scene.database, digest)
        await scene.database.run([Statement(sql, [(digest, asked)])])
        await scene.rounds.tick()
        assert scene.rounds.running(digest) is not None
        await released(scene.database, digest)
        await scene.database.close()

    with caplog.at_level(logging.ERROR, "ldpspatial"):
        asyncio.run(run())
    assert "but round 1 of" in caplog.text


def test_a_campaign_that_fails_in_no_way_of_ours_keeps_no_other_from_loading(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    async def run() -> None:
        await scene.begin()
        monkeypatch.setattr("ldpspatial.service.rounds.server.campaign_plan", fails)
        await scene.restart()
        await scene.rounds.tick()
        assert scene.rounds.running(CAMPAIGN.digest) is None
        await scene.database.close()

    with caplog.at_level(logging.ERROR, "ldpspatial"):
        asyncio.run(run())
    assert f"campaign {CAMPAIGN.digest} cannot be loaded: ZeroDivisionError" in caplog.text
