"""A session in a store: killed at every message, with drop-outs, and with clients who misbehave."""

import asyncio
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from client_sdk.rounds import ProtocolError, RoundDocument, Step
from ldpspatial.service.database import ChangedStoreError, DamagedStoreError
from ldpspatial.service.rounds.sessions import OverError, Session, packed, unpacked
from tests.support.round_sessions import DiedError, Mortal, Players, a_database, a_session, play


def modulus_sum(players: Players, survivors: set[int]) -> list[int]:
    total = players.vectors[sorted(survivors)].sum(axis=0) % (1 << players.document.bits)
    found: list[int] = total.tolist()
    return found


async def left_of(database: Mortal, name: str) -> int:
    """Return how many rows of messages and seats a session has."""
    rows = []
    for table in ("round_messages", "round_seats"):
        rows += await database.read(f"SELECT COUNT(*) FROM {table} WHERE session = $1", name)  # noqa: S608
    return sum(number for (number,) in rows)


async def restarted(database: Mortal, name: str, document: RoundDocument) -> Session:
    return await Session.load(database, name, document)


async def played_with_a_kill(database: Mortal, transaction: int, before: bool) -> bool:
    """Play a session whose server dies at one transaction; return whether it came to that.

    Client 4 fails after its shares. Everybody sends again what was not acknowledged.
    """
    document, name, session = await a_session(database)
    players = Players(document, name, session)
    database.transactions, database.dies_at, database.before = 0, transaction, before
    died = False
    for step in Step:
        waiting = [number for number, (at, _) in players.answers.items() if at == step]
        for number in waiting:
            if number == 4 and step >= Step.MASK:
                continue
            try:
                await session.take(step, number, players.answers[number][1])
            except DiedError:
                died = True
                session = await restarted(database, name, document)
                with suppress(OverError):  # of the last step: the sum was there before
                    await session.take(step, number, players.answers[number][1])
        try:
            await session.close_step(step)
        except DiedError:
            died = True
            session = await restarted(database, name, document)
            await session.close_step(step)
        for number in waiting:
            if number == 4 and step >= Step.MASK:
                continue
            data = session.answer(step, number) if session.state == "running" else b""
            assert data is not None
            players.next(number, data)
    again = await restarted(database, name, document)
    for each in (session, again):
        result = await each.result()
        assert (each.state, result.survivors, result.asked) == ("summed", 4, 5)
        assert result.total is not None
        assert result.total.tolist() == modulus_sum(players, {0, 1, 2, 3})
    assert players.told == {frozenset({0, 1, 2, 3})}
    assert await left_of(database, name) == 0
    return died


@pytest.mark.parametrize("before", [True, False])
def test_a_server_killed_at_any_transaction_goes_on_to_the_same_sum(
    tmp_path: Path, before: bool
) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        deaths = 0
        while await played_with_a_kill(database, deaths + 1, before):
            deaths += 1
        # Five messages in the first two steps, four in each of the others, and five closings.
        assert deaths == 2 * 5 + 3 * 4 + 5
        await database.close()

    asyncio.run(run())


@pytest.mark.parametrize("step", list(Step))
def test_one_may_fail_at_every_step(tmp_path: Path, step: Step) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, session = await a_session(database)
        players = Players(document, name, session)
        await play(players, session, silent={2: step})
        result = await session.result()
        survivors = {0, 1, 3, 4} if step <= Step.MASK else {0, 1, 2, 3, 4}
        assert session.state == "summed"
        assert result.survivors == len(survivors)
        assert result.total is not None
        assert result.total.tolist() == modulus_sum(players, survivors)
        assert len(players.told) == 1
        await database.close()

    asyncio.run(run())


@pytest.mark.parametrize("step", list(Step))
def test_below_the_threshold_nothing_is_revealed_and_nothing_is_kept(
    tmp_path: Path, step: Step
) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, session = await a_session(database)
        players = Players(document, name, session)
        await play(players, session, silent={1: step, 2: step})
        result = await session.result()
        assert session.state == "aborted"
        assert (result.asked, result.survivors, result.total) == (5, 0, None)
        assert await left_of(database, name) == 0
        again = await restarted(database, name, document)
        assert again.state == "aborted"
        for each in (session, again):
            with pytest.raises(OverError):
                each.answer(step, 0)
            with pytest.raises(OverError):
                await each.take(step, 0, b"")
        await database.close()

    asyncio.run(run())


def test_seats_that_stay_empty_are_failures(tmp_path: Path) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, session = await a_session(database, seats=4)
        players = Players(document, name, session)
        await play(players, session)
        result = await session.result()
        assert result.total is not None
        assert result.total.tolist() == modulus_sum(players, {0, 1, 2, 3})
        await database.close()

    asyncio.run(run())


