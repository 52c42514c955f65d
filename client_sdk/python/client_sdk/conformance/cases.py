"""Requests made from good ones by a seed: about half of them must be accepted, the rest are near.

Case number k of a seed is the same however many are made, and in every version of Python. A new
operation is one function and its entry in :data:`MAKERS`, with its share.
"""

import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from client_sdk.collection import Collection
from client_sdk.conformance.dice import Dice
from client_sdk.conformance.documents import (
    a_document,
    a_grid,
    a_name,
    beside,
    digest_of,
    good_documents,
)
from client_sdk.conformance.series_documents import (
    a_number_of_windows,
    a_series,
    beside_series,
    good_series,
)
from client_sdk.conformance.spelling import Source, miswritten, written
from client_sdk.entropy import DRAW_BYTES
from client_sdk.grid import TURN, UNIT
from client_sdk.report import SCHEMA
from client_sdk.response import orbit_size
from client_sdk.sampling import Parts
from client_sdk.series import LONGEST_NAME, MAX_WINDOWS

Json = dict[str, Any]


def cases(count: int, seed: int) -> Iterator[str]:
    """Return requests as lines of ASCII JSON without their end, numbered by ``id`` from 0."""
    for number in range(count):
        yield json.dumps({"id": number, **case(seed, number)})


def case(seed: int, number: int) -> Json:
    """Return request number ``number`` of a seed, without its id.

    >>> case(1, 5) == case(1, 5)
    True
    """
    dice = Dice(f"{seed} {number}")
    names = [name for name, (share, _) in MAKERS.items() for _ in range(share)]
    name = dice.pick(names)
    return {"op": name, **MAKERS[name][1](dice)}


def _collection(dice: Dice) -> Json:
    return _read(a_document(dice), beside, dice)


def _series(dice: Dice) -> Json:
    return _read(a_series(dice), beside_series, dice)


def _read(made: Json, step_beside: Callable[[Json, Dice], Json], dice: Dice) -> Json:
    """Return a request to read a document: good, a step beside, or badly written."""
    slip = dice.below(100)
    if slip < 30:
        made = step_beside(made, dice)
    text = written(made, dice)
    request = _source(miswritten(text, dice) if 30 <= slip < 55 else text)
    if dice.chance(25):
        right = digest_of(made)
        request["digest"] = dice.pick((
            right, right, right, right, right.upper(), right[:-1], f"{right}0", "", f" {right}",
            f"{(int(right, 16) ^ 1 << dice.below(256)):064x}", digest_of({**made, "name": "other"}),
        ))  # fmt: skip
    body = made.get("collection", made)
    micro = body.get("micro_epsilon") if isinstance(body, dict) else None
    if dice.chance(25) and isinstance(micro, int) and 1 < micro < 2 * 10**7:
        request["max_micro_epsilon"] = dice.pick((micro - 1, micro, micro + 1, 2 * 10**7))
    return request


def _window(dice: Dice) -> Json:
    made: Json = json.loads(dice.pick(good_series()))
    if dice.chance(50):
        made["name"] = a_name(dice, LONGEST_NAME, visible=100)
    text = written(made, dice)
    request = _source(miswritten(text, dice) if dice.chance(10) else text)
    last = made["windows"]
    numbers: tuple[Any, ...] = (1, last, dice.between(1, last))
    if dice.chance(25):
        numbers = 0, last + 1, -1, 0.5, last + 0.5, 1 << 32, "1", True
    return {**request, "window": dice.pick(numbers)}


def _windows(dice: Dice) -> Json:
    windows = a_number_of_windows(dice)
    answers = dice.pick((1, 2, dice.between(1, 12), windows if windows <= 40 else 3))
    answers = min(answers, windows)
    data = b"".join(_words_of_a_choice(windows, answers, dice))
    if dice.chance(10):
        data = data[: dice.below(len(data))]
    elif dice.chance(20):
        data += dice.raw(dice.between(1, 8))
    request: Json = {"windows": windows, "answers": answers, "entropy": data.hex()}
    if dice.chance(25):
        request |= dice.pick((
            {"answers": 0}, {"answers": windows + 1}, {"answers": windows + 1}, {"windows": 0},
            {"windows": answers - 1}, {"windows": MAX_WINDOWS + 1}, {"answers": -1},
            {"answers": 0.5}, {"windows": windows + 0.5}, {"answers": "1"}, {"windows": [windows]},
        ))  # fmt: skip
    return request


def _words_of_a_choice(windows: int, answers: int, dice: Dice) -> Iterator[bytes]:
    """Yield groups of bytes: both ends, numbers taken before, some that are thrown away."""
    taken: set[int] = set()
    for j in range(windows - answers + 1, windows + 1):
        bits = (j - 1).bit_length()
        while j < 1 << bits and dice.chance(20):
            yield _word(dice.pick((j, (1 << bits) - 1, dice.between(j, (1 << bits) - 1))), j, dice)
        u = dice.pick((0, j - 1, dice.below(j), *(dice.pick(sorted(taken)) - 1 for _ in taken)))
        yield _word(u, j, dice)
        taken.add(j if 1 + u in taken else 1 + u)


