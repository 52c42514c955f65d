"""Write the known answers that every client of rounds must give (docs/rounds-protocol.md).

Run ``python client_sdk/vectors/rounds/make_round_vectors.py``; the output never varies, and a test
compares it with the files. A change of a file is a change of the protocol.

- ``cryptography.json``: what the RFCs print, which the library is held to, and our own answers for
  what they leave open (Shamir's scheme, masks, sealing, what is signed).
- ``documents.json``: campaigns and round documents, good ones with their digests and bad ones.
- ``session.json``: one session of four clients, byte by byte; one of them fails.
- ``noise.json``: noise shares, from given bytes of entropy.
"""

import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import published  # type: ignore[import-not-found]
from bad_rounds import (  # type: ignore[import-not-found]
    ARITHMETIC,
    CAMPAIGN,
    CIRCLE,
    FORM,
    bad_texts,
    changed,
)
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from client_sdk import Grid
from client_sdk.rounds import (
    Asked,
    Campaign,
    Identity,
    Neighbours,
    NoiseShare,
    RoundDocument,
    SigningKey,
    Step,
    Terms,
)
from client_sdk.rounds.client import Client
from client_sdk.rounds.keys import (
    Seats,
    key_statement,
    mask_pair,
    own_mask,
    pair_keys,
    pair_mask,
    seed_check,
    survivor_statement,
)
from client_sdk.rounds.masks import expand, pack
from client_sdk.rounds.messages import (
    Confirmations,
    KeyList,
    SharesIn,
    Survivors,
)
from client_sdk.rounds.primitives import CODE_BYTES, KeyPair, code, derive, keystream, seal
from client_sdk.rounds.shamir import PRIME, draw, split
from client_sdk.rounds.wire import Message
from client_sdk.testing import StreamEntropy

Json = dict[str, Any]
HERE = Path(__file__).parent
TERMS = Terms(b"sixteen bytes...", 4, 3, 20, 5, document=bytes(range(32)))


class Recorded:
    """An endless stream of entropy that remembers what it has handed out."""

    def __init__(self, label: str) -> None:
        self._stream = StreamEntropy(label)
        self.used = b""

    def __call__(self, n: int) -> bytes:
        """Return the next n bytes."""
        data = self._stream(n)
        self.used += data
        return data


def check(name: str, found: str, printed: str) -> None:
    """Stop where the library does not give what an RFC prints."""
    if found != printed:
        raise SystemExit(f"{name}: {found} is not {printed}")


