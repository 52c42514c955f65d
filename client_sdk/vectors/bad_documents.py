"""Collection documents that every port must refuse, each for one reason.

The kind says who can tell: "json" a strict parser, "form" the JSON schema too, "arithmetic" only
the checks of docs/protocol.md, section 3, "text" only the table of visible characters, and
"device" only what the device itself expects.
"""

import copy
import json
from typing import Any

from client_sdk import Collection, ResponseTable

Json = dict[str, Any]

# Names that hold what nobody sees, where the pattern of the schema tells.
UNSEEN = {
    "a no-break space": "a\u00a0b",
    "an ideographic space": "a\u3000b",
    "a thin space": "a\u2009b",
    "a space of Ogham": "a\u1680b",
    "a soft hyphen": "a\u00adb",
    "a grapheme joiner": "a\u034fb",
    "a number sign of Arabic, a format character": "a\u0600b",
    "a mark of Arabic direction": "a\u061cb",
    "a filler of Hangul": "a\u115fb",
    "a filler of Hangul that is a letter": "a\u3164b",
    "a filler of Hangul of half width": "a\uffa0b",
    "a vowel of Khmer without ink": "a\u17b5b",
    "a separator of Mongolian vowels": "a\u180eb",
    "a space without width": "a\u200bb",
    "a joiner without width": "a\u200db",
    "a mark of direction": "a\u200eb",
    "a word joiner": "a\u2060b",
    "a format character that is deprecated": "a\u206fb",
    "the braille pattern without dots": "a\u2800b",
    "the first of private use": "a\ue000b",
    "the last of private use up to U+FFFF": "a\uf8ffb",
    "variation selector 1": "a\ufe00b",
    "variation selector 16": "a\ufe0fb",
    "a space without width that does not break": "a\ufeffb",
    "an annotation": "a\ufff9b",
    "an object replacement character": "a\ufffcb",
    "a replacement character": "a\ufffdb",
    "no character": "a\uffffb",
    "a space and nothing else": " ",
    "a space at the start": " a",
    "a space at the end": "a ",
    "two spaces in a row": "a  b",
}

# The same beyond U+FFFF, where a pattern may see halves of pairs, and what Unicode 13.0 does not
# assign: some of it is assigned in Unicode 14.0 to 16.0.
UNSEEN_BY_TABLE = {
    "a format character of shorthand": "\U0001bca0",
    "a beam of musical notation": "\U0001d173",
    "a notehead without ink": "\U0001d159",
    "a filler of Khitan": "\U00016fe4",
    "the tag of a language": "\U000e0001",
    "the tag of a letter": "\U000e0061",
    "variation selector 17": "\U000e0100",
    "variation selector 256": "\U000e01ef",
    "private use in plane 15": "\U000f0000",
    "the last code point": "\U0010ffff",
    "no character of plane 1": "\U0001ffff",
    "unassigned": "\u0378",
    "unassigned in plane 3": "\U00031350",
    "assigned in Unicode 14.0": "\u061d",
    "a letter of Unicode 14.0": "\u0870",
    "a currency of Unicode 14.0": "\u20c0",
    "a face of Unicode 14.0": "\U0001fae0",
    "a letter of Unicode 15.0": "\U00011f04",
    "a letter of Unicode 16.0": "\u1c89",
}


def bad_documents(good: Collection, small: Collection) -> list[Json]:
    """Return entries with kind, reason and text, made from a good document and a short one."""
    text = good.to_json()
    document = json.loads(text)
    entries = _not_strict_json(text) + _of_wrong_form(document) + _of_wrong_numbers(document)
    entries += _of_unseen_characters(json.loads(small.to_json()))
    entries += [
        {"kind": "device", "reason": "another digest is expected", "text": text,
         "digest": "0" * 64},
        {"kind": "device", "reason": "epsilon exceeds the device's cap", "text": text,
         "max_micro_epsilon": document["micro_epsilon"] - 1},
    ]  # fmt: skip
    return entries


