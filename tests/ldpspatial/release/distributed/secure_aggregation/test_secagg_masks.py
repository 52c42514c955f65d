import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.keys import (
    own_mask,
    pair_mask,
    seed_check,
)
from client_sdk.rounds.masks import expand, pack
from client_sdk.rounds.primitives import (
    KeyPair,
    SigningKey,
    derive,
    keystream,
    seal,
    unseal,
    verified,
)
from tests.support.aggregation_rounds import seeded, terms


def test_the_stream_is_that_of_the_standard() -> None:
    # RFC 8439, appendix A.1, test vector 1: key, nonce and counter 0.
    block = keystream(bytes(32), 64).hex()
    assert block.startswith("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    assert block.endswith("da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586")


def test_agreement_is_that_of_the_standard() -> None:
    # RFC 7748, section 6.1: Bob's keys, Alice's public key and what they share.
    bob = KeyPair(bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"))
    alice = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    shared = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
    assert bob.public.hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    assert bob.agree(alice, b"salt", b"use") == derive(shared, b"salt", b"use" + alice + bob.public)


def test_derivation_is_that_of_the_standard() -> None:
    # RFC 5869, appendix A.1, the first 32 bytes.
    salt, info = bytes(range(13)), bytes(range(0xF0, 0xFA))
    expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
    assert derive(b"\x0b" * 22, salt, info).hex() == expected


@pytest.mark.parametrize("bits", [1, 8, 20, 31, 32, 33, 62])
def test_residues_are_the_low_bits_of_words(bits: int) -> None:
    key, width = bytes(range(32)), 4 if bits <= 32 else 8
    stream = keystream(key, 50 * width)
    words = [int.from_bytes(stream[i : i + width], "little") for i in range(0, 50 * width, width)]
    mask = expand(key, 50, bits)
    assert mask.dtype == np.int64
    assert mask.tolist() == [word % 2**bits for word in words]
    assert expand(key, 7, bits).tolist() == mask[:7].tolist()


@settings(max_examples=60)
@given(st.integers(1, 62), st.data())
def test_packed_residues_are_one_long_number(bits: int, data: st.DataObject) -> None:
    residues = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=20))
    packed = pack(np.array(residues, dtype=np.int64), bits)
    assert len(packed) == -(-bits * len(residues) // 8)
    whole = sum(residue << (bits * place) for place, residue in enumerate(residues))
    assert int.from_bytes(packed, "little") == whole


def test_the_masks_of_a_pair_cancel_and_depend_on_all_that_they_are_for() -> None:
    agreed, entropy = terms(bits=62, length=6), seeded(1)
    low, high = KeyPair(entropy(32)), KeyPair(entropy(32))
    one = pair_mask(agreed, low, 2, 4, high.public)
    two = pair_mask(agreed, high, 4, 2, low.public)
    assert (one + two).tolist() == [0] * 6
    assert (one < 0).all()
    assert (two > 0).all()
    others = [
        pair_mask(agreed, high, 4, 1, low.public),
        pair_mask(terms(bits=62, length=6, session=bytes(16)), high, 4, 2, low.public),
        pair_mask(terms(bits=62, length=6, threshold=4), high, 4, 2, low.public),
        own_mask(agreed, 4, high.private),
        own_mask(agreed, 2, high.private),
        own_mask(agreed, 4, low.private),
    ]
    found = {tuple(mask.tolist()) for mask in (two, *others)}
    assert len(found) == 1 + len(others)
    assert seed_check(agreed, 4, high.private) not in (
        seed_check(agreed, 2, high.private),
        derive(high.private, agreed.digest, agreed.label("own mask", 4)),
    )


def test_keys_that_agree_with_everyone_are_refused() -> None:
    pair = KeyPair(hashlib.sha256(b"any").digest())
    for low_order in (bytes(32), b"\x01" + bytes(31)):
        with pytest.raises(ProtocolError, match="not a valid X25519 key"):
            pair.agree(low_order, b"", b"")
    with pytest.raises(ProtocolError, match="not a valid X25519 key"):
        pair.agree(b"short", b"", b"")


def test_sealed_is_opened_by_the_same_key_for_the_same_use_only() -> None:
    sealed = seal(bytes(32), b"share", b"use")
    assert len(sealed) == len(b"share") + 16
    assert unseal(bytes(32), sealed, b"use") == b"share"
    for key, text, use in (
        (b"\x01" * 32, sealed, b"use"),
        (bytes(32), sealed[:-1] + bytes([sealed[-1] ^ 1]), b"use"),
        (bytes(32), b"", b"use"),
        (bytes(32), sealed, b"other use"),
    ):
        with pytest.raises(ProtocolError, match="altered, or made for another use"):
            unseal(key, text, use)


def test_signatures_are_of_one_key_and_one_statement() -> None:
    one, other = SigningKey(seeded(1)), SigningKey(seeded(2))
    signature = one.sign(b"statement")
    assert verified(one.public, signature, b"statement")
    assert not verified(one.public, signature, b"another")
    assert not verified(other.public, signature, b"statement")
    assert not verified(one.public, b"too short", b"statement")


def test_no_label_of_one_use_is_that_of_another_or_begins_it() -> None:
    agreed = terms()
    uses = ["keys", "survivors", "shares", "own mask", "seed check", "pair mask"]
    labels = [agreed.label(use) for use in uses] + [agreed.label("shares", 1, 2)]
    labels += [agreed.label("shares", 2, 1)]
    assert len(set(labels)) == len(labels)
    prefixes = {agreed.label(use) for use in uses}
    assert not any(a != b and b.startswith(a) for a in prefixes for b in prefixes)
