"""The rule of each kind of argument, written once: InputError with field, rule and value.

What the client has a rule for (epsilon as devices count it, sides of grids, mechanisms) it checks
itself; :func:`input_errors` makes its refusals those of this package.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from client_sdk import ClientError, shared
from client_sdk.shared import (
    MAX_CELLS,
    MAX_EPSILON,
    MICRO,
    MIN_EPSILON,
    WEIGHT_LIMIT,
    is_number,
    shown,
)
from ldpspatial.errors import InputError

__all__ = [
    "MAX_CELLS",
    "MAX_EPSILON",
    "MICRO",
    "MIN_EPSILON",
    "WEIGHT_LIMIT",
    "callback",
    "check_epsilon",
    "check_generator",
    "density_array",
    "exact_epsilon",
    "file_path",
    "finite_number",
    "function",
    "input_errors",
    "instance",
    "map_shape",
    "micro_epsilons",
    "number_array",
    "number_in",
    "one_of",
    "positive",
    "processes",
    "random_bytes",
    "shown",
    "true_or_false",
    "whole_array",
    "whole_number",
    "written_epsilon",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = TypeVar("Kind")
FINITE = "(-inf, inf)"
MAX_PROCESSES = 1 << 16
SUM_TOLERANCE = 1e-6  # how far the sum of a density may be from 1, as totals of maps may differ


@contextmanager
def input_errors() -> Iterator[None]:
    """Raise as InputError what the client refuses; serves as a decorator, too."""
    try:
        yield
    except ClientError as error:
        raise InputError(str(error)) from None


@input_errors()
def whole_number(field: str, value: object, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int from ``low`` to ``high``, or to no bound if that is None.

    numpy's whole numbers are welcome; floats and bools are not.
    """
    if high is not None:
        return shared.whole_number(field, value, low, high)
    rule = f"{field} must be a whole number from {low} on, got {shown(value)}"
    if isinstance(value, (bool, np.bool_)):
        raise InputError(rule)
    try:
        number = int(value.__index__())  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        raise InputError(rule) from None
    if number < low:
        raise InputError(rule)
    return number


@input_errors()
def finite_number(field: str, value: object) -> float:
    """Return ``value`` as a finite float."""
    return shared.finite_number(field, value)


def number_in(field: str, value: object, interval: str) -> float:
    """Return ``value`` as a float in an interval.

    Parameters
    ----------
    field : str
        What the message calls the value.
    value : object
        Any real number; text that reads like one and bools are none.
    interval : str
        As it is written: "(0, 1]", "[0, inf)". The float has to lie in it, too.

    Examples
    --------
    >>> number_in("alpha", Fraction(1, 2), "(0, 1)")
    0.5
    """
    number = _float(value)
    if not _within(number, interval):
        raise InputError(f"{field} must be a number in {interval}, got {shown(value)}")
    return number


def positive(field: str, value: object) -> float:
    """Return ``value`` as a float above 0 that is finite."""
    number = _float(value)
    if not 0 < number < inf:
        raise InputError(f"{field} must be a positive finite number, got {shown(value)}")
    return number


def one_of(field: str, value: object, names: Collection[str]) -> str:
    """Return ``value`` where it is one of the names."""
    if not isinstance(value, str) or value not in names:
        raise InputError(f"{field} must be one of {', '.join(names)}, got {shown(value)}")
    return value


