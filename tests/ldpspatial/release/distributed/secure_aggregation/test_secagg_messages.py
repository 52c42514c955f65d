"""Messages as bytes and back, and what is none: all of it ends in ProtocolError."""

import copy
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.rounds.masks import pack, unpack
from client_sdk.rounds.messages import (
    Confirmation,
    Confirmations,
    KeyAdvert,
    KeyList,
    MaskedVector,
    Revealed,
    SharesIn,
    SharesOut,
    Survivors,
)
from client_sdk.rounds.wire import Message
from ldpspatial.release.distributed.sums.secure_aggregation import (
    Neighbours,
    ProtocolError,
    Step,
    Terms,
)
from tests.support.aggregation_rounds import Rounds, terms

KINDS: list[type[Message]] = [
    KeyAdvert,
    KeyList,
    SharesOut,
    SharesIn,
    MaskedVector,
    Survivors,
    Confirmation,
    Confirmations,
    Revealed,
]
AGREED = terms(6, 4, bits=11, length=3)
SILENT = 4
quick = settings(max_examples=60)


def session_messages(agreed: Terms) -> dict[type[Message], Message]:
    """One message of each kind from a session in which a client has failed."""
    rounds = Rounds(agreed)
    found: list[Message] = []
    for step in Step:
        rounds.play(step, *([SILENT] if step >= Step.MASK else []))
        found += [rounds.said[-1], *rounds.inbox.values()]
    return {type(message): message for message in found}


MESSAGES = session_messages(AGREED)


def read(kind: type[Message], data: Any, agreed: Terms = AGREED) -> Message | None:
    """What is read, or None where it is refused; nothing else may happen."""
    try:
        return kind.from_bytes(data, agreed)
    except ProtocolError:
        return None


def plain(message: Message) -> dict[str, object]:
    """Fields that compare with ==."""
    found = {field.name: getattr(message, field.name) for field in fields(message)}
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in found.items()}


@settings(max_examples=12)
@given(
    st.integers(5, 9),
    st.sampled_from([1, 8, 11, 62]),
    st.integers(1, 9),
    st.sampled_from([None, Neighbours(4, 2)]),
)
def test_what_is_written_is_read_back(
    clients: int, bits: int, length: int, neighbours: Neighbours | None
) -> None:
    agreed = terms(clients, 3, bits, length, neighbours)
    found = session_messages(agreed)
    assert set(found) == set(KINDS)
    for kind, message in found.items():
        again = kind.from_bytes(message.to_bytes(), agreed)
        assert plain(again) == plain(message)
        again.check(agreed)


@quick
@given(st.integers(1, 62), st.lists(st.integers(0, (1 << 62) - 1), min_size=1, max_size=20))
def test_residues_are_unpacked_as_they_were_packed(bits: int, numbers: list[int]) -> None:
    residues = np.array([number % (1 << bits) for number in numbers])
    found = unpack(pack(residues, bits), bits, len(numbers))
    assert found.dtype == np.int64
    assert found.tolist() == residues.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_cut_short_or_continued_is_none(kind: type[Message]) -> None:
    data = MESSAGES[kind].to_bytes()
    lists = kind in (KeyList, SharesOut, SharesIn, Confirmation, Confirmations, Revealed)
    for size in range(len(data)):
        cut = read(kind, data[:size])
        # A list may end after any entry, and it is for the receiver to count them.
        assert cut is None or (lists and cut.to_bytes() == data[:size])
    for more in (b"\0", b"\xff", bytes(3)):
        assert read(kind, data + more) is None


@quick
@given(st.sampled_from(KINDS), st.binary(max_size=400))
def test_random_bytes_are_no_message(kind: type[Message], data: bytes) -> None:
    assert read(kind, data) is None
    header = MESSAGES[kind].to_bytes()[:37]
    found = read(kind, header + data)  # codes can be any bytes
    assert found is None or found.to_bytes() == header + data


@quick
@given(st.sampled_from(KINDS), st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_is_refused_or_read_as_it_stands(
    kind: type[Message], place: int, change: int
) -> None:
    data = bytearray(MESSAGES[kind].to_bytes())
    place %= len(data)
    data[place] ^= change
    found = read(kind, bytes(data))
    assert found is None or found.to_bytes() == data
    assert found is None or place >= 33  # round and session


@pytest.mark.parametrize("data", [None, "text", 7, [1, 2], bytearray(60), memoryview(bytes(60))])
def test_what_is_not_bytes_is_no_message(data: object) -> None:
    for kind in KINDS:
        assert read(kind, data) is None


def test_every_bit_of_a_message_counts() -> None:
    # 33 bits of residues in five bytes, six of survivors in one.
    for kind, spare in ((MaskedVector, 0x80), (Survivors, 0x01)):
        data = MESSAGES[kind].to_bytes()
        assert data[-1] & spare == 0
        assert read(kind, data[:-1] + bytes([data[-1] | spare])) is None
    assert (
        read(MaskedVector, MESSAGES[MaskedVector].to_bytes(), terms(6, 4, 11, 3, None)) is not None
    )
    assert read(MaskedVector, MESSAGES[MaskedVector].to_bytes(), terms(6, 4, 11, 4)) is None


JUNK: list[Any] = [
    None, True, -1, 1.0, 1 << 300, "x", b"", bytes(31), bytearray(32), [], (), {}, {1: b""},
    (1, 2, 3), ((1,),), ((1.0, bytes(64)),), ((1, None),), ((1, 2.0),), ((True, 3),), ([1, 2],),
    (b"",), (bytes(15),), (True,), (1.0,),
    [(1, bytes(64))], frozenset({0, 1.0, 2, 3}), frozenset({"a"}), frozenset({-1}), {0, 1, 2, 3},
    frozenset({1 << 300}), (None,), np.zeros(3), np.zeros((3, 1), np.int64), [0, 0, 0],
    np.zeros(3, object), np.int64(1), np.arange(3), np.full(3, 1 << 11), object(),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_fields_of_other_types_are_refused_and_nothing_else_happens(kind: type[Message]) -> None:
    """Through whoever receives such a message, the server or a client."""
    rounds = Rounds(AGREED).until(kind.step, SILENT)
    up = kind in (KeyAdvert, SharesOut, MaskedVector, Confirmation, Revealed)
    if not up:
        rounds.play(kind.step, *([SILENT] if kind.step >= Step.MASK else []))
    good = rounds.answer(0, kind.step) if up else rounds.inbox[0]
    assert type(good) is kind
    for field in fields(good):
        for junk in JUNK:
            if type(junk) is type(getattr(good, field.name)) is np.ndarray:
                same = junk.dtype == np.int64 and junk.shape == (3,) and junk.max() < 1 << 11
                if same:
                    continue
            wrong = replace(good, **{field.name: junk})
            with pytest.raises(ProtocolError):
                receive(rounds, wrong, up)
    for nothing in (None, b"", object()):
        with pytest.raises(ProtocolError):
            receive(rounds, nothing, up, kind.step)


def receive(rounds: Rounds, message: Any, up: bool, step: Step | None = None) -> None:
    if up:
        rounds.server.receive(message)
        return
    client = copy.copy(rounds.clients[0])  # a client that refuses never answers again
    after = Step((message.step if step is None else step) + 1)
    if after is Step.SHARE:
        client.share(message)
    elif after is Step.MASK:
        client.mask(message, rounds.vectors[0])
    elif after is Step.CONFIRM:
        client.confirm(message)
    else:
        client.reveal(message)
