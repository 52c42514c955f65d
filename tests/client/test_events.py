"""The name of an event: a keyed hash that keeps digest and event apart."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import Ledger, ParameterError
from client_sdk.events import KEY_BYTES, event_name

KEY = bytes(range(32))
DIGEST = "0123456789abcdef" * 4
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def by_the_definition(key: bytes, digest: str, event: str) -> bytes:
    """HMAC as in RFC 2104, over the bytes that docs/protocol.md, section 8, lists."""
    inner, outer = (bytes(byte ^ pad for byte in key.ljust(64, b"\0")) for pad in (0x36, 0x5C))
    message = b"%d:" % len(digest) + digest.encode("ascii") + event.encode("utf-8")
    return hashlib.sha256(outer + hashlib.sha256(inner + message).digest()).digest()


@settings(max_examples=100)
@given(st.binary(min_size=32, max_size=32), st.text("0123456789abcdef", min_size=1), TEXT)
def test_a_name_is_what_the_protocol_says(key: bytes, digest: str, event: str) -> None:
    assert event_name(key, digest, event) == by_the_definition(key, digest, event)


def test_digest_event_and_key_each_make_another_name() -> None:
    names = [
        event_name(key, digest, event)
        for key in (KEY, bytes(32))
        for digest in (DIGEST, DIGEST[::-1])
        for event in ("visit 41", "visit 42", "visit 41 ", "\u00e9", "e\u0301", "\0")
    ]
    assert len(set(names)) == len(names)
    assert {len(name) for name in names} == {32}


def test_what_is_the_same_text_written_together_has_two_names() -> None:
    whole = DIGEST + "visit"
    assert len({event_name(KEY, whole[:n], whole[n:]) for n in range(1, len(whole))}) == 68


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"key": b""}, "key must be 32 bytes"),
        ({"key": bytes(31)}, "key must be 32 bytes"),
        ({"key": bytes(64)}, "key must be 32 bytes"),
        ({"key": "0" * 32}, "key must be 32 bytes"),
        ({"digest": ""}, "digest must not be empty"),
        ({"event": ""}, "event must not be empty"),
        ({"event": "\ud83d"}, "event must hold no half of a surrogate pair"),
        ({"event": 41}, "event must be a text, got int"),
    ],
)
def test_what_has_no_name_is_refused(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        event_name(**{"key": KEY, "digest": DIGEST, "event": "visit 41", **change})


def test_a_ledger_holds_an_event_under_this_name_and_makes_its_key(tmp_path: Path) -> None:
    keys = set()
    for number in range(2):
        path = tmp_path / f"{number}.db"
        ledger = Ledger.create(path, cap_epsilon=8)
        ledger.spend_once("visit 41", DIGEST, 10**6, None, lambda: ("01", "report 01"))
        with closing(sqlite3.connect(path)) as connection:
            ((key,),) = connection.execute("SELECT key FROM head").fetchall()
            assert connection.execute("SELECT event FROM events").fetchall() == [
                (event_name(key, DIGEST, "visit 41"),)
            ]
        assert len(key) == KEY_BYTES
        keys.add(key)
    assert len(keys) == 2
