"""A campaign of rounds in a store, with people, for tests of the server."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from client_sdk.rounds import Campaign
from ldpspatial.release.distributed.campaigns import RECOMMENDED
from ldpspatial.service.rounds.directory import open_directory
from ldpspatial.service.rounds.server import RoundServer, open_campaign
from tests.support.round_devices import HERE, START, a_campaign, a_device, joined
from tests.support.round_sessions import Mortal, a_database
from tests.support.round_visits import Visitor

PEOPLE = 6  # of each round
ROUNDS = 3
CAMPAIGN = a_campaign(
    rounds=ROUNDS, most_clients=PEOPLE, least_honest=3, micro_epsilon=12_000_000, sensitivity=1
)
THERE = (52.45, 13.30)


@dataclass
class Clock:
    """What server and devices take for the time."""

    seconds: float = START + 10.0

    def __call__(self) -> float:
        return self.seconds


async def opened(
    folder: Path,
    campaign: Campaign = CAMPAIGN,
    location: str | None = None,
    release: str = RECOMMENDED,
) -> tuple[Mortal, bytes]:
    """Open the campaign in a new store; return it with the public key of its directory."""
    database = await a_database(folder, location)
    directory = await open_directory(database, campaign.digest, 100)
    await open_campaign(database, campaign, directory, people=24, tolerated=0.2, release=release)
    return database, directory


async def started(database: Mortal, clock: Clock) -> RoundServer:
    rounds = RoundServer(database, clock)
    await rounds.load()
    return rounds


def people(
    folder: Path,
    directory: bytes,
    patch: pytest.MonkeyPatch,
    each: int = PEOPLE,
    cohorts: int = ROUNDS,
    campaign: Campaign = CAMPAIGN,
) -> list[Visitor]:
    """Return people who have drawn each of the first rounds as often."""
    found = []
    for number in range(cohorts * each):
        drawn = [1 + number % cohorts]
        with patch.context() as choice:
            choice.setattr(Campaign, "choose", lambda self, entropy, drawn=drawn: drawn)
            participant = joined(a_device(folder / str(number), cap=12), campaign)
        assert participant.number == drawn[0]
        found.append(Visitor(participant, HERE if number % 6 else THERE, directory))
    return found
