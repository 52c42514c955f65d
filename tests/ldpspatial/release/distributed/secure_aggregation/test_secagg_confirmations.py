"""What a client's confirmation of a list of survivors stands for, and when it gives none."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from client_sdk.rounds import shamir
from client_sdk.rounds.keys import (
    PairKeys,
    Seats,
    mask_pair,
    own_mask,
    pair_keys,
    pair_mask,
    survivor_statement,
)
from client_sdk.rounds.messages import (
    Confirmations,
    KeyList,
    Revealed,
    SharesIn,
    Survivors,
)
from client_sdk.rounds.primitives import Identity, KeyPair
from ldpspatial.release.distributed.sums.secure_aggregation import (
    Client,
    Neighbours,
    ProtocolError,
    Step,
    Terms,
)
from tests.support.aggregation_rounds import Rounds, revealed_of, seeded, terms

N, T = 10, 6
ALIVE, DEAD = frozenset(range(4)), frozenset(range(4, N))
IDENTITIES = [Identity.draw(seeded(seed)) for seed in range(N)]


def told_to(client: int) -> frozenset[int]:
    """Return another list for each client, of T survivors; T of them leave out each of the dead."""
    others = sorted(DEAD - {client})
    left_out = (others[(4 * client + j) % len(others)] for j in range(4))
    return frozenset(range(N)) - frozenset(left_out)


TOLD = [told_to(client) for client in range(N)]


class FirstRounds:
    """Fresh clients of the same terms and identities, whose masked vectors a server has."""

    def __init__(self, agreed: Terms, vectors: np.ndarray) -> None:
        directory = [identity.public for identity in IDENTITIES]
        self.clients = [
            Client(agreed, number, identity, directory)
            for number, identity in enumerate(IDENTITIES)
        ]
        self.keys = {client.number: client.advertise().mask_key for client in self.clients}
        everyone = tuple(self.keys.items())
        out = [c.share(KeyList(agreed.digest, c.number, everyone)) for c in self.clients]
        self.masked = []
        for client in self.clients:
            i = client.number
            sealed = tuple((m.client, m.sealed[i - (i > m.client)]) for m in out if m.client != i)
            message = client.mask(SharesIn(agreed.digest, i, sealed), vectors[i])
            self.masked.append(message.residues)


def put_together(agreed: Terms, last: FirstRounds, revealed: list[Revealed]) -> np.ndarray:
    """Unmask the sum of the living from shares of their seeds and of the dead's mask keys."""
    seeds: dict[int, dict[int, int]] = {v: {} for v in range(N)}
    keys: dict[int, dict[int, int]] = {v: {} for v in range(N)}
    for message in revealed:
        alive, failed = revealed_of(message, N, TOLD[message.client])
        for found, shares in ((seeds, alive), (keys, failed)):
            for owner, share in shares.items():
                found[owner][message.client + 1] = share

    def secret(shares: Mapping[int, int]) -> bytes:
        return shamir.combine(dict(list(shares.items())[:T])).to_bytes(16, "big")

    total: np.ndarray = sum(last.masked[i] for i in ALIVE)  # type: ignore[assignment]
    for i in ALIVE:
        total = total - own_mask(agreed, i, secret(seeds[i]))
    for v in DEAD:
        pair = mask_pair(agreed, v, secret(keys[v]))
        for i in ALIVE:
            total = total + pair_mask(agreed, pair, v, i, last.keys[i])
    return total & (agreed.modulus - 1)


def opened_below_the_threshold() -> tuple[list[int], list[int]]:
    """Attack: one session for each list, all of one name; in the last one replay what they said.

    Each client of the last session reveals for its own list: all of them seeds of the first four,
    and T of them the mask key of each of the others.
    """
    agreed = terms(N, T, bits=16, length=3)
    vectors = np.arange(N * 3).reshape(N, 3)
    confirmed: dict[frozenset[int], dict[int, dict[int, bytes]]] = {}
    for told in set(TOLD):
        rounds = FirstRounds(agreed, vectors)
        confirmed[told] = {}
        for i in sorted(told):
            codes = rounds.clients[i].confirm(Survivors(agreed.digest, i, told, N)).codes
            confirmed[told][i] = dict(zip(sorted(told - {i}), codes, strict=True))
    last, revealed = FirstRounds(agreed, vectors), []
    for client, told in zip(last.clients, TOLD, strict=True):
        client.confirm(Survivors(agreed.digest, client.number, told, N))
        to = client.number
        replayed = tuple((v, codes[to]) for v, codes in confirmed[told].items() if v != to)
        revealed.append(client.reveal(Confirmations(agreed.digest, to, replayed)))
    found = put_together(agreed, last, revealed)
    return found.tolist(), vectors[sorted(ALIVE)].sum(axis=0).tolist()


