"""One way to compile the loops of this package."""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function and cache the result on disk where there is a place for it."""
    return _cached(function)


def compiled_in_any_order(function: Callable[..., Any]) -> Any:
    """Compile a function whose loops take several numbers at once, so add them in any order.

    A division by 0 is infinite there, as in NumPy: to raise an error they would go one by one.
    """
    return _cached(function, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


def _cached(function: Callable[..., Any], **options: Any) -> Any:
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # a read-only installation and no home folder: compile in every process
        return njit(nogil=True, **options)(function)
