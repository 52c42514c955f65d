"""One way to compile the loops of this package."""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function and cache the result on disk where there is a place for it."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # a read-only installation and no home folder: compile in every process
        return njit(nogil=True)(function)