def check_published() -> None:
    """Hold the library, and what we build on it, to the RFCs."""
    raw = bytes.fromhex
    for name, row in published.X25519.items():
        key = X25519PrivateKey.from_private_bytes(raw(row["scalar"]))
        found = key.exchange(X25519PublicKey.from_public_bytes(raw(row["point"])))
        check(name, found.hex(), row["result"])
    for name, row in published.HKDF_SHA256.items():
        found = derive(raw(row["secret"]), raw(row["salt"]), raw(row["info"]))
        check(name, found.hex(), row["result"])
    for name, row in published.CHACHA20.items():
        check(name, keystream(raw(row["key"]), len(row["stream"]) // 2).hex(), row["stream"])
    for name, row in published.CHACHA20_POLY1305.items():
        texts = raw(row["nonce"]), raw(row["plaintext"]), raw(row["associated"])
        check(name, ChaCha20Poly1305(raw(row["key"])).encrypt(*texts).hex(), row["result"])
    for name, row in published.HMAC_SHA256.items():
        found = code(raw(row["key"]), raw(row["statement"]))
        check(name, found.hex(), row["result"][: 2 * CODE_BYTES])
    for name, row in published.ED25519.items():
        identity = _signer(row["private"])
        check(name, identity.public.hex(), row["public"])
        check(name, identity.sign(raw(row["message"])).hex(), row["signature"])


def cryptography() -> Json:
    """List published answers, and those of what is built on them."""
    check_published()
    first, second = (KeyPair(StreamEntropy(name)(32)) for name in ("first", "second"))
    label = TERMS.label("pair mask", 0, 1)
    keys = {0: bytes(range(32)), 1: bytes(range(32, 64)), 3: bytes(range(64, 96))}
    told = survivor_statement(TERMS, frozenset({0, 1, 3}))
    on_circle = replace(TERMS, clients=6, neighbours=Neighbours(2, 2), honest_server=True)
    people = {k: bytes([k]) * 32 + key.public for k, key in ((0, second), (1, first), (3, second))}
    secret = int.from_bytes(draw(StreamEntropy("secret")), "big")
    entropy = Recorded("polynomial")
    shares = split(secret, 3, [1, 2, 3, 4], entropy)
    return {
        "x25519": _listed(published.X25519),
        "hkdf_sha256": _listed(published.HKDF_SHA256),
        "chacha20": _listed(published.CHACHA20),
        "chacha20_poly1305": _listed(published.CHACHA20_POLY1305),
        "ed25519": _listed(published.ED25519),
        "hmac_sha256": _listed(published.HMAC_SHA256),
        "shamir": {
            "prime": f"{PRIME:x}", "secret": f"{secret:x}", "needed": 3, "holders": [1, 2, 3, 4],
            "entropy": entropy.used.hex(), "shares": [f"{share:x}" for share in shares],
        },
        "agreement": {
            "private": first.private.hex(), "public": first.public.hex(),
            "other": second.public.hex(), "salt": TERMS.digest.hex(), "label": label.hex(),
            "key": first.agree(second.public, TERMS.digest, label).hex(),
        },
        "masks": [
            {
                "key": bytes(range(32)).hex(), "bits": bits, "length": 6,
                "residues": [str(k) for k in expand(bytes(range(32)), 6, bits)],
                "packed": pack(expand(bytes(range(32)), 6, bits), bits).hex(),
            }
            for bits in (1, 20, 32, 33, 62)
        ],
        "own_mask": {
            "client": 2, "seed": bytes(range(16)).hex(),
            "residues": own_mask(TERMS, 2, bytes(range(16))).tolist(),
            "seed_check": seed_check(TERMS, 2, bytes(range(16))).hex(),
        },
        "mask_pair": {
            "client": 2, "secret": bytes(range(16)).hex(),
            "public": mask_pair(TERMS, 2, bytes(range(16))).public.hex(),
        },
        "pair_keys": [
            {
                "terms": _terms(terms), "client": 1, "other": 0, "private": first.private.hex(),
                "identities": {str(k): v.hex() for k, v in people.items()},
                "mask_keys": {str(k): v.hex() for k, v in keys.items()},
                **{
                    name: key.hex()
                    for name, key in pair_keys(terms, first, 1, 0, Seats(terms, people, keys))
                    ._asdict()
                    .items()
                },
            }
            for terms in (TERMS, on_circle)
        ],
        "confirmed": {
            "survivors": [0, 1, 3], "statement": told.hex(), "key": bytes(range(32)).hex(),
            "code": code(bytes(range(32)), told).hex(),
        },
        "pair_mask": {
            "client": 0, "other": 1, "private": first.private.hex(),
            "public": second.public.hex(),
            "residues": (pair_mask(TERMS, first, 0, 1, second.public) % TERMS.modulus).tolist(),
        },
        "sealed": {
            "key": bytes(range(32)).hex(), "plaintext": bytes(32).hex(), "associated": label.hex(),
            "result": seal(bytes(range(32)), bytes(32), label).hex(),
        },
        "key_statement": key_statement(TERMS, first.public).hex(),
        "terms": _terms(TERMS),
    }  # fmt: skip


def campaign() -> Campaign:
    """Return the campaign that all round documents here are of."""
    grid = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=8)
    return Campaign(
        "rounds in Berlin", grid, rounds=3, first_start=1_800_000_000, round_seconds=86_400,
        micro_epsilon=1_000_000, sensitivity=2, most_length=30, most_clients=20, least_honest=5,
        colluding_ppm=100_001,
    )  # fmt: skip


def documents() -> Json:
    """List campaigns and rounds, good and bad."""
    pinned = campaign()
    trusting = replace(
        pinned, name="rounds on a circle", server="honest", most_clients=1000, least_honest=500
    )
    asked = [
        Asked(levels=(1,)),
        Asked(levels=(1, 2)),
        Asked(nodes=((0, 0, 0), (1, 0, 1), (2, 3, 3), (3, 7, 0))),
    ]
    rounds = [
        RoundDocument.create(pinned, k + 1, each, clients=10, threshold=8, colluding=2)
        for k, each in enumerate(asked)
    ]
    circle = RoundDocument.create(
        trusting, 1, asked[0], clients=1000, threshold=900, colluding=101,
        neighbours=Neighbours(60, 31), server="honest",
    )  # fmt: skip
    plain, on_circle = rounds[0].to_json(), circle.to_json()
    bad = list(bad_texts(plain, FORM))
    bad += [
        {"kind": "arithmetic", "reason": reason, "text": changed(plain, changes)}
        for reason, changes in ARITHMETIC
    ]
    return {
        "campaigns": [_document(each) for each in (pinned, trusting)],
        "bad_campaigns": list(bad_texts(pinned.to_json(), CAMPAIGN)),
        "rounds": [{**_document(each), "campaign": 0, "bits": each.bits} for each in rounds]
        + [{**_document(circle), "campaign": 1, "bits": circle.bits}],
        "bad_rounds": [{**row, "campaign": 0} for row in bad]
        + [
            {"kind": "arithmetic", "reason": reason, "text": changed(on_circle, changes),
             "campaign": 1}
            for reason, changes in CIRCLE
        ],
        "ones": [
            {"asked": each.document(), "depth": 3, "cell": list(cell), "ones": each.ones(3, *cell)}
            for each in asked
            for cell in ((0, 0), (7, 7), (3, 5), (7, 0))
        ],
    }  # fmt: skip


def session() -> Json:
    """Return all messages of one session: client 3 fails before its vector arrives."""
    identities = [Identity.draw(StreamEntropy(f"identity {k}")) for k in range(4)]
    directory = [identity.public for identity in identities]
    streams = [Recorded(f"client {k}") for k in range(4)]
    clients = [Client(TERMS, k, identities[k], directory, streams[k]) for k in range(4)]
    vectors = [[k + 1, 0, 2**20 - 1, 5, 1000 * k] for k in range(4)]
    log: list[Json] = []

    def said(k: int, step: Step, inbound: Message | None, answer: Message) -> Message:
        log.append({
            "client": k, "round": int(step), "gets": "" if inbound is None else
            inbound.to_bytes().hex(), "sends": answer.to_bytes().hex(),
        })  # fmt: skip
        return answer

    digest = TERMS.digest
    adverts = [said(k, Step.ADVERTISE, None, clients[k].advertise()) for k in range(4)]
    keys = tuple((m.client, m.mask_key) for m in adverts)  # type: ignore[attr-defined]
    lists = [KeyList(digest, k, keys) for k in range(4)]
    out = [said(k, Step.SHARE, lists[k], clients[k].share(lists[k])) for k in range(4)]
    inboxes = [
        SharesIn(
            digest,
            k,
            tuple((m.client, m.sealed[k - (k > m.client)]) for m in out if m.client != k),  # type: ignore[attr-defined]
        )
        for k in range(4)
    ]
    for k in range(3):
        vector = np.array(vectors[k], dtype=np.int64)
        said(k, Step.MASK, inboxes[k], clients[k].mask(inboxes[k], vector))
    told = [Survivors(digest, k, frozenset({0, 1, 2}), 4) for k in range(3)]
    confirmed_by = [said(k, Step.CONFIRM, told[k], clients[k].confirm(told[k])) for k in range(3)]
    for k in range(3):
        codes = [(m.client, m.codes[k - (k > m.client)]) for m in confirmed_by if m.client != k]  # type: ignore[attr-defined]
        confirmed = Confirmations(digest, k, tuple(codes))
        said(k, Step.REVEAL, confirmed, clients[k].reveal(confirmed))
    return {
        "terms": _terms(TERMS),
        "identities": [StreamEntropy(f"identity {k}")(64).hex() for k in range(4)],
        "entropy": [stream.used.hex() for stream in streams],
        "vectors": vectors,
        "messages": log,
        "total": (np.sum(vectors[:3], axis=0) % TERMS.modulus).tolist(),
    }


def noise() -> Json:
    """List noise shares drawn from given bytes."""
    rows = []
    for micro, sensitivity, honest, length in (
        (1_000_000, 1, 1, 6), (1_000_000, 2, 5, 12), (700_000, 3, 3, 8), (20_000_000, 1, 2, 4),
        (12_345, 1, 4, 3),
    ):  # fmt: skip
        entropy = Recorded(f"noise {micro} {sensitivity} {honest}")
        share = NoiseShare(Fraction(micro, 10**6), sensitivity, honest)
        rows.append({
            "micro_epsilon": micro, "sensitivity": sensitivity, "honest": honest, "length": length,
            "noise": share.sample(length, entropy), "entropy": entropy.used.hex(),
        })  # fmt: skip
    return {"shares": rows}


def _signer(private: str) -> SigningKey:
    return SigningKey(lambda _: bytes.fromhex(private))


def _listed(rows: dict[str, Json]) -> list[Json]:
    return [{"source": source, **row} for source, row in rows.items()]


def _terms(terms: Terms) -> Json:
    return {
        "session": terms.session.hex(), "clients": terms.clients, "threshold": terms.threshold,
        "bits": terms.bits, "length": terms.length, "degree": terms.degree,
        "shares": terms.shares, "colluding": terms.colluding,
        "honest_server": int(terms.honest_server), "document": terms.document.hex(),
        "digest": terms.digest.hex(),
    }  # fmt: skip


def _document(document: Campaign | RoundDocument) -> Json:
    return {"text": document.to_json(), "digest": document.digest}


MAKERS = {
    "cryptography": cryptography,
    "documents": documents,
    "session": session,
    "noise": noise,
}


def render(name: str) -> str:
    """Return the text of a file: one line for each entry of a list."""
    lines = []
    for key, value in MAKERS[name]().items():
        if isinstance(value, list):
            entries = ",\n".join(json.dumps(entry) for entry in value)
            lines.append(f"{json.dumps(key)}: [\n{entries}\n]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Write all files, or those that are named."""
    for name in sys.argv[1:] or MAKERS:
        (HERE / f"{name}.json").write_text(render(name), encoding="ascii")


if __name__ == "__main__":
    main()
