"""Collection documents that are good, and documents one step beside a good one."""

import copy
import json
import warnings
from fractions import Fraction
from functools import cache
from typing import Any

from client_sdk import visible_text
from client_sdk.canonical import digest, dumps
from client_sdk.collection import SCHEMA, Collection, DesignWarning
from client_sdk.conformance.dice import Dice
from client_sdk.exact import BITS, exp_below
from client_sdk.grid import Grid
from client_sdk.response import half_widths, orbit_size
from client_sdk.validate import MICRO

Json = dict[str, Any]

LAST_WEIGHT = (1 << 53) - 1


@cache
def good_documents() -> list[str]:
    """Return canonical documents of all mechanisms, small enough to verify in a moment."""
    chicago = Grid.from_bounds(41.64, -87.90, 0.36, 2)
    fiji = Grid.from_bounds(-18.05, 179.75, 0.5, 6)  # across the antimeridian
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DesignWarning)
        made = [
            Collection.create("worked example", chicago, Fraction(7, 5)),
            Collection.create("across the antimeridian", fiji, 3, max_reports=7),
            Collection.create('Zürich / 正午 \U0001f6b2 "quoted" \\', chicago, 1, radius=3),
            Collection.create("randomised response", Grid.plane(-4, -4, 9, 3), Fraction(7, 2)),
            Collection.create("no shrinking", Grid.plane(0, 0, 1, 4), 2, "dam-ns"),
            Collection.create("exponential", Grid.plane(0, 0, 1, 5), 2, "huem", radius=3),
            Collection.create("a real radius", Grid.plane(0, 0, 1, 4), 2, "disk", squared_radius=5),
            Collection.create("one cell", Grid.plane(0, 0, 1, 1), 20),
            Collection.create("hardly anything", Grid.plane(0, 0, 1, 3), Fraction(1, MICRO)),
        ]
    texts = [collection.to_json() for collection in made]
    hand_made = ([[1]], [[8], [8, 8]], [[5], [9, 4], [7, 9]], [[4], [4, 4], [9], [10]])
    for cells, (base, octant) in enumerate(zip((1, 8, 4, 4), hand_made, strict=True), 1):
        plane = plane_grid(cells)
        texts.append(dumps(document("by hand", plane, MICRO, base, octant)))
    return texts


def plane_grid(cells: int) -> Json:
    """Return the grid object of the unit square."""
    side = 10**7
    return {"kind": "plane", "south_e7": 0, "west_e7": 0, "height_e7": side, "width_e7": side,
            "cells": cells}  # fmt: skip


def document(name: str, grid: Json, micro: int, base: int, octant: list[list[int]]) -> Json:
    """Return a document whose sizes follow from its weights, whether or not it is private."""
    size, total = _sums(grid["cells"], base, octant)
    return {
        "schema": SCHEMA, "name": name, "grid": grid, "mechanism": "hand-made",
        "micro_epsilon": micro, "max_reports": 1, "base_weight": base, "output_size": size,
        "total_weight": total, "weights": octant,
    }  # fmt: skip


def a_document(dice: Dice) -> Json:
    """Return the document of a mechanism, or one that is made of any weights."""
    if dice.chance(60):
        made: Json = json.loads(dice.pick(good_documents()))
    else:
        made = _of_any_weights(dice)
    for change in (_another_name, _another_limit, _a_larger_epsilon, _another_place):
        if dice.chance(25):
            change(made, dice)
    return made


def beside(made: Json, dice: Dice) -> Json:
    """Return a document with one change of what it says; most must be refused."""
    changed = copy.deepcopy(made)
    dice.pick(_CHANGES)(changed, dice)
    return changed


def digest_of(made: Json) -> str:
    """Return the digest that a document has if it is accepted."""
    return digest(dumps(made))