def bad_bytes(good: Collection) -> list[Json]:
    """Return entries with reason and hex: bytes that are no UTF-8 or start with a mark."""
    text = good.to_json().encode()
    cases = {
        "a byte that UTF-8 never has": text.replace(b"one", b"one\xff", 1),
        "a byte cut off from its character": text.replace(b"one", b"one\xc3", 1),
        "a slash of two bytes": text.replace(b"one", b"one\xc0\xaf", 1),
        "half of a surrogate pair": text.replace(b"one", b"one\xed\xa0\x80", 1),
        "a byte order mark": b"\xef\xbb\xbf" + text,
    }
    return [{"reason": reason, "hex": data.hex()} for reason, data in cases.items()]


def long_documents(good: Collection) -> list[Json]:
    """Return entries with reason, parts (text, times) and the digest, null where it is bad."""
    text = good.to_json()
    before, after = text.split('"max_reports":1')
    rows = 2 * 4096 + 1
    longest = _star(good, rows)
    start, end = longest.to_json().split(",[1]" * (rows - 1))
    too_long = _star(good, rows + 1).to_json().split(",[1]" * rows)
    nested = f'{before}"max_reports":'
    return [
        {"reason": "8193 rows", "parts": [[start, 1], [",[1]", rows - 1], [end, 1]],
         "digest": longest.digest},
        {"reason": "8194 rows", "parts": [[too_long[0], 1], [",[1]", rows], [too_long[1], 1]],
         "digest": None},
        {"reason": "arrays nested 100000 deep",
         "parts": [[nested, 1], ["[", 10**5], ["]", 10**5], [after, 1]], "digest": None},
        {"reason": "objects nested 100000 deep",
         "parts": [[nested, 1], ['{"a":', 10**5], ["1", 1], ["}", 10**5], [after, 1]],
         "digest": None},
        {"reason": "100000 brackets that never close", "parts": [["[", 10**5]], "digest": None},
        {"reason": "2^26 + 1 code points", "parts": [[text, 1], [" ", 2**26 + 1 - len(text)]],
         "digest": None},
    ]  # fmt: skip


def _star(good: Collection, rows: int) -> Collection:
    """Return a collection whose disk is its axis arms: the most rows for the fewest numbers."""
    table = ResponseTable("hand-made", 1.0, good.grid.cells, 1, ((1,),) * rows)
    return Collection("star", good.grid, table, good.micro_epsilon)


def changed(document: Json, path: str, value: Any) -> Json:
    """Return a document with another value at a path of fields, such as ``grid.cells``."""
    *outer, last = path.split(".")
    other = copy.deepcopy(document)
    target = other
    for field in outer:
        target = target[field]
    target[last] = value
    return other


def _not_strict_json(text: str) -> list[Json]:
    reports = '"max_reports":1'
    cases = {
        "empty": "",
        "cut off": text[:-1],
        "followed by more": text + "x",
        "two documents": text + text,
        "a byte order mark": "\ufeff" + text,
        "a comment": "/**/" + text,
        "a trailing comma": text[:-1] + ",}",
        "single quotes": text.replace('"', "'"),
        "a control character in a text": text.replace("worked ", "worked\n"),
        "a field twice": text.replace("{", '{"name":"worked example",', 1),
        "a field twice, once escaped": text.replace("{", '{"n\\u0061me":"x",', 1),
        "a field of the grid twice": text.replace('"cells":2', '"cells":2,"cells":2'),
        "a fraction that is whole": text.replace(reports, '"max_reports":1.0'),
        "a fraction": text.replace(reports, '"max_reports":1.5'),
        "an exponent": text.replace(reports, '"max_reports":1e0'),
        "a capital exponent": text.replace(reports, '"max_reports":1E0'),
        "NaN": text.replace(reports, '"max_reports":NaN'),
        "Infinity": text.replace(reports, '"max_reports":Infinity'),
        "a leading zero": text.replace(reports, '"max_reports":01'),
        "a plus sign": text.replace(reports, '"max_reports":+1'),
        "a no-break space between tokens": text.replace(",", ",\u00a0", 1),
        "an unknown escape": text.replace("worked ", "worked\\v"),
        "half of a surrogate pair in the name": text.replace("worked ", "worked\\ud800"),
        "the other half in the mechanism": text.replace('"dam"', '"\\udfff"'),
    }
    return [{"kind": "json", "reason": reason, "text": bad} for reason, bad in cases.items()]


