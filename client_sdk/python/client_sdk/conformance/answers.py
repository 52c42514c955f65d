"""What this client answers to one request.

A new operation is one function and its entry in :data:`OPERATIONS`. Its parameters are the fields
of the request; those without default must be there, and no others may. It returns the fields of
the answer, or raises: a :class:`client_sdk.errors.ClientError` refuses what the request holds, a
:class:`RequestError` the request itself. Both are ``"ok": false``.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any, TextIO

from client_sdk import canonical
from client_sdk.collection import Collection
from client_sdk.errors import ClientError
from client_sdk.events import event_name
from client_sdk.exact import exp_below
from client_sdk.grid import Grid
from client_sdk.report import Report
from client_sdk.response import ResponseTable
from client_sdk.sampling import Sampler
from client_sdk.series import Series
from client_sdk.testing import FixedEntropy
from client_sdk.validate import MAX_EPSILON, MICRO, shown

Json = dict[str, Any]

LONGEST_LABEL = 200
_NOT_FINITE = {word: float(word) for word in ("NaN", "Infinity", "-Infinity")}
_GRID_FIELDS = ("kind", "south_e7", "west_e7", "height_e7", "width_e7", "cells")
# Which windows are drawn does not depend on what they collect: one cell will do.
_ANY_TABLE = ResponseTable("any", 1.0, 1, 1, ((1,),))
_ANY_COLLECTION = Collection("window", Grid("plane", 0, 0, 2, 2, 1), _ANY_TABLE, MICRO)


class RequestError(ValueError):
    """A request that nobody can answer: not a JSON object, an unknown operation, a wrong field."""


def collection(text: object, digest: object = None, max_micro_epsilon: object = None) -> Json:
    """Read and verify a collection document, against what a device expects of it."""
    made = Collection.from_json(_text("text", text), *_expected(digest, max_micro_epsilon))
    return {"digest": made.digest, "canonical": made.to_json()}


def series(text: object, digest: object = None, max_micro_epsilon: object = None) -> Json:
    """Read and verify a series document, against what a device expects of it."""
    made = Series.from_json(_text("text", text), *_expected(digest, max_micro_epsilon))
    return {"digest": made.digest, "canonical": made.to_json()}


def window(text: object, window: object) -> Json:
    """Return the collection of one window of a series, counted from 1."""
    made = _verified_series(_text("text", text)).collection(window)  # type: ignore[arg-type]
    return {"digest": made.digest, "canonical": made.to_json()}


def windows(windows: Any, answers: Any, entropy: object) -> Json:
    """Draw from given bytes which windows a device answers; null where they do not suffice."""
    asked = Series("any", _ANY_COLLECTION, 0, 1, windows, answers)
    asked.verify()  # the numbers come from the request
    source = FixedEntropy(_bytes("entropy", entropy))
    try:
        chosen = asked.choose(source)
    except EOFError:
        return {"windows": None, "bytes": source.used}
    return {"windows": chosen, "bytes": source.used}


def report(text: object, document: object = None) -> Json:
    """Read a report, and hold it to a collection where the request has one."""
    read = Report.from_json(_text("text", text))
    if document is not None:
        read.check(_verified(_text("document", document)))
    return {"canonical": read.to_json()}


def body(text: object) -> Json:
    """Read a report and return what is sent."""
    return {"body": Report.from_json(_text("text", text)).to_body()}


def cell(grid: object, at: object) -> Json:
    """Find the cell of a position [latitude, longitude] or [y, x]."""
    if not isinstance(grid, dict) or set(grid) != set(_GRID_FIELDS):
        raise RequestError(f"grid must be an object of {', '.join(_GRID_FIELDS)}")
    square = Grid(*(grid[field] for field in _GRID_FIELDS))
    y, x = (_double(number) for number in _pair("at", at))
    return {"cell": list(square.cell(y, x)), "inside": square.contains(y, x)}


def draw(document: object, cell: object, entropy: object) -> Json:
    """Draw a report from given bytes; output null where they do not suffice."""
    sampler = _sampler(_text("document", document))
    source = FixedEntropy(_bytes("entropy", entropy))
    row, col = _pair("cell", cell)
    try:
        output = list(sampler.draw(row, col, source))
    except EOFError:
        return {"output": None, "bytes": source.used}
    return {"output": output, "bytes": source.used}


def bound(micro_epsilon: object) -> Json:
    """Return S, the whole number with S / 2^192 <= e^epsilon."""
    return {"bound": f"{exp_below(_epsilon('micro_epsilon', micro_epsilon)):x}"}


def label(text: object) -> Json:
    """Tell whether a text can be the name of a collection."""
    canonical.label(_text("text", text), "text", LONGEST_LABEL)
    return {}


def event(key: object, digest: object, event: object) -> Json:
    """Return the name under which a ledger holds an event."""
    ascii_digest = _text("digest", digest)
    if not ascii_digest.isascii():  # so nobody asks in which unit its length is counted
        raise RequestError("digest must be ASCII")
    return {"name": event_name(_bytes("key", key), ascii_digest, _text("event", event)).hex()}


OPERATIONS: dict[str, Callable[..., Json]] = {
    "collection": collection,
    "series": series,
    "window": window,
    "windows": windows,
    "report": report,
    "body": body,
    "cell": cell,
    "draw": draw,
    "bound": bound,
    "label": label,
    "event": event,
}


def serve(lines: Iterable[bytes], out: TextIO) -> None:
    """Answer every line with one line, at once, so that a program can wait for each."""
    for line in lines:
        out.write(f"{json.dumps(answer(line))}\n")
        out.flush()


def answer(line: str | bytes) -> Json:
    """Return the answer to one request, whatever the line holds.

    >>> answer('{"op": "label", "text": "noon in town", "id": 7}')
    {'id': 7, 'ok': True}
    >>> answer('{"op": "bound", "micro_epsilon": 0}')["ok"]
    False
    """
    echoed: Json = {}
    try:
        request = _parsed(line)
        if "id" in request:
            echoed["id"] = _finite(request.pop("id"))
        return {**echoed, "ok": True, **_called(request)}
    except (ClientError, RequestError) as error:
        return {**echoed, "ok": False, "error": str(error)}
    except Exception as error:  # neither verdict: a fault of this client agrees with nothing
        return {**echoed, "ok": None, "error": f"internal error: {error!r}"}


def _parsed(line: str | bytes) -> Json:
    try:
        text = line.decode("utf-8") if isinstance(line, bytes) else line
        request = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the request is not valid JSON: {error}") from None
    if not isinstance(request, dict):
        raise RequestError("the request must be a JSON object")
    return request


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise RequestError("the request repeats a field")
    return fields


def _finite(value: Any) -> Any:
    """Return what can be written back as JSON: 1e400 is read as an infinite number."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise RequestError("id must hold finite numbers") from None
    return value