def a_name(dice: Dice, longest: int, visible: int = 80) -> str:
    """Return a name of visible characters in so many of a hundred cases, of any in the others."""
    ranges = visible_text.ranges()
    length = dice.pick((1, 2, 3, 5, 8, longest - 1, longest))
    characters = [chr(dice.pick(dice.pick(ranges))) for _ in range(min(length, 8))]
    if length > 8:
        characters = (characters * longest)[:length]
    # In place of spaces, whose places have rules of their own.
    text = "".join(characters).replace(" ", "_")
    if dice.chance(30) and len(text) > 2:
        at = dice.between(1, len(text) - 2)
        text = f"{text[:at]} {text[at + 1 :]}"
    return text if dice.chance(visible) else _not_quite_visible(text, dice)


def _not_quite_visible(text: str, dice: Dice) -> str:
    """Put a character beside the edge of a range, an odd space or too many into a text."""
    ranges = visible_text.ranges()
    edge = dice.pick((dice.pick(ranges)[0] - 1, dice.pick(ranges)[1] + 1))
    piece = dice.pick((
        chr(edge), chr(edge), chr(edge), "\u00a0", "\u00ad", "\u200b", "\u202e", "\u3000", "\u3164",
        "\ufe0f", "\ufeff", "\ufffd", "\ue000", "\U000e0041", "\U000e0100", "\U0010ffff", "\x00",
        "\n", "\x7f", "  ", " ", "\u0301", "\U0001fae0", "x" * 200,
    ))  # fmt: skip
    at = dice.pick((0, len(text), dice.below(len(text) + 1)))
    return text[:at] + piece + text[at:]


def _sums(cells: int, base: int, octant: list[list[int]]) -> tuple[int, int]:
    """Return output size and total weight, also of shapes that are not disks."""
    if any(len(row) > len(octant) + 2 for row in octant):
        return 1, 1  # no half widths are defined so far out
    widths = half_widths(tuple(tuple(row) for row in octant))
    size = cells * (cells + 2 * widths[0]) + 2 * sum(cells + 2 * width for width in widths[1:])
    excess = sum(
        (weight - base) * orbit_size(x, y)
        for x, row in enumerate(octant)
        for y, weight in enumerate(row)
    )
    return size, size * base + excess


def _of_any_weights(dice: Dice) -> Json:
    """Return weights between base and bound, often at them, in a shape that narrows, mostly."""
    cells = dice.between(1, 6)
    micro = dice.pick((1, 2, MICRO, 2 * 10**7, dice.between(1, 2 * 10**7), dice.between(1, MICRO)))
    base = 1 << dice.pick((0, 1, 3, dice.below(30), dice.below(40)))
    most = base * exp_below(Fraction(micro, MICRO)) >> BITS
    octant = [[_weight(base, most, dice) for _ in range(length)] for length in _shape(dice)]
    return document("any weights", plane_grid(cells), micro, base, octant)


def _shape(dice: Dice) -> list[int]:
    """Return how long the rows of an octant are: a triangle, then rows that get no longer."""
    rows = list(range(1, dice.between(1, 4) + 1))
    while dice.chance(60) and len(rows) < 8:
        rows.append(dice.between(1, rows[-1]))
    if dice.chance(10):  # a gap, a widening or a row beyond its diagonal
        rows[dice.below(len(rows))] += dice.pick((-1, 1))
    return [max(length, 1) for length in rows]


def _weight(base: int, most: int, dice: Dice) -> int:
    if dice.chance(2):
        return dice.pick((most + 1, max(base - 1, 1)))
    return dice.pick((base, most, dice.between(base, most)))


# Changes that a good document survives, mostly


def _another_name(made: Json, dice: Dice) -> None:
    field, longest = dice.pick((("name", 200), ("mechanism", 60)))
    made[field] = a_name(dice, longest, visible=95)


def _another_limit(made: Json, dice: Dice) -> None:
    made["max_reports"] = dice.pick((1, 2, 999_999, 10**6, dice.between(1, 10**6)))


