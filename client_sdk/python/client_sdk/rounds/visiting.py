"""A visit: all that a device asks of a server of rounds, without the network.

:func:`visit` says what to request and takes the answers, so that it goes with whatever HTTP library
an app has. It may be broken off anywhere: a new one with the same participant goes on with the very
same bytes.
"""

import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from client_sdk.errors import ParameterError
from client_sdk.rounds.campaign import Campaign
from client_sdk.rounds.enrolment import CERTIFICATE_BYTES, Certificate, check_directory
from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.graph import MAX_CLIENTS
from client_sdk.rounds.participant import Participant
from client_sdk.rounds.terms import NUMBER_BYTES, SESSION_BYTES, Step
from client_sdk.validate import shown

AGAIN = frozenset({202, 408, 429})  # and all of 5xx
LEAST_WAIT_S, MOST_WAIT_S = 1.0, 60.0
TOKEN = re.compile("[0-9A-Za-z._~+/=-]{1,200}")
STEPS = 8  # an eighth of a round is the time of a step: whoever waits longer can miss one


@dataclass(frozen=True)
class Ask:
    """One request.

    Attributes
    ----------
    method, path : str
        Below the address of the server, or of the directory where the path begins with /directory.
    body : bytes
    token : str
        For the header Authorization: Bearer; none where it is empty.
    wait_s : float
        Seconds to wait before it is sent.
    """

    method: str
    path: str
    body: bytes = b""
    token: str = ""
    wait_s: float = 0.0


@dataclass(frozen=True)
class Told:
    """What came of it.

    Attributes
    ----------
    status : int
        Of HTTP; 503 where nothing came.
    body : bytes
    retry_after_s : float
    """

    status: int
    body: bytes = b""
    retry_after_s: float = 0.0


class _GoneError(Exception):
    pass


class _NeedError(Exception):
    def __init__(self, numbers: list[int]) -> None:
        super().__init__()
        self.numbers = numbers


def visit(
    participant: Participant, where: Callable[[], tuple[float, float]], directory: bytes
) -> Generator[Ask, Told, bool]:
    """Take part in the participant's round: enrol, get a seat, answer the five steps.

    Parameters
    ----------
    participant : Participant
    where : callable
        Returns latitude and longitude, or y and x on a plane. Called once at most, when the vector
        is due.
    directory : bytes, 32
        Public key of the directory, as the app ships it.

    Yields
    ------
    Ask
        To be answered with a `Told`.

    Returns
    -------
    bool
        Whether the session came to a sum, as far as the server says. Where it did not, the last
        answer, of status 410, says why; the vector may have been given nevertheless:
        ``participant.spent()`` tells.

    Raises
    ------
    ProtocolError
        The server, or the directory, broke a rule.
    ParameterError
        ``directory`` is no public key, or one that anybody has.
    client_sdk.ClientError
        What the participant raises: the device is not asked now, or its budget is spent.
    """
    check_directory(directory)
    campaign = participant.campaign.digest
    asked = partial(_asked, most_s=_most_wait_s(participant.campaign))
    if (yield from _was_summed(participant)):
        participant.finish()
        return True
    try:
        certificate = yield from asked(Ask("POST", f"/directory/{campaign}", participant.identity))
        own = Certificate.from_bytes(certificate, directory, campaign)
        if own.identity != participant.identity:
            raise ProtocolError("the directory certified another identity")
        here = f"/rounds/{campaign}/{participant.number}"
        document = yield from asked(Ask("GET", here))
        request = participant.seat_request(certificate)
        seat = _Seat.read((yield from asked(Ask("POST", f"{here}/seat", request))))
        step, answer = _begun(participant, document, seat)
        while True:
            path = f"/rounds/sessions/{seat.session.hex()}/{int(step)}/{seat.number}"
            yield from asked(Ask("POST", path, answer, seat.token))
            message = yield from asked(Ask("GET", path, b"", seat.token))
            if step == Step.REVEAL:
                participant.finish()
                return True
            step = Step(step + 1)
            if step == Step.SHARE:
                answer = yield from _shared(participant, message, seat, own, directory)
            elif step == Step.MASK:
                participant.check_open()  # before a position is read
                answer = participant.mask(message, *where())
            elif step == Step.CONFIRM:
                answer = participant.confirm(message)
            else:
                answer = participant.reveal(message)
    except _GoneError:
        return False


