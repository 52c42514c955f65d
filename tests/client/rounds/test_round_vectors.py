"""The vectors of rounds: up to date, and followed by this client from the files alone."""

import importlib
import json
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk.rounds import Identity, Neighbours, NoiseShare, SigningKey, Step, Terms
from client_sdk.rounds.client import Client
from client_sdk.rounds.keys import (
    Seats,
    mask_pair,
    own_mask,
    pair_keys,
    pair_mask,
    seed_check,
    survivor_statement,
)
from client_sdk.rounds.masks import expand, pack, unpack
from client_sdk.rounds.messages import Confirmations, KeyList, SharesIn, Survivors
from client_sdk.rounds.primitives import (
    KeyPair,
    code,
    derive,
    is_code,
    keystream,
    seal,
    unseal,
    verified,
)
from client_sdk.rounds.shamir import PRIME, combine, split
from client_sdk.testing import FixedEntropy
from tests.support import naive_cryptography, naive_shamir

FOLDER = Path(__file__).parents[3] / "client_sdk" / "vectors" / "rounds"
FILES = ("cryptography", "documents", "session", "noise")


def load(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="ascii"))


def raw(entry: dict[str, str], *names: str) -> list[bytes]:
    return [bytes.fromhex(entry[name]) for name in names]


CRYPTOGRAPHY = load("cryptography")


def terms_of(
    entry: dict[str, Any], neighbours: Neighbours | None = None, honest_server: bool = False
) -> Terms:
    return Terms(
        bytes.fromhex(entry["session"]), entry["clients"], entry["threshold"], entry["bits"],
        entry["length"], neighbours, colluding=entry["colluding"], honest_server=honest_server,
        document=bytes.fromhex(entry["document"]),
    )  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_are_what_the_client_makes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    maker = importlib.import_module("make_round_vectors")
    assert set(maker.MAKERS) == set(FILES)
    assert (FOLDER / f"{name}.json").read_bytes() == maker.render(name).encode("ascii")


def test_what_the_rfcs_print_comes_out() -> None:
    for entry in CRYPTOGRAPHY["hkdf_sha256"]:
        secret, salt, info, result = raw(entry, "secret", "salt", "info", "result")
        assert derive(secret, salt, info) == result
    for entry in CRYPTOGRAPHY["chacha20"]:
        key, stream = raw(entry, "key", "stream")
        assert keystream(key, len(stream)) == stream
    for entry in CRYPTOGRAPHY["ed25519"]:
        private, public, message, signature = raw(
            entry, "private", "public", "message", "signature"
        )
        assert SigningKey(FixedEntropy(private)).public == public
        assert SigningKey(FixedEntropy(private)).sign(message) == signature
        assert verified(public, signature, message)
        assert not verified(public, signature, message + b"0")
    for entry in CRYPTOGRAPHY["hmac_sha256"]:
        key, statement, result = raw(entry, "key", "statement", "result")
        assert code(key, statement) == result[:16]
        assert is_code(key, result[:16], statement)
    for entry in CRYPTOGRAPHY["x25519"]:
        scalar, point, result = raw(entry, "scalar", "point", "result")
        pair = KeyPair(scalar)
        first, second = sorted((pair.public, point))
        assert pair.agree(point, b"salt", b"label") == derive(
            result, b"salt", b"label" + first + second
        )
        if point == bytes([9, *bytes(31)]):
            assert pair.public == result


def test_what_the_rfcs_print_comes_out_of_code_without_the_library() -> None:
    """So neither the library's answers nor a slip of the pen were taken for what is printed."""
    for entry in CRYPTOGRAPHY["x25519"]:
        scalar, point, result = raw(entry, "scalar", "point", "result")
        assert naive_cryptography.x25519(scalar, point) == result
    for entry in CRYPTOGRAPHY["hkdf_sha256"]:
        secret, salt, info, result = raw(entry, "secret", "salt", "info", "result")
        assert naive_cryptography.hkdf_sha256(secret, salt, info, len(result)) == result
    for entry in CRYPTOGRAPHY["chacha20"]:
        key, stream = raw(entry, "key", "stream")
        assert naive_cryptography.chacha20(key, bytes(12), 0, bytes(len(stream))) == stream
    for entry in CRYPTOGRAPHY["chacha20_poly1305"]:
        *given, result = raw(entry, "key", "nonce", "plaintext", "associated", "result")
        assert naive_cryptography.chacha20_poly1305(*given) == result
    for entry in CRYPTOGRAPHY["hmac_sha256"]:
        key, statement, result = raw(entry, "key", "statement", "result")
        assert naive_cryptography.hmac_sha256(key, statement)[: len(result)] == result
    for entry in CRYPTOGRAPHY["ed25519"]:
        private, public, message, signature = raw(
            entry, "private", "public", "message", "signature"
        )
        assert naive_cryptography.ed25519(private, message) == (public, signature)


