"""Campaigns over HTTP: devices with ledgers, a server that is made anew all the time, the map."""

import asyncio
import json
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from client_sdk import Device
from client_sdk.rounds import (
    Ask,
    Asked,
    Identity,
    Participant,
    ProtocolError,
    RoundDocument,
    Step,
)
from ldpspatial.errors import InputError
from ldpspatial.service.app import make_app
from ldpspatial.service.database import Statement, StoreError
from ldpspatial.service.limits import Limits
from ldpspatial.service.rounds import api
from ldpspatial.service.rounds.directory import enrolled, open_directory
from ldpspatial.service.rounds.server import (
    RoundServer,
    open_campaign,
    released,
    session_sizes,
)
from ldpspatial.service.rounds.sessions import Session
from ldpspatial.service.rounds.tables import end_rounds
from ldpspatial.service.store import make_store
from tests.support.aggregation_rounds import seeded
from tests.support.round_campaigns import CAMPAIGN, PEOPLE, ROUNDS, Clock, opened, people, started
from tests.support.round_devices import HERE, START, a_campaign
from tests.support.round_sessions import Mortal
from tests.support.round_visits import Visitor, app_of, call


async def left_in(database: Mortal) -> int:
    """Return how many rows of people the store has, but for who is enrolled."""
    rows = []
    for table in ("round_messages", "round_seats", "round_requests"):
        rows += await database.read(f"SELECT COUNT(*) FROM {table}")  # noqa: S608
    return sum(number for (number,) in rows)


CAME_OF = {
    # Epsilon is large for 64 cells: all of these are asked, by everybody.
    "distributed-levels": ([64, 64], ("18", 1, 17, 3)),
    # Two cohorts are the first turn, 12 people; the last asks with the tree that comes of it.
    "adaptive-hierarchical": ([4, 4], ("12 6", 2, 6, 3)),
}


@pytest.mark.parametrize("release", CAME_OF)
def test_a_campaign_of_devices_comes_to_a_map_though_server_and_devices_are_killed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, release: str,
) -> None:  # fmt: skip
    async def run() -> None:
        database, directory = await opened(tmp_path, release=release)
        visitors = people(tmp_path / "devices", directory, monkeypatch)
        gone = visitors[3]  # of the first round: it never comes back after its shares
        documents: dict[int, RoundDocument] = {}
        turns = 0
        while clock.seconds < START + ROUNDS * 3600:
            if turns % 3 == 0:  # the server was killed
                rounds = await started(database, clock)
                app = app_of(database, rounds)
            await rounds.tick()
            for number, visitor in enumerate(visitors):
                if visitor is gone and visitor.participant.due == Step.MASK:
                    continue
                one = visitor.participant
                if visitor.ask is not None and (one.is_open() or one.spent()):
                    if (turns + number) % 4 == 0:  # this device was killed, too
                        folder = tmp_path / "devices" / str(number)
                        device = Device.open(folder)
                        visitor.participant = Participant.open(device, CAMPAIGN.digest)
                        visitor.begin()
                    await visitor.step(app)
            running = rounds.running(CAMPAIGN.digest)
            assert running is not None
            if running.document is not None:
                documents[running.document.round] = running.document
            turns += 1
            clock.seconds += 150
        await rounds.tick()
        _, found = await released(database, CAMPAIGN.digest)
        assert [v.summed for v in visitors] == [True if v is not gone else None for v in visitors]
        for visitor in visitors:
            assert visitor.participant.spent() == (0 if visitor is gone else 12_000_000)
        told = tuple(found.facts[name] for name in ("asked", "rounds", "survivors", "cohorts"))
        lengths = [d.length for d in documents.values()]
        assert (lengths[:2], told) == CAME_OF[release]
        assert (documents[3].asked != documents[1].asked) == ("adaptive" in release)
        row, column = CAMPAIGN.grid.cell(*HERE)
        assert found.density[row, column] == found.density.max()
        assert (found.claim.epsilon, found.claim.neighbours) == (12.0, "zero")
        assert "whatever the server does" in found.claim.conditions[-1]
        assert await left_in(database) == 0
        assert await enrolled(database, CAMPAIGN.digest) == ROUNDS * PEOPLE
        await database.close()

    with caplog.at_level(logging.DEBUG, "ldpspatial"):
        asyncio.run(run())
    assert caplog.records == []  # nothing of anybody


