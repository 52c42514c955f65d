"""A server that tells two halves of the clients of different survivors.

Each half takes the other for failed. So the server hears shares of the seeds of one half and of the
mask keys of the other from each, and with T <= n / 2 has enough of both secrets of every client:
it unmasks every single vector. 2 T > n + c leaves it too few confirmations of either list.
"""

import numpy as np
import pytest

from client_sdk import ParameterError
from client_sdk.rounds import Client
from client_sdk.rounds.keys import mask_pair, own_mask, pair_mask
from client_sdk.rounds.messages import Confirmations, MaskedVector, Revealed, Survivors
from client_sdk.rounds.shamir import combine
from ldpspatial.release.distributed.sums.secure_aggregation import ProtocolError, Step, Terms
from tests.support.aggregation_rounds import Rounds, revealed_of, some_vectors

CLIENTS = 10


def agreed(threshold: int, honest_server: bool) -> Terms:
    session = b"a test's session"
    return Terms(session, CLIENTS, threshold, 16, 6, honest_server=honest_server)


def equivocate(rounds: Rounds, halves: tuple[list[int], list[int]]) -> list[Revealed]:
    """Tell each half that it alone survives; return what the clients then reveal."""
    terms = rounds.server.terms
    revealed = []
    for half in halves:
        told = {k: Survivors(terms.digest, k, frozenset(half), CLIENTS) for k in half}
        codes = {
            k: dict(
                zip(sorted({*half} - {k}), rounds.clients[k].confirm(told[k]).codes, strict=True)
            )
            for k in half
        }
        for k in half:
            confirmed = tuple((v, codes[v][k]) for v in half if v != k)
            revealed.append(rounds.clients[k].reveal(Confirmations(terms.digest, k, confirmed)))
    return revealed


def unmasked(
    rounds: Rounds, number: int, revealed: list[Revealed], lists: tuple[list[int], list[int]]
) -> np.ndarray:
    """Return the vector of one client, from both its secrets and what it has sent."""
    terms = rounds.server.terms
    seeds: dict[int, int] = {}
    keys: dict[int, int] = {}
    for message, told in zip(revealed, [half for half in lists for _ in half], strict=True):
        alive, failed = revealed_of(message, CLIENTS, frozenset(told))
        for found, shares in ((seeds, alive), (keys, failed)):
            if number in shares:
                found[message.client + 1] = shares[number]
    assert min(len(seeds), len(keys)) >= terms.shares
    secrets = [
        combine(dict(list(shares.items())[: terms.shares])).to_bytes(16, "big")
        for shares in (seeds, keys)
    ]
    pair = mask_pair(terms, number, secrets[1])
    (sent,) = (m for m in rounds.said if isinstance(m, MaskedVector) and m.client == number)
    vector = sent.residues - own_mask(terms, number, secrets[0])
    for other in range(CLIENTS):
        if other != number:
            key = rounds.server._mask_keys[other]
            vector = vector - pair_mask(terms, pair, number, other, key)
    return vector % terms.modulus


HALVES = list(range(5)), list(range(5, 10))


def test_with_half_as_threshold_and_trust_by_name_every_vector_is_unmasked() -> None:
    terms = agreed(5, honest_server=True)
    rounds = Rounds(terms, some_vectors(terms, seed=4)).until(Step.CONFIRM)
    revealed = equivocate(rounds, HALVES)
    for number in range(CLIENTS):
        assert (unmasked(rounds, number, revealed, HALVES) == rounds.vectors[number]).all()


def test_without_that_trust_half_is_refused_and_six_of_ten_leave_the_attack_nothing() -> None:
    with pytest.raises(ParameterError, match="threshold must be 6 or more of 10 clients"):
        agreed(5, honest_server=False)
    terms = agreed(6, honest_server=False)
    with pytest.raises(ProtocolError, match="5 survivors are fewer than the threshold"):
        equivocate(Rounds(terms, some_vectors(terms)).until(Step.CONFIRM), HALVES)
    # Lists of six overlap in two clients at least, and an honest client confirms one of them only.
    rounds = Rounds(terms, some_vectors(terms)).until(Step.CONFIRM)
    lists = list(range(6)), list(range(4, 10))
    with pytest.raises(ProtocolError, match="does not answer round 3 now"):
        equivocate(rounds, lists)


def invented(size: int) -> bytes:
    return np.random.default_rng(3).bytes(size)


@pytest.mark.parametrize("forged", [False, True])
def test_of_two_lists_that_overlap_one_is_revealed_and_no_secret_twice(forged: bool) -> None:
    """Six of ten are needed. The server goes on with what it has, or invents what it lacks."""
    terms = agreed(6, honest_server=False)
    rounds = Rounds(terms, some_vectors(terms, seed=6)).until(Step.CONFIRM)
    first, second = list(range(6)), list(range(4, 10))
    revealed = equivocate(rounds, (first, []))

    late = [6, 7, 8, 9]  # 4 and 5 have confirmed the first list
    codes = {}
    for k in late:
        told = Survivors(terms.digest, k, frozenset(second), CLIENTS)
        others = sorted({*second} - {k})
        codes[k] = dict(zip(others, rounds.clients[k].confirm(told).codes, strict=True))
    for k in late:
        confirmed = {v: codes[v][k] for v in late if v != k}
        if forged:
            confirmed |= {v: invented(16) for v in (4, 5)}
        message = Confirmations(terms.digest, k, tuple(sorted(confirmed.items())))
        with pytest.raises(ProtocolError, match="4 clients have confirmed the same survivors"):
            rounds.clients[k].reveal(message)

    # So the server has the sum of the first list's six, and of nobody enough of both secrets.
    for number in range(CLIENTS):
        counts = [0, 0]
        for message in revealed:
            for which, shares in enumerate(revealed_of(message, CLIENTS, frozenset(first))):
                counts[which] += number in shares
        assert sorted(counts) == [0, 6]


def test_colluding_clients_count_in_the_threshold() -> None:
    """Two who confirm both lists make six of ten too few: refused as soon as they are named."""
    with pytest.raises(ParameterError, match="7 or more of 10 clients with 2 colluding"):
        Terms(b"a test's session", CLIENTS, 6, 16, 6, colluding=2)
    terms = agreed(6, honest_server=False)  # which names none
    rounds = Rounds(terms, some_vectors(terms, seed=5)).until(Step.CONFIRM)

    lists = list(range(6)), list(range(4, 10))
    kept = {k: rounds.clients[k].saved() for k in (4, 5)}  # of the two who collude
    revealed = []
    for told in lists:
        for k, state in kept.items():
            rounds.clients[k] = Client.restored(terms, k, state)
        revealed += equivocate(rounds, (told, []))
    honest = [k for k in range(CLIENTS) if k not in (4, 5)]
    for number in honest:
        assert (unmasked(rounds, number, revealed, lists) == rounds.vectors[number]).all()
