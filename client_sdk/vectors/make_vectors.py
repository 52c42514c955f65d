"""Write the known answers that every port of the client must give (docs/protocol.md, section 10).

Run ``python client_sdk/vectors/make_vectors.py``; the output never varies, and a test compares
it with the files. A change of a file is a change of the protocol.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from bad_documents import (  # type: ignore[import-not-found]
    bad_bytes,
    bad_documents,
    long_documents,
)
from designs import BERLIN, CHICAGO, COLLECTIONS, EDGES, FIJI, ONE_REPORT, SERIES, collection
from series_vectors import series_vectors

from client_sdk import Collection, Grid, Report, response_table
from client_sdk.events import event_name
from client_sdk.exact import exp_below
from client_sdk.mechanisms import MECHANISMS
from client_sdk.sampling import Sampler
from client_sdk.testing import FixedEntropy, StreamEntropy
from client_sdk.validate import MICRO

Json = dict[str, Any]
HERE = Path(__file__).parent

# mechanism, epsilon in millionths, cells, radius, for "disk" squared radius (None: the formula's)
TABLES: list[tuple[Any, ...]] = [
    ("dam", 700_000, 5, None), ("dam", 3_500_000, 5, None), ("dam", 3_500_000, 10, None),
    ("dam", 700_000, 15, None), ("dam", 3_500_000, 15, None), ("dam", 5_000_000, 15, None),
    ("dam", 3_500_000, 20, None), ("dam", 1_400_000, 2, None), ("dam", 1, 3, None),
    ("dam", 20_000_000, 4096, None), ("dam", 1_000_000, 1, None), ("dam", 3_500_000, 3, None),
    ("dam", 2_000_000, 3, 6), ("dam", 100_000, 128, 3), ("dam", 1_234_567, 7, None),
    ("dam-ns", 2_000_000, 4, None), ("dam-ns", 3_500_000, 15, None), ("dam-ns", 7_000_000, 8, 3),
    ("huem", 1_400_000, 5, None), ("huem", 3_500_000, 15, None), ("huem", 9_000_000, 6, 5),
    ("huem", 2_000_000, 3, 0), ("huem", 500_000, 1, 1),
    ("disk", 700_000, 5, None, None), ("disk", 3_500_000, 15, None, None),
    ("disk", 3_500_000, 4, None, None), ("disk", 1, 3, None, None), ("disk", 2_000_000, 3, 6, None),
    ("disk", 1_400_000, 5, None, 5), ("disk", 9_000_000, 6, None, 7), ("disk", 20_000, 1, None, 4),
]  # fmt: skip
TABLES += [(name, 3_500_000, 5, None) for name in MECHANISMS if name not in {t[0] for t in TABLES}]


def tables() -> Json:
    """List weights of the mechanisms, and the integer bound of e^epsilon in hexadecimal."""
    rows = []
    for mechanism, micro, cells, *given in TABLES:
        table = response_table(mechanism, Fraction(micro, MICRO), cells, *given)
        rows.append({
            "mechanism": mechanism, "micro_epsilon": micro, "cells": cells,
            **dict(zip(("given_radius", "given_squared_radius"), given, strict=False)),
            "radius": table.radius, "base_weight": table.base_weight,
            "output_size": table.output_size, "total_weight": table.total_weight,
            "weights": table.octant,
        })  # fmt: skip
    micros = [1, 2, 999_999, 10**6, 3_500_000, 6_931_472, 19_999_999, 20_000_000]
    bounds = [{"micro_epsilon": m, "bound": f"{exp_below(Fraction(m, MICRO)):x}"} for m in micros]
    return {"tables": rows, "bounds": bounds}


def draws() -> Json:
    """List input cell, entropy, output cell (null where the entropy runs out), bytes; bad cells."""
    rows = []
    for number, made in enumerate(COLLECTIONS):
        sampler, last = Sampler(made.table), made.grid.cells - 1
        for place, data in enumerate(_entropies(sampler)):
            row, col = ((0, 0), (last, 0), (last // 2, last))[place % 3]
            entropy = FixedEntropy(data)
            try:
                output = list(sampler.draw(row, col, entropy))
            except EOFError:
                output = None
            rows.append({
                "document": number, "cell": [row, col], "entropy": data.hex(),
                "output": output, "bytes": entropy.used,
            })  # fmt: skip
    bad = [
        {"document": 0, "cell": cell}
        for cell in ([-1, 0], [0, -1], [2, 0], [0, 2], [0.5, 0], [1, 0.5], [2**32, 0])
    ]
    texts = [made.to_json() for made in COLLECTIONS]
    return {"documents": texts, "draws": rows, "bad": bad}


def _entropies(sampler: Sampler) -> Iterator[bytes]:
    """Both ends of every part, of some orbits, and of what is thrown away; then any bytes."""
    parts, table = sampler.parts, sampler.table
    total, bits = table.total_weight, (table.total_weight - 1).bit_length()
    inner = [parts.low_end + end for end in parts.high_ends[:3]]
    inner += [parts.high_end + end for end in parts.mixed_ends[:3]]
    places = {0, 1, table.base_weight, parts.low_end, parts.high_end, total, *inner}
    values = sorted({u for p in places for u in (p - 1, p) if 0 <= u < 1 << bits})
    for u in values:
        yield u.to_bytes(7, "big") + (bytes(7) if u >= total else b"")
    yield b"\xff" * 21  # thrown away three times, unless the total is a power of two
    if bits < 56:
        yield ((1 << 55) | (total - 1)).to_bytes(7, "big")  # bits above the mask do not count
    yield bytes(6)
    for k in range(5):
        yield StreamEntropy(f"{table.mechanism} {k}")(35)


POSITIONS: list[tuple[Grid, list[tuple[float, float]]]] = [
    (CHICAGO, [(41.64, -87.9), (41.82, -87.72), (41.8199999, -87.7200001), (42.0, -87.54),
               (42.0000001, -87.54), (41.81999995, -87.72000005), (41.5, -88.5), (43, -80),
               (90, 0), (-90, 0), (41.7, 272.2), (41.7, 272.4), (0, 0), (41.9, 92.2),
               (41.9, 92.4)]),
    (BERLIN, [(52.5163, 13.3777), (52.52, 13.405), (48.137, 11.575), (52.52, -166.6),
              (52.52, -166.5), (52.52, -346.595)]),
    (FIJI, [(-17.8, 179.99), (-17.8, -180.01), (-17.8, 180), (-17.8, -180), (-17.8, -179.9),
            (-17.8, 179.8), (-17.8, -0.0), (-17.8, 360), (-17.8, -0.02), (-18.2, 180.2),
            (-17.5, -179.7)]),
    (Grid.from_bounds(-85, -180, 170, 4096), [(0, 0), (85, 180), (85, -180), (-85, -0.0000001),
                                              (12.3456789, 89.9999999), (0, 90), (0, 135)]),
    (Grid.from_bounds(0, 170, 85, 17), [(4.99999994, 179.99999995), (5, 180), (5, -180),
                                       (4.99999996, -175.00000004)]),
    (Grid("plane", 0, 0, 8, 8, 4), [(0.0, 0.0), (1.5e-7, 1.49e-7), (2e-7, 2.5e-7), (8e-7, 9e-7),
                                    (-5e-8, -5.1e-8), (3.5e-7, 5.5e-7), (1e8, -1e8),
                                    (1.01e8, -1.01e8), (4e8, 4.1e8), (-1e300, sys.float_info.max),
                                    (5e-324, -5e-324), (-0.0, 0.0)]),
    (Grid("plane", 0, 0, 10, 7, 3), [(3e-7, 2e-7), (4e-7, 3e-7), (6e-7, 5e-7), (7e-7, 4e-7)]),
    (Grid.plane(-1e8, -1e8, 2e8, 4096), [(-1e8, -1e8), (1e8, 1e8), (0, -0.00000004),
                                         (99999999.9999999, 48828.125), (0.1, 48828.1249999)]),
    (Grid("plane", 10**15, -(10**15), 2 * 10**15, 2 * 10**15, 4096),  # up to the farthest edge
     [(1e8, -1e8), (3e8, 1e8), (3.0000001e8, 0), (2.9999999e8, 1.0000001e8), (1.5e8, -1e9),
      (1e300, 0), (99999999.9999999, 0)]),
    # Exact arithmetic, a fused addition or a division by 1e-7 would round these differently.
    (Grid("geographic", 392781826, -854265581, 4, 4, 2), [(39.27818275, -85.42655795)]),
    # An odd width: the point opposite to the middle lies between two units.
    (Grid("geographic", 0, 0, 9, 9, 3), [(0, -179.9999995), (0, -179.9999996), (0, 180.0000004),
                                         (0, 180.0000005), (0, 180), (0, -180)]),
    (Grid.plane(-4.44, -4.87, 9.45, 15), [(0.0, 0.0), (-3.81, -4.24), (5.01, 4.58), (1e3, -1e3)]),
]  # fmt: skip


def positions() -> Json:
    """List [latitude, longitude] or [y, x] with its cell and whether it is in the square; bad ones.

    NaN, Infinity and -Infinity are written as texts and stand for these doubles.
    """
    return {
        "grids": [
            {
                "kind": grid.kind, "south_e7": grid.south, "west_e7": grid.west,
                "height_e7": grid.height, "width_e7": grid.width, "cells": grid.cells,
                "positions": [
                    {"at": [y, x], "cell": grid.cell(y, x), "inside": grid.contains(y, x)}
                    for y, x in places
                ],
            }
            for grid, places in POSITIONS
        ],
        "bad": [
            {"kind": kind, "at": at}
            for kind, places in (
                ("geographic", [[90.0000001, 0], [-91, 0], [0, 360.0000001], [0, -361], [1e300, 0],
                                ["NaN", 0], [0, "Infinity"]]),
                ("plane", [["NaN", 0], [0, "NaN"], ["Infinity", 0], [0, "-Infinity"]]),
            )
            for at in places
        ],
    }  # fmt: skip


def documents() -> Json:
    """List good documents with canonical text and digest, bad texts, bad bytes and long texts."""
    good = []
    for made in COLLECTIONS:
        spread = json.dumps(json.loads(made.to_json()), indent=1)
        good += [_good(made, text) for text in (made.to_json(), spread)]
    good += [_good(made, made.to_json()) for made in EDGES]
    one = ONE_REPORT.to_json()
    escaped = one.replace("one report", "one\\u0020rep\\u006Frt").replace(
        '"schema"', '"\\u0073chema"'
    )
    good += [_good(ONE_REPORT, escaped), _good(ONE_REPORT, one.replace(":0", ":-0"))]
    slashed = collection("and/or", CHICAGO, Fraction(7, 5))
    good.append(_good(slashed, slashed.to_json().replace("and/or", "and\\/or")))
    return {
        "good": good,
        "bad": bad_documents(COLLECTIONS[0], ONE_REPORT),
        "bytes": bad_bytes(ONE_REPORT),
        "long": long_documents(ONE_REPORT),
    }


def _good(made: Collection, text: str) -> Json:
    return {"text": text, "canonical": made.to_json(), "digest": made.digest}


def reports() -> Json:
    """List reports: good, bad, well-formed ones of another collection; all outputs; bodies."""
    made = COLLECTIONS[0]
    report = Report(made.digest, bytes(range(16)).hex(), -1, 2)
    text = report.to_json()
    document: Json = json.loads(text)
    padded = f"{text:1024}"  # the longest text that is read
    good = [{"text": t, "canonical": text} for t in (text, json.dumps(document, indent=1), padded)]
    changes: list[Json] = [
        {"schema": "ldpspatial/report/2"}, {"collection": made.digest.upper()},
        {"collection": made.digest[1:]}, {"id": ""}, {"id": report.id[1:]}, {"id": 5},
        {"id": "g" + report.id[1:]}, {"id": report.id.upper()}, {"id": report.id + "\n"},
        {"row": None}, {"row": True}, {"row": "1"}, {"row": 1.0}, {"row": 0.5}, {"row": 1 << 53},
        {"row": 1048577}, {"row": -1048577}, {"col": 1048577}, {"col": -1048577}, {"col": [0]},
        {"time": 1},
    ]  # fmt: skip
    bad = [json.dumps({**document, **change}) for change in changes]
    bad += [json.dumps({k: v for k, v in document.items() if k != field}) for field in document]
    bad += [text[:-1], text + "}", f"[{text}]", "", text.replace("{", '{"row":0,', 1)]
    bad += [text.replace('"col":2', f'"col":{n}') for n in ("2e0", "NaN", "02", "+2", "0x2")]
    bad.append(padded + " ")
    changes = [{"collection": COLLECTIONS[1].digest}, {"row": -2}, {"row": 3}, {"col": -2},
               {"col": 3}, {"row": 1048576}, {"col": -1048576}]  # fmt: skip
    foreign = [json.dumps({**document, **change}) for change in changes]
    around = range(-3, 5)
    outputs = [[r, c] for r in around for c in around if made.table.is_output(r, c)]
    return {
        "document": made.to_json(), "outputs": outputs, "good": good, "bad": bad,
        "foreign": foreign, "bodies": _bodies(report),
    }  # fmt: skip


def _bodies(report: Report) -> list[Json]:
    """Return texts with what is sent: from the shortest and longest cells, in other spellings."""
    far = 1 << 20
    cells = [(0, 0), (9, 0), (0, 10), (-1, 2), (-10, -9), (99, 100), (far, 0), (-far, far)]
    made = [replace(report, row=row, col=col) for row, col in cells]
    made.append(Report("f" * 64, "0" * 32, -far, -far))
    entries = [{"text": each.to_json(), "body": each.to_body()} for each in made]
    text = report.to_json()
    for other in (
        report.to_body(),
        f"{text:1024}",
        json.dumps(json.loads(text), indent=4),
        text.replace('"schema"', '"\\u0073chema"'),
        text.replace('"row":-1', '"row":-0'),
    ):
        entries.append({"text": other, "body": Report.from_json(other).to_body()})
    return entries


def series() -> Json:
    """List good series, their windows, which is open when, bad series, long ones, and choices."""
    return series_vectors(SERIES, COLLECTIONS[0])


def events() -> Json:
    """List key, digest and event with the name that a ledger holds; what has no name."""
    keys = bytes(range(32)), b"\xff" * 32
    digest = COLLECTIONS[0].digest
    named = [
        "visit 41", "visit 42", "Visit 41", "visit 41 ", "window 1", "a", "\u00e9", "e\u0301",
        "\u6b63\u5348 \U0001f6b2", "line\nbreak", "\0", '"\\/', f"64:{digest}", "x" * 300,
    ]  # fmt: skip
    asked = [(keys[0], digest, event) for event in named]
    asked += [(keys[1], digest, "visit 41")]
    asked += [(keys[0], made.digest, f"window {k}") for made in SERIES[:1] for k in (1, 28)]
    # Written together these are one text each; the length in front tells them apart. (No digest
    # has these lengths: here it is any text of ASCII.)
    asked += [(keys[0], digest[:-1], f"{digest[-1]}visit 41")]
    asked += [(keys[0], "ab", "c"), (keys[0], "a", "bc"), (keys[0], "abcdefghij", "k")]
    return {
        "events": [
            {"key": key.hex(), "digest": digest, "event": event,
             "name": event_name(key, digest, event).hex()}
            for key, digest, event in asked
        ],
        "bad": [
            {"key": keys[0].hex(), "digest": digest, "event": ""},
            {"key": keys[0].hex(), "digest": "", "event": "visit 41"},
        ],
    }  # fmt: skip


MAKERS = {
    "tables": tables, "draws": draws, "positions": positions, "documents": documents,
    "reports": reports, "series": series, "events": events,
}  # fmt: skip


def render(name: str) -> str:
    """Return the text of a vector file: ASCII, one entry a line."""
    vectors = MAKERS[name]()
    fields = [f"{json.dumps(key)}: {_lines(value)}" for key, value in vectors.items()]
    about = json.dumps(" ".join((MAKERS[name].__doc__ or "").split()))
    return "{\n" + ",\n".join([f'"about": {about}', *fields]) + "\n}\n"


def _lines(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n  " + ",\n  ".join(json.dumps(entry) for entry in value) + "\n]"


if __name__ == "__main__":
    for file in MAKERS:
        (HERE / f"{file}.json").write_text(render(file), encoding="ascii", newline="\n")