def _word(u: int, bound: int, dice: Dice) -> bytes:
    """Return the bytes of a number drawn below a bound; the bits above those that count are any."""
    bits = (bound - 1).bit_length()
    return (u | dice.below(1 << (8 * DRAW_BYTES - bits)) << bits).to_bytes(DRAW_BYTES, "big")


def _source(source: Source) -> Json:
    """Return a text as it is, bytes in hexadecimal."""
    return {"text": source} if isinstance(source, str) else {"hex": source.hex()}


def _report(dice: Dice) -> Json:
    document = dice.pick(good_documents())
    made = _table(document)
    row, col = _output(made, dice)
    content: Json = {"schema": SCHEMA, "collection": made.digest, "id": dice.raw(16).hex(),
                     "row": row, "col": col}  # fmt: skip
    slip = dice.below(100)
    if slip < 20:
        _beside_a_report(content, dice)
    text = written(content, dice)
    if 40 <= slip < 43:  # as long as a report may be, or by one longer
        text += " " * (1024 - len(text) + dice.below(2))
    request = _source(miswritten(text, dice) if 20 <= slip < 40 else text)
    if dice.chance(60):
        other = dice.pick((document,) * 9 + (dice.pick(good_documents()),))
        odd = miswritten(document, dice) if dice.chance(3) else other
        request["document"] = odd if isinstance(odd, str) else other
    return request


def _body(dice: Dice) -> Json:
    limit = 1 << 20
    row, col = (
        dice.pick((0, 1, 9, 10, 99, 100, limit, dice.below(limit), dice.below(1000)))
        * dice.pick((-1, 1))
        for _ in range(2)
    )
    content: Json = {"schema": SCHEMA, "collection": dice.raw(32).hex(), "id": dice.raw(16).hex(),
                     "row": row, "col": col}  # fmt: skip
    slip = dice.below(100)
    if slip < 15:
        _beside_a_report(content, dice)
    text = written(content, dice)
    if 30 <= slip < 50:  # spaces around a text are not sent with it
        text += " " * dice.pick((1, 192 - min(len(text), 191), 192, 1024 - len(text)))
    return _source(miswritten(text, dice) if 15 <= slip < 30 else text)


def _output(made: Collection, dice: Dice) -> tuple[int, int]:
    """Return an output cell, often one at the edge, or a cell just outside."""
    table = made.table
    row = dice.pick(table.output_rows)
    last = made.grid.cells - 1
    reach = table.margin(row)
    col = dice.pick((-reach, last + reach, dice.between(-reach, last + reach)))
    if dice.chance(20):
        return dice.pick(((row, -reach - 1), (row, last + reach + 1), (-table.radius - 1, col),
                          (last + table.radius + 1, col), (row + 1, col)))  # fmt: skip
    return row, col


def _beside_a_report(content: Json, dice: Dice) -> None:
    field = dice.pick(sorted(content))
    if dice.chance(10):
        del content[field]
    elif field in ("row", "col"):
        limit = 1 << 20
        content[field] = dice.pick((limit, -limit, limit + 1, -limit - 1, 1 << 53, None, True, "1"))
    else:
        text = content[field]
        content[field] = dice.pick((
            text[1:], f"{text}0", text.upper(), f"g{text[1:]}", f"{text[:-1]}\n", f" {text}", "",
            f"{text[:-1]}\u0660", f"{text[:-1]}\uff11", None, 5, [text], text[:-1] + "F",
        ))  # fmt: skip


def _cell(dice: Dice) -> Json:
    cells = dice.pick((1, 2, 3, 5, 15, 17, 64, 4096, dice.between(1, 4096)))
    grid = a_grid(dice, cells)
    # Squares a few units wide show how a position is rounded.
    if dice.chance(30):
        grid["height_e7"] = min(grid["height_e7"], 2 * cells + dice.below(9))
        grid["width_e7"] = min(grid["width_e7"], 2 * cells + dice.below(9))
    at: list[Any] = [_near(dice, grid["south_e7"], grid["height_e7"], cells),
                     _near(dice, grid["west_e7"], grid["width_e7"], cells)]  # fmt: skip
    if grid["kind"] == "geographic":
        at[0] = max(-90.0, min(at[0], 90.0))
        opposite = (grid["west_e7"] + (grid["width_e7"] + TURN) / 2) / UNIT
        at[1] = dice.pick((at[1], at[1], at[1], at[1] - 360, at[1] + 360, _ulps(opposite, dice)))
        at[1] = at[1] if -360 <= at[1] <= 360 else at[1] - math.copysign(360, at[1])
    if dice.chance(20):
        at[dice.below(2)] = _odd_number(dice)
    if dice.chance(6):
        field = dice.pick(sorted(grid))
        grid[field] = dice.pick((0, -1, 1, 2 * cells - 1, 4097, 18 * 10**8 + 1, 10**15 + 1, "x"))
    return {"grid": grid, "at": at}