def test_a_round_without_enough_people_reveals_nothing_and_the_campaign_goes_on(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        database, directory = await opened(tmp_path)
        visitors = people(tmp_path / "devices", directory, monkeypatch, each=4)
        rounds = await started(database, clock)
        app = app_of(database, rounds)
        first = [v for v in visitors if v.participant.number == 1]
        for seconds in (10, 400, 1000):
            clock.seconds = START + seconds
            await rounds.tick()
            for visitor in first:
                await visitor.step(app)
        # Four of six, where five are needed: nobody gets a seat, and nobody has spent anything.
        assert [v.summed for v in first] == [False] * 4
        assert sum(v.participant.spent() for v in visitors) == 0
        await rounds.tick()
        # The server is away for the second round, and comes back in the third.
        rounds = await started(database, clock)
        clock.seconds = START + 2 * 3600 + 10
        await rounds.tick()
        running = rounds.running(CAMPAIGN.digest)
        assert running is not None
        assert running.document is not None
        assert running.document.round == 3
        app = app_of(database, rounds)
        told = await call(app, Ask("GET", f"/rounds/{CAMPAIGN.digest}/2"))
        assert told.status == 410
        assert b"the server was away until it was too late to begin" in told.body
        _, found = await released(database, CAMPAIGN.digest)
        assert found.density.tolist() == [[1 / 64] * 8] * 8
        assert found.facts["rounds"] == 0
        await database.close()

    asyncio.run(run())


@pytest.mark.parametrize(("lost_at", "transaction"), [(10, 1), (1000, 1), (1000, 2)])
def test_a_server_that_missed_what_the_store_did_takes_it_up(
    tmp_path: Path, clock: Clock, lost_at: int, transaction: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round was opened, dealt or added up: the answer was lost, or another process did it."""

    async def run() -> None:
        database, _ = await opened(tmp_path)
        one, other = await started(database, clock), await started(database, clock)
        do = database.inner.run

        done = []

        async def loses(statements: Sequence[Statement]) -> list[int]:
            done.append(await do(statements))
            if len(done) == transaction:
                raise StoreError("the connection was lost")
            return done[-1]

        async def states() -> list[tuple[str, int | None, int]]:
            found = []
            for server in (one, other):
                now = server.running(CAMPAIGN.digest)
                assert now is not None
                round_ = now.document and now.document.round
                found.append((now.state, round_, now.plan.rounds_taken))
            return found

        for seconds in (10, 1000, 3700, 4700):
            clock.seconds = START + seconds
            if seconds == lost_at:
                with monkeypatch.context() as patch:
                    patch.setattr(database.inner, "run", loses)
                    with pytest.raises(StoreError, match="connection was lost"):
                        await one.tick()
            for server in (one, other, one, other):
                with suppress(StoreError):  # the store is further: it looks again
                    await server.tick()
            first, second = await states()
            assert first == second
        assert first == ("over", None, 2)
        await database.close()

    asyncio.run(run())


def test_a_campaign_that_is_opened_while_the_server_runs_is_taken_up(
    tmp_path: Path, clock: Clock
) -> None:
    later = a_campaign(rounds=2, most_clients=PEOPLE, least_honest=3)

    async def run() -> None:
        database, directory = await opened(tmp_path)
        rounds = await started(database, clock)
        await open_campaign(database, later, directory, people=24, tolerated=0.2)
        assert rounds.running(later.digest) is None
        await rounds.tick()
        found = rounds.running(later.digest)
        assert found is not None
        assert found.document is not None
        assert found.document.round == 1
        first = rounds.running(CAMPAIGN.digest)
        await rounds.tick()
        assert rounds.running(CAMPAIGN.digest) is first  # what runs is not loaded again
        await database.close()

    asyncio.run(run())


# --- requests that are refused


async def seated(
    database: Mortal, directory: bytes, folder: Path, clock: Clock, patch: pytest.MonkeyPatch
) -> tuple[RoundServer, list[Visitor]]:
    """Let the six of the first round get seats, and stop before their first message."""
    visitors = [v for v in people(folder, directory, patch, PEOPLE) if v.participant.number == 1]
    rounds = await started(database, clock)
    await rounds.tick()
    app = app_of(database, rounds)
    for visitor in visitors:
        await visitor.step(app)
    clock.seconds = START + 911
    await rounds.tick()
    for visitor in visitors:
        while visitor.ask is not None and "sessions" not in visitor.ask.path:
            visitor.ask = visitor._visit.send(await call(app, visitor.ask))
    return rounds, visitors


def test_a_hostile_device_is_refused_and_costs_nobody_else(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        database, directory = await opened(tmp_path)
        rounds, visitors = await seated(database, directory, tmp_path / "d", clock, monkeypatch)
        app = app_of(database, rounds)
        mine, theirs = visitors[0].ask, visitors[1].ask
        assert mine is not None
        assert theirs is not None
        session, seat = theirs.path.split("/")[3], theirs.path.split("/")[5]
        refused = [
            (401, Ask("POST", theirs.path, theirs.body, mine.token)),  # the seat of another
            (401, Ask("POST", theirs.path, theirs.body)),
            (401, Ask("GET", theirs.path, b"", mine.token)),
            (401, Ask("POST", theirs.path.rsplit("/", 1)[0] + "/77", theirs.body, theirs.token)),
            (422, Ask("POST", mine.path, theirs.body, mine.token)),
            (422, Ask("POST", mine.path, b"nonsense", mine.token)),
            (413, Ask("POST", mine.path, bytes(1 << 16), mine.token)),
            (410, Ask("POST", mine.path.replace("/0/", "/4/"), mine.body, mine.token)),
            (404, Ask("POST", mine.path.replace("/0/", "/5/"), mine.body, mine.token)),
            (404, Ask("POST", mine.path.replace("/0/", "/x/"), mine.body, mine.token)),
            (410, Ask("POST", mine.path.replace(session, "0" * 32), mine.body, mine.token)),
            (422, Ask("POST", f"/rounds/sessions/{session}/identities/{seat}",
                      bytes(4 * 9), theirs.token)),
            (422, Ask("POST", f"/rounds/sessions/{session}/identities/{seat}",
                      (77).to_bytes(4, "big"), theirs.token)),
            (422, Ask("POST", f"/rounds/sessions/{session}/identities/{seat}",
                      b"\0", theirs.token)),
        ]  # fmt: skip
        for status, ask in refused:
            assert (await call(app, ask)).status == status, ask
        for _ in range(30):
            for visitor in visitors:
                await visitor.step(app)
        assert [v.summed for v in visitors] == [True] * PEOPLE
        await database.close()

    asyncio.run(run())


def test_seats_and_enrolment_are_for_those_who_may(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        database, directory = await opened(tmp_path)
        visitors = people(tmp_path / "d", directory, monkeypatch, 1)
        rounds = await started(database, clock)
        app = app_of(database, rounds)
        digest = CAMPAIGN.digest
        first = visitors[0].participant
        told = await call(app, Ask("POST", f"/directory/{digest}", first.identity))
        again = await call(app, Ask("POST", f"/directory/{digest}", first.identity))
        assert told.body == again.body
        assert len(told.body) == 132
        request = first.seat_request(told.body)
        early = await call(app, Ask("GET", f"/rounds/{digest}/1"))
        assert (early.status, early.retry_after_s) == (503, 1)
        await rounds.tick()
        document = await call(app, Ask("GET", f"/rounds/{digest}/1"))
        RoundDocument.from_json(document.body.decode(), CAMPAIGN)
        shown = await call(app, Ask("GET", f"/rounds/{digest}"))
        assert shown.body.decode() == CAMPAIGN.to_json()
        for status, ask in (
            (202, Ask("POST", f"/rounds/{digest}/1/seat", request)),
            (422, Ask("POST", f"/rounds/{digest}/2/seat", request)),  # signed for another round
            (422, Ask("POST", f"/rounds/{digest}/1/seat", request[:-1])),
            (422, Ask("POST", f"/rounds/{digest}/1/seat", request[:-1] + bytes([request[-1] ^ 1]))),
            (413, Ask("POST", f"/rounds/{digest}/1/seat", bytes(5000))),
            (422, Ask("POST", f"/directory/{digest}", bytes(31))),
            (422, Ask("POST", f"/directory/{digest}", bytes(64))),  # keys that everybody has
            (404, Ask("POST", f"/directory/{'0' * 64}", first.identity)),
            (404, Ask("GET", f"/rounds/{'0' * 64}")),
            (404, Ask("GET", "/rounds/xyz")),
            (410, Ask("GET", f"/rounds/{digest}/4")),
        ):
            assert (await call(app, ask)).status == status, ask
        # The directory is full at a hundred people.
        statuses = [
            (
                await call(
                    app, Ask("POST", f"/directory/{digest}", Identity.draw(seeded(number)).public)
                )
            ).status
            for number in range(100)
        ]
        assert statuses == [200] * 99 + [403]
        limited = app_of(database, rounds, Limits(requests_a_minute=1))
        ask = Ask("GET", f"/rounds/{digest}")
        assert [(await call(limited, ask)).status for _ in range(2)] == [200, 429]
        await database.close()

    asyncio.run(run())


def test_an_identity_asks_for_a_seat_in_one_round_of_a_campaign(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that was changed asks in a second round, too; a ledger would not let it."""

    async def run() -> None:
        database, directory = await opened(tmp_path)
        rounds, visitors = await seated(database, directory, tmp_path / "d", clock, monkeypatch)
        changed = visitors[0]
        changed.participant.number = 2
        clock.seconds = START + 3600
        for seconds in (0, 10):  # the first round ends without its vectors; the second gathers
            clock.seconds += seconds
            await rounds.tick()
        running = rounds.running(CAMPAIGN.digest)
        assert running is not None
        assert running.state == "gathering"
        own = await call(
            app_of(database, rounds),
            Ask("POST", f"/directory/{CAMPAIGN.digest}", changed.participant.identity),
        )
        second = f"/rounds/{CAMPAIGN.digest}/2/seat"
        ask = Ask("POST", second, changed.participant.seat_request(own.body))
        for server in (rounds, await started(database, clock)):  # after a restart, too
            told = await call(app_of(database, server), ask)
            assert (told.status, b"in another round of the campaign" in told.body) == (409, True)
        changed.begin()
        with pytest.raises(ProtocolError, match="asked for a seat in another round"):
            await changed.step(app_of(database, rounds))
        # Of whom the store now knows which round they asked for, and nothing else.
        rows = await database.read("SELECT round, certificate FROM round_requests")
        assert rows == [(1, b"")] * PEOPLE
        clock.seconds = START + ROUNDS * 3600
        for _ in range(2):
            await rounds.tick()
        assert await left_in(database) == 0
        await database.close()

    asyncio.run(run())


class Reversing:
    """Shuffles in a way that can be told from none."""

    def shuffle(self, people: list[bytes]) -> None:
        people.reverse()


@pytest.mark.parametrize("copied", [False, True])
def test_the_order_in_which_people_asked_for_seats_is_not_kept(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    """Neither after seats were dealt nor in a copy made before; SQLite counts rows as they come."""

    async def run() -> None:
        database, directory = await opened(tmp_path)
        rounds = await started(database, clock)
        await rounds.tick()
        app = app_of(database, rounds)
        visitors = people(tmp_path / "d", directory, monkeypatch)
        visitors = [v for v in visitors if v.participant.number == 1]
        enrol = f"/directory/{CAMPAIGN.digest}"
        for visitor in visitors:  # who are numbered in this order
            await call(app, Ask("POST", enrol, visitor.participant.identity))
        order = [3, 0, 5, 1, 4, 2]
        for number in order:
            await visitors[number].step(app)

        sql = "SELECT person, round, certificate FROM round_requests ORDER BY rowid"
        asked = [number for number, *_ in await database.read(sql)]
        assert [asked.index(number) for number in sorted(asked)] == [
            order.index(number) for number in range(PEOPLE)
        ]
        found = "SELECT certificate FROM round_requests WHERE campaign = $1 AND round = 1"
        certificates = [each for (each,) in await database.read(found, CAMPAIGN.digest)]
        if copied:
            await end_rounds(database)
        else:
            monkeypatch.setattr(secrets, "SystemRandom", Reversing)
            clock.seconds = START + 911
            await rounds.tick()
            seats = await database.read("SELECT certificate FROM round_seats ORDER BY number")
            assert [seat for (seat,) in seats] == certificates[::-1]  # as they were shuffled
        assert await database.read(sql) == [(number, 1, b"") for number in sorted(asked)]
        await database.close()

    asyncio.run(run())


def test_in_a_copy_of_the_last_round_it_is_not_kept_who_asked_for_which(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        database, directory = await opened(tmp_path)
        rounds, _ = await seated(database, directory, tmp_path / "d", clock, monkeypatch)
        for number in (1, 2):
            await end_rounds(database)
            assert await left_in(database) == PEOPLE  # or they could ask again
            rounds = await started(database, clock)
            clock.seconds = START + number * 3600 + 10
            await rounds.tick()
        await end_rounds(database)
        assert await left_in(database) == 0
        await database.close()

    asyncio.run(run())


def test_a_request_waits_for_the_step_to_be_closed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        database, directory = await opened(tmp_path)
        rounds, visitors = await seated(database, directory, tmp_path / "d", clock, monkeypatch)
        app = app_of(database, rounds)
        monkeypatch.setattr(api, "WAIT_S", 60.0)
        asks = [v.ask for v in visitors if v.ask is not None]
        await call(app, asks[0])
        waiting = asyncio.create_task(call(app, Ask("GET", asks[0].path, b"", asks[0].token)))
        for ask in asks[1:]:
            assert not waiting.done()
            await call(app, ask)
        told = await waiting
        assert (told.status, told.body[:1]) == (200, b"\x00")
        await database.close()

    asyncio.run(run())


def test_a_round_whose_sessions_cannot_be_read_is_not_added_up_without_them(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        database, directory = await opened(tmp_path)
        visitors = people(tmp_path / "d", directory, monkeypatch)
        rounds = await started(database, clock)
        await rounds.tick()
        app = app_of(database, rounds)
        first = [v for v in visitors if v.participant.number == 1]
        for visitor in first:
            await visitor.step(app)
        clock.seconds = START + 911

        async def fail(*_: object) -> Session:
            raise StoreError("the store is locked")

        with monkeypatch.context() as patch:
            patch.setattr(Session, "load", fail)
            for _ in range(2):
                with pytest.raises(StoreError):
                    await rounds.tick()
                for visitor in first:
                    await visitor.step(app)  # told to come again
        await rounds.tick()
        for _ in range(30):
            for visitor in first:
                await visitor.step(app)
        assert [v.summed for v in first] == [True] * PEOPLE
        await database.close()

    asyncio.run(run())


# --- what a campaign needs


def test_people_are_dealt_so_that_no_session_is_too_small() -> None:
    for number, sizes in (
        (0, []), (5, []), (6, [6]), (9, [9]), (10, [9]), (13, [9]), (14, [7, 7]),
        (15, [8, 7]), (18, [9, 9]), (20, [9, 9]), (22, [8, 7, 7]),
    ):  # fmt: skip
        assert session_sizes(number, 6, 9) == sizes
    for number in range(6, 400):
        sizes = session_sizes(number, 6, 9)
        assert sum(sizes) <= number
        assert min(sizes) >= (7 if len(sizes) > 1 else 6)
        assert max(sizes) <= 9
        if number >= 42:  # seats for all
            assert sum(sizes) == number


def test_a_campaign_is_opened_once_and_only_if_it_can_be_held(tmp_path: Path) -> None:
    async def run() -> None:
        database, directory = await opened(tmp_path)
        with pytest.raises(InputError, match="campaign must be new"):
            await open_campaign(database, CAMPAIGN, directory, people=24)
        with pytest.raises(InputError, match="directory must be new"):
            await open_directory(database, CAMPAIGN.digest, 10)
        with pytest.raises(InputError, match="tolerated must"):
            await open_campaign(database, CAMPAIGN, directory, people=24, tolerated=1.0)
        with pytest.raises(InputError, match="digest must be of a campaign that the store has"):
            await released(database, "0" * 64)
        await database.close()

    asyncio.run(run())
    assert json.loads(CAMPAIGN.to_json())["most_clients"] == PEOPLE
    assert Asked(levels=(1,)).length == 4


def test_the_service_runs_the_rounds_of_its_store(tmp_path: Path, clock: Clock) -> None:
    async def run() -> None:
        database, _ = await opened(tmp_path)
        await database.close()
        await (await make_store(tmp_path / "other.db")).close()
        statuses = []
        for name in ("rounds.db", "other.db"):
            app = make_app(str(tmp_path / name), Limits(requests_a_minute=0))
            async with app.router.lifespan_context(app):
                for path in (f"/rounds/{CAMPAIGN.digest}", "/health"):
                    statuses.append((await call(app, Ask("GET", path))).status)
        assert statuses == [200, 200, 404, 200]

    asyncio.run(run())
