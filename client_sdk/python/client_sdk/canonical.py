"""Canonical JSON: one text for one document, in every language.

The documents hold objects, arrays, strings and whole numbers below 2**53 and nothing else, so
the canonical form of RFC 8785 is short to state: keys sorted, no white space, UTF-8, and only
the escapes that JSON demands. A number with a fraction, an exponent, NaN, a repeated key or
a lone surrogate is refused on reading, because two parsers might not read it alike.
"""

import hashlib
import json
from typing import Any, NoReturn

from client_sdk import visible_text
from client_sdk.errors import CollectionError, ParameterError
from client_sdk.validate import shown

LONGEST = 1 << 26  # 64 MiB of collection document: a million weights are 16 MiB
LONGEST_JOINED = 1 << 22  # what a Device reads: verified in a second, and kept in its ledger
LONGEST_DIGEST = 64
LONGEST_NUMBER = 17  # characters of -(2**53 - 1)


def dumps(document: dict[str, Any]) -> str:
    """Return the canonical text."""
    # Python sorts by code points, RFC 8785 by UTF-16 units: the same, as all names are ASCII.
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def check_expected(digest: object) -> None:
    """Refuse an expected id that is not a text, or too long for a message to repeat."""
    if digest is not None and (not isinstance(digest, str) or len(digest) > LONGEST_DIGEST):
        raise ParameterError(f"digest must be a text of 64 hexadecimal digits, got {shown(digest)}")


def digest(text: str) -> str:
    """Return the SHA-256 of a canonical text as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def loads(text: object, what: str, longest: int) -> dict[str, Any]:
    """Parse a document of at most ``longest`` code points strictly; ``what`` names it in errors."""
    if not isinstance(text, str):
        raise CollectionError(f"{what} must be text, got {type(text).__name__}")
    if len(text) > longest:
        raise CollectionError(f"{what} must be at most {longest} characters, got {len(text)}")
    try:
        document = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_short_integer,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, CollectionError):
            raise
        # Python guards its stack. What is nested more than 3 deep and still read holds a value
        # that no field takes, so depth needs no rule of its own here.
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise CollectionError(f"{what} is not valid JSON: {reason}") from None
    if not isinstance(document, dict):
        raise CollectionError(f"{what} must be a JSON object")
    return document


def fields(document: dict[str, Any], names: set[str], what: str) -> None:
    """Check that a document has these fields and no others."""
    if missing := sorted(names - document.keys()):
        raise CollectionError(f"{what} lacks the field {missing[0]!r}")
    if unknown := sorted(document.keys() - names):
        raise CollectionError(f"{what} has the unknown field {shown(unknown[0])}")


def integer(value: object, field: str, low: int, high: int) -> int:
    """Return a whole number in [low, high] of a parsed document."""
    if type(value) is int and low <= value <= high:  # type(): True is an int, too
        return value
    raise CollectionError(
        f"{field} must be a whole number from {low} to {high}, got {shown(value)}"
    )


def label(value: object, field: str, longest: int) -> str:
    """Return a text without invisible characters, 1 to ``longest`` code points."""
    rule = f"{field} must be a text of 1 to {longest} visible characters"
    if not isinstance(value, str):
        raise CollectionError(f"{rule}, got {shown(value)}")
    if not 1 <= len(value) <= longest:
        raise CollectionError(f"{rule}, got {len(value)}")
    if fault := visible_text.fault(value):
        raise CollectionError(f"{rule}: {fault}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for name, value in pairs:
        if name in keys:
            raise CollectionError(f"the field {shown(name)} appears twice in one JSON object")
        keys[name] = value
    return keys


def _short_integer(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise CollectionError(f"numbers must lie within 2^53, got {text[:30]}...")
    return int(text)


def _refuse_number(text: str) -> NoReturn:
    raise CollectionError(f"numbers must be whole and written without exponent, got {text[:30]}")
