"""What other packages bring: found by the name of an entry point, or as ``module:Name``."""

import importlib
import warnings
from collections.abc import Collection
from importlib.metadata import entry_points
from typing import TypeVar

from ldpspatial.errors import InputError

Kind = TypeVar("Kind")


def extension_names(group: str, ours: Collection[str]) -> list[str]:
    """Return the names that other packages have registered in a group, without loading any.

    A name of ours stays ours; a warning says so.
    """
    registered = set(entry_points(group=group).names)
    for name in sorted(registered.intersection(ours)):
        warnings.warn(
            f"the entry point {name!r} of {group} is left out: ldpspatial has that name itself",
            stacklevel=3,
        )
    return sorted(registered.difference(ours))


def extension(group: str, field: str, name: str, kind: type[Kind]) -> Kind | None:
    """Return what another package brings: by the name of an entry point, or as ``module:Name``.

    A class is made without arguments. None if the name is neither of the two.

    Raises
    ------
    InputError
        It cannot be loaded, cannot be made without arguments, or is not of that kind.
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
    except Exception as error:  # a module may raise anything while it is loaded
        raise InputError(f"{field} must be found at {name!r}, {_cause(error)}") from error
    made = found
    if isinstance(found, type) and issubclass(found, kind):
        try:
            made = found()
        except Exception as error:
            raise InputError(
                f"{field} must be an object, or a class that is made without arguments, got "
                f"{found.__name__} at {name!r}, {_cause(error)}"
            ) from error
    if not isinstance(made, kind):
        got = f"the class {made.__name__}" if isinstance(made, type) else type(made).__name__
        raise InputError(f"{field} must lead to {kind.__name__}, got {got} at {name!r}")
    return made


def _cause(error: Exception) -> str:
    return f"which raises {type(error).__name__}: {error}"
