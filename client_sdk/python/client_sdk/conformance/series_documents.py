"""Series documents that are good, and series documents one step beside a good one."""

import copy
import json
from functools import cache
from typing import Any

from client_sdk import collection
from client_sdk.canonical import dumps
from client_sdk.conformance.dice import Dice
from client_sdk.conformance.documents import a_document, a_name, beside, good_documents
from client_sdk.series import (
    LAST_SECOND,
    LONGEST_NAME,
    MAX_WINDOW_SECONDS,
    MAX_WINDOWS,
    SCHEMA,
)

Json = dict[str, Any]

OWN_OF_A_WINDOW = ("schema", "name", "max_reports")
NUMBERS = {
    "first_start": (0, LAST_SECOND),
    "window_seconds": (1, MAX_WINDOW_SECONDS),
    "windows": (1, MAX_WINDOWS),
    "answers": (1, MAX_WINDOWS),
}


@cache
def good_series() -> list[str]:
    """Return canonical series of all good collection documents, with their own numbers."""
    return [
        dumps(_series(json.loads(text), f"series {number}", Dice(f"series {number}")))
        for number, text in enumerate(good_documents())
    ]


def a_series(dice: Dice) -> Json:
    """Return a series of any good collection, often at the limits of its numbers."""
    return _series(a_document(dice), a_name(dice, LONGEST_NAME, visible=97), dice)


def beside_series(made: Json, dice: Dice) -> Json:
    """Return a series with one change of what it says; most must be refused."""
    changed = copy.deepcopy(made)
    dice.pick(_CHANGES)(changed, dice)
    return changed


def a_number_of_windows(dice: Dice) -> int:
    """Return how many windows a series has: few, powers of two and their neighbours, many."""
    return dice.pick((
        1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 28, 365, 1 << 16, (1 << 16) + 1, MAX_WINDOWS - 1,
        MAX_WINDOWS, dice.between(1, 40), dice.between(1, MAX_WINDOWS),
    ))  # fmt: skip


def _series(document: Json, name: str, dice: Dice) -> Json:
    windows = a_number_of_windows(dice)
    return {
        "schema": SCHEMA,
        "name": name,
        "collection": _shared(document),
        "first_start": dice.pick((0, 1_800_000_000, LAST_SECOND, dice.between(0, LAST_SECOND))),
        "window_seconds": dice.pick((1, 3600, 86_400, MAX_WINDOW_SECONDS)),
        "windows": windows,
        "answers": dice.pick((1, windows, dice.between(1, windows))),
    }


def _shared(document: Json) -> Json:
    """Return what the collections of all windows have in common."""
    return {field: document[field] for field in document if field not in OWN_OF_A_WINDOW}


# Changes that a good series does not survive, mostly


def _in_the_collection(made: Json, dice: Dice) -> None:
    whole = {**made["collection"], **_of_one_window(dice)}
    made["collection"] = _shared(beside(whole, dice))


def _of_one_window(dice: Dice) -> Json:
    return {"schema": collection.SCHEMA, "name": a_name(dice, 200, visible=100), "max_reports": 1}


def _a_whole_collection(made: Json, dice: Dice) -> None:
    """Put into the collection what only the collection of a window has."""
    more = _of_one_window(dice)
    fields = dice.pick((OWN_OF_A_WINDOW, *((field,) for field in OWN_OF_A_WINDOW)))
    made["collection"] |= {field: more[field] for field in fields}


def _no_collection(made: Json, dice: Dice) -> None:
    body = made["collection"]
    made["collection"] = dice.pick((None, {}, [], [body], dumps(body), "window", 1, True))


def _more_answers_than_windows(made: Json, dice: Dice) -> None:
    windows = made["windows"]
    made["answers"] = dice.pick((windows + 1, windows + 1, 2 * windows + 1, MAX_WINDOWS))


def _numbers_swapped(made: Json, dice: Dice) -> None:
    a = dice.pick(tuple(NUMBERS))
    b = dice.pick(tuple(NUMBERS))
    made[a], made[b] = made[b], made[a]


def _beyond_a_limit(made: Json, dice: Dice) -> None:
    field = dice.pick(tuple(NUMBERS))
    low, high = NUMBERS[field]
    made[field] = dice.pick((low - 1, high + 1, -high, 1 << 53, dice.between(low, high)))


def _a_field_less(made: Json, dice: Dice) -> None:
    place = dice.pick((made, made["collection"]))
    del place[dice.pick(sorted(place))]


def _a_field_more(made: Json, dice: Dice) -> None:
    name = dice.pick(("seed", "", "Schema", "answers ", "windows", "max_reports", "micro_epsilon"))
    dice.pick((made, made["collection"])).setdefault(name, 1)


def _an_odd_value(made: Json, dice: Dice) -> None:
    value: Any = dice.pick((None, True, False, 0, -1, "", "1", [], {}, [[1]], 1 << 53, LAST_SECOND))
    made[dice.pick(sorted(made))] = value


def _another_name(made: Json, dice: Dice) -> None:
    visible, longest = dice.pick(((0, LONGEST_NAME), (100, LONGEST_NAME + 1), (100, 200)))
    made["name"] = a_name(dice, longest, visible)


def _another_schema(made: Json, dice: Dice) -> None:
    made["schema"] = dice.pick(
        ("ldpspatial/series/2", "ldpspatial/series/01", collection.SCHEMA, SCHEMA.upper())
    )


_CHANGES = (
    _in_the_collection, _in_the_collection, _in_the_collection, _a_whole_collection,
    _no_collection, _more_answers_than_windows, _more_answers_than_windows, _numbers_swapped,
    _beyond_a_limit, _beyond_a_limit, _a_field_less, _a_field_more, _an_odd_value, _another_name,
    _another_schema,
)  # fmt: skip
