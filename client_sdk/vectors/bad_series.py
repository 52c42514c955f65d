"""Series documents that every port must refuse, each for one reason; kinds as in bad_documents."""

import json
from typing import Any

from bad_documents import (  # type: ignore[import-not-found]
    UNSEEN,
    UNSEEN_BY_TABLE,
    bad_documents,
    changed,
)

from client_sdk import Collection, Series

Json = dict[str, Any]

# What a series takes over from a collection is refused there in all ways; here, once for a rule.
OF_ITS_COLLECTION = (
    "a weight above the bound by one, with a total that fits",
    "a weight below the base, with a total that fits",
    "a base that is no power of two, with a total that fits",
    "an epsilon one millionth below what the weights need",
    "the total is one larger",
    "the output size is one larger",
    "a disk with a gap",
    "a square beyond 85 degrees",
    "cells less than two units wide",
)
UNSEEN_IN_NAMES = (
    "a no-break space", "a joiner without width", "variation selector 16", "no character",
    "a space at the start", "a space at the end", "two spaces in a row", "a space and nothing else",
)  # fmt: skip
UNSEEN_BY_TABLE_IN_NAMES = (
    "the tag of a letter", "private use in plane 15", "unassigned", "a face of Unicode 14.0",
)  # fmt: skip


def bad_series(good: Series, small: Series, model: Collection) -> list[Json]:
    """Return entries with kind, reason and text, made from a good series and a short one.

    ``model`` is the collection from which the windows of ``good`` are made.
    """
    text, document = good.to_json(), json.loads(small.to_json())
    entries = _not_strict_json(small.to_json()) + _of_wrong_form(document)
    entries += _of_unseen_characters(document) + _of_wrong_numbers(json.loads(text), model)
    entries += [
        {"kind": "device", "reason": "another digest is expected", "text": text,
         "digest": "0" * 64},
        {"kind": "device", "reason": "the digest of its first window is expected", "text": text,
         "digest": good.collection(1).digest},
        {"kind": "device", "reason": "the digest is expected in capitals", "text": text,
         "digest": good.digest.upper()},
        {"kind": "device", "reason": "epsilon exceeds the device's cap", "text": text,
         "max_micro_epsilon": good.micro_epsilon - 1},
    ]  # fmt: skip
    return entries


def long_series(small: Series) -> list[Json]:
    """Return entries with reason and parts (text, times): too deep or too long to read."""
    text = small.to_json()
    before, after = text.split('"weights":[[1]]')
    deep = 10**5
    return [
        {"reason": "arrays nested 100000 deep in the place of the weights",
         "parts": [[f'{before}"weights":', 1], ["[", deep], ["]", deep], [after, 1]]},
        {"reason": "collections nested 100000 deep",
         "parts": [['{"collection":', deep], ["1", 1], ["}", deep]]},
        {"reason": "2^26 + 1 code points", "parts": [[text, 1], [" ", 2**26 + 1 - len(text)]]},
    ]  # fmt: skip


def _not_strict_json(text: str) -> list[Json]:
    start = '"first_start":0'
    inside = '"collection":{'
    cases = {
        "cut off": text[:-1],
        "followed by more": text + "x",
        "a byte order mark": "\ufeff" + text,
        "a trailing comma": text[:-1] + ",}",
        "a trailing comma in the collection": text.replace("},", ",},", 1),
        "a field twice": text.replace("{", '{"answers":1,', 1),
        "a field twice, once escaped": text.replace("{", '{"\\u0061nswers":1,', 1),
        "a field of the collection twice": text.replace(inside, f'{inside}"base_weight":1,'),
        "a field of its grid twice": text.replace('"cells":1', '"cells":1,"cells":1'),
        "a collection twice": text.replace(inside, f'"collection":{{}},{inside}'),
        "a fraction that is whole": text.replace(start, '"first_start":0.0'),
        "a fraction": text.replace(start, '"first_start":0.5'),
        "an exponent": text.replace(start, '"first_start":0e0'),
        "a leading zero": text.replace(start, '"first_start":00'),
        "NaN": text.replace(start, '"first_start":NaN'),
        "half of a surrogate pair in the name": text.replace("one window", "one\\ud800"),
    }
    return [{"kind": "json", "reason": reason, "text": bad} for reason, bad in cases.items()]


