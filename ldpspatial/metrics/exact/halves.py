"""Both halves of a loop at once, on two cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any


class Halves:
    """Runs compiled loops on two threads, half of the loop on each.

    The loops must release the interpreter's lock.

    Used as a context, which ends the second thread. With `threads` 1 or on one core all is done
    in the calling thread.
    """

    def __init__(self, threads: int = 2):
        self._pool = ThreadPoolExecutor(1) if min(threads, os.cpu_count() or 1) > 1 else None

    def __enter__(self) -> "Halves":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def __call__(self, loop: Callable[..., None], size: int, *arguments: Any) -> None:
        """Call loop(begin, end, *arguments) for 0 .. size, in two halves."""
        if self._pool is None:
            loop(0, size, *arguments)
            return
        second = self._pool.submit(loop, size // 2, size, *arguments)
        loop(0, size // 2, *arguments)
        second.result()
