"""Linear algebra in one thread, for long runs of small products.

More threads take longer there, far longer where a core is busy with other work: each product wakes
them and waits for all. And they add up in another order, of which chains make another map.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from threadpoolctl import threadpool_limits

P = ParamSpec("P")
R = TypeVar("R")


def in_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function, and all that it calls, do its linear algebra in one thread."""
    return cast(Callable[P, R], threadpool_limits.wrap(limits=1)(function))
