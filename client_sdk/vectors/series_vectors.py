"""Known answers about series: documents, windows, times, and which windows a device draws."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from bad_series import bad_series, long_series  # type: ignore[import-not-found]

from client_sdk import Collection, Series
from client_sdk.entropy import DRAW_BYTES
from client_sdk.testing import FixedEntropy, StreamEntropy

Json = dict[str, Any]


def series_vectors(made: Sequence[Series], model: Collection) -> Json:
    """Return the entries of series.json; ``model`` is the collection that made[0] is made of."""
    return {
        "good": _good(made),
        "windows": list(_windows(made)),
        "times": list(_times(made)),
        "bad_windows": [
            {"series": number, "window": window}
            for number, each in enumerate(made)
            for window in (0, each.windows + 1, -1)
        ],
        "bad": bad_series(made[0], made[1], model),
        "long": long_series(made[1]),
        "choices": list(_choices(made[0])),
    }


def _good(made: Sequence[Series]) -> list[Json]:
    """List the canonical text of every series first, then other spellings."""
    pairs = [(each, each.to_json()) for each in made]
    first, small = made[0], made[1]
    pairs += [(each, json.dumps(json.loads(each.to_json()), indent=1)) for each in (first, made[3])]
    backwards = dict(reversed(json.loads(first.to_json()).items()))
    pairs.append((first, json.dumps(backwards)))
    text = small.to_json()
    pairs.append((small, text.replace("one window", "one\\u0020win\\u0064ow")))
    pairs.append((small, text.replace('"collection"', '"\\u0063ollection"')))
    pairs.append((small, text.replace('"first_start":0', '"first_start":-0')))
    return [
        {"text": text, "canonical": each.to_json(), "digest": each.digest} for each, text in pairs
    ]


def _windows(made: Sequence[Series]) -> Iterator[Json]:
    for number, each in enumerate(made):
        for k in sorted({1, 2, 10, each.windows - 1, each.windows} & set(_numbers(each))):
            collection = each.collection(k)
            entry = {"series": number, "window": k, "start": each.start(k)}
            entry["digest"] = collection.digest
            if k == each.windows or number == 0:
                entry["canonical"] = collection.to_json()
            yield entry


def _times(made: Sequence[Series]) -> Iterator[Json]:
    """Both sides of where windows open, and of where the last one closes."""
    for number, each in enumerate(made):
        edges = [each.start(k) for k in sorted({1, 2, each.windows} & set(_numbers(each)))]
        edges.append(each.start(each.windows) + each.window_seconds)
        for seconds in sorted({edge + step for edge in edges for step in (-1, 0)} | {0}):
            yield {"series": number, "seconds": seconds, "window": each.window_at(seconds)}


def _numbers(each: Series) -> range:
    return range(1, each.windows + 1)


def _choices(model: Series) -> Iterator[Json]:
    for windows, answers, data in _draws():
        entropy = FixedEntropy(data)
        asked = Series(model.name, model.template, 0, 1, windows, answers)
        try:
            chosen = asked.choose(entropy)
        except EOFError:
            chosen = None
        yield {"windows": windows, "answers": answers, "entropy": data.hex(),
               "chosen": chosen, "bytes": entropy.used}  # fmt: skip


def _draws() -> Iterator[tuple[int, int, bytes]]:
    """Windows, answers and bytes: both ends, what is thrown away, collisions, and too few bytes."""
    one_of_one = 1, 1
    yield *one_of_one, _words(0)  # a number below 1 takes seven bytes, too
    yield *one_of_one, _words((1 << 56) - 1)
    yield *one_of_one, bytes(6)
    yield *one_of_one, b""
    for u in (0, 1, 4, 5, 7, 8, 13):  # of 3 bits 5 to 7 are thrown away; higher bits do not count
        yield 5, 1, _words(u) + (_words(2) if u & 7 >= 5 else b"")
    yield 5, 1, _words(5, 6, 7)
    for u in (0, 7, 8, 15, 255):  # the bit length of windows - 1: nothing is thrown away
        yield 8, 1, _words(u)
    # j = 4, 5, 6, 7 in turn; a number that was taken before stands for j.
    for u in (
        (0, 0, 0, 0), (3, 4, 5, 6), (0, 1, 2, 3), (3, 3, 3, 3), (3, 3, 4, 5), (0, 4, 0, 5),
        (2, 0, 2, 2), (1, 4, 1, 4), (2, 1, 0, 6),
    ):  # fmt: skip
        yield 7, 4, _words(*u)
    yield 7, 4, _words(0, 5, 7, 0, 6, 7, 1, 2)  # thrown away twice for j = 5, twice for j = 6
    yield 7, 4, _words(0, 5, 7, 0, 6, 7)
    yield 7, 4, _words(0, 0, 0) + bytes(6)
    yield 7, 4, _words(0, 0, 0)
    # Every window: the answer is known, and the bytes are read all the same.
    for u in ((0, 0, 0, 0), (0, 1, 2, 3), (0, 1, 0, 2), (0, 0, 3, 1, 1), (0, 0, 3)):
        yield 4, 4, _words(*u)
    last = 10**5
    for u in (
        (0, 0, 0), (last - 3, last - 2, last - 1), (last - 1, 0, last - 2, 1, last, last - 1),
        (last - 3, last - 3, last - 3), (65_535, 65_536, 99_998), (1 << 17, 1 << 17, 1 << 17),
        (1 << 16, (1 << 17) - 1),
    ):  # fmt: skip
        yield last, 3, _words(*u)
    for windows, answers in ((7, 2), (16, 16), (28, 4), (30, 15), (365, 12), (last, 10)):
        yield windows, answers, StreamEntropy(f"{windows} {answers}")(3 * DRAW_BYTES * answers)


def _words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(DRAW_BYTES, "big") for number in numbers)