def test_what_is_built_on_it_comes_out_of_code_without_the_library() -> None:
    """From the text of docs/rounds-protocol.md, sections 5 and 6, and nothing of the client."""
    terms = CRYPTOGRAPHY["terms"]
    version = b"ldpspatial secure aggregation 5"
    names = "clients threshold bits length degree shares colluding honest_server"
    numbers = b"".join(terms[name].to_bytes(8, "big") for name in names.split())
    told = version + bytes.fromhex(terms["session"]) + numbers + bytes.fromhex(terms["document"])
    digest = sha256(told).digest()
    assert digest.hex() == terms["digest"]

    def label(use: bytes, *numbers: int) -> bytes:
        tail = b"".join(number.to_bytes(8, "big") for number in numbers)
        return version + digest + use + b":" + tail

    def agreed(private: bytes, other: bytes, use: bytes) -> bytes:
        own = naive_cryptography.x25519(private, bytes([9, *bytes(31)]))
        secret = naive_cryptography.x25519(private, other)
        return naive_cryptography.hkdf_sha256(
            secret, digest, use + min(own, other) + max(own, other), 32
        )

    def expanded(key: bytes, bits: int, length: int) -> list[int]:
        size = 4 if bits <= 32 else 8
        stream = naive_cryptography.chacha20(key, bytes(12), 0, bytes(size * length))
        words = (stream[at : at + size] for at in range(0, len(stream), size))
        return [int.from_bytes(word, "little") % 2**bits for word in words]

    entry = CRYPTOGRAPHY["agreement"]
    private, other, use, key = raw(entry, "private", "other", "label", "key")
    assert agreed(private, other, use) == key
    for entry in CRYPTOGRAPHY["masks"]:
        (key,) = raw(entry, "key")
        residues = [int(residue) for residue in entry["residues"]]
        assert expanded(key, entry["bits"], entry["length"]) == residues
    entry = CRYPTOGRAPHY["own_mask"]
    (seed,) = raw(entry, "seed")
    key, check = (
        naive_cryptography.hkdf_sha256(seed, digest, label(use, entry["client"]), 32)
        for use in (b"own mask", b"seed check")
    )
    assert expanded(key, terms["bits"], terms["length"]) == entry["residues"]
    assert check.hex() == entry["seed_check"]
    entry = CRYPTOGRAPHY["pair_mask"]
    key = agreed(*raw(entry, "private", "public"), label(b"pair mask", 0, 1))
    # Client 0, the smaller number, subtracts it.
    mask = [-word % 2 ** terms["bits"] for word in expanded(key, terms["bits"], terms["length"])]
    assert mask == entry["residues"]
    *given, result = raw(CRYPTOGRAPHY["sealed"], "key", "plaintext", "associated", "result")
    key, plaintext, associated = given
    assert naive_cryptography.chacha20_poly1305(key, bytes(12), plaintext, associated) == result
    key, statement, found = raw(CRYPTOGRAPHY["confirmed"], "key", "statement", "code")
    assert naive_cryptography.hmac_sha256(key, statement)[:16] == found


def test_the_authenticated_encryption_is_the_one_that_is_printed() -> None:
    """Under another nonce than ours, so the library is held to it, and our seal to the library."""
    aead = importlib.import_module("cryptography.hazmat.primitives.ciphers.aead").ChaCha20Poly1305
    for entry in CRYPTOGRAPHY["chacha20_poly1305"]:
        key, nonce, plaintext, associated, result = raw(
            entry, "key", "nonce", "plaintext", "associated", "result"
        )
        assert aead(key).encrypt(nonce, plaintext, associated) == result
    key, plaintext, associated, result = raw(
        CRYPTOGRAPHY["sealed"], "key", "plaintext", "associated", "result"
    )
    assert seal(key, plaintext, associated) == result
    assert aead(key).encrypt(bytes(12), plaintext, associated) == result
    assert unseal(key, result, associated) == plaintext


def test_shares_of_secrets() -> None:
    entry = CRYPTOGRAPHY["shamir"]
    secret, shares = int(entry["secret"], 16), [int(share, 16) for share in entry["shares"]]
    assert int(entry["prime"], 16) == PRIME
    entropy = FixedEntropy(bytes.fromhex(entry["entropy"]))
    assert split(secret, entry["needed"], entry["holders"], entropy) == shares
    by_holder = dict(zip(entry["holders"], shares, strict=True))
    for left in entry["holders"]:
        three = {holder: share for holder, share in by_holder.items() if holder != left}
        assert combine(three) == secret
        assert naive_shamir.combine(three, PRIME) == secret


