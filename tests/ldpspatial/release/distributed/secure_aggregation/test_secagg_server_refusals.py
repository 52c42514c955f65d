"""What a server does not take from a client, and what it does not make a sum of."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from client_sdk.rounds.keys import key_statement
from client_sdk.rounds.messages import (
    KeyAdvert,
    MaskedVector,
    Revealed,
    SharesIn,
    Survivors,
)
from client_sdk.rounds.primitives import FIELD, usable
from client_sdk.rounds.shamir import PRIME
from ldpspatial.release.distributed.sums.secure_aggregation import (
    AbortedError,
    Client,
    Neighbours,
    ProtocolError,
    Server,
    Step,
    enrol,
    play,
)
from tests.support.aggregation_rounds import Rounds, sealing, seeded, some_vectors, terms

SILENT = 4  # fails before its masked vector


def test_a_server_takes_one_message_a_round_from_each_client_that_is_left() -> None:
    rounds = Rounds(terms(6, 4))
    rounds.play(Step.ADVERTISE, SILENT)
    out = rounds.answer(0, Step.SHARE)
    for wrong, why in (
        (replace(out, session=bytes(32)), "another session"),
        (replace(out, client=SILENT), "has left, or has been heard already"),
        (replace(out, client=-1), "has left, or has been heard already"),
        (replace(out, sealed=out.sealed[1:]), "not sent each neighbour its shares"),  # type: ignore[call-arg,attr-defined]
        (replace(out, sealed=(*out.sealed, out.sealed[0])), "not sent each neighbour"),  # type: ignore[call-arg,attr-defined]
        (replace(out, seed_check=b""), "the check of the seed is malformed"),  # type: ignore[call-arg]
        (SharesIn(out.session, 0, ()), "a message that clients do not send"),
        (Survivors(out.session, 0, frozenset(), 6), "out of its round"),
    ):
        with pytest.raises(ProtocolError, match=why):
            rounds.server.receive(wrong)
    rounds.server.receive(out)
    with pytest.raises(ProtocolError, match="has been heard already"):
        rounds.server.receive(out)


# The points of small order on Curve25519 and its twist (u coordinates): 0, 1, -1, two of order 8.
ORDER_8 = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
SMALL_ORDER = [0, 1, *ORDER_8, FIELD - 1]


def key(number: int) -> bytes:
    return number.to_bytes(32, "little")


def test_keys_that_nobody_can_agree_with_are_told_from_others() -> None:
    assert not any(usable(key(number)) for number in SMALL_ORDER)
    # A second way to write a point: the server could not tell that its owner has that key.
    assert not any(usable(key(number)) for number in (FIELD + 2, FIELD + 9, (1 << 255) + 9))
    assert all(usable(key(number)) for number in (2, 9, FIELD - 2))
    assert all(usable(seeded(n)(31) + b"\x3f") for n in range(20))


def advertising(mask: bytes) -> type[Client]:
    """Clients of which number 2 signs another key."""

    class Odd(Client):
        def advertise(self) -> KeyAdvert:
            advert = super().advertise()
            if self.number != 2:
                return advert
            signature = self._known_identity().sign(key_statement(self.terms, mask))
            return KeyAdvert(self.terms.digest, self.number, mask, signature)

    return Odd


USELESS = [*(key(number) for number in SMALL_ORDER), key(FIELD + 9), bytes(31), bytes(33)]


@pytest.mark.parametrize("mask", USELESS)
@pytest.mark.parametrize("neighbours", [None, Neighbours(4, 2)])
def test_who_advertises_a_useless_key_is_left_out_alone(
    mask: bytes, neighbours: Neighbours | None
) -> None:
    agreed = terms(6, 4, bits=20, neighbours=neighbours)
    vectors = some_vectors(agreed)
    outcome = play(*enrol(agreed, seeded(1), advertising(mask)), vectors)
    assert list(outcome.refusals) == [2]
    assert outcome.included == {0, 1, 3, 4, 5}
    assert outcome.total is not None
    others = [0, 1, 3, 4, 5]
    assert outcome.total.tolist() == (vectors[others].sum(axis=0) % agreed.modulus).tolist()


def test_who_advertises_a_key_that_another_has_is_left_out_alone() -> None:
    agreed = terms(6, 4, bits=20)
    clients, server = enrol(agreed, seeded(1))
    taken = clients[0].advertise().mask_key
    clients, server = enrol(agreed, seeded(1), advertising(taken))
    outcome = play(clients, server, some_vectors(agreed))
    assert outcome.refusals == {2: "client 2 sent a key that cannot be used, or twice"}
    assert outcome.included == {0, 1, 3, 4, 5}
    assert outcome.total is not None


def test_a_key_that_another_signed_or_a_stranger_is_not_taken() -> None:
    agreed = terms(6, 4)
    clients, server = enrol(agreed, seeded(1))
    advert = clients[0].advertise()
    for wrong in (replace(advert, client=1), replace(advert, mask_key=key(9))):
        with pytest.raises(ProtocolError, match="is not signed by it"):
            server.receive(wrong)
    known = {v: identity for v, identity in server._directory.items() if v != 0}
    with pytest.raises(ProtocolError, match="the key of client 0 is not signed by it"):
        Server(agreed, known).receive(advert)
    earlier, _ = enrol(terms(6, 4, session=bytes(16)), seeded(1))
    replayed = replace(earlier[0].advertise(), session=agreed.digest)
    with pytest.raises(ProtocolError, match="the key of client 0 is not signed by it"):
        server.receive(replayed)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_shares_of_another_size_are_refused_by_the_server(size: int) -> None:
    rounds = Rounds(terms(6, 4), client=sealing(bytes(size))).until(Step.SHARE)
    with pytest.raises(ProtocolError, match="the list of sealed shares is malformed"):
        rounds.server.receive(rounds.answer(1, Step.SHARE))


def test_a_server_takes_residues_of_the_agreed_length_only() -> None:
    rounds = Rounds(terms(6, 4)).until(Step.MASK)
    good = rounds.answer(0, Step.MASK)
    assert isinstance(good, MaskedVector)
    wrong: list[tuple[Any, str]] = [
        (good.residues[:3], "no vector of the agreed length"),
        (np.zeros(4), "no vector of the agreed length"),
        (good.residues + 256, "numbers beyond the modulus"),
        (good.residues - 256, "numbers beyond the modulus"),
    ]
    for residues, why in wrong:
        with pytest.raises(ProtocolError, match=why):
            rounds.server.receive(replace(good, residues=residues))
    rounds.server.receive(good)


def test_a_server_takes_a_code_for_each_neighbour_that_survives() -> None:
    rounds = Rounds(terms(6, 4)).until(Step.CONFIRM)
    rounds.inbox[0] = replace(rounds.inbox[0], numbers=frozenset({0, 1, 2, 3}))  # type: ignore[call-arg]
    with pytest.raises(ProtocolError, match="client 0 has not confirmed to each neighbour"):
        rounds.server.receive(rounds.answer(0, Step.CONFIRM))


def revealed_with(change: Callable[[Revealed], Revealed]) -> Rounds:
    """All reveal; client 0 what ``change`` makes of it."""
    rounds = Rounds(terms(6, 4)).until(Step.REVEAL, SILENT)
    for number in (0, 1, 2, 3, 5):
        message = rounds.answer(number, Step.REVEAL)
        assert isinstance(message, Revealed)
        rounds.server.receive(change(message) if number == 0 else message)
    return rounds


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda m: replace(m, seeds=m.seeds[1:]), "not revealed what was asked for"),
        (lambda m: replace(m, seeds=(*m.seeds, m.seeds[0])), "not revealed what was asked for"),
        (lambda m: replace(m, keys=(*m.keys, 5)), "not revealed what was asked for"),
        (lambda m: replace(m, keys=(PRIME,)), "beyond the field"),
        (lambda m: replace(m, keys=(-1,)), "beyond the field"),
    ],
)
def test_a_server_takes_the_shares_that_it_asked_for_only(
    change: Callable[[Revealed], Revealed], why: str
) -> None:
    with pytest.raises(ProtocolError, match=why):
        revealed_with(change)


def wrong_seed(message: Revealed) -> Revealed:
    share, *others = message.seeds
    return replace(message, seeds=((share + 1) % PRIME, *others))


def wrong_key(message: Revealed) -> Revealed:
    (share,) = message.keys
    return replace(message, keys=((share + 1) % PRIME,))


@pytest.mark.parametrize("change", [wrong_seed, wrong_key])
def test_a_wrong_share_ends_the_session_without_a_sum(change: Callable[[Any], Any]) -> None:
    rounds = revealed_with(change)
    with pytest.raises(AbortedError, match="do not fit"):
        rounds.server.close_round()
    with pytest.raises(AbortedError, match="there is no sum"):
        rounds.server.total()
