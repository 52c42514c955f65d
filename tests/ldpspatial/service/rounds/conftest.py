"""The time, as servers and devices of rounds take it."""

import pytest

from ldpspatial.service.rounds import api
from tests.support.round_campaigns import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("client_sdk.rounds.participant.time.time", found)
    monkeypatch.setattr(api, "WAIT_S", 0.0)
    return found
