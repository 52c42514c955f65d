"""The rounds of all campaigns of a store: gather people, deal them to sessions, add up, go on.

An object that a service mounts (:mod:`ldpspatial.service.rounds.api` has its requests). Whatever it
knows is in the store, so that a process which ended anywhere is followed by one that goes on. Of a
person it keeps a certificate while their round runs, which round that is until the campaign is
over, and nothing of when anything was sent.

A round has the time that the campaign gives it. In the first quarter people ask for seats; then all
who asked are dealt to sessions at random, and each of the five steps has an eighth, or ends as soon
as everybody was heard. Nobody is late because the server was: a quarter or an eighth in which it
was killed, stood still or could not write begins again when it is back. So a round may end up to
three eighths later than planned, and no more: devices give no vector once its time is over. A round
that could not begin by then is left out: nobody in it loses anything.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from client_sdk import ClientError
from client_sdk.rounds import Campaign, RoundDocument
from client_sdk.rounds.shared import Step, check_directory, check_seat_request
from ldpspatial.errors import InputError
from ldpspatial.release.distributed.campaigns import (
    RECOMMENDED,
    CampaignPlan,
    campaign_plan,
)
from ldpspatial.release.release import Released
from ldpspatial.service.database import ChangedStoreError, Database, Statement, StoreError
from ldpspatial.service.failure_log import FailureLog
from ldpspatial.service.rounds.sessions import RUNNING, SUMMED, Session, new_session, sums_of
from ldpspatial.service.rounds.tables import check_document, forgotten, only_who_asked
from ldpspatial.service.tables import checked
from ldpspatial.validate import MICRO, input_errors, instance, number_in

LOG = logging.getLogger(__name__)
GATHERING, SUMMING, OVER = "gathering", "summing", "over"
GATHER_PARTS, PARTS = 2, 8  # of a round's time; each step has one
MOST_MOVED = 3  # parts by which all of it may be later: vectors are then due at the round's end
STOOD_STILL = 0.25  # of a part, by which a look is late when nothing ran meanwhile
TICK_S = 1.0


class NoSeatError(Exception):
    """The round has no seat for this person: it is over, or more people came than it takes."""


class OtherRoundError(Exception):
    """The person has asked for a seat in another round of the campaign."""


@dataclass
class Seat:
    """Where a person sits."""

    session: Session
    number: int


@dataclass
class Running:
    """A campaign whose rounds run.

    Attributes
    ----------
    campaign : Campaign
    directory : bytes, 32
        Public key of the directory.
    plan : CampaignPlan
        With the sums of all rounds that are over.
    document : RoundDocument, optional
        Of the round that runs.
    state : str
        Of that round: "gathering" or "summing".
    sessions : list of Session, optional
        None where they are in the store and not here.
    seats : mapping of a person's number to Seat
    begun : mapping of session to (step, seconds since 1970)
        Which step it is at, and since when devices could send for it.
    gathers_since : float, optional
        Since when people could ask for seats.
    """

    campaign: Campaign
    directory: bytes
    plan: CampaignPlan
    document: RoundDocument | None = None
    state: str = OVER
    sessions: list[Session] | None = None
    seats: dict[int, Seat] = field(default_factory=dict)
    begun: dict[str, tuple[Step, float]] = field(default_factory=dict)
    gathers_since: float | None = None

    def was_away(self) -> None:
        """Let what devices are waited for begin again: they could not send for some time."""
        self.begun = {}
        self.gathers_since = None

    def part_s(self) -> float:
        """Return how long a step is, in seconds."""
        return self.campaign.round_seconds / PARTS

    def opens_until(self, number: int) -> float:
        """Return until when a round may be opened."""
        return self.campaign.start(number) + MOST_MOVED * self.part_s()

    def gathers_until(self, number: int, since: float) -> float:
        """Return until when people may ask for seats, who could do so since some time."""
        return self._until(number, GATHER_PARTS, since + GATHER_PARTS * self.part_s())

    def until(self, number: int, step: Step, since: float) -> float:
        """Return when a step is closed that devices could send for since some time."""
        return self._until(number, GATHER_PARTS + step + 1, since + self.part_s())

    def _until(self, number: int, parts: int, enough: float) -> float:
        planned = self.campaign.start(number) + parts * self.part_s()
        return min(max(planned, enough), planned + MOST_MOVED * self.part_s())


class RoundServer:
    """The rounds of a store's campaigns.

    Call :meth:`load` first, then :meth:`tick` from time to time, or :meth:`run` for as long as the
    service runs.

    Parameters
    ----------
    database : Database
        With the tables of rounds.
    now : callable
        Seconds since 1970.
    """

    def __init__(self, database: Database, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._now = now
        self._campaigns: dict[str, Running] = {}
        self._unloaded: set[str] = set()
        self._sessions: dict[str, Session] = {}
        self._ticking = asyncio.Lock()
        self._failures = FailureLog()

    async def load(self) -> None:
        """Take up all campaigns of the store that are not known here yet."""
        for (digest,) in await checked(
            self._database, (str,), "SELECT digest FROM round_campaigns"
        ):
            if digest not in self._campaigns:
                try:
                    self._campaigns[digest] = await self._loaded(digest)
                except StoreError:
                    raise
                except Exception as error:
                    # Of another version, say: the others go on, and its people are told to wait.
                    is_told = isinstance(error, InputError | ClientError)
                    why = error if is_told else type(error).__name__
                    self._failures.tell(f"campaign {digest} cannot be loaded: {why}")
                    self._unloaded.add(digest)

    async def run(self) -> None:
        """Move on what is due, for ever; a store that does not do it is tried again."""
        while True:
            moves: list[Callable[[], Awaitable[None]]] = [self.load]
            moves += [partial(self._go_on, running) for running in self._campaigns.values()]
            for move in moves:
                try:
                    async with self._ticking:
                        await move()
                except Exception as error:
                    # Whatever it is: the next look may fare better, and others have their rounds.
                    what = error if isinstance(error, StoreError) else type(error).__name__
                    self._failures.tell(f"a round could not go on: {what}")
            asleep = self._now()
            await asyncio.sleep(TICK_S)
            self._woke(self._now() - asleep - TICK_S)

    def _woke(self, late_s: float) -> None:
        """Take note of a look that comes late: the process, or its machine, stood still."""
        for running in self._campaigns.values():
            if late_s > STOOD_STILL * running.part_s():
                running.was_away()

    async def tick(self) -> None:
        """Move on what is due: open rounds, deal seats, close steps, add up rounds."""
        async with self._ticking:
            await self.load()
            for running in list(self._campaigns.values()):
                await self._go_on(running)

    def running(self, digest: str) -> Running | None:
        """Return a campaign."""
        return self._campaigns.get(digest)

    def is_unloaded(self, digest: str) -> bool:
        """Tell whether the store has a campaign that could not be loaded."""
        return digest in self._unloaded and digest not in self._campaigns

    def session(self, name: str) -> Session | None:
        """Return a session of a round that runs."""
        return self._sessions.get(name)

    async def is_summed(self, name: str) -> bool:
        """Tell whether a session, of whatever round, came to a sum."""
        return await self._stored_state(name) == SUMMED

    async def is_behind(self, name: str) -> bool:
        """Tell whether the store is further with a session than this process was, and catch up."""
        session = self._sessions.get(name)
        if session is not None:
            return session.state == RUNNING and await session.catch_up()
        # Where it runs, the next look takes it up.
        return await self._stored_state(name) == RUNNING

    async def _stored_state(self, name: str) -> str | None:
        sql = "SELECT state FROM round_sessions WHERE session = $1"
        rows = await checked(self._database, (str,), sql, name)
        return rows[0][0] if rows else None

    async def document_text(self, digest: str, number: int) -> str | None:
        """Return the document of a round that runs or ran."""
        sql = "SELECT document FROM round_rounds WHERE campaign = $1 AND number = $2"
        rows = await checked(self._database, (str,), sql, digest, number)
        return rows[0][0] if rows and rows[0][0] else None

    async def ask_for_seat(self, running: Running, number: int, body: bytes) -> Seat | None:
        """Take a request for a seat; return it once seats are dealt, None before.

        Raises
        ------
        ProtocolError
            The request is not one of an enrolled person, or not signed by them.
        NoSeatError
        OtherRoundError
        StoreError
            The store did not do it; who asks for seats has time again.
        """
        try:
            return await self._seat_for(running, number, body)
        except StoreError:
            running.gathers_since = None
            raise

    async def _seat_for(self, running: Running, number: int, body: bytes) -> Seat | None:
        digest = running.campaign.digest
        certificate = check_seat_request(body, running.directory, digest, number)
        sql = "SELECT round FROM round_requests WHERE campaign = $1 AND person = $2"
        asked = await checked(self._database, (int,), sql, digest, certificate.number)
        if asked not in ([], [(number,)]):
            raise OtherRoundError
        document = running.document
        if document is None or document.round != number:
            if number <= running.plan.rounds_taken:
                raise NoSeatError
            return None  # not yet
        if running.state == SUMMING:
            if running.sessions is None:
                return None
            seat = running.seats.get(certificate.number)
            if seat is None:
                raise NoSeatError
            return seat
        if asked:
            return None
        sql = (
            "INSERT INTO round_requests (campaign, round, person, certificate) "
            "SELECT $1, $2, $3, $4 FROM round_rounds "
            "WHERE campaign = $1 AND number = $2 AND state = $5 "
            "ON CONFLICT DO NOTHING"
        )
        row = (digest, number, certificate.number, certificate.to_bytes(), GATHERING)
        await self._database.run([Statement(sql, [row])])
        return None

    async def _loaded(self, digest: str) -> Running:
        sql = (
            "SELECT document, directory, people, tolerated_ppm, release "
            "FROM round_campaigns WHERE digest = $1"
        )
        types = (str, bytes, int, int, str)
        ((text, directory, *how),) = await checked(self._database, types, sql, digest)
        check_document(self._database, text, digest)
        plan = await plan_of(self._database, text, *how)
        running = Running(plan.campaign, directory, plan)
        sql = "SELECT document, state FROM round_rounds WHERE campaign = $1 AND state <> $2"
        for document, state in await checked(self._database, (str, str), sql, digest, OVER):
            running.document = RoundDocument.from_json(document, plan.campaign)
            running.state = state
            if state == SUMMING:
                await self._take_up(running, running.document)
        return running

    async def _take_up(self, running: Running, document: RoundDocument) -> list[Session]:
        """Load the sessions of a round and who sits where; all of them, or none."""
        sql = (
            "SELECT session FROM round_sessions WHERE campaign = $1 AND round = $2 ORDER BY session"
        )
        names = await checked(self._database, (str,), sql, running.campaign.digest, document.round)
        sessions = [await Session.load(self._database, name, document) for (name,) in names]
        for session in sessions:
            self._sessions[session.name] = session
            for number, certificate in session.seats.items():
                running.seats[certificate.number] = Seat(session, number)
        running.sessions = sessions
        return sessions

    async def _go_on(self, running: Running) -> None:
        """Go on with one campaign, or take it up anew where the store turns out to be further."""
        try:
            await self._move(running)
        except StoreError as error:
            if not isinstance(error, ChangedStoreError):
                running.was_away()
            # Another process went on, or the store did what it could not say any more.
            await self._catch_up(running)
            raise

    async def _catch_up(self, running: Running) -> None:
        """Take a campaign up anew if its last round in the store is not the one known here."""
        digest, document = running.campaign.digest, running.document
        sql = (
            "SELECT number, state FROM round_rounds WHERE campaign = $1 "
            "ORDER BY number DESC LIMIT 1"
        )
        taken = running.plan.rounds_taken
        known = [(taken, OVER)] if taken else []
        if document is not None:
            known = [(document.round, running.state)]
        if await checked(self._database, (int, str), sql, digest) != known:
            self._campaigns[digest] = await self._loaded(digest)
            for session in running.sessions or []:
                if self._sessions.get(session.name) is session:  # and was not loaded anew
                    del self._sessions[session.name]

    async def _move(self, running: Running) -> None:
        """Go on with one campaign as far as the time allows."""
        now = self._now()
        if running.document is None:
            await self._open(running, now)
        document = running.document
        if document is None:
            return
        if running.state == GATHERING:
            if running.gathers_since is None:
                running.gathers_since = now
            if now >= running.gathers_until(document.round, running.gathers_since):
                await self._deal(running, document)
        if running.state == SUMMING:
            sessions = running.sessions
            if sessions is None:
                sessions = await self._take_up(running, document)
            for session in sessions:
                await self._close_if_late(running, document.round, session, now)
            if all(session.state != RUNNING for session in sessions):
                await self._add_up(running, document, sessions)

    async def _open(self, running: Running, now: float) -> None:
        """Open the round whose time it is; leave out those whose time is over."""
        campaign, plan = running.campaign, running.plan
        number = plan.rounds_taken + 1
        while number <= campaign.rounds and now >= running.opens_until(number):
            await self._insert(campaign, number, "", OVER)
            plan.take([])
            number = plan.rounds_taken + 1
        if number <= campaign.rounds and now >= campaign.start(number):
            document = plan.document(number)
            await self._insert(campaign, number, document.to_json(), GATHERING)
            running.document, running.state = document, GATHERING

    async def _insert(self, campaign: Campaign, number: int, text: str, state: str) -> None:
        sql = "INSERT INTO round_rounds (campaign, number, document, state) VALUES ($1, $2, $3, $4)"
        opened = Statement(sql, [(campaign.digest, number, text, state)])
        over = forgotten(campaign, number) if state == OVER else []
        await self._database.run([opened, *over])

    async def _deal(self, running: Running, document: RoundDocument) -> None:
        """Deal everybody who asked to sessions, at random; who finds no seat is not asked."""
        digest, number = running.campaign.digest, document.round
        sql = "SELECT certificate FROM round_requests WHERE campaign = $1 AND round = $2"
        people = [c for (c,) in await checked(self._database, (bytes,), sql, digest, number)]
        came = len(people)
        secrets.SystemRandom().shuffle(people)
        statements = []
        for size in session_sizes(len(people), document.threshold, document.clients):
            dealt, people = people[:size], people[size:]
            statements += new_session(digest, number, dict(enumerate(dealt)))
        state = (
            "UPDATE round_rounds SET state = $3, came = $5 "
            "WHERE campaign = $1 AND number = $2 AND state = $4"
        )
        await self._database.run([
            Statement(state, [(digest, number, SUMMING, GATHERING, came)], expected=1),
            *statements,
            # That they asked stays, or they could ask again in a later round.
            *only_who_asked(digest, number),
        ])  # fmt: skip
        running.state = SUMMING

    async def _close_if_late(
        self, running: Running, number: int, session: Session, now: float
    ) -> None:
        """Close the step that a session is at, if its time is over."""
        step, since = running.begun.get(session.name, (None, now))
        if step != session.step or session.has_stumbled:
            since = now
            running.begun[session.name] = session.step, since
            session.has_stumbled = False
        late = now >= running.until(number, session.step, since)
        if session.state == RUNNING and (late or session.is_complete):
            await session.close_step(session.step)

    async def _add_up(
        self, running: Running, document: RoundDocument, sessions: list[Session]
    ) -> None:
        """End a round whose sessions are all over."""
        sql = "UPDATE round_rounds SET state = $3 WHERE campaign = $1 AND number = $2"
        row = (running.campaign.digest, document.round, OVER)
        results = [await session.result() for session in sessions]
        over = Statement(sql, [row])
        await self._database.run([over, *forgotten(running.campaign, document.round)])
        running.plan.take(results)
        for session in sessions:
            self._sessions.pop(session.name)
        running.document, running.state, running.sessions = None, OVER, None
        running.seats, running.begun, running.gathers_since = {}, {}, None


def session_sizes(people: int, threshold: int, most: int) -> list[int]:
    """Return how many people sit in each session: as few and as equal sessions as fit.

    Where there are several, each has at least a third of the room for failures that a full one has;
    rather than that, some find no seat.

    Examples
    --------
    >>> session_sizes(250, 70, 100), session_sizes(150, 70, 100), session_sizes(69, 70, 100)
    ([84, 83, 83], [100], [])
    """
    number = ceil(people / most)
    if number > 1 and 3 * (people // number - threshold) < most - threshold:
        number, people = number - 1, (number - 1) * most
    if people < threshold:
        return []
    small, larger = divmod(people, number)
    return [small + 1] * larger + [small] * (number - larger)


async def open_campaign(
    database: Database, campaign: Campaign, directory: bytes, people: int,
    tolerated: float = 0.1, release: str = RECOMMENDED,
) -> None:  # fmt: skip
    """Put a campaign into a store, whose rounds a server then runs.

    Parameters
    ----------
    database : Database
        With the tables of rounds.
    campaign : Campaign
    directory : bytes, 32
        Public key of the directory that clients trust.
    people, tolerated, release
        As of `campaign_plan`; shares are rounded to millionths, and a release is a text.

    Raises
    ------
    InputError
        The store has it, ``directory`` is a key that anybody has, or another bad argument.
    """
    instance("campaign", campaign, Campaign)
    with input_errors():
        check_directory(directory)
    instance("release", release, str)
    number_in("tolerated", tolerated, "[0, 1)")
    tolerated_ppm = round(tolerated * MICRO)
    campaign_plan(campaign, people, tolerated_ppm / MICRO, release)  # as it will be loaded
    row = campaign.digest, campaign.to_json(), directory, people, tolerated_ppm, release
    sql = (
        "INSERT INTO round_campaigns (digest, document, directory, people, tolerated_ppm, release) "
        "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"
    )
    try:
        await database.run([Statement(sql, [row], expected=1)])
    except ChangedStoreError:
        raise InputError("campaign must be new, but the store has it") from None


async def plan_of(
    database: Database, text: str, people: int, tolerated_ppm: int, release: str
) -> CampaignPlan:
    """Return the plan of a campaign with the sums of all its rounds that are over.

    Raises
    ------
    InputError
        Another version of this package asked a round for something else: its sums would be read
        as those of other places.
    """
    campaign = Campaign.from_json(text)
    plan = campaign_plan(campaign, people, tolerated_ppm / MICRO, release)
    sql = "SELECT number, state, document FROM round_rounds WHERE campaign = $1 ORDER BY number"
    rounds = await checked(database, (int, str, str), sql, campaign.digest)
    for number, state, asked in rounds:
        if asked and asked != plan.document(number).to_json():  # empty if nobody was asked
            raise InputError(
                f"campaign must go on with the ldpspatial that began it, but round {number} of "
                f"{campaign.digest} asked for what this one does not"
            )
        if state != OVER:
            break
        sql = (
            "SELECT asked, survivors, total FROM round_sessions "
            "WHERE campaign = $1 AND round = $2 ORDER BY session"
        )
        plan.take(await sums_of(database, sql, campaign.digest, number))
    return plan


async def released(database: Database, digest: str) -> tuple[Campaign, Released]:
    """Return a campaign of a store with the map of its rounds so far.

    Raises
    ------
    InputError
        The store has no such campaign.
    """
    sql = "SELECT document, people, tolerated_ppm, release FROM round_campaigns WHERE digest = $1"
    rows = await checked(database, (str, int, int, str), sql, digest)
    if not rows:
        raise InputError(f"digest must be of a campaign that the store has, got {digest!r}")
    check_document(database, rows[0][0], digest)
    plan = await plan_of(database, *rows[0])
    return plan.campaign, plan.released()
