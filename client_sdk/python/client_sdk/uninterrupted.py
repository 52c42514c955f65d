"""Calls that no signal handler can end in the middle.

Python runs the handlers of signals in the main thread, between any two of its steps. What a handler
raises (a timeout, KeyboardInterrupt) would end a call of the ledger wherever it is, and whoever
keeps that error would keep the call's lock. So a call that is made in the main thread does its work
in a thread of its own. The error of a handler ends the waiting for it, and the work is done to its
end, or not at all where it had not begun.
"""

import _thread
import contextvars
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_here = threading.local()


def uninterrupted(function: Function) -> Function:
    """Let a function do its work where no handler of a signal is run."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        # In a page (Emscripten) there are no threads, and no signals but the app's own.
        if sys.platform == "emscripten" or threading.get_ident() != threading.main_thread().ident:
            return function(*arguments, **named)
        if sys.is_finalizing():  # a new thread would end before it did anything
            return function(*arguments, **named)
        return _Work(functools.partial(function, *arguments, **named)).result()

    return call  # type: ignore[return-value]


def is_abandoned() -> bool:
    """Tell whether nobody waits any more for the work that this thread does."""
    work: _Work | None = getattr(_here, "work", None)
    return work is not None and work.abandoned


class _Work:
    """One call, and what came of it.

    Locks and threads are those of the interpreter, which start and end in one step: those of
    ``threading`` are written in Python, and so can be interrupted themselves.
    """

    def __init__(self, function: Callable[[], Any]):
        self.abandoned = False
        self._function = function
        self._context = contextvars.copy_context()
        self._claim = _thread.allocate_lock()  # taken by whoever does the work, so once
        self._running = _thread.allocate_lock()
        self._running.acquire()
        self._process = os.getpid()
        self._value: Any = None
        self._error: BaseException | None = None

    def result(self) -> Any:
        try:
            try:
                _thread.start_new_thread(self._run, ())
            except RuntimeError:  # no thread can start: there are too many, or Python is exiting
                if not self._claim.acquire(blocking=False):
                    raise  # of a handler, and the work has begun
                return self._function()
            self._running.acquire()
        except BaseException:
            self.abandoned = True
            raise
        try:
            if self._error is not None:
                raise self._error
            return self._value
        finally:
            self._error = None  # or the error would refer to itself

    def _run(self) -> None:
        if not self._claim.acquire(blocking=False):
            return
        _here.work = self
        try:
            self._value = self._context.run(self._function)
        except BaseException as error:
            self._error = error
        if os.getpid() != self._process:
            os._exit(70)  # a child that was forked in here has nobody waiting for this
        self._running.release()
