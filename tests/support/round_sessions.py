"""Sessions of rounds in a store, with clients that have no ledger, for tests of the server."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from client_sdk.rounds import Campaign, Client, RoundDocument, SigningKey, Step
from client_sdk.rounds.shared import (
    Certificate,
    Confirmations,
    Identity,
    KeyList,
    SharesIn,
    Survivors,
)
from ldpspatial.release.distributed.campaigns import campaign_plan
from ldpspatial.service.database import Database, Row, Statement
from ldpspatial.service.rounds.directory import enrol, open_directory
from ldpspatial.service.rounds.server import SUMMING, open_campaign
from ldpspatial.service.rounds.sessions import OverError, Session, new_session
from ldpspatial.service.rounds.tables import make_round_tables
from ldpspatial.service.store import make_store, open_store
from tests.support.aggregation_rounds import seeded
from tests.support.round_devices import a_campaign, a_round

CAMPAIGN = a_campaign()
SEATED = a_campaign(most_clients=5, sensitivity=1)
FOR_CELLS = "distributed-levels:aim=cells"


class DiedError(BaseException):
    """What stands for the end of a process."""


class Mortal:
    """A database whose process ends at the n-th transaction, just before or just after it."""

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.transactions = 0
        self.dies_at: int | None = None
        self.before = True

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def types(self) -> Any:
        return self.inner.types

    async def run(self, statements: Sequence[Statement]) -> list[int]:
        self.transactions += 1
        dies = self.transactions == self.dies_at
        if dies and self.before:
            raise DiedError
        found = await self.inner.run(statements)
        if dies:
            raise DiedError
        return found

    async def read(self, sql: str, *values: Any) -> list[Row]:
        return await self.inner.read(sql, *values)

    async def has_table(self, name: str) -> bool:
        return await self.inner.has_table(name)

    async def tidy(self, everything: bool = False) -> bool:
        return await self.inner.tidy(everything)

    async def close(self) -> None:
        await self.inner.close()


async def a_database(folder: Path, location: str | None = None) -> Mortal:
    """Return a store with the tables of rounds, at a location or else in a file of a folder."""
    at = folder / "rounds.db" if location is None else location
    store = await make_store(at)
    await store.close()
    store = await open_store(at)
    await make_round_tables(store.database)
    return Mortal(store.database)


class Players:
    """Clients of one session: each keeps its last answer and sends it until there is one to it.

    Attributes
    ----------
    told : set of frozenset of int
        Every list of survivors that anybody was told.
    """

    def __init__(self, document: RoundDocument, name: str, session: Session, seed: int = 0) -> None:
        self.document, self.name = document, name
        terms = document.terms(bytes.fromhex(name))
        keys = [Identity.draw(seeded(100 + number)) for number in session.seats]
        directory = {number: key.public for number, key in enumerate(keys)}
        for number, certificate in session.seats.items():
            assert certificate.identity == directory[number]
        self.clients = [
            Client(terms, number, key, directory, seeded(200 + seed + number))  # type: ignore[arg-type]
            for number, key in enumerate(keys)
        ]
        rng = np.random.default_rng(seed)
        self.vectors = rng.integers(0, terms.modulus, (len(keys), terms.length))
        self.told: set[frozenset[int]] = set()
        self.answers: dict[int, tuple[Step, bytes]] = {
            number: (Step.ADVERTISE, client.advertise().to_bytes())
            for number, client in enumerate(self.clients)
        }

    def next(self, number: int, data: bytes) -> None:
        """Answer what the server sent for the last step."""
        client, (step, _) = self.clients[number], self.answers[number]
        terms = client.terms
        answer: Any
        if step == Step.ADVERTISE:
            answer = client.share(KeyList.from_bytes(data, terms))
        elif step == Step.SHARE:
            answer = client.mask(SharesIn.from_bytes(data, terms), self.vectors[number])
        elif step == Step.MASK:
            survivors = Survivors.from_bytes(data, terms)
            self.told.add(survivors.numbers)
            answer = client.confirm(survivors)
        elif step == Step.CONFIRM:
            answer = client.reveal(Confirmations.from_bytes(data, terms))
        else:
            return
        self.answers[number] = Step(step + 1), answer.to_bytes()


@dataclass
class Seated:
    """Somebody who has a seat in a session that a store holds.

    Attributes
    ----------
    key : Identity
        Of their identity.
    session : str
    seat : int
    token : str
    longest : int
        Bytes of a masked vector, and at most 256 more.
    """

    key: Identity
    session: str
    seat: int
    token: str
    longest: int


async def with_a_session(path: Path, campaign: Campaign = SEATED) -> Seated:
    """Put a campaign into a store, its directory, and a session of its first round: for cells."""
    store = await open_store(path)
    database = store.database
    await make_round_tables(database)
    directory = await open_directory(database, campaign.digest, 100)
    await open_campaign(database, campaign, directory, 24, 0.2, FOR_CELLS)
    document = campaign_plan(campaign, 24, 0.2, FOR_CELLS).document(1)
    keys = [Identity.draw(seeded(100 + number)) for number in range(campaign.most_clients)]
    seats = {}
    for number, key in enumerate(keys):
        found = await enrol(database, campaign.digest, key.public)
        assert found is not None
        seats[number] = found.to_bytes()
    opened = "INSERT INTO round_rounds (campaign, number, document, state) VALUES ($1, $2, $3, $4)"
    row = (campaign.digest, 1, document.to_json(), SUMMING)
    statements = new_session(campaign.digest, 1, seats)
    await database.run([Statement(opened, [row]), *statements])
    session = await Session.load(database, statements[0].rows[0][0], document)
    await store.close()
    longest = session.longest(Step.MASK)
    return Seated(keys[2], session.name, 2, session.token(2), longest)


async def a_session(
    database: Database, clients: int = 5, threshold: int = 4, seats: int = 5
) -> tuple[RoundDocument, str, Session]:
    """Put a session of a small round into a store and load it."""
    document = a_round(CAMPAIGN, clients, threshold)
    directory = SigningKey(seeded(1))
    certificates = {
        number: Certificate.issue(
            directory, CAMPAIGN.digest, number, Identity.draw(seeded(100 + number)).public
        ).to_bytes()
        for number in range(seats)
    }
    statements = new_session(CAMPAIGN.digest, 1, certificates)
    await database.run(statements)
    name = statements[0].rows[0][0]
    return document, name, await Session.load(database, name, document)


async def play(
    players: Players,
    session: Session,
    until: Step | None = None,
    silent: dict[int, Step] | None = None,
) -> None:
    """Let every player who is there send and answer; silent ones fail from a step on."""
    for step in Step:
        if until is not None and step >= until:
            return
        for number, (at, body) in list(players.answers.items()):
            if at == step and not (silent and number in silent and step >= silent[number]):
                await session.take(step, number, body)
        await session.close_step(step)
        for number in list(players.answers):
            try:
                data = session.answer(step, number)
            except OverError:
                players.answers.pop(number)
                continue
            if data is None:
                players.answers.pop(number)
            else:
                players.next(number, data)
