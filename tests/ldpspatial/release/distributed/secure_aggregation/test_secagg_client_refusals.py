"""What a client does not answer, whatever server or other clients send it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from client_sdk import ParameterError
from client_sdk.rounds.messages import (
    Confirmations,
    KeyAdvert,
    KeyList,
    Revealed,
    SharesIn,
    SharesOut,
    Survivors,
)
from client_sdk.rounds.wire import Message
from ldpspatial.release.distributed.sums.secure_aggregation import Neighbours, ProtocolError, Step
from tests.support.aggregation_rounds import Rounds, sealing, terms

SILENT = 4  # fails before its masked vector, where a test wants a client that has failed


def at(step: Step, **changed: Any) -> Rounds:
    return Rounds(terms(6, 4, **changed)).until(step, SILENT)


def refuses(rounds: Rounds, step: Step, message: Message, why: str) -> None:
    """Client 0 refuses, and then answers neither the right message nor any later round."""
    right, rounds.inbox[0] = rounds.inbox[0], message
    with pytest.raises(ProtocolError, match=why):
        rounds.answer(0, step)
    rounds.inbox[0] = right
    for later in Step:
        with pytest.raises(ProtocolError, match="does not answer round"):
            rounds.answer(0, later)


def test_every_round_is_answered_once_and_in_order() -> None:
    for step in Step:
        rounds = at(step)
        rounds.answer(0, step)
        with pytest.raises(ProtocolError, match=f"client 0 does not answer round {step.value} now"):
            rounds.answer(0, step)
    rounds = at(Step.CONFIRM)
    with pytest.raises(ProtocolError, match="does not answer round 4 now"):
        rounds.answer(0, Step.REVEAL)
    with pytest.raises(ProtocolError, match="does not answer round 3 now"):
        rounds.answer(0, Step.CONFIRM)


@pytest.mark.parametrize("step", list(Step)[1:])
def test_messages_of_another_session_client_or_round(step: Step) -> None:
    why = "another session, round or client"
    message = at(step).inbox[0]
    refuses(at(step), step, replace(message, session=bytes(32)), why)
    refuses(at(step), step, replace(message, client=1), why)
    other = SharesIn(message.session, 0, ()) if step is not Step.MASK else message
    wrong = Confirmations(message.session, 0, ()) if step is Step.MASK else other
    refuses(at(step), step, wrong, why)


# -- round 1: the list of keys


def key_list(change: Callable[[list[KeyAdvert]], Any], **changed: Any) -> tuple[Rounds, KeyList]:
    rounds = at(Step.SHARE, **changed)
    message = rounds.inbox[0]
    assert isinstance(message, KeyList)
    adverts = list(message.adverts)
    change(adverts)
    return rounds, replace(message, adverts=tuple(adverts))


def put(place: int, **fields: Any) -> Callable[[list[KeyAdvert]], None]:
    def change(adverts: list[KeyAdvert]) -> None:
        adverts[place] = replace(adverts[place], **fields)

    return change


def repeat_key(adverts: list[KeyAdvert]) -> None:
    adverts[2] = replace(adverts[2], mask_key=adverts[1].mask_key)


def swap_owners(adverts: list[KeyAdvert]) -> None:
    first, second = adverts[1], adverts[2]
    adverts[1], adverts[2] = replace(second, client=1), replace(first, client=2)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda adverts: adverts.pop(0), "own keys are missing or altered"),
        (put(0, mask_key=bytes(32)), "own keys are missing or altered"),
        (lambda adverts: adverts.append(adverts[1]), "a client occurs twice"),
        (lambda adverts: adverts.__delitem__(slice(3, 6)), "3 clients' keys is too short"),
        (repeat_key, "a public key occurs twice"),
        (lambda adverts: put(1, mask_key=adverts[0].mask_key)(adverts), "key occurs twice"),
        (lambda adverts: put(1, cipher_key=adverts[1].mask_key)(adverts), "key occurs twice"),
        (put(1, cipher_key=bytes(32)), "the keys of client 1 are not signed by it"),
        (put(1, client=9), "the keys of client 9 are not signed by it"),
        (put(1, client=-2), "the keys of client -2 are not signed by it"),
        (swap_owners, "the keys of client 1 are not signed by it"),
    ],
)
def test_lists_of_keys(change: Callable[[list[KeyAdvert]], Any], why: str) -> None:
    rounds, message = key_list(change)
    refuses(rounds, Step.SHARE, message, why)


def test_more_neighbours_than_agreed() -> None:
    rounds = Rounds(terms(6, 4, neighbours=Neighbours(2, 2))).until(Step.SHARE)
    everyone = tuple(m for m in rounds.said if isinstance(m, KeyAdvert))
    refuses(rounds, Step.SHARE, replace(rounds.inbox[0], adverts=everyone), "too long")  # type: ignore[call-arg]


def test_keys_that_their_owner_signed_for_another_session() -> None:
    earlier = Rounds(terms(6, 4, session=bytes(16))).until(Step.SHARE)
    message = earlier.inbox[0]
    assert isinstance(message, KeyList)
    rounds = at(Step.SHARE)
    replayed = replace(message.adverts[1], session=rounds.inbox[0].session)
    rounds, changed = key_list(lambda adverts: adverts.__setitem__(1, replayed))
    refuses(rounds, Step.SHARE, changed, "the keys of client 1 are not signed by it")


# -- round 2: shares


def shares_in(change: Callable[[list[tuple[int, bytes]]], Any]) -> tuple[Rounds, SharesIn]:
    rounds = at(Step.MASK)
    message = rounds.inbox[0]
    assert isinstance(message, SharesIn)
    sealed = list(message.sealed)
    change(sealed)
    return rounds, replace(message, sealed=tuple(sealed))


def from_client(rounds: Rounds, sender: int, receiver: int) -> bytes:
    """What a client sealed for another, as the server got it."""
    out = next(m for m in rounds.said if isinstance(m, SharesOut) and m.client == sender)
    return dict(out.sealed)[receiver]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: s.__setitem__(0, (1, s[0][1][:-1] + b"?")), "altered, or made for another use"),
        (lambda s: s.__setitem__(0, (1, b"")), "the list of sealed shares is malformed"),
        (lambda s: s.__setitem__(0, (1, s[1][1])), "altered, or made for another use"),
        (lambda s: s.append(s[0]), "a client occurs twice"),
        (lambda s: s.append((0, s[0][1])), "a client that is not a neighbour"),
        (lambda s: s.append((6, s[0][1])), "a client that is not a neighbour"),
        (lambda s: s.__delitem__(slice(2, 5)), "too few neighbours sent shares: 2"),
    ],
)
def test_shares(change: Callable[[list[tuple[int, bytes]]], Any], why: str) -> None:
    rounds, message = shares_in(change)
    refuses(rounds, Step.MASK, message, why)


def test_shares_sealed_for_somebody_else_or_in_another_session() -> None:
    for_another = from_client(at(Step.MASK), 1, 2)
    rounds, message = shares_in(lambda s: s.__setitem__(0, (1, for_another)))
    refuses(rounds, Step.MASK, message, "altered, or made for another use")
    own_back = from_client(at(Step.MASK), 0, 1)  # the pair's other direction
    rounds, message = shares_in(lambda s: s.__setitem__(0, (1, own_back)))
    refuses(rounds, Step.MASK, message, "altered, or made for another use")
    # The same clients with the very same keys, in a session of another name.
    replayed = from_client(at(Step.MASK, session=bytes(16)), 1, 0)
    rounds, message = shares_in(lambda s: s.__setitem__(0, (1, replayed)))
    refuses(rounds, Step.MASK, message, "altered, or made for another use")


@pytest.mark.parametrize("halves", [(b"\xff", b"\0"), (b"\0", b"\xff")])
def test_what_a_neighbour_seals_has_to_be_two_numbers_of_the_field(
    halves: tuple[bytes, bytes],
) -> None:
    plaintext = b"".join(33 * half for half in halves)
    rounds = Rounds(terms(6, 4), client=sealing(plaintext)).until(Step.MASK)
    refuses(rounds, Step.MASK, rounds.inbox[0], "client 1 sent no pair of shares")


@pytest.mark.parametrize(
    "vector",
    [np.zeros(3, np.int64), np.zeros(4), np.full(4, 256), np.full(4, -1), np.zeros((4, 1), int)],
)
def test_vectors_that_are_no_residues_are_not_sent(vector: np.ndarray) -> None:
    rounds = at(Step.MASK)
    rounds.vectors = np.array([vector])
    with pytest.raises(ParameterError, match="vector must"):
        rounds.answer(0, Step.MASK)
    with pytest.raises(ProtocolError):
        rounds.answer(0, Step.MASK)


# -- rounds 3 and 4: survivors


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ({1, 2, 3, 5}, "do not include this client"),
        ({0, 1, 2, 7}, "includes strangers"),
        ({0, 1, 2}, "3 survivors are fewer than the threshold"),
    ],
)
def test_lists_of_survivors(numbers: set[int], why: str) -> None:
    rounds = at(Step.CONFIRM)
    message = replace(rounds.inbox[0], numbers=frozenset(numbers))  # type: ignore[call-arg]
    refuses(rounds, Step.CONFIRM, message, why)


@pytest.mark.parametrize("step", [Step.ADVERTISE, Step.SHARE])
def test_survivors_who_never_sent_shares(step: Step) -> None:
    agreed = terms(6, 4)
    rounds = Rounds(agreed).until(step)
    rounds.play(step, SILENT)
    rounds.until(Step.CONFIRM)
    message = Survivors(agreed.digest, 0, frozenset(range(6)), 6)
    refuses(rounds, Step.CONFIRM, message, "a survivor never sent its shares")


def test_too_few_survivors_among_the_neighbours() -> None:
    agreed = terms(9, 4, neighbours=Neighbours(4, 3))
    rounds = Rounds(agreed).until(Step.CONFIRM)
    near = rounds.server._neighbours[0]
    kept = frozenset(range(9)) - near | {0, min(near - {0})}
    message = Survivors(agreed.digest, 0, kept, 9)
    refuses(rounds, Step.CONFIRM, message, "2 neighbours survive: too few")


def test_a_server_that_tells_clients_different_survivors_gets_no_shares() -> None:
    rounds = at(Step.CONFIRM)
    everyone = rounds.inbox[0]
    assert isinstance(everyone, Survivors)
    without_3 = everyone.numbers - {3}
    signatures = {}
    for number in (0, 1, 2, 5):  # for 0 client 3 has survived: seed; for the others: mask key
        told = everyone.numbers if number == 0 else without_3
        message = replace(everyone, client=number, numbers=told)
        signatures[number] = rounds.clients[number].confirm(message).signature
    for number in signatures:
        relayed = Confirmations(everyone.session, number, tuple(signatures.items()))
        why = "client 1 has not confirmed" if number == 0 else "client 0 has not confirmed"
        with pytest.raises(ProtocolError, match=why):
            rounds.clients[number].reveal(relayed)


def test_a_second_list_of_survivors_is_not_signed() -> None:
    rounds = at(Step.CONFIRM)
    message = rounds.inbox[0]
    rounds.answer(0, Step.CONFIRM)
    rounds.inbox[0] = replace(message, numbers=message.numbers - {3})  # type: ignore[attr-defined,call-arg]
    with pytest.raises(ProtocolError, match="does not answer round 3 now"):
        rounds.answer(0, Step.CONFIRM)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: s[:3], "too few neighbours, or others, have confirmed"),
        (lambda s: [*s[:3], (SILENT, s[3][1])], "too few neighbours, or others"),
        (lambda s: [*s[:3], (9, s[3][1])], "too few neighbours, or others"),
        (lambda s: [*s[:3], s[0]], "a client occurs twice"),
        (lambda s: [*s[:3], (3, s[0][1])], "client 3 has not confirmed the same survivors"),
        (lambda s: [*s[:3], (3, bytes(64))], "client 3 has not confirmed the same survivors"),
    ],
)
def test_confirmations(change: Callable[[Any], Any], why: str) -> None:
    rounds = at(Step.REVEAL)
    message = rounds.inbox[0]
    assert isinstance(message, Confirmations)
    changed = replace(message, signatures=tuple(change(list(message.signatures))))
    refuses(rounds, Step.REVEAL, changed, why)


def test_of_no_client_are_both_secrets_revealed() -> None:
    rounds = at(Step.REVEAL)
    for number in (0, 1, 2, 3, 5):
        message = rounds.answer(number, Step.REVEAL)
        assert isinstance(message, Revealed)
        seeds, keys = dict(message.seeds), dict(message.keys)
        assert seeds.keys() == {0, 1, 2, 3, 5}
        assert keys.keys() == {SILENT}
