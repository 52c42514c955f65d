"""What a client does not answer, whatever server or other clients send it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from client_sdk import ParameterError
from client_sdk.rounds.messages import (
    Confirmations,
    KeyList,
    Revealed,
    SharesIn,
    SharesOut,
    Survivors,
)
from client_sdk.rounds.primitives import Identity
from client_sdk.rounds.wire import Message
from ldpspatial.release.distributed.sums.secure_aggregation import Neighbours, ProtocolError, Step
from tests.support.aggregation_rounds import Rounds, revealed_of, sealing, seeded, terms

Keys = list[tuple[int, bytes]]

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


def key_list(change: Callable[[Keys], Any], **changed: Any) -> tuple[Rounds, KeyList]:
    rounds = at(Step.SHARE, **changed)
    message = rounds.inbox[0]
    assert isinstance(message, KeyList)
    keys = list(message.keys)
    change(keys)
    return rounds, replace(message, keys=tuple(keys))


def put(place: int, owner: int, key: bytes | None = None) -> Callable[[Keys], None]:
    def change(keys: Keys) -> None:
        keys[place] = (owner, keys[place][1] if key is None else key)

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda keys: keys.pop(0), "own key is missing or altered"),
        (put(0, 0, bytes(32)), "own key is missing or altered"),
        (lambda keys: keys.append(keys[1]), "a client occurs twice"),
        (lambda keys: keys.__delitem__(slice(3, 6)), "3 clients' keys is too short"),
        (lambda keys: put(2, 2, keys[1][1])(keys), "a public key occurs twice"),
        (lambda keys: put(1, 1, keys[0][1])(keys), "a public key occurs twice"),
        (put(1, 9), "client 9 is not enrolled"),
        (put(1, -2), "client -2 is not enrolled"),
    ],
)
def test_lists_of_keys(change: Callable[[Keys], Any], why: str) -> None:
    rounds, message = key_list(change)
    refuses(rounds, Step.SHARE, message, why)


def test_more_neighbours_than_agreed() -> None:
    rounds = Rounds(terms(6, 4, neighbours=Neighbours(2, 2))).until(Step.SHARE)
    everyone = tuple(sorted(rounds.server._mask_keys.items()))
    refuses(rounds, Step.SHARE, replace(rounds.inbox[0], keys=everyone), "too long")  # type: ignore[call-arg]


@pytest.mark.parametrize("known", ["nobody", "a key that is none"])
def test_who_is_not_enrolled_with_a_key_is_no_neighbour(known: str) -> None:
    rounds = at(Step.SHARE)
    directory = rounds.clients[0]._directory
    changed = {
        "nobody": {v: key for v, key in directory.items() if v != 3},
        "a key that is none": {**directory, 3: directory[3][:32] + bytes(32)},
    }[known]
    rounds.clients[0]._directory = changed
    why = "client 3 is not enrolled" if known == "nobody" else "not a valid X25519 key"
    refuses(rounds, Step.SHARE, rounds.inbox[0], why)


def swap_owners(keys: Keys) -> None:
    (first, one), (second, two) = keys[1], keys[2]
    keys[1], keys[2] = (first, two), (second, one)


@pytest.mark.parametrize("change", [put(1, 1, b"\x09" + bytes(31)), swap_owners])
def test_of_keys_that_are_not_their_owners_no_mask_is_made(change: Callable[[Keys], Any]) -> None:
    """A server's own key in place of a neighbour's: what the neighbour seals does not open."""
    rounds, changed = key_list(change)
    for number, client in enumerate(rounds.clients):
        message = changed if number == 0 else rounds.inbox[number]
        rounds.server.receive(client.share(message))  # type: ignore[arg-type]
    rounds.inbox = rounds.server.close_round()
    refuses(rounds, Step.MASK, rounds.inbox[0], "altered, or made for another use")


def test_an_identity_that_the_server_invented_opens_nothing() -> None:
    """Whoever has not the long-term key that the directory names can seal for no client."""
    rounds = at(Step.SHARE)
    invented = Identity.draw(seeded(9))
    rounds.clients[1]._identity = invented
    rounds = rounds.until(Step.MASK)
    refuses(rounds, Step.MASK, rounds.inbox[0], "altered, or made for another use")


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
    return out.sealed[receiver - (receiver > sender)]


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
    plaintext = b"".join(16 * half for half in halves)
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
    codes = {}
    for number in (0, 1, 2, 5):  # for 0 client 3 has survived: seed; for the others: mask key
        told = everyone.numbers if number == 0 else without_3
        message = replace(everyone, client=number, numbers=told)
        found = rounds.clients[number].confirm(message).codes
        codes[number] = dict(zip(sorted(told - {number}), found, strict=True))
    for number in codes:
        relayed = tuple((v, codes[v][number]) for v in codes if v != number)
        with pytest.raises(ProtocolError, match="have confirmed the same survivors: too few"):
            rounds.clients[number].reveal(Confirmations(everyone.session, number, relayed))


def test_a_second_list_of_survivors_is_not_confirmed() -> None:
    rounds = at(Step.CONFIRM)
    message = rounds.inbox[0]
    rounds.answer(0, Step.CONFIRM)
    rounds.inbox[0] = replace(message, numbers=message.numbers - {3})  # type: ignore[attr-defined,call-arg]
    with pytest.raises(ProtocolError, match="does not answer round 3 now"):
        rounds.answer(0, Step.CONFIRM)


FEW = "have confirmed the same survivors: too few"
OTHERS = "others than surviving neighbours have confirmed"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: s[:2], "3 clients have confirmed the same survivors: too few"),
        (lambda s: [*s[:3], (SILENT, s[3][1])], OTHERS),
        (lambda s: [*s[:3], (9, s[3][1])], OTHERS),
        (lambda s: [*s[:3], (0, s[3][1])], OTHERS),  # its own
        (lambda s: [*s[:3], s[0]], "a client occurs twice"),
        (lambda s: [*s[:2], (3, s[0][1])], FEW),
        (lambda s: [*s[:2], (3, bytes(16))], FEW),
    ],
)
def test_confirmations(change: Callable[[Any], Any], why: str) -> None:
    rounds = at(Step.REVEAL)
    message = rounds.inbox[0]
    assert isinstance(message, Confirmations)
    changed = replace(message, codes=tuple(change(list(message.codes))))
    refuses(rounds, Step.REVEAL, changed, why)


def test_a_confirmation_is_for_one_neighbour_and_one_direction() -> None:
    rounds = at(Step.REVEAL)
    mine, theirs = rounds.inbox[0], rounds.inbox[2]
    assert isinstance(mine, Confirmations)
    assert isinstance(theirs, Confirmations)
    own = dict(theirs.codes)[0]  # what this very client confirmed to 2
    for other in (dict(theirs.codes)[1], own):
        codes = tuple((v, other if v in (1, 2) else found) for v, found in mine.codes)
        refuses(rounds, Step.REVEAL, replace(mine, codes=codes), FEW)
        rounds = at(Step.REVEAL)


def test_a_neighbour_who_confirms_rubbish_keeps_nobody_from_a_sum() -> None:
    """Five survive, four are needed: a code that does not hold is not counted, and is no end."""
    rounds = at(Step.REVEAL)
    message = rounds.inbox[0]
    assert isinstance(message, Confirmations)
    (first, _), *others = message.codes
    rounds.inbox[0] = replace(message, codes=((first, bytes(16)), *others))
    assert isinstance(rounds.answer(0, Step.REVEAL), Revealed)


def test_of_no_client_are_both_secrets_revealed() -> None:
    rounds = at(Step.REVEAL)
    for number in (0, 1, 2, 3, 5):
        message = rounds.answer(number, Step.REVEAL)
        assert isinstance(message, Revealed)
        seeds, keys = revealed_of(message, 6, frozenset({0, 1, 2, 3, 5}))
        assert seeds.keys() == {0, 1, 2, 3, 5}
        assert keys.keys() == {SILENT}