def _a_larger_epsilon(made: Json, dice: Dice) -> None:
    micro = made["micro_epsilon"]
    made["micro_epsilon"] = dice.pick((micro, 2 * 10**7, dice.between(micro, 2 * 10**7)))


def _another_place(made: Json, dice: Dice) -> None:
    made["grid"] = a_grid(dice, made["grid"]["cells"])


def a_grid(dice: Dice, cells: int) -> Json:
    """Return a grid object within the limits of its kind, often at them."""
    least = 2 * cells
    if dice.chance(50):
        edge = 10**15
        most = 2 * 10**15
        south = dice.pick(
            (-edge, edge, 0, dice.between(-edge, edge), dice.between(-(10**9), 10**9))
        )
        west = dice.pick((-edge, edge, 0, dice.between(-edge, edge), dice.between(-(10**9), 10**9)))
        height = _side(least, most, dice)
        width = _side(least, most, dice)
        kind = "plane"
    else:
        edge = 85 * 10**7
        south = dice.pick((-edge, 0, edge - least, dice.between(-edge, edge - least)))
        west = dice.pick(
            (-18 * 10**8, 18 * 10**8 - 1, 0, dice.between(-18 * 10**8, 18 * 10**8 - 1))
        )
        height = _side(least, edge - south, dice)
        width = _side(least, 18 * 10**8, dice)
        kind = "geographic"
    return {"kind": kind, "south_e7": south, "west_e7": west, "height_e7": height,
            "width_e7": width, "cells": cells}  # fmt: skip


def _side(least: int, most: int, dice: Dice) -> int:
    """Return a side of two units a cell, of everything, or between."""
    return dice.pick((least, most, dice.between(least, most), min(least + dice.below(20), most)))


# Changes that a good document does not survive, mostly


def _numbers(made: Json) -> list[tuple[Any, Any]]:
    """Return where the numbers of a document stand: container and key."""
    places: list[tuple[Any, Any]] = [(made, f) for f in made if isinstance(made[f], int)]
    places += [(made["grid"], f) for f in made["grid"] if f != "kind"]
    places += [(row, y) for row in made["weights"] for y in range(len(row))]
    return places


def _one_off(made: Json, dice: Dice) -> None:
    place, key = dice.pick(_numbers(made))
    place[key] += dice.pick((-1, 1))


def _two_swapped(made: Json, dice: Dice) -> None:
    (a, i), (b, j) = (dice.pick(_numbers(made)) for _ in range(2))
    a[i], b[j] = b[j], a[i]


