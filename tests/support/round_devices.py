"""Devices in one session of a round, and the server's side of it, for tests of the client."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Device, Grid
from client_sdk.rounds import (
    Asked,
    Campaign,
    Participant,
    ProtocolError,
    RoundDocument,
    Step,
)
from client_sdk.rounds.shared import (
    Confirmation,
    KeyAdvert,
    MaskedVector,
    Message,
    Revealed,
    SharesOut,
)
from ldpspatial.release.distributed.sums.secure_aggregation import Server

START = 1_800_000_000
SESSION = b"a test's session"
GRID = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=8)
HERE = (52.5163, 13.3777)
ANSWERS: dict[Step, type[Message]] = {
    Step.ADVERTISE: KeyAdvert,
    Step.SHARE: SharesOut,
    Step.MASK: MaskedVector,
    Step.CONFIRM: Confirmation,
    Step.REVEAL: Revealed,
}


def a_campaign(**changes: Any) -> Campaign:
    fields: dict[str, Any] = {
        "name": "rounds of a test", "grid": GRID, "rounds": 1, "first_start": START,
        "round_seconds": 3600, "micro_epsilon": 1_000_000, "sensitivity": 3, "most_length": 100,
        "most_clients": 100, "least_honest": 2, "colluding_ppm": 0,
    }  # fmt: skip
    return Campaign(**{**fields, **changes})


def a_round(campaign: Campaign, clients: int = 5, threshold: int = 4, **more: Any) -> RoundDocument:
    asked = more.pop("asked", Asked(levels=(1,)))
    return RoundDocument.create(campaign, 1, asked, clients=clients, threshold=threshold, **more)


def a_device(folder: Path, cap: float = 8) -> Device:
    return Device.install(folder, cap_epsilon=cap)


def joined(device: Device, campaign: Campaign) -> Participant:
    return Participant.join(
        device, campaign.to_json(), digest=campaign.digest, max_epsilon=campaign.micro_epsilon / 1e6
    )


def set_clock(patch: pytest.MonkeyPatch, seconds: float) -> None:
    patch.setattr("client_sdk.rounds.participant.time.time", lambda: seconds)


class Session:
    """Participants and a server; ``inbox`` holds the bytes that each gets next."""

    def __init__(
        self, participants: list[Participant], document: RoundDocument, session: bytes = SESSION
    ) -> None:
        self.participants = participants
        self.document = document
        self.session = session
        self.terms = document.terms(session)
        self.keys = [participant.identity for participant in participants]
        self.server = Server(self.terms, dict(enumerate(self.keys)))
        self.inbox: Mapping[int, bytes] = dict.fromkeys(range(len(participants)), b"")
        self.at = Step.ADVERTISE

    def identities(self, numbers: list[int]) -> dict[int, bytes]:
        return {number: self.keys[number] for number in numbers}

    def answer(self, number: int, participant: Participant | None = None) -> bytes:
        """Let one participant, or what was opened anew in its place, answer what it gets now."""
        one = self.participants[number] if participant is None else participant
        message = self.inbox[number]
        calls: dict[Step, Callable[[], bytes]] = {
            Step.ADVERTISE: lambda: one.begin(self.document.to_json(), self.session, number),
            Step.SHARE: lambda: one.share(message, self.identities),
            Step.MASK: lambda: one.mask(message, *HERE),
            Step.CONFIRM: lambda: one.confirm(message),
            Step.REVEAL: lambda: one.reveal(message),
        }
        return calls[self.at]()

    def take(self, data: bytes) -> None:
        """Let the server take one answer."""
        self.server.receive(ANSWERS[self.at].from_bytes(data, self.terms))

    def close(self) -> None:
        """End the server's round."""
        answers = self.server.close_round()
        self.inbox = {number: message.to_bytes() for number, message in answers.items()}
        if self.at < Step.REVEAL:
            self.at = Step(self.at + 1)

    def until(self, step: Step | None, *silent: int) -> "Session":
        """Play all rounds before ``step``, or to the end; the silent fail before their vector."""
        while step is None or self.at < step:
            last = self.at is Step.REVEAL
            for number in list(self.inbox):
                if number in silent and self.at >= Step.MASK:
                    continue
                with suppress(ProtocolError):
                    self.take(self.answer(number))
            self.close()
            if last:
                break
        return self
