"""What operators and participants are told of rounds without a sum."""

import asyncio
from pathlib import Path

import pytest

from client_sdk.rounds import Ask, Step
from ldpspatial.service.database import Statement
from ldpspatial.service.rounds.accounts import accounts, why_no_seat, why_over
from ldpspatial.service.rounds.server import RoundServer
from ldpspatial.service.rounds.tables import end_rounds
from tests.support import round_sessions
from tests.support.round_campaigns import CAMPAIGN, PEOPLE, Clock, opened, people, started
from tests.support.round_devices import START, a_round
from tests.support.round_sessions import Mortal, Players, a_database, a_session, play
from tests.support.round_visits import app_of, call

DIGEST = CAMPAIGN.digest
NO_VECTOR = " It took no vector of anybody."


async def hold(database: Mortal, name: str) -> None:
    """Put the round of a session into the store, as the server does."""
    ((digest,),) = await database.read("SELECT campaign FROM round_sessions")
    ((asked,),) = await database.read("SELECT asked FROM round_sessions")
    sql = (
        "INSERT INTO round_rounds (campaign, number, document, state, came) "
        "VALUES ($1, 1, $2, 'summing', $3)"
    )
    text = a_round(round_sessions.CAMPAIGN, 5, 4).to_json()
    await database.run([Statement(sql, [(digest, text, asked)])])


@pytest.mark.parametrize(
    ("step", "heard", "why"),
    [
        (Step.ADVERTISE, (3, 0, 0, 0, 0), "3 sent keys, and 4 are needed"),
        (Step.SHARE, (5, 3, 0, 0, 0), "3 sent shares, and 4 are needed"),
        (Step.MASK, (5, 5, 3, 0, 0), "3 sent vectors, and 4 are needed"),
        (Step.CONFIRM, (5, 5, 5, 3, 0), "3 sent confirmations, and 4 are needed"),
        (Step.REVEAL, (5, 5, 5, 5, 3), "3 sent openings, and 4 are needed"),
    ],
)
def test_it_is_told_at_which_step_how_many_were_left(
    tmp_path: Path, step: Step, heard: tuple[int, ...], why: str
) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, session = await a_session(database)
        await hold(database, name)
        players = Players(document, name, session)
        await play(players, session, silent={1: step, 2: step})
        ((digest,),) = await database.read("SELECT campaign FROM round_sessions")
        (found,) = await accounts(database, digest)
        assert (found.came, found.asked, found.heard, found.survivors) == (5, 5, heard, 0)
        assert found.without == (f"1 of 1 sessions came to no sum: {why}",)
        told = await why_over(database, name)
        without = NO_VECTOR if step < Step.MASK else ""
        assert told == f"The session is over without a sum: {why}.{without}"
        await database.close()

    asyncio.run(run())


def test_of_a_sum_it_is_told_who_was_lost_on_the_way(tmp_path: Path) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, session = await a_session(database)
        await hold(database, name)
        players = Players(document, name, session)
        assert "gone on without this device" in await why_over(database, name)
        await play(players, session, silent={2: Step.CONFIRM})
        ((digest,),) = await database.read("SELECT campaign FROM round_sessions")
        (found,) = await accounts(database, digest)
        assert (found.heard, found.survivors, found.without) == ((5, 5, 5, 4, 4), 5, ())
        assert await why_over(database, name) == "The session is over, and has its sum."
        assert await why_over(database, "0" * 32) == "There is no such session here."
        await database.close()

    asyncio.run(run())


def test_shares_that_do_not_fit_are_named(tmp_path: Path) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, session = await a_session(database)
        await hold(database, name)
        players = Players(document, name, session)
        await play(players, session, until=Step.REVEAL)
        for number, (_, body) in players.answers.items():
            wrong = body[:-1] + bytes([body[-1] ^ 1]) if number < 2 else body
            await session.take(Step.REVEAL, number, wrong)
        told = "what people revealed does not open it"
        assert await why_over(database, name) == f"The session is over without a sum: {told}."
        await database.close()

    asyncio.run(run())


def test_who_finds_no_seat_or_no_sum_is_told_why_also_after_a_restart(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of six who asked five go on, one after the other fails; the next round finds nobody."""

    async def run() -> None:
        database, directory = await opened(tmp_path)
        visitors = people(tmp_path / "d", directory, monkeypatch, cohorts=1)
        rounds = await started(database, clock)

        async def told(server: RoundServer, ask: Ask) -> tuple[int, str]:
            found = await call(app_of(database, server), ask)
            return found.status, found.body.decode()

        await rounds.tick()
        for visitor in visitors:
            await visitor.step(app_of(database, rounds))
        seat = visitors[0].ask
        assert seat is not None
        clock.seconds = START + 911
        await rounds.tick()
        for visitor in visitors[:4]:
            await visitor.step(app_of(database, rounds))
        message = visitors[0].ask
        assert message is not None
        running = rounds.running(DIGEST)
        assert running is not None
        assert running.sessions is not None
        await running.sessions[0].close_step(Step.ADVERTISE)
        why = f"4 sent keys, and 5 are needed.{NO_VECTOR}"
        for server in (rounds, await started(database, clock)):  # tokens are deleted
            status, text = await told(server, message)
            assert (status, why in text) == (410, True), text
        await rounds.tick()
        for ask, part in ((message, why), (seat, "Seats were dealt before this device asked")):
            status, text = await told(rounds, ask)
            assert (status, part in text) == (410, True), text
        for visitor in visitors:
            await visitor.step(app_of(database, rounds))
        assert [v.summed for v in visitors] == [False] * PEOPLE
        clock.seconds = START + 3600
        await rounds.tick()
        clock.seconds = START + 3600 + 910
        await rounds.tick()
        clock.seconds = START + 3 * 3600
        await rounds.tick()
        first, second, third = await accounts(database, DIGEST)
        assert (first.came, first.asked, first.heard) == (6, 6, (4, 0, 0, 0, 0))
        assert second.without == ("it was not held: 0 asked for seats, and 5 are needed",)
        assert third.without == (
            "it was not held: the server was away until it was too late to begin",
        )
        assert await why_no_seat(database, DIGEST, 2) == (
            "The round was not held: 0 asked for seats, and 5 are needed."
        )
        await database.close()

    asyncio.run(run())


def test_of_a_copy_it_is_told_that_what_ran_ended_in_it(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        database, directory = await opened(tmp_path)
        visitors = people(tmp_path / "d", directory, monkeypatch, cohorts=1)
        rounds = await started(database, clock)
        await rounds.tick()
        for visitor in visitors:
            await visitor.step(app_of(database, rounds))
        await end_rounds(database)
        (found,) = await accounts(database, DIGEST)
        assert (found.came, found.asked) == (6, 0)
        assert found.without == ("it was not held: it ended in a copy of the store",)
        await database.close()

    asyncio.run(run())
