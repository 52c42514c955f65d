"""What a server does not take from a client, and what it does not make a sum of."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ldpspatial.distributed.secure_aggregation import AbortedError, ProtocolError, Step
from ldpspatial.distributed.secure_aggregation.messages import (
    MaskedVector,
    Revealed,
    SharesIn,
    Survivors,
)
from ldpspatial.distributed.secure_aggregation.shamir import PRIME
from tests.support.aggregation_rounds import Rounds, terms

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
        (replace(out, seed_check=b""), "no check of its seed"),  # type: ignore[call-arg]
        (SharesIn(out.session, 0, ()), "a message that clients do not send"),
        (Survivors(out.session, 0, frozenset(), 6), "out of its round"),
    ):
        with pytest.raises(ProtocolError, match=why):
            rounds.server.receive(wrong)
    rounds.server.receive(out)
    with pytest.raises(ProtocolError, match="has been heard already"):
        rounds.server.receive(out)


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


def test_a_server_takes_confirmations_of_its_own_survivors_only() -> None:
    rounds = Rounds(terms(6, 4)).until(Step.CONFIRM)
    rounds.inbox[0] = replace(rounds.inbox[0], numbers=frozenset({0, 1, 2, 3}))  # type: ignore[call-arg]
    with pytest.raises(ProtocolError, match="client 0 has not confirmed the survivors"):
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
        (lambda m: replace(m, keys=(*m.keys, (1, 5))), "not revealed what was asked for"),
        (lambda m: replace(m, keys=((SILENT, PRIME),)), "beyond the field"),
        (lambda m: replace(m, keys=((SILENT, -1),)), "beyond the field"),
    ],
)
def test_a_server_takes_the_shares_that_it_asked_for_only(
    change: Callable[[Revealed], Revealed], why: str
) -> None:
    with pytest.raises(ProtocolError, match=why):
        revealed_with(change)


def wrong_seed(message: Revealed) -> Revealed:
    (owner, share), *others = message.seeds
    return replace(message, seeds=((owner, (share + 1) % PRIME), *others))


def wrong_key(message: Revealed) -> Revealed:
    ((owner, share),) = message.keys
    return replace(message, keys=((owner, (share + 1) % PRIME),))


@pytest.mark.parametrize("change", [wrong_seed, wrong_key])
def test_a_wrong_share_ends_the_session_without_a_sum(change: Callable[[Any], Any]) -> None:
    rounds = revealed_with(change)
    with pytest.raises(AbortedError, match="do not fit"):
        rounds.server.close_round()
    with pytest.raises(AbortedError, match="there is no sum"):
        rounds.server.total()
