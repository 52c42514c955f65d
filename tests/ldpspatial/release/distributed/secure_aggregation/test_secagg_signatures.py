"""What a client's signature of a list of survivors stands for, and when it gives none."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from client_sdk.rounds import client as client_module
from client_sdk.rounds import shamir
from client_sdk.rounds.keys import (
    own_mask,
    pair_mask,
    survivor_statements,
)
from client_sdk.rounds.masks import bits_of_numbers
from client_sdk.rounds.messages import (
    Confirmations,
    KeyAdvert,
    KeyList,
    Revealed,
    SharesIn,
    Survivors,
)
from client_sdk.rounds.primitives import KeyPair, SigningKey
from ldpspatial.release.distributed.sums.secure_aggregation import (
    Client,
    Neighbours,
    ProtocolError,
    Step,
    Terms,
)
from tests.support.aggregation_rounds import Rounds, seeded, terms

N, T = 10, 6
ALIVE, DEAD = frozenset(range(4)), frozenset(range(4, N))
IDENTITIES = [SigningKey(seeded(seed)) for seed in range(N)]


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
        self.adverts = [client.advertise() for client in self.clients]
        everyone = tuple(self.adverts)
        out = [c.share(KeyList(agreed.digest, c.number, everyone)) for c in self.clients]
        self.masked = []
        for client in self.clients:
            i = client.number
            sealed = tuple((m.client, dict(m.sealed)[i]) for m in out if m.client != i)
            message = client.mask(SharesIn(agreed.digest, i, sealed), vectors[i])
            self.masked.append(message.residues)


def put_together(agreed: Terms, last: FirstRounds, revealed: list[Revealed]) -> np.ndarray:
    """Unmask the sum of the living from shares of their seeds and of the dead's mask keys."""
    seeds: dict[int, dict[int, int]] = {v: {} for v in range(N)}
    keys: dict[int, dict[int, int]] = {v: {} for v in range(N)}
    for message in revealed:
        for found, shares in ((seeds, message.seeds), (keys, message.keys)):
            for owner, share in shares:
                found[owner][message.client + 1] = share

    def secret(shares: Mapping[int, int]) -> bytes:
        return shamir.combine(dict(list(shares.items())[:T])).to_bytes(32, "big")

    total: np.ndarray = sum(last.masked[i] for i in ALIVE)  # type: ignore[assignment]
    for i in ALIVE:
        total = total - own_mask(agreed, i, secret(seeds[i]))
    for v in DEAD:
        pair = KeyPair(secret(keys[v]))
        for i in ALIVE:
            total = total + pair_mask(agreed, pair, v, last.adverts[i])
    return total & (agreed.modulus - 1)


def opened_below_the_threshold() -> tuple[list[int], list[int]]:
    """Attack: one session for each list, all of one name; in the last one replay the signatures.

    Each client of the last session reveals for its own list: all of them seeds of the first four,
    and T of them the mask key of each of the others.
    """
    agreed = terms(N, T, bits=16, length=3)
    vectors = np.arange(N * 3).reshape(N, 3)
    signed: dict[frozenset[int], tuple[tuple[int, bytes], ...]] = {}
    for told in set(TOLD):
        rounds = FirstRounds(agreed, vectors)
        signed[told] = tuple(
            (i, rounds.clients[i].confirm(Survivors(agreed.digest, i, told, N)).signature)
            for i in sorted(told)
        )
    last, revealed = FirstRounds(agreed, vectors), []
    for client, told in zip(last.clients, TOLD, strict=True):
        client.confirm(Survivors(agreed.digest, client.number, told, N))
        replayed = Confirmations(agreed.digest, client.number, signed[told])
        revealed.append(client.reveal(replayed))
    found = put_together(agreed, last, revealed)
    return found.tolist(), vectors[sorted(ALIVE)].sum(axis=0).tolist()


def test_signatures_of_earlier_sessions_of_the_same_name_open_nothing() -> None:
    with pytest.raises(ProtocolError, match="has not confirmed the same survivors"):
        opened_below_the_threshold()


def test_bound_to_the_name_alone_they_would_open_the_sum_of_four(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_keys(
        agreed: Terms, told: frozenset[int], adverts: Mapping[int, KeyAdvert]
    ) -> dict[int, bytes]:
        return dict.fromkeys(adverts, agreed.label("survivors") + bits_of_numbers(told, N))

    monkeypatch.setattr(client_module, "survivor_statements", without_keys)
    found, secret = opened_below_the_threshold()
    assert found == secret  # of four vectors, where the threshold is six


def advert(client: int, seed: int) -> KeyAdvert:
    cipher, mask = (KeyPair(seeded(seed)(32)).public for seed in (2 * seed, 2 * seed + 1))
    return KeyAdvert(bytes(32), client, cipher, mask, bytes(64))


ADVERTS = {client: advert(client, client) for client in range(6)}


def statements(agreed: Terms, adverts: Mapping[int, KeyAdvert] = ADVERTS) -> dict[int, bytes]:
    return survivor_statements(agreed, frozenset({0, 1, 2, 4}), adverts)


@pytest.mark.parametrize(
    "other",
    [{"session": bytes(16)}, {"threshold": 5}, {"bits": 9}, {"length": 5}],
)
@pytest.mark.parametrize("neighbours", [None, Neighbours(4, 3)])
def test_a_signature_names_session_and_terms(
    other: dict[str, object], neighbours: Neighbours | None
) -> None:
    # The very same public keys, which a proper client would not use twice.
    first = statements(terms(6, 4, neighbours=neighbours))
    second = statements(terms(**{"clients": 6, "threshold": 4, "neighbours": neighbours, **other}))  # type: ignore[arg-type]
    assert not set(first.values()) & set(second.values())


@pytest.mark.parametrize("key", ["cipher_key", "mask_key"])
def test_a_signature_names_fresh_keys(key: str) -> None:
    fresh = replace(ADVERTS[3], **{key: getattr(advert(3, 9), key)})
    changed = {**ADVERTS, 3: fresh}
    # On the complete graph whoever signs vouches for the keys of all: so signers of one list of
    # survivors have seen one list of keys, and two sessions cannot be mixed.
    whole = terms(6, 4)
    before, after = statements(whole), statements(whole, changed)
    assert all(before[client] != after[client] for client in range(6))
    fewer = statements(whole, {v: ADVERTS[v] for v in range(5)})
    assert all(before[client] != fewer[client] for client in range(5))
    circle = terms(6, 4, neighbours=Neighbours(4, 3))
    before, after = statements(circle), statements(circle, changed)
    assert [v for v in range(6) if before[v] != after[v]] == [3]
    assert len(set(before.values())) == 6


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
def test_on_a_circle_too_some_lists_are_not_signed(case: Rounds0) -> None:
    rounds, told, why = case()
    rounds.inbox[0] = replace(rounds.inbox[0], numbers=told)  # type: ignore[call-arg]
    with pytest.raises(ProtocolError, match=why):
        rounds.answer(0, Step.CONFIRM)