def _of_wrong_form(document: Json) -> list[Json]:
    rows = document["weights"]
    changes: list[tuple[str, Any]] = [
        ("schema", "ldpspatial/collection/2"), ("schema", None), ("name", ""), ("name", None),
        ("name", "x" * 201), ("name", "\U0001f6b2" * 201), ("name", "a\nb"), ("name", "a\bb"),
        ("name", "\x7f"), ("name", "\x9f"), ("name", "a\u2028b"), ("name", "a\u202eb"),
        ("name", "a\u2066b"), ("name", "a\u2069b"), ("mechanism", ""), ("mechanism", "x" * 61),
        ("mechanism", 1), ("grid", None), ("grid", []), ("grid", "plane"),
        ("grid.kind", "sphere"), ("grid.kind", None), ("grid.cells", 0), ("grid.cells", 4097),
        ("grid.cells", "2"), ("grid.south_e7", -850000001), ("grid.south_e7", 849999999),
        ("grid.west_e7", 1800000000),
        ("grid.west_e7", -1800000001), ("grid.width_e7", 1800000001), ("grid.width_e7", 0),
        ("grid.height_e7", True), ("grid.east_e7", 1), ("micro_epsilon", 0),
        ("micro_epsilon", -1), ("micro_epsilon", 20000001), ("micro_epsilon", "1400000"),
        ("micro_epsilon", True), ("max_reports", 0), ("max_reports", 1000001),
        ("max_reports", None), ("base_weight", 0), ("base_weight", 1 << 53),
        ("base_weight", 10**400), ("output_size", False), ("output_size", 0),
        ("total_weight", 1 << 53), ("total_weight", [1]), ("weights", None), ("weights", []),
        ("weights", [[]]), ("weights", [1]), ("weights", {"0": [1]}), ("weights", [rows[0], []]),
        ("weights", [rows[0] * 2, rows[1]]), ("weights", [[0], rows[1]]), ("weights", [["1"]]),
        ("weights", [rows[0], [rows[1][0], None]]), ("weights", [rows[0], [rows[1][0], True]]),
        ("weights", [rows[0], [rows[1][0], 1 << 53]]), ("seed", 1), ("", 1),
    ]  # fmt: skip
    entries = []
    for path, value in changes:
        shown = json.dumps(value)
        reason = f"{path} is {shown if len(shown) < 60 else 'too large'}"
        bad = json.dumps(changed(document, path, value))
        entries.append({"kind": "form", "reason": reason, "text": bad})
    for field in document:
        bad = json.dumps({key: value for key, value in document.items() if key != field})
        entries.append({"kind": "form", "reason": f"{field} is missing", "text": bad})
    bad = json.dumps(changed(document, "grid", {"kind": "geographic"}))
    entries.append({"kind": "form", "reason": "grid lacks fields", "text": bad})
    plane, limit = _on_a_plane(document), 10**15
    for field, value in (
        ("south_e7", limit + 1), ("south_e7", -limit - 1), ("west_e7", limit + 1),
        ("west_e7", -limit - 1), ("height_e7", 2 * limit + 1), ("width_e7", 2 * limit + 1),
    ):  # fmt: skip
        bad = json.dumps(changed(plane, f"grid.{field}", value))
        reason = f"grid.{field} of a plane is {value}"
        entries.append({"kind": "form", "reason": reason, "text": bad})
    return entries