def _summed_up_again(made: Json, dice: Dice) -> None:
    """Change a weight, the base or the shape and let the sums follow: only the bound can tell."""
    octant = made["weights"]
    base = made["base_weight"]
    change = dice.below(4)
    row = dice.pick(octant)
    if change == 0:
        row[dice.below(len(row))] = dice.pick((base, max(base - 1, 1), 2 * base, row[0] + 1))
    elif change == 1:
        made["base_weight"] = dice.pick((max(base // 2, 1), 2 * base, 3 * base, base + 1))
    elif change == 2:
        row.append(row[-1])
    elif len(row) > 1:
        row.pop()
    else:
        octant.append([base] * dice.between(1, len(octant) + 1))
    size, total = _sums(made["grid"]["cells"], made["base_weight"], octant)
    made["output_size"] = size
    made["total_weight"] = total


def _at_the_bound(made: Json, dice: Dice) -> None:
    """Put the largest weight that epsilon allows, or one more, and sum up again."""
    most = made["base_weight"] * exp_below(Fraction(made["micro_epsilon"], MICRO)) >> BITS
    row = dice.pick(made["weights"])
    row[dice.below(len(row))] = most + dice.below(2)
    made["output_size"], made["total_weight"] = _sums(
        made["grid"]["cells"], made["base_weight"], made["weights"]
    )


def _at_the_bound_of_53_bits(made: Json, dice: Dice) -> None:
    """Put the bound of the largest weight, or one more, where a double no longer tells them."""
    micro = dice.between(1, 693_146)
    base = 1 << 52
    most = base * exp_below(Fraction(micro, MICRO)) >> BITS
    _of_one_weight(made, 1, base, most + dice.below(2))
    made["micro_epsilon"] = micro


def _a_total_near_the_limit(made: Json, dice: Dice) -> None:
    """Take one weight and a base, so that the total is 2^53 and a little less or more."""
    cells = dice.between(1, 2)
    base = 1 << dice.pick((10, 40, 50, 51, 52))
    weight = (1 << 53) - (cells * cells - 1) * base + dice.pick((-2, -1, 0, 1))
    _of_one_weight(made, cells, base, max(min(weight, LAST_WEIGHT), 1))


def _a_total_that_wraps(made: Json, dice: Dice) -> None:
    """Take 64 x 64 cells, so that the total is 2^64 and a little more, and give what is over."""
    base = 1 << 52
    _of_one_weight(made, 64, base, base + dice.pick((1, 5, dice.between(1, base - 1))))
    made["total_weight"] %= 1 << 64


def _of_one_weight(made: Json, cells: int, base: int, weight: int) -> None:
    made["grid"] = plane_grid(cells)
    made["micro_epsilon"] = 2 * 10**7
    made["base_weight"], made["weights"] = base, [[weight]]
    made["output_size"], made["total_weight"] = _sums(cells, base, made["weights"])


def _a_field_less(made: Json, dice: Dice) -> None:
    place = dice.pick((made, made["grid"]))
    del place[dice.pick(sorted(place))]


def _a_field_more(made: Json, dice: Dice) -> None:
    dice.pick((made, made["grid"]))[dice.pick(("seed", "", "Schema", "cells ", "name"))] = 1


def _an_odd_value(made: Json, dice: Dice) -> None:
    place = dice.pick((made, made["grid"]))
    value: Any = dice.pick((None, True, False, 0, -1, "", "1", [], {}, [[1]], "plane", 1 << 53))
    place[dice.pick(sorted(place))] = value


def _a_name_not_quite_visible(made: Json, dice: Dice) -> None:
    field, longest = dice.pick((("name", 200), ("mechanism", 60)))
    made[field] = a_name(dice, longest, visible=0)


def _beyond_a_limit(made: Json, dice: Dice) -> None:
    edge = 85 * 10**7
    place, field, value = dice.pick((
        (made, "micro_epsilon", dice.pick((0, 2 * 10**7 + 1))),
        (made, "max_reports", dice.pick((0, 10**6 + 1))),
        (made["grid"], "cells", dice.pick((0, 4097))),
        (made["grid"], "south_e7", dice.pick((-edge - 1, edge, 10**15 + 1, -(10**15) - 1))),
        (made["grid"], "west_e7", dice.pick((-18 * 10**8 - 1, 18 * 10**8, 10**15 + 1))),
        (made["grid"], "height_e7", dice.pick((0, 1, 3, 17 * 10**8 + 1, 2 * 10**15 + 1))),
        (made["grid"], "width_e7", dice.pick((0, 1, 3, 18 * 10**8 + 1, 2 * 10**15 + 1))),
        (made["grid"], "kind", dice.pick(("Plane", "sphere", "geographic", "plane"))),
        (made, "schema", dice.pick(("ldpspatial/collection/2", "ldpspatial/collection/01"))),
    ))  # fmt: skip
    place[field] = value


_CHANGES = (
    _one_off, _one_off, _two_swapped, _summed_up_again, _summed_up_again, _at_the_bound,
    _at_the_bound, _at_the_bound_of_53_bits, _a_total_near_the_limit, _a_total_that_wraps,
    _a_field_less, _a_field_more, _an_odd_value, _a_name_not_quite_visible, _beyond_a_limit,
    _another_place,
)  # fmt: skip