def test_confirmations_of_earlier_sessions_of_the_same_name_open_nothing() -> None:
    with pytest.raises(ProtocolError, match="1 clients have confirmed the same survivors"):
        opened_below_the_threshold()


def test_bound_to_the_name_alone_they_would_open_the_sum_of_four(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Seats, "known_to_both", lambda seats, low, high: b"")
    found, secret = opened_below_the_threshold()
    assert found == secret  # of four vectors, where the threshold is six


KEYS = {client: KeyPair(seeded(client)(32)).public for client in range(6)}
OTHER_KEY = KeyPair(seeded(9)(32)).public


PEOPLE = dict(enumerate(identity.public for identity in IDENTITIES[:6]))


def of_pair(
    agreed: Terms,
    one: int,
    other: int,
    keys: Mapping[int, bytes] = KEYS,
    people: Mapping[int, bytes] = PEOPLE,
) -> PairKeys:
    seats = Seats(agreed, people, keys)
    return pair_keys(agreed, IDENTITIES[one].agreement, one, other, seats)


def test_both_of_a_pair_have_the_same_keys_each_for_one_use() -> None:
    agreed = terms(6, 4)
    here, there = of_pair(agreed, 1, 2), of_pair(agreed, 2, 1)
    assert here == PairKeys(there.opens, there.seals, there.checks, there.confirms)
    assert len(set(here)) == 4
    assert not set(here) & set(of_pair(agreed, 1, 3))


@pytest.mark.parametrize(
    "other",
    [{"session": bytes(16)}, {"threshold": 5}, {"bits": 9}, {"length": 5}],
)
@pytest.mark.parametrize("neighbours", [None, Neighbours(4, 3)])
def test_what_confirms_names_session_and_terms(
    other: dict[str, object], neighbours: Neighbours | None
) -> None:
    # The very same public keys, which a proper client would not use twice.
    first = terms(6, 4, neighbours=neighbours)
    second = terms(**{"clients": 6, "threshold": 4, "neighbours": neighbours, **other})  # type: ignore[arg-type]
    told = frozenset({0, 1, 2, 4})
    assert survivor_statement(first, told) != survivor_statement(second, told)
    assert not set(of_pair(first, 1, 2)) & set(of_pair(second, 1, 2))


@pytest.mark.parametrize("neighbours", [None, Neighbours(4, 3)])
def test_keys_of_a_pair_name_who_sits_where_and_with_which_fresh_key(
    neighbours: Neighbours | None,
) -> None:
    agreed = terms(6, 4, neighbours=neighbours)
    before = set(of_pair(agreed, 1, 3))
    signs_another = PEOPLE[5][:32] + PEOPLE[3][32:]  # and agrees by the same key
    for changed in ({1: OTHER_KEY}, {3: OTHER_KEY}, {1: KEYS[3], 3: KEYS[1]}):
        assert not before & set(of_pair(agreed, 1, 3, {**KEYS, **changed}))
    assert not before & set(of_pair(agreed, 1, 3, people={**PEOPLE, 3: signs_another}))
    # On the complete graph of all: who were told of other seats, or of other keys, share none.
    of_others = [
        of_pair(agreed, 1, 3, {**KEYS, 2: OTHER_KEY}),
        of_pair(agreed, 1, 3, people={**PEOPLE, 2: IDENTITIES[7].public}),
        of_pair(agreed, 1, 3, {v: key for v, key in KEYS.items() if v != 2}),
    ]
    for each in of_others:
        assert (before == set(each)) == (neighbours is not None)
        assert bool(before & set(each)) == (neighbours is not None)


Rounds0 = Callable[[], tuple[Rounds, frozenset[int], str]]


def fewer_than_the_threshold() -> tuple[Rounds, frozenset[int], str]:
    rounds = Rounds(terms(9, 6, neighbours=Neighbours(4, 3))).until(Step.CONFIRM)
    near = rounds.server._neighbours[0]  # five, of whom three would be enough to unmask
    return rounds, near, "5 survivors are fewer than the threshold"


def one_never_heard_of() -> tuple[Rounds, frozenset[int], str]:
    rounds = Rounds(terms(9, 4, neighbours=Neighbours(4, 3))).until(Step.SHARE)
    quiet = min(rounds.server._neighbours[0] - {0})
    rounds.play(Step.SHARE, quiet)
    return rounds.until(Step.CONFIRM), frozenset(range(9)), "a survivor never sent its shares"


@pytest.mark.parametrize("case", [fewer_than_the_threshold, one_never_heard_of])
def test_on_a_circle_too_some_lists_are_not_confirmed(case: Rounds0) -> None:
    rounds, told, why = case()
    rounds.inbox[0] = replace(rounds.inbox[0], numbers=told)  # type: ignore[call-arg]
    with pytest.raises(ProtocolError, match=why):
        rounds.answer(0, Step.CONFIRM)
