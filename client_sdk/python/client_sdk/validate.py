"""The rules for parameters, each written once."""

import math
import operator
import os
from collections.abc import Sized
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from client_sdk.errors import ParameterError

MICRO = 10**6  # millionths: of epsilon, in which devices count their budget, and of clients
MIN_EPSILON = Fraction(1, MICRO)
MAX_EPSILON = 20  # e^20 = 4.9e8: beyond it a report is the truth in all but name
MAX_CELLS = 4096
WEIGHT_LIMIT = 1 << 53  # every language's numbers hold a whole number below it exactly


def whole_number(field: str, value: object, low: int, high: int) -> int:
    """Return ``value`` as an int in [low, high]; numpy integers are welcome, floats are not."""
    rule = f"must be a whole number from {low} to {high}"
    if isinstance(value, bool):
        raise ParameterError(f"{field} {rule}, got {value!r}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ParameterError(f"{field} {rule}, got {shown(value)}") from None
    if not low <= number <= high:
        raise ParameterError(f"{field} {rule}, got {shown(number)}")
    return number


def unicode_text(field: str, value: object) -> str:
    """Return ``value`` as a text that is not empty and has a form in UTF-8.

    A plain one: a subclass, such as an Enum of texts, may write itself in another way elsewhere.
    """
    if not isinstance(value, str):
        raise ParameterError(f"{field} must be a text, got {type(value).__name__}")
    try:
        if str.encode(value):
            return str.__str__(value)
    except UnicodeEncodeError:  # SQLite cannot hold it
        raise ParameterError(f"{field} must hold no half of a surrogate pair") from None
    raise ParameterError(f"{field} must not be empty")


def path_text(field: str, kind: str, path: object) -> str:
    """Return a path as text; ``kind`` says in the message what it has to name."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ParameterError(f"{field} must name a {kind}, got {shown(path)}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ParameterError(f"{field} must name a {kind} in the system's characters") from None
    return text


def is_number(value: object) -> bool:
    """Tell whether ``value`` is a real number; text that reads like one and bools are not."""
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def finite_number(field: str, value: object) -> float:
    """Return ``value`` as a finite float."""
    if not is_number(value):
        raise ParameterError(f"{field} must be a number, got {shown(value)}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        raise ParameterError(f"{field} must be finite, got {shown(value)}") from None
    if not math.isfinite(number):
        raise ParameterError(f"{field} must be finite, got {number}")
    return number


def exact_epsilon(epsilon: object) -> Fraction:
    """Return epsilon as an exact rational, never above what the caller can have meant.

    The float 0.7 stands for 7/10 but holds slightly less. Either reading is fair, so the
    smaller one counts: a bound that holds for it holds for both.
    """
    return min(_readings("epsilon", epsilon, MAX_EPSILON))


def written_epsilon(field: str, epsilon: object, most: int = MAX_EPSILON) -> Fraction:
    """Return epsilon as it is written: the float 0.7 is 7/10. For caps and for millionths."""
    return _readings(field, epsilon, most)[1]


def micro_epsilons(epsilon: object) -> int:
    """Return epsilon in millionths; it must be a whole number of them."""
    micro = written_epsilon("epsilon", epsilon) * MICRO
    if micro.denominator != 1:
        raise ParameterError(
            "epsilon must be a whole number of millionths, the unit in which devices count "
            f"their budget, got {epsilon}: take {int(micro) / MICRO}"
        )
    return int(micro)


def shown(value: object) -> str:
    """Return a value for an error message: short, and safe whatever it is."""
    if isinstance(value, Sized) and not isinstance(value, (str, bytes)):
        return f"a {type(value).__name__}"  # whose content may be positions
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return "a huge number"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _readings(field: str, epsilon: object, most: int) -> tuple[Fraction, Fraction]:
    """Return the number that is held and the number that is written, both in range."""
    rule = f"{field} must be a number from 0.000001 to {most}"
    try:
        exact, written = _fractions(epsilon, most)
    except (TypeError, ValueError, ArithmeticError):
        raise ParameterError(f"{rule}, got {shown(epsilon)}") from None
    if not MIN_EPSILON <= max(exact, written) <= most:
        raise ParameterError(f"{rule}, got {shown(epsilon)}")
    return exact, written


def _fractions(value: object, most: int) -> tuple[Fraction, Fraction]:
    if not is_number(value):
        raise TypeError
    if isinstance(value, Rational):
        # int(): the parts of a numpy integer are numpy integers, which overflow.
        exact = Fraction(int(value.numerator), int(value.denominator))
        # One that is a float's value, as tables hold it, was written as that float.
        number = float(exact)
        return exact, Fraction(repr(number)) if Fraction(number) == exact else exact
    if isinstance(value, Decimal):
        if not 1e-6 <= value <= most:  # before 1E+999999999 is written out
            raise ValueError
        return Fraction(value), Fraction(value)
    number = float(value)  # type: ignore[arg-type]
    return Fraction(number), Fraction(repr(number))
