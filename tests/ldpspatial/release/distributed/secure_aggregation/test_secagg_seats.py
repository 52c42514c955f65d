"""A server that tells two halves of the clients of one session of different people in its seats.

One person colludes with it, and sits in the fifth seat for the one half and in the sixth for the
other; in the other of these seats each half takes somebody for failed who was never there. Nobody
sits twice in what any client is told. Were keys bound to the two seats of a pair alone, the halves
would exchange shares and confirm one list of survivors, with two maps of who they are.
"""

import numpy as np
import pytest

from client_sdk.rounds.keys import Seats
from client_sdk.rounds.messages import Confirmations, KeyList, Revealed, SharesIn, Survivors
from client_sdk.rounds.primitives import Identity
from ldpspatial.release.distributed.sums.secure_aggregation import Client, ProtocolError
from tests.support.aggregation_rounds import seeded, terms

HONEST = range(4)
FIRST, SECOND = (0, 1, 4), (2, 3, 5)  # who is told of one map, the accomplice in both
PEOPLE = [Identity.draw(seeded(number)) for number in range(6)]
ACCOMPLICE, ABSENT = PEOPLE[4], PEOPLE[5].public
AGREED = terms(6, 4)


def opened_by_clients_of_two_maps() -> list[Revealed]:
    """Play a session in which all honest clients survive; return what they reveal."""
    honest = {number: PEOPLE[number].public for number in HONEST}
    maps = {
        **{k: {**honest, 4: ACCOMPLICE.public, 5: ABSENT} for k in FIRST},
        **{k: {**honest, 4: ABSENT, 5: ACCOMPLICE.public} for k in SECOND},
    }
    people = [*PEOPLE[:4], ACCOMPLICE, ACCOMPLICE]
    clients = [Client(AGREED, k, people[k], maps[k]) for k in range(6)]
    keys = tuple((one.number, one.advertise().mask_key) for one in clients)
    out = [one.share(KeyList(AGREED.digest, one.number, keys)).sealed for one in clients]
    vector = np.ones(AGREED.length, dtype=np.int64)
    for to in HONEST:
        senders = [v for v in (*HONEST, 4 if to in FIRST else 5) if v != to]
        sealed = tuple((v, out[v][to - (to > v)]) for v in senders)
        clients[to].mask(SharesIn(AGREED.digest, to, sealed), vector)
    told = frozenset(HONEST)
    codes = [clients[k].confirm(Survivors(AGREED.digest, k, told, 6)).codes for k in HONEST]
    revealed = []
    for to in HONEST:
        confirmed = tuple((v, codes[v][to - (to > v)]) for v in HONEST if v != to)
        revealed.append(clients[to].reveal(Confirmations(AGREED.digest, to, confirmed)))
    return revealed


def test_clients_who_were_told_of_other_seats_open_nothing_of_each_other() -> None:
    with pytest.raises(ProtocolError, match="encrypted shares were altered"):
        opened_by_clients_of_two_maps()


def test_bound_to_the_two_of_a_pair_alone_they_would_confirm_one_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Seats, "known_to_both", lambda seats, *pair: seats._digest(pair))
    assert [len(each.seeds) for each in opened_by_clients_of_two_maps()] == [4, 4, 4, 4]


def test_who_sits_twice_in_one_map_is_refused() -> None:
    seats = {number: one.public for number, one in enumerate(PEOPLE)}
    client = Client(AGREED, 0, PEOPLE[0], {**seats, 5: ACCOMPLICE.public})
    own = client.advertise().mask_key
    keys = ((0, own), *((k, bytes([k]) * 32) for k in range(1, 6)))
    with pytest.raises(ProtocolError, match="one identity sits in two seats"):
        client.share(KeyList(AGREED.digest, 0, keys))
