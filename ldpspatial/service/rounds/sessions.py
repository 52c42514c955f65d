"""One session of a secure sum, whose every message is in the store before it is acknowledged.

The store has the messages of the clients and how many steps are closed. What the server knows
besides follows from them: so a session that was killed anywhere is made again by taking the same
messages once more, and comes to the same lists and the same sum. A step is closed by one
transaction that holds only if no message arrived meanwhile, be it through another process; so there
are never two lists of survivors. When the session is over, all messages are deleted.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from client_sdk.rounds import RoundDocument
from client_sdk.rounds.shared import (
    IDENTITY_BYTES,
    SESSION_BYTES,
    Certificate,
    Confirmation,
    KeyAdvert,
    MaskedVector,
    Message,
    ProtocolError,
    Revealed,
    SharesOut,
    Step,
)
from ldpspatial.release.distributed.campaigns.plan import Ints, SessionSum
from ldpspatial.release.distributed.sums.secure_aggregation import AbortedError, Server
from ldpspatial.service.database import (
    ChangedStoreError,
    DamagedStoreError,
    Database,
    Statement,
    StoreError,
)
from ldpspatial.service.tables import checked

RUNNING, SUMMED, ABORTED = "running", "summed", "aborted"
TOKEN_BYTES = 16
KINDS: Mapping[Step, type[Message]] = {
    Step.ADVERTISE: KeyAdvert,
    Step.SHARE: SharesOut,
    Step.MASK: MaskedVector,
    Step.CONFIRM: Confirmation,
    Step.REVEAL: Revealed,
}
Bytes: TypeAlias = "dict[int, bytes]"


class OverError(Exception):
    """The session is over, or has gone on without this client."""


class Session:
    """A session in a store; :meth:`load` finds one.

    All methods may be called at the same time.

    Parameters
    ----------
    database : Database
    name : str
        Hexadecimal, 32 digits.
    document : RoundDocument
    secret : bytes, 32
    seats : mapping of number to Certificate

    Attributes
    ----------
    state : str
        "running", "summed" or "aborted".
    step : Step
        Whose messages it takes.
    changed : asyncio.Event
        Set when a step is closed, and replaced by another.
    has_stumbled : bool
        Whether the store has failed to take a message; who closes steps sets it back.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        document: RoundDocument,
        secret: bytes,
        seats: Mapping[int, Certificate],
    ) -> None:
        self.name = name
        self.document = document
        self.terms = document.terms(bytes.fromhex(name))
        self.seats = seats
        self.state = RUNNING
        self.step = Step.ADVERTISE
        self.changed = asyncio.Event()
        self.has_stumbled = False
        self._database = database
        self._secret = secret
        self._lock = asyncio.Lock()
        self._server: Server | None = None  # made again where the store did not take what it has
        self._left: set[int] = set(seats)  # who may send a message in this step
        self._bodies: Bytes = {}  # of this step
        self._answers: Bytes = {}  # to the step before

    @classmethod
    async def load(cls, database: Database, name: str, document: RoundDocument) -> "Session":
        """Return the session that a store has, as its last message left it."""
        sql = "SELECT secret FROM round_sessions WHERE session = $1"
        ((secret,),) = await checked(database, (bytes,), sql, name)
        sql = "SELECT number, certificate FROM round_seats WHERE session = $1 ORDER BY number"
        seats = {
            number: _certificate(data)
            for number, data in await checked(database, (int, bytes), sql, name)
        }
        session = cls(database, name, document, secret, seats)
        async with session._lock:
            await session._ready()
        return session

    def token(self, number: int) -> str:
        """Return what the client of a seat shows, so that nobody else speaks for it."""
        message = b"seat" + number.to_bytes(4, "big")
        return hmac.digest(self._secret, message, "sha256")[:TOKEN_BYTES].hex()

    def is_token(self, number: int, token: str) -> bool:
        """Tell whether a token is that of a seat, in a time that does not depend on how near."""
        given = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        right = hashlib.sha256(self.token(number).encode()).digest()
        return hmac.compare_digest(given, right) and number in self.seats

    @property
    def is_complete(self) -> bool:
        """Whether everybody was heard, and the step is to be closed all the same."""
        return self._bodies.keys() == self._left

    def longest(self, step: Step) -> int:
        """Return the most bytes that a message of a step has."""
        others = self.terms.degree + 1
        return 256 + {
            Step.SHARE: others * 64,
            Step.MASK: -(-self.terms.length * self.terms.bits // 8),
            Step.CONFIRM: others * 16,
            Step.REVEAL: others * 16,
        }.get(step, 0)

    async def take(self, step: Step, number: int, body: bytes) -> None:
        """Store a client's message; it is durable when this returns. The same again is fine.

        Raises
        ------
        ProtocolError
            It is malformed, of another session, or not what the step asks for, or another one than
            this client sent before. Nothing changed.
        OverError
            The step is closed, or the client left before it.
        StoreError
            Nothing was stored: to be sent again.
        """
        async with self._lock:
            try:
                await self._take(step, number, body)
            except StoreError as error:
                self.has_stumbled |= not isinstance(error, ChangedStoreError)
                raise

    async def _take(self, step: Step, number: int, body: bytes) -> None:
        server = await self._ready()
        if self.state == RUNNING and step < self.step and number in self._left:
            return  # it was heard, and did not hear that
        if self.state != RUNNING or step != self.step or number not in self._left:
            raise OverError
        if number in self._bodies:
            if self._bodies[number] != body:
                raise ProtocolError("another message was taken from this client in this step")
            return
        message = KINDS[step].from_bytes(body, self.terms)
        if message.client != number:
            raise ProtocolError("a message of another session, round or client")
        server.receive(message)
        heard = (
            "UPDATE round_sessions SET heard = heard + 1 "
            "WHERE session = $1 AND step = $2 AND state = $3"
        )
        insert = "INSERT INTO round_messages (session, step, number, body) VALUES ($1, $2, $3, $4)"
        try:
            await self._database.run([
                Statement(heard, [(self.name, int(step), RUNNING)], expected=1),
                Statement(insert, [(self.name, int(step), number, body)], expected=1),
            ])  # fmt: skip
        except BaseException:
            self._server = None  # it has heard what the store has not
            raise
        self._bodies[number] = body
        if self._bodies.keys() == self._left:
            await self._close(server)

    def answer(self, step: Step, number: int) -> bytes | None:
        """Return what a client gets for its message of a step; None while the step is open.

        Raises
        ------
        OverError
            The session ended without a sum, or went on without this client.
        """
        if self.state != RUNNING or step < self.step - 1:
            raise OverError
        if step < self.step:
            if number not in self._answers:
                raise OverError
            return self._answers[number]
        if step > self.step or number not in self._left:
            raise OverError
        return None

    async def close_step(self, step: Step) -> None:
        """Close a step whose time is over: who was not heard has failed."""
        async with self._lock:
            server = await self._ready()
            if self.state == RUNNING and self.step == step:
                await self._close(server)

    async def catch_up(self) -> bool:
        """Take the session up anew where another process has gone on; return whether one has."""
        async with self._lock:
            sql = "SELECT state, step FROM round_sessions WHERE session = $1"
            rows = await checked(self._database, (str, int), sql, self.name)
            if rows == [(self.state, int(self.step))]:
                return False
            self._server = None
            await self._ready()
            self._told()
            return True

    async def result(self) -> SessionSum:
        """Return what came of the session."""
        sql = "SELECT asked, survivors, total FROM round_sessions WHERE session = $1"
        (found,) = await sums_of(self._database, sql, self.name)
        return found

    async def _close(self, server: Server) -> None:
        """Close the step: in the store first, and only then does anybody get an answer."""
        step = self.step
        try:
            answers = await asyncio.to_thread(server.close_round)
        except AbortedError:
            await self._end(ABORTED, 0, None)
            return
        if step == Step.REVEAL:
            await self._end(SUMMED, len(server.survivors), server.total())
            return
        sql = (
            "UPDATE round_sessions SET step = $3, heard = 0 "
            "WHERE session = $1 AND step = $2 AND heard = $4 AND state = $5"
        )
        row = (self.name, int(step), int(step) + 1, len(self._bodies), RUNNING)
        try:
            await self._database.run([Statement(sql, [row], expected=1), self._counted()])
        except BaseException:
            self._server = None
            raise
        self._enter(Step(step + 1), answers)

    async def _end(self, state: str, survivors: int, total: Ints | None) -> None:
        """Keep the sum, if there is one, and nothing of what it was made of."""
        sql = (
            "UPDATE round_sessions SET state = $2, survivors = $3, total = $4, secret = $5 "
            "WHERE session = $1 AND step = $6 AND heard = $7 AND state = $8"
        )
        kept = None if total is None else packed(total)
        row = (self.name, state, survivors, kept, b"", int(self.step), len(self._bodies), RUNNING)
        name = [(self.name,)]
        delete = (
            Statement("DELETE FROM round_messages WHERE session = $1", name),
            Statement("DELETE FROM round_seats WHERE session = $1", name),
        )
        try:
            await self._database.run([Statement(sql, [row], expected=1), self._counted(), *delete])
        except BaseException:
            self._server = None
            raise
        self.state = state
        self._told()

    def _counted(self) -> Statement:
        """Return what keeps how many were heard in the step that is closed."""
        sql = "INSERT INTO round_steps (session, step, heard) VALUES ($1, $2, $3)"
        return Statement(sql, [(self.name, int(self.step), len(self._bodies))])

    def _enter(self, step: Step, answers: Mapping[int, Message]) -> None:
        self._answers = {number: answer.to_bytes() for number, answer in answers.items()}
        self._left = set(self._bodies)
        self._bodies = {}
        self.step = step
        self._told()

    def _told(self) -> None:
        waiting, self.changed = self.changed, asyncio.Event()
        waiting.set()

    async def _ready(self) -> Server:
        """Return the protocol's server, made of what the store has where there is none."""
        if self._server is not None:
            return self._server
        sql = "SELECT state, step, heard FROM round_sessions WHERE session = $1"
        ((state, step, heard),) = await checked(self._database, (str, int, int), sql, self.name)
        sql = (
            "SELECT step, number, body FROM round_messages WHERE session = $1 ORDER BY step, number"
        )
        bodies: dict[int, Bytes] = {each: {} for each in Step}
        for at, number, body in await checked(self._database, (int, int, bytes), sql, self.name):
            bodies[at][number] = body
        found = _Replayed(Step.ADVERTISE, set(self.seats), {}, {})
        directory = {number: each.identity for number, each in self.seats.items()}
        server = Server(self.terms, directory, _stream(self._secret))
        if state == RUNNING:
            found = await asyncio.to_thread(self._replayed, server, Step(step), bodies)
            if len(found.bodies) != heard:
                raise ChangedStoreError("another process changed the session meanwhile")
        # At once, and not before all of it is there: whoever asks meanwhile would be told that the
        # session has gone on without them.
        self.state = state
        self.step, self._left, self._bodies, self._answers = found
        self._server = server
        return server

    def _replayed(self, server: Server, step: Step, bodies: Mapping[int, Bytes]) -> "_Replayed":
        left, answers = set(self.seats), dict[int, bytes]()
        for each in Step:
            for body in bodies[each].values():
                server.receive(KINDS[each].from_bytes(body, self.terms))
            if each == step:
                break
            told = server.close_round()
            answers = {number: answer.to_bytes() for number, answer in told.items()}
            left = set(bodies[each])
        return _Replayed(step, left, bodies[step], answers)


class _Replayed(NamedTuple):
    """Where a session is, as its messages say."""

    step: Step
    left: set[int]
    bodies: Bytes
    answers: Bytes


def new_session(campaign: str, number: int, certificates: Mapping[int, bytes]) -> list[Statement]:
    """Return what puts a session with these seats into a store."""
    name = secrets.token_bytes(SESSION_BYTES).hex()
    session = (name, campaign, number, RUNNING, 0, 0, secrets.token_bytes(32), len(certificates), 0)
    sql = (
        "INSERT INTO round_sessions (session, campaign, round, state, step, heard, secret, asked, "
        "survivors) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
    )
    seats = [(name, seat, certificate) for seat, certificate in certificates.items()]
    dealt = "INSERT INTO round_seats (session, number, certificate) VALUES ($1, $2, $3)"
    return [Statement(sql, [session]), Statement(dealt, seats)]


def packed(total: Ints) -> bytes:
    """Return a sum as the store keeps it: little-endian words after a checksum."""
    words = np.asarray(total, dtype="<i8").tobytes()
    return hashlib.sha256(words).digest()[:8] + words


async def sums_of(database: Database, sql: str, *values: Any) -> list[SessionSum]:
    """Return what came of the sessions of which a query finds asked, survivors and total."""
    return [
        SessionSum(asked, survivors, None if total is None else unpacked(database, total))
        for asked, survivors, total in await checked(database, (int, int, object), sql, *values)
    ]


def unpacked(database: Database, data: bytes) -> Ints:
    """Return the sum that a store kept.

    Raises
    ------
    DamagedStoreError
        The bytes are not those that were written.
    """
    if hashlib.sha256(data[8:]).digest()[:8] != data[:8]:
        raise DamagedStoreError(database.name, "the checksum of a sum does not fit")
    return np.frombuffer(data[8:], dtype="<i8").astype(np.int64)


def _certificate(data: bytes) -> Certificate:
    """Return a certificate that was checked when it was stored."""
    end = 4 + IDENTITY_BYTES
    return Certificate(int.from_bytes(data[:4], "big"), data[4:end], data[end:])


def _stream(secret: bytes) -> Callable[[int], bytes]:
    """Return an entropy function that gives the same bytes whenever the session is made again."""
    place = 0

    def draw(size: int) -> bytes:
        nonlocal place
        found = b""
        while len(found) < size:
            block = b"circle" + place.to_bytes(8, "big")
            found += hmac.digest(secret, block, "sha256")
            place += 1
        return found[:size]

    return draw