def _near(dice: Dice, corner: int, side: int, cells: int) -> float:
    """Return a coordinate at an edge of a cell, where rounding turns, or anywhere near."""
    edge = corner + -(-dice.between(0, cells) * side // cells)
    units = dice.pick((
        edge, edge - 0.5, edge + 0.5, edge + dice.between(-3, 3), corner + dice.below(side),
        corner - 1, corner + side + 1, corner + dice.between(-side, 2 * side),
    ))  # fmt: skip
    return _ulps(units / UNIT, dice)


def _ulps(value: float, dice: Dice) -> float:
    for _ in range(dice.pick((0, 0, 1, 1, 2))):
        value = math.nextafter(value, math.inf if dice.chance(50) else -math.inf)
    return value


def _odd_number(dice: Dice) -> Any:
    return dice.pick((
        "NaN", "Infinity", "-Infinity", -0.0, 0, 5e-324, -5e-324, 1.7976931348623157e308, -1e300,
        90, -90, 90.00000000000001, -90.00000000000001, 360, -360, 360.00000000000006, 180, -180,
        179.99999995, 4e8, -4e8, 400000000.00000006, 1e15, 4.5e15, 9007199254740993.0, 0.1,
        0.00000005, 0.000000049999999999999996, -0.00000005, 1e-7, "1", "",
    ))  # fmt: skip


def _draw(dice: Dice) -> Json:
    document = dice.pick(good_documents())
    made = _table(document)
    last = made.grid.cells - 1
    cell: list[Any] = [dice.pick((0, last, dice.between(0, last))) for _ in range(2)]
    if dice.chance(10):
        cell[dice.below(2)] = dice.pick((-1, last + 1, 0.5, last + 0.5, 1 << 32, -(1 << 32), "0"))
    total = made.table.total_weight
    bits = (total - 1).bit_length()
    u = dice.pick((dice.pick(_borders(document)) + dice.between(-1, 1), dice.below(total)))
    groups = [min(max(u, 0), (1 << bits) - 1)]
    while total < 1 << bits and dice.chance(25):  # integers that are thrown away come first
        groups.insert(0, dice.pick((total, (1 << bits) - 1, dice.between(total, (1 << bits) - 1))))
    data = b"".join(_word(u, total, dice) for u in groups)
    if dice.chance(10):
        data = data[: dice.below(len(data))]
    elif dice.chance(20):
        data += dice.raw(dice.between(1, 8))
    if dice.chance(3):
        document = document.replace('"max_reports":', '"max_reports":0', 1)
    return {"document": document, "cell": cell, "entropy": data.hex()}


@cache
def _borders(document: str) -> list[int]:
    """Return the integers at which a part, an orbit or an image of it begins."""
    table = _table(document).table
    parts = Parts(table)
    borders = [0, table.total_weight]
    borders += [k * table.base_weight for k in range(0, table.output_size + 1)]
    start = parts.low_end
    for x, y, excess in [*parts.high.orbits, *parts.mixed.orbits]:
        borders += [start + k * excess for k in range(orbit_size(x, y) + 1)]
        start += orbit_size(x, y) * excess
    return borders


@cache
def _table(document: str) -> Collection:
    return Collection.from_json(document)


def _bound(dice: Dice) -> Json:
    most = 2 * 10**7
    return {"micro_epsilon": dice.pick((
        dice.between(1, most), dice.between(1, most), dice.between(1, 1000), 1, most, most - 1,
        0, -1, most + 1, (1 << 53) - 1,
    ))}  # fmt: skip


def _label(dice: Dice) -> Json:
    return {"text": a_name(dice, 200, visible=50)}


def _event(dice: Dice) -> Json:
    digest = dice.raw(32).hex()
    # No digest is shorter, but a name must depend on where the digest ends.
    digest = dice.pick((digest, digest, digest[: dice.between(1, 63)], digest[:10], digest[:9]))
    text = dice.pick((
        f"visit {dice.below(1000)}", f"window {dice.between(1, MAX_WINDOWS)}", str(dice.below(10)),
        a_name(dice, 200, visible=50), dice.raw(4).hex(), f" {digest}", "e\u0301", "\u00e9",
        "\u212b", "line\r\nbreak", "\x00", "\ufeffvisit", "\U0001f6b2", f"{len(digest)}:",
    ))  # fmt: skip
    request = {"key": dice.raw(32).hex(), "digest": digest, "event": text}
    if dice.chance(15):
        request |= dice.pick((
            {"event": ""}, {"event": ""}, {"digest": ""}, {"key": dice.raw(31).hex()},
            {"key": dice.raw(33).hex()}, {"key": dice.raw(64).hex()}, {"key": ""},
        ))  # fmt: skip
    return request


MAKERS: dict[str, tuple[int, Callable[[Dice], Json]]] = {
    "collection": (36, _collection),
    "series": (14, _series),
    "window": (4, _window),
    "windows": (7, _windows),
    "report": (12, _report),
    "body": (4, _body),
    "cell": (20, _cell),
    "draw": (15, _draw),
    "bound": (2, _bound),
    "label": (9, _label),
    "event": (4, _event),
}