def true_or_false(field: str, value: object) -> bool:
    """Return a bool; 0, 1 and texts are none."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{field} must be True or False, got {shown(value)}")
    return bool(value)


def instance(field: str, value: object, kind: type[Kind]) -> Kind:
    """Return an object of a class; the message tells its type and nothing of what it holds."""
    if not isinstance(value, kind):
        name = kind.__name__
        article = "an" if name.startswith(("A", "E", "I", "O", "Un")) else "a"  # but a UserCells
        raise InputError(f"{field} must be {article} {name}, got {type(value).__name__}")
    return value


def function(field: str, value: object) -> Callable[..., Any]:
    """Return what can be called."""
    if not callable(value):
        raise InputError(f"{field} must be a function, got {shown(value)}")
    return value


def callback(field: str, value: object) -> Callable[..., Any] | None:
    """Return what can be called, or None."""
    return None if value is None else function(field, value)


@input_errors()
def random_bytes(entropy: Callable[[int], bytes], size: int) -> bytes:
    """Return so many bytes of an entropy function, no fewer."""
    return shared.random_bytes(entropy, size)


@input_errors()
def file_path(field: str, path: object, kind: str = "file") -> Path:
    """Return a path that is a text or a path, whether there is a file or not."""
    return Path(shared.path_text(field, kind, path))


def processes(field: str, value: object) -> int:
    """Return a number of processes, -1 where each core is to have one."""
    rule = f"{field} must be 1 or more, or -1 for every core"
    try:
        number = whole_number(field, value, -1, MAX_PROCESSES)
    except InputError:
        raise InputError(f"{rule}, got {shown(value)}") from None
    if number == 0:
        raise InputError(f"{rule}, got 0")
    return number


def number_array(
    field: str,
    values: object,
    shape: tuple[int | str, ...] | None = None,
    interval: str = FINITE,
    bools: bool = False,
    where: NDArray[np.bool_] | None = None,
) -> Array:
    """Return numbers as a float64 array.

    Parameters
    ----------
    field : str
        What the message calls the array.
    values : array_like
        Of real numbers: neither texts nor objects, rows of one length, nothing masked.
    shape : tuple of int and str, optional
        Lengths that are known, and letters for others, equal where they have the same letter:
        ("n", 2). No axis may be empty. Any shape without it.
    interval : str
        Where all numbers have to lie, as in :func:`number_in`. The message repeats the first that
        does not, so it is to be left out where numbers are positions: NaN and infinity, which are
        refused in any case, are none.
    bools : bool
        Whether a bool counts as 0 or 1.
    where : array of bool, optional
        Of that shape: which numbers count. The others may be NaN, and become 0.

    Examples
    --------
    >>> number_array("weights", [[0, 1]], ("d", 2), "[0, 1]").tolist()
    [[0.0, 1.0]]
    """
    try:
        given = np.asarray(values)
    except (ValueError, TypeError, OverflowError):  # rows of different lengths
        raise InputError(f"{field} must be an array of numbers, of one shape") from None
    if given.dtype.kind not in ("biuf" if bools else "iuf"):
        raise InputError(f"{field} must be an array of numbers, got {_told(values, given)}")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{field} must not be masked: fill the entries without a value")
    if shape is not None and (given.size == 0 or not _is_shape(given.shape, shape)):
        least = ", with one number at least" if given.size == 0 else ""
        raise InputError(
            f"{field} must be an array of numbers of shape {_written(shape)}{least}, "
            f"got {_told(values, given)}"
        )
    numbers: Array
    if given.dtype == np.float64:
        # The same order in memory, so that sums round alike. What nobody can change is kept.
        numbers = given if where is None and _is_frozen(given) else given.copy("K")
    else:
        with np.errstate(over="ignore"):  # what is beyond float64 is infinite, and refused
            numbers = given.astype(np.float64)
    if where is not None:
        numbers[~where] = 0.0
    ends = (numbers.min(), numbers.max()) if numbers.size else ()  # NaN where one is
    if not all(_within(end, interval) for end in ends):
        bad = ~_within(numbers, interval)
        rule = "finite numbers" if interval == FINITE else f"numbers in {interval}"
        at = ", ".join(map(str, np.argwhere(bad)[0]))
        first = float(numbers[bad][0])
        raise InputError(f"{field} must hold {rule}, got {first!r}" + (f" at [{at}]" if at else ""))
    return numbers


def density_array(field: str, values: object, shape: tuple[int | str, ...]) -> Array:
    """Return numbers >= 0 that sum to 1; ``shape`` is that of :func:`number_array`."""
    density = number_array(field, values, shape, "[0, inf)")
    total = float(density.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(f"{field} must sum to 1, got a sum of {total:.9g}")
    return density


def whole_array(
    field: str, values: object, shape: tuple[int | str, ...], low: int, high: int
) -> Ints:
    """Return whole numbers from ``low`` to below ``high`` as an int64 array; it may be empty.

    The message repeats none of them, which may be cells and so positions. ``shape`` is that of
    :func:`number_array`.
    """
    try:
        given = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{field} must be an array of whole numbers, of one shape") from None
    if (given.size and given.dtype.kind not in "iu") or not _is_shape(given.shape, shape):
        raise InputError(
            f"{field} must be an array of whole numbers of shape {_written(shape)}, "
            f"got {_told(values, given)}"
        )
    if given.size and not low <= int(given.min()) <= int(given.max()) < high:
        raise InputError(f"{field} must lie in [{low}, {high}) (not repeated here)")
    return given.astype(np.int64)


def map_shape(field: str, shape: object) -> tuple[int, int]:
    """Return the rows and columns of a map, both at least 1."""
    try:
        rows, columns = (whole_number(field, side, 1) for side in shape)  # type: ignore[attr-defined]
    except (TypeError, ValueError):  # InputError is a ValueError
        rule = f"{field} must be two whole numbers from 1 on, rows and columns"
        got = str(shape) if isinstance(shape, tuple) and len(shape) == 2 else shown(shape)
        raise InputError(f"{rule}, got {got}") from None
    return rows, columns


def check_epsilon(epsilon: object) -> None:
    """Refuse an epsilon that is not a positive finite number."""
    positive("epsilon", epsilon)


@input_errors()
def exact_epsilon(epsilon: object) -> Fraction:
    """Return the epsilon of a table as an exact number, never above what was meant."""
    return shared.exact_epsilon(epsilon)


@input_errors()
def written_epsilon(field: str, epsilon: object) -> Fraction:
    """Return an epsilon as it is written: the float 0.7 is 7/10."""
    return shared.written_epsilon(field, epsilon)


@input_errors()
def micro_epsilons(epsilon: object) -> int:
    """Return an epsilon in millionths; it must be a whole number of them."""
    return shared.micro_epsilons(epsilon)


def check_generator(rng: object) -> np.random.Generator:
    """Return a numpy Generator, or refuse: randomness is an argument without a default."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy Generator, got {type(rng).__name__}")
    return rng


