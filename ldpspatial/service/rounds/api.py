"""What devices ask of campaigns of rounds: enrolment, documents, seats, and the five steps.

Bytes in, bytes out. A device that has to wait is told to come again (202 or 503 with Retry-After),
or waits here for a while, if not many do. Nothing is logged of a request.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from client_sdk import ParameterError
from client_sdk.rounds.shared import IDENTITY_BYTES, NUMBER_BYTES, ProtocolError, Step
from ldpspatial.service.database import Database
from ldpspatial.service.limits import BodyRoom, Limits, RateLimit
from ldpspatial.service.problems import Problem, too_many
from ldpspatial.service.request_parts import (
    DIGEST,
    bearer_token,
    body_problems,
    no_token,
    received,
)
from ldpspatial.service.rounds.accounts import why_no_seat, why_over
from ldpspatial.service.rounds.directory import FullDirectoryError, enrol
from ldpspatial.service.rounds.server import (
    NoSeatError,
    OtherRoundError,
    RoundServer,
    Running,
)
from ldpspatial.service.rounds.sessions import RUNNING, OverError, Session

SESSION = re.compile("[0-9a-f]{32}")
NUMBER = re.compile("[0-9]{1,10}")
WAIT_S = 10.0  # for a step to be closed
MOST_WAITING = 300  # requests at the same time; the others come again
AGAIN = {"Retry-After": "1"}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
SECRET = {"Cache-Control": "no-store"}
OCTETS = "application/octet-stream"
SHORT = 1 << 12
IDENTITIES = "/rounds/sessions/{session}/identities/{seat}"
STEP = "/rounds/sessions/{session}/{step}/{seat}"
Handler = Callable[[Request], Awaitable[Response]]


class RoundApi:
    """The requests of devices.

    Parameters
    ----------
    database : Database
    rounds : RoundServer
    limits : Limits
    """

    def __init__(self, database: Database, rounds: RoundServer, limits: Limits) -> None:
        self._database = database
        self._rounds = rounds
        self._limits = limits
        self._rate = RateLimit(limits.requests_a_minute)
        self._room = BodyRoom(limits)
        self._waiting = 0

    def routes(self) -> list[Route]:
        """Return the routes, to be mounted in an application."""
        return [
            Route("/directory/{campaign}", self._guarded(self.enrol), methods=["POST"]),
            Route(IDENTITIES, self._guarded(self.identities), methods=["POST"]),
            Route(STEP, self._guarded(self.step), methods=["GET", "POST"]),
            Route("/rounds/{campaign}", self._guarded(self.campaign), methods=["GET"]),
            Route("/rounds/{campaign}/{number}", self._guarded(self.document), methods=["GET"]),
            Route("/rounds/{campaign}/{number}/seat", self._guarded(self.seat), methods=["POST"]),
        ]

    async def enrol(self, request: Request) -> Response:
        """Enrol an identity; return its certificate, the same for whoever asks again."""
        campaign = _digest(request)
        identity = await self._body(request, IDENTITY_BYTES)
        try:
            found = await enrol(self._database, campaign, identity)
        except ParameterError as error:
            raise Problem(422, str(error)) from None
        except FullDirectoryError:
            raise Problem(403, "As many people as may be have enrolled.") from None
        if found is None:
            raise Problem(404, "There is no directory of this campaign here.")
        return Response(found.to_bytes(), headers=SECRET, media_type=OCTETS)

    async def campaign(self, request: Request) -> Response:
        """Return the campaign document."""
        text = self._running(request).campaign.to_json()
        return Response(text, headers=FOREVER, media_type="application/json")

    async def document(self, request: Request) -> Response:
        """Return the document of a round, from when it opens on."""
        number = _number(request, "number")
        running = self._running(request)
        text = await self._rounds.document_text(running.campaign.digest, number)
        if text is not None:
            return Response(text, headers=FOREVER, media_type="application/json")
        if number > running.campaign.rounds:
            raise Problem(410, "The campaign has no round of this number.")
        if number <= running.plan.rounds_taken:
            raise Problem(410, await why_no_seat(self._database, running.campaign.digest, number))
        raise Problem(503, "The round is not open yet.", headers=AGAIN)

    async def seat(self, request: Request) -> Response:
        """Ask for a seat: 202 until seats are dealt, then session, number and token."""
        number = _number(request, "number")
        running = self._running(request)
        body = await self._body(request, SHORT)
        try:
            seat = await self._rounds.ask_for_seat(running, number, body)
        except ProtocolError as error:
            raise Problem(422, str(error)) from None
        except NoSeatError:
            digest = running.campaign.digest
            raise Problem(410, await why_no_seat(self._database, digest, number)) from None
        except OtherRoundError:
            detail = "This identity has asked for a seat in another round of the campaign."
            raise Problem(409, detail) from None
        if seat is None:
            return Response(status_code=202, headers={**SECRET, **AGAIN})
        told = {
            "session": seat.session.name,
            "number": seat.number,
            "token": seat.session.token(seat.number),
        }
        return Response(msgspec.json.encode(told), 200, SECRET, "application/json")

    async def identities(self, request: Request) -> Response:
        """Return certificates of seats that are asked for by their numbers, 4 bytes each."""
        session, _ = await self._seated(request)
        body = await self._body(request, session.longest(Step.SHARE))
        starts = range(0, len(body), NUMBER_BYTES)
        numbers = [int.from_bytes(body[at : at + NUMBER_BYTES], "big") for at in starts]
        are_whole = len(body) % NUMBER_BYTES == 0
        are_few = len(numbers) <= session.terms.degree
        if not (are_whole and are_few and set(numbers) <= session.seats.keys()):
            raise Problem(422, f"Numbers of neighbours are asked for, {NUMBER_BYTES} bytes each.")
        found = b"".join(session.seats[number].to_bytes() for number in numbers)
        return Response(found, headers=SECRET, media_type=OCTETS)

    async def step(self, request: Request) -> Response:
        """Take a message of a step, or return what comes of it."""
        _session(request)
        _number(request, "seat")
        return await (self.message if request.method == "POST" else self.answer)(request)

    async def message(self, request: Request) -> Response:
        """Take a message of a step; 204 when it is durable."""
        step = _step(request)
        if await self._is_summed(request, step):
            return Response(status_code=204, headers=SECRET)
        session, seat = await self._seated(request)
        body = await self._body(request, session.longest(step))
        try:
            await session.take(step, seat, body)
        except ProtocolError as error:
            raise Problem(422, str(error)) from None
        except OverError:
            raise await self._over(session.name) from None
        return Response(status_code=204, headers=SECRET)

    async def answer(self, request: Request) -> Response:
        """Return what the device gets for its message of a step, once the step is closed."""
        step = _step(request)
        if await self._is_summed(request, step):
            return Response(status_code=204, headers=SECRET)
        session, seat = await self._seated(request)
        try:
            found = session.answer(step, seat)
            if found is None and self._waiting < MOST_WAITING:
                await self._wait(session.changed)
                found = session.answer(step, seat)
        except OverError:
            if await self._is_summed(request, step):
                return Response(status_code=204, headers=SECRET)
            raise await self._over(session.name) from None
        if found is None:
            return Response(status_code=202, headers={**SECRET, **AGAIN})
        return Response(found, headers=SECRET, media_type=OCTETS)

    async def _is_summed(self, request: Request, step: Step) -> bool:
        """Tell whether the last step is asked about of a session that has its sum.

        Its seats and their tokens are deleted: whoever knows the name of the session may know that.
        """
        name = request.path_params["session"]
        session = self._rounds.session(name)
        runs = session is not None and session.state == RUNNING
        return step == Step.REVEAL and not runs and await self._rounds.is_summed(name)

    async def _over(self, name: str) -> Problem:
        """Return what to tell who is too late: for good, so only what the store says, too."""
        if await self._rounds.is_behind(name):
            return Problem(503, "The session is being taken up.", headers=AGAIN)
        return Problem(410, await why_over(self._database, name))

    async def _wait(self, changed: asyncio.Event) -> None:
        self._waiting += 1
        try:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(changed.wait(), WAIT_S)
        finally:
            self._waiting -= 1

    async def _seated(self, request: Request) -> tuple[Session, int]:
        """Return session and seat of a device that shows the token of that seat."""
        name, seat = _session(request), _number(request, "seat")
        session = self._rounds.session(name)
        if session is None or session.state != RUNNING:  # tokens of one that is over are deleted
            raise await self._over(name)
        token = bearer_token(request)
        if token is None or not session.is_token(seat, token):
            raise no_token("Send the token of the seat: Authorization: Bearer ...")
        return session, seat

    def _running(self, request: Request) -> Running:
        digest = _digest(request)
        running = self._rounds.running(digest)
        if running is None:
            if self._rounds.is_unloaded(digest):
                raise Problem(503, "The campaign cannot be run for now.", headers=AGAIN)
            raise Problem(404, "There is no campaign of this digest.")
        return running

    async def _body(self, request: Request, longest: int) -> bytes:
        """Return a body, within the limits."""
        with self._room.request() as take, body_problems(f"At most {longest} bytes here."):
            return await asyncio.wait_for(received(request, longest, take), self._limits.seconds)

    def _guarded(self, handler: Handler) -> Handler:
        """Return a handler that counts the requests of an address."""

        async def guarded(request: Request) -> Response:
            wait_s = self._rate.wait_s(request.client.host if request.client else "")
            if wait_s:
                raise too_many(wait_s)
            return await handler(request)

        return guarded


def _digest(request: Request) -> str:
    digest: str = request.path_params["campaign"]
    if not DIGEST.fullmatch(digest):
        raise Problem(404, "A digest has 64 hexadecimal digits.")
    return digest


def _session(request: Request) -> str:
    name: str = request.path_params["session"]
    if not SESSION.fullmatch(name):
        raise Problem(404, "The name of a session has 32 hexadecimal digits.")
    return name


def _number(request: Request, name: str) -> int:
    text = request.path_params[name]
    if not NUMBER.fullmatch(text):
        raise Problem(404, f"The {name} is a whole number.")
    return int(text)


def _step(request: Request) -> Step:
    number = _number(request, "step")
    if number > Step.REVEAL:
        raise Problem(404, "Steps are 0 to 4.")
    return Step(number)