def test_masks_and_what_is_derived() -> None:
    for entry in CRYPTOGRAPHY["masks"]:
        (key,), bits, length = raw(entry, "key"), entry["bits"], entry["length"]
        residues = [int(k) for k in entry["residues"]]
        assert expand(key, length, bits).tolist() == residues
        packed = pack(np.array(residues, dtype=np.int64), bits)
        assert packed.hex() == entry["packed"]
        assert unpack(packed, bits, length).tolist() == residues
    agreed = terms_of(CRYPTOGRAPHY["terms"])
    assert agreed.digest.hex() == CRYPTOGRAPHY["terms"]["digest"]
    own = CRYPTOGRAPHY["own_mask"]
    (seed,) = raw(own, "seed")
    assert own_mask(agreed, own["client"], seed).tolist() == own["residues"]
    assert seed_check(agreed, own["client"], seed).hex() == own["seed_check"]
    pair = CRYPTOGRAPHY["pair_mask"]
    private, public = raw(pair, "private", "public")
    found = pair_mask(agreed, KeyPair(private), pair["client"], pair["other"], public)
    found %= agreed.modulus
    assert found.tolist() == pair["residues"]
    private, other_key, salt, label, key = raw(
        CRYPTOGRAPHY["agreement"], "private", "other", "salt", "label", "key"
    )
    assert KeyPair(private).agree(other_key, salt, label) == key


def test_keys_of_pairs_and_what_is_confirmed() -> None:
    agreed = terms_of(CRYPTOGRAPHY["terms"])
    own = CRYPTOGRAPHY["mask_pair"]
    secret, public = raw(own, "secret", "public")
    assert mask_pair(agreed, own["client"], secret).public == public
    for pair, neighbours in zip(CRYPTOGRAPHY["pair_keys"], (None, Neighbours(2, 2)), strict=True):
        terms = terms_of(pair["terms"], neighbours, honest_server=neighbours is not None)
        people, keys = (
            {int(v): bytes.fromhex(key) for v, key in pair[name].items()}
            for name in ("identities", "mask_keys")
        )
        own = KeyPair(*raw(pair, "private"))
        found = pair_keys(terms, own, pair["client"], pair["other"], Seats(terms, people, keys))
        assert list(found) == raw(pair, "seals", "opens", "confirms", "checks")
    entry = CRYPTOGRAPHY["confirmed"]
    statement, key, printed = raw(entry, "statement", "key", "code")
    assert survivor_statement(agreed, frozenset(entry["survivors"])) == statement
    assert code(key, statement) == printed
    assert is_code(key, printed, statement)
    assert not is_code(key, printed, statement + b"0")


def test_a_session_byte_by_byte() -> None:
    """Each client gets what the file says, and sends what the file says, from given entropy."""
    entry = load("session")
    agreed = terms_of(entry["terms"])
    identities = [Identity.draw(FixedEntropy(bytes.fromhex(k))) for k in entry["identities"]]
    directory = [identity.public for identity in identities]
    clients = [
        Client(agreed, k, identities[k], directory, FixedEntropy(bytes.fromhex(data)))
        for k, data in enumerate(entry["entropy"])
    ]
    for message in entry["messages"]:
        one, data = clients[message["client"]], bytes.fromhex(message["gets"])
        vector = np.array(entry["vectors"][one.number], dtype=np.int64)
        answers = {
            Step.ADVERTISE: lambda one, *_: one.advertise(),
            Step.SHARE: lambda one, data, _: one.share(KeyList.from_bytes(data, agreed)),
            Step.MASK: lambda one, data, own: one.mask(SharesIn.from_bytes(data, agreed), own),
            Step.CONFIRM: lambda one, data, _: one.confirm(Survivors.from_bytes(data, agreed)),
            Step.REVEAL: lambda one, data, _: one.reveal(Confirmations.from_bytes(data, agreed)),
        }
        found = answers[Step(message["round"])](one, data, vector)
        assert found.to_bytes().hex() == message["sends"]
    assert len(entry["messages"]) == 4 + 4 + 3 + 3 + 3


def test_noise_shares_from_given_bytes() -> None:
    for entry in load("noise")["shares"]:
        share = NoiseShare(
            Fraction(entry["micro_epsilon"], 10**6), entry["sensitivity"], entry["honest"]
        )
        entropy = FixedEntropy(bytes.fromhex(entry["entropy"]))
        assert share.sample(entry["length"], entropy) == entry["noise"]