@dataclass(frozen=True)
class _Seat:
    session: bytes
    number: int
    token: str

    @classmethod
    def read(cls, body: bytes) -> "_Seat":
        try:
            told = json.loads(body)
            session, number, token = told["session"], told["number"], told["token"]
            seat = cls(bytes.fromhex(session), number, token)
            is_seat = (
                len(seat.session) == SESSION_BYTES
                and type(number) is int
                and 0 <= number < MAX_CLIENTS
                and TOKEN.fullmatch(token) is not None  # it goes into a header
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            is_seat = False
        if not is_seat:
            raise ProtocolError("the server told of no seat")
        return seat


def _was_summed(participant: Participant) -> Generator[Ask, Told, bool]:
    """Tell whether the session came to its sum after the last answer, before a restart."""
    resumed, seat = participant.resume(), participant.seat
    if resumed is None or seat is None or resumed[0] != Step.REVEAL:
        return False
    ask = Ask("GET", f"/rounds/sessions/{seat[0].hex()}/{int(Step.REVEAL)}/{seat[1]}")
    told = yield from _told(ask)
    while told.status != 202 and _is_to_wait(told):  # a server that is away knows nothing of it
        wait_s = _wait_s(told, _most_wait_s(participant.campaign))
        told = yield from _told(replace(ask, wait_s=wait_s))
    return told.status in (200, 204)


def _begun(participant: Participant, document: bytes, seat: _Seat) -> tuple[Step, bytes]:
    """Return the answer that is to be sent: the first, or the last one before a restart.

    That one also after the time of the round: what follows a vector needs no clock, and a server
    that was away may wait for it.
    """
    if participant.seat == (seat.session, seat.number):
        resumed = participant.resume()
        if resumed is not None:
            return resumed
    try:
        text = document.decode()
    except UnicodeDecodeError:
        raise ProtocolError("the round document is no text") from None
    try:
        return Step.ADVERTISE, participant.begin(text, seat.session, seat.number)
    except ParameterError as error:
        raise ProtocolError(f"the server told of no seat of this round: {error}") from None


def _shared(
    participant: Participant, message: bytes, seat: _Seat, own: Certificate, directory: bytes
) -> Generator[Ask, Told, bytes]:
    """Answer the list of keys, with the neighbours' identities as the directory signed them."""
    known: dict[int, bytes] = {}

    def identities(numbers: list[int]) -> Mapping[int, bytes]:
        if not known.keys() >= set(numbers):
            raise _NeedError(numbers)
        return {number: known[number] for number in numbers}

    while True:
        try:
            return participant.share(message, identities)
        except _NeedError as need:
            numbers = need.numbers
        path = f"/rounds/sessions/{seat.session.hex()}/identities/{seat.number}"
        listed = b"".join(number.to_bytes(NUMBER_BYTES, "big") for number in numbers)
        most_s = _most_wait_s(participant.campaign)
        found = yield from _asked(Ask("POST", path, listed, seat.token), most_s)
        if len(found) != CERTIFICATE_BYTES * len(numbers):
            raise ProtocolError("the server has not sent each neighbour's certificate")
        certificates = [
            Certificate.from_bytes(
                found[at : at + CERTIFICATE_BYTES], directory, participant.campaign.digest
            )
            for at in range(0, len(found), CERTIFICATE_BYTES)
        ]
        people = {own.number, *(each.number for each in certificates)}
        if len(people) <= len(certificates):  # nobody sits on two seats
            raise ProtocolError("the server seated somebody twice")
        known.update(zip(numbers, (each.identity for each in certificates), strict=True))


def _asked(ask: Ask, most_s: float) -> Generator[Ask, Told, bytes]:
    """Ask until there is an answer; return its body. At most so many seconds lie between."""
    while True:
        told = yield from _told(ask)
        if told.status in (200, 204):
            return told.body
        if told.status == 410:
            raise _GoneError
        if told.status == 409:
            raise ProtocolError("this identity has asked for a seat in another round")
        if not _is_to_wait(told):
            raise ProtocolError(f"the server refused a request with status {told.status}")
        ask = replace(ask, wait_s=_wait_s(told, most_s))


def _told(ask: Ask) -> Generator[Ask, Told, Told]:
    """Ask once."""
    told = yield ask
    if not isinstance(told, Told):
        raise ParameterError(f"a visit takes a Told, got {shown(told)}")
    return told


def _is_to_wait(told: Told) -> bool:
    return told.status in AGAIN or told.status >= 500


def _wait_s(told: Told, most_s: float) -> float:
    return min(max(told.retry_after_s, LEAST_WAIT_S), most_s)


def _most_wait_s(campaign: Campaign) -> float:
    """Return the longest pause: half of a step, or a device misses one while the server is back."""
    return min(max(campaign.round_seconds / STEPS / 2, LEAST_WAIT_S), MOST_WAIT_S)
