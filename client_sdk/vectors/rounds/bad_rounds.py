"""Campaigns and round documents that must be refused: malformed, or untrue by their numbers."""

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

# field, value: of a campaign
CAMPAIGN: list[tuple[str, Any]] = [
    ("rounds", 0), ("rounds", 10_001), ("rounds", 1.5), ("rounds", "1"), ("name", ""),
    ("name", "a\u200bb"), ("round_seconds", 0), ("micro_epsilon", 0), ("micro_epsilon", 20_000_001),
    ("sensitivity", 0), ("delta_e15", 1_000_000_001), ("most_length", 0), ("most_clients", 1),
    ("least_honest", 0), ("colluding_ppm", 1_000_000), ("server", "trusted"), ("server", 1),
    ("relation", "replace"), ("grid", 3), ("extra", 1), ("schema", "ldpspatial/campaign/2"),
]  # fmt: skip

# field, value: of a round, which the form alone refuses
FORM: list[tuple[str, Any]] = [
    ("campaign", "00"), ("campaign", "G" * 64), ("round", 0), ("cohorts", 0), ("asked", {}),
    ("asked", {"levels": []}), ("asked", {"levels": [1], "nodes": [[0, 0, 0]]}),
    ("asked", {"levels": [13]}), ("asked", {"nodes": [[1, 0]]}), ("asked", {"nodes": [0]}),
    ("asked", {"levels": [True]}), ("micro_epsilon", 0), ("clients", 1), ("threshold", 1),
    ("colluding", -1), ("honest", 0), ("bits", 0), ("bits", 63), ("shares", 1), ("server", ""),
    ("relation", "add or remove"), ("delta_e15", -1), ("extra", 1),
]  # fmt: skip

# reason, changes: of a round of 10 clients, threshold 8, 2 colluding, against any server
ARITHMETIC: list[tuple[str, Json]] = [
    ("levels twice", {"asked": {"levels": [1, 1]}}),
    ("levels out of order", {"asked": {"levels": [2, 1]}}),
    ("nodes out of order", {"asked": {"nodes": [[1, 1, 0], [1, 0, 0]]}}),
    ("a node outside its level", {"asked": {"nodes": [[1, 2, 0]]}}),
    ("deeper than the grid", {"asked": {"nodes": [[4, 0, 0]]}}),
    ("longer than the campaign allows", {"asked": {"levels": [3]}}),
    ("two levels at a sensitivity of 1", {"asked": {"levels": [1, 2]}}),
    ("noise for more than survive", {"honest": 7}),
    ("noise for fewer than the campaign wants", {"honest": 4}),
    ("fewer colluding than the campaign wants", {"colluding": 1}),
    ("a threshold that a server can split", {"threshold": 6, "shares": 6, "honest": 4}),
    ("an honest server that the campaign does not trust", {"server": "honest"}),
    ("neighbours against any server", {"degree": 4, "shares": 4}),
    ("a modulus that wraps", {"bits": 7}),
    (
        "more clients than the campaign allows",
        {
            **{"clients": 21, "threshold": 13, "colluding": 3, "honest": 6},
            **{"degree": 20, "shares": 13},
        },
    ),
    ("more epsilon than the campaign allows", {"micro_epsilon": 1_000_001}),
    ("a round that is none", {"round": 4}),
    ("other cohorts than rounds", {"cohorts": 2}),
    ("another campaign", {"campaign": "0" * 64}),
    ("a sensitivity beyond the campaign's", {"sensitivity": 3, "bits": 20}),
    ("a delta beyond the campaign's", {"delta_e15": 1}),
    ("a threshold above the clients", {"threshold": 11, "shares": 11}),
    ("an odd number of neighbours", {"degree": 5, "shares": 4, "server": "honest"}),
]

# the same, of a round that trusts an honest server: 1,000 clients on a circle
CIRCLE: list[tuple[str, Json]] = [
    ("neighbours among whom a client is exposed", {"shares": 30}),
    ("too few neighbours to stay connected", {"degree": 20, "shares": 11}),
    ("all are neighbours, and two shares open a secret", {"degree": 999, "shares": 2}),
    ("more neighbours than clients", {"degree": 1000, "shares": 2}),
]


def changed(good: str, changes: Json) -> str:
    """Return a document with other values of some fields."""
    return json.dumps({**json.loads(good), **changes})


def bad_texts(good: str, rows: list[tuple[str, Any]]) -> Iterator[Json]:
    """List documents with one field of a wrong form each, one that lacks a field, and no JSON."""
    for field, value in rows:
        shown = json.dumps(value)[:40]
        text = changed(good, {field: value})
        yield {"kind": "form", "reason": f"{field} {shown}", "text": text}
    document = json.loads(good)
    text = json.dumps({**document, "schema": None})
    yield {"kind": "form", "reason": "no schema", "text": text}
    missing = {name: value for name, value in document.items() if name != "server"}
    yield {"kind": "form", "reason": "a field is missing", "text": json.dumps(missing)}
    yield {"kind": "text", "reason": "cut off", "text": good[:-1]}
    yield {"kind": "form", "reason": "a list", "text": "[]"}
    yield {"kind": "text", "reason": "a field twice", "text": good[:-1] + ',"server":"any"}'}
