"""The rule of each kind of argument, written once: InputError with field, rule and value.

What the client has a rule for (epsilon as devices count it, sides of grids, mechanisms) it checks
itself; :func:`input_errors` makes its refusals those of this package.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib.metadata import entry_points
from math import inf
from typing import TypeVar

import numpy as np

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
    "check_epsilon",
    "check_generator",
    "check_level",
    "exact_epsilon",
    "finite_number",
    "input_errors",
    "is_number",
    "micro_epsilons",
    "outside",
    "outside_names",
    "positive",
    "shown",
    "whole_number",
    "written_epsilon",
]


Kind = TypeVar("Kind")


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


def positive(field: str, value: object) -> float:
    """Return ``value`` as a float above 0 that is finite."""
    try:
        number = float(value) if is_number(value) else 0.0  # type: ignore[arg-type]
    except (ValueError, OverflowError):  # a number, but no float is near it
        number = 0.0
    if not 0 < number < inf:
        raise InputError(f"{field} must be a positive finite number, got {shown(value)}")
    return number


def check_epsilon(epsilon: object) -> None:
    """Refuse an epsilon that is no positive finite number."""
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


def check_generator(rng: object, where: str = "") -> np.random.Generator:
    """Return a numpy Generator, or refuse: randomness is an argument without a default."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy Generator{where}, got {type(rng).__name__}")
    return rng


def check_level(level: object) -> None:
    """Refuse a level of confidence that does not lie between 0 and 1."""
    if not is_number(level) or not 0 < level < 1:  # type: ignore[operator]
        raise InputError(f"level must lie between 0 and 1, got {level!r}")


def outside_names(group: str) -> set[str]:
    """Return the names that other packages have registered as entry points of a group."""
    return set(entry_points(group=group).names)


def outside(group: str, field: str, name: str, kind: type[Kind]) -> Kind | None:
    """Return what another package brings: by the name of an entry point, or as ``module:Name``.

    A class is made without arguments. None if the name is neither of the two.

    Raises
    ------
    InputError
        It cannot be imported, or is not of that kind.
    """
    registered = {each.name: each for each in entry_points(group=group)}
    module, colon, attribute = name.partition(":")
    if name not in registered and not colon:
        return None
    try:
        if name in registered:
            found = registered[name].load()
        else:
            found = getattr(importlib.import_module(module), attribute)
        made = found() if isinstance(found, type) and issubclass(found, kind) else found
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError(f"{field} must be found at {name!r}: {error}") from None
    if not isinstance(made, kind):
        raise InputError(f"{field} must lead to {kind.__name__}, got {shown(made)} at {name!r}")
    return made