def _refuse_constant(word: str) -> None:
    raise RequestError(f'{word} is not JSON: write the text "{word}"')


def _called(request: Json) -> Json:
    """Run the operation of a request with its other fields as arguments."""
    name = request.pop("op", None)
    if not isinstance(name, str) or name not in OPERATIONS:
        raise RequestError(f"op must be one of {', '.join(OPERATIONS)}, got {shown(name)}")
    if "hex" in request:
        if "text" in request:
            raise RequestError("a request has text or hex, not both")
        request["text"] = _bytes("hex", request.pop("hex"))
    operation = OPERATIONS[name]
    fields = inspect.signature(operation).parameters
    if unknown := sorted(request.keys() - fields.keys()):
        raise RequestError(f"a request of {name} has no field {shown(unknown[0])}")
    for field, parameter in fields.items():
        if parameter.default is parameter.empty and field not in request:
            raise RequestError(f"a request of {name} must have the field {field!r}")
    return operation(**request)


def _text(field: str, value: object) -> str:
    """Return a text, decoded strictly where it came as bytes."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise RequestError(f"{field} is not UTF-8: {error}") from None
    if not isinstance(value, str):
        raise RequestError(f"{field} must be a text, got {shown(value)}")
    return value


def _bytes(field: str, value: object) -> bytes:
    # fromhex() alone takes white space, too.
    if not isinstance(value, str) or not re.fullmatch("([0-9a-fA-F]{2})*", value):
        raise RequestError(f"{field} must be bytes in hexadecimal")
    return bytes.fromhex(value)


def _pair(field: str, value: object) -> list[Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise RequestError(f"{field} must be a list of two numbers")
    return value


def _double(number: Any) -> Any:
    """Return what one of the three texts stands for; other texts are left to the client."""
    return _NOT_FINITE.get(number, number) if isinstance(number, str) else number


def _epsilon(field: str, micro: object) -> Fraction:
    return Fraction(canonical.integer(micro, field, 1, MAX_EPSILON * MICRO), MICRO)


def _expected(digest: object, max_micro_epsilon: object) -> tuple[str | None, Fraction | None]:
    """Return what a device expects of a document: its digest, and its largest epsilon."""
    return (
        None if digest is None else _text("digest", digest),
        None if max_micro_epsilon is None else _epsilon("max_micro_epsilon", max_micro_epsilon),
    )


@lru_cache(maxsize=64)
def _verified_series(text: str) -> Series:
    return Series.from_json(text)


@lru_cache(maxsize=64)
def _verified(text: str) -> Collection:
    return Collection.from_json(text)


@lru_cache(maxsize=64)
def _sampler(text: str) -> Sampler:
    return Sampler(_verified(text).table)