def _of_wrong_form(document: Json) -> list[Json]:
    whole = {**document["collection"], "schema": "ldpspatial/collection/1", "name": "a window",
             "max_reports": 1}  # fmt: skip
    changes: list[tuple[str, Any]] = [
        ("schema", "ldpspatial/series/2"), ("schema", "ldpspatial/collection/1"), ("schema", None),
        ("name", ""), ("name", None), ("name", "x" * 101), ("name", "\U0001f6b2" * 101),
        ("first_start", -1), ("first_start", 253402300800), ("first_start", None),
        ("first_start", "0"), ("first_start", False), ("first_start", 1 << 53),
        ("window_seconds", 0), ("window_seconds", -1), ("window_seconds", 1000000001),
        ("window_seconds", True), ("windows", 0), ("windows", 100001), ("windows", [1]),
        ("answers", 0), ("answers", -1), ("answers", 100001), ("answers", None),
        ("answers", [1]), ("collection", None), ("collection", []), ("collection", {}),
        ("collection", "window"), ("collection", json.dumps(document["collection"])),
        ("collection", whole), ("collection.name", "a window"), ("collection.max_reports", 1),
        ("collection.schema", "ldpspatial/collection/1"), ("collection.windows", 1),
        ("collection.grid", None), ("collection.grid.kind", "sphere"),
        ("collection.grid.cells", 0), ("collection.grid.south", 1),
        ("collection.mechanism", ""), ("collection.mechanism", "x" * 61),
        ("collection.mechanism", "a\u200bb"), ("collection.micro_epsilon", 0),
        ("collection.micro_epsilon", 20000001), ("collection.base_weight", 0),
        ("collection.total_weight", 1 << 53), ("collection.weights", []),
        ("collection.weights", [1]), ("collection.weights", [[]]), ("collection.weights", [[[1]]]),
        ("collection.weights", [[{"w": 1}]]), ("collection.weights", [[[[1]]]]), ("seed", 1),
        ("max_reports", 1), ("micro_epsilon", 1000000), ("", 1),
    ]  # fmt: skip
    entries = []
    for path, value in changes:
        shown = json.dumps(value)
        reason = f"{path} is {shown if len(shown) < 60 else 'too large'}"
        entries.append(_entry("form", reason, changed(document, path, value)))
    for field in document:
        entries.append(_entry("form", f"{field} is missing", _without(document, field)))
    for field in document["collection"]:
        inner = _without(document["collection"], field)
        bad = {**document, "collection": inner}
        entries.append(_entry("form", f"{field} of the collection is missing", bad))
    return entries


def _of_unseen_characters(document: Json) -> list[Json]:
    entries = [
        _entry("form", reason, {**document, "name": UNSEEN[reason]}) for reason in UNSEEN_IN_NAMES
    ]
    for reason in UNSEEN_BY_TABLE_IN_NAMES:
        bad = {**document, "name": f"a{UNSEEN_BY_TABLE[reason]}b"}
        entries.append(_entry("text", reason, bad))
    bad = changed(document, "collection.mechanism", "dam\U000e0061")
    entries.append(_entry("text", "a mechanism with the tag of a letter", bad))
    return entries


def _of_wrong_numbers(document: Json, model: Collection) -> list[Json]:
    windows = document["windows"]
    entries = [
        _entry("arithmetic", "answers is one more than windows",
               {**document, "answers": windows + 1}),
        _entry("arithmetic", "one window and two answers",
               {**document, "windows": 1, "answers": 2}),
    ]  # fmt: skip
    texts = {e["reason"]: e["text"] for e in bad_documents(model, model)}
    for reason in OF_ITS_COLLECTION:
        body = json.loads(texts[reason])
        for field in ("schema", "name", "max_reports"):
            del body[field]
        entries.append(_entry("arithmetic", reason, {**document, "collection": body}))
    return entries


def _without(document: Json, field: str) -> Json:
    return {key: value for key, value in document.items() if key != field}


def _entry(kind: str, reason: str, document: Json) -> Json:
    return {"kind": kind, "reason": reason, "text": json.dumps(document)}