def _float(value: object) -> float:
    """Return a real number as a float, NaN where it is none or no float is near it."""
    try:
        return float(value) if is_number(value) else nan  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return nan


def _within(numbers: Any, interval: str) -> Any:
    """Tell which numbers lie in an interval; NaN lies in none."""
    low, high = _ends(interval)
    above = numbers >= low if interval[0] == "[" else numbers > low
    below = numbers <= high if interval[-1] == "]" else numbers < high
    return above & below


@cache
def _ends(interval: str) -> tuple[float, float]:
    """Return the ends of an interval as it is written in the code."""
    low, high = map(float, interval[1:-1].split(","))
    return low, high


def _is_frozen(array: NDArray[Any]) -> bool:
    """Tell whether nobody can write to the memory of an array."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None


def _is_shape(found: tuple[int, ...], wanted: tuple[int | str, ...]) -> bool:
    """Tell whether a shape has the lengths that are known, and one length a letter."""
    lengths: dict[str, int] = {}
    return len(found) == len(wanted) and all(
        length == (lengths.setdefault(want, length) if isinstance(want, str) else want)
        for length, want in zip(found, wanted, strict=True)
    )


def _told(values: object, given: NDArray[Any]) -> str:
    """Return what an array is, or what was given in place of one, and none of its content."""
    return f"{given.dtype} of shape {given.shape}" if given.ndim else type(values).__name__


def _written(shape: tuple[int | str, ...]) -> str:
    """Return a shape as Python writes one, letters without quotes."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
