"""A round over HTTP in which everything is killed at every message: server, devices, answers."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Device
from client_sdk.rounds import Ask, Campaign, Participant, Step, Told
from ldpspatial.release.distributed.campaigns import plan
from ldpspatial.service.database import Statement
from ldpspatial.service.rounds.accounts import accounts
from tests.support.round_campaigns import CAMPAIGN, PEOPLE, Clock, opened, people, started
from tests.support.round_devices import START, a_campaign
from tests.support.round_sessions import DiedError, Mortal
from tests.support.round_visits import app_of, call


class Dying(Mortal):
    """A database whose process ends just before each transaction, and again just after it.

    What is tried a third time is done; what was done the second time need not be tried again.
    """

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.deaths: Counter[str] = Counter()  # by what was to be written
        self._tried: Counter[object] = Counter()

    async def run(self, statements: Sequence[Statement]) -> list[int]:
        first = statements[0].sql
        # A session has another name whenever it is dealt; who enrols, the next number that is free.
        named = statements[:1] if first.startswith("UPDATE round_rounds") else statements[:2]
        what: object = tuple((each.sql, *map(tuple, each.rows)) for each in named)
        if "round_identities" in first:
            what = statements[0].rows[0][2]
        self._tried[what] += 1
        table = first.split("round_")[1].split()[0]
        if self._tried[what] == 1:
            self.deaths[f"before {table}"] += 1
            raise DiedError
        found = await self.inner.run(statements)
        if self._tried[what] == 2:
            self.deaths[f"after {table}"] += 1
            raise DiedError
        return found


class Play:
    """People, and a server that is started again whenever it has died.

    Attributes
    ----------
    said : mapping of (person, step) to set of bytes
        What each has sent as its message of a step.
    killed : list of set
        Requests at which each person's device was killed; of the first two alone.
    neighbours : list of set of bytes
        Whose identities each has asked for, in one request.
    """

    def __init__(
        self, folder: Path, clock: Clock, lost: str, campaign: Campaign = CAMPAIGN
    ) -> None:
        self._folder, self._clock = folder, clock
        self._lost, self._campaign = lost, campaign
        self.size = campaign.most_clients
        self.said: dict[tuple[int, Step], set[bytes]] = defaultdict(set)
        self.killed: list[set[tuple[str, str]]] = [set() for _ in range(self.size)]
        self.neighbours: list[set[bytes]] = [set() for _ in range(self.size)]

    async def begin(self, patch: pytest.MonkeyPatch, location: str) -> None:
        store, directory = await opened(self._folder, self._campaign, location)
        self.visitors = people(
            self._folder / "d", directory, patch, self.size, cohorts=1, campaign=self._campaign
        )
        self.database = Dying(store.inner)
        self._server = await started(self.database, self._clock)

    async def play(self) -> None:
        """Let everybody go on until the round is over."""
        for turn in range(150):
            if turn == 30:  # everybody has asked for a seat
                self._clock.seconds = START + 2260
            await self._tick()
            for number in range(self.size):
                await self._go_on(number)

    async def _tick(self) -> None:
        try:
            await self._server.tick()
        except DiedError:
            self._server = await started(self.database, self._clock)

    async def _go_on(self, number: int) -> None:
        """Let one person ask until the server says to wait, or dies."""
        visitor = self.visitors[number]
        while visitor.ask is not None:
            ask = visitor.ask
            dies = number < 2 and (ask.method, ask.path) not in self.killed[number]
            if dies:
                self.killed[number].add((ask.method, ask.path))
            if dies and self._lost == "request":
                self._reopen(number)
                continue
            told = await self._told(number, ask)
            if told is None:
                return  # the same is asked again
            if dies:
                self._reopen(number)
                continue
            try:
                visitor.ask = visitor._visit.send(told)
            except StopIteration as end:
                visitor.ask, visitor.summed = None, end.value
                return
            if visitor.ask.wait_s:
                return

    async def _told(self, number: int, ask: Ask) -> Told | None:
        parts = ask.path.split("/")
        if ask.method == "POST" and parts[2] == "sessions" and parts[4] != "identities":
            self.said[number, Step(int(parts[4]))].add(ask.body)
        if parts[-2] == "identities":
            self.neighbours[number].add(ask.body)
        try:
            return await call(app_of(self.database, self._server), ask)
        except DiedError:
            self._server = await started(self.database, self._clock)
            return None

    def _reopen(self, number: int) -> None:
        """Kill a device and start it."""
        device = Device.open(self._folder / "d" / str(number))
        self.visitors[number].participant = Participant.open(device, self._campaign.digest)
        self.visitors[number].begin()


async def check(play: Play, campaign: Campaign) -> None:
    """Check that there is one sum of everybody, who paid once and said one thing in each step."""
    assert [visitor.summed for visitor in play.visitors] == [True] * play.size
    assert [v.participant.spent() for v in play.visitors] == [12_000_000] * play.size
    assert {len(bodies) for bodies in play.said.values()} == {1}
    assert play.said.keys() == {(n, step) for n in range(play.size) for step in Step}
    first, *_ = await accounts(play.database, campaign.digest)
    assert (first.heard, first.survivors, first.without) == ((play.size,) * 5, play.size, ())
    # Enrolment, document, seat, certificates, and five messages with their answers.
    assert [len(each) for each in play.killed[:3]] == [14, 14, 0]


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_all_are_killed_at_every_message_and_come_to_one_sum(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, location: str, lost: str
) -> None:
    """The server dies around every transaction; two devices at every request of theirs.

    These are killed before they send it, or when the server has answered it, before they know.
    """

    async def run() -> None:
        play = Play(tmp_path, clock, lost)
        await play.begin(monkeypatch, location)
        await play.play()
        await check(play, CAMPAIGN)
        for when in ("before", "after"):
            assert {k: n for k, n in play.database.deaths.items() if k.startswith(when)} == {
                f"{when} identities": PEOPLE, f"{when} requests": PEOPLE,
                f"{when} rounds": 3,  # opened, dealt, over
                f"{when} sessions": PEOPLE * 5 + 5,  # messages, and closings of steps
            }  # fmt: skip
        await play.database.close()

    asyncio.run(run())


def test_on_a_circle_too_and_each_device_asks_for_its_neighbours_alone(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is whose neighbour is drawn; a server that was killed must draw the same again."""
    campaign = a_campaign(
        rounds=1, most_clients=12, least_honest=3, micro_epsilon=12_000_000, sensitivity=1,
        server="honest",
    )  # fmt: skip
    monkeypatch.setattr(plan, "ALL_NEIGHBOURS", 0)

    async def run() -> None:
        play = Play(tmp_path, clock, "answer", campaign)
        await play.begin(monkeypatch, str(tmp_path / "circle.db"))
        await play.play()
        await check(play, campaign)
        for asked in play.neighbours:
            (numbers,) = asked
            assert len(numbers) == 4 * 4  # four neighbours, whatever was killed
        await play.database.close()

    asyncio.run(run())
