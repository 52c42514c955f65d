"""What became of rounds: how many people were heard at which step, and why there is no sum.

For operators, and for people whose session or round came to nothing. Numbers of people, and nothing
of any of them.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from client_sdk.rounds.shared import Step
from ldpspatial.service.database import Database
from ldpspatial.service.rounds.sessions import ABORTED, RUNNING, SUMMED
from ldpspatial.service.tables import checked

# What a device sends in each step.
SENT: Mapping[Step, str] = {
    Step.ADVERTISE: "keys",
    Step.SHARE: "shares",
    Step.MASK: "vectors",
    Step.CONFIRM: "confirmations",
    Step.REVEAL: "openings",
}
COPY = "it ended in a copy of the store"


class RoundAccount(NamedTuple):
    """What became of a round.

    Attributes
    ----------
    number : int
    state : str
        "gathering", "summing" or "over".
    came : int
        People who had asked for seats when these were dealt.
    asked : int
        People who got one.
    heard : tuple of int
        How many of them were heard in each of the five steps, where it is closed.
    survivors : int
        People whose vectors are in sums.
    without : tuple of str
        Why there is no sum: of the round, or of each kind of session that has none.
    """

    number: int
    state: str
    came: int
    asked: int
    heard: tuple[int, ...]
    survivors: int
    without: tuple[str, ...]


async def accounts(database: Database, digest: str) -> list[RoundAccount]:
    """Return what became of each round of a campaign that has begun."""
    sql = (
        "SELECT number, state, came, document FROM round_rounds WHERE campaign = $1 ORDER BY number"
    )
    found = []
    for number, state, came, text in await checked(database, (int, str, int, str), sql, digest):
        sql = (
            "SELECT session, state, asked, survivors FROM round_sessions "
            "WHERE campaign = $1 AND round = $2"
        )
        rows = await checked(database, (str, str, int, int), sql, digest, number)
        heard = [await _heard(database, name) for name, *_ in rows]
        ended = Counter(
            _why_ended(_threshold(text), steps)
            for (_, became, *_), steps in zip(rows, heard, strict=True)
            if became == ABORTED
        )
        without = tuple(
            f"{times} of {len(rows)} sessions came to no sum: {why}" for why, times in ended.items()
        )
        if not rows and state != "gathering":
            without = (f"it was not held: {_why_not_held(text, came)}",)
        account = RoundAccount(
            number, state, came, sum(asked for _, _, asked, _ in rows),
            tuple(sum(steps.get(step, 0) for steps in heard) for step in Step),
            sum(survivors for *_, survivors in rows), without,
        )  # fmt: skip
        found.append(account)
    return found


async def why_no_seat(database: Database, digest: str, number: int) -> str:
    """Return why somebody has no seat in a round whose seats are dealt, as a sentence."""
    sql = "SELECT state, came, document FROM round_rounds WHERE campaign = $1 AND number = $2"
    rows = await checked(database, (str, int, str), sql, digest, number)
    sql = "SELECT COUNT(*) FROM round_sessions WHERE campaign = $1 AND round = $2"
    ((sessions,),) = await checked(database, (int,), sql, digest, number)
    if rows and not sessions:
        _, came, text = rows[0]
        return f"The round was not held: {_why_not_held(text, came)}."
    return "Seats were dealt before this device asked, or there was none left, or the sum is over."


async def why_over(database: Database, name: str) -> str:
    """Return how a session ended, or that it has gone on, as sentences for who took part."""
    sql = (
        "SELECT s.state, r.document FROM round_sessions AS s "
        "JOIN round_rounds AS r ON s.campaign = r.campaign AND s.round = r.number "
        "WHERE s.session = $1"
    )
    rows = await checked(database, (str, str), sql, name)
    if not rows:
        return "There is no such session here."
    state, text = rows[0]
    if state == RUNNING:
        return "The session has gone on without this device, which was heard too late."
    if state == SUMMED:
        return "The session is over, and has its sum."
    steps = await _heard(database, name)
    told = f"The session is over without a sum: {_why_ended(_threshold(text), steps)}."
    if max(steps, default=Step.ADVERTISE) < Step.MASK:
        return f"{told} It took no vector of anybody."
    return told


async def _heard(database: Database, name: str) -> dict[Step, int]:
    """Return how many were heard in each step of a session that is closed."""
    sql = "SELECT step, heard FROM round_steps WHERE session = $1"
    return {Step(at): heard for at, heard in await checked(database, (int, int), sql, name)}


def _why_ended(threshold: int, steps: Mapping[Step, int]) -> str:
    """Return why a session has no sum, of how many were heard in each step that is closed."""
    last = max(steps, default=None)
    if last is None:
        return COPY
    if steps[last] < threshold:
        return f"{steps[last]} sent {SENT[last]}, and {threshold} are needed"
    if last == Step.REVEAL:
        return "what people revealed does not open it"
    return COPY


def _why_not_held(text: str, came: int) -> str:
    """Return why there was no sum in a round, of its document and how many came."""
    if not text:
        return "the server was away until it was too late to begin"
    if came < _threshold(text):
        return f"{came} asked for seats, and {_threshold(text)} are needed"
    return COPY


def _threshold(text: str) -> int:
    """Return the threshold of a round document that the service has made."""
    return int(json.loads(text)["threshold"]) if text else 0