def _of_unseen_characters(document: Json) -> list[Json]:
    cases = [("form", reason, {"name": name}) for reason, name in UNSEEN.items()]
    cases += [("text", reason, {"name": f"a{code}b"}) for reason, code in UNSEEN_BY_TABLE.items()]
    cases.append(("form", "a mechanism with a space without width", {"mechanism": "dam\u200b"}))
    return [
        {"kind": kind, "reason": reason, "text": json.dumps({**document, **change})}
        for kind, reason, change in cases
    ]


def _on_a_plane(document: Json) -> Json:
    sides = {"south_e7": 0, "west_e7": 0, "height_e7": 10**7, "width_e7": 10**7}
    return {**document, "grid": {"kind": "plane", **sides, "cells": document["grid"]["cells"]}}


def _of_wrong_numbers(document: Json) -> list[Json]:
    rows, base = document["weights"], document["base_weight"]
    total, size = document["total_weight"], document["output_size"]
    (center,), (arm, corner) = rows
    plane = _on_a_plane(document)
    orbit = 4  # cells at offsets like (1, 0), and like (1, 1)
    cases: list[tuple[str, Json]] = [
        ("a weight is one larger", {"weights": [[center], [arm, corner + 1]]}),
        ("a weight is one smaller", {"weights": [[center - 1], [arm, corner]]}),
        ("two weights changed places", {"weights": [[corner], [arm, center]]}),
        ("the total is one larger", {"total_weight": total + 1}),
        ("the output size is one larger", {"output_size": size + 1}),
        ("the base is twice as large", {"base_weight": 2 * base}),
        ("the base is half as large", {"base_weight": base // 2}),
        ("another number of cells", {"grid": {**document["grid"], "cells": 3}}),
        ("an epsilon one millionth below what the weights need",
         {"micro_epsilon": document["micro_epsilon"] - 1}),
        ("a weight above the bound by one, with a total that fits",
         {"weights": [[center + 1], [arm, corner]], "total_weight": total + 1}),
        ("a weight below the base, with a total that fits",
         {"weights": [[center], [arm, base - 1]],
          "total_weight": total - orbit * (corner - base + 1)}),
        ("a base that is no power of two, with a total that fits",
         {"base_weight": 3, "weights": [[3]], "output_size": 4, "total_weight": 12}),
        ("a total of 54 bits", {"base_weight": 1 << 51, "weights": [[1 << 51]], "output_size": 4,
                                "total_weight": (1 << 53) - 1}),
        ("a square beyond 85 degrees", {"grid": {**document["grid"], "south_e7": 846400001}}),
        ("cells less than two units wide", {"grid": {**document["grid"], "width_e7": 3}}),
        ("cells less than two units high", {"grid": {**document["grid"], "height_e7": 3}}),
        ("plane cells less than two units wide", changed(plane, "grid.width_e7", 3)),
        ("plane cells less than two units high", changed(plane, "grid.height_e7", 3)),
        ("a total of 2^64 + 2^51, given modulo 2^64",
         {"grid": {**document["grid"], "cells": 64}, "micro_epsilon": 500000,
          "base_weight": 1 << 52, "weights": [[3 << 51]], "output_size": 1 << 12,
          "total_weight": 1 << 51}),
        ("a disk with a gap, counted as the union of its cells",
         {"base_weight": 1, "weights": [[1], [1], [1, 1]], "output_size": 32, "total_weight": 32}),
    ]  # fmt: skip
    for reason, lengths in (
        ("a row of the octant beyond its diagonal", (1, 3)),
        ("a disk with a gap", (1, 1, 2)),
        ("a disk that widens", (1, 1, 1, 4)),
        ("a row of the octant that is longer than the one before", (1, 2, 2, 3)),
    ):
        octant = tuple((base >> 4,) * length for length in lengths)
        table = ResponseTable("", 1.0, document["grid"]["cells"], base >> 4, octant)
        change = {"base_weight": base >> 4, "weights": octant}
        change |= {"output_size": table.output_size, "total_weight": table.total_weight}
        cases.append((reason, change))
    return [
        {"kind": "arithmetic", "reason": reason, "text": json.dumps({**document, **change})}
        for reason, change in cases
    ]