def test_what_is_wrong_costs_its_sender_alone_and_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, session = await a_session(database)
        _, other_name, other = await a_session(database)
        players, strangers = Players(document, name, session), Players(document, other_name, other)
        for step in Step:
            bodies = {number: body for number, (at, body) in players.answers.items() if at == step}
            good = bodies[3]
            for body in (
                b"",
                b"\x00",
                good[:-1],
                good + b"\x00",
                bytes([step + 1]) + good[1:],
                good[:33] + (9).to_bytes(4, "big") + good[37:],  # in the name of a stranger
                bodies[0],  # in the name of another
                strangers.answers[3][1],  # of another session
            ):
                with pytest.raises(ProtocolError):
                    await session.take(step, 3, body)
            with pytest.raises(OverError):
                await session.take(step, 7, good)  # a seat that nobody has
            await session.take(step, 3, good)
            await session.take(step, 3, good)  # sent again
            with pytest.raises(ProtocolError, match="another message was taken"):
                await session.take(step, 3, good[:-1])
            for turn, playing in ((session, players), (other, strangers)):
                await _step(turn, playing, step)
        result = await session.result()
        assert result.total is not None
        assert result.total.tolist() == modulus_sum(players, {0, 1, 2, 3, 4})
        await database.close()

    asyncio.run(run())


async def _step(session: Session, players: Players, step: Step) -> None:
    """Let everybody send, and get what comes of it."""
    for number, (at, body) in players.answers.items():
        if at == step and (step < Step.REVEAL or session.state == "running"):
            await session.take(step, number, body)
    for number in players.answers if step < Step.REVEAL else ():
        data = session.answer(step, number)
        assert data is not None
        players.next(number, data)
        await session.take(step, number, b"late")  # closed, and it has been heard: no matter


def test_who_was_not_heard_in_time_is_out(tmp_path: Path) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, session = await a_session(database)
        players = Players(document, name, session)
        late = players.answers[4][1]
        for number in range(4):
            assert session.answer(Step.ADVERTISE, number) is None  # open
            await session.take(Step.ADVERTISE, number, players.answers[number][1])
        await session.close_step(Step.ADVERTISE)
        for call in (
            session.take(Step.ADVERTISE, 4, late),
            session.take(Step.SHARE, 4, late),
            session.take(Step.MASK, 0, late),
        ):
            with pytest.raises(OverError):
                await call
        for step, number in ((Step.ADVERTISE, 4), (Step.SHARE, 4), (Step.MASK, 0)):
            with pytest.raises(OverError):
                session.answer(step, number)
        await database.close()

    asyncio.run(run())


def test_two_processes_cannot_come_to_two_lists_of_survivors(tmp_path: Path) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        document, name, first = await a_session(database)
        players = Players(document, name, first)
        await play(players, first, until=Step.MASK)
        second = await restarted(database, name, document)  # in another process
        for number in range(4):
            await second.take(Step.MASK, number, players.answers[number][1])
        # The first has heard nobody: to close would be to abort, and is not done.
        with pytest.raises(ChangedStoreError):
            await first.close_step(Step.MASK)
        third = await restarted(database, name, document)
        await third.close_step(Step.MASK)
        # The second would put a fifth into its list. It is told that the step is closed.
        with pytest.raises(ChangedStoreError):
            await second.take(Step.MASK, 4, players.answers[4][1])
        for each in (first, second):
            await each.close_step(Step.MASK)  # finds out that it was
            for number in range(4):
                assert each.answer(Step.MASK, number) == third.answer(Step.MASK, number)
            with pytest.raises(OverError):
                each.answer(Step.MASK, 4)
        await database.close()

    asyncio.run(run())


def test_tokens_are_those_of_seats(tmp_path: Path) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        _, _, session = await a_session(database)
        _, _, other = await a_session(database)
        assert len({session.token(number) for number in session.seats}) == 5
        assert session.is_token(2, session.token(2))
        for wrong in (session.token(1), other.token(2), "", "\ud800", session.token(2).upper()):
            assert not session.is_token(2, wrong)
        assert not session.is_token(9, session.token(9))  # an empty seat
        await database.close()

    asyncio.run(run())


def test_a_sum_that_a_disk_changed_is_damage_and_not_another_process(tmp_path: Path) -> None:
    async def run() -> None:
        database = await a_database(tmp_path)
        total = np.array([0, 1, 2**61], dtype=np.int64)
        data = packed(total)
        assert unpacked(database, data).tolist() == total.tolist()
        with pytest.raises(DamagedStoreError, match="restore a back-up"):
            unpacked(database, data[:-1] + b"\x01")
        await database.close()

    asyncio.run(run())
